/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * classes.h - is a size class warm or cold?  PURE: numbers in, decision out.
 *
 * Memory that the program writes to is worth keeping resident: the next owner gets it
 * for a memset(), without a fault.  Memory that it maps and never touches isn't: the
 * memset would be the whole cost.  Nothing in the memory itself tells the two apart
 * (a program may well write zeros), so each class is measured: an extent that was
 * handed out without memory is looked at when it comes back, by mincore().
 *
 *            touched                  hardly touched
 *   UNKNOWN ---------> WARM            UNKNOWN ------> COLD
 *   every WARM_PROBE_MIN .. _MAX takes a warm class hands out one extent without
 *   memory, and each time that this is touched again the interval doubles; the first
 *   that isn't makes the class cold.  A cold class is measured at every
 *   COLD_PROBE'th free.
 *
 * Orders up to SHIM_ALWAYS_WARM cost less to clear than a system call.
 *
 * Concurrency: relaxed fields which any thread may change; a lost update makes a
 * decision late.  Proved by tests/preload/test_classes.c.
 */
#ifndef SHIM_CLASSES_H
#define SHIM_CLASSES_H

#include "atomics.h"
#include "extent.h"

enum {
	SHIM_ALWAYS_WARM = 2, /* 16 KiB */
	SHIM_WARM_PROBE_MIN = 16,
	SHIM_WARM_PROBE_MAX = 1024,
	SHIM_WARM_PROBE_MAX_LARGE =
		64,        /* from 2 MiB: what is wasted is more, too */
	SHIM_NEVER = 4096, /* takes between two looks at nothing */
	SHIM_COLD_PROBE = 8,
	/* One page of so many touched: break-even of clearing and faulting. */
	SHIM_TOUCHED_SHARE = 20,
};

enum shim_heat {
	SHIM_UNKNOWN = 0,
	SHIM_WARM = 1,
	SHIM_CLASS_COLD = 2,
};

struct shim_class {
	uint8_t heat; /* a: enum shim_heat */
	uint8_t spare[3];
	uint32_t interval; /* a: takes between two probes, 0: not warm so far */
	uint32_t frees;    /* a: of cold extents, while cold */
};

/* Does an extent that was handed out without memory get looked at, now that it is
 * freed? */
bool shim_class_measures(struct shim_class *c, unsigned order);

/* Tells the class what a look has seen. */
void shim_class_learn(struct shim_class *c, unsigned order, uint32_t touched,
		      uint32_t pages);

/* Is a freed extent kept as it is?  Else its memory goes back. */
PCPI_INLINE bool shim_class_keeps(const struct shim_class *c, unsigned order)
{
	/* relaxed: a decision that is one call late is as good. */
	return order <= SHIM_ALWAYS_WARM ||
	       pcpi_load_relaxed(&c->heat) != SHIM_CLASS_COLD;
}

/* After how many takes the next probe is due; at least 1. */
uint32_t shim_class_interval(const struct shim_class *c, unsigned order);

#endif
