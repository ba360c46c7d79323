/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_end.c - destroying pools whose pages are out, what is told of
 * those that wait, and forks.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/heap.h"
#include "../support/pool_fixture.h"

static struct pcpa_heap *heap;
static void *bufs[8192];

static void setup(void)
{
	pool_sys_install();
	heap = pool_heap(64 * MIB, 0, 0);
}

TestSuite(page_pool_end, .init = setup);

static unsigned pools_left(void)
{
	return heap->pools.count;
}

Test(page_pool_end, pool_at_rest_is_gone_at_once)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	unsigned long before;

	/* Once, for what a first pool and a first thread leave. */
	get_all(pool, bufs, 1);
	put_elsewhere(pool, bufs, 1);
	pool_end(pool);
	before = maps_kib();
	pool = pool_with(heap, 0);
	get_all(pool, bufs, 300);
	put_elsewhere(pool, bufs, 150);
	for (unsigned i = 150; i < 300; i++)
		pcpa_pool_put(pool, bufs[i]);
	pool_end(pool);
	cr_expect_eq(pools_left(), 0);
	cr_expect_eq(maps_kib(), before);
	heap_end(heap);
}

Test(page_pool_end, destroy_returns_what_is_out_and_the_last_put_ends_it)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 100);
	put_elsewhere(pool, bufs, 30);
	cr_expect_eq(pcpa_pool_destroy(pool), 70);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 70);
	cr_expect_eq(pcpa_heap_destroy(heap), -EBUSY);
	/* The former owner's puts go to the heap, too. */
	for (unsigned i = 30; i < 60; i++)
		pcpa_pool_put(pool, bufs[i]);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 40);
	put_bulk_elsewhere(heap, bufs + 60, 39);
	cr_expect_eq(pools_left(), 1);
	put_elsewhere(pool, bufs + 99, 1);
	cr_expect_eq(pools_left(), 0);
	heap_end(heap);
}

Test(page_pool_end, bulk_put_of_all_that_is_out_ends_it)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	struct pcpa_pool *other = pool_with(heap, 0);

	for (unsigned i = 0; i < 200; i++)
		bufs[i] = pcpa_pool_get(i % 3 ? pool : other);
	cr_expect_eq(pcpa_pool_destroy(pool), 133);
	cr_expect_eq(pcpa_pool_destroy(other), 67);
	pcpa_pool_put_bulk(heap, bufs, 200);
	cr_expect_eq(pools_left(), 0);
	heap_end(heap);
}

Test(page_pool_end, heap_is_busy_while_it_has_a_pool)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	cr_expect_eq(pcpa_heap_destroy(heap), -EBUSY);
	pool_and_heap_end(pool, heap);
}

Test(page_pool_end, each_user_destroys_and_the_last_one_does)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	pcpa_pool_use(pool);
	pcpa_pool_use(pool);
	get_all(pool, bufs, 3);
	cr_expect_eq(pcpa_pool_destroy(pool), -EBUSY);
	cr_expect_eq(pcpa_pool_destroy(pool), -EBUSY);
	get_all(pool, bufs + 3, 1);
	cr_expect_eq(pcpa_pool_destroy(pool), 4);
	put_elsewhere(pool, bufs, 4);
	cr_expect_eq(pools_left(), 0);
	heap_end(heap);
}

Test(page_pool_end, counters_that_run_over_meanwhile_do_no_harm)
{
	struct pcpa_pool *pool = pool_with(heap, .ring_slots = 1);
	uint64_t near = UINT32_C(0xffffff00);

	pool->count_out.word = near << 32 | (near + 1);
	get_all(pool, bufs, 640);
	cr_expect_eq(pool_stats(pool).inflight, 640);
	cr_expect_eq(pool_stats(pool).hold, (uint32_t)(near + 640));
	put_elsewhere(pool, bufs, 600);
	cr_expect_eq(pool_stats(pool).release, (uint32_t)(near + 599));
	cr_expect_eq(pool_stats(pool).inflight, 41);
	cr_expect_eq(pcpa_pool_destroy(pool), 40);
	put_elsewhere(pool, bufs + 600, 40);
	cr_expect_eq(pools_left(), 0);
	heap_end(heap);
}

/* A shutdown that waits for 4032 pages, which nobody gives back for hours. */
Test(page_pool_end, stalled_shutdown_is_told_once_a_minute)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	unsigned minute;

	get_all(pool, bufs, 4032);
	cr_expect_eq(pcpa_pool_destroy(pool), 4032);
	pool_now_ns += 59 * SECOND;
	cr_expect_eq(pcpa_heap_tick(heap), 0);
	cr_expect_eq(pool_said_len, 0, "%s", pool_said);
	pool_now_ns += 1 * SECOND;
	cr_expect_eq(pcpa_heap_tick(heap), 0);
	cr_expect_eq(pool_said_count("destroyed 60 s ago, still waits for 4032 "
				     "pages that are out (took 4032, gave back 0)"),
		     1, "%s", pool_said);
	for (minute = 2; minute <= 120; minute++) {
		pool_now_ns += 30 * SECOND;
		cr_expect_eq(pcpa_heap_tick(heap), 0);
		cr_expect_eq(pool_said_count("\n"), minute - 1);
		pool_now_ns += 30 * SECOND;
		cr_expect_eq(pcpa_heap_tick(heap), 0);
		cr_expect_eq(pool_said_count("\n"), minute);
		if (minute == 60)
			break;
	}
	cr_expect_eq(pool_said_count("destroyed 3600 s ago"), 1);
	/* A put tells, too, before it counts. */
	pool_now_ns += 60 * SECOND;
	pcpa_pool_put(pool, bufs[0]);
	cr_expect_eq(pool_said_count("destroyed 3660 s ago, still waits for 4032"),
		     1);
	put_elsewhere(pool, bufs + 1, 4031);
	cr_expect_eq(pools_left(), 0);
	pool_now_ns += 600 * SECOND;
	minute = pool_said_count("\n");
	cr_expect_eq(pcpa_heap_tick(heap), 0);
	cr_expect_eq(pool_said_count("\n"), minute);
	heap_end(heap);
}

Test(page_pool_end, pool_in_use_is_never_overdue)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 1);
	pool_now_ns += 3600 * SECOND;
	cr_expect_eq(pcpa_heap_tick(heap), 0);
	put_elsewhere(pool, bufs, 1);
	cr_expect_eq(pool_said_len, 0);
	pool_and_heap_end(pool, heap);
}

Test(page_pool_end, silent_heap_says_nothing)
{
	struct pcpa_heap *quiet = heap_fixed(8 * MIB, 0);
	struct pcpa_pool *pool = pool_with(quiet, 0);

	get_all(pool, bufs, 1);
	cr_expect_eq(pcpa_pool_destroy(pool), 1);
	pool_now_ns += 3600 * SECOND;
	cr_expect_eq(pcpa_heap_tick(quiet), 0);
	pcpa_pool_put(pool, &quiet);
	put_elsewhere(pool, bufs, 1);
	cr_expect_eq(pool_said_len, 0);
	heap_end(quiet);
	heap_end(heap);
}

Test(page_pool_end, numbers_are_used_again_and_there_are_4095)
{
	static struct pcpa_pool *pools[4096];
	struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;
	unsigned n = 0;

	o.ring_slots = 1;
	while (n < 4096 && pcpa_pool_create(heap, &o, &pools[n]) == 0)
		n++;
	cr_expect_eq(n, 4095);
	cr_expect_eq(pcpa_pool_create(heap, &o, &pools[4095]), -ENOSPC);
	pool_end(pools[17]);
	cr_expect_eq(pcpa_pool_create(heap, &o, &pools[17]), 0);
	get_all(pools[17], bufs, 1);
	get_all(pools[4094], bufs + 1, 1);
	pcpa_pool_put_bulk(heap, bufs, 2);
	cr_expect_eq(pool_stats(pools[17]).recycle_cached, 1);
	cr_expect_eq(pool_stats(pools[4094]).recycle_cached, 1);
	for (unsigned i = 0; i < n; i++)
		pool_end(pools[i]);
	heap_end(heap);
}

/* ---- Forks -------------------------------------------------------------------- */

static int child_status(pid_t child)
{
	int status = 0;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "status 0x%x", status);
	return WEXITSTATUS(status);
}

static int child_without(struct pcpa_pool *pool)
{
	struct pcpa_pool *more;

	errno = 0;
	if (pcpa_pool_get(pool) || errno != ENODEV)
		return 1;
	pcpa_pool_put(pool, bufs[0]);
	pcpa_pool_put_bulk(heap, bufs, 10);
	if (pool_stats(pool).recycle_cached + pool_stats(pool).recycle_ring)
		return 2;
	if (pcpa_pool_detach(pool) != -ENODEV ||
	    pcpa_pool_attach(pool) != -ENODEV ||
	    pcpa_pool_destroy(pool) != -ENODEV ||
	    pcpa_pool_create(heap, NULL, &more) != -ENODEV ||
	    pcpa_pool_ref(heap, bufs[0]) != -EINVAL)
		return 3;
	return 0;
}

Test(page_pool_end, child_of_a_fork_is_refused)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	pid_t child;

	get_all(pool, bufs, 10);
	child = fork();
	if (child == 0)
		_exit(child_without(pool));
	cr_expect_eq(child_status(child), 0);
	pcpa_pool_put_bulk(heap, bufs, 10);
	pool_and_heap_end(pool, heap);
}

static int child_with(struct pcpa_heap *cow, struct pcpa_pool *pool)
{
	for (unsigned i = 0; i < 10; i++)
		pcpa_pool_put(pool, bufs[i]);
	if (pool_stats(pool).recycle_cached != 10)
		return 1;
	if (pcpa_pool_get(pool) != bufs[9])
		return 2;
	pcpa_pool_put(pool, bufs[9]);
	if (pcpa_pool_destroy(pool) != 0 || pcpa_heap_destroy(cow) != 0)
		return 3;
	return 0;
}

Test(page_pool_end, child_with_a_copy_has_the_pool)
{
	struct pcpa_heap *cow = heap_fixed(16 * MIB, PCPA_HEAP_COW);
	struct pcpa_pool *pool = pool_with(cow, 0);
	pid_t child;

	get_all(pool, bufs, 10);
	child = fork();
	if (child == 0)
		_exit(child_with(cow, pool));
	cr_expect_eq(child_status(child), 0);
	pcpa_pool_put_bulk(cow, bufs, 10);
	pool_and_heap_end(pool, cow);
	heap_end(heap);
}
