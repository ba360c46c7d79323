/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * background.h - a thread that does something now and then.  Layer 2.
 *
 * Owns: the thread "pcpalloc" of a heap with PCPA_HEAP_BACKGROUND, which most
 * heaps haven't.  It has all signals blocked and sleeps between calls of the
 * heap's function, with no lock of the heap.
 *
 * BG1  No thread outlives pcpi_background_stop().
 * BG2  A forked child has none: with PCPA_HEAP_COW its slow paths and
 *     pcpa_heap_tick() tick there, as in heaps without the flag.
 *
 * Concurrency: a mutex of its own, outside the ranks, under which nothing is
 * taken.  Failure: start says so.  Proved by tests/unit/test_tick.c,
 * tests/conc/tick.c.
 */
#ifndef PCPI_BACKGROUND_H
#define PCPI_BACKGROUND_H

#include <pthread.h>

#include "base.h"

struct pcpi_background {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	pthread_t thread;
	uint64_t (*work)(void *arg); /* c */
	void *arg;		     /* c */
	bool running;		     /* who starts, stops and forks */
	bool stop;		     /* mutex */
};

/* Calls work(arg), which says after how many nanoseconds it wants to be called
 * again, until the thread is stopped.  Returns 0 or a negative errno. */
int pcpi_background_start(struct pcpi_background *b, uint64_t (*work)(void *arg),
			  void *arg);

/* Does nothing where there is no thread. */
void pcpi_background_stop(struct pcpi_background *b);

/* In a forked child: BG2. */
void pcpi_background_forked(struct pcpi_background *b);

#endif
