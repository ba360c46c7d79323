/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entry.c - the C library's functions that the shim takes the place of.
 *
 * Owns: the exported names, errno, and the system call numbers that syscall() is
 * looked at for.  All else is in map.c.  A call that succeeds leaves errno alone.
 *
 * The functions with a variable number of arguments fetch those that may be absent:
 * they are in registers, and what is in them then matters to nobody.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "control.h"
#include "hugetlb.h"
#include "map.h"
#include "pool.h"
#include "raw.h"

#define EXPORT PCPI_EXPORT

static inline long result(long r)
{
	if (pcpi_unlikely(raw_failed(r))) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

EXPORT void *mmap(void *at, size_t bytes, int prot, int flags, int fd,
		  off_t offset)
{
	return (void *)result(
		shim_mmap((uintptr_t)at, bytes, prot, flags, fd, offset));
}

EXPORT void *mmap64(void *at, size_t bytes, int prot, int flags, int fd,
		    off64_t offset)
{
	return (void *)result(
		shim_mmap((uintptr_t)at, bytes, prot, flags, fd, offset));
}

EXPORT int munmap(void *at, size_t bytes)
{
	return (int)result(shim_munmap((uintptr_t)at, bytes));
}

EXPORT void *mremap(void *at, size_t bytes, size_t size, int flags, ...)
{
	va_list more;
	void *target;

	va_start(more, flags);
	target = va_arg(more, void *);
	va_end(more);
	return (void *)result(shim_mremap((uintptr_t)at, bytes, size, flags,
					  (uintptr_t)target));
}

EXPORT int madvise(void *at, size_t bytes, int advice)
{
	return (int)result(shim_madvise((uintptr_t)at, bytes, advice));
}

/* Returns the error, and its MADV_DONTNEED never loses anything. */
EXPORT int posix_madvise(void *at, size_t bytes, int advice)
{
	if (advice == POSIX_MADV_DONTNEED)
		return 0;
	return (int)-shim_madvise((uintptr_t)at, bytes, advice);
}

/* ---- Calls of which only the range matters -------------------------------- */

struct ranged {
	short number;
	unsigned char effect; /* enum shim_effect */
	unsigned char hole;   /* errno when a page is not mapped */
};

static const struct ranged ranged_calls[] = {
	{SYS_mprotect, SHIM_PROTECTS, ENOMEM},
	{SYS_pkey_mprotect, SHIM_CHANGES, ENOMEM},
	{SYS_mincore, SHIM_LOOKS, ENOMEM},
	{SYS_msync, SHIM_LOOKS, ENOMEM},
	{SYS_mlock, SHIM_CHANGES, ENOMEM},
	{SYS_mlock2, SHIM_CHANGES, ENOMEM},
	{SYS_munlock, SHIM_LOOKS, ENOMEM},
	{SYS_mbind, SHIM_CHANGES, EFAULT},
	{SYS_set_mempolicy_home_node, SHIM_CHANGES, ENOMEM},
	{SYS_mseal, SHIM_CHANGES, ENOMEM},
};

static const struct ranged *ranged_find(long number)
{
	for (size_t i = 0; i < sizeof(ranged_calls) / sizeof(*ranged_calls); i++)
		if (ranged_calls[i].number == number)
			return &ranged_calls[i];
	return NULL;
}

static long ranged(long number, long a, long b, long c, long d)
{
	const struct ranged *r = ranged_find(number);
	long args[6] = {a, b, c, d, 0, 0};

	return result(shim_ranged(number, args, (enum shim_effect)r->effect,
				  r->hole));
}

EXPORT int mprotect(void *at, size_t bytes, int prot)
{
	return (int)ranged(SYS_mprotect, (long)at, (long)bytes, prot, 0);
}

EXPORT int pkey_mprotect(void *at, size_t bytes, int prot, int key)
{
	if (key == -1)
		return mprotect(at, bytes, prot);
	return (int)ranged(SYS_pkey_mprotect, (long)at, (long)bytes, prot, key);
}

EXPORT int mincore(void *at, size_t bytes, unsigned char *vec)
{
	return (int)ranged(SYS_mincore, (long)at, (long)bytes, (long)vec, 0);
}

EXPORT int msync(void *at, size_t bytes, int flags)
{
	return (int)ranged(SYS_msync, (long)at, (long)bytes, flags, 0);
}

EXPORT int mlock(const void *at, size_t bytes)
{
	return (int)ranged(SYS_mlock, (long)at, (long)bytes, 0, 0);
}

EXPORT int mlock2(const void *at, size_t bytes, unsigned flags)
{
	return (int)ranged(flags ? SYS_mlock2 : SYS_mlock, (long)at,
			   (long)bytes, (long)flags, 0);
}

EXPORT int munlock(const void *at, size_t bytes)
{
	return (int)ranged(SYS_munlock, (long)at, (long)bytes, 0, 0);
}

/* ---- What is no range, but must not meet memory that we keep -------------- */

static long lock_all(long flags)
{
	shim_pool_dissolve(true);
	return raw6(SYS_mlockall, flags, 0, 0, 0, 0, 0);
}

EXPORT int mlockall(int flags)
{
	return (int)result(lock_all(flags));
}

/* Whether 8 bytes there can be read: the kernel, asked to read signals there and do
 * something unknown with them, says EFAULT where it can't.  That is what the call that
 * they are for will say, too. */
static bool readable(const void *at)
{
	enum { UNKNOWN = -1 };

	return at && raw6(SYS_rt_sigprocmask, UNKNOWN, (long)at, 0,
			  sizeof(uint64_t), 0, 0) != -EFAULT;
}

static long limit_set(long pid, long resource, const struct rlimit *set,
		      void *old)
{
	if (readable(set) && (pid == 0 || pid == raw6(SYS_getpid, 0, 0, 0, 0, 0, 0)))
		shim_limit_set((int)resource, set->rlim_cur);
	return raw6(SYS_prlimit64, pid, resource, (long)set, (long)old, 0, 0);
}

EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *set)
{
	return (int)result(limit_set(0, (long)resource, set, NULL));
}

EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *set)
{
	return (int)result(
		limit_set(0, (long)resource, (const struct rlimit *)set, NULL));
}

EXPORT int prlimit(pid_t pid, enum __rlimit_resource resource,
		   const struct rlimit *set, struct rlimit *old)
{
	return (int)result(limit_set(pid, (long)resource, set, old));
}

EXPORT int prlimit64(pid_t pid, enum __rlimit_resource resource,
		     const struct rlimit64 *set, struct rlimit64 *old)
{
	return (int)result(limit_set(pid, (long)resource,
				     (const struct rlimit *)set, old));
}

/* Calls of ours might not be among those that a filter lets pass. */
static void filter_expect(void)
{
	shim_pool_dissolve(true);
	shim_control_off();
}

static long process_control(const long a[6])
{
	if (a[0] == PR_SET_VMA)
		return shim_name(a);
	if (a[0] == PR_SET_THP_DISABLE)
		shim_pool_drop();
	if (a[0] == PR_SET_SECCOMP)
		filter_expect();
	return raw6(SYS_prctl, a[0], a[1], a[2], a[3], a[4], 0);
}

EXPORT int prctl(int option, ...)
{
	va_list more;
	long a[6] = {option};

	va_start(more, option);
	for (int i = 1; i < 5; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	return (int)result(process_control(a));
}

/* The kernel refuses more. */
enum { SPLICE_MAX = 1024 };

/* What is in a pipe stays there when its memory is freed. */
static long pages_splice(const long a[6])
{
	const struct iovec *v = (const struct iovec *)a[1];

	for (long i = 0; i < a[2] && a[2] <= SPLICE_MAX && readable(&v[i]) &&
			 readable(&v[i].iov_len);
	     i++)
		shim_trace_left((uintptr_t)v[i].iov_base, v[i].iov_len);
	return raw6(SYS_vmsplice, a[0], a[1], a[2], a[3], 0, 0);
}

EXPORT ssize_t vmsplice(int fd, const struct iovec *v, size_t n, unsigned flags)
{
	const long a[6] = {fd, (long)v, (long)n, (long)flags};

	return result(pages_splice(a));
}

/* Children that no handler of a fork hears of.  A new process, with a copy of all? */
static bool clone_copies(unsigned long flags)
{
	return !(flags & CLONE_VM);
}

/* The same of clone3(), whose flags come first in what it is given. */
static bool clone3_copies(const unsigned long *args)
{
	return readable(args) && clone_copies(*args);
}

/* The C library's other name of its own. */
extern int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);

EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	va_list more;
	void *a[3];

	va_start(more, arg);
	for (int i = 0; i < 3; i++)
		a[i] = va_arg(more, void *);
	va_end(more);
	if (clone_copies((unsigned long)flags))
		shim_hugetlb_end(HUGETLB_FORKED);
	return __clone(fn, stack, flags, arg, a[0], a[1], a[2]);
}

/* ---- syscall() ------------------------------------------------------------ */

static long number_call(long number, const long a[6])
{
	const struct ranged *r;

	switch (number) {
	case SYS_mmap:
		return shim_mmap((uintptr_t)a[0], (size_t)a[1], (int)a[2],
				 (int)a[3], (int)a[4], a[5]);
	case SYS_munmap:
		return shim_munmap((uintptr_t)a[0], (size_t)a[1]);
	case SYS_mremap:
		return shim_mremap((uintptr_t)a[0], (size_t)a[1], (size_t)a[2],
				   (int)a[3], (uintptr_t)a[4]);
	case SYS_madvise:
		return shim_madvise((uintptr_t)a[0], (size_t)a[1], (int)a[2]);
	case SYS_mlockall:
		return lock_all(a[0]);
	case SYS_setrlimit:
		return limit_set(0, a[0], (const struct rlimit *)a[1], NULL);
	case SYS_prlimit64:
		return limit_set(a[0], a[1], (const struct rlimit *)a[2],
				 (void *)a[3]);
	case SYS_prctl:
		return process_control(a);
	case SYS_vmsplice:
		return pages_splice(a);
	case SYS_seccomp:
		filter_expect();
		break;
#ifdef SYS_fork
	case SYS_fork:
		shim_hugetlb_end(HUGETLB_FORKED);
		break;
#endif
	case SYS_clone:
		if (clone_copies((unsigned long)a[0]))
			shim_hugetlb_end(HUGETLB_FORKED);
		break;
	case SYS_clone3:
		if (shim_control.hugetlb && clone3_copies((const unsigned long *)a[0]))
			shim_hugetlb_end(HUGETLB_FORKED);
		break;
	case SYS_userfaultfd:   /* wants to see the first touch of new memory */
	case SYS_set_mempolicy: /* wants new memory elsewhere */
		shim_pool_dissolve(true);
		break;
	default:
		break;
	}
	r = ranged_find(number);
	if (r)
		return shim_ranged(number, a, (enum shim_effect)r->effect,
				   r->hole);
	return raw6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORT long syscall(long number, ...)
{
	va_list more;
	long a[6];

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	return result(number_call(number, a));
}
