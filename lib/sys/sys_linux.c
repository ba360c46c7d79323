/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys_linux.c - the system calls of the library, on Linux.
 *
 * Owns: the table pcpi_sys_linux, the pointer to the table in use, and the one
 * way to write to standard error.  Does not own: any policy; what to try next
 * after a refusal is the caller's (arena.c).
 *
 *   reserve      mmap PROT_NONE|NORESERVE: costs address space only
 *   commit       mprotect: a range of a reservation becomes memory, and merges
 *                with the committed range before it, so the number of areas
 *                stays the same
 *   map_hugetlb  mmap MAP_FIXED over a reservation, once for a whole window,
 *                because hugetlb areas never merge
 *   map_file     the same with a file, for a window of a shared heap
 *   populate     madvise POPULATE_WRITE: the only call that reports a lack of
 *                huge pages, where a touch raises SIGBUS and MAP_POPULATE says
 *                nothing
 *
 * Invariants:
 *   S1  no function changes errno or allocates memory of the C library (thread
 *       creation allocates its own stacks);
 *   S2  no function is a cancellation point while it holds something that a
 *       cancelled thread would lose: a descriptor, or helpers that still run on
 *       the caller's frame.
 *
 * Concurrency: every function may be called from any thread; none takes a lock.
 * Cost: one system call each, but for parallel and read_file.
 * Failure: a negative errno, and nothing changed unless sys.h says so.
 * Proved by tests/unit/test_sys.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../atomics.h"
#include "../bits.h"
#include "sys.h"

/* Values of the kernel's interface that older headers lack. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef PR_SET_VMA_ANON_NAME
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define RESERVE_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* A helper thread only populates; more of them than this gain nothing. */
#define MAX_HELPERS 64u
#define HELPER_STACK_BYTES ((size_t)128 << 10)

const struct pcpi_sys *pcpi_sys = &pcpi_sys_linux;

/* 0, or -errno of the call that returned rc; errno is as it was. */
static int settle(long rc, int saved_errno)
{
	int err = rc < 0 ? -errno : 0;

	errno = saved_errno;
	return err;
}

/* ---- Ranges ------------------------------------------------------------- */

static size_t linux_page_bytes(void)
{
	static size_t page_bytes;
	/* relaxed: all threads store the same value. */
	size_t bytes = pcpi_load_relaxed(&page_bytes);

	if (bytes == 0) {
		bytes = (size_t)sysconf(_SC_PAGESIZE);
		/* relaxed: as above. */
		pcpi_store_relaxed(&page_bytes, bytes);
	}
	return bytes;
}

static int map_anon(size_t bytes, int prot, int flags, void **out)
{
	int saved = errno;
	void *p = mmap(NULL, bytes, prot, flags, -1, 0);
	int rc = settle(p == MAP_FAILED ? -1 : 0, saved);

	if (rc == 0)
		*out = p;
	return rc;
}

static int linux_unmap(void *addr, size_t bytes)
{
	int saved = errno;

	return settle(munmap(addr, bytes), saved);
}

/* Cuts [addr, +bytes) out of a larger fresh mapping that begins at raw. */
static int trim_to(char *raw, size_t raw_bytes, char *addr, size_t bytes)
{
	size_t head = (size_t)(addr - raw);
	size_t tail = raw_bytes - head - bytes;
	int rc = 0;

	if (head)
		rc = linux_unmap(raw, head);
	if (rc == 0 && tail)
		rc = linux_unmap(addr + bytes, tail);
	if (rc != 0)
		linux_unmap(raw, raw_bytes);
	return rc;
}

static int linux_reserve(size_t bytes, size_t align, void **out)
{
	size_t slack = align - linux_page_bytes();
	void *raw;
	char *addr;
	int rc = map_anon(bytes, PROT_NONE, RESERVE_FLAGS, &raw);

	if (rc != 0)
		return rc;
	if (((uintptr_t)raw & (align - 1)) != 0) {
		/* Only now, so that a tight RLIMIT_AS isn't asked for slack
		 * that luck makes needless. */
		linux_unmap(raw, bytes);
		if (bytes + slack < bytes)
			return -ENOMEM;
		rc = map_anon(bytes + slack, PROT_NONE, RESERVE_FLAGS, &raw);
		if (rc != 0)
			return rc;
		addr = (char *)raw + (-(uintptr_t)raw & (align - 1));
		rc = trim_to(raw, bytes + slack, addr, bytes);
		if (rc != 0)
			return rc;
		raw = addr;
	}
	*out = raw;
	return 0;
}

static int linux_map_meta(size_t bytes, void **out)
{
	return map_anon(bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, out);
}

/* Maps over a reservation, without access: after mlockall(MCL_FUTURE) the kernel
 * would at once fill an accessible window with all of the pool. */
static int map_over(void *addr, size_t bytes, int flags, int fd)
{
	int saved = errno;
	void *p = mmap(addr, bytes, PROT_NONE, flags | MAP_FIXED, fd, 0);
	int rc = settle(p == MAP_FAILED ? -1 : 0, saved);

	if (rc != 0) {
		/* Most refusals come before the old range is taken away.  Where
		 * not, put it back; where it is there, this does nothing. */
		mmap(addr, bytes, PROT_NONE,
		     RESERVE_FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
		errno = saved;
	}
	return rc;
}

static int linux_map_hugetlb(void *addr, size_t bytes, size_t page_bytes)
{
	int size = (int)(pcpi_log2(page_bytes) << MAP_HUGE_SHIFT);
	int rc = map_over(addr, bytes, RESERVE_FLAGS | MAP_HUGETLB | size, -1);
	int saved = errno;

	if (rc == 0)
		rc = settle(mprotect(addr, bytes, PROT_READ | PROT_WRITE),
			    saved);
	return rc;
}

static int linux_map_file(void *addr, size_t bytes, int fd)
{
	return map_over(addr, bytes, MAP_SHARED | MAP_NORESERVE, fd);
}

static int linux_commit(void *addr, size_t bytes)
{
	int saved = errno;

	return settle(mprotect(addr, bytes, PROT_READ | PROT_WRITE), saved);
}

static int linux_decommit(void *addr, size_t bytes)
{
	int saved = errno;

	return settle(mprotect(addr, bytes, PROT_NONE), saved);
}

static int linux_populate(void *addr, size_t bytes)
{
	int saved = errno;
	int rc;

	/* What is populated already costs little the second time. */
	do {
		rc = settle(madvise(addr, bytes, MADV_POPULATE_WRITE), saved);
	} while (rc == -EINTR || rc == -EAGAIN);
	return rc;
}

static int linux_advise(void *addr, size_t bytes, enum pcpi_advice advice)
{
	static const int madv[] = {
		[PCPI_ADVISE_HUGE] = MADV_HUGEPAGE,
		[PCPI_ADVISE_NOHUGE] = MADV_NOHUGEPAGE,
		[PCPI_ADVISE_DONTDUMP] = MADV_DONTDUMP,
		[PCPI_ADVISE_DONTFORK] = MADV_DONTFORK,
		[PCPI_ADVISE_DONTNEED] = MADV_DONTNEED,
	};
	int saved = errno;
	int rc = settle(madvise(addr, bytes, madv[advice]), saved);

	/* Memory that mlockall() locked wants a word of its own. */
	if (rc == -EINVAL && advice == PCPI_ADVISE_DONTNEED)
		rc = settle(madvise(addr, bytes, MADV_DONTNEED_LOCKED), saved);
	return rc;
}

static void linux_name(void *addr, size_t bytes, const char *name)
{
	int saved = errno;

	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, (unsigned long)addr,
	      (unsigned long)bytes, (unsigned long)name);
	errno = saved;
}

/* Until the heap fills in those of sys_numa.c. */
static int linux_bind(void *addr, size_t bytes, unsigned os_node,
		      enum pcpi_binding how)
{
	(void)addr;
	(void)bytes;
	(void)os_node;
	(void)how;
	return -ENOSYS;
}

static ssize_t linux_elsewhere(const void *addr, size_t bytes, size_t step,
			       unsigned os_node)
{
	(void)addr;
	(void)bytes;
	(void)step;
	(void)os_node;
	return -ENOSYS;
}

/* ---- Threads ------------------------------------------------------------ */

struct crew {
	void (*fn)(void *arg, unsigned i);
	void *arg;
	unsigned n;
	unsigned stride;
};

struct helper {
	pthread_t thread;
	const struct crew *crew;
	unsigned first;
	bool started;
};

/* Every stride-th piece of the work, from the first. */
static void run_share(const struct crew *crew, unsigned first)
{
	for (unsigned i = first; i < crew->n; i += crew->stride)
		crew->fn(crew->arg, i);
}

static void *helper_main(void *arg)
{
	struct helper *h = arg;

	run_share(h->crew, h->first);
	return NULL;
}

/* Starts helpers 1..stride-1 with all signals blocked, so that no handler of
 * the program ever runs on them. */
static void start_helpers(struct helper *helpers, const struct crew *crew)
{
	sigset_t all, before;
	pthread_attr_t attr;
	size_t stack = pcpi_max(HELPER_STACK_BYTES, (size_t)PTHREAD_STACK_MIN);

	for (unsigned i = 1; i < crew->stride; i++)
		helpers[i] = (struct helper){.crew = crew, .first = i};
	if (pthread_attr_init(&attr) != 0)
		return;
	pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 1; i < crew->stride; i++)
		helpers[i].started =
			pthread_create(&helpers[i].thread, &attr, helper_main,
				       &helpers[i]) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

static void linux_parallel(unsigned n, void (*fn)(void *arg, unsigned i),
			   void *arg)
{
	struct helper helpers[MAX_HELPERS];
	struct crew crew = {fn, arg, n, pcpi_min(n, MAX_HELPERS)};
	int saved = errno;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (crew.stride > 1)
		start_helpers(helpers, &crew);
	run_share(&crew, 0);
	for (unsigned i = 1; i < crew.stride; i++) {
		if (helpers[i].started)
			pthread_join(helpers[i].thread, NULL);
		else
			run_share(&crew, i);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

static int linux_thread_start(const char *name, void *(*fn)(void *arg),
			      void *arg, pthread_t *out)
{
	sigset_t all, before;
	int saved = errno, err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(out, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == 0)
		pthread_setname_np(*out, name);
	errno = saved;
	return -err;
}

static void linux_thread_join(pthread_t thread)
{
	int saved = errno;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_join(thread, NULL);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

/* Commands of Linux 5.10, by number for older headers. */
#define MEMBARRIER_RSEQ (1 << 7)
#define MEMBARRIER_REGISTER_RSEQ (1 << 8)

static long membarrier_call(int command)
{
#ifdef SYS_membarrier
	return syscall(SYS_membarrier, command, 0, 0);
#else
	(void)command;
	errno = ENOSYS;
	return -1;
#endif
}

static int linux_membarrier_register(void)
{
	int saved = errno;

	return settle(membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
		      saved);
}

static int linux_membarrier(void)
{
	int saved = errno;

	return settle(membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED), saved);
}

static int linux_membarrier_rseq_register(void)
{
	int saved = errno;

	return settle(membarrier_call(MEMBARRIER_REGISTER_RSEQ), saved);
}

static int linux_membarrier_rseq(void)
{
	int saved = errno;

	return settle(membarrier_call(MEMBARRIER_RSEQ), saved);
}

/* The C library's, since glibc 2.35; missing in older ones and in others. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

static int linux_rseq_offset(ptrdiff_t *out)
{
	if (!&__rseq_size || !&__rseq_offset || __rseq_size == 0)
		return -ENOSYS;
	*out = __rseq_offset;
	return 0;
}

static int linux_cpu(void)
{
	int saved = errno;
	int cpu = sched_getcpu();

	errno = saved;
	return cpu;
}

static int linux_node(void)
{
	int saved = errno;
	unsigned cpu, node;
	long rc = syscall(SYS_getcpu, &cpu, &node, NULL);

	errno = saved;
	return rc == 0 ? (int)node : -1;
}

static unsigned linux_cpus(void)
{
	int saved = errno;
	cpu_set_t set;
	long n;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	else /* more CPUs than the set holds */
		n = sysconf(_SC_NPROCESSORS_ONLN);
	errno = saved;
	return n > 0 ? (unsigned)n : 1u;
}

static int linux_tid(void)
{
	return (int)syscall(SYS_gettid);
}

static uint64_t linux_switches(void)
{
	struct rusage usage = { 0 };
	int saved = errno;

	getrusage(RUSAGE_THREAD, &usage);
	errno = saved;
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static void linux_yield(void)
{
	sched_yield();
}

/* ---- Time, files, limits ------------------------------------------------ */

static uint64_t clock_read(clockid_t id)
{
	struct timespec ts = {0, 0};

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static uint64_t linux_coarse_ns(void)
{
	return clock_read(CLOCK_MONOTONIC_COARSE);
}

static uint64_t linux_clock_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* Reads until the buffer is full or the file ends. */
static ssize_t read_whole(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t got;

	do {
		got = read(fd, buf + len, size - len);
		if (got > 0)
			len += (size_t)got;
	} while ((got > 0 && len < size) || (got < 0 && errno == EINTR));
	return got < 0 ? -errno : (ssize_t)len;
}

static ssize_t linux_read_file(const char *path, char *buf, size_t size)
{
	int saved = errno;
	ssize_t len;
	int cancel, fd;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -errno : read_whole(fd, buf, size - 1);
	if (fd >= 0)
		close(fd);
	pthread_setcancelstate(cancel, NULL);
	if (len >= 0)
		buf[len] = '\0';
	errno = saved;
	return len;
}

static uint64_t linux_address_space_left(void)
{
	int saved = errno;
	struct rlimit limit;
	uint64_t pages = 0, used;
	int rc = getrlimit(RLIMIT_AS, &limit);

	errno = saved;
	if (rc != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	pcpi_sys_read_u64("/proc/self/statm", &pages);
	used = pages * linux_page_bytes();
	return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

/* By syscall(), which is no cancellation point: S2. */
static int linux_event_make(void)
{
	int saved = errno;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int err = settle(fd, saved);

	return err ? err : fd;
}

static void linux_event_raise(int fd)
{
	int saved = errno;
	const uint64_t one = 1;

	/* A full counter is readable, too. */
	syscall(SYS_write, fd, &one, sizeof(one));
	errno = saved;
}

static void linux_fd_close(int fd)
{
	int saved = errno;

	syscall(SYS_close, fd);
	errno = saved;
}

static void linux_write_err(const char *text, size_t len)
{
	int saved = errno;
	int cancel;
	ssize_t done;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	done = write(STDERR_FILENO, text, len);
	(void)done; /* nowhere to complain */
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

const struct pcpi_sys pcpi_sys_linux = {
	.page_bytes = linux_page_bytes,
	.reserve = linux_reserve,
	.map_meta = linux_map_meta,
	.map_hugetlb = linux_map_hugetlb,
	.memory_file = pcpi_sys_memory_file,
	.map_file = linux_map_file,
	.punch = pcpi_sys_punch,
	.commit = linux_commit,
	.decommit = linux_decommit,
	.unmap = linux_unmap,
	.populate = linux_populate,
	.advise = linux_advise,
	.name = linux_name,
	.bind = linux_bind,
	.elsewhere = linux_elsewhere,
	.parallel = linux_parallel,
	.thread_start = linux_thread_start,
	.thread_join = linux_thread_join,
	.read_file = linux_read_file,
	.membarrier_register = linux_membarrier_register,
	.membarrier = linux_membarrier,
	.rseq_offset = linux_rseq_offset,
	.membarrier_rseq_register = linux_membarrier_rseq_register,
	.membarrier_rseq = linux_membarrier_rseq,
	.coarse_ns = linux_coarse_ns,
	.clock_ns = linux_clock_ns,
	.cpu = linux_cpu,
	.node = linux_node,
	.cpus = linux_cpus,
	.tid = linux_tid,
	.switches = linux_switches,
	.yield = linux_yield,
	.address_space_left = linux_address_space_left,
	.event_make = linux_event_make,
	.event_raise = linux_event_raise,
	.fd_close = linux_fd_close,
	.pagemap = pcpi_sys_pagemap,
	.write_err = linux_write_err,
};

/* ---- Through the table in use ------------------------------------------- */

size_t pcpi_sys_page_bytes(void)
{
	return pcpi_sys->page_bytes();
}

int pcpi_sys_read_u64(const char *path, uint64_t *out)
{
	char buf[32];
	const char *p = buf;
	uint64_t x = 0;
	ssize_t len = pcpi_sys->read_file(path, buf, sizeof(buf));

	if (len < 0)
		return (int)len;
	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		x = x * 10 + (uint64_t)(*p - '0');
	*out = x;
	return 0;
}

void pcpi_sys_say(const char *fmt, ...)
{
	static const char prefix[] = "pcpalloc: ";
	char line[PCPI_SAY_BYTES];
	size_t at = sizeof(prefix) - 1;
	size_t room = sizeof(line) - at; /* text and a newline or its NUL */
	int saved = errno;
	va_list args;
	int len;

	__builtin_memcpy(line, prefix, at);
	va_start(args, fmt);
	len = vsnprintf(line + at, room, fmt, args);
	va_end(args);
	errno = saved;
	if (len < 0)
		return;
	at += pcpi_min((size_t)len, room - 1);
	line[at++] = '\n';
	pcpi_sys->write_err(line, at);
}
