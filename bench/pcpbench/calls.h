/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.h - functions of the library's signatures that do nothing, from a
 * shared library of their own.
 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <stddef.h>

/* Returns heap. */
void *bench_empty_alloc(void *heap, unsigned order, unsigned flags);
void bench_empty_free(void *heap, void *block);
/* Returns n. */
size_t bench_empty_alloc_bulk(void *heap, unsigned order, unsigned flags,
			      void **blocks, size_t n);
void bench_empty_free_bulk(void *heap, void **blocks, size_t n);

#endif
