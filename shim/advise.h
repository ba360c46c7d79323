/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * advise.h - huge pages for mappings that the kernel serves.  How: advise.c.
 */
#ifndef SHIM_ADVISE_H
#define SHIM_ADVISE_H

#include <stddef.h>
#include <stdint.h>

/* The kernel has just made this mapping. */
void shim_advise_mapped(uintptr_t at, size_t bytes, int prot, int flags);

/* The program is about to unmap this. */
void shim_advise_unmapping(uintptr_t at, size_t bytes);

#endif
