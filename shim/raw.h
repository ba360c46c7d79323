/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw.h - system calls without the C library: no errno, no thread-local storage, no
 * symbol that has to be looked up, no cancellation point.
 *
 * Results are the kernel's: a negative errno, or what the call returns.  They may be
 * used before the C library is ready, in signal handlers, and in threads that were
 * made by a bare clone().
 */
#ifndef SHIM_RAW_H
#define SHIM_RAW_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Values of the kernel's interface that older headers lack. */
#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

#if defined(__x86_64__)
static inline long raw6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static inline long raw6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "the preload shim knows the system calls of x86-64 and aarch64 only"
#endif

static inline bool raw_failed(long r)
{
	return (unsigned long)r > -4096ul;
}

static inline long raw_mmap(uintptr_t at, size_t bytes, int prot, int flags,
			    int fd, long offset)
{
	return raw6(SYS_mmap, (long)at, (long)bytes, prot, flags, fd, offset);
}

static inline long raw_munmap(uintptr_t at, size_t bytes)
{
	return raw6(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
}

static inline long raw_mremap(uintptr_t at, size_t bytes, size_t size,
			      int flags, uintptr_t target)
{
	return raw6(SYS_mremap, (long)at, (long)bytes, (long)size, flags,
		    (long)target, 0);
}

static inline long raw_mprotect(uintptr_t at, size_t bytes, int prot)
{
	return raw6(SYS_mprotect, (long)at, (long)bytes, prot, 0, 0, 0);
}

static inline long raw_madvise(uintptr_t at, size_t bytes, int advice)
{
	return raw6(SYS_madvise, (long)at, (long)bytes, advice, 0, 0, 0);
}

static inline long raw_mincore(uintptr_t at, size_t bytes, unsigned char *vec)
{
	return raw6(SYS_mincore, (long)at, (long)bytes, (long)vec, 0, 0, 0);
}

static inline void raw_yield(void)
{
	raw6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

#endif
