/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trim.c - giving memory back: what goes, what stays, what the kernel
 * refuses, and that a heap grows again; on the invented machine, which writes
 * down what is populated, but for the last cases.
 */
#include <sys/mman.h>

#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"
#include "../support/sanitized.h"
#include "heap.h"

#define MAX_BLOCKS 65536u
#define HUGE_PAGE (2 * MIB)

static void *blocks[MAX_BLOCKS];
static size_t unit; /* releases must be multiples of it */
static unsigned releases;

static struct pcpi_sys table;
static int (*advise)(void *, size_t, enum pcpi_advice);

/* A release begins and ends at a whole page of the arena's. */
static int advise_watched(void *addr, size_t bytes, enum pcpi_advice advice)
{
	if (advice == PCPI_ADVISE_DONTNEED) {
		releases++;
		cr_expect_eq((uintptr_t)addr % unit, 0, "%p", addr);
		cr_expect_eq(bytes % unit, 0, "%zu", bytes);
		cr_expect_gt(bytes, 0);
	}
	return advise(addr, bytes, advice);
}

static void watch(void)
{
	table = *pcpi_sys;
	advise = table.advise;
	table.advise = advise_watched;
	pcpi_sys = &table;
	unit = HUGE_PAGE;
	releases = 0;
}

static void setup(void)
{
	fake_sys_install();
	watch();
}

TestSuite(trim, .init = setup);

static uint64_t managed_bytes(struct pcpa_heap *heap)
{
	return stats_of(heap, -1).managed_pages * fake.page_bytes;
}

/* What is managed is what is populated, and what is listed. */
static int arena_add(const struct pcpa_arena_info *info, void *arg)
{
	*(uint64_t *)arg += info->bytes;
	cr_expect_eq(info->bytes % info->page_bytes, 0);
	return 0;
}

static void expect_managed(struct pcpa_heap *heap, uint64_t bytes)
{
	uint64_t listed = 0;
	unsigned z;

	stats_summed(heap);
	cr_expect_eq(managed_bytes(heap), bytes);
	cr_expect_eq(fake.populated_bytes, bytes);
	cr_expect_eq(pcpa_for_each_arena(heap, arena_add, &listed), 0);
	cr_expect_eq(listed, bytes);
	pcpi_space_check(&heap->space);
	for (z = 0; z < heap->nr_zones; z++)
		cr_expect(pcpi_zone_check(&heap->env.zones[z]));
}

/* ---- What goes -------------------------------------------------------------------------- */

Test(trim, free_heap_gives_everything)
{
	struct pcpa_heap *heap = heap_make(64 * MIB, 256 * MIB, 0);

	KEEPS_ERRNO(cr_expect_eq(pcpa_heap_trim(heap, 0), 64 * MIB));
	expect_managed(heap, 0);
	cr_expect_eq(stats_of(heap, -1).arenas, 0);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 30000), 30000);
	free_all(heap, blocks, 30000);
	heap_end(heap);
}

Test(trim, keeps_what_it_shall)
{
	struct pcpa_heap *heap = heap_make(64 * MIB, 256 * MIB, 0);

	cr_expect_eq(pcpa_heap_trim(heap, 256 * MIB), 0);
	cr_expect_eq(pcpa_heap_trim(heap, 64 * MIB), 0);
	cr_expect_eq(pcpa_heap_trim(heap, SIZE_MAX), 0);
	cr_expect_eq(pcpa_heap_trim(heap, 33 * MIB), 30 * MIB);
	expect_managed(heap, 34 * MIB);
	cr_expect_eq(pcpa_heap_trim(heap, 32 * MIB + 1), 0);
	cr_expect_eq(pcpa_heap_trim(heap, 32 * MIB), 2 * MIB);
	expect_managed(heap, 32 * MIB);
	heap_end(heap);
}

Test(trim, blocks_in_use_keep_their_huge_pages)
{
	struct pcpa_heap *heap = heap_make(64 * MIB, 256 * MIB, 0);
	size_t n = alloc_all(heap, 9, 0, blocks, 32), i;

	cr_assert_eq(n, 32);
	for (i = 0; i < n; i += 2) {
		memset(blocks[i], (int)i + 1, 1);
		pcpa_free(heap, blocks[i + 1]);
	}
	cr_expect_eq(pcpa_heap_trim(heap, 0), 32 * MIB);
	expect_managed(heap, 32 * MIB);
	for (i = 0; i < n; i += 2) {
		cr_expect_eq(*(unsigned char *)blocks[i], i + 1);
		pcpa_free(heap, blocks[i]);
	}
	cr_expect_eq(pcpa_heap_trim(heap, 0), 32 * MIB);
	expect_managed(heap, 0);
	heap_end(heap);
}

Test(trim, cached_pages_hold_nothing)
{
	struct pcpa_heap *heap = heap_make(16 * MIB, 64 * MIB, 0);

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 3000), 3000);
	pcpa_free_bulk(heap, blocks, 3000);
	cr_assert_gt(stats_of(heap, -1).cached_pages, 0);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 16 * MIB);
	expect_managed(heap, 0);
	heap_end(heap);
}

Test(trim, fixed_heap_keeps_its_bytes)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);

	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	expect_managed(heap, 16 * MIB);
	heap_end(heap);
	cr_expect_eq(pcpa_heap_trim(NULL, 0), 0);
}

Test(trim, hugetlb_pages_go_whole)
{
	struct fake_pool *pool = fake_sys_pool(HUGE_PAGE, 0, 8);
	struct pcpa_heap *heap = heap_make(24 * MIB, 64 * MIB, 0);
	void *b;

	cr_expect_eq(pool->free, 0);
	b = pcpa_alloc(heap, 0, 0);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 22 * MIB);
	cr_expect_geq(pool->free, 7);
	pcpa_free(heap, b);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 2 * MIB);
	cr_expect_eq(pool->free, 8);
	expect_managed(heap, 0);
	heap_end(heap);
}

/* A page of 512 chunks is taken out in eight holds. */
Test(trim, gigantic_page_goes_whole_or_not)
{
	struct fake_pool *pool = fake_sys_pool(1024 * MIB, 0, 2);
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	void *b;

	unit = 1024 * MIB;
	o.hugepage_bytes = 1024 * MIB;
	o.initial_bytes = 2048 * MIB;
	o.max_bytes = 4096 * MIB;
	o.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
	cr_assert_eq(pool->free, 0);
	b = pcpa_alloc(heap, 0, 0);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 1024 * MIB);
	cr_expect_eq(pool->free, 1);
	expect_managed(heap, 1024 * MIB);
	pcpa_free(heap, b);
	cr_expect_eq(pcpa_heap_trim(heap, 1), 0, "less than a page to spare");
	cr_expect_eq(pcpa_heap_trim(heap, 0), 1024 * MIB);
	expect_managed(heap, 0);
	heap_end(heap);
}

Test(trim, base_pages_go_in_whole_granules)
{
	struct pcpa_heap *heap;

	fake_sys_file("/sys/kernel/mm/transparent_hugepage/enabled",
		      "always madvise [never]\n");
	heap = heap_make(8 * MIB, 64 * MIB, 0);
	cr_assert_not_null(blocks[0] = pcpa_alloc(heap, 0, 0));
	cr_expect_eq(pcpa_heap_trim(heap, 0), 6 * MIB);
	pcpa_free(heap, blocks[0]);
	heap_end(heap);
}

/* ---- The reserve ------------------------------------------------------------------------- */

static struct pcpa_heap *reserve_heap(size_t bytes, size_t hugepage_bytes,
				      size_t reserve_pages)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.hugepage_bytes = hugepage_bytes;
	o.initial_bytes = bytes;
	o.max_bytes = 2 * bytes;
	o.reserve_pages = (unsigned)reserve_pages;
	o.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
	return heap;
}

/* Five of eight huge pages are in use; of the others one may go. */
Test(trim, reserve_stays_for_who_may_have_it)
{
	struct pcpa_heap *heap = reserve_heap(8 * HUGE_PAGE, 0, 600);
	size_t used = alloc_all(heap, 9, PCPA_NOGROW, blocks, 5), n;

	cr_assert_eq(used, 5);
	cr_expect_eq(pcpa_heap_trim(heap, 0), HUGE_PAGE);
	cr_expect_eq(heap->env.zones[0].marks.min, 600);
	cr_expect_eq(stats_of(heap, -1).free_pages, 1024);
	n = alloc_all(heap, 0, PCPA_NOGROW, blocks + used, 2000);
	cr_expect_eq(n, 1024 - 600);
	used += n;
	n = alloc_all(heap, 0, PCPA_NOGROW | PCPA_RESERVE, blocks + used, 2000);
	cr_expect_eq(n, 600);
	used += n;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	free_all(heap, blocks, used);
	/* It is at most a quarter of what there is: the last page stays. */
	cr_expect_eq(pcpa_heap_trim(heap, 0), 6 * HUGE_PAGE);
	cr_expect_eq(stats_of(heap, -1).free_pages, 512);
	cr_expect_eq(stats_of(heap, -1).managed_pages, 512);
	expect_managed(heap, HUGE_PAGE);
	heap_end(heap);
}

/* The last of the holds that take the page out finds that it can't be spared:
 * what the others have taken comes back. */
Test(trim, gigantic_page_that_the_reserve_needs_stays)
{
	struct fake_pool *pool = fake_sys_pool(1024 * MIB, 0, 2);
	size_t pages = 1024 * MIB / fake.page_bytes;
	struct pcpa_heap *heap = reserve_heap(2048 * MIB, 1024 * MIB, 1000);
	void *half = pcpa_alloc_contig(heap, pages, pages, PCPA_NOGROW);

	unit = 1024 * MIB;
	cr_assert(half);
	cr_assert_eq(pool->free, 0);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_expect_eq(stats_of(heap, -1).free_pages, pages);
	cr_expect_eq(stats_of(heap, -1).trim_failed, 0);
	expect_managed(heap, 2048 * MIB);
	pcpa_free_contig(heap, half, pages);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 1024 * MIB);
	expect_managed(heap, 1024 * MIB);
	heap_end(heap);
}

/* ---- What follows ------------------------------------------------------------------------ */

Test(trim, numbers_of_the_zone_follow)
{
	struct pcpa_heap *small = heap_make(16 * MIB, 256 * MIB, 0);
	struct pcpa_heap *heap = heap_make(128 * MIB, 256 * MIB, 0);
	const struct pcpi_zone *z = &heap->env.zones[0];

	cr_expect_eq(pcpa_heap_trim(heap, 16 * MIB), 112 * MIB);
	cr_expect_eq(z->marks.min, small->env.zones[0].marks.min);
	cr_expect_eq(z->marks.high, small->env.zones[0].marks.high);
	cr_expect_eq(z->pageset.high_max, small->env.zones[0].pageset.high_max);
	cr_expect_eq(z->pageset.batch, small->env.zones[0].pageset.batch);
	cr_expect_eq(z->depot_limit, small->env.zones[0].depot_limit);
	cr_expect_eq(z->flags & PCPI_ZONE_RECLAIM_ACTIVE, 0);
	heap_end(heap);
	heap_end(small);
}

Test(trim, frees_of_returned_pages_are_refused)
{
	struct pcpa_heap *heap = heap_make(8 * MIB, 64 * MIB, 0);
	size_t n = alloc_all(heap, 0, PCPA_NOGROW, blocks, 2048), i;

	cr_assert_eq(n, 2048);
	free_all(heap, blocks, n);
	cr_assert_eq(pcpa_heap_trim(heap, 0), 8 * MIB);
	for (i = 0; i < n; i++) {
		cr_expect_eq(pcpa_block_order(heap, blocks[i]), -EINVAL);
		pcpa_free(heap, blocks[i]);
	}
	cr_expect_eq(stats_of(heap, -1).bad_frees, n);
	expect_managed(heap, 0);
	heap_end(heap);
}

static struct pcpa_event last;
static unsigned trims_heard;

static void hear(const struct pcpa_event *event, void *arg)
{
	(void)arg;
	if (event->kind != PCPA_EVENT_ARENA_TRIM)
		return;
	last = *event;
	trims_heard++;
}

Test(trim, event_tells_the_pages)
{
	struct pcpa_heap *heap = heap_make(8 * MIB, 64 * MIB, 0);

	cr_assert_eq(pcpa_heap_trace(heap, hear, NULL), 0);
	pcpa_heap_trim(heap, 2 * MIB);
	pcpa_heap_trim(heap, 2 * MIB);
	cr_expect_eq(trims_heard, 1, "nothing is no event");
	cr_expect_eq(last.pages, 6 * MIB / fake.page_bytes);
	cr_expect_eq(last.node, 0);
	heap_end(heap);
}

/* ---- Refusals --------------------------------------------------------------------------- */

Test(trim, refusal_is_kept_and_counted)
{
	struct pcpa_heap *heap = heap_make(32 * MIB, 64 * MIB, 0);

	fake.dontneed_rc = -ENOMEM;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_expect_eq(stats_of(heap, -1).trim_failed, 1);
	expect_managed(heap, 32 * MIB);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NOGROW, blocks, 8192), 8192);
	pcpa_free_bulk(heap, blocks, 8192);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_expect_eq(stats_of(heap, -1).trim_failed, 2);
	fake.dontneed_rc = 0;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 32 * MIB);
	cr_expect_eq(stats_of(heap, -1).trim_failed, 2);
	expect_managed(heap, 0);
	heap_end(heap);
}

/* ---- Many rounds: rows 10 and 12 ------------------------------------------------------------ */

Test(trim, thousand_rounds_beside_a_block_in_use)
{
	struct pcpa_heap *heap = heap_make(0, 64 * MIB, 0);
	void *keep = NULL;

	for (unsigned round = 0; round < 1000; round++) {
		size_t n = 4000 + round % 7 * 500;

		cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, n), n,
			     "round %u", round);
		if (round % 10 == 0) {
			pcpa_free(heap, keep);
			keep = blocks[--n];
		}
		pcpa_free_bulk(heap, blocks, n);
		pcpa_heap_trim(heap, 0);
		cr_assert_eq(managed_bytes(heap), HUGE_PAGE, "round %u", round);
		cr_assert_eq(stats_of(heap, -1).arenas, 1);
	}
	expect_managed(heap, HUGE_PAGE);
	pcpa_free(heap, keep);
	heap_end(heap);
}

static unsigned areas(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	cr_assert(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

/* Every second huge page of a heap goes and comes again. */
static unsigned checkerboard(struct pcpa_heap *heap, unsigned rounds)
{
	unsigned most = 0, before = areas(), now;
	size_t n, i;

	while (rounds-- > 0) {
		n = alloc_all(heap, 9, 0, blocks, 32);
		cr_assert_eq(n, 32);
		for (i = rounds % 2; i < n; i += 2)
			pcpa_free(heap, blocks[i]);
		pcpa_heap_trim(heap, 0);
		now = areas();
		most = now > most ? now : most;
		for (i = (rounds + 1) % 2; i < n; i += 2)
			pcpa_free(heap, blocks[i]);
	}
	return most - before;
}

/* The real kernel: what is given back in the middle makes no areas. */
Test(trim, areas_stay_bounded)
{
	struct pcpa_heap *heap;

	pcpi_sys = &pcpi_sys_linux;
	heap = heap_make(64 * MIB, 64 * MIB, 0);
	watch();
	cr_expect_leq(checkerboard(heap, 50), 2);
	cr_expect_gt(releases, 50);
	heap_end(heap);
}

static uint64_t rss_kib(void)
{
	unsigned long long size, rss;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert(f && fscanf(f, "%llu %llu", &size, &rss) == 2);
	fclose(f);
	return rss * pcpi_sys_page_bytes() >> 10;
}

Test(trim, memory_is_the_kernels_again)
{
	struct pcpa_heap *heap;
	uint64_t before, full;

	pcpi_sys = &pcpi_sys_linux;
	before = rss_kib();
	heap = heap_make(64 * MIB, 128 * MIB, 0);
	full = rss_kib();
	/* Pages of a hugetlb pool are in no RSS. */
	if (full - before >= 60 * 1024) {
		cr_expect_eq(pcpa_heap_trim(heap, 0), 64 * MIB);
		cr_expect_leq(rss_kib(), full - 60 * 1024);
	}
	blocks[0] = pcpa_alloc(heap, 0, PCPA_ZERO);
	cr_assert(blocks[0]);
	pcpa_free(heap, blocks[0]);
	heap_end(heap);
}

/* ---- No areas left -------------------------------------------------------------------------- */

#define MAX_AREAS 70000u

/* Areas of one page each, until the kernel makes no more; false: it has no bound
 * that is near. */
static bool areas_exhaust(char *base, size_t page)
{
	for (size_t i = 1; i < MAX_AREAS; i += 2)
		if (mprotect(base + i * page, page, PROT_READ) != 0)
			return true;
	return false;
}

Test(trim, works_where_no_area_can_be_made)
{
	size_t page = pcpi_sys_linux.page_bytes(), n, i;
	struct pcpa_heap *heap;
	char *base;
	bool full;

	if (IS_SANITIZED)
		cr_skip_test("a sanitizer maps memory meanwhile, and ends without");
	pcpi_sys = &pcpi_sys_linux;
	heap = heap_make(64 * MIB, 64 * MIB, 0);
	n = alloc_all(heap, 9, 0, blocks, 32);
	base = mmap(NULL, MAX_AREAS * page, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert_neq(base, MAP_FAILED);
	full = areas_exhaust(base, page);
	for (i = 0; i < n; i += 2)
		pcpa_free(heap, blocks[i]);
	pcpa_heap_trim(heap, 0);
	cr_expect_eq(stats_of(heap, -1).managed_pages * page, n / 2 * HUGE_PAGE);
	for (i = 1; i < n; i += 2)
		pcpa_free(heap, blocks[i]);
	pcpa_heap_trim(heap, 0);
	cr_expect_eq(stats_of(heap, -1).managed_pages, 0);
	cr_expect_eq(stats_of(heap, -1).trim_failed, 0);
	blocks[0] = pcpa_alloc(heap, 0, 0);
	cr_assert_eq(munmap(base, MAX_AREAS * page), 0);
	pcpa_free(heap, blocks[0]);
	heap_end(heap);
	if (!full)
		cr_skip_test("more areas than this test makes");
}
