/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork.c - before and after a fork.  Layer 5, part of heap.h.
 *
 * Owns: the process's fork handlers.
 *
 *   prepare  waits for what is made once in a process, then takes all locks of
 *            all heaps in rank order, so that no other thread is inside a list, a depot or
 *            a buddy when the copy is made
 *   parent   gives them back
 *   child    gives them back; a heap without PCPA_HEAP_COW is marked, its calls
 *            fail with ENODEV (its arenas were not inherited); one with it takes
 *            in the caches of the threads that did not survive, and ends the
 *            disables that these had under way.  Packet pools of the others have
 *            no owner any more, whose hits would not ask
 *
 * K1  The child's thread is the one that took the locks, so it may drop them.
 * K2  A cache that another thread was inside of is consistent, because ring
 *     operations commit with one store (C5); what the thread had in its hand,
 *     a block or a batch between ring and depot, stays in use.
 * K3  The handlers are registered at load, or where that failed before anything is
 *     made that a fork has to wait for.  Nothing can guard that itself, so threads
 *     that are first at once may register them more than once, as may a child
 *     that was forked between their registration and the note of it: only the
 *     first call counts.
 *
 * K4  A process has a number, which its children of fork() don't.
 *
 * Cost: some 20 lock operations a heap and node.
 * Proved by tests/conc/fork.c, fork_first.c, rcu.c,
 * spawn.c, tests/unit/test_disable_beside.c.
 */
#include <errno.h>
#include <pthread.h>

#include "atomics.h"
#include "heap.h"
#include "list.h"
#include "nest.h"
#include "rcu.h"

static bool registered; /* a */
/* All locks: the thread that forks, by the address of its table's pointer, and
 * how often its handlers were called beyond the first time. */
static const void *frozen_by; /* a */
static unsigned again;
static uint64_t process_id; /* a; 0: not asked for yet */

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

/* Others have subscribers, for whose locks the turn may wait; their children don't
 * use it.  It is taken late for its rank: in these heaps who has it, a trim, waits for
 * none of the locks that come before it here. */
static bool has_turn(const struct pcpa_heap *h)
{
	return h->options_flags & PCPA_HEAP_COW;
}

static void prepare(void)
{
	struct pcpa_heap *h;
	unsigned z;

	/* relaxed: equal only if this thread has set it. */
	if (pcpi_load_relaxed(&frozen_by) == &pcpi_table) {
		again++;
		return;
	}
	pcpi_nest_enter();
	pthread_mutex_lock(&pcpi_once.default_heap);
	pthread_mutex_lock(&pcpi_once.process);
	pcpi_lock_freeze(&pcpi_heaps_lock);
	pcpi_list_each(h, &pcpi_heaps, link) {
		pcpi_lock_freeze(&h->contig_lock);
		pcpi_lock_freeze(&h->drain_lock);
		pcpi_lock_freeze(&h->threads_lock);
		if (has_turn(h))
			pcpi_lock_freeze(&h->notify.turn);
		pcpi_lock_freeze(&h->trim_lock);
		for (z = 0; z < h->nr_zones; z++)
			zone_freeze(&h->env.zones[z]);
		pcpi_pools_freeze(&h->pools);
	}
	pcpi_thread_freeze();
	pcpi_store_relaxed(&frozen_by, &pcpi_table); /* relaxed: as above */
}

static void locks_thaw(void)
{
	struct pcpa_heap *h;
	unsigned z;

	pcpi_thread_thaw();
	pcpi_list_each(h, &pcpi_heaps, link) {
		pcpi_pools_thaw(&h->pools);
		for (z = h->nr_zones; z-- > 0;)
			zone_thaw(&h->env.zones[z]);
		pcpi_lock_thaw(&h->trim_lock);
		if (has_turn(h))
			pcpi_lock_thaw(&h->notify.turn);
		pcpi_lock_thaw(&h->threads_lock);
		pcpi_lock_thaw(&h->drain_lock);
		pcpi_lock_thaw(&h->contig_lock);
	}
	pcpi_lock_thaw(&pcpi_heaps_lock);
	pthread_mutex_unlock(&pcpi_once.process);
	pthread_mutex_unlock(&pcpi_once.default_heap);
}

/* Whether this is the last call after a fork: K3. */
static bool thaw_due(void)
{
	if (again > 0) {
		again--;
		return false;
	}
	pcpi_store_relaxed(&frozen_by, NULL); /* relaxed: see prepare() */
	return true;
}

static void parent(void)
{
	if (!thaw_due())
		return;
	locks_thaw();
	pcpi_nest_leave();
}

static void child(void)
{
	struct pcpa_heap *h;

	if (!thaw_due())
		return;
	pcpi_store_relaxed(&process_id, 0); /* relaxed: nobody else is here */
	pcpi_rcu_forked();
	locks_thaw();
	pcpi_list_each(h, &pcpi_heaps_partial, link)
		pcpi_space_forked(&h->space);
	pcpi_list_each(h, &pcpi_heaps, link) {
		pcpi_background_forked(&h->background);
		pcpi_thread_forked(h);
		pcpi_heap_disable_forked(h);
		/* relaxed: this thread has set it. */
		pcpi_pools_forked(&h->pools, !pcpi_load_relaxed(&h->forked));
	}
	pcpi_nest_leave();
}

int pcpi_fork_setup(void)
{
	int err;

	/* acquire: pairs with the store below; K3. */
	if (pcpi_load_acquire(&registered))
		return 0;
	err = -pthread_atfork(prepare, parent, child);
	if (!err)
		/* release: pairs with the load above. */
		pcpi_store_release(&registered, true);
	return err;
}

uint64_t pcpi_process_id(void)
{
	/* relaxed: nothing but the number is read. */
	uint64_t id = pcpi_load_relaxed(&process_id), mine;

	if (id)
		return id;
	/* Spread, since numbers are added to it. */
	mine = ((pcpi_sys->clock_ns() ^ (uint64_t)pcpi_sys->tid() << 32) | 1) *
	       0x9e3779b97f4a7c15u;
	/* acquire/release: pairs with itself; one is the first. */
	return pcpi_cas_acq_rel(&process_id, &id, mine) ? mine : id;
}

/* At load, since a handler that is registered while a fork is under way doesn't
 * run for it: the child would have the locks of whoever used the library first
 * meanwhile.  Where it fails, creation tries again and reports it. */
__attribute__((constructor)) static void at_load(void)
{
	pcpi_fork_setup();
}
