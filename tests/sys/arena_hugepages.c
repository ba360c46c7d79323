/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_hugepages.c - arenas on the machine's real huge pages.
 *
 * As root it sets the pool of 2 MiB pages to POOL_PAGES while it runs, and back
 * afterwards.  Exit 77: not root, or no such pool, or pages not to be had.
 *
 *   - a heap larger than the pool falls to transparent pages, without a signal
 *   - the number of areas stays the same over 50 grows
 *   - areas carry the flags that keep them out of core dumps and children
 *   - transparent pages really are huge where the mode allows them
 *   - a locked process doesn't drain the pool into the window
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/arena.h"

#define MIB (UINT64_C(1) << 20)
#define POOL_PAGES 64u
#define PAGE_BYTES (2 * MIB)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static unsigned failures;
static uint64_t pool_before;

#define EXPECT(cond)                                                           \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#cond);                                        \
			failures++;                                            \
		}                                                              \
	} while (0)

static uint64_t pool_file(const char *file)
{
	char path[128];
	uint64_t x = 0;

	snprintf(path, sizeof(path), POOL "%s", file);
	pcpi_sys_read_u64(path, &x);
	return x;
}

static bool set_pool(uint64_t pages)
{
	char text[24];
	int fd = open(POOL "nr_hugepages", O_WRONLY | O_CLOEXEC);
	int len =
		snprintf(text, sizeof(text), "%llu", (unsigned long long)pages);
	bool ok = fd >= 0 && write(fd, text, (size_t)len) == len;

	if (fd >= 0)
		close(fd);
	return ok && pool_file("nr_hugepages") >= pages;
}

static void restore_pool(void)
{
	set_pool(pool_before);
}

/* A signal must not leave the machine's pool changed. */
static void on_signal(int sig)
{
	restore_pool();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void create(struct pcpi_space *space, uint64_t max_bytes, bool cow)
{
	struct pcpi_space_node_spec node = {0, max_bytes};
	struct pcpi_space_spec spec = {
		.nodes = &node, .nr_nodes = 1, .cow = cow, .verbosity = 1};

	if (pcpi_space_create(space, &spec) != 0) {
		fprintf(stderr, "no space\n");
		exit(1);
	}
}

static unsigned count_areas(void)
{
	unsigned n = 0;
	int c;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* Of the areas within the space: the sum of a smaps field in KiB, and how many
 * have and lack a flag. */
struct areas {
	unsigned long kib;
	unsigned with, without;
};

static struct areas look(const struct pcpi_space *space, const char *field,
			 const char *flag)
{
	struct areas sum = {0, 0, 0};
	unsigned long base = (unsigned long)space->base, from = 0, to, kib;
	char line[512];
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start;
		bool ours;

		if (sscanf(line, "%lx-%lx ", &start, &to) == 2)
			from = start;
		ours = from >= base && from < base + space->bytes;
		if (ours && strncmp(line, field, strlen(field)) == 0 &&
		    sscanf(line + strlen(field), ": %lu", &kib) == 1)
			sum.kib += kib;
		if (ours && strncmp(line, "VmFlags:", 8) == 0) {
			if (strstr(line, flag))
				sum.with++;
			else
				sum.without++;
		}
	}
	if (f)
		fclose(f);
	return sum;
}

static void write_all(const struct pcpi_arena *a)
{
	memset(a->base, 0x5a, a->bytes);
}

/* Three times the pool: hugetlb for as long as it lasts. */
static void grow_past_the_pool(void)
{
	uint64_t want = 3 * POOL_PAGES * PAGE_BYTES, got = 0;
	unsigned kinds[3] = {0, 0, 0};
	struct pcpi_space space;
	struct pcpi_arena a;

	create(&space, want, false);
	while (got < want &&
	       pcpi_arena_grow(&space, 0, want - got, false, &a) == 0) {
		write_all(&a);
		kinds[a.backing]++;
		got += a.bytes;
	}
	pcpi_space_check(&space);
	EXPECT(got == want);
	EXPECT(kinds[PCPA_BACKING_HUGETLB] > 0);
	EXPECT(kinds[PCPA_BACKING_THP] + kinds[PCPA_BACKING_BASE] > 0);
	EXPECT(pool_file("free_hugepages") == 0);
	EXPECT(look(&space, "Rss", " dd").without == 0);
	EXPECT(look(&space, "Rss", " dc").without == 0);
	EXPECT(pcpi_space_destroy(&space) == 0);
	EXPECT(pool_file("free_hugepages") == POOL_PAGES);
}

/* Somebody takes the pages between the look at the pool and the fault. */
static void lose_the_race(void)
{
	struct pcpi_space space;
	uint64_t window = POOL_PAGES * PAGE_BYTES;

	create(&space, window, false);
	EXPECT(space.windows[0].backing == PCPA_BACKING_HUGETLB);
	EXPECT(set_pool(POOL_PAGES / 2));
	EXPECT(pcpi_sys->populate(space.base, window) != 0);
	EXPECT(pcpi_sys->advise(space.base, window, PCPI_ADVISE_DONTNEED) == 0);
	EXPECT(pool_file("free_hugepages") == POOL_PAGES / 2);
	EXPECT(set_pool(POOL_PAGES));
	EXPECT(pcpi_space_destroy(&space) == 0);
}

static void release_gives_pages_back(void)
{
	struct pcpi_space space;
	struct pcpi_arena a, b;

	create(&space, 256 * MIB, false);
	EXPECT(pcpi_arena_grow(&space, 0, 20 * PAGE_BYTES, true, &a) == 0);
	EXPECT(pcpi_arena_grow(&space, 0, 20 * PAGE_BYTES, true, &b) == 0);
	EXPECT(pool_file("free_hugepages") == POOL_PAGES - 40);
	EXPECT(pcpi_arena_give_back(&space, &a) == 0);
	EXPECT(pool_file("free_hugepages") == POOL_PAGES - 20);
	EXPECT(pcpi_space_destroy(&space) == 0);
}

static void areas_stay_flat(bool cow)
{
	struct pcpi_space space;
	struct pcpi_arena a;
	unsigned first = 0;

	create(&space, 512 * MIB, cow);
	for (unsigned i = 0; i < 50; i++) {
		EXPECT(pcpi_arena_grow(&space, 0, 2 * PAGE_BYTES, true, &a) == 0);
		write_all(&a);
		/* The first grow in each window parts it from its rest. */
		if (i == 0 ||
		    a.base == space.windows[a.backing ? space.nr_windows - 1 : 0]
				      .base)
			first = count_areas();
		EXPECT(count_areas() == first);
	}
	EXPECT(pcpi_space_destroy(&space) == 0);
}

static void transparent_pages_are_huge(void)
{
	struct pcpi_space space;
	struct pcpi_arena a;

	if (pcpi_hugepages_thp(false) == PCPI_THP_NEVER)
		return;
	create(&space, 64 * MIB, true);
	EXPECT(pcpi_arena_grow(&space, 0, 64 * MIB, true, &a) == 0);
	EXPECT(a.backing == PCPA_BACKING_THP);
	EXPECT(look(&space, "AnonHugePages", " ").kib >= 60 * 1024);
	EXPECT(pcpi_space_destroy(&space) == 0);
}

/* mlockall() fills accessible new areas at once; ours must stay empty. */
static void locking_drains_no_pool(void)
{
	struct pcpi_space space;
	struct pcpi_arena a;

	if (mlockall(MCL_FUTURE) != 0)
		return;
	create(&space, 512 * MIB, false);
	EXPECT(pool_file("free_hugepages") == POOL_PAGES);
	EXPECT(look(&space, "Rss", " ").kib == 0);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT(pcpi_arena_grow(&space, 0, 100 * PAGE_BYTES, i == 1,
				       &a) == 0);
		write_all(&a);
	}
	EXPECT(a.backing != PCPA_BACKING_HUGETLB);
	EXPECT(pcpi_arena_give_back(&space, &a) == 0);
	EXPECT(look(&space, "Rss", " ").kib <= POOL_PAGES * PAGE_BYTES >> 10);
	EXPECT(pcpi_space_destroy(&space) == 0);
	munlockall();
}

int main(void)
{
	pool_before = pool_file("nr_hugepages");
	if (pool_before > POOL_PAGES || geteuid() != 0) {
		puts("skipped: needs root and a pool that isn't in use");
		return 77;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGSEGV, on_signal);
	atexit(restore_pool);
	if (!set_pool(POOL_PAGES) || pool_file("free_hugepages") != POOL_PAGES) {
		puts("skipped: no 64 free hugetlb pages of 2 MiB");
		return 77;
	}
	grow_past_the_pool();
	lose_the_race();
	release_gives_pages_back();
	areas_stay_flat(false);
	areas_stay_flat(true);
	transparent_pages_are_huge();
	locking_drains_no_pool();
	return failures != 0;
}
