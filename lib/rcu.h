/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcu.h - the flavour of liburcu in use.  Layer 0.
 *
 * Owns: the door through which threads become readers.
 *
 * liburcu-bp: callers register nothing, and no thread is started.  Read-side
 * sections are on slow paths only; they may be long (a sweep) and may nest, but
 * never wait for a grace period.
 *
 * liburcu counts its readers under a lock that its own fork handlers leave alone; a
 * child forked while another thread has it waits for it for ever, at its own
 * first section or at its exit.  So:
 *
 * R1  A thread's first section registers it, behind the door, which a fork holds
 *     shut.
 * R2  A thread that R1 has registered says that it is leaving, behind the door,
 *     before liburcu counts it out, and that it has left.  A fork waits for it, for a
 *     second at most: a destructor of the program's may come in between.
 *
 * Failure: where a key can't be had, or liburcu's isn't found, R2 is not kept, and
 * every section goes through the door.
 * Proved by tests/conc/fork_register.c.
 */
#ifndef PCPI_RCU_H
#define PCPI_RCU_H

#include <stdint.h>
#include <urcu-bp.h>

#include "atomics.h"

/* ThreadSanitizer doesn't see into liburcu and is told what a grace period
 * orders: the ends of the sections before what follows it. */
#if PCPI_TSAN
void __tsan_acquire(void *at);
void __tsan_release(void *at);
#define pcpi_rcu_tell(what) __tsan_##what((void *)(uintptr_t)&urcu_bp_read_lock)
#else
#define pcpi_rcu_tell(what) ((void)0)
#endif

void pcpi_rcu_read_lock(void);

static inline void pcpi_rcu_read_unlock(void)
{
	pcpi_rcu_tell(release);
	urcu_bp_read_unlock();
}

/* Waits until every section that is running now has ended. */
static inline void pcpi_rcu_synchronize(void)
{
	urcu_bp_synchronize_rcu();
	pcpi_rcu_tell(acquire);
}

/* Around a fork, which holds all other locks: nobody becomes a reader, or begins
 * to leave, in between.  child: in the child, where nobody else is. */
void pcpi_rcu_shut(void);
void pcpi_rcu_open(bool child);

/* Whether threads are leaving. */
bool pcpi_rcu_leaving(void);

#endif
