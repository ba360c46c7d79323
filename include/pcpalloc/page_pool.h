/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool.h - packet buffers: pages of a heap that come back to the thread that
 * receives, by the rules of the page_pool of Linux.
 *
 * One thread, the owner, gets buffers; it has a cache of 128 of them that costs a
 * few loads and stores.  Any thread puts: the owner into the cache, others into a
 * ring, from which the owner refills its cache.  A buffer that has no place there
 * goes back to the heap.
 *
 *     owner    get <- cache (128, the last put first) <- ring <- heap, 64 at once
 *              put -> cache, else as others
 *     others   put -> ring (1024), else -> heap
 *
 * Unlike the blocks of a heap a page keeps a few things in a pool: its layout, its
 * place in fragments, who else has a reference.  They lie in an array of their own;
 * nothing is ever written into a page, free or not.
 *
 * A buffer is a page of the pool's, a block of 2^order base pages, and is named by
 * any address in it: where a call below takes `buf`, the packet's data will do.
 *
 *     page                                                    next page
 *     |<- colour ->|<- headroom ->|<- data ->|<- tailroom ->|    |
 *                  buf            buf + headroom_bytes
 *
 * Colours: pages begin at multiples of 4 KiB, so the first lines of all of them share
 * one of 64 sets of a first-level cache, and a burst of packets' headers drives
 * itself out of it.  So buffers begin at one of 16 lines, which one depends on
 * the page.  It costs 960 bytes of the page; fewer lines are used where headroom,
 * data and tailroom ask for more, none with PCPA_POOL_NO_COLOUR or an alignment
 * above 64.
 *
 * Concurrency: "owner" marks calls of the owner's side, which one thread at a time
 * makes: the first that does becomes the owner, and stays it until
 * pcpa_pool_detach(), when the next may come.  Another thread's call of this side is
 * refused with EPERM; pcpa_pool_attach() takes over from a thread that has ended.
 * All other calls may be made by any thread at any time as long as the pool exists.
 * No call of this header may be made in a signal handler, nor in one that interrupted
 * another.
 *
 * In a forked child of a heap without PCPA_HEAP_COW gets fail with ENODEV, and puts
 * do nothing.  With it the pool is the child's, too, whose thread may attach.
 */
#ifndef PCPALLOC_PAGE_POOL_H
#define PCPALLOC_PAGE_POOL_H

#include <pcpalloc/pcpalloc.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pcpa_pool;

/* Buffers begin where their page does. */
#define PCPA_POOL_NO_COLOUR 0x01u

/* Start from PCPA_POOL_OPTIONS_INIT; zero means the default everywhere. */
struct pcpa_pool_options {
	size_t struct_size;
	unsigned flags;	      /* PCPA_POOL_* */
	unsigned order;	      /* of a page; 0: one base page */
	/* Of each allocation: PCPA_NODE(), PCPA_THISNODE, PCPA_NOGROW, PCPA_NOWAIT,
	 * PCPA_RESERVE. A page that comes from the reserve is not kept for the next packet. */
	unsigned alloc_flags;
	unsigned ring_slots;  /* 0: 1024; more than 16384: 16384 */
	size_t headroom_bytes; /* before the data; rounded up to align_bytes */
	size_t tailroom_bytes; /* behind it */
	/* At least so much room for data; 0: what the page has beside 16 colours. */
	size_t data_bytes;
	/* Of the data, and of fragments: a power of two up to the page's size;
	 * 0: 64. */
	size_t align_bytes;
};

#define PCPA_POOL_OPTIONS_INIT                                                 \
	{                                                                      \
		sizeof(struct pcpa_pool_options), 0u, 0u, 0u, 0u, 0u, 0u, 0u, 0u \
	}

/*
 * Makes a pool of pages of the heap; takes none yet.  Returns 0, or a negative errno
 * with *out untouched: -EINVAL for what can't be (named on stderr where the heap's
 * verbosity is 1): an unknown flag, an order above the heap's, a node it doesn't use,
 * an alignment that is no power of two or above the page's size, rooms that together
 * are more than a page; -ENOMEM; -ENOSPC with 4,095 pools of the heap; -ENODEV as
 * above; -EAGAIN in a signal handler.
 * *opts may be NULL for defaults.  The heap can't be destroyed while it has a pool.
 * Cost: two mappings; at a heap's first pool 16 bytes of address space a page of
 * the heap's maximum.
 */
int pcpa_pool_create(struct pcpa_heap *heap, const struct pcpa_pool_options *opts,
		     struct pcpa_pool **out);

/* A second part of the program uses the pool, and will destroy it, too: the last
 * of these destroys does it. */
void pcpa_pool_use(struct pcpa_pool *pool);

/*
 * Ends a pool: what is in its cache and ring goes back to the heap.  It never waits.
 * Returns 0: the pool is gone; or the number of pages that are still out: the
 * pool lives until the last of them is put or, with a reference, has left, and is
 * gone then.  Until then only puts and references of these are allowed.  -EBUSY: there
 * is another destroy to come (pcpa_pool_use()).  -ENODEV as above; 0 without a pool.
 * A pool that still waits after 60 s tells so on stderr, once a minute, where the heap's
 * verbosity is 1: by the heap's ticks (pcpa_heap_tick()), and by puts.
 * Requires that the owner is inside no call of this header on the pool, and makes none
 * of its side any more.
 */
int pcpa_pool_destroy(struct pcpa_pool *pool);

/* ---- The owner's side ------------------------------------------------------ */

/*
 * Owner: a buffer, or NULL with errno: as pcpa_alloc() of the page, or EPERM; EINVAL
 * without a pool.  The last that was put into the cache; else one of up to 64 that
 * come from the ring; else one of 64 that come from the heap by one bulk call (of
 * order 1 and above: one).  A page of another node than the pool's in the
 * ring (without PCPA_NODE(): than the caller's) goes back to the heap, and ends the
 * refill.
 * Cost: a hit takes no lock and no atomic read-modify-write.
 */
void *pcpa_pool_get(struct pcpa_pool *pool);

/* Owner: stores up to n in bufs[0..n-1], as so many pcpa_pool_get() would, and
 * returns how many; fewer than n only where that fails, with errno set. */
size_t pcpa_pool_get_bulk(struct pcpa_pool *pool, void **bufs, size_t n);

/*
 * Owner: a part of a page, several of which have one: two of 2048 bytes lie at 0 and
 * 2048 of a page of 4096, and the third in the next page.  Rounded up to align_bytes.
 * *offset, which may be NULL, is its place in the page.  Each part is put by itself,
 * and the page goes on when all are back.  No colour, headroom or tailroom: they are in
 * `bytes`.  NULL with errno as pcpa_pool_get(), EINVAL also for 0 bytes or more than a
 * page.
 */
void *pcpa_pool_get_frag(struct pcpa_pool *pool, size_t bytes, size_t *offset);

/*
 * Owner: another number of slots (0: 1024; at most 16384) for the ring.  What
 * there is no room for goes back to the heap.  Returns 0, -ENOMEM, -EPERM, -ENODEV
 * as above, or -EINVAL without a pool.
 */
int pcpa_pool_resize(struct pcpa_pool *pool, unsigned ring_slots);

/*
 * Owner: no longer; the next thread that gets is.  What is in the cache goes to
 * the front of the ring, and what has no room there to the heap.  Returns 0, -EPERM,
 * -ENODEV as above, or -EINVAL without a pool.
 */
int pcpa_pool_detach(struct pcpa_pool *pool);

/*
 * Makes the calling thread the owner.  Requires that the last one has ended or will make
 * no further call of this header on the pool, and that this is known to the caller (it
 * has joined it, or been told).  Returns 0, -ENODEV as above, or -EINVAL without a pool.
 */
int pcpa_pool_attach(struct pcpa_pool *pool);

/* ---- Everybody's ------------------------------------------------------------ */

/*
 * Gives a buffer, or a fragment, back: the owner's to the cache, others' to the ring,
 * and to the heap where that is full, somebody has a further reference, or the page is
 * one of the reserve.  NULL is allowed.  What is no buffer of the pool is counted
 * (bad_puts), reported once and changes nothing; so is, with PCPA_HEAP_CHECKS only, a
 * buffer that is put twice, and there the process aborts.
 * Cost: the owner's: a hit as above; others': the ring's lock.  Parts of a page are
 * counted without atomic operations until another thread than the owner puts one while
 * further ones are out: that put interrupts once, as a drain does, and waits for the
 * owner to leave a put (not with PCPA_HEAP_NO_IPI).
 */
void pcpa_pool_put(struct pcpa_pool *pool, void *buf);

/*
 * The same for bufs[0..n-1] of any pools of the heap, NULLs skipped: pool by pool, under
 * one lock each.  What is in bufs[] afterwards has no meaning.  What is no buffer of any is
 * refused as by pcpa_free(), and counted there (bad_frees).
 */
void pcpa_pool_put_bulk(struct pcpa_heap *heap, void **bufs, size_t n);

/*
 * One more reference to a buffer that the caller has: it may be read after it was put,
 * until pcpa_pool_unref().  A page that is put while somebody has a reference is not
 * used again: it leaves the pool (recycle_released_ref), and goes to the heap with the
 * last reference, be the pool there or not.  Returns 0, or -EINVAL for what is no
 * buffer.
 */
int pcpa_pool_ref(struct pcpa_heap *heap, void *buf);

/* Ends it.  Returns 0, or -EINVAL for what nobody had a reference to. */
int pcpa_pool_unref(struct pcpa_heap *heap, void *buf);

/* ---- Queries ------------------------------------------------------------------ */

/* How a buffer of the pool is made up. */
struct pcpa_pool_info {
	size_t struct_size;
	size_t page_bytes;
	size_t headroom_bytes; /* from the buffer to its data */
	size_t data_bytes;     /* room for data, all there is */
	size_t tailroom_bytes;
	unsigned colours;    /* 1: none */
	unsigned ring_slots;
};

#define PCPA_POOL_INFO_INIT                                                    \
	{                                                                      \
		sizeof(struct pcpa_pool_info), 0u, 0u, 0u, 0u, 0u, 0u          \
	}

/* Fills *out, whose struct_size the caller has set.  Returns 0 or -EINVAL. */
int pcpa_pool_info_read(const struct pcpa_pool *pool, struct pcpa_pool_info *out);

/* Counters since the creation, each monotone; exact while the callers rest. */
struct pcpa_pool_stats {
	size_t struct_size;
	uint64_t alloc_fast;	/* from the cache                          */
	uint64_t alloc_slow;	/* by a bulk call of the heap, each once   */
	uint64_t alloc_slow_ho; /* pages of order 1 and above              */
	uint64_t alloc_empty;	/* the ring had nothing                    */
	uint64_t alloc_refill;	/* the ring refilled the cache             */
	uint64_t alloc_waive;	/* pages of the ring of a wrong node       */
	uint64_t recycle_cached;
	uint64_t recycle_cache_full; /* then to the ring                    */
	uint64_t recycle_ring;
	uint64_t recycle_ring_full; /* then to the heap; a bulk put once   */
	uint64_t recycle_released_ref; /* to the heap: reference, reserve  */
	uint64_t bad_puts;
	/* Pages that came from the heap and went back, modulo 2^32; their
	 * difference; and how many of these are in the cache. */
	uint32_t hold, release;
	int32_t inflight;
	uint32_t cached;
};

#define PCPA_POOL_STATS_INIT                                                   \
	{                                                                      \
		sizeof(struct pcpa_pool_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0, 0, 0, 0, 0                                          \
	}

/* Fills *out, whose struct_size the caller has set.  Returns 0 or -EINVAL. */
int pcpa_pool_stats_read(const struct pcpa_pool *pool,
			 struct pcpa_pool_stats *out);

#ifdef __cplusplus
}
#endif

#endif
