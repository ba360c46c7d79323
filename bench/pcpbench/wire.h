/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.h - what pcpbench and its workers say to each other.
 *
 *   pcpbench --request--> worker (one process per allocator)
 *            <--reply----        asleep in read() while others have their turn
 *
 * A socket per worker carries structs of one size; both sides are of one
 * build.  A worker whose socket ends goes away.
 *
 * Conversation: SETUP once, then for each workload PREPARE, RUN (one
 * repetition) as often as wanted, FINISH.  Each request has one reply.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A worker's end is its standard input, a socket; its output stays free. */
enum { WIRE_FD = 0 };

enum wire_kind { WIRE_SETUP, WIRE_PREPARE, WIRE_RUN, WIRE_FINISH };

enum wire_status {
	WIRE_OK,
	WIRE_NOT_APPLICABLE, /* this allocator has no such operation */
	WIRE_FAILED,         /* text says why */
};

struct wire_request {
	uint32_t kind;
	uint32_t workload; /* enum bench_workload */
	uint32_t turn;     /* moves the buffers; the same for all allocators */
	uint32_t heap_mib;
	int32_t cpu[2];
	double ticks_per_ns;
};

/* Deltas over one repetition, its warm-up included. */
struct wire_counters {
	uint64_t taken; /* blocks */
	uint64_t zone_locks;
	uint64_t depot_gets;
	uint64_t depot_puts;
	uint64_t refills;
	uint64_t drains;
};

/* Single calls of one kind, in ns. */
enum { WIRE_PERCENTILES = 4 }; /* 50, 99, 99.9, 99.99 */

/* Points of a curve over the percentiles: the first, then eight for each nine up
 * to 99.999. */
enum { WIRE_CURVE_NINE = 8, WIRE_CURVE = 1 + 5 * WIRE_CURVE_NINE };

struct wire_point {
	double percentile, ns;
};

struct wire_latency {
	double percentile[WIRE_PERCENTILES];
	struct wire_point curve[WIRE_CURVE];
	double longest;
	uint64_t calls;
};

struct wire_reply {
	uint32_t status;
	uint32_t lost;     /* RUN: the CPU went to somebody else */
	double value;      /* RUN: in the workload's unit */
	double second;     /* RUN: what the catalog names so; below 0: unknown */
	uint64_t pages;    /* RUN: blocks taken and given back */
	uint32_t counted;  /* counters are filled in */
	struct wire_counters counters;
	/* FINISH of latency*: over all repetitions. */
	struct wire_latency taking, giving;
	double clock_ns; /* of these, what reading the clock took */
	char text[192]; /* SETUP: what the memory is made of; or the error */
};

/* Whole structs; false at the other's end or on an error. */
bool wire_send(int fd, const void *what, size_t bytes);
bool wire_receive(int fd, void *what, size_t bytes);

#endif
