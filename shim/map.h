/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * map.h - the interposed calls with their arguments as the kernel gets them, and its
 * kind of result: a negative errno, or the value.  How they decide: map.c.
 */
#ifndef SHIM_MAP_H
#define SHIM_MAP_H

#include <stddef.h>
#include <stdint.h>

long shim_mmap(uintptr_t at, size_t bytes, int prot, int flags, int fd,
	       long offset);
long shim_munmap(uintptr_t at, size_t bytes);
long shim_mremap(uintptr_t at, size_t bytes, size_t size, int flags,
		 uintptr_t target);
long shim_madvise(uintptr_t at, size_t bytes, int advice);

/* Calls of which only the range matters to us: number and arguments are a system
 * call's, of which the first two are address and bytes. */
enum shim_effect {
	SHIM_LOOKS,    /* changes nothing that outlives the mapping */
	SHIM_CHANGES,  /* leaves a trace in the mapping */
	SHIM_PROTECTS, /* the same, and the third argument is a protection */
};

long shim_ranged(long number, const long args[6], enum shim_effect effect,
		 int hole_errno);

/* Limits and locks that what we keep would be in the way of. */
void shim_limit_set(int resource, uint64_t soft);

/* prctl(PR_SET_VMA): the kernel names memory, of ours until it is freed. */
long shim_name(const long args[6]);

/* Something that outlives the call knows these pages, wherever they are. */
void shim_trace_left(uintptr_t at, size_t bytes);

#endif
