/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - three tiers of assertion.  Layer 0.
 *
 * PCPA_TRAP    always on: our own metadata is corrupt; traps without printing.
 * PCPA_ASSERT  debug builds (no NDEBUG): a precondition or invariant, by number.
 * PCPA_WALK    builds with PCPI_WALK: walks of whole structures.
 *
 * A caller's mistake is none of these: it is counted and refused.
 */
#ifndef PCPI_CHECK_H
#define PCPI_CHECK_H

#define PCPA_TRAP(cond)                                                        \
	do {                                                                   \
		if (__builtin_expect(!(cond), 0))                              \
			__builtin_trap();                                      \
	} while (0)

#ifdef NDEBUG
#define PCPA_ASSERT(cond) ((void)sizeof(!(cond)))
#else
#define PCPA_ASSERT(cond) PCPA_TRAP(cond)
#endif

#ifdef PCPI_WALK
#define PCPA_WALK(cond) PCPA_TRAP(cond)
#else
#define PCPA_WALK(cond) ((void)sizeof(!(cond)))
#endif

#endif
