/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugepages.c - hugetlb pools and transparent huge pages, as /sys tells them.
 *
 *   /sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages   all nodes
 *   /sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_...  one node
 *   /sys/kernel/mm/transparent_hugepage/{enabled,shmem_enabled,hpage_pmd_size}
 *   /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled   since 6.8;
 *                                                shmem_enabled there since 6.11
 *
 * Sizes are found by asking for each power of two: that needs no directory
 * listing of the sys layer, and costs some twenty opens for each heap.
 *
 * Invariants:
 *   G1  a pool's usable pages are those that a fault on the node can get now:
 *       pages promised to other mappings (resv) are not counted.
 *
 * Concurrency: no state; any thread.
 * Failure: a file that can't be read counts as 0.
 * Proved by tests/unit/test_sys.c.
 */
#include "hugepages.h"

#include <stdio.h>
#include <string.h>

#include "../bits.h"

#define THP_DIR "/sys/kernel/mm/transparent_hugepage/"
#define PATH_BYTES 160

/* The largest hugetlb page of any architecture: 16 GiB (powerpc). */
#define LARGEST_PAGE_BYTES (UINT64_C(16) << 30)

static uint64_t read_or_zero(const char *path)
{
	uint64_t x = 0;

	pcpi_sys_read_u64(path, &x);
	return x;
}

/* A file of the pool of all nodes. */
static int read_global(size_t page_bytes, const char *file, uint64_t *out)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path),
		 "/sys/kernel/mm/hugepages/hugepages-%zukB/%s",
		 page_bytes >> 10, file);
	return pcpi_sys_read_u64(path, out);
}

static uint64_t global_or_zero(size_t page_bytes, const char *file)
{
	uint64_t x = 0;

	read_global(page_bytes, file, &x);
	return x;
}

/* A file of one node's pool; a kernel without NUMA has only the other. */
static uint64_t node_or_global(size_t page_bytes, unsigned os_node,
			       const char *file)
{
	char path[PATH_BYTES];
	uint64_t x;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/node/node%u/hugepages/hugepages-%zukB/%s",
		 os_node, page_bytes >> 10, file);
	if (pcpi_sys_read_u64(path, &x) == 0)
		return x;
	return os_node == 0 ? global_or_zero(page_bytes, file) : 0;
}

unsigned pcpi_hugepages_sizes(size_t out[PCPI_HUGETLB_SIZES])
{
	uint64_t base = pcpi_sys_page_bytes();
	uint64_t ignored;
	unsigned n = 0;

	for (uint64_t s = LARGEST_PAGE_BYTES; s > base; s >>= 1) {
		if (n < PCPI_HUGETLB_SIZES && s <= SIZE_MAX / 2 &&
		    read_global((size_t)s, "nr_hugepages", &ignored) == 0)
			out[n++] = (size_t)s;
	}
	return n;
}

void pcpi_hugepages_pool(size_t page_bytes, unsigned os_node,
			 struct pcpi_hugetlb_pool *out)
{
	uint64_t all_free = global_or_zero(page_bytes, "free_hugepages");
	uint64_t promised = global_or_zero(page_bytes, "resv_hugepages");
	uint64_t most = global_or_zero(page_bytes, "nr_overcommit_hugepages");
	uint64_t surplus = global_or_zero(page_bytes, "surplus_hugepages");
	uint64_t here = node_or_global(page_bytes, os_node, "free_hugepages");

	all_free = all_free > promised ? all_free - promised : 0;
	out->total = node_or_global(page_bytes, os_node, "nr_hugepages");
	out->usable = pcpi_min(here, all_free);
	if (most > surplus)
		out->usable += most - surplus;
}

/* Whether pages of page_bytes are those of `sysctl vm.nr_hugepages`. */
static PCPI_NOINLINE bool is_default(size_t page_bytes)
{
	/* Only the default size's pool is shown in this file as well. */
	static const char key[] = "Hugepagesize:";
	char buf[4096];
	const char *at;
	uint64_t kib = 0;

	if (pcpi_sys->read_file("/proc/meminfo", buf, sizeof(buf)) < 0)
		return false;
	at = strstr(buf, key);
	if (!at)
		return false;
	for (at += sizeof(key) - 1; *at == ' '; at++)
		;
	for (; *at >= '0' && *at <= '9'; at++)
		kib = kib * 10 + (uint64_t)(*at - '0');
	return kib == page_bytes >> 10;
}

/* The sysctl spreads pages over all nodes, so it fits only where there is one. */
static bool is_single_node(void)
{
	char online[16];

	return pcpi_sys->read_file("/sys/devices/system/node/online", online,
				   sizeof(online)) < 0 ||
	       strcmp(online, "0\n") == 0;
}

void pcpi_hugepages_command(size_t page_bytes, unsigned os_node, uint64_t pages,
			    char *buf, size_t size)
{
	unsigned long long n = pages;

	if (is_single_node() && is_default(page_bytes))
		snprintf(buf, size, "sysctl vm.nr_hugepages=%llu", n);
	else
		snprintf(buf, size,
			 "echo %llu > /sys/devices/system/node/node%u/"
			 "hugepages/hugepages-%zukB/nr_hugepages",
			 n, os_node, page_bytes >> 10);
}

/* Files of this kind list all words and bracket the one that holds. */
static bool is_set(const char *text, const char *word)
{
	return strstr(text, word) != NULL;
}

/* Reads a setting: the size's own, unless it says that it follows the one of all
 * sizes. */
static bool read_setting(const char *file, char *text, size_t size)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), THP_DIR "hugepages-%zukB/%s",
		 pcpi_hugepages_thp_bytes() >> 10, file);
	if (pcpi_sys->read_file(path, text, size) >= 0 &&
	    !is_set(text, "[inherit]"))
		return true;
	snprintf(path, sizeof(path), THP_DIR "%s", file);
	return pcpi_sys->read_file(path, text, size) >= 0;
}

enum pcpi_thp_mode pcpi_hugepages_thp(bool shared)
{
	char text[128];

	if (pcpi_hugepages_thp_bytes() == 0 ||
	    !read_setting(shared ? "shmem_enabled" : "enabled", text,
			  sizeof(text)))
		return PCPI_THP_NEVER;
	/* The last two are of memory files only; a window is as large as the
	 * file. */
	if (is_set(text, "[always]") || is_set(text, "[within_size]") ||
	    is_set(text, "[force]"))
		return PCPI_THP_ALWAYS;
	return is_set(text, "[madvise]") || is_set(text, "[advise]")
		       ? PCPI_THP_MADVISE
		       : PCPI_THP_NEVER;
}

size_t pcpi_hugepages_thp_bytes(void)
{
	uint64_t bytes = read_or_zero(THP_DIR "hpage_pmd_size");

	if (!pcpi_is_pow2(bytes) || bytes <= pcpi_sys_page_bytes())
		return 0;
	return (size_t)bytes;
}
