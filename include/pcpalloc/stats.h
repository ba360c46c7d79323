/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h - what a heap has done and where its pages are.
 */
#ifndef PCPALLOC_STATS_H
#define PCPALLOC_STATS_H

#include <pcpalloc/pcpalloc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * managed_pages = free_pages + cached_pages + depot_pages + used_pages, exact
 * while the callers rest; none of the four is ever above managed_pages.
 */
struct pcpa_stats {
	size_t struct_size;
	uint64_t managed_pages;	 /* backed, by the states below            */
	uint64_t free_pages;	 /* in the buddy                           */
	uint64_t cached_pages;	 /* in the threads' caches and outboxes    */
	uint64_t depot_pages;	 /* in the depot, or freed by handlers     */
	uint64_t used_pages;	 /* handed out                             */
	uint64_t used_blocks;	 /* the same in blocks                     */
	uint64_t reserved_pages; /* address space that is not backed       */
	uint64_t min_pages;	 /* watermarks of the zone                 */
	uint64_t low_pages;
	uint64_t high_pages;
	uint64_t alloc_total; /* blocks */
	uint64_t free_total;
	uint64_t failed_total;	 /* allocations that returned NULL         */
	uint64_t bad_frees;	 /* refused frees                          */
	uint64_t zone_locks;	 /* acquisitions of the zone lock          */
	uint64_t zone_contended; /* of these, those that had to wait       */
	uint64_t drains;	 /* decisions to give pages back, all reasons */
	uint64_t drains_high;	 /* because the cache was full             */
	uint64_t drains_freer;	 /* a pure freer's full batch              */
	uint64_t drains_flush;	 /* pcpa_thread_flush() and thread end     */
	uint64_t drains_sweep;	 /* another thread drained the cache       */
	uint64_t refills;	 /* decisions to take blocks               */
	uint64_t depot_gets;	 /* batches taken from the depot           */
	uint64_t depot_puts;	 /* batches put there                      */
	uint64_t busy_skipped;	 /* claims that missed their deadline      */
	uint64_t numa_hit;	 /* blocks of the node asked for           */
	uint64_t numa_miss;	 /* blocks of this node, asked of another  */
	uint64_t numa_foreign;	 /* blocks asked here, taken from another  */
	uint64_t arenas;	 /* number of arenas                       */
	uint64_t caches;	 /* thread caches in use                   */
	uint64_t drains_decay;	 /* because time passed                    */
	uint64_t trim_failed;	 /* memory that the kernel didn't take back,
				  * kept for the next pcpa_heap_trim()     */
	uint64_t grow_vetoed;	 /* new arenas, and                        */
	uint64_t trim_vetoed;	 /* parts to be given back, that the
				  * subscriber refused (pcpa_heap_notify)  */
	uint64_t misplaced_pages; /* populated on other nodes so far, see
				  * PCPA_HEAP_BOUND                        */
};

#define PCPA_STATS_INIT \
	{ \
		sizeof(struct pcpa_stats), \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0, 0, 0, 0 \
	}

enum pcpa_stats_format {
	PCPA_STATS_ZONEINFO = 0,  /* per node: watermarks, states, pagesets */
	PCPA_STATS_BUDDYINFO = 1, /* free blocks of each order              */
	PCPA_STATS_VMSTAT = 2,	  /* counters, a line each                  */
	PCPA_STATS_JSON = 3	  /* all of it                              */
};

/*
 * Writes the heap's statistics as text into buf, as snprintf(): at most size
 * bytes, always terminated when size is not 0.  Returns the length the whole
 * text has, or -EINVAL for an unknown format.
 */
int pcpa_stats_format(struct pcpa_heap *heap, enum pcpa_stats_format format,
		      char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
