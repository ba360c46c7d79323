/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_local.c - what one thread does with its own blocks.
 *
 * Owns: the loops of pair, bulk, burst, parallel (each side of it) and churn.
 * Each loop is compiled once per allocator with the operations inlined, and is
 * entered once a chunk.
 *
 * Concurrency: a lane belongs to one thread.  Cost of measuring: one reading
 * of the counter per chunk, below half a percent.
 */
#include "lane.h"

#include <string.h>

#include "tsc.h"

enum {
	CHUNK_NS = 4000,
	REPETITION_NS = 1000000,
	WARM_NS = 100000,
	PLAN_SAMPLES = 16,
	PLAN_NS = 50000000,
	SETTLE_NS = 50000000,
	/* Sizes wander in random walks, and caches grow behind them. */
	CHURN_SETTLE_NS = 500000000,
};

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* ---- The loops ---- */

#if OPS_VALUE
#define LANE_OPS(l) struct ops copy = (l)->ops, *o = &copy
#else
#define LANE_OPS(l) struct ops *o = &(l)->ops
#endif

static NOINLINE void pair_run(struct bench_lane *l, size_t iters)
{
	LANE_OPS(l);

	for (size_t i = 0; i < iters; i++) {
		void *p = ops_take(o, 0);

		bench_consume(p);
		ops_give(o, p, 0);
	}
}

ALWAYS_INLINE void bulk_run(struct bench_lane *l, size_t iters, size_t n)
{
	void **blocks = l->blocks;
	LANE_OPS(l);

	for (size_t i = 0; i < iters; i++) {
		if (ops_take_bulk(o, blocks, n) != n)
			bench_die("ran out of blocks");
		bench_consume(blocks);
		ops_give_bulk(o, blocks, n);
	}
}

static NOINLINE void bulk8_run(struct bench_lane *l, size_t iters)
{
	bulk_run(l, iters, 8);
}

static NOINLINE void bulk32_run(struct bench_lane *l, size_t iters)
{
	bulk_run(l, iters, 32);
}

static NOINLINE void bulk64_run(struct bench_lane *l, size_t iters)
{
	bulk_run(l, iters, 64);
}

static NOINLINE void burst_run(struct bench_lane *l, size_t iters, size_t n)
{
	void **blocks = l->blocks;
	LANE_OPS(l);

	for (size_t i = 0; i < iters; i++) {
		for (size_t k = 0; k < n; k++) {
			blocks[k] = ops_take(o, 0);
			bench_consume(blocks[k]);
		}
		for (size_t k = 0; k < n; k++)
			ops_give(o, blocks[k], 0);
	}
}

/* xorshift64: cheap, and its low bits are good enough to pick slots. */
ALWAYS_INLINE uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

static NOINLINE void churn_run(struct bench_lane *l, size_t iters)
{
	uint64_t random = l->random;
	LANE_OPS(l);

	for (size_t i = 0; i < iters; i++) {
		uint64_t x = random_next(&random);
		size_t slot = x % LANE_LIVE;
		unsigned order = (unsigned)(x >> 32) % OPS_ORDERS;

		ops_give(o, l->blocks[slot],
			 OPS_ORDER ? l->orders[slot] : 0);
		void *p = ops_take(o, order);

		bench_consume(p);
		l->blocks[slot] = p;
		if (OPS_ORDER)
			l->orders[slot] = (uint8_t)order;
	}
	l->random = random;
}

static void chunk_run(struct bench_lane *l, unsigned workload, size_t iters)
{
	switch (workload) {
	case BENCH_PAIR:
		pair_run(l, iters);
		return;
	case BENCH_BULK8:
		bulk8_run(l, iters);
		return;
	case BENCH_BULK32:
		bulk32_run(l, iters);
		return;
	case BENCH_BULK64:
		bulk64_run(l, iters);
		return;
	case BENCH_CHURN:
		churn_run(l, iters);
		return;
	default:
		burst_run(l, iters, bench_local_pages(workload));
	}
}

size_t bench_local_pages(unsigned workload)
{
	switch (workload) {
	case BENCH_BULK8:
		return 8;
	case BENCH_BULK32:
		return 32;
	case BENCH_BULK64:
	case BENCH_BURST64:
	case BENCH_PARALLEL:
		return 64;
	case BENCH_BURST4096:
		return 4096;
	default:
		return 1;
	}
}

/* ---- Lanes ---- */

void bench_lane_open(struct bench_lane *l, struct ops_shared *s, uint64_t seed)
{
	size_t bytes = LANE_BUFFER * sizeof(void *);

	ops_attach(&l->ops, s);
	if (posix_memalign((void **)&l->buffer, OPS_PAGE_BYTES, bytes))
		bench_die("no memory for the buffers");
	memset(l->buffer, 0, bytes);
	l->blocks = l->buffer;
	l->random = seed;
}

void bench_lane_close(struct bench_lane *l)
{
	free(l->buffer);
	ops_detach(&l->ops);
}

void bench_lane_shift(struct bench_lane *l, unsigned turn)
{
	/* 8-byte steps within one page; 181 is prime to 512, so that 512 turns
	 * see every offset. */
	void **to = l->buffer + (turn * 181 + 7) % 512;

	memmove(to, l->blocks, LANE_BLOCKS * sizeof(*to));
	l->blocks = to;
}

static void live_take(struct bench_lane *l)
{
	for (size_t i = 0; i < LANE_LIVE; i++) {
		l->orders[i] = (uint8_t)(random_next(&l->random) % OPS_ORDERS);
		l->blocks[i] = ops_take(&l->ops, l->orders[i]);
		bench_consume(l->blocks[i]);
	}
}

void bench_local_prepare(struct bench_lane *l, unsigned workload,
			 double ticks_per_ns)
{
	double ns = workload == BENCH_CHURN ? CHURN_SETTLE_NS : SETTLE_NS;
	uint64_t end = bench_tsc_read() + (uint64_t)(ns * ticks_per_ns);

	if (workload == BENCH_CHURN)
		live_take(l);
	while (bench_tsc_read() < end)
		chunk_run(l, workload, 1);
}

void bench_local_finish(struct bench_lane *l, unsigned workload)
{
	if (workload != BENCH_CHURN)
		return;
	for (size_t i = 0; i < LANE_LIVE; i++)
		ops_give(&l->ops, l->blocks[i], l->orders[i]);
}

/* ---- Measuring ---- */

static struct bench_outcome chunks_run(struct bench_lane *l, unsigned workload,
				       const struct bench_plan *plan)
{
	struct bench_outcome out = {.losses = -bench_cpu_losses()};
	uint64_t start = bench_tsc_read(), last = start;

	for (size_t i = 0; i < plan->chunks; i++) {
		chunk_run(l, workload, plan->iters);
		uint64_t now = bench_tsc_read();

		if (now - last > out.longest)
			out.longest = now - last;
		last = now;
	}
	out.losses += bench_cpu_losses();
	out.ticks = last - start;
	out.pages = plan->chunks * plan->iters * bench_local_pages(workload);
	return out;
}

static int ticks_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorted durations of up to PLAN_SAMPLES chunks; returns how many.  Some
 * allocators need half a second for one burst of 4,096. */
static size_t chunks_sample(struct bench_lane *l, unsigned workload,
			    size_t iters, uint64_t *ticks, uint64_t most_ticks)
{
	uint64_t start = bench_tsc_read(), last = start;
	size_t n = 0;

	while (n < PLAN_SAMPLES && (n == 0 || last - start < most_ticks)) {
		chunk_run(l, workload, iters);
		uint64_t now = bench_tsc_read();

		ticks[n++] = now - last;
		last = now;
	}
	qsort(ticks, n, sizeof(*ticks), ticks_compare);
	return n;
}

struct bench_plan bench_local_plan(struct bench_lane *l, unsigned workload,
				   double ticks_per_ns)
{
	uint64_t ticks[PLAN_SAMPLES];
	struct bench_plan plan = {1, 1, 0};
	double chunk_ns;
	size_t n;

	for (;; plan.iters *= 2) {
		n = chunks_sample(l, workload, plan.iters, ticks,
				  (uint64_t)(PLAN_NS * ticks_per_ns));
		chunk_ns = (double)ticks[n / 2] / ticks_per_ns;
		if (chunk_ns >= CHUNK_NS)
			break;
	}
	plan.chunks = (size_t)(REPETITION_NS / chunk_ns) + 1;
	/* The ninth decile, so that an allocator whose own slow path is slow
	 * isn't taken for one that lost the CPU. */
	plan.limit_ticks = LANE_GAP_FACTOR * ticks[n * 9 / 10] +
			   (uint64_t)(LANE_GAP_NS * ticks_per_ns);
	return plan;
}

struct bench_outcome bench_local_run(struct bench_lane *l, unsigned workload,
				     const struct bench_plan *plan)
{
	/* Others had the caches and the branch predictor in between. */
	struct bench_plan warm = *plan;

	warm.chunks = plan->chunks * WARM_NS / REPETITION_NS + 1;
	chunks_run(l, workload, &warm);
	return chunks_run(l, workload, plan);
}
