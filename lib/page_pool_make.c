/* SPDX-License-Identifier: BSD-2-Clause */
/* page_pool_make.c - creation, the layout of buffers, owners; see page_pool.h. */
#include <errno.h>
#include <string.h>

#include "api.h"
#include "bits.h"
#include "page_pool.h"

#define NODE_SHIFT 16
#define ALLOC_FLAGS                                                             \
	(PCPA_THISNODE | PCPA_NOGROW | PCPA_NOWAIT | PCPA_RESERVE |             \
	 ~0u << NODE_SHIFT)

/* ---- Layout ---------------------------------------------------------------- */

/* Says what can't be, and is the error. */
#define refuse(heap, ...)                                                      \
	((heap)->verbosity > 0 ? pcpi_sys_say("pool: " __VA_ARGS__) : (void)0, \
	 -EINVAL)

/* As many as there is room for beside `need` bytes of a page. */
static uint32_t colours_for(const struct pcpa_pool_options *o, size_t page_bytes,
			    size_t need)
{
	uint32_t colours = PCPI_POOL_COLOURS;

	if (o->flags & PCPA_POOL_NO_COLOUR ||
	    o->align_bytes > PCPI_POOL_COLOUR_BYTES)
		return 1;
	while (colours > 1 &&
	       (colours - 1) * PCPI_POOL_COLOUR_BYTES > page_bytes - need)
		colours /= 2;
	return colours;
}

static int layout_fill(struct pcpa_pool *pool, const struct pcpa_heap *heap,
		       const struct pcpa_pool_options *o)
{
	size_t page = (size_t)1 << (heap->hot.page_shift + o->order);
	size_t align = o->align_bytes;
	size_t head = (o->headroom_bytes + align - 1) & ~(align - 1), need;
	uint32_t colours;

	if (o->headroom_bytes > page || o->tailroom_bytes > page ||
	    o->data_bytes > page)
		need = SIZE_MAX;
	else
		need = head + o->tailroom_bytes +
		       (o->data_bytes ? o->data_bytes : 1);
	if (need > page)
		return refuse(heap, "headroom_bytes %zu, data_bytes %zu and "
			      "tailroom_bytes %zu are more than a page of %zu",
			      o->headroom_bytes, o->data_bytes,
			      o->tailroom_bytes, page);
	colours = colours_for(o, page, need);
	pool->colour_mask = colours - 1;
	pool->align_bytes = align;
	pool->page_bytes = page;
	pool->headroom_bytes = head;
	pool->tailroom_bytes = o->tailroom_bytes;
	pool->data_bytes = page - (colours - 1) * PCPI_POOL_COLOUR_BYTES - head -
			   o->tailroom_bytes;
	return 0;
}

/* ---- Options ----------------------------------------------------------------- */

/* *full: with the defaults.  0 or -EINVAL. */
static int options_check(struct pcpa_heap *heap,
			 const struct pcpa_pool_options *opts,
			 struct pcpa_pool_options *full)
{
	unsigned node;

	*full = (struct pcpa_pool_options)PCPA_POOL_OPTIONS_INIT;
	if (opts && opts->struct_size < sizeof(opts->struct_size))
		return refuse(heap, "struct_size %zu is none", opts->struct_size);
	if (opts)
		memcpy(full, opts, pcpi_min(opts->struct_size, sizeof(*full)));
	if (full->align_bytes == 0)
		full->align_bytes = PCPI_CACHELINE;
	if (full->flags & ~PCPA_POOL_NO_COLOUR)
		return refuse(heap, "unknown flags %#x", full->flags);
	if (full->order > heap->space.top_order)
		return refuse(heap, "order %u is above the heap's %u",
			      full->order, heap->space.top_order);
	if (full->alloc_flags & ~ALLOC_FLAGS)
		return refuse(heap, "unknown alloc_flags %#x", full->alloc_flags);
	node = full->alloc_flags >> NODE_SHIFT;
	if (node && !pcpi_heap_zone(heap, node - 1))
		return refuse(heap, "the heap doesn't use node %u", node - 1);
	if (!pcpi_is_pow2(full->align_bytes) ||
	    full->align_bytes >> full->order > (size_t)1 << heap->hot.page_shift)
		return refuse(heap, "align_bytes %zu is no power of two up to a "
			      "page", full->align_bytes);
	return 0;
}

/* ---- Creation ------------------------------------------------------------------ */

uint32_t pcpi_pool_ring_size(unsigned asked)
{
	return asked == 0 ? PCPI_POOL_RING_SLOTS
			  : pcpi_min(asked, PCPI_POOL_RING_MAX);
}

void **pcpi_pool_slots_map(uint32_t slots, size_t *bytes)
{
	size_t page = pcpi_sys_page_bytes();
	void *p;

	*bytes = (slots * sizeof(void *) + page - 1) & ~(page - 1);
	if (pcpi_sys->map_meta(*bytes, &p))
		return NULL;
	pcpi_sys->name(p, *bytes, "pcpalloc:pool");
	return p;
}

/* Not at the begin of a page, where packets' headers are. */
static struct pcpa_pool *pool_map(void)
{
	size_t page = pcpi_sys_page_bytes();
	size_t bytes = PCPI_POOL_MAP_OFFSET + sizeof(struct pcpa_pool);
	struct pcpa_pool *pool;
	void *p;

	bytes = (bytes + page - 1) & ~(page - 1);
	if (pcpi_sys->map_meta(bytes, &p))
		return NULL;
	pcpi_sys->name(p, bytes, "pcpalloc:pool");
	pool = (struct pcpa_pool *)(void *)((char *)p + PCPI_POOL_MAP_OFFSET);
	pool->bytes = bytes;
	return pool;
}

static void pool_fill(struct pcpa_pool *pool, struct pcpa_heap *heap,
		      const struct pcpa_pool_options *o)
{
	unsigned node = o->alloc_flags >> NODE_SHIFT;

	pool->heap = heap;
	pool->base = heap->hot.base;
	pool->page_shift = heap->hot.page_shift;
	pool->order = o->order;
	pool->tail_mask = (1u << o->order) - 1;
	pool->zone = node ? pcpi_heap_zone(heap, node - 1) : NULL;
	pool->alloc_flags = o->alloc_flags;
	pool->checked = heap->options_flags & PCPA_HEAP_CHECKS;
	pool->claims = 1;
	if (heap->env.exchange || heap->options_flags & PCPA_HEAP_NO_IPI)
		pool->parts = PCPI_PARTS_SHARED; /* PP6 */
	pcpi_pool_count_take(&pool->count_out, 1); /* PP3 */
}

static int pool_make(struct pcpa_heap *heap, const struct pcpa_pool_options *o,
		     struct pcpa_pool **out)
{
	uint32_t size = pcpi_pool_ring_size(o->ring_slots);
	struct pcpa_pool *pool = pool_map();
	void **slots;
	int err;

	if (!pool)
		return -ENOMEM;
	pool_fill(pool, heap, o);
	err = layout_fill(pool, heap, o);
	if (err)
		goto pool_unmap;
	slots = pcpi_pool_slots_map(size, &pool->slots_bytes);
	err = -ENOMEM;
	if (!slots)
		goto pool_unmap;
	pcpi_pool_ring_init(&pool->ring, slots, size);
	err = pcpi_pools_add(&heap->pools, pool,
			     heap->space.bytes >> heap->hot.page_shift);
	if (err)
		goto ring_end;
	*out = pool;
	return 0;
ring_end:
	pcpi_pool_ring_fini(&pool->ring);
	pcpi_sys->unmap(slots, pool->slots_bytes);
pool_unmap:
	pcpi_sys->unmap((char *)pool - PCPI_POOL_MAP_OFFSET, pool->bytes);
	return err;
}

PCPI_EXPORT int pcpa_pool_create(struct pcpa_heap *heap,
				 const struct pcpa_pool_options *opts,
				 struct pcpa_pool **out)
{
	struct pcpa_pool_options full;
	int saved = errno, err;

	if (!out)
		return -EINVAL;
	err = pcpi_api_begin(heap);
	if (err)
		return err;
	err = options_check(heap, opts, &full);
	if (!err)
		err = pool_make(heap, &full, out);
	pcpi_api_end(saved);
	return err;
}

/* ---- Owners -------------------------------------------------------------------- */

static void hits_begin(struct pcpa_pool *pool)
{
	/* relaxed: for this thread, which is told by its own address. */
	pcpi_store_relaxed(&pool->hit_owner,
			   pool->checked ? NULL : pcpi_pool_self()); /* PP5 */
}

bool pcpi_pool_own(struct pcpa_pool *pool)
{
	const void *none = NULL;

	if (pcpi_pool_owned(pool))
		return true;
	/* acquire/release: pairs with pcpa_pool_detach(). */
	if (!pcpi_cas_acq_rel(&pool->owner, &none, pcpi_pool_self()))
		return false;
	hits_begin(pool);
	return true;
}

int pcpi_pool_begin(struct pcpa_pool *pool)
{
	if (!pool)
		return -EINVAL;
	/* relaxed: set before the child had a second thread. */
	if (pcpi_load_relaxed(&pool->heap->forked))
		return -ENODEV;
	return pcpi_pool_own(pool) ? 0 : -EPERM;
}

PCPI_EXPORT int pcpa_pool_attach(struct pcpa_pool *pool)
{
	if (!pool)
		return -EINVAL;
	/* relaxed: set before the child had a second thread. */
	if (pcpi_load_relaxed(&pool->heap->forked))
		return -ENODEV;
	/* relaxed: that the last one is done the caller knows by other means. */
	pcpi_store_relaxed(&pool->owner, pcpi_pool_self());
	hits_begin(pool);
	return 0;
}

PCPI_EXPORT int pcpa_pool_detach(struct pcpa_pool *pool)
{
	int err = pcpi_pool_begin(pool);
	uint32_t left;

	if (err)
		return err;
	pcpi_pool_frag_end(pool);
	left = pcpi_pool_ring_unconsume(&pool->ring, pool->cache, pool->count);
	if (left > 0)
		pcpi_pool_let_go(pool, pool->cache, left);
	/* relaxed: the owner's. */
	pcpi_store_relaxed(&pool->count, 0);
	pcpi_store_relaxed(&pool->hit_owner, NULL);
	/* release: pairs with pcpi_pool_own(). */
	pcpi_store_release(&pool->owner, NULL);
	return 0;
}

PCPI_EXPORT int pcpa_pool_resize(struct pcpa_pool *pool, unsigned ring_slots)
{
	uint32_t size = pcpi_pool_ring_size(ring_slots), left;
	int err = pcpi_pool_begin(pool);
	void **slots, **old;
	size_t bytes;

	if (err)
		return err;
	slots = pcpi_pool_slots_map(size, &bytes);
	if (!slots)
		return -ENOMEM;
	left = pcpi_pool_ring_resize(&pool->ring, slots, size, &old);
	if (left > 0)
		pcpi_pool_let_go(pool, old, left);
	pcpi_sys->unmap(old, pool->slots_bytes);
	pool->slots_bytes = bytes;
	return 0;
}
