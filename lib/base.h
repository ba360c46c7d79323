/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base.h - the few words every module uses.  Layer 0; depends on nothing.
 *
 * A page index ("pfn") is a plain uint32_t, the number of a base page counted
 * from the base of its heap.  It is not wrapped in a struct because whole
 * arrays of them are moved by memcpy and converted by vector code.
 */
#ifndef PCPI_BASE_H
#define PCPI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCPI_NO_PFN UINT32_MAX

/* Orders 0..PCPI_MAX_ORDER exist (PCPA_MAX_ORDER); caches serve the first
 * PCPI_PCP_ORDERS of them. */
#define PCPI_MAX_ORDER 10
#define PCPI_PCP_ORDERS 4

#define PCPI_CACHELINE 64

#define pcpi_likely(x) __builtin_expect(!!(x), 1)
#define pcpi_unlikely(x) __builtin_expect(!!(x), 0)
#define PCPI_NOINLINE __attribute__((noinline))
#define PCPI_COLD __attribute__((cold, noinline))
#define PCPI_INLINE static inline __attribute__((always_inline))
/* A function that runs as often as anything: it begins with a cache line. */
#define PCPI_HOT __attribute__((hot, aligned(64)))
#define PCPI_ALIGNED(n) __attribute__((aligned(n)))
#define PCPI_EXPORT __attribute__((visibility("default")))
#define PCPI_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Brings a line here to be written: a look at it before the lock in it is taken
 * would else bring it twice, first to be read.  (Processors of x86-64 that don't
 * know the instruction do nothing.) */
#if defined(__x86_64__)
#define pcpi_prefetch_write(p) __asm__ __volatile__("prefetchw %0" : : "m"(*(p)))
#else
#define pcpi_prefetch_write(p) __builtin_prefetch((p), 1)
#endif

/* Each argument is evaluated once; the numbered names let calls nest. */
#define pcpi_pick_(a, b, op, x, y)                                             \
	({                                                                     \
		__typeof__(a) x = (a);                                         \
		__typeof__(b) y = (b);                                         \
		x op y ? x : y;                                                \
	})
#define pcpi_pick2_(a, b, op, n) pcpi_pick3_(a, b, op, n)
#define pcpi_pick3_(a, b, op, n) pcpi_pick_(a, b, op, pick_a_##n, pick_b_##n)
#define pcpi_min(a, b) pcpi_pick2_(a, b, <, __COUNTER__)
#define pcpi_max(a, b) pcpi_pick2_(a, b, >, __COUNTER__)
#define pcpi_clamp(x, lo, hi) pcpi_min(pcpi_max((x), (lo)), (hi))

#define pcpi_container_of(ptr, type, member)                                   \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#endif
