/* SPDX-License-Identifier: BSD-2-Clause */
/* annotate.c - see annotate.h. */
#include "annotate.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||           \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED 1
#else
#define INSTRUMENTED 0
#endif

#if PCPI_MEMCHECK && !INSTRUMENTED
#include <valgrind/memcheck.h>
#else
/* The same names, asking nobody. */
static int nobody(const void *addr, size_t bytes)
{
	(void)addr;
	(void)bytes;
	return 0;
}

#define VALGRIND_MAKE_MEM_DEFINED(addr, bytes) nobody(addr, bytes)
#define VALGRIND_MAKE_MEM_NOACCESS(addr, bytes) ((void)(addr), (void)(bytes))
#define VALGRIND_MALLOCLIKE_BLOCK(addr, bytes, red, zero) ((void)(addr), (void)(bytes))
#define VALGRIND_FREELIKE_BLOCK(addr, red) ((void)(addr))
#endif

#define TOOL __attribute__((weak))

TOOL void __asan_poison_memory_region(const volatile void *, size_t);
TOOL void __asan_unpoison_memory_region(const volatile void *, size_t);
TOOL void __lsan_register_root_region(const void *, size_t);
TOOL void __lsan_unregister_root_region(const void *, size_t);
TOOL void __tsan_acquire(void *);
TOOL void __tsan_release(void *);
TOOL void AnnotateIgnoreReadsBegin(const char *, int);
TOOL void AnnotateIgnoreReadsEnd(const char *, int);
TOOL void AnnotateIgnoreWritesBegin(const char *, int);
TOOL void AnnotateIgnoreWritesEnd(const char *, int);

static bool asan(void)
{
	return !INSTRUMENTED && __asan_poison_memory_region &&
	       __asan_unpoison_memory_region;
}

static bool lsan(void)
{
	return !INSTRUMENTED && __lsan_register_root_region &&
	       __lsan_unregister_root_region;
}

static bool tsan(void)
{
	return !INSTRUMENTED && __tsan_acquire && __tsan_release;
}

/* Not just any tool of valgrind: the others answer 0. */
static bool memcheck(void)
{
	char byte = 0;

	return VALGRIND_MAKE_MEM_DEFINED(&byte, sizeof(byte)) != 0;
}

bool pcpi_annotate_active(void)
{
	return asan() || tsan() || memcheck();
}

/* What is registered must be given up in the same pieces, and arenas go in parts:
 * so in pieces that are parts of any. */
#define ROOT_BYTES ((uintptr_t)1 << 21)

static void roots(void *base, size_t bytes, void (*fn)(const void *, size_t))
{
	uintptr_t at = (uintptr_t)base, end = at + bytes, next;

	for (; at < end; at = next) {
		next = pcpi_min((at | (ROOT_BYTES - 1)) + 1, end);
		fn((const void *)at, next - at);
	}
}

void pcpi_annotate_reserve(void *base, size_t bytes)
{
	VALGRIND_MAKE_MEM_NOACCESS(base, bytes);
}

void pcpi_annotate_add(void *base, size_t bytes, bool contents)
{
	if (lsan())
		roots(base, bytes, __lsan_register_root_region);
	if (contents) {
		VALGRIND_MAKE_MEM_DEFINED(base, bytes);
		return;
	}
	if (asan())
		__asan_poison_memory_region(base, bytes);
	VALGRIND_MAKE_MEM_NOACCESS(base, bytes);
}

void pcpi_annotate_remove(void *base, size_t bytes)
{
	if (lsan())
		roots(base, bytes, __lsan_unregister_root_region);
	if (asan())
		__asan_unpoison_memory_region(base, bytes); /* AN2 */
	VALGRIND_MAKE_MEM_NOACCESS(base, bytes); /* it sees an unmapping */
}

void pcpi_annotate_take(void *block, size_t bytes)
{
	if (asan())
		__asan_unpoison_memory_region(block, bytes);
	if (tsan())
		__tsan_acquire(block);
	VALGRIND_MALLOCLIKE_BLOCK(block, bytes, 0, 0);
}

void pcpi_annotate_give(void *block, size_t bytes)
{
	VALGRIND_FREELIKE_BLOCK(block, 0);
	if (tsan())
		__tsan_release(block);
	if (asan())
		__asan_poison_memory_region(block, bytes);
}

void pcpi_annotate_take_order(void *block)
{
	if (tsan())
		__tsan_acquire(block);
}

void pcpi_annotate_give_order(void *block)
{
	if (tsan())
		__tsan_release(block);
}

void pcpi_annotate_look(void *block, size_t bytes)
{
	if (asan())
		__asan_unpoison_memory_region(block, bytes);
	VALGRIND_MAKE_MEM_DEFINED(block, bytes);
}

void pcpi_annotate_claim_begin(void)
{
	if (!tsan() || !AnnotateIgnoreReadsBegin || !AnnotateIgnoreWritesBegin)
		return;
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void pcpi_annotate_claim_end(void)
{
	if (!tsan() || !AnnotateIgnoreReadsEnd || !AnnotateIgnoreWritesEnd)
		return;
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
