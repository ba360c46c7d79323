/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock.h - the library's mutexes and their order.  Layer 0.
 *
 * Owns: the ranks.
 *
 * L1  A thread takes locks in ascending rank only; debug builds trap on anything
 *     else.
 *
 * Two locks of one rank are held together only by
 * fork.c, which takes all of them.
 *
 *   TURN < HEAPS < CONTIG < DRAIN < THREADS < TRIM < GROW < DEPOT < ZONE
 *   < POOLS < CONSUMER < PRODUCER < NOTIFY
 *
 * Failure: none.  Proved by tests/unit/test_lock.c.
 */
#ifndef PCPI_LOCK_H
#define PCPI_LOCK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* the adaptive kind of mutex */
#endif
#include <pthread.h>

#include "base.h"

enum pcpi_lock_rank {
	PCPI_RANK_TURN = 0,    /* a subscriber of arenas runs (notify.h)     */
	PCPI_RANK_HEAPS = 1,   /* list of heaps, slots (heap.c)              */
	PCPI_RANK_CONTIG = 2,  /* one isolated range a heap (contig.c)       */
	PCPI_RANK_DRAIN = 3,   /* one drainer a heap (sweep.c)               */
	PCPI_RANK_THREADS = 4, /* adding and adopting caches (thread.c)      */
	PCPI_RANK_TRIM = 5,    /* one trim a heap (trim.c)                   */
	PCPI_RANK_GROW = 6,    /* one grower a zone (zone.c)                 */
	PCPI_RANK_DEPOT = 7,   /* one node and order's batches (depot.c)     */
	PCPI_RANK_ZONE = 8,    /* buddy and accounting (zone.c)              */
	PCPI_RANK_POOLS = 9,   /* a heap's packet pools (page_pool_table.c)  */
	PCPI_RANK_CONSUMER = 10, /* of a pool's ring (page_pool_ring.h)      */
	PCPI_RANK_PRODUCER = 11, /* of the same                              */
	PCPI_RANK_NOTIFY = 12, /* who subscribes to arenas (notify.c)        */
};

struct pcpi_lock {
	pthread_mutex_t mutex;
	unsigned rank;
};

/* Spins a little before it sleeps, where the C library can: every hold is short. */
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define PCPI_LOCK_INIT(r) { PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP, (r) }
#else
#define PCPI_LOCK_INIT(r) { PTHREAD_MUTEX_INITIALIZER, (r) }
#endif

void pcpi_lock_init(struct pcpi_lock *l, enum pcpi_lock_rank rank);

void pcpi_lock_fini(struct pcpi_lock *l);

/* Returns true when it had to wait. */
bool pcpi_lock_take(struct pcpi_lock *l);

/* Never waits, whatever else is held; true when taken. */
bool pcpi_lock_try(struct pcpi_lock *l);

void pcpi_lock_drop(struct pcpi_lock *l);

/* Around a fork: the same without ranks, since all locks are taken. */
void pcpi_lock_freeze(struct pcpi_lock *l);
void pcpi_lock_thaw(struct pcpi_lock *l);

/* Debug: true iff the calling thread holds a lock of this rank (always true
 * with NDEBUG). */
bool pcpi_lock_held(enum pcpi_lock_rank rank);

#endif
