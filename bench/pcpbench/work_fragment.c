/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_fragment.c - how scattered is what is free after a day of mixed lifetimes?
 *
 * A heap of its own, of 64 MiB, is used as day.h says.  At midnight all that is
 * cached is drained, and of the pages that are free then the share that can be had
 * as blocks of order 3, and of order 9, is counted.  No clock.
 *
 * What is in use hangs in a list for each minute in which it is freed:
 *
 *   due[step] -> block -> block        due[DAY_STEPS]: those that outlive the day
 */
#include "lane.h"

#include <string.h>

#include "day.h"

enum { FRAGMENT_MIB = 64, FRAGMENT_PAGES = 16384, NONE = -1 };

struct piece {
	void *block;
	int32_t next; /* NONE: the last */
	uint8_t order;
};

struct fragment {
	struct ops_shared shared;
	struct ops ops;
	struct day day;
	uint64_t used; /* pages */
	uint64_t taken; /* blocks, in all */
	int32_t due[DAY_STEPS + 1];
	int32_t spare; /* pieces without a block */
	struct piece piece[FRAGMENT_PAGES];
	void *blocks[FRAGMENT_PAGES]; /* while the free ones are counted */
};

static void pieces_init(struct fragment *f)
{
	memset(f->due, 0xff, sizeof(f->due)); /* NONE */
	for (int32_t i = 0; i < FRAGMENT_PAGES; i++)
		f->piece[i].next = i + 1 < FRAGMENT_PAGES ? i + 1 : NONE;
	f->spare = 0;
}

static void due_give(struct fragment *f, unsigned step)
{
	int32_t next;

	for (int32_t i = f->due[step]; i != NONE; i = next) {
		struct piece *p = &f->piece[i];

		next = p->next;
		ops_give(&f->ops, p->block, p->order);
		f->used -= UINT64_C(1) << p->order;
		p->next = f->spare;
		f->spare = i;
	}
	f->due[step] = NONE;
}

/* False: there was none. */
static bool block_take(struct fragment *f, unsigned step)
{
	struct day_block b = day_next(&f->day, step);
	int32_t i = f->spare;
	struct piece *p = &f->piece[i];

	p->block = ops_take(&f->ops, b.order);
	if (!p->block)
		return false;
	f->spare = p->next;
	p->order = (uint8_t)b.order;
	p->next = f->due[b.end];
	f->due[b.end] = i;
	f->used += UINT64_C(1) << b.order;
	f->taken++;
	return true;
}

/* A program whose block isn't there waits for the next minute. */
static void day_live(struct fragment *f)
{
	for (unsigned step = 0; step < DAY_STEPS; step++) {
		uint64_t load = day_load(step, FRAGMENT_PAGES);

		due_give(f, step);
		while (f->used < load && block_take(f, step))
			;
	}
}

/* Share of the free pages that blocks of this order get, in %. */
static double share_had(struct fragment *f, unsigned order)
{
	uint64_t free = FRAGMENT_PAGES - f->used;
	size_t n = 0;

	ops_drain(&f->shared);
	while ((f->blocks[n] = ops_take(&f->ops, order)))
		n++;
	for (size_t i = 0; i < n; i++)
		ops_give(&f->ops, f->blocks[i], order);
	return 100.0 * (double)(n << order) / (double)free;
}

static void day_measure(struct fragment *f, unsigned turn,
			struct wire_reply *reply)
{
	ops_attach(&f->ops, &f->shared);
	f->day = day_begin(turn);
	pieces_init(f);
	day_live(f);
	reply->value = share_had(f, 3);
	reply->second = share_had(f, 9);
	reply->pages = f->taken;
	due_give(f, DAY_STEPS);
	ops_detach(&f->ops);
}

void bench_fragment_run(unsigned turn, struct wire_reply *reply)
{
	struct fragment *f;

	if (!OPS_COALESCE) {
		reply->status = WIRE_NOT_APPLICABLE;
		return;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		bench_die("no memory for the buffers");
	if (ops_open(&f->shared, FRAGMENT_MIB, reply->text,
		     sizeof(reply->text))) {
		reply->status = WIRE_FAILED;
	} else {
		day_measure(f, turn, reply);
		ops_close(&f->shared);
	}
	free(f);
}
