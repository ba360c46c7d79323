/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.h - system calls by the processor's own instruction, which no library that
 * was loaded before can see.  Results as the kernel gives them: -errno.
 */
#ifndef DIRECT_H
#define DIRECT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long direct_call(long number, uintptr_t a, uintptr_t b,
			       uintptr_t c, uintptr_t d, uintptr_t e,
			       uintptr_t f)
{
#if defined(__x86_64__)
	register uintptr_t r10 __asm__("r10") = d;
	register uintptr_t r8 __asm__("r8") = e;
	register uintptr_t r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register uintptr_t x0 __asm__("x0") = a;
	register uintptr_t x1 __asm__("x1") = b;
	register uintptr_t x2 __asm__("x2") = c;
	register uintptr_t x3 __asm__("x3") = d;
	register uintptr_t x4 __asm__("x4") = e;
	register uintptr_t x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return (long)x0;
#else
#error "system calls of this processor are not known"
#endif
}

static inline unsigned char *direct_mmap(void *at, size_t bytes, int prot,
					 int flags, int fd)
{
	return (unsigned char *)direct_call(SYS_mmap, (uintptr_t)at, bytes,
					    (uintptr_t)prot, (uintptr_t)flags,
					    (uintptr_t)fd, 0);
}

static inline long direct_munmap(void *p, size_t bytes)
{
	return direct_call(SYS_munmap, (uintptr_t)p, bytes, 0, 0, 0, 0);
}

static inline long direct_mprotect(void *p, size_t bytes, int prot)
{
	return direct_call(SYS_mprotect, (uintptr_t)p, bytes, (uintptr_t)prot,
			   0, 0, 0);
}

static inline long direct_fork(void)
{
	return direct_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
}

#endif
