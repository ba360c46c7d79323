/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * day.h - what is asked of an allocator in a day, compressed.  Pure: the same seed
 * asks the same, whatever the allocator does.
 *
 * The clock is simulated: 1,440 steps of a minute.  The load, in pages that are in
 * use, goes with the sun: 3/8 of the memory at midnight, where the day begins and
 * ends, 7/8 at noon.  Blocks are short-lived (95 of 100: 5 to 30 minutes), long-lived
 * (4: one to six hours) or stay for the rest of the day and longer (1).
 */
#ifndef BENCH_DAY_H
#define BENCH_DAY_H

#include <stdint.h>

enum { DAY_STEPS = 1440, DAY_ORDERS = 4 };

struct day {
	uint64_t random;
};

/* One block: it is freed in the step `end`; DAY_STEPS: not in this day. */
struct day_block {
	unsigned order;
	unsigned end;
};

static inline struct day day_begin(unsigned seed)
{
	return (struct day){0x9e3779b97f4a7c15u * (seed + 1)};
}

/* xorshift64*: all bits are good. */
static inline uint64_t day_random(struct day *d, uint64_t below)
{
	uint64_t x = d->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	d->random = x;
	return ((x * 0x2545f4914f6cdd1du) >> 33) % below;
}

/* Pages that are to be in use: a parabola for the sun's way, no libm. */
static inline uint64_t day_load(unsigned step, uint64_t pages)
{
	uint64_t x = step, noon = DAY_STEPS / 2;
	uint64_t height = x * (DAY_STEPS - x); /* 0 to noon squared */

	return pages * 3 / 8 + pages / 2 * height / (noon * noon);
}

/* Of 100 blocks so many have order 0, 1, 2, 3. */
static inline unsigned day_order(struct day *d)
{
	uint64_t x = day_random(d, 100);

	return (unsigned)((x >= 60) + (x >= 80) + (x >= 92));
}

static inline struct day_block day_next(struct day *d, unsigned step)
{
	struct day_block b = {.order = day_order(d), .end = DAY_STEPS};
	uint64_t kind = day_random(d, 100);

	if (kind < 95)
		b.end = step + 5 + (unsigned)day_random(d, 26);
	else if (kind < 99)
		b.end = step + 60 + (unsigned)day_random(d, 301);
	if (b.end > DAY_STEPS)
		b.end = DAY_STEPS;
	return b;
}

#endif
