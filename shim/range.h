/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * range.h - calls that concern any pages of the reserved range: parts of mappings,
 * several of them, and holes between.  How it works: range.c.
 *
 * Ranges are page indices, [first, end).  Results: 0 or a negative errno.
 */
#ifndef SHIM_RANGE_H
#define SHIM_RANGE_H

#include "pool.h"

/* munmap(): what is not mapped is no error. */
long shim_range_unmap(uint32_t first, uint32_t end);

/* Are all pages mapped? */
bool shim_range_mapped(uint32_t first, uint32_t end);

/* Is any? */
bool shim_range_any_mapped(uint32_t first, uint32_t end);

/* The pages' attributes are about to change in a way that outlives the call. */
void shim_range_taint(uint32_t first, uint32_t end);

/* The pages have got a name. */
void shim_range_name(uint32_t first, uint32_t end);

/* Has the mapping that the first page is part of a name? */
bool shim_range_named(uint32_t first, uint32_t end);

/* Has no page's mapping been changed so far, names aside? */
bool shim_range_plain(uint32_t first, uint32_t end);

/* madvise(). */
long shim_range_advise(uint32_t first, uint32_t end, int advice);

/*
 * mremap() of a mapping's first pages in place: shrinks or grows the extent that ends
 * with [first, end) to `pages`.  False when that can't be.
 */
bool shim_range_resize(uint32_t first, uint32_t end, uint64_t pages);

#endif
