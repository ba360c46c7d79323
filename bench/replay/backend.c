/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backend.c - one way in and out for each allocator, a batch at a time.
 *
 * Owns the blocks of `none`; the heap belongs to main.  The choice is made once
 * a batch, so that no backend pays for another's branch.
 *
 * All give blocks of page_bytes << order.  pcpalloc's are aligned to their own
 * size, so aligned_alloc() is asked for the same; mmap aligns to a page.
 * pcpalloc allocates each run of equal orders by pcpa_cache_alloc_bulk() and frees
 * a batch by pcpa_cache_free_bulk() (inline.h), unless `single` is set; glibc and the kernel have
 * no such calls.  glibc's two columns differ in mallopt() only; having been told
 * once, glibc no longer adapts by itself what it maps singly (128 KiB and more).
 * `none` gives each batch number its own blocks:
 *
 *   area: | slot 0: order 0 blocks, order 1 blocks, ... | slot 1: ... | ...
 *
 * as many of each order as the worst BURST frames in a row need.
 *
 * Concurrency: take on one thread, give on another, at the same time.
 * Failure: take returns fewer.
 */
#define _GNU_SOURCE
#include "backend.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char *backend_name(enum backend_kind kind)
{
	static const char *const names[BACKEND_NR_KINDS] = {
		[BACKEND_NONE] = "none",
		[BACKEND_PCPALLOC] = "pcpalloc",
		[BACKEND_GLIBC] = "glibc",
		[BACKEND_GLIBC_TUNED] = "glibc-tuned",
		[BACKEND_MMAP] = "mmap",
	};

	return names[kind];
}

/* most[k] = most frames of order k among any BURST in a row, the capture
 * taken as a ring.  A window slides over all starting points. */
static void burst_orders(const struct capture *c,
			 unsigned most[PCPA_MAX_ORDER + 1])
{
	unsigned now[PCPA_MAX_ORDER + 1] = {0};
	size_t n = c->nr_frames;

	memset(most, 0, sizeof(unsigned) * (PCPA_MAX_ORDER + 1));
	for (size_t i = 0; i < n + BURST; i++) {
		unsigned in = c->frames[i % n].order;

		now[in]++;
		if (i >= BURST)
			now[c->frames[(i - BURST) % n].order]--;
		if (now[in] > most[in])
			most[in] = now[in];
	}
}

static size_t burst_bytes(const struct capture *c, size_t page_bytes)
{
	unsigned most[PCPA_MAX_ORDER + 1];
	size_t bytes = 0;

	burst_orders(c, most);
	for (unsigned k = 0; k <= PCPA_MAX_ORDER; k++)
		bytes += most[k] * (page_bytes << k);
	return bytes;
}

size_t backend_bytes_in_flight(const struct capture *c, size_t page_bytes,
			       size_t nr_slots)
{
	return nr_slots * burst_bytes(c, page_bytes);
}

/* The largest order first, so that each block is aligned to a page at least
 * and blocks of one order lie together. */
static void slot_lay_out(struct backend *b, const struct capture *c)
{
	unsigned most[PCPA_MAX_ORDER + 1];
	size_t at = 0;

	burst_orders(c, most);
	for (unsigned k = PCPA_MAX_ORDER + 1; k-- > 0;) {
		b->order_offset[k] = at;
		at += most[k] * (b->page_bytes << k);
	}
	b->slot_bytes = at;
}

/* Its defaults give what is free at the top back to the kernel beyond 128 KiB
 * and ask for it again in such pieces. */
static void glibc_tune(bool keep)
{
	mallopt(M_TRIM_THRESHOLD, keep ? 1 << 30 : 128 << 10);
	mallopt(M_TOP_PAD, keep ? 64 << 20 : 128 << 10);
}

static int none_prepare(struct backend *b, const struct capture *c,
			size_t nr_slots)
{
	void *area;

	slot_lay_out(b, c);
	b->area_bytes = nr_slots * b->slot_bytes;
	area = mmap(NULL, b->area_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return errno;
	/* Without huge pages `none` would pay for address translation that
	 * pcpalloc doesn't; where they are refused it does. */
	madvise(area, b->area_bytes, MADV_HUGEPAGE);
	memset(area, 1, b->area_bytes);
	b->area = area;
	return 0;
}

int backend_prepare(struct backend *b, const struct capture *c, size_t nr_slots)
{
	if (b->kind == BACKEND_NONE)
		return none_prepare(b, c, nr_slots);
	if (b->kind == BACKEND_GLIBC_TUNED)
		glibc_tune(true);
	return 0;
}

void backend_release(struct backend *b)
{
	if (b->kind == BACKEND_GLIBC_TUNED)
		glibc_tune(false);
	if (b->area)
		munmap(b->area, b->area_bytes);
	b->area = NULL;
}

static size_t none_take(struct backend *b, size_t slot, const uint8_t *orders,
			void **blocks, size_t n)
{
	uint8_t *base = b->area + slot * b->slot_bytes;
	size_t next[PCPA_MAX_ORDER + 1];

	memcpy(next, b->order_offset, sizeof(next));
	for (size_t i = 0; i < n; i++) {
		blocks[i] = base + next[orders[i]];
		next[orders[i]] += b->page_bytes << orders[i];
	}
	return n;
}

static size_t pcpa_take_runs(const struct pcpa_cache *cache,
			     const uint8_t *orders, void **blocks, size_t n)
{
	size_t at = 0;

	while (at < n) {
		size_t run = 1;
		size_t got;

		while (at + run < n && orders[at + run] == orders[at])
			run++;
		got = pcpa_cache_alloc_bulk(cache, orders[at], 0, blocks + at,
					    run);
		at += got;
		if (got < run)
			break;
	}
	return at;
}

static size_t pcpa_take_single(const struct pcpa_cache *cache,
			       const uint8_t *orders, void **blocks, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		blocks[i] = pcpa_cache_alloc(cache, orders[i], 0);
		if (!blocks[i])
			break;
	}
	return i;
}

static size_t glibc_take(size_t page_bytes, const uint8_t *orders,
			 void **blocks, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		size_t bytes = page_bytes << orders[i];

		blocks[i] = aligned_alloc(bytes, bytes);
		if (!blocks[i])
			break;
	}
	return i;
}

static size_t mmap_take(size_t page_bytes, const uint8_t *orders, void **blocks,
			size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		blocks[i] = mmap(NULL, page_bytes << orders[i],
				 PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (blocks[i] == MAP_FAILED)
			break;
	}
	return i;
}

size_t backend_take(struct backend *b, const struct pcpa_cache *cache,
		    size_t slot, const uint8_t *orders, void **blocks, size_t n)
{
	switch (b->kind) {
	case BACKEND_NONE:
		return none_take(b, slot, orders, blocks, n);
	case BACKEND_PCPALLOC:
		return b->single ? pcpa_take_single(cache, orders, blocks, n)
				 : pcpa_take_runs(cache, orders, blocks, n);
	case BACKEND_GLIBC:
	case BACKEND_GLIBC_TUNED:
		return glibc_take(b->page_bytes, orders, blocks, n);
	case BACKEND_MMAP:
		return mmap_take(b->page_bytes, orders, blocks, n);
	case BACKEND_NR_KINDS:
		break;
	}
	return 0;
}

static void pcpa_give(const struct backend *b, const struct pcpa_cache *cache,
		      void **blocks, size_t n)
{
	if (!b->single) {
		pcpa_cache_free_bulk(cache, blocks, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		pcpa_cache_free(cache, blocks[i]);
}

void backend_give(struct backend *b, const struct pcpa_cache *cache,
		  const uint8_t *orders, void **blocks, size_t n)
{
	switch (b->kind) {
	case BACKEND_PCPALLOC:
		pcpa_give(b, cache, blocks, n);
		break;
	case BACKEND_GLIBC:
	case BACKEND_GLIBC_TUNED:
		for (size_t i = 0; i < n; i++)
			free(blocks[i]);
		break;
	case BACKEND_MMAP:
		for (size_t i = 0; i < n; i++)
			munmap(blocks[i], b->page_bytes << orders[i]);
		break;
	case BACKEND_NONE:
	case BACKEND_NR_KINDS:
		break;
	}
}
