/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys_file.c - memory that has a descriptor, and where memory is.  Layer 1.
 *
 * Owns: three members of pcpi_sys_linux.
 *
 *   memory_file  memfd_create, given its size once and sealed: who gets the
 *                descriptor can't shorten it, after which the library's touch
 *                would be SIGBUS.  Holes can be punched all the same
 *   punch        fallocate PUNCH_HOLE: MADV_DONTNEED would only take shared pages
 *                out of this process, and MADV_REMOVE refuses locked areas
 *   pagemap      the kernel's word on a page, with its frame where permitted
 *
 * SF1  A limit on the size of files (RLIMIT_FSIZE) is looked at before, since
 *      growing a file beyond it is a signal.
 * SF2  S1 and S2 of sys_linux.c hold.
 *
 * Concurrency: any thread.  Cost: some system calls each.  Failure: a negative
 * errno, and nothing changed.
 * Proved by tests/unit/test_sys_file.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../bits.h"
#include "sys.h"

/* Values of the kernel's interface that older headers lack. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_HUGE_SHIFT
#define MFD_HUGE_SHIFT 26
#endif

static bool is_size_allowed(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
	       limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

/* Returns 0 or a negative errno. */
static int size_set(int fd, size_t bytes)
{
	if (!is_size_allowed(bytes)) /* SF1 */
		return -EFBIG;
	if (ftruncate(fd, (off_t)bytes) != 0 ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	return 0;
}

/* The descriptor or a negative errno. */
static int file_make(const char *name, unsigned flags)
{
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

int pcpi_sys_memory_file(const char *name, size_t bytes, size_t page_bytes)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int saved = errno, fd, rc;

	if (page_bytes != pcpi_sys_page_bytes())
		flags |= MFD_HUGETLB | pcpi_log2(page_bytes) << MFD_HUGE_SHIFT;
	fd = file_make(name, flags);
	if (fd >= 0) {
		rc = size_set(fd, bytes);
		if (rc != 0) {
			syscall(SYS_close, fd);
			fd = rc;
		}
	}
	errno = saved;
	return fd;
}

int pcpi_sys_punch(int fd, uint64_t offset, size_t bytes)
{
	int saved = errno;
	long rc;

	do {
		rc = syscall(SYS_fallocate, fd,
			     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			     (off_t)offset, (off_t)bytes);
	} while (rc != 0 && errno == EINTR);
	rc = rc != 0 ? -errno : 0;
	errno = saved;
	return (int)rc;
}

int pcpi_sys_pagemap(const void *addr, uint64_t *out)
{
	uint64_t page = (uintptr_t)addr / pcpi_sys_page_bytes(), entry = 0;
	int saved = errno, rc = 0, cancel, fd;
	ssize_t got;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
	} else {
		got = pread(fd, &entry, sizeof(entry),
			    (off_t)(page * sizeof(entry)));
		if (got != (ssize_t)sizeof(entry))
			rc = got < 0 ? -errno : -EIO;
		close(fd);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	if (rc == 0)
		*out = entry;
	return rc;
}
