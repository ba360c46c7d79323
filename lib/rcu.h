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
 * R1  A thread's first section registers it, behind the door, which a fork holds
 *     shut: liburcu counts its readers under a lock that its own fork handlers
 *     leave alone, and a child forked meanwhile would wait for that lock for
 *     ever, at its own first section or at its exit.
 *
 * liburcu counts a thread out under the same lock when the thread ends, in a
 * destructor that nobody can hold up: a fork in these 20 ns leaves such a child,
 * as in any program that uses liburcu-bp.
 *
 * Failure: none.  Proved by tests/conc/fork_register.c.
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

/* Around a fork, which holds all other locks: nobody is inside liburcu. */
void pcpi_rcu_freeze(void);
void pcpi_rcu_thaw(bool child);

#endif
