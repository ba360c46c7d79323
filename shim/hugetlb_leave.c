/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb_leave.c - what is from the pool of huge pages becomes other memory with
 * the same contents.
 *
 *   copy      to memory beside the range, by a call that says so when a page can't be
 *             read (it isn't there any more, or was taken for a parent's copy)
 *   replace   one mremap() onto the original: each access finds the one or the other
 *
 * What another thread writes between the two would be lost.  So the original is
 * protected from writes by userfaultfd, which makes the writer wait in the kernel;
 * closing the descriptor lets it go on, on the new memory.  That needs no other thread, no
 * signal and no handler.  An ordinary user may only hold up writes of programs.  Those of
 * the kernel for them then fail: a system call with EFAULT, and what it writes to a
 * thread's own memory (rseq) by ending the program.  So nothing comes from the pool
 * there (hugetlb.c), and only a program that has given up its rights since comes to
 * that.
 *
 * The thread that does this may have its own stack there: hugetlb_stack.c.
 *
 * A program that has one thread needs none of that, and its descriptors may all be
 * taken: how many threads there are is asked of /proc, without one.
 *
 * Failure: the original stays as it is, and is counted.
 * Limit: what a device or an asynchronous operation writes to the pages meanwhile.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hugetlb.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "bits.h"
#include "mem.h"
#include "raw.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

#define UNIT_BYTES ((size_t)SHIM_UNIT_PAGES << SHIM_PAGE_SHIFT)

/* ---- Who else writes ----------------------------------------------------- */

/* A folder for each thread, besides the two that each folder has.  This needs no
 * descriptor. */
static bool alone(void)
{
	struct stat tasks;

	return !raw_failed(raw6(SYS_newfstatat, AT_FDCWD,
				(long)"/proc/self/task", (long)&tasks, 0, 0,
				0)) &&
	       tasks.st_nlink == 2 + 1;
}

/* A descriptor by which writes can be held up; negative: none. */
static long holder_open(bool kernel_mode)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	long flags = O_CLOEXEC | O_NONBLOCK |
		     (kernel_mode ? 0 : UFFD_USER_MODE_ONLY);
	long fd = raw6(SYS_userfaultfd, flags, 0, 0, 0, 0, 0);

	if (raw_failed(fd))
		return fd;
	if (!raw_failed(
		    raw6(SYS_ioctl, fd, (long)UFFDIO_API, (long)&api, 0, 0, 0)))
		return fd;
	raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	return -1;
}

bool shim_hugetlb_can_hold(void)
{
	long fd = holder_open(true);

	if (raw_failed(fd))
		return false;
	raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	return true;
}

/* One unit is one area; older kernels don't protect several at once. */
static bool unit_protect(long fd, uintptr_t at)
{
	struct uffdio_writeprotect protect = {
		.range = {.start = at, .len = UNIT_BYTES},
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	return !raw_failed(raw6(SYS_ioctl, fd, (long)UFFDIO_WRITEPROTECT,
				(long)&protect, 0, 0, 0));
}

/* Writes wait until the descriptor is closed.  Where there is no memory yet, as in units
 * that were given back, nothing could be protected: there it becomes the zero page. */
static bool writes_hold(long fd, uintptr_t at, size_t bytes)
{
	struct uffdio_register area = {
		.range = {.start = at, .len = bytes},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	if (raw_failed(raw_madvise(at, bytes, MADV_POPULATE_READ)) ||
	    raw_failed(raw6(SYS_ioctl, fd, (long)UFFDIO_REGISTER, (long)&area,
			    0, 0, 0)))
		return false;
	for (size_t i = 0; i < bytes; i += UNIT_BYTES)
		if (!unit_protect(fd, at + i))
			return false;
	return true;
}

/* ---- Copying ------------------------------------------------------------- */

static bool run_copy(uintptr_t to, uintptr_t from, size_t bytes)
{
	struct iovec source = {(void *)from, bytes};
	struct iovec target = {(void *)to, bytes};
	long pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long r = raw6(SYS_process_vm_readv, pid, (long)&target, 1,
		      (long)&source, 1, 0);

	if (r != -ENOSYS && r != -EPERM)
		return r == (long)bytes;
	/* A filter of system calls refuses it. */
	shim_copy((void *)to, (void *)from, bytes);
	return true;
}

static bool unit_zero(uintptr_t at)
{
	const uint64_t *words = (const uint64_t *)at;

	for (size_t i = 0; i < UNIT_BYTES / sizeof(*words); i++)
		if (words[i])
			return false;
	return true;
}

/* Units that were given back stay without memory in a copy. */
static void run_empty(uintptr_t copy, uintptr_t at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += UNIT_BYTES)
		if (shim_pool_zone(shim_pfn(at + i)) != SHIM_HUGETLB &&
		    unit_zero(copy + i))
			raw_madvise(copy + i, UNIT_BYTES, MADV_DONTNEED);
}

/* A copy takes the place of the original. */
static bool run_replace(uintptr_t at, size_t bytes)
{
	long area = raw_mmap(0, bytes + UNIT_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uintptr_t copy;
	bool done;

	if (raw_failed(area))
		return false;
	copy = pcpi_round_up((uintptr_t)area, UNIT_BYTES);
	raw_madvise(copy, bytes, MADV_HUGEPAGE);
	done = run_copy(copy, at, bytes);
	if (done)
		run_empty(copy, at, bytes);
	done = done && !raw_failed(raw_mremap(copy, bytes, bytes,
					      MREMAP_MAYMOVE | MREMAP_FIXED, at));
	if (copy > (uintptr_t)area)
		raw_munmap((uintptr_t)area, copy - (uintptr_t)area);
	if (!done)
		raw_munmap(copy, bytes);
	raw_munmap(copy + bytes, (uintptr_t)area + UNIT_BYTES - copy);
	return done;
}

static bool run_replace_held(uintptr_t at, size_t bytes)
{
	long fd = holder_open(true);
	bool done;

	if (raw_failed(fd))
		fd = holder_open(false);
	if (raw_failed(fd))
		return false;
	done = writes_hold(fd, at, bytes) && run_replace(at, bytes);
	raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	return done;
}

/* Of the one who leaves. */
static struct {
	uintptr_t at;
	size_t bytes;
	bool done;
} leaving;

static void leaving_replace(void)
{
	leaving.done = alone() ? run_replace(leaving.at, leaving.bytes)
			       : run_replace_held(leaving.at, leaving.bytes);
}

bool shim_hugetlb_run_leave(uint32_t first, uint32_t end)
{
	bool done;

	leaving.at = shim_at(first);
	leaving.bytes = (size_t)(end - first) << SHIM_PAGE_SHIFT;
	done = shim_hugetlb_call(leaving_replace, leaving.at, leaving.bytes) &&
	       leaving.done;
	pcpi_counter_add(done ? &shim_hugetlb.left_units
			      : &shim_hugetlb.lost_units,
			 (end - first) >> SHIM_UNIT_ORDER);
	return done;
}
