/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock.c - see lock.h.
 *
 * A mutex that spins a little before it sleeps: every hold is a few dozen to a
 * few hundred nanoseconds (D8), far below the cost of a sleep.  Debug builds
 * count the held ranks in one thread-local word, and trap when a rank is taken that
 * is not above all held ones (L1).  A try-lock may take a second of a rank, and does
 * where a signal handler calls.
 */
#define _GNU_SOURCE
#include "lock.h"

#include "check.h"

#ifdef NDEBUG
#define note_take(rank) ((void)(rank))
#define note_drop(rank) ((void)(rank))
#define rank_allowed(rank) true
#else
static __thread uint64_t held_ranks __attribute__((tls_model("initial-exec")));

/* 4 bits a rank, for their number. */
#define ONE(rank) (UINT64_C(1) << 4 * (rank))

static void note_take(unsigned rank)
{
	held_ranks += ONE(rank);
}

static bool rank_allowed(unsigned rank)
{
	return held_ranks >> 4 * rank == 0;
}

static void note_drop(unsigned rank)
{
	PCPA_ASSERT(held_ranks & 15 * ONE(rank));
	held_ranks -= ONE(rank);
}
#endif

void pcpi_lock_init(struct pcpi_lock *l, enum pcpi_lock_rank rank)
{
	static const struct pcpi_lock fresh = PCPI_LOCK_INIT(0);

	*l = fresh;
	l->rank = rank;
}

void pcpi_lock_fini(struct pcpi_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

bool pcpi_lock_take(struct pcpi_lock *l)
{
	bool waited = false;

	PCPA_ASSERT(rank_allowed(l->rank)); /* L1 */
	if (pthread_mutex_trylock(&l->mutex) != 0) {
		waited = true;
		PCPA_TRAP(pthread_mutex_lock(&l->mutex) == 0);
	}
	note_take(l->rank);
	return waited;
}

bool pcpi_lock_try(struct pcpi_lock *l)
{
	if (pthread_mutex_trylock(&l->mutex) != 0)
		return false;
	note_take(l->rank);
	return true;
}

void pcpi_lock_drop(struct pcpi_lock *l)
{
	note_drop(l->rank);
	PCPA_TRAP(pthread_mutex_unlock(&l->mutex) == 0);
}

void pcpi_lock_freeze(struct pcpi_lock *l)
{
	PCPA_TRAP(pthread_mutex_lock(&l->mutex) == 0);
}

void pcpi_lock_thaw(struct pcpi_lock *l)
{
	PCPA_TRAP(pthread_mutex_unlock(&l->mutex) == 0);
}

bool pcpi_lock_held(enum pcpi_lock_rank rank)
{
#ifdef NDEBUG
	(void)rank;
	return true;
#else
	return held_ranks & 15 * ONE(rank);
#endif
}
