/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objpool.c - pools of objects: creation and end of what pcpalloc/objpool.h uses.
 * Layer 6.
 *
 * Owns: how an object lies in its block, and how many blocks there are.  Gets and puts
 * are the header's, on the thread's cache.
 *
 *   create    heap of fixed size -> blocks beyond nr_objects: taken, for ever
 *   destroy   caches drained -> no heap, whatever is out
 *
 * OP1  nr_objects blocks of the pool's order are free or out; all others are taken,
 *      so the pool is empty after as many gets as it has objects.
 * OP2  A block is the smallest that has room for an object, and its colours are as
 *      many as fit: the object ends in its block.
 * OP3  The id is the heap's, which is used once in a process, and the process's: a
 *      thread's handle of a pool is never that of one that came to its address later,
 *      nor of another process's.
 * OP4  struct pcpa_objpool may be read by processes that don't have the heap, and with
 *      heaps of their own at its address: so it says whose it is.
 *
 * Concurrency: pools are independent of each other.
 * Failure: nothing stays.  Proved by tests/unit/test_objpool.c, tests/conc/objpool.c,
 * tests/fault/test_objpool_fault.c, tests/dpdk/.
 */
#include <errno.h>
#include <pcpalloc/objpool.h>
#include <pcpalloc/stats.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "bits.h"
#include "config.h"
#include "heap.h"
#include "topo.h"

/* Lines of a page: more would repeat a first-level cache's sets. */
#define COLOURS_MAX ((size_t)64)

#define TAKE_AT_ONCE ((size_t)256)

/* Says what can't be, and is the error. */
#define refuse(heap_options, ...)                                              \
	((heap_options)->verbosity > 0 ? pcpi_sys_say("objpool: " __VA_ARGS__) \
				       : (void)0,                              \
	 -EINVAL)

/* ---- Options ------------------------------------------------------------------- */

static int too_large(const struct pcpa_objpool_options *o, size_t block_bytes)
{
	return refuse(o->heap, "object_bytes %zu and head_bytes %zu are more than a "
			       "block can have, %zu",
		      o->object_bytes, o->head_bytes, block_bytes);
}

static bool has_flags(const struct pcpa_heap_options *opts)
{
	return opts && opts->struct_size >=
			       offsetof(struct pcpa_heap_options, flags) +
				       sizeof(opts->flags);
}

/* A copy with the defaults: 0 or -EINVAL. */
static int heap_options_check(const struct pcpa_heap_options *opts,
			      struct pcpa_heap_options *heap)
{
	char error[PCPI_CONFIG_ERROR_BYTES];
	int err;

	heap->verbosity = pcpi_config_is_loud(opts);
	if (has_flags(opts) && opts->flags & PCPA_HEAP_FIXED)
		return refuse(heap, "flag fixed of the heap is for the pool to set");
	err = pcpi_config_check(opts, pcpi_sys_page_bytes(), heap, error,
				sizeof(error));
	if (err)
		return refuse(heap, "%s", error);
	if (heap->initial_bytes > 0 || heap->max_bytes > 0)
		return refuse(heap, "initial_bytes %zu and max_bytes %zu of the "
				    "heap are for the pool to set",
			      heap->initial_bytes, heap->max_bytes);
	if (heap->reserve_pages > 0)
		return refuse(heap, "reserve_pages %u of the heap: a pool has none",
			      heap->reserve_pages);
	if (heap->flags & PCPA_HEAP_COW)
		return refuse(heap, "the heap can't be cow");
	return 0;
}

/* *full: with the defaults, *heap: what full->heap points to. */
static int options_check(const struct pcpa_objpool_options *opts,
			 struct pcpa_objpool_options *full,
			 struct pcpa_heap_options *heap)
{
	int err;

	*full = (struct pcpa_objpool_options)PCPA_OBJPOOL_OPTIONS_INIT;
	*heap = (struct pcpa_heap_options)PCPA_HEAP_OPTIONS_INIT;
	if (!opts || opts->struct_size < sizeof(opts->struct_size))
		return refuse(heap, "struct_size %zu is none",
			      opts ? opts->struct_size : 0);
	memcpy(full, opts, pcpi_min(opts->struct_size, sizeof(*full)));
	err = heap_options_check(full->heap, heap);
	full->heap = heap;
	if (err)
		return err;
	if (full->nr_objects == 0 || full->object_bytes == 0)
		return refuse(heap, "nr_objects %zu of object_bytes %zu are none",
			      full->nr_objects, full->object_bytes);
	return 0;
}

/* OP2, and the colours that there is room for. */
static int layout_fill(struct pcpa_objpool *pool,
		       const struct pcpa_objpool_options *o)
{
	size_t page = pcpi_sys_page_bytes(), most = page << PCPI_MAX_ORDER;
	size_t bytes = o->head_bytes + o->object_bytes, block, colours;

	if (o->head_bytes > most || bytes < o->head_bytes || bytes > most)
		return too_large(o, most);
	block = pcpi_max(pcpi_pow2_ceil(bytes), page);
	colours = pcpi_min((block - bytes) / PCPI_CACHELINE + 1, COLOURS_MAX);
	pool->order = pcpi_log2(block / page);
	pool->head_bytes = o->head_bytes;
	pool->block_mask = block - 1;
	pool->colour_mask =
		(((size_t)1 << pcpi_log2(colours)) - 1) * PCPI_CACHELINE;
	/* The block's number, times the bytes of a line. */
	pool->colour_shift = pcpi_log2(block / PCPI_CACHELINE);
	return 0;
}

/* ---- The heap ------------------------------------------------------------------ */

/* Of the caller's node, or the nearest to it with memory; NULL where none is known. */
static const char *node_write(char *text, size_t bytes)
{
	const struct pcpi_topo *topo;
	int at = -1;

	if (pcpi_nest_enter() && !pcpi_process_setup() && !pcpi_topo_load(&topo)) {
		at = pcpi_topo_node_of_cpu(topo, pcpi_sys->cpu());
		at = pcpi_topo_nearest_with_memory(topo, at < 0 ? 0 : (unsigned)at);
	}
	pcpi_nest_leave();
	if (at < 0)
		return NULL;
	snprintf(text, bytes, "%u", topo->nodes[at].os_index);
	return text;
}

static int heap_make(struct pcpa_objpool *pool, const struct pcpa_objpool_options *o,
		     struct pcpa_heap_options *heap)
{
	size_t block = pool->block_mask + 1;
	char node[16];
	int err;

	if (o->nr_objects > SIZE_MAX / block)
		return refuse(o->heap, "nr_objects %zu of %zu bytes are more than "
				       "there are addresses", o->nr_objects, block);
	heap->initial_bytes = o->nr_objects * block;
	if (!heap->nodes)
		heap->nodes = node_write(node, sizeof(node));
	heap->flags |= PCPA_HEAP_FIXED | PCPA_HEAP_CONTENTS;
	err = pcpa_heap_create(heap, &pool->heap);
	if (err)
		return err;
	if (pool->heap->nr_zones > 1)
		err = refuse(o->heap, "a pool is on one node, and nodes %s are %u",
			     heap->nodes ? heap->nodes : "(all)",
			     pool->heap->nr_zones);
	/* Which depends on the size of the node's huge pages. */
	else if (pool->order > pool->heap->space.top_order)
		err = too_large(o, pcpi_sys_page_bytes()
					   << pool->heap->space.top_order);
	if (err)
		pcpa_heap_destroy(pool->heap);
	return err;
}

static size_t blocks_count(const struct pcpa_objpool *pool)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	pcpa_stats_read(pool->heap, -1, &s);
	return (size_t)(s.managed_pages - s.used_pages) >> pool->order;
}

/* OP1 */
static int excess_take(struct pcpa_objpool *pool, size_t nr_objects)
{
	size_t have = blocks_count(pool), some;
	void *blocks[TAKE_AT_ONCE];

	for (; have > nr_objects; have -= some) {
		some = pcpi_min(have - nr_objects, TAKE_AT_ONCE);
		if (pcpa_alloc_bulk(pool->heap, pool->order, 0, blocks, some) < some)
			return -ENOMEM;
	}
	return have < nr_objects ? -ENOMEM : 0;
}

/* -ETIMEDOUT where the drain meets a thread that is inside. */
static int heap_end(struct pcpa_heap *heap)
{
	int saved = errno, err = pcpa_heap_drain(heap);

	if (!err)
		err = pcpi_api_begin(heap);
	if (err)
		return err;
	err = pcpi_heap_destroy(heap, true);
	pcpi_api_end(saved);
	return err;
}

/* ---- Pools ---------------------------------------------------------------------- */

static int pool_make(struct pcpa_objpool *pool, const struct pcpa_objpool_options *o,
		     struct pcpa_heap_options *heap)
{
	int err = layout_fill(pool, o);

	if (!err)
		err = heap_make(pool, o, heap);
	if (err)
		return err;
	err = excess_take(pool, o->nr_objects);
	if (err) {
		heap_end(pool->heap);
		return err;
	}
	pool->nr_objects = o->nr_objects;
	pool->process = pcpi_process_id(); /* OP4 */
	pool->id = pool->process + pool->heap->id; /* OP3 */
	return 0;
}

PCPI_EXPORT int pcpa_objpool_create(const struct pcpa_objpool_options *opts,
				    struct pcpa_objpool *pool)
{
	struct pcpa_objpool made = { .heap = NULL };
	struct pcpa_objpool_options full;
	struct pcpa_heap_options heap;
	int saved = errno, err;

	err = pool ? options_check(opts, &full, &heap) : -EINVAL;
	if (!err)
		err = pool_make(&made, &full, &heap);
	if (!err)
		*pool = made;
	errno = saved;
	return err;
}

PCPI_EXPORT int pcpa_objpool_check(const struct pcpa_objpool *pool)
{
	if (!pool)
		return -EINVAL;
	return pool->process == pcpi_process_id() ? pcpi_api_check(pool->heap)
						  : -ENODEV;
}

PCPI_EXPORT size_t pcpa_objpool_count(const struct pcpa_objpool *pool)
{
	return pcpa_objpool_check(pool) ? 0 : blocks_count(pool);
}

PCPI_EXPORT int pcpa_objpool_destroy(struct pcpa_objpool *pool)
{
	int err = pool ? pcpa_objpool_check(pool) : 0;

	if (!pool || err)
		return err;
	err = heap_end(pool->heap);
	if (!err)
		*pool = (struct pcpa_objpool){ .heap = NULL };
	return err;
}
