/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h - one instance of the allocator, whole.  Layer 5.
 *
 * Owns: a heap's memory and the list of heaps; creation and destruction
 * (heap.c).  Its other files of this layer work on the same structure:
 *   thread.c  which thread has which cache; threads that end
 *   route.c   the road of a request that the cache couldn't serve
 *   sweep.c   draining all caches
 *   stats.c   collecting
 *   fork.c    before and after a fork
 *
 *     pcpa_heap: hot line | space (windows) | zones[] | order bytes | buddies'
 *                metadata | caches, added by threads, an RCU list
 *
 * E1  A heap that is in the list of heaps is whole.
 * E2  Caches are added and never removed while the heap lives (C6).
 * E3  id is unique in the process for ever; slot is unique among living heaps.
 *
 * Concurrency: locks HEAPS (the list and slots), DRAIN (one sweep), THREADS
 * (adding and adopting caches).  Failure: creation unwinds to nothing.
 * Proved by tests/unit/test_heap.c, tests/fault/.
 */
#ifndef PCPI_HEAP_H
#define PCPI_HEAP_H

#include <pcpalloc/stats.h>

#include "arena.h"
#include "checks.h"
#include "pcp.h"
#include "pcp_hot.h"
#include "sys/sys.h"
#include "topo.h"
#include "zone.h"

/* On demand a node's memory doubles, so that it has few arenas, but grows by no
 * more than this at a time, which populates in some 20 ms. */
#define PCPI_GROWTH_BYTES_MAX (UINT64_C(64) << 20)

struct pcpa_heap {
	struct pcpi_hot hot; /* c */

	struct pcpi_pcp_env env;
	struct pcpi_checks checks; /* where env.watched */
	const struct pcpi_topo *topo; /* c */
	struct pcpi_space space;
	unsigned nr_zones;	      /* c */
	int *topo_zone;		      /* c: [topo->nr_nodes] zone that serves a
				       * node's callers */
	unsigned *fallback;	      /* c: [nr_zones][nr_zones] */
	unsigned options_flags;	      /* c */
	unsigned verbosity;	      /* c */
	size_t arena_bytes;	      /* c: the least that a node grows by */

	bool forked;			     /* a: a child without PCPA_HEAP_COW */
	bool bad_free_said;		     /* a */
	uint64_t bad_frees, failed;	     /* a */

	struct pcpi_lock drain_lock PCPI_ALIGNED(PCPI_CACHELINE);
	struct pcpi_lock threads_lock;
	struct cds_list_head caches; /* threads_lock, RCU, add-only: E2 */
	struct cds_list_head link;   /* heaps lock */
	unsigned slot;		     /* heaps lock */

	void *memory; /* c: all that is above and the order bytes */
	size_t memory_bytes;
};

/* The list of heaps and its lock, for thread ends and forks. */
extern struct pcpi_lock pcpi_heaps_lock;
extern struct cds_list_head pcpi_heaps;

/* Before the first use of pcpi_sys on behalf of a heap, which it may replace:
 * a thread that looked earlier would race with the one that replaces it. */
int pcpi_process_setup(void);

/* opts has passed pcpi_config_check(). */
int pcpi_heap_create(const struct pcpa_heap_options *opts,
		     struct pcpa_heap **out);

/* -EBUSY while blocks are out. */
int pcpi_heap_destroy(struct pcpa_heap *heap);

/* Zone with this os number, or NULL. */
struct pcpi_zone *pcpi_heap_zone(struct pcpa_heap *heap, unsigned os_node);

/* Zone for a caller that names none: by the CPU it is on. */
struct pcpi_zone *pcpi_heap_local_zone(struct pcpa_heap *heap);

/* ---- thread.c ---- */

/* The calling thread's cache of a zone (NULL: the local one), made or adopted
 * at need; NULL where there can be none: memory is short, the thread is past
 * its end, or it is inside this function already. */
struct pcpi_cache *pcpi_thread_cache(struct pcpa_heap *heap,
				     struct pcpi_zone *zone);

/* The cache of the zone that is local to the caller; where that has changed, the
 * thread's entry follows and the old cache is flushed.  NULL as above. */
struct pcpi_cache *pcpi_thread_home(struct pcpa_heap *heap,
				    struct pcpi_zone *zone);

/* The calling thread's blocks to the depots. */
void pcpi_thread_flush(struct pcpa_heap *heap);

/* At the first heap: the key whose destructor gives caches back. */
int pcpi_thread_setup(void);

/* Around a fork: no record is half made. */
void pcpi_thread_freeze(void);
void pcpi_thread_thaw(void);

/* In a forked child: forget the cache of a heap that was not inherited, or
 * take in what the threads that are no more had in theirs. */
void pcpi_thread_forked(struct pcpa_heap *heap);

/* ---- sweep.c ---- */

/* Every cache and depot to the zones.  Waits at most wait_ns for marked
 * caches.  Returns 0 or -ETIMEDOUT; *pages moved. */
int pcpi_heap_sweep(struct pcpa_heap *heap, uint64_t wait_ns, uint64_t *pages);

/* Pages that a sweep could move for a zone (or all, NULL); may race. */
uint64_t pcpi_heap_cached_pages(struct pcpa_heap *heap,
				const struct pcpi_zone *zone);

/* ---- route.c ---- */

/* A validated request. */
struct pcpi_request {
	struct pcpa_heap *heap;
	struct pcpi_zone *zone; /* asked for, or local */
	unsigned order;
	unsigned flags;
	bool named; /* by PCPA_NODE, not by where the caller runs */

};

/* Takes up to n blocks; fewer only when everything failed.  The count. */
uint32_t pcpi_route_take(const struct pcpi_request *req, uint32_t *pfns,
			 uint32_t n);

/* Frees a checked block of a known order. */
void pcpi_route_give(struct pcpa_heap *heap, uint32_t pfn, unsigned order);

/* ---- badfree.c ---- */

/* Why a pointer can't be freed; NULL: it can, *pfn and *order are set. */
const char *pcpi_free_fault(const struct pcpa_heap *heap, const void *block,
			    uint32_t *pfn, unsigned *order);

/* Counts a free that is refused, says it once, and aborts with
 * PCPA_HEAP_CHECKS.  said: the order that the caller has named, or -1. */
void pcpi_free_refuse(struct pcpa_heap *heap, const void *block,
		      const char *why, int said);

/* ---- stats.c ---- */

/* Of one zone, or summed (NULL). */
void pcpi_stats_collect(struct pcpa_heap *heap, const struct pcpi_zone *zone,
			struct pcpa_stats *out);

/* As pcpa_stats_format(). */
int pcpi_stats_write(struct pcpa_heap *heap, enum pcpa_stats_format format,
		     char *buf, size_t size);

/* ---- fork.c ---- */

int pcpi_fork_setup(void);

#endif
