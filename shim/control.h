/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h - what the environment asks for: PCPA_PRELOAD_*.  Read once, at the first
 * interposed call after the C library is ready.
 */
#ifndef SHIM_CONTROL_H
#define SHIM_CONTROL_H

#include "atomics.h"
#include "base.h"

enum shim_mode {
	SHIM_BOOTING = 0, /* not read so far: all goes to the kernel */
	SHIM_READING = 1,
	SHIM_OFF = 2,
	SHIM_STRICT = 3, /* advises, serves nothing */
	SHIM_ON = 4,
};

struct shim_control {
	uint32_t mode;    /* a: enum shim_mode; all others are fixed with it */
	int stats_signal; /* 0: none */
	size_t min_bytes, max_bytes;
	size_t populate, retain;
	bool hugetlb;
	const char *stats; /* NULL: none */
};

extern struct shim_control shim_control;

/* The mode, after an attempt to read what is to be read. */
enum shim_mode shim_control_read(void);

/* From now on all goes to the kernel, and no system call is made that wasn't asked
 * for. */
void shim_control_off(void);

PCPI_INLINE enum shim_mode shim_mode(void)
{
	/* pairs with shim_control_read(). */
	uint32_t mode = pcpi_load_acquire(&shim_control.mode);

	return pcpi_likely(mode >= SHIM_OFF) ? (enum shim_mode)mode
					     : shim_control_read();
}

#endif
