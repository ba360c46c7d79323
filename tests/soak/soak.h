/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak.h - what the files of the soak share: its threads, its heaps, and the
 * blocks that it holds, each with its holder's stamp at both ends.
 */
#ifndef SOAK_H
#define SOAK_H

#include "conc.h"

#include "sys/sys.h"

#define THREADS 16u
#define HOLD 256u
#define SHARED 512u
#define BULK 64u
#define CPUS 8u /* of the invented machine */

struct block {
	void *at; /* NULL: none */
	uint64_t stamp;
	unsigned heap, order;
	size_t pages; /* of a contiguous range; 0: a block of the order */
};

enum { RUNNING, RESTING, ENDED };

/* o: the thread, or main while it rests; m: soak.mutex. */
struct soak_thread {
	unsigned index;
	int cpu;		 /* o: where it says it is, on invented nodes */
	uint64_t random, serial; /* o */
	struct block held[HOLD]; /* o */
	unsigned n;		 /* o */
	bool dying;		 /* o */
	int state;		 /* m */
	struct conc_thread thread;
};

struct soak_heap {
	const char *name;
	unsigned flags;
	size_t initial_bytes, max_bytes;
	unsigned reserve_pages;
	struct pcpa_heap *heap;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool pausing, stop; /* a */
	bool faults;	    /* a */
	bool invented;	    /* two nodes, and threads say where they are */
	unsigned nodes;
	struct pcpi_sys sys;
	const struct pcpi_sys *real;
	uint64_t refused; /* a: calls that were made to fail */
	pthread_mutex_t shared_lock;
	struct block shared[SHARED]; /* shared_lock */
	struct soak_thread threads[THREADS];
} soak = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.shared_lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct soak_heap heaps[] = {
	{ "growing", 0, 0, 96 * MIB, 0, NULL },
	{ "cow", PCPA_HEAP_COW | PCPA_HEAP_FIXED, 32 * MIB, 0, 0, NULL },
	{ "no-ipi", PCPA_HEAP_NO_IPI, 2 * MIB, 48 * MIB, 256, NULL },
	{ "legacy", PCPA_HEAP_LEGACY | PCPA_HEAP_FIXED, 16 * MIB, 0, 128, NULL },
	{ "checks", PCPA_HEAP_CHECKS, 4 * MIB, 16 * MIB, 0, NULL },
	{ "background", PCPA_HEAP_BACKGROUND, 2 * MIB, 32 * MIB, 64, NULL },
};

#define HEAPS (unsigned)(sizeof(heaps) / sizeof(heaps[0]))
#define COW_HEAP 1u
#define SMALL_HEAP 3u

static uint64_t pick(struct soak_thread *t, uint64_t n)
{
	return (conc_random(&t->random) >> 16) % n;
}

/* ---- Blocks ------------------------------------------------------------------- */

static uint64_t block_pages(const struct block *b)
{
	return b->pages ? b->pages : UINT64_C(1) << b->order;
}

static uint64_t *last_word(const struct block *b)
{
	size_t bytes = block_pages(b) * pcpa_heap_page_bytes(heaps[b->heap].heap);

	return (uint64_t *)(void *)((char *)b->at + bytes - sizeof(uint64_t));
}

static void block_stamp(struct soak_thread *t, struct block *b)
{
	b->stamp = (uint64_t)(t->index + 1) << 48 | ++t->serial;
	*(uint64_t *)b->at = b->stamp;
	*last_word(b) = b->stamp;
}

static void block_check(const struct block *b)
{
	CHECK_U64(*(uint64_t *)b->at, ==, b->stamp);
	CHECK_U64(*last_word(b), ==, b->stamp);
}

static void block_free(struct soak_thread *t, const struct block *b)
{
	struct pcpa_heap *heap = heaps[b->heap].heap;

	block_check(b);
	if (b->pages)
		pcpa_free_contig(heap, b->at, b->pages);
	else if (pick(t, 2))
		pcpa_free(heap, b->at);
	else
		pcpa_free_sized(heap, b->at, b->order);
}

/* What is fresh is the thread's; where it has no room it goes back. */
static void keep(struct soak_thread *t, struct block b)
{
	block_stamp(t, &b);
	if (t->n < HOLD)
		t->held[t->n++] = b;
	else
		block_free(t, &b);
}

static void block_keep(struct soak_thread *t, unsigned heap, unsigned order,
		       void *at)
{
	keep(t, (struct block){ .at = at, .heap = heap, .order = order });
}

static struct block held_take(struct soak_thread *t)
{
	unsigned i = (unsigned)pick(t, t->n);
	struct block b = t->held[i];

	t->held[i] = t->held[--t->n];
	return b;
}

/* Low orders are common. */
static unsigned order_pick(struct soak_thread *t, unsigned most)
{
	unsigned order = (unsigned)__builtin_ctzll(conc_random(&t->random) |
						   UINT64_C(1) << 20);

	return pcpi_min(order, most);
}

/* A node of the heap, by the number that calls take. */
static int node_pick(struct soak_thread *t)
{
	return (int)heaps[0]
		.heap->env.zones[pick(t, soak.nodes)]
		.config.os_node;
}

static unsigned flags_pick(struct soak_thread *t)
{
	static const unsigned flags[] = {
		0,
		0,
		0,
		0,
		PCPA_ZERO,
		PCPA_NOGROW,
		PCPA_THISNODE,
		PCPA_NOWAIT,
		PCPA_NOWAIT | PCPA_ZERO,
		PCPA_RESERVE,
		PCPA_RESERVE | PCPA_NOWAIT,
	};

	return flags[pick(t, sizeof(flags) / sizeof(flags[0]))] |
	       (pick(t, 4) ? 0 : PCPA_NODE(node_pick(t)));
}

/* Whether a block may be where it is. */
static void place_check(struct pcpa_heap *heap, unsigned flags, const void *at)
{
	if (flags & PCPA_THISNODE && flags >= PCPA_NODE(0))
		CHECK(flags >> 16 == (unsigned)pcpa_block_node(heap, at) + 1);
}

/* Whether an allocation with the flags may fail so. */
static bool is_refusal(unsigned flags, int err)
{
	return err == ENOMEM || (err == EAGAIN && (flags & PCPA_NOWAIT));
}

#endif
