/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_heap.c - a heap of two nodes against a map of the blocks that are out.
 *
 * usage: model_heap [STEPS [SEED]]; exits 0 or 1, and prints the seed.
 *
 *   main --- which worker, which step ---> worker 0 | worker 1 | worker 2
 *     ^                                        |   each with its own caches
 *     +----------------- done -----------------+   and its own (fake) CPU
 *
 * The workers take turns, so that the callers rest after each step and every
 * state can be walked; but what one allocated the others free.  The reference
 * is an array with a byte a page (out or not) and a list of blocks.  After a
 * step:
 *   - what was handed out was not out before, lies in an arena, is aligned, has
 *     the order asked for, and its node obeys the flags;
 *   - a request failed only when no aligned run of pages that aren't out is left
 *     where it may look, and no node that it may grow can grow: so pages in
 *     caches, depots and outboxes count as there to be had;
 *   - a block's contents are as they were written, or zero with PCPA_ZERO;
 *   - refused frees were counted, and no other;
 *   - free + cached + depot + used = managed, used as in the reference, for each
 *     node, and the invariants of zones and caches hold;
 *   - while a node's caches are disabled nothing is in them or in its depots.
 * Contiguous ranges are held to the same: any length, any alignment, out of pages
 * that aren't out, or a failure where there is no such run and no room to grow.
 */
#include <errno.h>
#include <pcpalloc/stats.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "heap_new.h"
#include "list.h"

#define WORKERS 3u
#define NODES 2u
#define MIB ((size_t)1 << 20)
#define NODE_BYTES (4 * MIB)
#define MAX_PAGES 8192u /* of the heap's address space */
#define MAX_BULK 300u
#define MAX_ORDER 9u

struct block {
	char *addr;
	unsigned order;
	uint64_t stamp;
};

static uint64_t seed, state, steps, step_now;
static const char *step_name = "start";

static struct pcpa_heap *heap;
static size_t page;
static unsigned heap_flags;

static uint8_t out[MAX_PAGES]; /* the reference */
static struct block held[MAX_PAGES];
static size_t held_count;
static uint64_t held_pages[NODES], bad_count, failures;
static unsigned depths[NODES]; /* of disables */

static __attribute__((noreturn)) void fail(const char *what, int line)
{
	fprintf(stderr, "model_heap:%d: %s: %s at step %llu, seed %llu\n", line,
		step_name, what, (unsigned long long)step_now,
		(unsigned long long)seed);
	exit(1);
}

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond))                                                   \
			fail(#cond, __LINE__);                                 \
	} while (0)

/* xorshift64* */
static uint64_t random_next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(2685821657736338717);
}

static unsigned below(uint64_t n)
{
	return (unsigned)(random_next() >> 33) % (unsigned)n;
}

/* ---- The machine: two nodes of two CPUs ------------------------------------------ */

static struct pcpi_sys table;
static __thread int my_cpu;

static uint64_t now_ns = UINT64_C(1000000000);

static uint64_t coarse_said(void)
{
	/* relaxed: one thread at a time works, by turns. */
	return pcpi_load_relaxed(&now_ns);
}

static int cpu_said(void)
{
	return my_cpu;
}

/* Long enough for the next sweep to be due whenever it is asked: what can be had
 * must be. */
static uint64_t clock_said(void)
{
	static uint64_t clock_ns;

	return clock_ns += 20000000;
}

static unsigned my_node(void)
{
	return (unsigned)my_cpu / 2;
}

/* ---- Reference --------------------------------------------------------------------- */

static size_t index_of(const char *addr)
{
	return (size_t)(addr - heap->hot.base) / page;
}

static bool run_is_there(size_t at, unsigned order)
{
	return memchr(out + at, 1, (size_t)1 << order) == NULL;
}

struct search {
	unsigned node, order;
};

/* 1: the arena has an aligned run. */
static int arena_search(const struct pcpa_arena_info *a, void *arg)
{
	const struct search *s = arg;
	size_t at = index_of(a->base), end = at + a->bytes / page;

	if ((unsigned)a->node != s->node)
		return 0;
	for (; at < end; at += (size_t)1 << s->order)
		if (run_is_there(at, s->order))
			return 1;
	return 0;
}

static bool node_has(unsigned node, unsigned order, unsigned flags)
{
	struct search s = {node, order};

	if (!(flags & PCPA_NOGROW) &&
	    heap->env.zones[node].managed_pages * page < NODE_BYTES)
		return true;
	return pcpa_for_each_arena(heap, arena_search, &s) == 1;
}

static unsigned node_named(unsigned flags)
{
	return flags >> 16 ? (flags >> 16) - 1 : my_node();
}

static void expect_no_more(unsigned order, unsigned flags)
{
	unsigned node = node_named(flags);

	/* The others rest: no lock is taken. */
	MUST(errno == ENOMEM);
	failures++;
	if (flags & PCPA_NOWAIT)
		return;
	MUST(!node_has(node, order, flags));
	MUST((flags & PCPA_THISNODE) || !node_has(!node, order, flags));
}

static int arena_covers(const struct pcpa_arena_info *a, void *arg)
{
	const char *addr = arg;

	return addr >= (char *)a->base && addr < (char *)a->base + a->bytes;
}

/* ---- Contents ------------------------------------------------------------------------ */

static uint64_t mix(uint64_t stamp, size_t i)
{
	return (stamp + i) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The first and the last word of each page. */
static void pages_write(char *addr, size_t pages, uint64_t stamp)
{
	size_t words = page / sizeof(uint64_t);

	for (size_t i = 0; i < pages; i++) {
		uint64_t *p = (uint64_t *)(void *)(addr + i * page);

		p[0] = mix(stamp, i);
		p[words - 1] = ~p[0];
	}
}

static void pages_check(const char *addr, size_t pages, uint64_t stamp)
{
	size_t words = page / sizeof(uint64_t);

	for (size_t i = 0; i < pages; i++) {
		const uint64_t *p =
			(const uint64_t *)(const void *)(addr + i * page);

		MUST(p[0] == mix(stamp, i));
		MUST(p[words - 1] == ~p[0]);
	}
}

static void block_write(const struct block *b)
{
	pages_write(b->addr, (size_t)1 << b->order, b->stamp);
}

static void block_check(const struct block *b)
{
	pages_check(b->addr, (size_t)1 << b->order, b->stamp);
}

static bool is_zero(const char *addr, size_t bytes)
{
	return addr[0] == 0 && memcmp(addr, addr + 1, bytes - 1) == 0;
}

/* ---- Blocks in and out ---------------------------------------------------------------- */

static void node_check(unsigned node, unsigned order, unsigned flags)
{
	unsigned named = node_named(flags);

	if (node == named)
		return;
	/* Without a name a hit of the cache may be of where the caller was. */
	if (flags & PCPA_THISNODE)
		fail("block of another node", __LINE__);
	MUST(!(flags >> 16) || flags & PCPA_NOWAIT ||
		     !node_has(named, order, flags));
}

static void block_came(char *addr, unsigned order, unsigned flags)
{
	size_t at = index_of(addr), pages = (size_t)1 << order;
	int node = pcpa_block_node(heap, addr);

	MUST(addr >= heap->hot.base && at + pages <= MAX_PAGES);
	MUST(((uintptr_t)addr & ((page << order) - 1)) == 0);
	MUST(run_is_there(at, order));
	MUST(pcpa_for_each_arena(heap, arena_covers, addr) == 1);
	MUST(pcpa_block_order(heap, addr) == (int)order);
	MUST(node == 0 || node == 1);
	if (flags & PCPA_ZERO)
		MUST(is_zero(addr, page << order));
	node_check((unsigned)node, order, flags);
	memset(out + at, 1, pages);
	held_pages[node] += pages;
	held[held_count] = (struct block){addr, order, random_next()};
	block_write(&held[held_count++]);
}

/* Forgets a random block and returns its address, to be freed. */
static char *block_goes(size_t i)
{
	struct block b = held[i];
	size_t pages = (size_t)1 << b.order;

	block_check(&b);
	memset(out + index_of(b.addr), 0, pages);
	held_pages[pcpa_block_node(heap, b.addr)] -= pages;
	held[i] = held[--held_count];
	return b.addr;
}

/* ---- Steps --------------------------------------------------------------------------------- */

static void *batch[MAX_BULK];

static unsigned flags_random(void)
{
	static const unsigned some[] = {0, 0, 0, 0, PCPA_ZERO, PCPA_NOGROW,
					PCPA_THISNODE, PCPA_RESERVE, PCPA_NOWAIT,
					PCPA_NOWAIT | PCPA_THISNODE};
	unsigned flags = some[below(10)];

	return below(3) ? flags : flags | PCPA_NODE(below(NODES));
}

/* Mostly the orders that are cached. */
static unsigned order_random(void)
{
	return below(4) ? below(4) : below(MAX_ORDER + 1);
}

/* THISNODE alone is checked by the caller's node, which a hit doesn't ask, so
 * that it never is one. */
static void step_alloc(void)
{
	unsigned order = order_random(), flags = flags_random();
	char *addr = pcpa_alloc(heap, order, flags);

	if (addr)
		block_came(addr, order, flags);
	else
		expect_no_more(order, flags);
}

static size_t bulk_size(unsigned order)
{
	return 1 + below((MAX_BULK >> order) + 1);
}

static void step_alloc_bulk(void)
{
	unsigned order = order_random(), flags = flags_random();
	size_t n = pcpi_min(bulk_size(order), (size_t)MAX_BULK), got, i;

	errno = 0;
	got = pcpa_alloc_bulk(heap, order, flags, batch, n);
	MUST(got <= n && (errno == 0) == (got == n));
	/* Where the last came from tells nothing of the first: without a name. */
	for (i = 0; i < got; i++)
		block_came(batch[i], order,
			   flags & PCPA_THISNODE ? flags : flags & PCPA_ZERO);
	errno = ENOMEM;
	if (got < n)
		expect_no_more(order, flags);
}

static void step_refill(void)
{
	unsigned order = below(3), flags = flags_random() & PCPA_ZERO;
	size_t n = 1 + below(60), i, prefix;
	bool was[60];

	for (i = 0; i < n; i++) {
		was[i] = below(2) && held_count > i;
		batch[i] = was[i] ? held[i].addr : NULL;
	}
	errno = 0;
	prefix = pcpa_refill(heap, order, flags, batch, n);
	MUST(prefix <= n && (errno == 0) == (prefix == n));
	for (i = 0; i < n; i++) {
		if (was[i])
			MUST(batch[i] == held[i].addr);
		else if (i < prefix)
			block_came(batch[i], order, flags);
		else
			MUST(i > prefix || !batch[i]);
	}
	errno = ENOMEM;
	if (prefix < n)
		expect_no_more(order, flags);
}

static void step_free(void)
{
	size_t i = held_count ? below(held_count) : 0;
	unsigned order = held[i].order;
	char *addr;

	if (held_count == 0)
		return;
	addr = block_goes(i);
	errno = 4711;
	if (below(2))
		pcpa_free(heap, addr);
	else
		pcpa_free_sized(heap, addr, order);
	MUST(errno == 4711);
}

/* Blocks of one order, or all that come. */
static size_t batch_pick(int order)
{
	size_t want = 1 + below(MAX_BULK), n = 0, i = held_count;

	while (i-- > 0 && n < want)
		if (order < 0 || held[i].order == (unsigned)order)
			batch[n++] = block_goes(i);
	return n;
}

static void step_free_bulk(void)
{
	size_t n = batch_pick(-1), i;

	for (i = 0; i < n; i++)
		if (below(50) == 0 && n < MAX_BULK) {
			batch[n++] = batch[i];
			batch[i] = NULL;
		}
	pcpa_free_bulk(heap, batch, n);
}

static void step_free_bulk_sized(void)
{
	unsigned order = order_random();

	pcpa_free_bulk_sized(heap, order, batch, batch_pick((int)order));
}

/* Interior, misaligned or foreign: refused and counted. */
static void step_free_bad(void)
{
	size_t i = held_count ? below(held_count) : 0;
	char *bad = (char *)&held;

	if (heap_flags & PCPA_HEAP_CHECKS)
		return;
	if (held_count && held[i].order > 0 && below(2))
		bad = held[i].addr + page * (1 + below((1u << held[i].order) - 1));
	else if (held_count && below(2))
		bad = held[i].addr + 1 + below(page - 1);
	pcpa_free(heap, bad);
	bad_count++;
}

#include "heap_ranges.h"

static void step_flush(void)
{
	MUST(pcpa_thread_flush(heap) == 0);
}

static void step_drain(void)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	MUST(pcpa_heap_drain(heap) == 0);
	MUST(pcpa_stats_read(heap, -1, &s) == 0);
	MUST(s.cached_pages == 0 && s.depot_pages == 0);
}

/* Adds the huge pages without a page in use. */
static int unused_count(const struct pcpa_arena_info *a, void *arg)
{
	size_t at = index_of(a->base), end = at + a->bytes / page;

	MUST(a->bytes % a->page_bytes == 0);
	for (; at < end; at += (size_t)1 << MAX_ORDER)
		*(unsigned *)arg += run_is_there(at, MAX_ORDER);
	return 0;
}

/* What is left is to be kept, or in use. */
static void step_trim(void)
{
	struct pcpa_stats before = PCPA_STATS_INIT, after = PCPA_STATS_INIT;
	size_t huge = page << MAX_ORDER, keep = below(5) * MIB, given;
	unsigned unused = 0;

	MUST(pcpa_stats_read(heap, -1, &before) == 0);
	given = pcpa_heap_trim(heap, keep);
	MUST(pcpa_stats_read(heap, -1, &after) == 0);
	MUST(given == (before.managed_pages - after.managed_pages) * page);
	MUST(given == 0 || after.managed_pages * page >= keep);
	MUST(after.trim_failed == 0);
	pcpa_for_each_arena(heap, unused_count, &unused);
	MUST(unused == 0 || after.managed_pages * page < keep + huge);
	pcpi_space_check(&heap->space);
}

/* Some ticks; early ones, too. */
static void step_tick(void)
{
	for (unsigned n = below(6); n > 0; n--) {
		/* relaxed: as above. */
		pcpi_store_relaxed(&now_ns, now_ns + below(1500) * UINT64_C(1000000));
		MUST(pcpa_heap_tick(heap) == 0);
	}
}

static void step_move(void)
{
	my_cpu = (int)below(2 * NODES);
}

/* Everything of one order, so that the heap gets empty at times. */
static void step_free_most(void)
{
	while (held_count > 20)
		pcpa_free(heap, block_goes(held_count - 1));
}

static void step_end(void)
{
}

static const struct step {
	const char *name;
	unsigned weight;
	void (*run)(void);
} all_steps[] = {
	{"alloc", 30, step_alloc},
	{"alloc_bulk", 10, step_alloc_bulk},
	{"refill", 5, step_refill},
	{"free", 30, step_free},
	{"free_bulk", 7, step_free_bulk},
	{"free_bulk_sized", 5, step_free_bulk_sized},
	{"free_bad", 4, step_free_bad},
	{"contig", 5, step_contig},
	{"free_contig", 4, step_free_contig},
	{"disable", 1, step_disable},
	{"enable", 2, step_enable},
	{"flush", 2, step_flush},
	{"drain", 1, step_drain},
	{"trim", 2, step_trim},
	{"tick", 3, step_tick},
	{"move", 4, step_move},
	{"free_most", 1, step_free_most},
	{"end", 1, step_end}, /* the worker ends, another takes its place */
};

/* The heap fills up for 100 steps, and empties for as many. */
static bool is_out_of_phase(const struct step *step)
{
	return step_now / 100 % 2 == 0 &&
	       (step->run == step_free_bulk || step->run == step_free_most ||
		step->run == step_free_bulk_sized);
}

static const struct step *step_random(void)
{
	unsigned i = 0, total = 0, at;

	for (i = 0; i < sizeof(all_steps) / sizeof(all_steps[0]); i++)
		total += all_steps[i].weight;
	at = below(total);
	for (i = 0; at >= all_steps[i].weight; i++)
		at -= all_steps[i].weight;
	return &all_steps[i];
}

/* ---- Walks ------------------------------------------------------------------------------- */

static void node_walk(unsigned node)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	MUST(pcpa_stats_read(heap, (int)node, &s) == 0);
	MUST(s.managed_pages == s.free_pages + s.cached_pages + s.depot_pages +
					s.used_pages);
	MUST(s.used_pages == held_pages[node]);
	MUST(depths[node] == 0 || s.cached_pages + s.depot_pages == 0);
	MUST(s.managed_pages * page <= NODE_BYTES);
	MUST(pcpi_zone_check(&heap->env.zones[node]));
}

static void walk(void)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	struct pcpi_cache *c;

	for (unsigned node = 0; node < NODES; node++)
		node_walk(node);
	pcpi_lock_take(&heap->threads_lock);
	pcpi_list_each(c, &heap->caches, registry)
		MUST(pcpi_cache_check(c));
	pcpi_lock_drop(&heap->threads_lock);
	MUST(pcpa_stats_read(heap, -1, &s) == 0);
	MUST(s.used_blocks == held_count + range_count);
	MUST(s.alloc_total - s.free_total == held_count + range_count);
	MUST(s.bad_frees == bad_count);
	MUST(s.failed_total == failures);
}

/* ---- Workers ------------------------------------------------------------------------------- */

static struct worker {
	pthread_t thread;
	sem_t go, done;
	const struct step *step;
} workers[WORKERS];

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct step *step;

	do {
		sem_wait(&w->go);
		step = w->step; /* the next may be set once done is posted */
		step->run();
		sem_post(&w->done);
	} while (step->run != step_end);
	return NULL;
}

static void worker_start(struct worker *w)
{
	sem_init(&w->go, 0, 0);
	sem_init(&w->done, 0, 0);
	MUST(pthread_create(&w->thread, NULL, work, w) == 0);
}

static void worker_run(struct worker *w, const struct step *step)
{
	w->step = step;
	step_name = step->name;
	sem_post(&w->go);
	sem_wait(&w->done);
	if (step->run == step_end)
		MUST(pthread_join(w->thread, NULL) == 0);
}

static void heap_begin(void)
{
	MUST(heap_new(NULL, 2 * MIB, NODE_BYTES, heap_flags, &heap) == 0);
	page = pcpa_heap_page_bytes(heap);
	MUST(heap->space.bytes / page <= MAX_PAGES);
	MUST(heap->nr_zones == NODES);
	MUST(pcpa_heap_max_order(heap) >= MAX_ORDER);
	bad_count = failures = 0;
}

static void heap_finish(void)
{
	const struct step *end =
		&all_steps[sizeof(all_steps) / sizeof(all_steps[0]) - 1];

	for (unsigned i = 0; i < WORKERS; i++)
		worker_run(&workers[i], end);
	while (held_count > 0)
		pcpa_free(heap, block_goes(held_count - 1));
	while (range_count > 0)
		step_free_contig();
	while (depths[0] + depths[1] > 0)
		step_enable();
	step_drain();
	walk();
	MUST(pcpa_heap_destroy(heap) == 0);
}

static void life(uint64_t n)
{
	heap_begin();
	for (unsigned i = 0; i < WORKERS; i++)
		worker_start(&workers[i]);
	while (n-- > 0) {
		struct worker *w = &workers[below(WORKERS)];
		const struct step *step;

		do
			step = step_random();
		while (is_out_of_phase(step));
		worker_run(w, step);
		if (step->run == step_end)
			worker_start(w);
		walk();
		step_now++;
	}
	heap_finish();
}

int main(int argc, char **argv)
{
	static const unsigned flags[] = {0, PCPA_HEAP_LEGACY, PCPA_HEAP_CHECKS};
	unsigned i = 0;

	steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 20211;
	printf("model_heap: %llu steps, seed %llu\n", (unsigned long long)steps,
	       (unsigned long long)seed);
	fflush(stdout);
	state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:2", 1);
	table = pcpi_sys_linux;
	table.cpu = cpu_said;
	table.coarse_ns = coarse_said;
	table.clock_ns = clock_said;
	pcpi_sys = &table;
	while (step_now < steps) {
		heap_flags = flags[i++ % 3];
		life(pcpi_min(steps - step_now, UINT64_C(500)));
	}
	return 0;
}
