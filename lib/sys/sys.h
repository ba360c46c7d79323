/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys.h - what the library asks of the operating system.  Layer 1.
 *
 * Owns: the one table of functions behind which every system call lives
 * (sys_linux.c), so that tests can refuse any of them and a preloaded shim can
 * do without hwloc and libnuma: binding and asking where pages are (sys_numa.c)
 * are members that the heap fills in and that say -ENOSYS until then.
 *
 * Conventions: 0 or a negative errno; lengths are multiples of the base page
 * (of the huge page in a hugetlb range); nothing here allocates memory of the
 * C library, and nothing changes errno.
 */
#ifndef PCPI_SYS_H
#define PCPI_SYS_H

#include <pthread.h>
#include <sys/types.h>

#include "../base.h"

enum pcpi_advice {
	PCPI_ADVISE_HUGE,     /* transparent huge pages wanted    */
	PCPI_ADVISE_NOHUGE,   /* not wanted                       */
	PCPI_ADVISE_DONTDUMP, /* not part of core dumps           */
	PCPI_ADVISE_DONTFORK, /* not inherited                    */
	PCPI_ADVISE_DONTNEED, /* give the pages back, keep range  */
};

enum pcpi_binding {
	PCPI_BIND_PREFER, /* another node's where the node has none left    */
	PCPI_BIND_ONLY,   /* none then; for memory whose lack is an error   */
};

#define PCPI_SAY_BYTES 512

struct pcpi_sys {
	/* Bytes of a base page, a power of two that never changes. */
	size_t (*page_bytes)(void);
	/* Address space of `bytes`, no access, not charged; aligned to `align`
	 * (a power of two, at least a page).  *out on success. */
	int (*reserve)(size_t bytes, size_t align, void **out);
	/* Read-write zero memory at a free place, not populated, for metadata. */
	int (*map_meta)(size_t bytes, void **out);
	/* Replaces [addr, +bytes) of a reservation by a private hugetlb mapping
	 * of pages of page_bytes, NORESERVE.  On failure the reservation is
	 * still there, without access. */
	int (*map_hugetlb)(void *addr, size_t bytes, size_t page_bytes);
	/* A memory file of `bytes`, no page of it backed yet, of hugetlb pages where
	 * page_bytes is not the base page's.  Its size is sealed, so that no holder
	 * of the descriptor can shorten it (though punch holes); closed at exec.  The
	 * descriptor or an error, -EFBIG beyond RLIMIT_FSIZE. */
	int (*memory_file)(const char *name, size_t bytes, size_t page_bytes);
	/* Replaces [addr, +bytes) of a reservation by a shared mapping of the file's
	 * beginning, without access, NORESERVE.  On failure as map_hugetlb. */
	int (*map_file)(void *addr, size_t bytes, int fd);
	/* Gives the pages of a range of a memory file back, in every mapping. */
	int (*punch)(int fd, uint64_t offset, size_t bytes);
	/* Makes a reserved range readable and writable (charged there). */
	int (*commit)(void *addr, size_t bytes);
	/* Takes the access away again; pages and charge stay with the range. */
	int (*decommit)(void *addr, size_t bytes);
	int (*unmap)(void *addr, size_t bytes);
	/* Backs the range now; an error where a touch would be a signal.  What
	 * came before the error stays.  -EINVAL, -ENOSYS or -EPERM: the kernel
	 * has no such call. */
	int (*populate)(void *addr, size_t bytes);
	int (*advise)(void *addr, size_t bytes, enum pcpi_advice advice);
	/* Names the range in the maps file; failure means nothing. */
	void (*name)(void *addr, size_t bytes, const char *name);
	/* Of which node pages are that come; those that are there stay. */
	int (*bind)(void *addr, size_t bytes, unsigned os_node,
		    enum pcpi_binding how);
	/* How many of the pages at addr, addr + step, ... below addr + bytes are
	 * of another node; an error where the kernel doesn't tell. */
	ssize_t (*elsewhere)(const void *addr, size_t bytes, size_t step,
			     unsigned os_node);
	/* Runs fn(arg, i) for i in 0..n-1 side by side on short-lived threads with
	 * all signals blocked, and returns when all have ended.  Where threads
	 * can't be made the caller runs them. */
	void (*parallel)(unsigned n, void (*fn)(void *arg, unsigned i),
			 void *arg);
	/* Starts a thread with all signals blocked, and waits for its end. */
	int (*thread_start)(const char *name, void *(*fn)(void *arg), void *arg,
			    pthread_t *out);
	void (*thread_join)(pthread_t thread);
	/* Reads at most size-1 bytes of a file, terminated; the length or an error. */
	ssize_t (*read_file)(const char *path, char *buf, size_t size);
	/* Prepares for membarrier(); an error where it is refused. */
	int (*membarrier_register)(void);
	/* Every running thread of the process passes a full barrier. */
	int (*membarrier)(void);
	/* Where each thread has its struct rseq, in bytes from its thread pointer;
	 * an error where the C library registers none. */
	int (*rseq_offset)(ptrdiff_t *out);
	/* Prepares for membarrier_rseq(); an error where it is refused. */
	int (*membarrier_rseq_register)(void);
	/* Every thread of the process that is inside a restartable sequence is
	 * sent to its abort before it goes on. */
	int (*membarrier_rseq)(void);
	/* Monotonic, a few ms coarse and cheap / exact. */
	uint64_t (*coarse_ns)(void);
	uint64_t (*clock_ns)(void);
	/* CPU that the caller is on, -1 if unknown. */
	int (*cpu)(void);
	/* Number of the node that the caller is on, -1 if unknown. */
	int (*node)(void);
	/* CPUs the process may run on, at least 1. */
	unsigned (*cpus)(void);
	int (*tid)(void);
	/* How often the calling thread has been off its CPU so far. */
	uint64_t (*switches)(void);
	void (*yield)(void);
	/* Address space still allowed to the process (RLIMIT_AS less what is
	 * mapped); UINT64_MAX: not limited. */
	uint64_t (*address_space_left)(void);
	/* A descriptor that becomes readable when it is raised (eventfd), closed
	 * at exec; or an error. */
	int (*event_make)(void);
	void (*event_raise)(int fd);
	/* Of an event or a memory file. */
	void (*fd_close)(int fd);
	/* The kernel's word on the page at addr (Documentation/admin-guide/mm/
	 * pagemap.rst); or an error. */
	int (*pagemap)(const void *addr, uint64_t *out);
	/* Writes to standard error in one piece. */
	void (*write_err)(const char *text, size_t len);
};

/* The table in use: pcpi_sys_linux, unless a test says otherwise. */
extern const struct pcpi_sys *pcpi_sys;
extern const struct pcpi_sys pcpi_sys_linux;

/* Base page size. */
size_t pcpi_sys_page_bytes(void);

/* The decimal number that the file begins with.  -EINVAL: with none. */
int pcpi_sys_read_u64(const char *path, uint64_t *out);

/* One line "pcpalloc: ...\n" of at most PCPI_SAY_BYTES on standard error; what
 * is longer is cut. */
void pcpi_sys_say(const char *fmt, ...) PCPI_PRINTF(1, 2);

/* Members of pcpi_sys_linux that have a file of their own (sys_file.c). */
int pcpi_sys_memory_file(const char *name, size_t bytes, size_t page_bytes);
int pcpi_sys_punch(int fd, uint64_t offset, size_t bytes);
int pcpi_sys_pagemap(const void *addr, uint64_t *out);

/* libnuma's, for the heap to put in a copy of the table (sys_numa.c). */
int pcpi_sys_bind_numa(void *addr, size_t bytes, unsigned os_node,
		       enum pcpi_binding how);
ssize_t pcpi_sys_elsewhere_numa(const void *addr, size_t bytes, size_t step,
				unsigned os_node);

#endif
