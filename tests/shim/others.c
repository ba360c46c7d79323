/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * others.c - rule 17: others that look at the memory: another process, a debugger,
 * /proc/self/mem, a handler of page faults; rule 18: what a process is told from
 * outside.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void rule17_process_vm(void)
{
	unsigned char *p = map_soiled(MIB), buffer[256];
	struct iovec here = {buffer, sizeof(buffer)};
	struct iovec there = {p + 512 * KIB - 128, sizeof(buffer)};
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		if (process_vm_readv(parent, &here, 1, &there, 1, 0) < 0)
			probe_skip("process_vm_readv: %s", error_name(errno));
		expect_bytes(buffer, sizeof(buffer), SOIL, "read from afar");
		memset(buffer, 3, sizeof(buffer));
		OK(process_vm_writev(parent, &here, 1, &there, 1, 0));
		_exit(0);
	}
	child_await(pid);
	expect_bytes(there.iov_base, sizeof(buffer), 3, "written from afar");
	unmap(p, MIB);
	expect_clean(MIB);
}

/* Not touched by this process at all. */
static void rule17_process_vm_of_untouched(void)
{
	unsigned char *p = map_reused(MIB), buffer[256];
	struct iovec here = {buffer, sizeof(buffer)};
	struct iovec there = {p + 64 * KIB, sizeof(buffer)};

	memset(buffer, 3, sizeof(buffer));
	if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0)
		probe_skip("process_vm_readv: %s", error_name(errno));
	expect_zero(buffer, sizeof(buffer), "untouched, read from afar");
}

static void rule17_ptrace(void)
{
	static volatile long words[2];
	unsigned char *p = map_soiled(64 * KIB);
	int status = 0;
	long word;
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			probe_skip("ptrace: %s", error_name(errno));
		unmap(map_soiled(PAGE), PAGE);
		raise(SIGSTOP);
		EXPECT(*(long *)(void *)(p + PAGE) == 42);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		_exit(0); /* the child has said why */
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, pid, p, NULL);
	memset((void *)(uintptr_t)words, SOIL, sizeof(words));
	EXPECT(errno == 0 && word == words[0]);
	OK(ptrace(PTRACE_POKEDATA, pid, p + PAGE, 42L));
	OK(ptrace(PTRACE_CONT, pid, NULL, NULL));
	child_await(pid);
	expect_bytes(p, 64 * KIB, SOIL, "this process's own");
}

static void rule17_own_mem_file(void)
{
	unsigned char *p = map_soiled(64 * KIB), buffer[64];
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		probe_skip("/proc/self/mem: %s", error_name(errno));
	EXPECT(pread(fd, buffer, sizeof(buffer), (off_t)(uintptr_t)p) ==
	       (ssize_t)sizeof(buffer));
	expect_bytes(buffer, sizeof(buffer), SOIL, "/proc/self/mem");
	memset(buffer, 3, sizeof(buffer));
	if (pwrite(fd, buffer, sizeof(buffer), (off_t)(uintptr_t)p) < 0)
		probe_skip("/proc/self/mem: %s", error_name(errno));
	expect_bytes(p, sizeof(buffer), 3, "written through /proc/self/mem");
}

/* Reads, writes and vectors of the kernel into memory that was just mapped. */
static void rule17_kernel_reads_and_writes(void)
{
	enum { BYTES = 32 * KIB };
	int fds[2];

	OK(pipe(fds));
	for (unsigned i = 0; i < 50; i++) {
		unsigned char *p = map_reused(BYTES), *q = map(BYTES);

		EXPECT(write(fds[1], p, BYTES) == BYTES);
		EXPECT(read(fds[0], q, BYTES) == BYTES);
		expect_zero(q, BYTES, "through a pipe");
		memset(p, SOIL, BYTES);
		EXPECT(write(fds[1], p, BYTES) == BYTES);
		EXPECT(read(fds[0], q, BYTES) == BYTES);
		expect_bytes(q, BYTES, SOIL, "through a pipe");
		unmap(p, BYTES);
		unmap(q, BYTES);
	}
}

/* ---- userfaultfd -------------------------------------------------------------------- */

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static int uffd_open(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd,
			      (long)(O_CLOEXEC | UFFD_USER_MODE_ONLY));

	if (fd < 0)
		probe_skip("no userfaultfd: %s", error_name(errno));
	OK(ioctl(fd, UFFDIO_API, &api));
	return fd;
}

static void uffd_register(int fd, void *p, size_t bytes)
{
	struct uffdio_register r = {.range = {(uintptr_t)p, bytes},
				    .mode = UFFDIO_REGISTER_MODE_MISSING};

	OK(ioctl(fd, UFFDIO_REGISTER, &r));
}

static unsigned char uffd_page[PAGE] __attribute__((aligned(4096)));

/* Fills a missing page with 77s. */
static void *uffd_serve(void *arg)
{
	int fd = *(int *)arg;
	struct uffd_msg msg;

	while (read(fd, &msg, sizeof(msg)) == (ssize_t)sizeof(msg)) {
		struct uffdio_copy copy = {
			.dst = msg.arg.pagefault.address & -PAGE,
			.src = (uintptr_t)uffd_page,
			.len = PAGE,
		};

		ioctl(fd, UFFDIO_COPY, &copy);
	}
	return NULL;
}

static void uffd_fills(bool discard)
{
	unsigned char *p = map_reused(64 * KIB);
	int fd = uffd_open();
	pthread_t thread;

	memset(uffd_page, 77, PAGE);
	uffd_register(fd, p, 64 * KIB);
	EXPECT(pthread_create(&thread, NULL, uffd_serve, &fd) == 0);
	if (discard)
		OK(madvise(p, 64 * KIB, MADV_DONTNEED));
	for (size_t at = 0; at < 64 * KIB; at += PAGE)
		expect_bytes(p + at, PAGE, 77, "filled by userfaultfd");
	unmap(p, 64 * KIB);
}

static void rule17_userfaultfd_fills_new_memory(void)
{
	uffd_fills(false);
}

static void rule17_userfaultfd_fills_discarded_memory(void)
{
	uffd_fills(true);
}

/* Nobody serves it: what is mapped later must not wait. */
static void rule17_userfaultfd_ends_with_the_mapping(void)
{
	unsigned char *p = map_reused(MIB);

	uffd_register(uffd_open(), p, MIB);
	unmap(p, MIB);
	expect_clean(MIB);
}

const struct probe probes_others[] = {
	PROBE(rule17_process_vm),
	PROBE(rule17_process_vm_of_untouched),
	PROBE(rule17_ptrace),
	PROBE(rule17_own_mem_file),
	PROBE(rule17_kernel_reads_and_writes),
	PROBE(rule17_userfaultfd_fills_new_memory),
	PROBE(rule17_userfaultfd_fills_discarded_memory),
	PROBE(rule17_userfaultfd_ends_with_the_mapping),
	PROBES_END,
};

/* ---- Rule 18 --------------------------------------------------------------------------- */

void helper_without_huge_pages(void)
{
	for (unsigned i = 0; i < 3; i++) {
		unsigned char *p = map(8 * MIB);

		madvise(p, 8 * MIB, MADV_HUGEPAGE);
		memset(p, SOIL, 8 * MIB);
		EXPECT(smaps_kib(NULL, "AnonHugePages:") == 0);
		unmap(p, 8 * MIB);
	}
}

static void rule18_thp_disable_is_inherited(void)
{
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
		probe_skip("PR_SET_THP_DISABLE: %s", error_name(errno));
	run_helper("helper_without_huge_pages");
}

/* Told before anything was mapped: in a program of its own. */
void helper_thp_disable(void)
{
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
		probe_skip("PR_SET_THP_DISABLE: %s", error_name(errno));
	helper_without_huge_pages();
}

static void rule18_thp_disable_in_the_program(void)
{
	run_helper("helper_thp_disable");
}

void helper_secure(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	if (getauxval(AT_SECURE) == 0)
		probe_skip("set-user-id has no effect here");
	EXPECT(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "preload"))
			probe_fail("a set-user-id program: seen: %s; the "
				   "kernel: no such library",
				   line);
	expect_clean(MIB);
}

static bool copy_program(const char *path)
{
	static char buffer[64 * KIB];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n = -1;

	while (from >= 0 && to >= 0 &&
	       (n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)n) != n)
			break;
	close(from);
	close(to);
	return n == 0 && chmod(path, 04755) == 0;
}

static void secure_child(const char *program)
{
	if (!become_nobody())
		probe_skip("can't become an ordinary user");
	run_program(program, "helper_secure");
	_exit(0);
}

static void rule18_set_user_id_program(void)
{
	char dir[] = "/tmp/contract.XXXXXX", program[64];
	int status = 0;
	pid_t pid;

	if (geteuid() != 0)
		probe_skip("root makes set-user-id programs");
	EXPECT(mkdtemp(dir) != NULL);
	chmod(dir, 0755);
	snprintf(program, sizeof(program), "%s/contract", dir);
	if (copy_program(program)) {
		pid = fork();
		if (pid == 0)
			secure_child(program);
		waitpid(pid, &status, 0);
	}
	unlink(program);
	rmdir(dir);
	if (status != 0)
		probe_fail("a set-user-id program: seen: status %#x; the "
			   "kernel: 0",
			   (unsigned)status);
}

const struct probe probes_process[] = {
	PROBE(rule18_thp_disable_is_inherited),
	PROBE(rule18_thp_disable_in_the_program),
	PROBE(rule18_set_user_id_program),
	PROBES_END,
};
