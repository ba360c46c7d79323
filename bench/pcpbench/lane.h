/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lane.h - one thread's side of a measurement, and what is measured on it.
 *
 * A repetition is cut into chunks of some 4 us; the counter is read between
 * them.  A chunk that took far longer than chunks take means that the CPU went
 * to somebody else, perhaps of another virtual machine; what the kernel itself
 * gave away it counts (bench_cpu_losses).  Either way the repetition is lost.
 *
 *   | warm-up | chunk | chunk | chunk | ......... | chunk |
 *             t0      t       t                           t1
 *
 * Files: work_local.c (one lane at a time), work_remote.c (two lanes, blocks
 * in between), work_latency.c (single calls), work_coalesce.c and work_fragment.c
 * (counts, no clock), work_cold.c (a process each), work_threads.c (threads that come
 * and go), worker.c (the process).
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include "catalog.h"
#include "ops.h"
#include "peer.h"

enum {
	LANE_BLOCKS = 4096, /* the largest burst, and room for churn's */
	LANE_LIVE = 2048,   /* churn */
	LANE_BUFFER = LANE_BLOCKS + 512,
};

/*
 * A chunk has lost the CPU when it takes LANE_GAP_NS longer than so many times
 * what chunks take: shorter than any time slice, but longer than a timer
 * interrupt, which costs up to 120 us on some virtual machines and comes a
 * thousand times a second to everybody alike.
 */
enum { LANE_GAP_NS = 150000, LANE_GAP_FACTOR = 2 };

struct bench_lane {
	struct ops ops;
	void **buffer; /* LANE_BUFFER entries */
	void **blocks; /* in buffer, elsewhere in each turn */
	uint8_t orders[LANE_LIVE];
	uint64_t random;
};

/* How a workload is cut, found when it is prepared. */
struct bench_plan {
	size_t iters;         /* a chunk */
	size_t chunks;        /* a repetition */
	uint64_t limit_ticks; /* a longer chunk has lost the CPU */
};

struct bench_outcome {
	uint64_t ticks;
	uint64_t longest; /* chunk */
	uint64_t pages;
	long losses; /* of CPUs, that the kernel counted, of all threads */
};

/* All that a worker process has. */
struct bench_worker {
	struct ops_shared shared;
	struct bench_lane lane[2];
	struct bench_peer peer;
	int cpu[2];
	struct bench_plan plan;
	double ticks_per_ns;
};

/* Ends the process with one line that says why. */
_Noreturn void bench_die(const char *why);

/* Makes p count as used by something unknown, and must not be NULL. */
static inline void bench_consume(void *p)
{
	if (__builtin_expect(!p, 0))
		bench_die("ran out of blocks");
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* ---- work_local.c ---- */

/* Attaches the lane to the allocator; by the thread that will use it. */
void bench_lane_open(struct bench_lane *l, struct ops_shared *s, uint64_t seed);
void bench_lane_close(struct bench_lane *l);

/* Moves the buffer of block pointers, the same way for every allocator. */
void bench_lane_shift(struct bench_lane *l, unsigned turn);

/*
 * Takes what the workload keeps over its repetitions, and runs it for a while:
 * caches that adapt are then as large as they will get.
 */
void bench_local_prepare(struct bench_lane *l, unsigned workload,
			 double ticks_per_ns);

/* Gives back what the workload kept. */
void bench_local_finish(struct bench_lane *l, unsigned workload);

/* Blocks that one iteration takes and gives back. */
size_t bench_local_pages(unsigned workload);

/* Finds the plan on a warm lane. */
struct bench_plan bench_local_plan(struct bench_lane *l, unsigned workload,
				   double ticks_per_ns);

/* One repetition, warmed up. */
struct bench_outcome bench_local_run(struct bench_lane *l, unsigned workload,
				     const struct bench_plan *plan);

/* ---- work_remote.c ---- */

struct bench_plan bench_remote_plan(struct bench_worker *w, bool touch);

/* One repetition; longest is the worse of the two sides'. */
struct bench_outcome bench_remote_run(struct bench_worker *w, bool touch,
				      const struct bench_plan *plan);

/* ---- work_latency.c ---- */

/* The threads, what is kept over the repetitions, empty histograms. */
void bench_latency_prepare(struct bench_worker *w, unsigned workload);

/* One repetition: fills in value, the 99.9th percentile of the allocations,
 * pages, and lost.  Another one of the same turn takes its place. */
void bench_latency_run(struct bench_worker *w, unsigned turn,
		       struct wire_reply *reply);

/* Fills in taking, giving and clock_ns; gives back what was kept. */
void bench_latency_finish(struct bench_worker *w, struct wire_reply *reply);

/* ---- work_coalesce.c ---- */

/* Fills in value (order-3 blocks), second (those of order 9) and pages, or
 * status and text. */
void bench_coalesce_run(unsigned turn, struct wire_reply *reply);

/* ---- work_fragment.c ---- */

/* Fills in value and second (shares in %, by order 3 and by order 9) and pages,
 * or status and text.  Turns differ in what is asked, and in nothing else. */
void bench_fragment_run(unsigned turn, struct wire_reply *reply);

/* ---- work_cold.c ---- */

/* One repetition: a new process of this program, of which this one waits for the
 * end.  Fills in value, second, pages and lost, or status and text. */
void bench_cold_run(struct bench_worker *w, unsigned workload,
		    struct wire_reply *reply);

/* That process: measures the workload of this name, tells through WIRE_FD,
 * and returns its exit status. */
int bench_cold_main(const char *workload);

/* A heap more in this process; the same. */
void bench_heap_run(struct bench_worker *w, struct wire_reply *reply);

/* ---- work_threads.c ---- */

/* One repetition.  Fills in value, second, pages and lost, or status and text. */
void bench_threads_run(struct bench_worker *w, unsigned workload,
		       struct wire_reply *reply);

#endif
