/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hist.h - a histogram of durations, 64 steps for each power of two, so that a
 * percentile is at most 1.6 % above the truth.
 *
 *   value  0..63 -> slot of its own;  64..127 -> 64 slots;  128..255 -> 64 ...
 *
 * Concurrency: one writer; hist_add() of another thread's after it rests.
 * Cost of a note: some 2 ns.  Failure: none, what is longer than any clock's
 * difference counts into the last slot.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

enum { HIST_STEPS_LOG2 = 6, HIST_STEPS = 1 << HIST_STEPS_LOG2, HIST_POWERS = 36 };

struct hist {
	uint64_t longest, calls;
	uint64_t slot[HIST_POWERS * HIST_STEPS];
};

static inline unsigned hist_slot(uint64_t value)
{
	unsigned log2, slot;

	if (value < HIST_STEPS)
		return (unsigned)value;
	log2 = 63 - (unsigned)__builtin_clzll(value) - HIST_STEPS_LOG2;
	slot = (log2 + 1) * HIST_STEPS +
	       ((unsigned)(value >> log2) & (HIST_STEPS - 1));
	return slot < HIST_POWERS * HIST_STEPS ? slot
						: HIST_POWERS * HIST_STEPS - 1;
}

/* The largest value of a slot. */
static inline uint64_t hist_value(unsigned slot)
{
	unsigned log2 = slot / HIST_STEPS;

	if (log2 == 0)
		return slot;
	return ((uint64_t)(HIST_STEPS + slot % HIST_STEPS + 1) << (log2 - 1)) - 1;
}

static inline void hist_note(struct hist *h, uint64_t value)
{
	h->slot[hist_slot(value)]++;
	h->calls++;
	if (value > h->longest)
		h->longest = value;
}

static inline void hist_add(struct hist *to, const struct hist *from)
{
	for (unsigned i = 0; i < HIST_POWERS * HIST_STEPS; i++)
		to->slot[i] += from->slot[i];
	to->calls += from->calls;
	if (from->longest > to->longest)
		to->longest = from->longest;
}

/* The value below or at which `part` of the calls are, by nearest rank; 0 of
 * none. */
static inline uint64_t hist_percentile(const struct hist *h, double part)
{
	uint64_t rank = (uint64_t)(part * (double)h->calls), seen = 0;

	for (unsigned i = 0; i < HIST_POWERS * HIST_STEPS; i++) {
		seen += h->slot[i];
		if (seen > rank)
			return hist_value(i) < h->longest ? hist_value(i)
							   : h->longest;
	}
	return h->longest;
}

#endif
