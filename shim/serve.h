/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.h - a whole mapping handed out, a whole mapping taken back.
 * How it works: serve.c.
 */
#ifndef SHIM_SERVE_H
#define SHIM_SERVE_H

#include "classes.h"
#include "pool.h"

/*
 * Memory for a private anonymous mapping that may be read and written, all zeros: its
 * address, or 0 when the kernel has to serve.
 * Cost: from a slot two atomic swaps and the clearing of what its last owner had.
 */
uintptr_t shim_serve(size_t bytes, bool populate);

/*
 * Takes back the mapping that begins with the page and has just so many pages, if
 * nothing about it is special.  False when it isn't so.
 * Cost: two atomic swaps; for a cold class a system call.
 */
bool shim_take_back(uint32_t pfn, uint64_t pages);

/* The extent has left the program's hands (BUSY); its first `high` pages may hold
 * anything. */
void shim_release(uint32_t pfn, unsigned order, uint32_t high);

/* How many pages of a range are resident, by a few looks of mincore(): *seen of them
 * were looked at. */
uint32_t shim_resident(uintptr_t at, uint64_t pages, uint32_t *seen);

/* Makes pages resident, as MAP_POPULATE does. */
void shim_populate(uintptr_t at, size_t bytes);

extern struct shim_class shim_classes[SHIM_ORDERS];

#endif
