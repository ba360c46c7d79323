/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_tick.c - ticks of whole heaps, from outside, with a clock that the test
 * turns: who ticks, how often, what it costs, and that an idle heap ends with
 * nothing cached.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/clock_fixture.h"

#define MAX_BLOCKS 8192u

static void *blocks[MAX_BLOCKS];
static unsigned barriers;
static __thread int my_cpu;

static int barrier_count(void)
{
	barriers++;
	return pcpi_sys_linux.membarrier();
}

static int cpu_said(void)
{
	return my_cpu;
}

static void setup(void)
{
	clock_setup();
	table.membarrier = barrier_count;
	table.cpu = cpu_said;
}

TestSuite(tick, .init = setup);

/* Fills the calling thread's cache by frees; pages that it holds. */
static uint64_t fill(struct pcpa_heap *heap, unsigned order, size_t n)
{
	cr_assert_eq(pcpa_alloc_bulk(heap, order, 0, blocks, n), n);
	pcpa_free_bulk(heap, blocks, n);
	return stats_of(heap, -1).cached_pages;
}

/* Ticks until nothing is held outside the buddy; how many. */
static unsigned ticks_to_rest(struct pcpa_heap *heap, unsigned most)
{
	struct pcpa_stats s;
	unsigned n = 0;

	do {
		tick(heap);
		s = stats_summed(heap);
		cr_assert_leq(++n, most, "%llu cached, %llu in the depot",
			      (unsigned long long)s.cached_pages,
			      (unsigned long long)s.depot_pages);
	} while (s.cached_pages + s.depot_pages > 0);
	return n;
}

/* ---- Idle heaps -------------------------------------------------------------------- */

/* F6's bound and three ticks for each batch << 5 of what is left. */
Test(tick, idle_heap_gives_everything_back)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, 0);

	cr_assert_gt(fill(heap, 0, 4000), 0);
	fill(heap, 2, 300);
	ticks_to_rest(heap, 60);
	cr_expect_gt(stats_of(heap, -1).drains_decay, 0);
	cr_expect_eq(stats_of(heap, -1).drains_sweep, 0);
	expect_all_free(heap);
	heap_end(heap);
}

Test(tick, idle_threads_end_with_nothing_cached)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, PCPA_HEAP_LEGACY);

	fill(heap, 1, 600);
	ticks_to_rest(heap, 60);
	heap_end(heap);
}

static struct pcpa_heap *heap_of_two_nodes(void)
{
	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	return heap_fixed(64 * MIB, 0);
}

Test(tick, pages_of_other_nodes_go_first)
{
	struct pcpa_heap *heap = heap_of_two_nodes();
	uint64_t local, far;
	uint32_t batch;

	/* A cache of this node, one of the other, and an outbox to it. */
	fill(heap, 0, 60);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NODE(1), blocks, 40), 40);
	pcpa_free_bulk(heap, blocks, 40);
	local = stats_of(heap, 0).cached_pages;
	cr_assert_gt(local, 0);
	far = stats_of(heap, 1).cached_pages;
	batch = pcpi_zone_pageset(&heap->env.zones[1]).batch;
	cr_assert_gt(far, 0);
	tick(heap);
	tick(heap);
	cr_expect_eq(stats_of(heap, 1).cached_pages, far);
	tick(heap);
	cr_expect_lt(stats_of(heap, 1).cached_pages, far);
	cr_expect_eq(stats_of(heap, 0).cached_pages, local, "later");
	for (unsigned i = 3; i < 3 * ((far + batch - 1) / batch); i++)
		tick(heap);
	cr_expect_eq(stats_of(heap, 1).cached_pages, 0);
	ticks_to_rest(heap, 60);
	heap_end(heap);
}

/* Its pairs are hits, which don't look; the tick has it look, once. */
Test(tick, thread_that_moved_is_asked_where_it_is)
{
	struct pcpa_heap *heap = heap_of_two_nodes();
	struct pcpa_stats s;
	void *block;

	fill(heap, 0, 60);
	my_cpu = 5;
	for (unsigned i = 0; i < 1000; i++) {
		block = pcpa_alloc(heap, 0, 0);
		cr_assert_eq(pcpa_block_node(heap, block), 0);
		pcpa_free(heap, block);
	}
	tick(heap);
	block = pcpa_alloc(heap, 0, 0);
	cr_expect_eq(pcpa_block_node(heap, block), 1);
	pcpa_free(heap, block);
	cr_expect_eq(stats_of(heap, 0).cached_pages, 0, "left behind");
	s = stats_of(heap, -1);
	block = pcpa_alloc(heap, 0, 0);
	pcpa_free(heap, block);
	cr_expect_eq(stats_of(heap, -1).refills, s.refills);
	cr_expect_eq(stats_of(heap, -1).caches, 2);
	heap_end(heap);
}

/* Whoever stays where it is and only takes is asked, too, and hits again. */
Test(tick, thread_that_stays_may_only_take)
{
	struct pcpa_heap *heap = heap_of_two_nodes();

	fill(heap, 0, 60);
	tick(heap);
	for (unsigned i = 0; i < 3; i++) {
		blocks[i] = pcpa_alloc(heap, 0, 0);
		cr_assert_eq(pcpa_block_node(heap, blocks[i]), 0);
	}
	cr_expect_eq(pcpi_hot_cache(&heap->hot)->claim, PCPI_CLAIM_NONE);
	pcpa_free_bulk(heap, blocks, 3);
	heap_end(heap);
}

/* The first call may be a free. */
Test(tick, thread_that_moved_may_only_free)
{
	struct pcpa_heap *heap = heap_of_two_nodes();

	fill(heap, 0, 60);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 10), 10);
	my_cpu = 5;
	tick(heap);
	pcpa_free_bulk(heap, blocks, 10);
	cr_expect_eq(stats_of(heap, 0).cached_pages, 10, "in the outbox");
	cr_expect_eq(stats_of(heap, -1).used_pages, 0);
	blocks[0] = pcpa_alloc(heap, 0, 0);
	cr_expect_eq(pcpa_block_node(heap, blocks[0]), 1);
	pcpa_free(heap, blocks[0]);
	heap_end(heap);
}

Test(tick, depot_that_rests_goes_back)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, 0);

	fill(heap, 0, 1000);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	cr_assert_gt(stats_of(heap, -1).depot_pages, 0);
	tick(heap);
	tick(heap);
	cr_expect_eq(stats_of(heap, -1).depot_pages, 0);
	heap_end(heap);
}

/* ---- How often, and at what cost ------------------------------------------------------ */

Test(tick, early_tick_is_nothing)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);

	cr_assert_eq(pcpa_heap_tick(heap), 0);
	cr_expect_eq(heap->env.ticks, 0, "a heap begins with a whole second");
	now_ns += SECOND / 2;
	cr_assert_eq(pcpa_heap_tick(heap), 0);
	cr_expect_eq(heap->env.ticks, 0);
	now_ns += SECOND / 2;
	for (unsigned i = 0; i < 5; i++)
		KEEPS_ERRNO(cr_assert_eq(pcpa_heap_tick(heap), 0));
	cr_expect_eq(heap->env.ticks, 1);
	now_ns += 10 * SECOND;
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(pcpa_heap_tick(heap), 0);
	cr_expect_eq(heap->env.ticks, 2, "late is once");
	heap_end(heap);
}

Test(tick, slow_paths_tick_once_a_second)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);

	for (unsigned i = 1; i <= 5; i++) {
		now_ns += SECOND;
		for (unsigned k = 0; k < 100; k++)
			pcpa_free(heap, pcpa_alloc(heap, 5, 0));
		cr_expect_eq(heap->env.ticks, i);
	}
	heap_end(heap);
}

Test(tick, slow_path_waits_for_no_drainer)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);

	now_ns += SECOND;
	pcpi_lock_take(&heap->drain_lock);
	pcpi_heap_tick_poll(heap);
	pcpi_lock_drop(&heap->drain_lock);
	cr_expect_eq(heap->env.ticks, 0, "left to the next call");
	pcpi_heap_tick_poll(heap);
	cr_expect_eq(heap->env.ticks, 1);
	heap_end(heap);
}

Test(tick, barrier_only_where_something_is_claimed)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, 0);
	unsigned n;

	fill(heap, 0, 2000);
	ticks_to_rest(heap, 60);
	barriers = 0;
	for (unsigned i = 0; i < 20; i++)
		tick(heap);
	cr_expect_eq(barriers, 0, "nothing is cached");
	for (unsigned i = 0; i < 20; i++) {
		fill(heap, 0, 10);
		tick(heap);
	}
	cr_expect_eq(barriers, 0, "the cache is in use");
	for (n = 0; stats_of(heap, -1).cached_pages > 0; n++)
		tick(heap);
	cr_expect_leq(barriers, n, "one a tick");
	if (!heap->env.exchange)
		cr_expect_gt(barriers, 0);
	heap_end(heap);
}

Test(tick, bad_heap_is_refused)
{
	cr_expect_eq(pcpa_heap_tick(NULL), -EINVAL);
}

Test(tick, event_tells_what_went)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, 0);
	uint64_t cached = fill(heap, 0, 1000);
	struct pcpa_stats s;

	ticks_to_rest(heap, 60);
	s = stats_of(heap, -1);
	cr_expect_gt(cached, 0);
	cr_expect_eq(s.drains, s.drains_high + s.drains_freer + s.drains_flush +
				       s.drains_sweep + s.drains_decay);
	heap_end(heap);
}

/* ---- Other threads --------------------------------------------------------------------- */

struct sleeper {
	struct pcpa_heap *heap;
	pthread_barrier_t asleep, wake;
};

/* Leaves pages in its cache and waits, as in a system call. */
static void *sleep_full(void *arg)
{
	struct sleeper *s = arg;
	void *own[32];

	cr_assert_eq(pcpa_alloc_bulk(s->heap, 0, 0, own, 32), 32);
	pcpa_free_bulk(s->heap, own, 32);
	pthread_barrier_wait(&s->asleep);
	pthread_barrier_wait(&s->wake);
	pcpa_free(s->heap, pcpa_alloc(s->heap, 0, 0));
	return NULL;
}

static void with_sleeper(unsigned flags, void (*fn)(struct pcpa_heap *))
{
	struct sleeper s = {.heap = heap_fixed(64 * MIB, flags)};
	pthread_t t;

	pthread_barrier_init(&s.asleep, NULL, 2);
	pthread_barrier_init(&s.wake, NULL, 2);
	cr_assert_eq(pthread_create(&t, NULL, sleep_full, &s), 0);
	pthread_barrier_wait(&s.asleep);
	cr_assert_gt(stats_of(s.heap, -1).cached_pages, 0);
	fn(s.heap);
	pthread_barrier_wait(&s.wake);
	pthread_join(t, NULL);
	expect_all_free(s.heap);
	heap_end(s.heap);
}

static void expect_rest(struct pcpa_heap *heap)
{
	ticks_to_rest(heap, 60);
}

Test(tick, sleeping_threads_cache_is_emptied)
{
	with_sleeper(0, expect_rest);
}

static void expect_asked_only(struct pcpa_heap *heap)
{
	uint64_t cached = stats_of(heap, -1).cached_pages;

	for (unsigned i = 0; i < 60; i++)
		tick(heap);
	cr_expect_eq(stats_of(heap, -1).cached_pages, cached);
	cr_expect_eq(barriers, 0);
}

Test(tick, no_ipi_heap_asks_a_sleeping_thread)
{
	with_sleeper(PCPA_HEAP_NO_IPI, expect_asked_only);
}

static void *drain_owed(void *arg)
{
	pcpi_cache_ask(arg);
	return NULL;
}

static void expect_owed_flush(struct pcpa_heap *heap)
{
	struct pcpi_cache *c = pcpi_container_of(heap->caches.next,
						 struct pcpi_cache, registry);

	tick(heap);
	drain_owed(c);
	tick(heap);
	cr_expect_eq(stats_of(heap, -1).cached_pages, 0);
}

Test(tick, flush_that_a_sleeping_thread_owes_is_done)
{
	with_sleeper(0, expect_owed_flush);
}

static uint64_t late_said(void)
{
	static uint64_t now;

	return now += SECOND;
}

/* A sweep that misses its deadline, as the caller is inside. */
static void sweep_missed(struct pcpa_heap *heap, struct pcpi_cache *c)
{
	table.clock_ns = late_said;
	cr_assert(pcpi_cache_enter(c));
	cr_assert_eq(pcpa_heap_drain(heap), -ETIMEDOUT);
	pcpi_cache_leave(c);
	table.clock_ns = pcpi_sys_linux.clock_ns;
}

/* Its lists are in use, an outbox is not, and is due at the third tick. */
Test(tick, flush_that_a_cache_in_use_owes_outlives_its_outbox)
{
	struct pcpa_heap *heap = heap_of_two_nodes();
	struct pcpi_cache *c;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NODE(1), blocks, 10), 10);
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	pcpa_free_bulk(heap, blocks, 10);
	fill(heap, 0, 60);
	c = pcpi_hot_cache(&heap->hot);
	cr_assert_eq(stats_of(heap, 1).cached_pages, 10, "in the outbox");
	tick(heap);
	tick(heap);
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	sweep_missed(heap, c);
	cr_assert(pcpi_cache_is_pending(c));
	tick(heap);
	cr_expect_lt(stats_of(heap, 1).cached_pages, 10);
	cr_expect_gt(stats_of(heap, 0).cached_pages, 1, "in use: not the tick's");
	cr_expect(pcpi_cache_is_pending(c));
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	cr_expect_eq(stats_of(heap, 0).drains_flush, 1);
	cr_expect_eq(c->claim & PCPI_CLAIM_STATE, PCPI_CLAIM_NONE, "paid once");
	heap_end(heap);
}

/* ---- Background ---------------------------------------------------------------------------- */

static int threads_named(const char *name)
{
	char command[128], text[32] = "";
	FILE *f;

	snprintf(command, sizeof(command),
		 "cat /proc/%d/task/*/comm | grep -c '^%s$'", (int)getpid(), name);
	f = popen(command, "r");
	cr_assert(f && fgets(text, sizeof(text), f));
	pclose(f);
	return atoi(text);
}

Test(tick, background_thread_ticks_and_ends_with_its_heap)
{
	struct pcpa_heap *heap;

	pcpi_sys = &pcpi_sys_linux;
	heap = heap_fixed(16 * MIB, PCPA_HEAP_BACKGROUND);
	cr_expect_eq(threads_named("pcpalloc"), 1);
	while (pcpi_load_relaxed(&heap->env.ticks) < 2) /* relaxed: polled */
		usleep(10000);
	heap_end(heap);
	cr_expect_eq(threads_named("pcpalloc"), 0);
}

Test(tick, background_thread_takes_no_signal)
{
	char path[64], line[256];
	struct pcpa_heap *heap;
	unsigned long long blocked = 0;
	FILE *f;

	pcpi_sys = &pcpi_sys_linux;
	heap = heap_fixed(16 * MIB, PCPA_HEAP_BACKGROUND);
	f = popen("for t in /proc/$PPID/task/*; do "
		  "if [ \"$(cat $t/comm)\" = pcpalloc ]; then "
		  "echo $t; fi; done",
		  "r");
	cr_assert(f && fgets(path, sizeof(path), f));
	pclose(f);
	path[strcspn(path, "\n")] = '\0';
	strcat(path, "/status");
	f = fopen(path, "r");
	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(f);
	cr_expect(blocked >> (SIGTERM - 1) & 1, "%llx", blocked);
	cr_expect(blocked >> (SIGPROF - 1) & 1, "%llx", blocked);
	heap_end(heap);
}

static int no_thread(const char *name, void *(*fn)(void *), void *arg,
		     pthread_t *out)
{
	(void)name;
	(void)fn;
	(void)arg;
	(void)out;
	return -EAGAIN;
}

Test(tick, heap_without_its_thread_is_no_heap)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL;
	unsigned long before;

	heap_end(heap_fixed(16 * MIB, 0)); /* what is kept: the topology */
	before = maps_kib();
	table.thread_start = no_thread;
	o.initial_bytes = 16 * MIB;
	o.max_bytes = 32 * MIB;
	o.flags = PCPA_HEAP_BACKGROUND;
	cr_expect_eq(pcpa_heap_create(&o, &heap), -EAGAIN);
	cr_expect_null(heap);
	cr_expect_eq(maps_kib(), before);
}

Test(tick, child_lives_without_background)
{
	struct pcpa_heap *heap = heap_make(4 * MIB, 16 * MIB,
					   PCPA_HEAP_BACKGROUND | PCPA_HEAP_COW);
	void *b = pcpa_alloc(heap, 0, 0);
	int status = -1;
	pid_t pid;

	cr_assert(b);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		now_ns += SECOND;
		if (pcpa_heap_tick(heap) != 0 || heap->env.ticks == 0)
			_exit(1);
		pcpa_free(heap, b);
		_exit(pcpa_heap_destroy(heap) == 0 ? 0 : 2);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "%x", (unsigned)status);
	pcpa_free(heap, b);
	heap_end(heap);
}
