/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops_limit.h - the least work that hands blocks out and takes them back.
 *
 * Local: an array of pointers per order, its top moving up and down, inlined;
 * no check but for empty.  In bulk: memcpy.  Between threads: the consumer's
 * frees are a second ring that leads back to the producer.
 *
 *   producer --forward ring (the workload's)--> consumer
 *      ^------------- back ring (here) -------------'
 *
 * Each thread has stacks of its own; there is nothing to share but the ring.
 */
#ifndef BENCH_OPS_LIMIT_H
#define BENCH_OPS_LIMIT_H

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define OPS_BULK 1
#define OPS_STREAM 1
#define OPS_REMOTE 1
#define OPS_TOUCH 1
#define OPS_ORDER 1
#define OPS_COALESCE 0
#define OPS_COUNTERS 0
#define OPS_VALUE 0
#define OPS_START 0
#define OPS_THREADS 0

enum { LIMIT_BLOCKS = 8192 };

struct ops_shared {
	struct spsc back;
	char *base; /* order 0; larger blocks are never touched */
	bool filled;
};

struct ops {
	struct ops_shared *shared;
	void **top[OPS_ORDERS]; /* first unused slot */
	void **slots[OPS_ORDERS];
};

static inline int ops_open(struct ops_shared *s, size_t mib, char *text,
			   size_t size)
{
	size_t bytes = LIMIT_BLOCKS * OPS_PAGE_BYTES;

	(void)mib;
	spsc_init(&s->back);
	s->filled = false;
	s->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s->base == MAP_FAILED) {
		snprintf(text, size, "mmap: %s", strerror(errno));
		return -1;
	}
	snprintf(text, size, "base");
	return 0;
}

static inline void ops_close(struct ops_shared *s)
{
	munmap(s->base, LIMIT_BLOCKS * OPS_PAGE_BYTES);
}

static inline void ops_attach(struct ops *o, struct ops_shared *s)
{
	o->shared = s;
	for (unsigned order = 0; order < OPS_ORDERS; order++) {
		void **slots = malloc(LIMIT_BLOCKS * sizeof(void *));

		if (!slots)
			abort();
		for (size_t i = 0; i < LIMIT_BLOCKS; i++)
			slots[i] = s->base + i * OPS_PAGE_BYTES;
		o->slots[order] = slots;
		o->top[order] = slots + LIMIT_BLOCKS;
	}
}

static inline void ops_detach(struct ops *o)
{
	for (unsigned order = 0; order < OPS_ORDERS; order++)
		free(o->slots[order]);
}

OPS_ALWAYS void *ops_take(struct ops *o, unsigned order)
{
	if (o->top[order] == o->slots[order])
		return NULL;
	return *--o->top[order];
}

OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
{
	*o->top[order]++ = block;
}

OPS_ALWAYS size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	if ((size_t)(o->top[0] - o->slots[0]) < n)
		return 0;
	o->top[0] -= n;
	memcpy(blocks, o->top[0], n * sizeof(*blocks));
	return n;
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	memcpy(o->top[0], blocks, n * sizeof(*blocks));
	o->top[0] += n;
}

/* The producer fills the back ring itself once, before anything flows. */
OPS_ALWAYS bool ops_take_burst(struct ops *o, void **burst)
{
	struct ops_shared *s = o->shared;

	if (__builtin_expect(!s->filled, 0)) {
		s->filled = true;
		for (size_t i = 0; i < SPSC_BURSTS; i++)
			spsc_push(&s->back, o->slots[0] + i * SPSC_BURST);
	}
	return spsc_pop(&s->back, burst);
}

OPS_ALWAYS void ops_give_burst(struct ops *o, void **burst)
{
	while (!spsc_push(&o->shared->back, burst))
		;
}

#endif
