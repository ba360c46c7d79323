/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodeset.h - reads lists of numbers such as "0,2-3".  Layer 1, PURE.
 *
 * Owns: the grammar of the `nodes` option.  Does not know which nodes exist
 * (topo.c does) and stores nothing: the caller walks the list range by range,
 * so a set has no size limit and no memory of its own.
 *
 *   list  = range { "," range }
 *   range = number [ "-" number ]        the second not below the first
 *   number = decimal digits, value at most PCPI_NODESET_MAX
 *
 *   "0,2-3"  ->  (0,0)  (2,3)  end
 *
 * Nothing else is allowed: no blank, no sign, no empty list, no comma at an
 * end.  A string with a mistake in it must not turn into a smaller set.
 * Ranges may overlap and come in any order; the set is their union.
 *
 * Cost: one pass over the text.  Failure: -EINVAL with the cursor on the first
 * character that doesn't fit.  Proved by tests/unit/test_nodeset.c.
 */
#ifndef PCPI_NODESET_H
#define PCPI_NODESET_H

#include "base.h"

/* The largest number PCPA_NODE() can carry. */
#define PCPI_NODESET_MAX 65534u

struct pcpi_node_range {
	unsigned first, last; /* first <= last <= PCPI_NODESET_MAX */
};

/*
 * Reads the range at *cursor and moves *cursor past it and its comma.
 * Requires: *cursor is the start of a list, or where the last call left it.
 * Returns: 1 and *out; 0 at the end of the list; -EINVAL with *cursor on the
 * mistake and *out untouched.
 */
int pcpi_nodeset_next(const char **cursor, struct pcpi_node_range *out);

/*
 * Checks a whole list.  Returns 0, or -EINVAL with the offset of the first
 * mistake in *at (a list without any range: the offset of its end).
 */
int pcpi_nodeset_check(const char *list, size_t *at);

/* Whether a number is in a list that pcpi_nodeset_check() has accepted. */
bool pcpi_nodeset_has(const char *list, unsigned number);

#endif
