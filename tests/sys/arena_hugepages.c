/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_hugepages.c - arenas on the machine's real huge pages.
 *
 * As root it sets the pool of 2 MiB pages to POOL_PAGES (hugepool.h).  Exit 77: not
 * root, or no such pool, or pages not to be had.
 *
 *   - a heap larger than the pool falls to transparent pages, without a signal
 *   - the number of areas stays the same over 50 grows
 *   - areas carry the flags that keep them out of core dumps and children
 *   - transparent pages really are huge where the mode allows them
 *   - a locked process doesn't drain the pool into the window
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "../../lib/arena.h"
#include "../support/expect.h"
#include "../support/hugepool.h"
#include "../support/smaps.h"

#define MIB (UINT64_C(1) << 20)
#define POOL_PAGES 64u
#define PAGE_BYTES POOL_PAGE_BYTES

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

static struct smaps look(const struct pcpi_space *space, const char *flag)
{
	return smaps_read(space->base, space->bytes, flag);
}

/* All of the space's areas have the flag. */
static bool all_have(const struct pcpi_space *space, const char *flag)
{
	struct smaps s = look(space, flag);

	return s.areas > 0 && s.flagged == s.areas;
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
	EXPECT(all_have(&space, " dd"));
	EXPECT(all_have(&space, " dc"));
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
	EXPECT(pool_set(POOL_PAGES / 2));
	EXPECT(pcpi_sys->populate(space.base, window) != 0);
	EXPECT(pcpi_sys->advise(space.base, window, PCPI_ADVISE_DONTNEED) == 0);
	EXPECT(pool_file("free_hugepages") == POOL_PAGES / 2);
	EXPECT(pool_set(POOL_PAGES));
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
			first = smaps_areas();
		EXPECT(smaps_areas() == first);
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
	EXPECT(look(&space, "").huge_kib >= 60 * 1024);
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
	EXPECT(look(&space, "").rss_kib == 0);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT(pcpi_arena_grow(&space, 0, 100 * PAGE_BYTES, i == 1,
				       &a) == 0);
		write_all(&a);
	}
	EXPECT(a.backing != PCPA_BACKING_HUGETLB);
	EXPECT(pcpi_arena_give_back(&space, &a) == 0);
	EXPECT(look(&space, "").rss_kib <= POOL_PAGES * PAGE_BYTES >> 10);
	EXPECT(pcpi_space_destroy(&space) == 0);
	munlockall();
}

int main(void)
{
	if (!pool_take(POOL_PAGES)) {
		puts("skipped: needs root, a pool that isn't in use, and memory");
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
