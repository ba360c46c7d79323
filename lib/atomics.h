/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomics.h - all atomic accesses of the library, the order in the name.
 * Layer 0; depends on nothing.  They work on plain integer and pointer objects.
 *
 * Rules, checked by tools/check-orders: an acquire or a release carries
 * "pairs with <function>" on both sides; a relaxed access outside of counters
 * carries "relaxed: <why stale is fine>"; a sequentially consistent one has an
 * entry in docs/memory-order.md.
 */
#ifndef PCPI_ATOMICS_H
#define PCPI_ATOMICS_H

/* ThreadSanitizer sees no access that is made in assembly. */
#if defined(__SANITIZE_THREAD__)
#define PCPI_TSAN 1
#elif defined(__has_feature)
#define PCPI_TSAN __has_feature(thread_sanitizer)
#else
#define PCPI_TSAN 0
#endif

#define pcpi_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define pcpi_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define pcpi_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define pcpi_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define pcpi_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define pcpi_exchange_seq_cst(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define pcpi_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define pcpi_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define pcpi_fetch_add_release(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define pcpi_fetch_add_acq_rel(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)

/* Strong compare and swap: stores desired and returns true iff *p == *expected;
 * else *expected becomes what was there. */
#define pcpi_cas_acq_rel(p, expected, desired)                                 \
	__atomic_compare_exchange_n((p), (expected), (desired), 0,             \
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

#define pcpi_cas_seq_cst(p, expected, desired)                                 \
	__atomic_compare_exchange_n((p), (expected), (desired), 0,             \
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* A counter that one thread writes and any thread reads: no read-modify-write.
 * relaxed: a reader may see it late, never torn. */
#define pcpi_counter_add(p, v) pcpi_store_relaxed((p), pcpi_load_relaxed(p) + (v))

/* The same by 1, where it counts in instructions, and where a signal handler of the
 * same thread may count, too: one instruction, or what can't be parted else.
 * pcpi_counter_add_sign(): of 32 bits by v; whether their highest is set now, which
 * that instruction says, too. */
#if defined(__x86_64__) && !PCPI_TSAN
#define pcpi_counter_inc(p) __asm__("incq %0" : "+m"(*(p)) : : "cc")
#define pcpi_counter_add_sign(p, v)                                            \
	({                                                                     \
		_Bool sign_;                                                   \
		__asm__("addl %2, %1"                                          \
			: "=@ccs"(sign_), "+m"(*(p))                           \
			: "er"(v));                                            \
		sign_;                                                         \
	})
#else
#define pcpi_counter_inc(p) pcpi_fetch_add_relaxed((p), 1)
#define pcpi_counter_add_sign(p, v)                                            \
	(((pcpi_fetch_add_relaxed((p), (v)) + (v)) & 0x80000000u) != 0)
#endif

/* *p == 0 for a byte, with acquire: on x86-64, whose loads all are, one compare
 * with memory, which compilers make of no atomic load. */
#if defined(__x86_64__) && !PCPI_TSAN
#define pcpi_zero_acquire(p)                                                   \
	({                                                                     \
		_Bool zero_;                                                   \
		__asm__ __volatile__("cmpb $0, %1"                             \
				     : "=@ccz"(zero_)                          \
				     : "m"(*(p))                               \
				     : "memory");                              \
		zero_;                                                         \
	})
#else
#define pcpi_zero_acquire(p) (pcpi_load_acquire(p) == 0)
#endif

/* *p == v for a byte and a constant, relaxed: the same. */
#if defined(__x86_64__) && !PCPI_TSAN
#define pcpi_byte_is_relaxed(p, v)                                             \
	({                                                                     \
		_Bool is_;                                                     \
		__asm__("cmpb %2, %1" : "=@ccz"(is_) : "m"(*(p)), "i"(v));     \
		is_;                                                           \
	})
#else
#define pcpi_byte_is_relaxed(p, v) (pcpi_load_relaxed(p) == (v))
#endif

/* The compiler moves no memory access across it; the processor may. */
#define pcpi_compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#endif
