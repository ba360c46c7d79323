/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api.c - the public functions: arguments, errno, and the hot path inline.
 * Layer 6.
 *
 * Owns: the checks of what callers pass, the default heap.  Everything else is a call into the layers below.
 *
 * IF1  A bad argument changes nothing but a counter.
 * IF2  Success and free leave errno alone; a failed allocation sets it.
 * IF3  What leaves the hit counts itself in (nest.h).  A nested allocation is one
 *     with PCPA_NOWAIT, a nested free is deferred (pcp_defer.c), and all other
 *     calls are refused there.
 *
 * Proved by tests/unit/test_api.c and tests/abi/.
 */
#include <errno.h>
#include <inttypes.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>
#include <stdio.h>
#include <string.h>

#include "bits.h"
#include "api.h"
#include "bulk.h"
#include "config.h"
#include "env.h"
#include "heap.h"
#include "list.h"
#include "nest.h"
#include "rcu.h"

#define NODE_SHIFT 16
#define FLAGS_KNOWN                                                             \
	(PCPA_ZERO | PCPA_NOGROW | PCPA_THISNODE | PCPA_NOWAIT | PCPA_RESERVE)

/* ---- Heaps ------------------------------------------------------------------ */

static int create(const struct pcpa_heap_options *opts, struct pcpa_heap **out)
{
	struct pcpa_heap_options full;
	char error[PCPI_CONFIG_ERROR_BYTES];
	int err = pcpi_process_setup();

	if (err)
		return err;
	err = pcpi_config_check(opts, pcpi_sys_page_bytes(), &full, error,
				sizeof(error));
	if (!err)
		err = pcpi_env_checks(&full.flags, error, sizeof(error));
	if (err) {
		if (pcpi_config_is_loud(opts))
			pcpi_sys_say("%s", error);
		return err;
	}
	return pcpi_heap_create(&full, out);
}

PCPI_EXPORT int pcpa_heap_create(const struct pcpa_heap_options *opts,
				 struct pcpa_heap **out)
{
	int saved = errno, err;

	if (!out)
		return -EINVAL;
	err = pcpi_nest_enter() ? create(opts, out) : -EAGAIN;
	pcpi_api_end(saved);
	return err;
}

PCPI_EXPORT int pcpa_heap_destroy(struct pcpa_heap *heap)
{
	int saved = errno, err = pcpi_api_begin(heap);

	if (err)
		return err;
	err = pcpi_heap_destroy(heap, false);
	pcpi_api_end(saved);
	return err;
}

static struct pcpa_heap *default_heap; /* pcpi_once.default_heap, with: */
static int default_error;
static bool default_tried; /* a */

static void default_make(void)
{
	struct pcpa_heap_options opts;
	char error[PCPI_CONFIG_ERROR_BYTES];

	default_error = pcpi_env_options(&opts, error, sizeof(error));
	if (default_error) {
		pcpi_sys_say("%s", error);
	} else if (opts.flags & PCPA_HEAP_COW) {
		pcpi_sys_say("PCPA_FLAGS: the default heap can't be cow");
		default_error = -EINVAL;
	} else {
		default_error = create(&opts, &default_heap);
	}
}

static void default_try(void)
{
	pcpi_fork_setup(); /* where it fails, the creation does */
	pthread_mutex_lock(&pcpi_once.default_heap);
	if (!default_tried)
		default_make();
	/* release: pairs with pcpa_default_heap(). */
	pcpi_store_release(&default_tried, true);
	pthread_mutex_unlock(&pcpi_once.default_heap);
}

PCPI_EXPORT struct pcpa_heap *pcpa_default_heap(void)
{
	int saved = errno;
	bool outer;

	/* acquire: pairs with default_try(). */
	if (!pcpi_load_acquire(&default_tried)) {
		outer = pcpi_nest_enter();
		if (outer)
			default_try();
		pcpi_nest_leave();
		if (!outer) {
			errno = EAGAIN;
			return NULL;
		}
	}
	errno = default_heap ? saved : -default_error;
	return default_heap;
}

/* ---- Requests ----------------------------------------------------------------- */

/* Negative errno, or 0 with *req filled. */
static int request_check(struct pcpa_heap *heap, unsigned order, unsigned flags,
			 struct pcpi_request *req)
{
	unsigned node = flags >> NODE_SHIFT;

	if (!heap || order > heap->space.top_order ||
	    (flags & ((1u << NODE_SHIFT) - 1) & ~FLAGS_KNOWN))
		return -EINVAL;
	/* relaxed: set before the child had a second thread. */
	if (pcpi_load_relaxed(&heap->forked))
		return -ENODEV;
	*req = (struct pcpi_request){
		.heap = heap,
		.zone = node ? pcpi_heap_zone(heap, node - 1)
			     : pcpi_heap_local_zone(heap),
		.order = order,
		.flags = flags,
		.named = node != 0,
	};
	return req->zone ? 0 : -EINVAL;
}

void pcpi_api_zero(const struct pcpi_request *req, void *block)
{
	if (req->flags & PCPA_ZERO)
		memset(block, 0, (size_t)1 << (req->order +
					       req->heap->hot.page_shift));
}

int pcpi_api_shortage(const struct pcpi_request *req)
{
	return req->busy ? -EAGAIN : -ENOMEM;
}

int pcpi_api_request(struct pcpa_heap *heap, unsigned order, unsigned flags,
		     bool outer, struct pcpi_request *req)
{
	int err = request_check(heap, order, flags, req);

	if (!err && !outer) { /* IF3 */
		req->flags |= PCPA_NOWAIT;
		req->busy = true;
	}
	return err;
}

/* Negative errno, or 0 with *pfn and *req. */
static int alloc_route(struct pcpa_heap *heap, unsigned order, unsigned flags,
		       struct pcpi_request *req, uint32_t *pfn)
{
	bool outer = pcpi_nest_enter();
	int err = 0;

	*req = (struct pcpi_request){ .heap = heap };
	if (!outer || !heap || flags != 0 || !pcpi_route_at_once(heap, order, pfn)) {
		err = pcpi_api_request(heap, order, flags, outer, req);
		if (!err && pcpi_route_take(req, pfn, 1) == 0)
			err = pcpi_api_shortage(req);
	}
	pcpi_nest_leave();
	return err;
}

static PCPI_COLD void *alloc_slow(struct pcpa_heap *heap, unsigned order,
				  unsigned flags)
{
	struct pcpi_request req;
	int saved = errno, err;
	uint32_t pfn = 0;
	void *block;

	/* Cut short, or no sequences for this thread: the mark will do. */
	if (PCPI_RSEQ && heap) {
		block = pcpi_hot_alloc(&heap->hot, order, flags, true);
		if (block)
			return block;
	}
	err = alloc_route(heap, order, flags, &req, &pfn);
	if (err) {
		errno = -err;
		return NULL;
	}
	block = pcpi_space_addr(&heap->space, pfn);
	pcpi_api_zero(&req, block);
	errno = saved;
	return block;
}

PCPI_EXPORT PCPI_HOT void *pcpa_alloc(struct pcpa_heap *heap, unsigned order,
			     unsigned flags)
{
	void *block = NULL;

	if (pcpi_likely(heap != NULL))
		block = pcpi_hot_alloc(&heap->hot, order, flags, !PCPI_RSEQ);
	return pcpi_likely(block != NULL) ? block
					  : alloc_slow(heap, order, flags);
}

/* ---- Frees ------------------------------------------------------------------------ */

/* What was cut short, or a thread without sequences: the mark will do. */
static bool free_marked(struct pcpa_heap *heap, void *block, int said)
{
	if (!PCPI_RSEQ)
		return false;
	return said < 0 ? pcpi_hot_free(&heap->hot, block, true)
			: pcpi_hot_free_sized(&heap->hot, block, (unsigned)said,
					      true);
}

/* Why the block stays as it is, or NULL. */
static const char *block_free(struct pcpa_heap *heap, const void *block, int said,
			      bool outer)
{
	unsigned order = 0;
	uint32_t pfn = 0;
	const char *why = pcpi_free_fault(heap, block, &pfn, &order);

	if (why)
		return why;
	if (said >= 0 && (unsigned)said != order)
		return "of another order than said";
	if (outer) {
		if (heap->env.watched &&
		    !pcpi_checks_hold(&heap->checks, pfn, order))
			return "free already";
		pcpi_route_give(heap, pfn, order);
		return NULL;
	}
	if (!pcpi_defer_block(&heap->env, pfn, order))
		return "free already";
	/* relaxed: counter */
	pcpi_fetch_add_relaxed(&pcpi_zone_of(&heap->env, pfn)->direct_frees, 1);
	return NULL;
}

void pcpi_api_free(struct pcpa_heap *heap, void *block, int said)
{
	int saved = errno;
	const char *why;

	/* relaxed: set before the child had a second thread. */
	if (!block || !heap || pcpi_load_relaxed(&heap->forked) ||
	    pcpi_bulk_push_home(&heap->hot, (unsigned)said, said >= 0, &block,
				1) > 0 ||
	    free_marked(heap, block, said)) {
		errno = saved;
		return;
	}
	why = block_free(heap, block, said, pcpi_nest_enter());
	if (why)
		pcpi_free_refuse(heap, block, why, said);
	pcpi_api_end(saved);
}

PCPI_EXPORT PCPI_HOT void pcpa_free(struct pcpa_heap *heap, void *block)
{
	if (pcpi_likely(heap != NULL) && pcpi_hot_free(&heap->hot, block, !PCPI_RSEQ))
		return;
	pcpi_api_free(heap, block, -1);
}

PCPI_EXPORT PCPI_HOT void pcpa_free_sized(struct pcpa_heap *heap, void *block,
				 unsigned order)
{
	if (pcpi_likely(heap != NULL) &&
	    pcpi_hot_free_sized(&heap->hot, block, order, !PCPI_RSEQ))
		return;
	pcpi_api_free(heap, block, (int)pcpi_min(order, (unsigned)INT16_MAX));
}

/* ---- Contiguous ranges ------------------------------------------------------------- */

/* Negative errno, or 0 with *want filled. */
static int contig_check(struct pcpa_heap *heap, size_t pages, size_t align_pages,
			unsigned flags, struct pcpi_contig_request *want)
{
	int err = flags & PCPA_NOWAIT
			  ? -EINVAL
			  : request_check(heap, 0, flags, &want->req);
	uint64_t most = 0;
	unsigned z;

	if (err)
		return err;
	for (z = 0; z < heap->nr_zones; z++)
		most = pcpi_max(most, heap->env.zones[z].config.max_pages);
	if (pages == 0 || pages > most || !pcpi_is_pow2(align_pages) ||
	    align_pages > heap->space.bytes >> heap->hot.page_shift)
		return -EINVAL;
	want->pages = (uint32_t)pages;
	want->align_pages = align_pages;
	return 0;
}

PCPI_EXPORT void *pcpa_alloc_contig(struct pcpa_heap *heap, size_t pages,
				    size_t align_pages, unsigned flags)
{
	struct pcpi_contig_request want;
	int saved = errno;
	int err = contig_check(heap, pages, align_pages, flags, &want);
	uint32_t pfn = PCPI_NO_PFN;
	void *start;

	if (!pcpi_nest_enter() && !err)
		err = -EAGAIN;
	if (!err)
		pfn = pcpi_contig_take(&want);
	pcpi_nest_leave();
	if (pfn == PCPI_NO_PFN) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	start = pcpi_space_addr(&heap->space, pfn);
	if (flags & PCPA_ZERO)
		memset(start, 0, pages << heap->hot.page_shift);
	errno = saved;
	return start;
}

#define CONTIG_WHY_BYTES 96

/* Why a range can't be freed; NULL: it can, and is the caller's alone now. */
static const char *contig_fault(struct pcpa_heap *heap, const void *start,
				size_t pages, uint32_t *pfn, char *text)
{
	uint64_t all = heap->space.bytes >> heap->hot.page_shift;
	const char *why = pcpi_page_fault(heap, start, pfn);
	uint8_t byte = PCPI_PAGE_CONTIG;
	uint32_t have;

	if (why)
		return why;
	have = pcpi_page_contig(heap->hot.orders, *pfn, (uint32_t)(all - *pfn));
	if (have == 0)
		return "not the start of a contiguous range";
	if (have != pages) {
		snprintf(text, CONTIG_WHY_BYTES, "a range of %" PRIu32
			 " pages, not of %zu", have, pages);
		return text;
	}
	/* acquire/release: pairs with itself; of two frees one is the first. */
	return pcpi_cas_acq_rel(&heap->hot.orders[*pfn], &byte, PCPI_PAGE_GOING)
		       ? NULL
		       : "free already";
}

PCPI_EXPORT void pcpa_free_contig(struct pcpa_heap *heap, void *start,
				  size_t pages)
{
	char text[CONTIG_WHY_BYTES];
	int saved = errno;
	const char *why;
	uint32_t pfn = 0;
	bool outer;

	/* relaxed: set before the child had a second thread. */
	if (!start || !heap || pcpi_load_relaxed(&heap->forked))
		return;
	outer = pcpi_nest_enter();
	why = contig_fault(heap, start, pages, &pfn, text);
	if (why)
		pcpi_free_refuse(heap, start, why, -1);
	else
		pcpi_contig_give(heap, pfn, (uint32_t)pages, outer);
	pcpi_api_end(saved);
}

/* ---- Queries ------------------------------------------------------------------------ */

PCPI_EXPORT int pcpa_block_order(struct pcpa_heap *heap, const void *block)
{
	unsigned order;
	uint32_t pfn;

	if (!heap || !block || pcpi_free_fault(heap, block, &pfn, &order))
		return -EINVAL;
	return (int)order;
}

PCPI_EXPORT int pcpa_block_node(struct pcpa_heap *heap, const void *block)
{
	unsigned order;
	uint32_t pfn;

	if (!heap || !block || pcpi_free_fault(heap, block, &pfn, &order))
		return -EINVAL;
	return (int)pcpi_zone_of(&heap->env, pfn)->config.os_node;
}

PCPI_EXPORT unsigned pcpa_heap_max_order(const struct pcpa_heap *heap)
{
	return heap->space.top_order;
}

PCPI_EXPORT size_t pcpa_heap_page_bytes(const struct pcpa_heap *heap)
{
	return (size_t)1 << heap->hot.page_shift;
}


static int zone_arenas(struct pcpi_zone *z,
		       int (*fn)(const struct pcpa_arena_info *, void *),
		       void *arg)
{
	struct pcpi_section section;
	struct pcpi_arena *a;
	unsigned depth;
	int stop = 0;

	section = pcpi_rcu_read_lock();
	pcpi_list_each(a, &z->arenas, link) {
		struct pcpa_arena_info info;

		pcpi_arena_info(z->space, a, &info);
		depth = pcpi_nest_suspend(); /* NE3 */
		stop = fn(&info, arg);
		pcpi_nest_resume(depth);
		if (stop)
			break;
	}
	pcpi_rcu_read_unlock(section);
	return stop;
}

PCPI_EXPORT int
pcpa_for_each_arena(struct pcpa_heap *heap,
		    int (*fn)(const struct pcpa_arena_info *, void *), void *arg)
{
	unsigned z;
	int stop;

	if (!heap || !fn)
		return -EINVAL;
	stop = pcpi_api_begin(heap);
	if (stop)
		return stop;
	for (z = 0; z < heap->nr_zones && !stop; z++)
		stop = zone_arenas(&heap->env.zones[z], fn, arg);
	pcpi_nest_leave();
	return stop;
}
