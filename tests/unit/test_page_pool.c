/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool.c - get and put by the rules of the kernel's page_pool, each
 * with exact numbers; owners; what is refused.
 */
#include "../support/pool_fixture.h"

#define MOST 20000u

static void *bufs[MOST];
static struct pcpa_heap *heap;

static void setup(void)
{
	pool_sys_install();
	heap = pool_heap(128 * MIB, 0, 0);
}

TestSuite(page_pool, .init = setup);

/* ---- Get --------------------------------------------------------------------- */

Test(page_pool, fresh_pool_takes_64_by_one_call)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	expect_stats(pool, 0);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 0);
	get_all(pool, bufs, 1);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .hold = 64,
		     .inflight = 64, .cached = 63);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 64);
	get_all(pool, bufs + 1, 63);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 63,
		     .hold = 64, .inflight = 64);
	get_all(pool, bufs + 64, 1);
	expect_stats(pool, .alloc_empty = 2, .alloc_slow = 2, .alloc_fast = 63,
		     .hold = 128, .inflight = 128, .cached = 63);
	for (unsigned i = 0; i < 65; i++)
		pcpa_pool_put(pool, bufs[i]);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, cache_hands_out_what_was_put_last)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	void *again[4];

	get_all(pool, bufs, 4);
	for (unsigned i = 0; i < 4; i++)
		pcpa_pool_put(pool, bufs[i]);
	get_all(pool, again, 4);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(again[i], bufs[3 - i]);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 3 + 4,
		     .recycle_cached = 4);
	for (unsigned i = 0; i < 4; i++)
		pcpa_pool_put(pool, again[i]);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, cache_takes_128_and_the_ring_what_is_more)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 192);
	for (unsigned i = 0; i < 192; i++)
		pcpa_pool_put(pool, bufs[i]);
	expect_stats(pool, .alloc_empty = 3, .alloc_slow = 3, .alloc_fast = 189,
		     .recycle_cached = 128, .recycle_cache_full = 64,
		     .recycle_ring = 64, .hold = 192, .inflight = 192,
		     .cached = 128);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, ring_refills_64_and_the_last_of_them_is_handed_out)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	void *first;

	get_all(pool, bufs, 128);
	put_elsewhere(pool, bufs, 128);
	expect_stats(pool, .alloc_empty = 2, .alloc_slow = 2, .alloc_fast = 126,
		     .recycle_ring = 128);
	get_all(pool, &first, 1);
	cr_expect_eq(first, bufs[63]);
	expect_stats(pool, .alloc_empty = 2, .alloc_slow = 2, .alloc_fast = 126,
		     .alloc_refill = 1, .recycle_ring = 128, .hold = 128,
		     .inflight = 128, .cached = 63);
	pcpa_pool_put(pool, first);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, ring_with_fewer_gives_what_it_has)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	void *first;

	get_all(pool, bufs, 64);
	put_elsewhere(pool, bufs, 10);
	get_all(pool, &first, 1);
	cr_expect_eq(first, bufs[9]);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 63,
		     .alloc_refill = 1, .recycle_ring = 10, .hold = 64,
		     .inflight = 64, .cached = 9);
	pcpa_pool_put(pool, first);
	for (unsigned i = 10; i < 64; i++)
		pcpa_pool_put(pool, bufs[i]);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, full_ring_lets_go)
{
	struct pcpa_pool *pool = pool_with(heap, .ring_slots = 64);

	get_all(pool, bufs, 128);
	put_elsewhere(pool, bufs, 70);
	expect_stats(pool, .alloc_empty = 2, .alloc_slow = 2, .alloc_fast = 126,
		     .recycle_ring = 64, .recycle_ring_full = 6, .hold = 128,
		     .release = 6, .inflight = 122);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 122);
	put_elsewhere(pool, bufs + 70, 58);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, higher_orders_come_one_by_one)
{
	struct pcpa_pool *pool = pool_with(heap, .order = 2);

	get_all(pool, bufs, 3);
	expect_stats(pool, .alloc_empty = 3, .alloc_slow_ho = 3, .hold = 3,
		     .inflight = 3);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(pcpa_block_order(heap, (char *)bufs[i] -
					      (uintptr_t)bufs[i] % (4 * PAGE)), 2);
		/* Anywhere in it. */
		pcpa_pool_put(pool, (char *)bufs[i] + 2 * PAGE);
	}
	get_all(pool, bufs, 3);
	expect_stats(pool, .alloc_empty = 3, .alloc_slow_ho = 3, .alloc_fast = 3,
		     .recycle_cached = 3);
	put_elsewhere(pool, bufs, 3);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, shortage_is_the_heaps_and_changes_nothing)
{
	struct pcpa_pool *pool = pool_with(heap, .ring_slots = 16384);
	struct pcpa_stats s = stats_of(heap, -1);
	size_t n = 0, all = s.managed_pages;
	void **out = calloc(all + 1, sizeof(*out));

	while (n < all && (out[n] = pcpa_pool_get(pool)))
		n++;
	cr_expect_eq(n, all);
	errno = 0;
	cr_expect_null(pcpa_pool_get(pool));
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq((size_t)pool_stats(pool).inflight, all);
	KEEPS_ERRNO(pcpa_pool_put(pool, out[0]));
	KEEPS_ERRNO(out[0] = pcpa_pool_get(pool));
	cr_expect_not_null(out[0]);
	put_elsewhere(pool, out, n);
	free(out);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, bulk_get_counts_as_so_many_gets)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	cr_expect_eq(pcpa_pool_get_bulk(pool, bufs, 200), 200);
	expect_stats(pool, .alloc_empty = 4, .alloc_slow = 4, .alloc_fast = 196,
		     .hold = 256, .inflight = 256, .cached = 56);
	qsort(bufs, 200, sizeof(*bufs), compare_pointers);
	for (unsigned i = 1; i < 200; i++)
		cr_expect_neq(bufs[i], bufs[i - 1]);
	cr_expect_eq(pcpa_pool_get_bulk(pool, bufs + 200, 0), 0);
	pcpa_pool_put_bulk(heap, bufs, 200);
	pool_and_heap_end(pool, heap);
}

/* ---- Bulk puts ------------------------------------------------------------------ */

Test(page_pool, bulk_put_counts_a_full_ring_once)
{
	struct pcpa_pool *pool = pool_with(heap, .ring_slots = 64);

	get_all(pool, bufs, 192);
	put_bulk_elsewhere(heap, bufs, 100);
	expect_stats(pool, .alloc_empty = 3, .alloc_slow = 3, .alloc_fast = 189,
		     .recycle_ring = 64, .recycle_ring_full = 1, .hold = 192,
		     .release = 36, .inflight = 156);
	put_bulk_elsewhere(heap, bufs + 100, 92);
	expect_stats(pool, .alloc_empty = 3, .alloc_slow = 3, .alloc_fast = 189,
		     .recycle_ring = 64, .recycle_ring_full = 2);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, bulk_put_of_the_owner_fills_its_cache_first)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 192);
	pcpa_pool_put_bulk(heap, bufs, 192);
	expect_stats(pool, .alloc_empty = 3, .alloc_slow = 3, .alloc_fast = 189,
		     .recycle_cached = 128, .recycle_cache_full = 64,
		     .recycle_ring = 64, .hold = 192, .inflight = 192,
		     .cached = 128);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, bulk_put_sorts_by_pool)
{
	struct pcpa_pool *pool[3];
	void *mixed[100];
	unsigned n = 0;

	pool[0] = pool_with(heap, .ring_slots = 16);
	pool[1] = pool_with(heap, .order = 1);
	pool[2] = pool_with(heap, .flags = PCPA_POOL_NO_COLOUR);
	for (unsigned i = 0; i < 100; i++)
		mixed[i] = i % 10 == 9 ? NULL : pcpa_pool_get(pool[i % 3]);
	/* The second base page of a block of two. */
	mixed[1] = (char *)mixed[1] + PAGE;
	put_bulk_elsewhere(heap, mixed, 100);
	cr_expect_eq(pool_stats(pool[0]).recycle_ring, 16);
	cr_expect_eq(pool_stats(pool[0]).recycle_ring_full, 1);
	for (unsigned p = 0; p < 3; p++) {
		struct pcpa_pool_stats s = pool_stats(pool[p]);

		n += (unsigned)s.recycle_ring + s.release;
		cr_expect_eq(s.bad_puts, 0);
		pool_end(pool[p]);
	}
	cr_expect_eq(n, 90);
	heap_end(heap);
}

Test(page_pool, bulk_put_refuses_what_is_no_buffer)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	void *block = pcpa_alloc(heap, 1, 0), *mixed[5];
	int local;

	mixed[0] = &local;
	mixed[1] = pcpa_pool_get(pool);
	mixed[2] = block;
	mixed[3] = (char *)block + PAGE;
	mixed[4] = pcpa_pool_get(pool);
	pcpa_pool_put_bulk(heap, mixed, 5);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1,
		     .recycle_cached = 2);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 3);
	cr_expect_eq(pool_said_count("no buffer of a pool"), 1);
	pcpa_free(heap, block);
	pool_and_heap_end(pool, heap);
}

/* ---- References and the reserve ---------------------------------------------------- */

Test(page_pool, page_with_a_reference_leaves_and_is_not_used_again)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 64);
	cr_expect_eq(pcpa_pool_ref(heap, bufs[0]), 0);
	pcpa_pool_put(pool, bufs[0]);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 63,
		     .recycle_released_ref = 1, .hold = 64, .release = 1,
		     .inflight = 63);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 64, "not free yet");
	/* It is no buffer of the pool any more. */
	pcpa_pool_put(pool, bufs[0]);
	cr_expect_eq(pool_stats(pool).bad_puts, 1);
	cr_expect_eq(pcpa_pool_unref(heap, bufs[0]), 0);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 63);
	cr_expect_eq(pcpa_pool_unref(heap, bufs[0]), -EINVAL);
	pcpa_pool_put_bulk(heap, bufs + 1, 63);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, page_whose_reference_is_gone_is_used_again)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 1);
	cr_expect_eq(pcpa_pool_ref(heap, bufs[0]), 0);
	cr_expect_eq(pcpa_pool_unref(heap, bufs[0]), 0);
	cr_expect_eq(pcpa_pool_unref(heap, bufs[0]), -EINVAL);
	pcpa_pool_put(pool, bufs[0]);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1,
		     .recycle_cached = 1);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, reference_outlives_the_pool)
{
	struct pcpa_pool *pool = pool_with(heap, .order = 1);

	get_all(pool, bufs, 1);
	pcpa_pool_ref(heap, (char *)bufs[0] + PAGE);
	pcpa_pool_put(pool, bufs[0]);
	pool_end(pool);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 1);
	cr_expect_eq(pcpa_pool_unref(heap, (char *)bufs[0] + PAGE), 0);
	heap_end(heap);
}

Test(page_pool, bulk_put_lets_a_referenced_page_go)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	void *kept;

	get_all(pool, bufs, 64);
	kept = bufs[5];
	pcpa_pool_ref(heap, kept);
	put_bulk_elsewhere(heap, bufs, 64);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 63,
		     .recycle_ring = 63, .recycle_released_ref = 1, .hold = 64,
		     .release = 1, .inflight = 63);
	pool_end(pool);
	cr_expect_eq(pcpa_pool_unref(heap, kept), 0);
	heap_end(heap);
}

Test(page_pool, what_is_no_buffer_has_no_references)
{
	struct pcpa_pool *pool;
	void *block = pcpa_alloc(heap, 0, 0);

	cr_expect_eq(pcpa_pool_ref(heap, block), -EINVAL, "no pool yet");
	pool = pool_with(heap, 0);
	cr_expect_eq(pcpa_pool_ref(heap, block), -EINVAL);
	cr_expect_eq(pcpa_pool_unref(heap, block), -EINVAL);
	cr_expect_eq(pcpa_pool_ref(heap, &pool), -EINVAL);
	cr_expect_eq(pcpa_pool_ref(NULL, block), -EINVAL);
	pcpa_free(heap, block);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, page_of_the_reserve_is_not_kept)
{
	struct pcpa_heap *tight = pool_heap(4 * MIB, 0, 100);
	struct pcpa_pool *pool = pool_with(tight, .alloc_flags = PCPA_RESERVE);
	size_t n = 0;

	while ((bufs[n] = pcpa_pool_get(pool)))
		n++;
	cr_assert_eq(n, stats_of(tight, -1).managed_pages);
	cr_expect_eq(pool_stats(pool).recycle_released_ref, 0);
	put_elsewhere(pool, bufs, n);
	cr_expect_eq(pool_stats(pool).recycle_released_ref, 100);
	cr_expect_eq(pool_stats(pool).recycle_ring, n - 100);
	pool_and_heap_end(pool, tight);
}

/* ---- What is not the pool's ---------------------------------------------------------- */

Test(page_pool, put_of_what_is_not_the_pools_is_counted_and_said_once)
{
	struct pcpa_pool *pool = pool_with(heap, 0), *other = pool_with(heap, 0);
	void *block = pcpa_alloc(heap, 0, 0), *theirs = pcpa_pool_get(other);
	int local;

	get_all(pool, bufs, 1);
	pcpa_pool_put(pool, &local);
	pcpa_pool_put(pool, block);
	pcpa_pool_put(pool, theirs);
	put_elsewhere(pool, &block, 1);
	pcpa_pool_put(pool, NULL);
	pcpa_pool_put(NULL, NULL);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .bad_puts = 4);
	expect_stats(other, .alloc_empty = 1, .alloc_slow = 1);
	cr_expect_eq(pool_said_count("refused"), 1, "%s", pool_said);
	cr_expect_eq(pool_said_count("not of the pool's heap"), 1);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
	pcpa_pool_put(other, theirs);
	pcpa_pool_put(pool, bufs[0]);
	pcpa_free(heap, block);
	pool_end(other);
	pool_and_heap_end(pool, heap);
}

/* ---- Owners -------------------------------------------------------------------------------- */

struct visit {
	struct pcpa_pool *pool;
	void *buf;
	size_t n;
	int error, attach, frag_error, detach, resize;
};

static void *visit_get(void *arg)
{
	struct visit *v = arg;

	if (v->attach)
		cr_assert_eq(pcpa_pool_attach(v->pool), 0);
	errno = 0;
	v->buf = pcpa_pool_get(v->pool);
	v->error = errno;
	if (!v->buf) {
		v->n = pcpa_pool_get_bulk(v->pool, bufs, 1);
		errno = 0;
		pcpa_pool_get_frag(v->pool, 64, NULL);
		v->frag_error = errno;
		v->detach = pcpa_pool_detach(v->pool);
		v->resize = pcpa_pool_resize(v->pool, 10);
	}
	return NULL;
}

Test(page_pool, second_thread_is_refused_the_owners_side)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	struct visit v = { .pool = pool };

	get_all(pool, bufs, 1);
	thread_run(visit_get, &v);
	cr_expect_null(v.buf);
	cr_expect_eq(v.error, EPERM);
	cr_expect_eq(v.n, 0);
	cr_expect_eq(v.frag_error, EPERM);
	cr_expect_eq(v.detach, -EPERM);
	cr_expect_eq(v.resize, -EPERM);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1);
	pcpa_pool_put(pool, bufs[0]);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, detached_pool_is_the_next_ones_who_gets)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	struct visit v = { .pool = pool };

	get_all(pool, bufs, 2);
	pcpa_pool_put(pool, bufs[0]);
	cr_expect_eq(pool_stats(pool).cached, 63);
	cr_expect_eq(pcpa_pool_detach(pool), 0);
	cr_expect_eq(pool_stats(pool).cached, 0);
	cr_expect_eq(pool_stats(pool).inflight, 64);
	thread_run(visit_get, &v);
	cr_expect_eq(v.buf, bufs[0], "the last that was put");
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1,
		     .recycle_cached = 1, .alloc_refill = 1, .hold = 64,
		     .inflight = 64, .cached = 62);
	/* No more ours. */
	pcpa_pool_put(pool, bufs[1]);
	cr_expect_eq(pool_stats(pool).recycle_ring, 1);
	cr_expect_null(pcpa_pool_get(pool));
	cr_expect_eq(errno, EPERM);
	cr_expect_eq(pcpa_pool_attach(pool), 0, "it has ended");
	pcpa_pool_put(pool, v.buf);
	cr_expect_eq(pool_stats(pool).recycle_cached, 2);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, detach_lets_go_what_has_no_room_in_the_ring)
{
	struct pcpa_pool *pool = pool_with(heap, .ring_slots = 20);

	get_all(pool, bufs, 1);
	put_elsewhere(pool, bufs, 1);
	cr_expect_eq(pcpa_pool_detach(pool), 0);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .recycle_ring = 1,
		     .hold = 64, .release = 44, .inflight = 20);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, attach_takes_over)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	struct visit v = { .pool = pool, .attach = 1 };

	get_all(pool, bufs, 1);
	thread_run(visit_get, &v);
	cr_expect_not_null(v.buf);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1);
	put_elsewhere(pool, &v.buf, 1);
	cr_expect_eq(pcpa_pool_attach(pool), 0);
	pcpa_pool_put(pool, bufs[0]);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, resize_keeps_what_has_room)
{
	struct pcpa_pool *pool = pool_with(heap, .ring_slots = 100);
	unsigned long before;

	get_all(pool, bufs, 128);
	put_elsewhere(pool, bufs, 90);
	cr_expect_eq(pcpa_pool_resize(pool, 50), 0);
	cr_expect_eq(info_of(pool).ring_slots, 50);
	cr_expect_eq(pool_stats(pool).release, 40);
	cr_expect_eq(pcpa_pool_resize(pool, 100000), 0);
	cr_expect_eq(info_of(pool).ring_slots, 16384);
	cr_expect_eq(pool_stats(pool).release, 40);
	put_elsewhere(pool, bufs + 90, 38);
	expect_stats(pool, .alloc_empty = 2, .alloc_slow = 2, .alloc_fast = 126,
		     .recycle_ring = 128);
	before = maps_kib();
	cr_expect_eq(pcpa_pool_resize(pool, 16384), 0);
	cr_expect_eq(maps_kib(), before);
	cr_expect_eq(pcpa_pool_resize(NULL, 1), -EINVAL);
	pool_and_heap_end(pool, heap);
}

Test(page_pool, calls_without_a_pool_say_so)
{
	struct pcpa_pool_stats s = PCPA_POOL_STATS_INIT;
	struct pcpa_pool_info info = PCPA_POOL_INFO_INIT;

	errno = 0;
	cr_expect_null(pcpa_pool_get(NULL));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(pcpa_pool_get_bulk(NULL, bufs, 3), 0);
	cr_expect_null(pcpa_pool_get_frag(NULL, 3, NULL));
	cr_expect_eq(pcpa_pool_attach(NULL), -EINVAL);
	cr_expect_eq(pcpa_pool_detach(NULL), -EINVAL);
	cr_expect_eq(pcpa_pool_destroy(NULL), 0);
	cr_expect_eq(pcpa_pool_stats_read(NULL, &s), -EINVAL);
	cr_expect_eq(pcpa_pool_info_read(NULL, &info), -EINVAL);
	pcpa_pool_put_bulk(NULL, NULL, 0);
	heap_end(heap);
}

Test(page_pool, statistics_of_another_version_are_filled_as_far_as_they_go)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	struct pcpa_pool_stats s;

	get_all(pool, bufs, 2);
	memset(&s, 0xff, sizeof(s));
	s.struct_size = offsetof(struct pcpa_pool_stats, alloc_slow);
	cr_expect_eq(pcpa_pool_stats_read(pool, &s), 0);
	cr_expect_eq(s.struct_size, offsetof(struct pcpa_pool_stats, alloc_slow));
	cr_expect_eq(s.alloc_fast, 1);
	cr_expect_eq(s.alloc_slow, UINT64_MAX);
	s.struct_size = 3;
	cr_expect_eq(pcpa_pool_stats_read(pool, &s), -EINVAL);
	put_elsewhere(pool, bufs, 2);
	pool_and_heap_end(pool, heap);
}

/* Free pages of the pool are as their last user left them. */
Test(page_pool, nothing_is_written_into_free_pages)
{
	struct pcpa_pool *pool = pool_with(heap, .flags = PCPA_POOL_NO_COLOUR,
					   .ring_slots = 100);

	get_all(pool, bufs, 256);
	for (unsigned i = 0; i < 256; i++)
		memset(bufs[i], (int)i, PAGE);
	put_elsewhere(pool, bufs, 120);
	for (unsigned i = 120; i < 256; i++)
		pcpa_pool_put(pool, bufs[i]);
	cr_expect_eq(pcpa_pool_detach(pool), 0);
	for (unsigned i = 0; i < 256; i++)
		for (unsigned b = 0; b < PAGE; b++)
			cr_assert_eq(((uint8_t *)bufs[i])[b], i);
	pool_and_heap_end(pool, heap);
}
