/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops_pcpalloc.h - libpcpalloc through its public interface.
 *
 * The heap is of fixed size and populated when it opens, so that no repetition
 * pays for growth.  OPS_SIZED picks the frees that are told the order, OPS_INLINE
 * the hits of pcpalloc/inline.h.
 */
#ifndef BENCH_OPS_PCPALLOC_H
#define BENCH_OPS_PCPALLOC_H

#if OPS_INLINE
#include <pcpalloc/inline.h>
#endif
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>
#include <string.h>

#define OPS_BULK 1
#define OPS_STREAM 0
#define OPS_REMOTE 1
#define OPS_TOUCH 1
#define OPS_ORDER OPS_SIZED
#define OPS_COALESCE 1
#define OPS_COUNTERS 1
#define OPS_START 2
#define OPS_HEAPS 1
#define OPS_GROWS 1
#define OPS_RELEASE 1
#define OPS_CACHED 1

struct ops_shared {
	struct pcpa_heap *heap;
};

struct ops {
	struct pcpa_heap *heap;
#if OPS_INLINE
	struct pcpa_cache cache;
#endif
};

static inline int ops_backing_note(const struct pcpa_arena_info *a, void *arg)
{
	*(enum pcpa_backing *)arg = a->backing;
	return 1;
}

static inline int ops_open(struct ops_shared *s, size_t mib, char *text,
			   size_t size)
{
	static const char *const names[] = {"hugetlb", "thp", "base"};
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	enum pcpa_backing backing = PCPA_BACKING_BASE;
	int err;

	opts.flags = PCPA_HEAP_FIXED;
	opts.initial_bytes = mib << 20;
	opts.verbosity = 0;
	err = pcpa_heap_create(&opts, &s->heap);
	if (err) {
		snprintf(text, size, "a heap of %zu MiB: %s", mib,
			 strerror(-err));
		return -1;
	}
	pcpa_for_each_arena(s->heap, ops_backing_note, &backing);
	snprintf(text, size, "%s", names[backing]);
	return 0;
}

/* As by default: nothing is populated until it is needed. */
static inline int ops_start(struct ops_shared *s, size_t mib, char *text,
			    size_t size)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	int err;

	opts.max_bytes = mib << 20;
	opts.verbosity = 0;
	err = pcpa_heap_create(&opts, &s->heap);
	if (err)
		snprintf(text, size, "a heap that grows: %s", strerror(-err));
	return err;
}

static inline size_t ops_release(struct ops_shared *s)
{
	return pcpa_heap_trim(s->heap, 0);
}

static inline double ops_cached(struct ops_shared *s)
{
	struct pcpa_stats st = PCPA_STATS_INIT;

	if (pcpa_stats_read(s->heap, -1, &st))
		return -1;
	return (double)(st.cached_pages + st.depot_pages);
}

static inline void ops_close(struct ops_shared *s)
{
	pcpa_heap_destroy(s->heap);
}

static inline void ops_attach(struct ops *o, struct ops_shared *s)
{
	o->heap = s->heap;
#if OPS_INLINE
	o->cache = pcpa_cache_self(s->heap);
#endif
}

static inline void ops_detach(struct ops *o)
{
	pcpa_thread_flush(o->heap);
}

#if OPS_INLINE
#define OPS_CALL(name, o, ...) pcpa_cache_##name(&(o)->cache, __VA_ARGS__)
#else
#define OPS_CALL(name, o, ...) pcpa_##name((o)->heap, __VA_ARGS__)
#endif

OPS_ALWAYS void *ops_take(struct ops *o, unsigned order)
{
	return OPS_CALL(alloc, o, order, 0);
}

OPS_ALWAYS size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	return OPS_CALL(alloc_bulk, o, 0, 0, blocks, n);
}

#if OPS_SIZED
OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
{
	OPS_CALL(free_sized, o, block, order);
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	OPS_CALL(free_bulk_sized, o, 0, blocks, n);
}
#else
OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
{
	(void)order;
	OPS_CALL(free, o, block);
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	OPS_CALL(free_bulk, o, blocks, n);
}
#endif

static inline void ops_drain(struct ops_shared *s)
{
	pcpa_heap_drain(s->heap);
}

static inline void ops_counters(struct ops_shared *s, struct wire_counters *out)
{
	struct pcpa_stats st = PCPA_STATS_INIT;

	if (pcpa_stats_read(s->heap, -1, &st))
		return;
	out->taken = st.alloc_total;
	out->zone_locks = st.zone_locks;
	out->depot_gets = st.depot_gets;
	out->depot_puts = st.depot_puts;
	out->refills = st.refills;
	out->drains = st.drains;
}

#endif
