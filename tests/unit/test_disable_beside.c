/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_disable_beside.c - what comes while caches are being disabled: enables of
 * others, forks, threads that lower the bounds.
 *
 * The clock's hook is called in the middle of a disable.  It acts where the depth
 * is raised and no lock is held, as another thread would while the caller waits
 * for owners.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "../support/disable_fixture.h"

static uint64_t now_ns;
static unsigned hooks = 1; /* that acted; 0: armed */

TestSuite(disable_beside, .init = setup, .fini = teardown);

static void expect_off(void)
{
	fill();
	expect_empty();
}

static uint64_t late_clock(void)
{
	return now_ns += UINT64_C(10000000);
}

/* Whether the hook is to act now, which it does once. */
static bool is_midway(uint32_t depth)
{
	if (hooks > 0 || heap->env.zones[0].disable_depth < depth ||
	    !pcpi_lock_try(&heap->drain_lock))
		return false;
	pcpi_lock_drop(&heap->drain_lock);
	hooks++;
	return true;
}

/* ---- Whose depth an enable ends ------------------------------------------------ */

/* What another thread's enables say in the middle of a disable: its depth is
 * raised, it holds no lock and hasn't returned. */
static struct pcpi_zone *midway_zone;
static unsigned midway_ends; /* enables that have something to end */
static unsigned midway_at;   /* its depth: those that are done, and one */

static void enables_midway(void)
{
	struct pcpi_zone *zone = &heap->env.zones[0];

	if (!is_midway(midway_at))
		return;
	for (unsigned i = 0; i < midway_ends; i++)
		cr_expect_eq(pcpi_heap_enable(heap, midway_zone), 0);
	if (midway_ends + 1 == midway_at)
		cr_expect_eq(pcpi_heap_enable(heap, midway_zone), -EINVAL);
	cr_expect(pcpi_zone_is_disabled(zone));
}

static uint64_t clock_of_enables(void)
{
	enables_midway();
	return system_before->clock_ns();
}

/* The same where it will be late. */
static uint64_t late_clock_of_enables(void)
{
	enables_midway();
	return late_clock();
}

static int disable_beside_enables(unsigned done, unsigned ends, bool late)
{
	int err;

	midway_ends = ends;
	midway_at = done + 1;
	hooks = 0;
	table.clock_ns = late ? late_clock_of_enables : clock_of_enables;
	if (late)
		cr_assert(pcpi_cache_enter(mine));
	err = pcpa_cache_disable(heap, NODE);
	if (late)
		pcpi_cache_leave(mine);
	table.clock_ns = system_before->clock_ns;
	cr_expect_eq(hooks, 1, "it came by");
	return err;
}

static void expect_on(void)
{
	cr_expect_eq(pcpa_cache_enable(heap, NODE), -EINVAL);
	cr_expect_eq(pcpa_cache_enable(heap, -1), -EINVAL);
	fill();
	cr_expect_gt(stats_of(heap, -1).cached_pages, 0);
	cr_expect_gt(stats_of(heap, -1).depot_pages, 0);
}

static void enable_ends_no_disable_under_way(struct pcpi_zone *zone)
{
	midway_zone = zone;
	fill();
	cr_expect_eq(disable_beside_enables(0, 0, false), 0);
	expect_off();
	cr_expect_eq(pcpa_cache_enable(heap, NODE), 0);
	expect_on();
}

Test(disable_beside, enable_of_the_node_ends_no_disable_under_way)
{
	enable_ends_no_disable_under_way(&heap->env.zones[0]);
}

Test(disable_beside, enable_of_all_ends_no_disable_under_way)
{
	enable_ends_no_disable_under_way(NULL);
}

Test(disable_beside, enable_ends_no_disable_under_way_without_interruption)
{
	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_NO_IPI));
	enable_ends_no_disable_under_way(NULL);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
}

Test(disable_beside, enable_ends_the_completed_one_beside_another)
{
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	cr_expect_eq(disable_beside_enables(1, 1, false), 0);
	expect_off();
	cr_expect_eq(pcpa_cache_enable(heap, NODE), 0);
	expect_on();
}

Test(disable_beside, failed_one_takes_back_its_own_depth_only)
{
	cr_assert_eq(pcpa_cache_disable(heap, NODE), 0);
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	cr_expect_eq(disable_beside_enables(2, 1, true), -ETIMEDOUT);
	expect_off();
	cr_expect_eq(pcpa_cache_enable(heap, NODE), 0);
	expect_on();
	cr_expect_eq(disable_beside_enables(0, 0, true), -ETIMEDOUT);
	expect_on();
}

/* ---- Forks ---------------------------------------------------------------------- */

static pthread_barrier_t meet;

/* In the thread that disables: the other forks meanwhile. */
static void fork_midway(void)
{
	if (!is_midway(midway_at))
		return;
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
}

static uint64_t clock_of_fork(void)
{
	fork_midway();
	return system_before->clock_ns();
}

static void *disabler(void *arg)
{
	(void)arg;
	cr_expect_eq(pcpa_cache_disable(heap, NODE), 0);
	return NULL;
}

/* What the child finds, as an exit code; the line tells where. */
static int child_finds(unsigned completed)
{
	size_t n;

	pcpi_sys = system_before;
	while (completed-- > 0) {
		if (!pcpi_zone_is_disabled(&heap->env.zones[0]) ||
		    pcpa_cache_enable(heap, NODE) != 0)
			return 1;
	}
	if (pcpa_cache_enable(heap, NODE) != -EINVAL)
		return 2;
	n = alloc_all(heap, 0, 0, blocks, 100);
	free_all(heap, blocks, n);
	if (stats_of(heap, -1).cached_pages == 0)
		return 3;
	if (pcpa_thread_flush(heap) != 0 || stats_of(heap, -1).depot_pages == 0)
		return 4;
	if (pcpa_cache_disable(heap, NODE) != 0 ||
	    pcpa_cache_enable(heap, NODE) != 0)
		return 5;
	return 0;
}

/* Nobody in the child ends what a thread of the parent has begun. */
static void fork_beside_a_disable(unsigned completed, unsigned flags)
{
	pthread_t thread;
	int status;
	pid_t pid;

	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_COW | flags));
	for (unsigned i = 0; i < completed; i++)
		cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	midway_at = completed + 1;
	hooks = 0;
	table.clock_ns = clock_of_fork;
	cr_assert_eq(pthread_barrier_init(&meet, NULL, 2), 0);
	cr_assert_eq(pthread_create(&thread, NULL, disabler, NULL), 0);
	pthread_barrier_wait(&meet);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(child_finds(completed));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 0, "child_finds() says %d",
		     WEXITSTATUS(status));
	pcpa_thread_flush(heap); /* answers, without interruption */
	pthread_barrier_wait(&meet);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&meet);
	for (unsigned i = 0; i <= completed; i++)
		cr_expect_eq(pcpa_cache_enable(heap, NODE), 0);
	table.clock_ns = system_before->clock_ns;
	expect_on();
	cr_assert_eq(pcpa_thread_flush(heap), 0);
}

Test(disable_beside, fork_beside_a_disable_leaves_the_childs_caches_on)
{
	fork_beside_a_disable(0, 0);
}

Test(disable_beside, fork_beside_a_disable_keeps_the_completed_ones)
{
	fork_beside_a_disable(2, 0);
}

Test(disable_beside, fork_beside_a_disable_without_interruption)
{
	fork_beside_a_disable(0, PCPA_HEAP_NO_IPI);
}

/* ---- Bounds that fell meanwhile --------------------------------------------------- */

#define COMERS 40u

static void *comer(void *arg)
{
	(void)arg;
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	return NULL;
}

static pthread_t comers[COMERS];

static void comers_come(void)
{
	for (unsigned i = 0; i < COMERS; i++)
		cr_assert_eq(pthread_create(&comers[i], NULL, comer, NULL), 0);
	pthread_barrier_wait(&meet);
}

/* The zone's bound is below what this thread's cache has grown to, and the cache
 * keeps to it from its owner's next call on, also if that is a free, which
 * would hit. */
static void expect_bound_kept(void)
{
	uint32_t bound = pcpi_zone_pageset(&heap->env.zones[0]).high_max;

	cr_assert_gt(bound, 0);
	cr_assert_lt(bound, mine->high, "the bound fell");
	pcpa_free(heap, blocks[0]);
	cr_expect_leq(mine->high, bound, "%u above %u", mine->high, bound);
	pthread_barrier_wait(&meet);
	for (unsigned i = 0; i < COMERS; i++)
		cr_assert_eq(pthread_join(comers[i], NULL), 0);
	pthread_barrier_destroy(&meet);
}

/* This thread's cache is as large as it may be. */
static void grow_mine(void)
{
	cr_assert_eq(pthread_barrier_init(&meet, NULL, COMERS + 1), 0);
	blocks[0] = pcpa_alloc(heap, 0, 0);
	cr_assert(blocks[0]);
	mine->high = pcpi_zone_pageset(&heap->env.zones[0]).high_max;
}

Test(disable_beside, bounds_that_fell_meanwhile_hold_after_the_enable)
{
	grow_mine();
	cr_assert_eq(pcpa_cache_disable(heap, NODE), 0);
	comers_come();
	cr_assert_eq(pcpa_cache_enable(heap, NODE), 0);
	expect_bound_kept();
}

static uint64_t clock_of_comers(void)
{
	if (is_midway(1))
		comers_come();
	return late_clock();
}

static struct pcpi_cache *other_cache(void)
{
	struct pcpi_cache *c;

	pcpi_list_each(c, &heap->caches, registry)
		if (c != mine)
			return c;
	return NULL;
}

static pthread_barrier_t sit;

static void *sitter(void *arg)
{
	(void)arg;
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	pthread_barrier_wait(&sit);
	pthread_barrier_wait(&sit);
	return NULL;
}

/* Another thread is inside its cache; this one's was emptied. */
Test(disable_beside, bounds_that_fell_meanwhile_hold_after_a_failure)
{
	struct pcpi_cache *late;
	pthread_t thread;

	cr_assert_eq(pthread_barrier_init(&sit, NULL, 2), 0);
	cr_assert_eq(pthread_create(&thread, NULL, sitter, NULL), 0);
	pthread_barrier_wait(&sit);
	late = other_cache();
	cr_assert(late && pcpi_cache_enter(late));
	grow_mine();
	hooks = 0;
	table.clock_ns = clock_of_comers;
	cr_expect_eq(pcpa_cache_disable(heap, NODE), -ETIMEDOUT);
	table.clock_ns = system_before->clock_ns;
	pcpi_cache_leave(late);
	expect_bound_kept();
	pthread_barrier_wait(&sit);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&sit);
}
