/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcu.h - the flavour of liburcu in use.  Layer 0.
 *
 * liburcu-bp: readers need not be registered, no thread is started, and a
 * reader's first section in a thread registers it by itself.  Read-side
 * sections are on slow paths only; they may be long (a sweep) and may nest, but
 * never wait for a grace period.
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

static inline void pcpi_rcu_read_lock(void)
{
	urcu_bp_read_lock();
}

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

#endif
