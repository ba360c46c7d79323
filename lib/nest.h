/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nest.h - whether a call interrupted another one of its thread.  Layer 0.
 *
 * Owns: how deep a thread is inside the library.  Every public function counts
 * itself in where it leaves the hit, so that a signal handler's call knows that
 * the code below it on the stack may hold any lock, or be half done with what is
 * the thread's own.
 *
 * NE1  Between enter and leave the count is one more; a handler that returns has
 *     left it as it was, so that plain loads and stores do.
 * NE2  A nested call waits for no lock, takes part in no read-side section, and
 *     calls nobody back.
 * NE3  What is called back is outside: no lock is held there, and it may call.
 *
 * A hit doesn't count: as a sequence it is as before or after it, and under the
 * mark it is seen by the mark.
 *
 * Cost: a thread-local word.  Failure: none.
 * Proved by tests/unit/test_nested.c, tests/conc/signals.c.
 */
#ifndef PCPI_NEST_H
#define PCPI_NEST_H

#include "atomics.h"
#include "base.h"

extern __thread unsigned pcpi_nest_depth
	__attribute__((tls_model("initial-exec")));

/* True: the call is the outermost of its thread; leave follows either way. */
PCPI_INLINE bool pcpi_nest_enter(void)
{
	unsigned depth = pcpi_load_relaxed(&pcpi_nest_depth); /* relaxed: NE1 */

	pcpi_store_relaxed(&pcpi_nest_depth, depth + 1);
	pcpi_compiler_barrier();
	return pcpi_likely(depth == 0);
}

PCPI_INLINE void pcpi_nest_leave(void)
{
	pcpi_compiler_barrier();
	/* relaxed: NE1 */
	pcpi_store_relaxed(&pcpi_nest_depth,
			   pcpi_load_relaxed(&pcpi_nest_depth) - 1);
}

/* Around a call back, NE3: returns what the second takes. */
PCPI_INLINE unsigned pcpi_nest_suspend(void)
{
	unsigned depth = pcpi_load_relaxed(&pcpi_nest_depth); /* relaxed: NE1 */

	pcpi_compiler_barrier();
	pcpi_store_relaxed(&pcpi_nest_depth, 0);
	return depth;
}

PCPI_INLINE void pcpi_nest_resume(unsigned depth)
{
	pcpi_store_relaxed(&pcpi_nest_depth, depth); /* relaxed: NE1 */
	pcpi_compiler_barrier();
}

#endif
