/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings_pages.h - the allocators of the `rings` experiment, as its threads use
 * them: a page, and what the driver keeps for each page beside it.
 *
 *   store   of the process: a heap of the library or a kpcp, fixed and populated
 *   user    of a thread
 *
 * A predictable branch picks the allocator: some 0.3 ns, the same for all.
 *
 * Failure: rings_store_open() says why.  Concurrency: a user is its thread's.
 */
#ifndef BENCH_RINGS_PAGES_H
#define BENCH_RINGS_PAGES_H

#include <pcpalloc/pcpalloc.h>
#include <stdatomic.h>

#include "kpcp.h"
#include "sim_heap.h"

enum { RINGS_MIB = 256, RINGS_PAGE = KPCP_PAGE_BYTES };

/* As the kernel has it in its descriptor of each page: on a line of its own. */
struct rings_ref {
	_Alignas(64) _Atomic int count;
};

struct rings_store {
	enum sim_allocator which;
	struct pcpa_heap *heap; /* or */
	struct kpcp kpcp;
	char *base;
	size_t pages;
	struct rings_ref *refs; /* [pages] */
};

struct rings_user {
	struct rings_store *store;
	struct kpcp_cache kpcp;
};

/* 0 or a negative errno, with the reason on stderr. */
int rings_store_open(struct rings_store *s, enum sim_allocator which);

/* Whether all pages are back, with a line on stderr where they aren't.  Requires:
 * no user. */
bool rings_store_whole(const struct rings_store *s);

/* The same, and closes it. */
bool rings_store_close(struct rings_store *s);

/* By the thread itself. */
void rings_user_begin(struct rings_user *u, struct rings_store *s);
void rings_user_end(struct rings_user *u);

/* NULL: none left. */
static inline void *rings_take(struct rings_user *u)
{
	if (u->store->which == SIM_KERNEL)
		return kpcp_alloc(&u->kpcp, 0);
	return pcpa_alloc(u->store->heap, 0, 0);
}

static inline void rings_give(struct rings_user *u, void *page)
{
	if (u->store->which == SIM_KERNEL)
		kpcp_free(&u->kpcp, page, 0);
	else
		pcpa_free(u->store->heap, page);
}

/* The reference count of the page that a packet lies in. */
static inline _Atomic int *rings_ref(const struct rings_store *s,
				     const void *packet)
{
	size_t offset = (size_t)((const char *)packet - s->base);

	return &s->refs[offset / RINGS_PAGE].count;
}

static inline void *rings_page(void *packet)
{
	return (char *)packet - (uintptr_t)packet % RINGS_PAGE;
}

#endif
