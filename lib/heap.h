/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h - one instance of the allocator, whole.  Layer 5.
 *
 * Owns: a heap's memory and the list of heaps; creation and destruction
 * (heap.c).  Its other files of this layer work on the same structure:
 *   thread.c  which thread has which cache; threads that end
 *   route.c   the road of a request that the cache couldn't serve
 *   heap_zones.c which zone serves whom
 *   contig.c  ranges of any length
 *   sweep.c   draining all caches
 *   tick.c    what is done once a second; background.c a thread for it
 *   cpus.c    processors that come and go
 *   trim.c    giving memory back
 *   subscribe.c who is told of arenas; iova.c where they are for a device
 *   nowait.c  the same road for requests that must not wait
 *   exhaust.c when a request that found nothing may sweep or grow
 *   disable.c keeping them empty
 *   stats.c   collecting
 *   fork.c    before and after a fork
 *
 *     pcpa_heap: hot line | space (windows) | zones[] | order bytes | buddies'
 *                metadata | caches, added by threads, an RCU list
 *
 * E1  A heap that is in the list of heaps is whole.
 * E2  Caches are added and never removed while the heap lives (C6).
 * E3  A heap that is gone is in no thread's table; slot is unique among living
 *     heaps, id in the process for ever.
 *
 * Concurrency: locks HEAPS (the list and slots), CONTIG, DRAIN (one sweep), THREADS
 * (adding and adopting caches), TRIM (one trim).  Failure: creation unwinds to
 * nothing.
 * Proved by tests/unit/test_heap.c, tests/fault/.
 */
#ifndef PCPI_HEAP_H
#define PCPI_HEAP_H

#include <pcpalloc/stats.h>
#include <pthread.h>

#include "arena.h"
#include "background.h"
#include "checks.h"
#include "notify.h"
#include "page_pool_table.h"
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
	struct pcpi_notify notify;
	unsigned nr_zones;	      /* c */
	int *topo_zone;		      /* c: [topo->nr_nodes] zone that serves a
				       * node's callers */
	unsigned *fallback;	      /* c: [nr_zones][nr_zones] */
	unsigned options_flags;	      /* c */
	unsigned verbosity;	      /* c */
	size_t arena_bytes;	      /* c: the least that a node grows by */

	uint64_t next_tick_ns;		     /* a, written under the drain lock */
	uint64_t cpus_seen;		     /* drain_lock: hash of a list (cpus.c) */
	struct pcpi_background background;   /* with PCPA_HEAP_BACKGROUND */

	bool forked;			     /* a: a child without PCPA_HEAP_COW */
	bool bad_free_said;		     /* a */
	uint64_t bad_frees, failed;	     /* a */

	struct pcpi_lock drain_lock PCPI_ALIGNED(PCPI_CACHELINE);
	uint64_t sweeps; /* drain_lock, read by anyone: how many have ended */
	struct pcpi_lock threads_lock;
	struct pcpi_lock trim_lock;
	struct pcpi_lock contig_lock;
	struct cds_list_head caches; /* threads_lock, RCU, add-only: E2 */
	struct pcpi_cache *adoptable; /* threads_lock: those without owner, TH1 */
	struct cds_list_head link;   /* heaps lock */
	unsigned slot;		     /* heaps lock */
	uint64_t id;		     /* c */
	unsigned pins;		     /* heaps lock: ended threads that tell */
	struct pcpi_pools pools;     /* of packets */

	void *memory; /* c: all that is above and the order bytes */
	size_t memory_bytes;
};

/* The list of heaps and its lock, for thread ends and forks. */
extern struct pcpi_lock pcpi_heaps_lock;
extern struct cds_list_head pcpi_heaps;
/* Those that are being made or destroyed, of whose files a child closes its copies. */
extern struct cds_list_head pcpi_heaps_partial;

/*
 * Held while what a process has once is made; taken before any other lock,
 * default_heap first.  Forks take them, too: a child whose parent was inside
 * would find hwloc's lock taken, or wait for a maker that it doesn't have.
 */
extern struct pcpi_once {
	pthread_mutex_t default_heap, process;
} pcpi_once;

/* Before the first use of pcpi_sys on behalf of a heap, which it may replace:
 * a thread that looked earlier would race with the one that replaces it. */
int pcpi_process_setup(void);

/* The watched heap with the smallest id above this one, or NULL; it can't be
 * destroyed until it is unpinned. */
struct pcpa_heap *pcpi_heap_pin(uint64_t above_id);

/* Lets it go, and pins the next. */
struct pcpa_heap *pcpi_heap_unpin(struct pcpa_heap *heap);

/* opts has passed pcpi_config_check(). */
int pcpi_heap_create(const struct pcpa_heap_options *opts,
		     struct pcpa_heap **out);

/* -EBUSY while there is a packet pool, or, unless with_blocks, while blocks are out. */
int pcpi_heap_destroy(struct pcpa_heap *heap, bool with_blocks);

/* ---- heap_zones.c ---- */

/* Which zone serves each node, and the others in turn.  positions: in the topology, of
 * each zone. */
void pcpi_heap_zones_fill(struct pcpa_heap *heap, const unsigned *positions);

/* Zone with this os number, or NULL. */
struct pcpi_zone *pcpi_heap_zone(struct pcpa_heap *heap, unsigned os_node);

/* Zone for a caller that names none: by the CPU it is on. */
struct pcpi_zone *pcpi_heap_local_zone(struct pcpa_heap *heap);

/* ---- thread.c ---- */

/* The calling thread's cache of a zone (NULL: that of its hits, at first the local
 * one), made or adopted at need; NULL where there can be none: memory is short, the
 * thread is past its end, or it is inside this function already. */
struct pcpi_cache *pcpi_thread_cache(struct pcpa_heap *heap,
				     struct pcpi_zone *zone);

/* In each call that is no hit and may wait, TH5: where the caller has moved to
 * another node, its hits are of that one from now on, and the old cache is flushed.
 * Returns the zone of where it is. */
struct pcpi_zone *pcpi_thread_look(struct pcpa_heap *heap);

/* The calling thread's blocks to the depots. */
void pcpi_thread_flush(struct pcpa_heap *heap);

/* The same where that frees blocks of the zone. */
void pcpi_thread_flush_for(struct pcpa_heap *heap, const struct pcpi_zone *zone);

/* Under the HEAPS lock, the callers being quiet: takes the heap out of the tables
 * of all threads, so that another heap at its address is not taken for it. */
void pcpi_thread_forget(struct pcpa_heap *heap);

/* At the first heap: the key whose destructor gives caches back. */
int pcpi_thread_setup(void);

/* Around a fork: no record is half made. */
void pcpi_thread_freeze(void);
void pcpi_thread_thaw(void);

/* In a forked child: forget the cache of a heap that was not inherited, or
 * take in what the threads that are no more had in theirs. */
void pcpi_thread_forked(struct pcpa_heap *heap);

/* ---- cpus.c ---- */

/* With the drain lock: where the online CPUs have changed, the zones' numbers
 * follow.  fell[zone]: the bounds of its caches fell, see
 * pcpi_heap_bounds_enforce(). */
void pcpi_heap_cpus_look(struct pcpa_heap *heap, bool *fell);

/* ---- sweep.c ---- */

/* Caches that a sweep has not emptied, whose owners flush at their next calls. */
struct pcpi_swept {
	unsigned late;	/* marked until the deadline */
	unsigned asked; /* not waited for: PCPA_HEAP_NO_IPI */
};

/* Every cache and depot to the zones.  Waits at most wait_ns for marked
 * caches. */
struct pcpi_swept pcpi_heap_sweep(struct pcpa_heap *heap, uint64_t wait_ns);

/* Its parts, for who holds a lock that a trace subscriber must not wait for:
 * adds to moved[zone]; tells the subscriber. */
struct pcpi_swept pcpi_sweep_run(struct pcpa_heap *heap, uint64_t wait_ns,
				 uint64_t *moved);
void pcpi_sweep_tell(struct pcpa_heap *heap, const uint64_t *moved);

/* The same for an allocation: waits for other drainers and for marks until the
 * deadline only, and leaves it at the sweep that another has ended since
 * heap->sweeps was seen_sweeps.  True: it swept; moved[zone] are the pages. */
bool pcpi_heap_sweep_until(struct pcpa_heap *heap, uint64_t seen_sweeps,
			   uint64_t deadline_ns, uint64_t *moved);

/* The bounds of a zone's caches have fallen: what they hold above them comes
 * back now, and each whose state is from before looks again at its owner's next
 * call, so that they keep to the new ones. */
void pcpi_heap_bounds_enforce(struct pcpa_heap *heap,
			      const struct pcpi_zone *zone);

/* Pages that a sweep could move for a zone (or all, NULL); may race. */
uint64_t pcpi_heap_cached_pages(struct pcpa_heap *heap,
				const struct pcpi_zone *zone);

/* Drainer: false: marks may be hidden in the processors' store buffers. */
bool pcpi_heap_owners_show(const struct pcpa_heap *heap);

/* ---- tick.c ---- */

/* Decay and idle reclaim, where a second has passed since the last. */
void pcpi_heap_tick(struct pcpa_heap *heap);

/* The same on the way of another call, which waits for no drainer. */
void pcpi_heap_tick_poll(struct pcpa_heap *heap);

/* A heap begins. */
void pcpi_heap_tick_begin(struct pcpa_heap *heap);

/* For the background thread: ticks, and returns when to come again. */
uint64_t pcpi_heap_tick_in_background(void *heap);

/* ---- trim.c ---- */

/* As pcpa_heap_trim(); its sweep waits as pcpi_heap_sweep() does. */
size_t pcpi_heap_trim(struct pcpa_heap *heap, size_t keep_bytes,
		      uint64_t wait_ns);

/* ---- subscribe.c ---- */

/* As pcpa_heap_notify(), for a heap without PCPA_HEAP_COW to begin. */
int pcpi_heap_notify(struct pcpa_heap *heap, pcpi_notify_fn *fn, void *arg);

/* ---- iova.c ---- */

/* As pcpa_virt_to_iova(). */
int pcpi_heap_iova(struct pcpa_heap *heap, const void *addr, uint64_t *out);

/* ---- disable.c ---- */

/* Of one zone or all (NULL); nests.  Returns 0 with nothing left in caches and
 * depots, or -ETIMEDOUT with the depth as it was. */
int pcpi_heap_disable(struct pcpa_heap *heap, struct pcpi_zone *zone);

/* Returns 0, or -EINVAL where no disable of a zone has returned 0 and is not yet
 * ended, and nothing changes. */
int pcpi_heap_enable(struct pcpa_heap *heap, struct pcpi_zone *zone);

/* In a forked child: the depth of disables whose threads are no more. */
void pcpi_heap_disable_forked(struct pcpa_heap *heap);

/* Under the threads lock: whether hits must stay out of a cache of the zone. */
bool pcpi_heap_hits_off(const struct pcpa_heap *heap,
			const struct pcpi_zone *zone);

/* A validated request. */
struct pcpi_request {
	struct pcpa_heap *heap;
	struct pcpi_zone *zone; /* asked for, or local */
	unsigned order;
	unsigned flags;
	bool named; /* by PCPA_NODE, not by where the caller runs */
	uint64_t deadline_ns; /* exhaust.c: of its sweeps; 0: none yet */
	bool busy; /* nowait.c: something was not looked at */
};

/* ---- exhaust.c ---- */

/* Sweeps for a request that found too little in the zone, if that is due; true:
 * look again. */
bool pcpi_exhaust_sweep(struct pcpi_request *req, struct pcpi_zone *zone);

/* Grows the zone for n blocks, unless that failed a moment ago; true: look again.
 * seen_managed as for pcpi_zone_grow(). */
bool pcpi_exhaust_grow(struct pcpi_request *req, struct pcpi_zone *zone,
		       uint64_t seen_managed, uint64_t n);

/* ---- nowait.c ---- */

/* As pcpi_route_take(), without a wait or a system call; req->busy says whether
 * that left something out. */
uint32_t pcpi_nowait_take(struct pcpi_request *req, uint32_t *pfns, uint32_t n);

/* ---- route.c ---- */

/* Refills the thread's cache and takes a block, if that can be done in the shortest
 * way; false: nothing was done. */
bool pcpi_route_at_once(struct pcpa_heap *heap, unsigned order, uint32_t *pfn);

/* Takes up to n blocks; fewer only when everything failed.  The count. */
uint32_t pcpi_route_take(struct pcpi_request *req, uint32_t *pfns, uint32_t n);

/* Whether n blocks are more than the thread's cache may hold. */
bool pcpi_route_is_large(const struct pcpi_request *req, size_t n);

/* Of so many, the part that the zone has free: past cache and depot. */
uint32_t pcpi_route_take_past(struct pcpi_request *req, uint32_t *pfns,
			      uint32_t n);

/* Frees a checked block of a known order. */
void pcpi_route_give(struct pcpa_heap *heap, uint32_t pfn, unsigned order);

/* ---- contig.c ---- */

/* A validated request for a range; req.order is not used. */
struct pcpi_contig_request {
	struct pcpi_request req;
	uint32_t pages;
	uint64_t align_pages; /* a power of two */
};

/* The first page of a range that is handed out, or PCPI_NO_PFN. */
uint32_t pcpi_contig_take(const struct pcpi_contig_request *want);

/* Frees a checked range, which nobody else frees; outer: not nested. */
void pcpi_contig_give(struct pcpa_heap *heap, uint32_t pfn, uint32_t pages,
		      bool outer);

/* ---- badfree.c ---- */

/* Why a pointer is no page of the heap; NULL: it is, *pfn is set. */
const char *pcpi_page_fault(const struct pcpa_heap *heap, const void *block,
			    uint32_t *pfn);

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

/* A number that, by chance of 2^-64, no other process has, children of fork() included
 * (of _Fork() and clone() not, which call no handlers); never 0. */
uint64_t pcpi_process_id(void);

#endif
