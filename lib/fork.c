/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork.c - before and after a fork.  Layer 5, part of heap.h.
 *
 * Owns: the process's fork handlers.
 *
 *   prepare  all locks of all heaps in rank order, so that no other thread is
 *            inside a list, a depot or a buddy when the copy is made
 *   parent   gives them back
 *   child    gives them back; a heap without PCPA_HEAP_COW is marked, its calls
 *            fail with ENODEV (its arenas were not inherited); one with it takes
 *            in the caches of the threads that did not survive
 *
 * K1  The child's thread is the one that took the locks, so it may drop them.
 * K2  A cache that another thread was inside of is consistent, because ring
 *     operations commit with one store (C5); what the thread had in its hand,
 *     a block or a batch between ring and depot, stays in use.
 *
 * Cost: some 20 lock operations a heap and node.
 * Proved by tests/conc/fork.c.
 */
#include <errno.h>
#include <pthread.h>

#include "heap.h"
#include "list.h"
#include "rcu.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int error;

static void zone_freeze(struct pcpi_zone *z)
{
	unsigned o;

	pcpi_lock_freeze(&z->grow_lock);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pcpi_lock_freeze(&z->depots[o].lock);
	for (o = 0; z->quarantine && o <= PCPI_MAX_ORDER; o++)
		pcpi_lock_freeze(&z->quarantine->queues[o].lock);
	pcpi_lock_freeze(&z->lock);
}

static void zone_thaw(struct pcpi_zone *z)
{
	unsigned o;

	pcpi_lock_thaw(&z->lock);
	for (o = 0; z->quarantine && o <= PCPI_MAX_ORDER; o++)
		pcpi_lock_thaw(&z->quarantine->queues[o].lock);
	for (o = PCPI_PCP_ORDERS; o-- > 0;)
		pcpi_lock_thaw(&z->depots[o].lock);
	pcpi_lock_thaw(&z->grow_lock);
}

static void prepare(void)
{
	struct pcpa_heap *h;
	unsigned z;

	pcpi_lock_freeze(&pcpi_heaps_lock);
	pcpi_list_each(h, &pcpi_heaps, link) {
		pcpi_lock_freeze(&h->drain_lock);
		pcpi_lock_freeze(&h->threads_lock);
		for (z = 0; z < h->nr_zones; z++)
			zone_freeze(&h->env.zones[z]);
	}
	pcpi_thread_freeze();
	urcu_bp_before_fork();
}

static void locks_thaw(void)
{
	struct pcpa_heap *h;
	unsigned z;

	pcpi_thread_thaw();
	pcpi_list_each(h, &pcpi_heaps, link) {
		for (z = h->nr_zones; z-- > 0;)
			zone_thaw(&h->env.zones[z]);
		pcpi_lock_thaw(&h->threads_lock);
		pcpi_lock_thaw(&h->drain_lock);
	}
	pcpi_lock_thaw(&pcpi_heaps_lock);
}

static void parent(void)
{
	urcu_bp_after_fork_parent();
	locks_thaw();
}

static void child(void)
{
	struct pcpa_heap *h;

	urcu_bp_after_fork_child();
	locks_thaw();
	pcpi_list_each(h, &pcpi_heaps, link)
		pcpi_thread_forked(h);
}

static void setup(void)
{
	error = -pthread_atfork(prepare, parent, child);
}

int pcpi_fork_setup(void)
{
	pthread_once(&once, setup);
	return error;
}
