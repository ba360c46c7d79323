/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_sys.c - see fake_sys.h.
 *
 * Populated memory is a set of unit addresses (open addressing, no deletion
 * marks: a removal re-enters the cluster behind it).
 */
#include "fake_sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_sys fake;

#define UNITS 65536u
static uintptr_t units[UNITS];

/* Whether this call is the one to fail. */
static bool is_chosen(void)
{
	return ++fake.calls == fake.fail_call;
}

/* ---- The set of populated units ------------------------------------------ */

static unsigned slot_of(uintptr_t unit)
{
	return (unsigned)(unit * 2654435761u >> 7) % UNITS;
}

static unsigned find_slot(uintptr_t unit)
{
	unsigned i = slot_of(unit);

	while (units[i] != 0 && units[i] != unit)
		i = (i + 1) % UNITS;
	return i;
}

static bool add_unit(uintptr_t unit)
{
	unsigned i = find_slot(unit);

	if (units[i] == unit)
		return false;
	units[i] = unit;
	fake.populated_bytes += fake.unit_bytes;
	return true;
}

static bool has_unit(uintptr_t unit)
{
	return units[find_slot(unit)] == unit;
}

static bool remove_unit(uintptr_t unit)
{
	unsigned i = find_slot(unit);

	if (units[i] == 0)
		return false;
	units[i] = 0;
	for (i = (i + 1) % UNITS; units[i] != 0; i = (i + 1) % UNITS) {
		uintptr_t again = units[i];

		units[i] = 0;
		units[find_slot(again)] = again;
	}
	fake.populated_bytes -= fake.unit_bytes;
	return true;
}

/* ---- Ranges -------------------------------------------------------------- */

static void note_range(struct fake_range *ranges, void *base, size_t bytes)
{
	for (unsigned i = 0; i < FAKE_RANGES; i++) {
		if (!ranges[i].base) {
			ranges[i] = (struct fake_range){base, bytes};
			return;
		}
	}
	abort();
}

static int range_of(const struct fake_range *ranges, const char *addr)
{
	for (int i = 0; i < FAKE_RANGES; i++) {
		if (ranges[i].base && addr >= ranges[i].base &&
		    addr < ranges[i].base + ranges[i].bytes)
			return i;
	}
	return -1;
}

/* The pool behind an address of a hugetlb range, by the node its window was
 * bound to; the tests use node 0 for the sizes that they watch. */
static struct fake_pool *pool_at(const char *addr)
{
	int r = range_of(fake.hugetlb, addr);

	for (unsigned i = 0; r >= 0 && i < FAKE_POOLS; i++) {
		if (fake.pools[i].page_bytes == fake.hugetlb_page[r])
			return &fake.pools[i];
	}
	return NULL;
}

static size_t fake_page_bytes(void)
{
	return fake.page_bytes;
}

static int fake_reserve(size_t bytes, size_t align, void **out)
{
	int rc;

	fake.reserves++;
	if (is_chosen())
		return -ENOMEM;
	if (fake.reserve_rc)
		return fake.reserve_rc;
	if (bytes > fake.address_space)
		return -ENOMEM;
	if (fake.own_maps_only) {
		*out = (void *)(UINT64_C(1) << 45);
		note_range(fake.ranges, *out, bytes);
		return 0;
	}
	rc = pcpi_sys_linux.reserve(bytes, align, out);
	if (rc == 0)
		note_range(fake.ranges, *out, bytes);
	return rc;
}

static int fake_map_meta(size_t bytes, void **out)
{
	int rc = is_chosen() ? -ENOMEM : pcpi_sys_linux.map_meta(bytes, out);

	if (rc == 0)
		note_range(fake.ranges, *out, bytes);
	return rc;
}

static int fake_map_hugetlb(void *addr, size_t bytes, size_t page_bytes)
{
	unsigned i;

	if (is_chosen())
		return -ENOMEM;
	if (fake.map_hugetlb_rc)
		return fake.map_hugetlb_rc;
	note_range(fake.hugetlb, addr, bytes);
	i = (unsigned)range_of(fake.hugetlb, addr);
	fake.hugetlb_page[i] = page_bytes;
	return 0;
}

static struct fake_memory_file *file_of(int fd)
{
	for (unsigned i = 0; i < FAKE_RANGES; i++)
		if (fake.memory_files[i].fd == fd)
			return &fake.memory_files[i];
	return NULL;
}

static int fake_memory_file(const char *name, size_t bytes, size_t page_bytes)
{
	struct fake_memory_file *file = file_of(0);
	bool hugetlb = page_bytes != fake.page_bytes;

	(void)name;
	if (is_chosen())
		return -ENOMEM;
	if (hugetlb && fake.memory_file_hugetlb_rc)
		return fake.memory_file_hugetlb_rc;
	if (!hugetlb && fake.memory_file_rc)
		return fake.memory_file_rc;
	if (!file || bytes % page_bytes != 0)
		abort();
	*file = (struct fake_memory_file){
		.fd = 100000 + (int)(file - fake.memory_files),
		.bytes = bytes,
		.page_bytes = page_bytes};
	return file->fd;
}

static int fake_map_file(void *addr, size_t bytes, int fd)
{
	struct fake_memory_file *file = file_of(fd);

	if (is_chosen())
		return -ENOMEM;
	if (!file || file->base || file->bytes != bytes)
		abort();
	file->base = addr;
	if (file->page_bytes != fake.page_bytes) {
		note_range(fake.hugetlb, addr, bytes);
		fake.hugetlb_page[range_of(fake.hugetlb, addr)] =
			file->page_bytes;
	}
	return 0;
}

static void fake_fd_close(int fd)
{
	struct fake_memory_file *file = file_of(fd);

	if (file)
		file->fd = 0;
	else
		pcpi_sys_linux.fd_close(fd);
}

static int fake_commit(void *addr, size_t bytes)
{
	fake.commits++;
	if (is_chosen() || bytes > fake.commit_left)
		return -ENOMEM;
	fake.committed_bytes += bytes;
	return fake.own_maps_only ? 0 : pcpi_sys_linux.commit(addr, bytes);
}

static int fake_decommit(void *addr, size_t bytes)
{
	fake.decommits++;
	if (is_chosen())
		return -ENOMEM;
	fake.committed_bytes -= bytes;
	return fake.own_maps_only ? 0 : pcpi_sys_linux.decommit(addr, bytes);
}

/* Takes all marks of units in a range away, as munmap does. */
static uint64_t drop_units(char *addr, size_t bytes)
{
	uint64_t dropped = 0;

	for (unsigned i = 0; i < UNITS;) {
		char *unit = (char *)units[i];

		if (unit && unit >= addr && unit < addr + bytes) {
			remove_unit(units[i]);
			dropped += fake.unit_bytes;
		} else {
			i++;
		}
	}
	return dropped;
}

static void forget_hugetlb(char *addr, size_t bytes)
{
	for (unsigned i = 0; i < FAKE_RANGES; i++) {
		struct fake_range *r = &fake.hugetlb[i];
		struct fake_pool *pool;

		if (!r->base || r->base < addr || r->base >= addr + bytes)
			continue;
		pool = pool_at(r->base);
		pool->free += drop_units(r->base, r->bytes) / pool->page_bytes;
		r->base = NULL;
	}
}

static int fake_unmap(void *addr, size_t bytes)
{
	int i = range_of(fake.ranges, addr);

	if (is_chosen())
		return -ENOMEM;
	if (fake.unmap_rc)
		return fake.unmap_rc;
	if (i < 0 || fake.ranges[i].base != addr ||
	    fake.ranges[i].bytes != bytes)
		abort();
	forget_hugetlb(addr, bytes);
	drop_units(addr, bytes);
	fake.ranges[i].base = NULL;
	/* Made-up ranges are not the process's to unmap. */
	if (addr == (void *)(UINT64_C(1) << 45))
		return 0;
	return pcpi_sys_linux.unmap(addr, bytes);
}

/* ---- Memory -------------------------------------------------------------- */

/* Pages of the pool that a fault could get, in bytes. */
static uint64_t pool_bytes(const struct fake_pool *pool)
{
	return (pool->free + pool->overcommit - pool->surplus) *
	       pool->page_bytes;
}

static int fake_populate(void *addr, size_t bytes)
{
	struct fake_pool *pool = pool_at(addr);
	uint64_t left = pool ? pool_bytes(pool) : fake.memory_left;
	uint64_t came = 0;
	int rc = 0;

	fake.populates++;
	if (is_chosen())
		return -EFAULT;
	if (fake.populate_rc)
		return fake.populate_rc;
	for (size_t at = 0; at < bytes && rc == 0; at += fake.unit_bytes) {
		if (has_unit((uintptr_t)addr + at))
			continue;
		if (came + fake.unit_bytes > left)
			rc = pool ? -EFAULT : -ENOMEM;
		else if (add_unit((uintptr_t)addr + at))
			came += fake.unit_bytes;
	}
	if (pool) {
		uint64_t pages = came / pool->page_bytes;
		uint64_t surplus = pages > pool->free ? pages - pool->free : 0;

		pool->free -= pages - surplus;
		pool->surplus += surplus;
	} else {
		fake.memory_left -= came;
	}
	return rc;
}

static int give_back(char *addr, size_t bytes)
{
	struct fake_pool *pool = pool_at(addr);
	uint64_t gone = 0;

	for (size_t at = 0; at < bytes; at += fake.unit_bytes) {
		if (remove_unit((uintptr_t)addr + at))
			gone += fake.unit_bytes;
	}
	if (pool)
		pool->free += gone / pool->page_bytes;
	else
		fake.memory_left += gone;
	return 0;
}

/* Of a file's pages it would give none. */
static int dont_need(char *addr, size_t bytes)
{
	fake.dontneeds++;
	if (fake.dontneed_rc)
		return fake.dontneed_rc;
	for (unsigned i = 0; i < FAKE_RANGES; i++) {
		const struct fake_memory_file *f = &fake.memory_files[i];

		if (f->fd && f->base && addr >= f->base &&
		    addr < f->base + f->bytes)
			return 0;
	}
	return give_back(addr, bytes);
}

static int fake_punch(int fd, uint64_t offset, size_t bytes)
{
	struct fake_memory_file *file = file_of(fd);

	fake.punches++;
	if (is_chosen())
		return -ENOMEM;
	if (fake.punch_rc)
		return fake.punch_rc;
	if (!file || !file->base || offset + bytes > file->bytes ||
	    offset % file->page_bytes != 0 || bytes % file->page_bytes != 0)
		abort();
	return give_back(file->base + offset, bytes);
}

static int fake_pagemap(const void *addr, uint64_t *out)
{
	(void)addr;
	if (fake.pagemap_rc)
		return fake.pagemap_rc;
	*out = fake.pagemap;
	return 0;
}

static int fake_advise(void *addr, size_t bytes, enum pcpi_advice advice)
{
	if (is_chosen())
		return -ENOMEM;
	switch (advice) {
	case PCPI_ADVISE_HUGE:
		fake.huges++;
		return fake.advise_huge_rc;
	case PCPI_ADVISE_NOHUGE:
		fake.nohuges++;
		return 0;
	case PCPI_ADVISE_DONTDUMP:
		fake.dontdumps++;
		return 0;
	case PCPI_ADVISE_DONTFORK:
		fake.dontforks++;
		return fake.dontfork_rc;
	case PCPI_ADVISE_DONTNEED:
		return dont_need(addr, bytes);
	}
	return -EINVAL;
}

static void fake_name(void *addr, size_t bytes, const char *name)
{
	(void)addr;
	(void)bytes;
	(void)name;
	fake.names++;
}

static int fake_bind(void *addr, size_t bytes, unsigned os_node,
		     enum pcpi_binding how)
{
	(void)addr;
	(void)bytes;
	if (fake.binds < 8) {
		fake.bound_nodes[fake.binds] = os_node;
		fake.bound_how[fake.binds] = how;
	}
	fake.binds++;
	return is_chosen() ? -EPERM : fake.bind_rc;
}

static ssize_t fake_elsewhere(const void *addr, size_t bytes, size_t step,
			      unsigned os_node)
{
	uint64_t there = bytes > fake.near_left ? bytes - fake.near_left : 0;

	(void)addr;
	(void)os_node;
	fake.looks++;
	if (is_chosen())
		return -EPERM;
	return fake.elsewhere_rc ? fake.elsewhere_rc : (ssize_t)(there / step);
}

static void fake_parallel(unsigned n, void (*fn)(void *arg, unsigned i),
			  void *arg)
{
	fake.helpers = n;
	for (unsigned i = 0; i < n; i++)
		fn(arg, i);
}

static int fake_thread_start(const char *name, void *(*fn)(void *arg),
			     void *arg, pthread_t *out)
{
	return is_chosen() ? -EAGAIN
			   : pcpi_sys_linux.thread_start(name, fn, arg, out);
}

/* ---- Files --------------------------------------------------------------- */

static ssize_t copy_text(const char *text, char *buf, size_t size)
{
	size_t len = strlen(text);

	len = len < size - 1 ? len : size - 1;
	memcpy(buf, text, len);
	buf[len] = '\0';
	return (ssize_t)len;
}

static bool pool_value(const struct fake_pool *pool, const char *file,
		       uint64_t *out)
{
	if (strcmp(file, "nr_hugepages") == 0)
		*out = pool->total;
	else if (strcmp(file, "free_hugepages") == 0)
		*out = pool->free;
	else if (strcmp(file, "resv_hugepages") == 0)
		*out = pool->promised;
	else if (strcmp(file, "nr_overcommit_hugepages") == 0)
		*out = pool->overcommit;
	else if (strcmp(file, "surplus_hugepages") == 0)
		*out = pool->surplus;
	else
		return false;
	return true;
}

static ssize_t read_pool(const char *path, char *buf, size_t size)
{
	char file[64] = "", text[32];
	unsigned node = 0;
	bool global, any = false;
	size_t kib;
	uint64_t sum = 0;

	global = sscanf(path, "/sys/kernel/mm/hugepages/hugepages-%zukB/%63s",
			&kib, file) == 2;
	if (!global &&
	    sscanf(path,
		   "/sys/devices/system/node/node%u/hugepages/hugepages-%zukB/"
		   "%63s",
		   &node, &kib, file) != 3)
		return -ENOENT;
	for (unsigned i = 0; i < FAKE_POOLS; i++) {
		const struct fake_pool *pool = &fake.pools[i];
		uint64_t x;

		if (pool->page_bytes == 0 || pool->page_bytes >> 10 != kib ||
		    (!global && pool->node != node) ||
		    !pool_value(pool, file, &x))
			continue;
		sum += x;
		any = true;
	}
	if (!any)
		return -ENOENT;
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)sum);
	return copy_text(text, buf, size);
}

static ssize_t fake_read_file(const char *path, char *buf, size_t size)
{
	if (is_chosen())
		return -EMFILE;
	for (unsigned i = 0; i < FAKE_FILES && fake.files[i].path; i++) {
		if (strcmp(fake.files[i].path, path) != 0)
			continue;
		if (!fake.files[i].text)
			return -EACCES;
		return copy_text(fake.files[i].text, buf, size);
	}
	return read_pool(path, buf, size);
}

static int fake_membarrier_register(void)
{
	if (is_chosen())
		return -ENOSYS;
	return fake.membarrier_rc ? fake.membarrier_rc
				  : pcpi_sys_linux.membarrier_register();
}

static unsigned fake_cpus(void)
{
	return fake.cpus;
}

static uint64_t fake_address_space_left(void)
{
	return fake.address_space;
}

static void fake_write_err(const char *text, size_t len)
{
	size_t at = strlen(fake.said);

	fake.says++;
	if (at + len < sizeof(fake.said))
		memcpy(fake.said + at, text, len);
}

void fake_sys_file(const char *path, const char *text)
{
	unsigned i = 0;

	while (i < FAKE_FILES && fake.files[i].path &&
	       strcmp(fake.files[i].path, path) != 0)
		i++;
	if (i == FAKE_FILES)
		abort();
	fake.files[i] = (struct fake_file){path, text};
}

struct fake_pool *fake_sys_pool(size_t page_bytes, unsigned node, uint64_t pages)
{
	for (unsigned i = 0; i < FAKE_POOLS; i++) {
		if (fake.pools[i].page_bytes)
			continue;
		fake.pools[i] = (struct fake_pool){.page_bytes = page_bytes,
						   .node = node,
						   .total = pages,
						   .free = pages};
		return &fake.pools[i];
	}
	abort();
}

unsigned fake_sys_mapped(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FAKE_RANGES; i++)
		n += fake.ranges[i].base != NULL;
	return n;
}

unsigned fake_sys_open_files(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FAKE_RANGES; i++)
		n += fake.memory_files[i].fd != 0;
	return n;
}

unsigned fake_sys_said(const char *text)
{
	const char *at = fake.said;
	unsigned n = 0;

	while ((at = strstr(at, text)) != NULL) {
		n++;
		at++;
	}
	return n;
}

void fake_sys_install(void)
{
	static struct pcpi_sys table;

	table = pcpi_sys_linux;
	table.page_bytes = fake_page_bytes;
	table.reserve = fake_reserve;
	table.map_meta = fake_map_meta;
	table.map_hugetlb = fake_map_hugetlb;
	table.memory_file = fake_memory_file;
	table.map_file = fake_map_file;
	table.punch = fake_punch;
	table.fd_close = fake_fd_close;
	table.pagemap = fake_pagemap;
	table.commit = fake_commit;
	table.decommit = fake_decommit;
	table.unmap = fake_unmap;
	table.populate = fake_populate;
	table.advise = fake_advise;
	table.name = fake_name;
	table.bind = fake_bind;
	table.elsewhere = fake_elsewhere;
	table.parallel = fake_parallel;
	table.thread_start = fake_thread_start;
	table.read_file = fake_read_file;
	table.membarrier_register = fake_membarrier_register;
	table.cpus = fake_cpus;
	table.address_space_left = fake_address_space_left;
	table.write_err = fake_write_err;
	pcpi_sys = &table;

	memset(units, 0, sizeof(units));
	memset(&fake, 0, sizeof(fake));
	fake.page_bytes = pcpi_sys_linux.page_bytes();
	fake.unit_bytes = (size_t)2 << 20;
	fake.cpus = 4;
	fake.address_space = UINT64_MAX;
	fake.commit_left = UINT64_MAX;
	fake.memory_left = UINT64_MAX;
	fake.near_left = UINT64_MAX;
	fake_sys_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
		      "2097152\n");
	fake_sys_file("/sys/kernel/mm/transparent_hugepage/enabled",
		      "always [madvise] never\n");
	fake_sys_file("/proc/meminfo", "MemTotal: 67108864 kB\n"
				       "MemAvailable:   67108864 kB\n"
				       "Hugepagesize:       2048 kB\n");
	fake_sys_file("/sys/devices/system/node/online", "0\n");
}
