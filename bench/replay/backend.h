/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backend.h - the allocators that the replay compares.
 */
#ifndef PCPREPLAY_BACKEND_H
#define PCPREPLAY_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pcpalloc/inline.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include "capture.h"

/* Packets handed over at once, as receive bursts of network drivers are. */
#define BURST 32

enum backend_kind {
	BACKEND_NONE, /* blocks made beforehand: the pipeline's own cost */
	BACKEND_PCPALLOC,
	BACKEND_GLIBC, /* aligned_alloc(), free()                        */
	BACKEND_GLIBC_TUNED, /* the same, told to keep memory it got */
	BACKEND_MMAP, /* mmap(), munmap()                               */
	BACKEND_NR_KINDS,
};

struct backend {
	enum backend_kind kind;
	size_t page_bytes;
	bool single; /* pcpalloc: one call a block instead of one a batch */
	struct pcpa_heap *heap;
	/* none: nr_slots times the blocks of one batch */
	uint8_t *area;
	size_t area_bytes;
	size_t slot_bytes;
	size_t order_offset[PCPA_MAX_ORDER + 1]; /* within a slot */
};

const char *backend_name(enum backend_kind kind);

/* For `none`: makes blocks for nr_slots batches of any BURST frames in a row.
 * For glibc: sets how it keeps memory.  Returns 0 or an errno. */
int backend_prepare(struct backend *b, const struct capture *c, size_t nr_slots);
void backend_release(struct backend *b);

/*
 * Allocates blocks[0..n-1] of the given orders; slot is the number of the
 * batch that they belong to.  Returns how many it got, from the start.  cache: the
 * calling thread's of b->heap, or of NULL.
 */
size_t backend_take(struct backend *b, const struct pcpa_cache *cache,
		    size_t slot, const uint8_t *orders, void **blocks,
		    size_t n);

/* Frees them, on whatever thread. */
void backend_give(struct backend *b, const struct pcpa_cache *cache,
		  const uint8_t *orders, void **blocks, size_t n);

/* Most bytes of blocks that `nr_slots` batches of the capture hold at once. */
size_t backend_bytes_in_flight(const struct capture *c, size_t page_bytes,
			       size_t nr_slots);

#endif
