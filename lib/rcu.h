/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcu.h - grace periods.  Layer 1.
 *
 * Owns: how many read-side sections are under way in the process, in two numbers.
 *
 * Sections are on slow paths only; they may be long (a sweep), may call the program
 * back and may nest, but never wait for a grace period.  They count themselves, and
 * no thread is registered: liburcu's readers are, in its flavour bp by themselves,
 * under a lock that its fork handlers leave alone, which a thread takes again when
 * it ends.  A child that is forked just then waits for that lock for ever.
 *
 *   section       in[side]++ ... in[side]--
 *   grace period  side = 1, until in[0] is 0; side = 0, until in[1] is 0
 *
 * R1  A section is in one of the numbers from before its first look at what it
 *     reads until after its last.
 * R2  A grace period sees each number at 0 once.  What was removed before is seen
 *     as removed by every section that counts itself after that look, since
 *     both change the number (the later reads from the earlier); and all
 *     others have ended.  The side only lets new sections go where nobody waits.
 * R3  A thread can't be cancelled in a section, so that each ends.
 *
 * R4  A forked child begins at 0.  Where its thread forked inside of a section, that
 *     is not counted any more, and isn't taken off at its end: until then the child
 *     has no other thread, or one that was made in a callback, which must not trim.
 *
 * Concurrency: any thread.  Cost: two atomic additions to a line that all share.
 * Failure: none.  Source: the sleepable RCU of Linux, with one counter a side.
 * Proved by tests/unit/test_rcu.c, tests/conc/rcu.c, tests/conc/fork_first.c.
 */
#ifndef PCPI_RCU_H
#define PCPI_RCU_H

#include "atomics.h"
#include "base.h"

struct pcpi_section {
	unsigned side;
	unsigned forks;	  /* of the process and those that it comes from: R4 */
	int cancel_state; /* of the thread, before */
};

struct pcpi_section pcpi_rcu_read_lock(void);
void pcpi_rcu_read_unlock(struct pcpi_section section);

/* Waits until every section that is running now has ended. */
void pcpi_rcu_synchronize(void);

/* In a forked child. */
void pcpi_rcu_forked(void);

#endif
