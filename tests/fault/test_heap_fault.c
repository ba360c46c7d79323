/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_heap_fault.c - each system call of a heap's life fails once.
 *
 * A life is create, first blocks (a cache, perhaps an arena), growth by one
 * bulk call, a second node, frees, drain, trim and destroy, seen through the public
 * API on the fake machine.  Whatever fails, each call succeeds or says so, the
 * states sum up, and afterwards nothing is mapped or populated.  Two
 * exceptions: the page of the calling thread's record outlives its heaps, and a
 * range that the kernel refuses to unmap in destroy stays, with what is told by
 * it, for nobody is left who could try again.
 */
#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"

/* More calls than any life makes. */
#define MAX_CALLS 1000u

static void *blocks[2000];

static void install(bool hugetlb, unsigned fail_call)
{
	fake_sys_install();
	if (hugetlb)
		fake_sys_pool(2 * MIB, 0, 4);
	fake.fail_call = fail_call;
}

static unsigned heap_flags;

static int create(size_t initial, struct pcpa_heap **heap)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.flags = heap_flags;

	o.initial_bytes = initial;
	o.max_bytes = 16 * MIB;
	return pcpa_heap_create(&o, heap);
}

/* What is refused stays, is counted, and goes at the second try. */
static void trim_heap(struct pcpa_heap *heap, unsigned fail_call)
{
	uint64_t managed = stats_of(heap, -1).managed_pages;
	size_t given = pcpa_heap_trim(heap, 0);
	struct pcpa_stats s = stats_summed(heap);

	cr_expect_eq(given / fake.page_bytes + s.managed_pages, managed,
		     "call %u: %zu bytes", fail_call, given);
	cr_expect_eq(s.trim_failed > 0, s.managed_pages > 0, "call %u",
		     fail_call);
	cr_expect_eq(fake.populated_bytes, s.managed_pages * fake.page_bytes);
	pcpa_heap_trim(heap, 0);
	cr_expect_eq(stats_summed(heap).managed_pages, 0, "call %u", fail_call);
	blocks[0] = pcpa_alloc(heap, 0, 0);
	pcpa_free(heap, blocks[0]);
}

static int agree(enum pcpa_arena_change change, const struct pcpa_arena_info *arena,
		 void *arg)
{
	int64_t *bytes = arg;

	*bytes += change == PCPA_ARENA_ADD ? (int64_t)arena->bytes
					   : -(int64_t)arena->bytes;
	return 0;
}

/* Of shared heaps; what it was told is always what is managed. */
static int64_t told;

static void expect_told(struct pcpa_heap *heap, unsigned fail_call)
{
	if (heap_flags & PCPA_HEAP_SHARED)
		cr_expect_eq((uint64_t)told,
			     stats_of(heap, -1).managed_pages * fake.page_bytes,
			     "call %u", fail_call);
}

/* One failure may cost a call its success, but not the next one's. */
static void use_heap(struct pcpa_heap *heap, unsigned fail_call)
{
	void *one = pcpa_alloc(heap, 0, 0), *high;
	size_t n;

	n = pcpa_alloc_bulk(heap, 0, 0, blocks, 1500);
	high = pcpa_alloc(heap, 9, 0);
	cr_expect((one != NULL) + (n == 1500) + (high != NULL) >= 2,
		  "call %u: more than one call failed", fail_call);
	stats_summed(heap);
	cr_expect_eq(stats_of(heap, -1).used_blocks,
		     (one != NULL) + n + (high != NULL));
	pcpa_free(heap, one);
	pcpa_free(heap, high);
	pcpa_free_bulk(heap, blocks, n);
	cr_expect_eq(stats_summed(heap).used_blocks, 0);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
	cr_expect_eq(pcpa_heap_drain(heap), 0);
	cr_expect_eq(pcpa_thread_flush(heap), 0);
	expect_told(heap, fail_call);
	trim_heap(heap, fail_call);
	expect_told(heap, fail_call);
}

static void expect_nothing(unsigned fail_call, uint64_t free_pages,
			   unsigned long before)
{
	cr_expect_eq(fake_sys_mapped(), 0, "call %u: %u left", fail_call,
		     fake_sys_mapped());
	cr_expect_eq(fake_sys_open_files(), 0, "call %u", fail_call);
	cr_expect_eq(fake.populated_bytes, 0, "call %u", fail_call);
	cr_expect_eq(fake.pools[0].free, free_pages, "call %u", fail_call);
	cr_expect_eq(maps_kib(), before, "call %u", fail_call);
}

/* A space that could not be unmapped keeps its range and its own memory. */
static void expect_one_range(unsigned fail_call)
{
	cr_expect_geq(fake_sys_mapped(), 1, "call %u", fail_call);
	cr_expect_leq(fake_sys_mapped(), 3, "call %u", fail_call);
	for (unsigned i = 0; i < FAKE_RANGES; i++)
		if (fake.ranges[i].base)
			pcpi_sys_linux.unmap(fake.ranges[i].base,
					     fake.ranges[i].bytes);
}

/* Returns whether the Nth call came at all. */
static bool live(bool hugetlb, size_t initial, unsigned fail_call)
{
	struct pcpa_heap *heap = NULL;
	unsigned long before = maps_kib();
	unsigned destroy_from = MAX_CALLS;
	uint64_t free_pages;
	int rc;

	install(hugetlb, fail_call);
	free_pages = fake.pools[0].free;
	rc = create(initial, &heap);
	cr_expect(rc == 0 || rc == -ENOMEM, "call %u: %d", fail_call, rc);
	cr_expect(rc == 0 || !heap);
	told = 0;
	if (rc == 0) {
		if (heap_flags & PCPA_HEAP_SHARED)
			cr_expect_eq(pcpa_heap_notify(heap, agree, &told), 0);
		use_heap(heap, fail_call);
		destroy_from = fake.calls;
		rc = pcpa_heap_destroy(heap);
		cr_expect_eq(rc, 0, "call %u: destroy %d", fail_call, rc);
		cr_expect_eq(told, 0, "call %u", fail_call);
	}
	if (fail_call > destroy_from && fail_call <= fake.calls)
		expect_one_range(fail_call);
	else
		expect_nothing(fail_call, free_pages, before);
	return fake.calls >= fail_call;
}

/* The topology and the thread's record are there before the first count. */
static void warm_up(void)
{
	struct pcpa_heap *heap = heap_make(2 * MIB, 16 * MIB, 0);

	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	heap_end(heap);
}

static void fail_each_call(bool hugetlb, size_t initial)
{
	unsigned n = 1;

	warm_up();
	live(hugetlb, initial, 0);
	while (live(hugetlb, initial, n) && n < MAX_CALLS)
		n++;
	cr_expect_gt(n, 20, "the calls of a life: %u", n);
	cr_expect_lt(n, MAX_CALLS);
}

Test(heap_fault, nth_call_fails_with_hugetlb_leaves_nothing)
{
	fail_each_call(true, 2 * MIB);
}

Test(heap_fault, nth_call_fails_with_transparent_pages_leaves_nothing)
{
	fail_each_call(false, 2 * MIB);
}

Test(heap_fault, nth_call_fails_growing_from_nothing_leaves_nothing)
{
	fail_each_call(false, 0);
}

Test(heap_fault, nth_call_fails_with_shared_memory_leaves_nothing)
{
	heap_flags = PCPA_HEAP_SHARED;
	fail_each_call(true, 2 * MIB);
	fail_each_call(false, 0);
}

/* The thread's record can't be had: its calls work without a cache. */
Test(heap_fault, thread_without_a_record_is_served_directly)
{
	struct pcpa_heap *heap = NULL;
	unsigned calls;

	install(false, 0);
	cr_assert_eq(create(2 * MIB, &heap), 0);
	calls = fake.calls;
	fake.fail_call = calls + 1;
	blocks[0] = pcpa_alloc(heap, 0, 0);
	cr_assert(blocks[0]);
	cr_expect_gt(fake.calls, calls);
	cr_expect_eq(stats_summed(heap).caches, 0);
	pcpa_free(heap, blocks[0]);
	cr_expect_eq(stats_summed(heap).caches, 1, "tried again");
	heap_end(heap);
}

Test(heap_fault, cache_that_cannot_be_mapped_is_tried_again)
{
	struct pcpa_heap *heap = NULL;

	warm_up();
	install(false, 0);
	cr_assert_eq(create(2 * MIB, &heap), 0);
	fake.fail_call = fake.calls + 1;
	blocks[0] = pcpa_alloc(heap, 1, 0);
	cr_assert(blocks[0]);
	cr_expect_eq(stats_summed(heap).caches, 0);
	blocks[1] = pcpa_alloc(heap, 1, 0);
	cr_expect_eq(stats_summed(heap).caches, 1);
	pcpa_free_bulk(heap, blocks, 2);
	heap_end(heap);
	cr_expect_eq(fake_sys_mapped(), 0);
}

/* Whatever is refused all the time. */
Test(heap_fault, growth_refused_for_good_is_enomem)
{
	struct pcpa_heap *heap = NULL;
	size_t n;

	warm_up();
	install(false, 0);
	cr_assert_eq(create(2 * MIB, &heap), 0);
	fake.populate_rc = -ENOMEM;
	n = alloc_all(heap, 0, 0, blocks, 2000);
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(n, 2 * MIB / pcpa_heap_page_bytes(heap));
	fake.populate_rc = 0;
	blocks[n] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n], "and served once it is granted");
	pcpa_free_bulk(heap, blocks, n + 1);
	heap_end(heap);
	cr_expect_eq(fake_sys_mapped(), 0);
}
