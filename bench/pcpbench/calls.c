/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.c - the floor under every allocator in a shared library: its calls.
 */
#include "calls.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void *bench_empty_alloc(void *heap, unsigned order, unsigned flags)
{
	(void)order;
	(void)flags;
	return heap;
}

EXPORT void bench_empty_free(void *heap, void *block)
{
	(void)heap;
	(void)block;
}

EXPORT size_t bench_empty_alloc_bulk(void *heap, unsigned order, unsigned flags,
				     void **blocks, size_t n)
{
	(void)heap;
	(void)order;
	(void)flags;
	(void)blocks;
	return n;
}

EXPORT void bench_empty_free_bulk(void *heap, void **blocks, size_t n)
{
	(void)heap;
	(void)blocks;
	(void)n;
}
