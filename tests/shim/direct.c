/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.c - rule 16: the same calls as bare instructions, of which no library hears,
 * and through syscall(), of which it does.
 *
 * After a bare instruction a program goes on as one does that knows of it: what it
 * unmapped so it doesn't free again, what it protected so it opens again.
 */
#define _GNU_SOURCE
#include "direct.h"
#include "contract.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>

/* ---- Bare instructions -------------------------------------------------------------- */

/* All sizes go on: nothing that the library keeps was in that memory. */
static void expect_all_goes_on(void)
{
	for (size_t bytes = PAGE; bytes <= 4 * MIB; bytes *= 4)
		expect_clean(bytes);
}

static void rule16_direct_munmap_of_all(void)
{
	for (size_t bytes = PAGE; bytes <= 4 * MIB; bytes *= 4) {
		unsigned char *p = map_soiled(bytes);

		EXPECT(direct_munmap(p, bytes) == 0);
		expect_all_goes_on();
	}
}

static void rule16_direct_munmap_of_a_part(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		EXPECT(direct_munmap(p + bytes / 4, bytes / 4) == 0);
		expect_bytes(p, bytes / 4, SOIL, "below");
		expect_bytes(p + bytes / 2, bytes / 2, SOIL, "above");
		unmap(p, bytes / 4);
		unmap(p + bytes / 2, bytes / 2);
		expect_all_goes_on();
	}
}

static void rule16_direct_hole_can_be_mapped(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	EXPECT(direct_munmap(p, 64 * KIB) == 0);
	EXPECT(mmap(p, 64 * KIB, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == p);
	expect_zero(p, 64 * KIB, "in a hole made directly");
	memset(p, SOIL, 64 * KIB);
	unmap(p, 64 * KIB);
	expect_all_goes_on();
}

/* The kernel puts something of its own choice there, which is then freed. */
static void rule16_direct_hole_is_filled(void)
{
	int fd = file_of(64 * KIB, 5);
	unsigned char *p = map_soiled(64 * KIB), *q, byte = 0;

	EXPECT(direct_munmap(p, 64 * KIB) == 0);
	q = mmap(p, 64 * KIB, RW, MAP_SHARED, fd, 0);
	EXPECT(q != MAP_FAILED);
	expect_bytes(q, 64 * KIB, 5, "a file in a hole made directly");
	expect_all_goes_on();
	expect_bytes(q, 64 * KIB, 5, "a file in a hole, later");
	unmap(q, 64 * KIB);
	expect_all_goes_on();
	EXPECT(pread(fd, &byte, 1, 0) == 1 && byte == 5);
}

static void rule16_direct_guard_and_back(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	EXPECT(direct_mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
	expect_segv(fault_read(p + PAGE), SEGV_ACCERR, "a direct guard");
	EXPECT(direct_mprotect(p + PAGE, PAGE, RW) == 0);
	expect_bytes(p, 64 * KIB, SOIL, "a direct guard and back");
	unmap(p, 64 * KIB);
	expect_all_goes_on();
}

static void rule16_direct_fixed_inside(void)
{
	unsigned char *p = map_soiled(MIB), *q = p + 256 * KIB;

	EXPECT(direct_mmap(q, 64 * KIB, RW, ANON | MAP_FIXED, -1) == q);
	expect_zero(q, 64 * KIB, "direct MAP_FIXED");
	expect_bytes(p, 256 * KIB, SOIL, "below direct MAP_FIXED");
	memset(q, SOIL, 64 * KIB);
	unmap(p, MIB);
	expect_all_goes_on();
}

/* Mapped directly, freed and changed through the library. */
static void rule16_direct_mapping_is_taken_back(void)
{
	for (size_t bytes = PAGE; bytes <= 4 * MIB; bytes *= 4) {
		unsigned char *p = direct_mmap(NULL, bytes, RW, ANON, -1), *q;

		expect_zero(p, bytes, "mapped directly");
		memset(p, SOIL, bytes);
		OK(mprotect(p, PAGE, PROT_READ));
		OK(mprotect(p, PAGE, RW));
		q = mremap(p, bytes, 2 * bytes, MREMAP_MAYMOVE);
		EXPECT(q != MAP_FAILED);
		expect_bytes(q, bytes, SOIL, "grown by mremap");
		unmap(q, 2 * bytes);
		EXPECT(is_hole(q));
		expect_clean(bytes);
	}
}

/* Advice makes several areas of a mapping.  Of those the kernel moves the first; what
 * lies behind the target is another mapping's. */
static void rule16_direct_areas_shrink_as_they_move(void)
{
	for (size_t bytes = 64 * KIB; bytes <= 4 * MIB; bytes *= 4) {
		unsigned char *p = map_soiled(bytes), *to = map(bytes);

		memset(to, 5, bytes);
		EXPECT(direct_call(SYS_madvise, (uintptr_t)p + bytes / 2,
				   bytes / 2, MADV_DONTDUMP, 0, 0, 0) == 0);
		EXPECT(mremap(p, bytes, bytes / 4,
			      MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
		expect_bytes(to, bytes / 4, SOIL, "moved");
		expect_bytes(to + bytes / 4, bytes - bytes / 4, 5,
			     "behind the target");
		EXPECT(is_hole(p) && is_hole(p + bytes - PAGE));
		unmap(to, bytes);
	}
}

static void rule16_direct_munmap_of_everything_held(void)
{
	enum { N = 64 };
	unsigned char *p[N];

	for (unsigned i = 0; i < N; i++)
		p[i] = map_soiled((i % 16 + 1) * PAGE);
	for (unsigned i = 0; i < N; i++)
		EXPECT(direct_munmap(p[i], (i % 16 + 1) * PAGE) == 0);
	expect_all_goes_on();
	churn_start(4);
	expect_all_goes_on();
	churn_stop();
}

/* ---- Rule 8, seen from here ---------------------------------------------------------- *
 *
 * The kernel's munmap ends whatever was there.  A library that keeps what is freed
 * hasn't heard of what was done to it directly; only a real munmap ends that.
 */

static void rule08_direct_munmap_then_munmap(void)
{
	for (size_t bytes = PAGE; bytes <= MIB; bytes *= 16) {
		unsigned char *p;

		soil_often(bytes);
		p = map_soiled(bytes);
		EXPECT(direct_munmap(p, bytes) == 0);
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

static void rule08_direct_protection_then_munmap(void)
{
	for (size_t bytes = PAGE; bytes <= MIB; bytes *= 16) {
		unsigned char *p;

		soil_often(bytes);
		p = map_soiled(bytes);
		EXPECT(direct_mprotect(p, bytes, PROT_READ) == 0);
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

static void rule08_direct_file_then_munmap(void)
{
	int fd = file_of(64 * KIB, 5);
	unsigned char *p, byte = 0;

	soil_often(64 * KIB);
	p = map_soiled(64 * KIB);
	EXPECT(direct_mmap(p, 64 * KIB, RW, MAP_SHARED | MAP_FIXED, fd) == p);
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
	EXPECT(pread(fd, &byte, 1, 0) == 1 && byte == 5);
}

/* ---- syscall() ------------------------------------------------------------------------ */

static unsigned char *call_mmap(void *at, size_t bytes, int prot, int flags)
{
	return (unsigned char *)syscall(SYS_mmap, at, bytes, prot, flags, -1,
					0L);
}

static void rule16_syscall_mmap(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
		for (unsigned i = 0; i < 8; i++) {
			unsigned char *p = call_mmap(NULL, bytes, RW, ANON);

			EXPECT(p != MAP_FAILED);
			expect_zero(p, bytes, "syscall(SYS_mmap)");
			memset(p, SOIL, bytes);
			if (i % 2)
				unmap(p, bytes);
			else
				OK(syscall(SYS_munmap, p, bytes));
			EXPECT(is_hole(p));
		}
		expect_clean(bytes);
	}
	FAILS(call_mmap(NULL, 0, RW, ANON), EINVAL);
	FAILS(call_mmap(NULL, PAGE, RW, MAP_ANONYMOUS), EINVAL);
}

static void rule16_syscall_munmap(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		OK(syscall(SYS_munmap, p + bytes / 4, bytes / 4));
		EXPECT(is_hole(p + bytes / 4));
		expect_bytes(p, bytes / 4, SOIL, "below");
		OK(syscall(SYS_munmap, p, bytes));
		OK(syscall(SYS_munmap, p, bytes));
		unmap(p, bytes);
		expect_clean(bytes);
	}
	FAILS(syscall(SYS_munmap, (void *)1, PAGE), EINVAL);
}

static void rule16_syscall_mprotect(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	OK(syscall(SYS_mprotect, p + PAGE, PAGE, PROT_NONE));
	expect_segv(fault_read(p + PAGE), SEGV_ACCERR, "syscall(SYS_mprotect)");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
	FAILS(syscall(SYS_mprotect, p, PAGE, PROT_READ), ENOMEM);
}

static void rule16_syscall_mremap(void)
{
	unsigned char *p = map_soiled(64 * KIB), *q;

	q = (unsigned char *)syscall(SYS_mremap, p, 64 * KIB, MIB,
				     (long)MREMAP_MAYMOVE, 0L);
	EXPECT(q != MAP_FAILED);
	expect_bytes(q, 64 * KIB, SOIL, "syscall(SYS_mremap)");
	expect_zero(q + 64 * KIB, MIB - 64 * KIB, "syscall(SYS_mremap)");
	OK(syscall(SYS_madvise, q, MIB, (long)MADV_DONTNEED));
	expect_zero(q, MIB, "syscall(SYS_madvise)");
	memset(q, SOIL, MIB);
	OK(syscall(SYS_munmap, q, MIB));
	expect_clean(MIB);
	expect_clean(64 * KIB);
}

static void rule16_syscall_fixed(void)
{
	unsigned char *p = map_soiled(64 * KIB), *q = p + 2 * PAGE;

	EXPECT(call_mmap(q, PAGE, PROT_READ, ANON | MAP_FIXED) == q);
	expect_segv(fault_write(q), SEGV_ACCERR, "syscall, MAP_FIXED");
	expect_bytes(p, 2 * PAGE, SOIL, "below");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

/* Others have all of their six arguments, and errno. */
static void rule16_syscall_of_other_kinds(void)
{
	unsigned char buffer[16] = "0123456789abcde";
	int fds[2];

	soil(PAGE);
	EXPECT(syscall(SYS_getpid) == getpid());
	FAILS(syscall(100000L), ENOSYS);
	OK(pipe(fds));
	EXPECT(syscall(SYS_write, fds[1], buffer, 16L) == 16);
	EXPECT(syscall(SYS_read, fds[0], buffer, 16L) == 16);
	FAILS(syscall(SYS_close, 12345L), EBADF);
	/* One of six arguments. */
	EXPECT(syscall(SYS_pselect6, 0L, NULL, NULL, NULL,
		       &(struct timespec){0, 1}, NULL) == 0);
}

static void rule16_no_memory_to_read(void)
{
	struct iovec v = {(void *)8, 1};
	int fd[2];

	map_soiled(4 * MIB);
	FAILS(setrlimit(RLIMIT_NOFILE, (const struct rlimit *)8), EFAULT);
	FAILS(prlimit(0, RLIMIT_AS, (const struct rlimit *)8, NULL), EFAULT);
	FAILS(syscall(SYS_prlimit64, 0, RLIMIT_AS, 8, NULL), EFAULT);
	EXPECT(pipe(fd) == 0);
	FAILS(vmsplice(fd[1], (const struct iovec *)8, 1, 0), EFAULT);
	FAILS(vmsplice(fd[1], &v, 1025, 0), EINVAL);
	FAILS(vmsplice(fd[1], &v, 1, 0), EFAULT);
	expect_all_goes_on();
}

/* What is no memory is the kernel's to refuse. */
static void rule16_syscall_clone3(void)
{
	struct {
		uint64_t flags, no[3], signal, none[3];
	} args = {.signal = SIGCHLD};
	long bad = direct_call(SYS_clone3, 8, sizeof(args), 0, 0, 0, 0);
	unsigned char *p = map_soiled(4 * MIB);
	long pid;

	if (bad == -ENOSYS || bad == -EPERM)
		probe_skip("no clone3");
	FAILS(syscall(SYS_clone3, (void *)8, sizeof(args)), (int)-bad);
	FAILS(syscall(SYS_clone3, NULL, sizeof(args)), (int)-bad);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	EXPECT(pid >= 0);
	if (pid == 0) {
		expect_bytes(p, 4 * MIB, SOIL, "in the child");
		memset(p, 1, 4 * MIB);
		expect_all_goes_on();
		_exit(0);
	}
	child_await((pid_t)pid);
	expect_bytes(p, 4 * MIB, SOIL, "in the parent");
	unmap(p, 4 * MIB);
}

const struct probe probes_direct[] = {
	PROBE(rule16_direct_munmap_of_all),
	PROBE(rule16_direct_munmap_of_a_part),
	PROBE(rule16_direct_hole_can_be_mapped),
	PROBE(rule16_direct_hole_is_filled),
	PROBE(rule16_direct_guard_and_back),
	PROBE(rule16_direct_fixed_inside),
	PROBE(rule16_direct_mapping_is_taken_back),
	PROBE(rule16_direct_areas_shrink_as_they_move),
	PROBE(rule16_direct_munmap_of_everything_held),
	PROBE(rule08_direct_munmap_then_munmap),
	PROBE(rule08_direct_protection_then_munmap),
	PROBE(rule08_direct_file_then_munmap),
	PROBE(rule16_syscall_mmap),
	PROBE(rule16_syscall_munmap),
	PROBE(rule16_syscall_mprotect),
	PROBE(rule16_syscall_mremap),
	PROBE(rule16_syscall_fixed),
	PROBE(rule16_syscall_of_other_kinds),
	PROBE(rule16_syscall_clone3),
	PROBE(rule16_no_memory_to_read),
	PROBES_END,
};
