/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_remote.c - one thread takes, another frees: what a receive core and a
 * worker do to a page allocator.
 *
 *   lane 0 (first CPU)                      lane 1 (second CPU)
 *   take 32 [write 64 bytes each] --ring--> [read 64 bytes each] give 32
 *
 * The ring holds 32 bursts, so that at most 1,024 blocks are on their way and
 * a side that is a little late doesn't stop the other.  Allocators with a bulk
 * call use it, since packets come in bursts; the others are called 32 times.
 *
 * The clock runs on the producer's side, from the gate until the consumer has
 * freed the last block.
 */
#include "lane.h"

#include <string.h>

#include "tsc.h"

enum {
	CHUNK_BURSTS = 16,
	REPETITION_NS = 1000000,
	TOUCH_WORDS = 8,
	PLAN_TRIES = 3,
	SETTLE_REPETITIONS = 20,
};

struct remote_job {
	struct spsc *ring;
	struct bench_gate gate;
	struct bench_lane *producer, *consumer;
	size_t chunks;
	bool touch;
	uint64_t longest; /* consumer's */
	long losses;      /* consumer's */
	_Atomic bool done;
};

static void blocks_write(void *const *burst, uint64_t value)
{
	for (int i = 0; i < SPSC_BURST; i++) {
		uint64_t *words = burst[i];

		for (int k = 0; k < TOUCH_WORDS; k++)
			words[k] = value;
	}
}

static void blocks_read(void *const *burst)
{
	uint64_t sum = 0;

	for (int i = 0; i < SPSC_BURST; i++) {
		const uint64_t *words = burst[i];

		for (int k = 0; k < TOUCH_WORDS; k++)
			sum += words[k];
	}
	__asm__ volatile("" : : "r"(sum));
}

static void gap_note(uint64_t *last, uint64_t *longest)
{
	uint64_t now = bench_tsc_read();

	if (now - *last > *longest)
		*longest = now - *last;
	*last = now;
}

static void chunk_produce(struct remote_job *j, void **burst)
{
	for (int i = 0; i < CHUNK_BURSTS; i++) {
		while (!ops_take_burst(&j->producer->ops, burst))
			bench_pause();
		if (j->touch)
			blocks_write(burst, (uint64_t)i);
		while (!spsc_push(j->ring, burst))
			bench_pause();
	}
}

static void chunk_consume(struct remote_job *j, void **burst)
{
	for (int i = 0; i < CHUNK_BURSTS; i++) {
		while (!spsc_pop(j->ring, burst))
			bench_pause();
		if (j->touch)
			blocks_read(burst);
		ops_give_burst(&j->consumer->ops, burst);
	}
}

static void consumer_main(void *arg)
{
	struct remote_job *j = arg;
	uint64_t longest = 0, last;
	long losses = -bench_cpu_losses();

	bench_gate_pass(&j->gate);
	last = bench_tsc_read();
	for (size_t i = 0; i < j->chunks; i++) {
		chunk_consume(j, j->consumer->blocks);
		gap_note(&last, &longest);
	}
	j->longest = longest;
	j->losses = losses + bench_cpu_losses();
	/* pairs with remote_run(): what was noted is written. */
	atomic_store_explicit(&j->done, true, memory_order_release);
}

static struct bench_outcome remote_run(struct bench_worker *w, bool touch,
				       size_t chunks, struct spsc *ring)
{
	struct remote_job j = {
		.ring = ring,
		.producer = &w->lane[0],
		.consumer = &w->lane[1],
		.chunks = chunks,
		.touch = touch,
	};
	struct bench_outcome out = {.pages = chunks * CHUNK_BURSTS * SPSC_BURST};
	uint64_t start, last;

	spsc_init(ring);
	bench_peer_run(&w->peer, consumer_main, &j);
	out.losses = -bench_cpu_losses();
	bench_gate_pass(&j.gate);
	start = last = bench_tsc_read();
	for (size_t i = 0; i < chunks; i++) {
		chunk_produce(&j, w->lane[0].blocks);
		gap_note(&last, &out.longest);
	}
	/* pairs with consumer_main(). */
	while (!atomic_load_explicit(&j.done, memory_order_acquire))
		bench_pause();
	out.ticks = bench_tsc_read() - start;
	out.losses += bench_cpu_losses() + j.losses;
	bench_peer_wait(&w->peer);
	if (j.longest > out.longest)
		out.longest = j.longest;
	return out;
}

static struct spsc *ring_get(void)
{
	static struct spsc ring;

	return &ring;
}

/* The least of a few tries, since a try may lose its CPU. */
static double chunk_ticks(struct bench_worker *w, bool touch, size_t chunks)
{
	double least = 0;

	for (int i = 0; i < PLAN_TRIES; i++) {
		struct bench_outcome o =
			remote_run(w, touch, chunks, ring_get());
		double each = (double)o.ticks / (double)chunks;

		if (i == 0 || each < least)
			least = each;
	}
	return least;
}

struct bench_plan bench_remote_plan(struct bench_worker *w, bool touch)
{
	double wanted = REPETITION_NS * w->ticks_per_ns;
	struct bench_plan plan = {CHUNK_BURSTS, 1, 0};
	double each;

	for (;; plan.chunks *= 2) {
		each = chunk_ticks(w, touch, plan.chunks);
		if (each * (double)plan.chunks >= wanted / 4)
			break;
	}
	plan.chunks = (size_t)(wanted / each) + 1;
	/* The most blocks on their way at once are met early, not in some
	 * later repetition. */
	remote_run(w, touch, plan.chunks * SETTLE_REPETITIONS, ring_get());
	plan.limit_ticks = (uint64_t)(LANE_GAP_FACTOR * each) +
			   (uint64_t)(LANE_GAP_NS * w->ticks_per_ns);
	return plan;
}

struct bench_outcome bench_remote_run(struct bench_worker *w, bool touch,
				      const struct bench_plan *plan)
{
	remote_run(w, touch, plan->chunks / 8 + 1, ring_get());
	return remote_run(w, touch, plan->chunks, ring_get());
}
