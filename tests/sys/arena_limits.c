/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_limits.c - arenas under the limits that a real kernel enforces.
 *
 * Each case is a child process, because limits and filters can't be taken back;
 * it exits 0, 1, or 77 where the kernel doesn't offer what it needs.  A child
 * that dies of a signal fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/arena.h"
#include "../support/sanitized.h"

#define MIB (UINT64_C(1) << 20)
#define SKIPPED 77

static unsigned failures;
static char said[4096];
static struct pcpi_sys listening;

#define EXPECT(cond)                                                           \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#cond);                                        \
			failures++;                                            \
		}                                                              \
	} while (0)

static void listen_in(const char *text, size_t len)
{
	size_t at = strlen(said);

	if (at + len < sizeof(said))
		memcpy(said + at, text, len);
}

static int create(struct pcpi_space *space, uint64_t max_bytes, bool is_default)
{
	struct pcpi_space_node_spec node = {0, max_bytes};
	struct pcpi_space_spec spec = {.nodes = &node,
				       .nr_nodes = 1,
				       .max_is_default = is_default,
				       .verbosity = 1};

	listening = pcpi_sys_linux;
	listening.bind = pcpi_sys_bind_numa;
	listening.write_err = listen_in;
	pcpi_sys = &listening;
	return pcpi_space_create(space, &spec);
}

static void limit(__rlimit_resource_t which, uint64_t bytes)
{
	struct rlimit l;

	EXPECT(getrlimit(which, &l) == 0);
	if (l.rlim_max == RLIM_INFINITY || l.rlim_max > bytes)
		l.rlim_max = bytes;
	l.rlim_cur = l.rlim_max;
	EXPECT(setrlimit(which, &l) == 0);
}

/* Takes 8 MiB, writes it, and gives all of it back. */
static void use(struct pcpi_space *space)
{
	struct pcpi_arena a;

	EXPECT(pcpi_arena_grow(space, 0, 8 * MIB, false, &a) == 0);
	memset(a.base, 1, a.bytes);
	EXPECT(pcpi_arena_give_back(space, &a) == 0);
	EXPECT(pcpi_space_destroy(space) == 0);
}

static int address_space_default(void)
{
	struct pcpi_space space;

	limit(RLIMIT_AS, 1024 * MIB);
	EXPECT(create(&space, 1024 * 1024 * MIB, true) == 0);
	EXPECT(space.bytes <= 512 * MIB);
	EXPECT(strstr(said, "RLIMIT_AS") != NULL);
	use(&space);
	return 0;
}

static int address_space_asked_for(void)
{
	struct pcpi_space space;

	limit(RLIMIT_AS, 1024 * MIB);
	EXPECT(create(&space, 2048 * MIB, false) == -ENOMEM);
	EXPECT(strstr(said, "RLIMIT_AS (ulimit -v)") != NULL);
	EXPECT(create(&space, 256 * MIB, false) == 0);
	use(&space);
	return 0;
}

/* Writable memory is limited when it is committed, a reservation isn't. */
static int data_limit(void)
{
	struct pcpi_space space;
	struct pcpi_arena a;

	limit(RLIMIT_DATA, 64 * MIB);
	EXPECT(create(&space, 1024 * MIB, false) == 0);
	EXPECT(pcpi_arena_grow(&space, 0, 256 * MIB, false, &a) == 0);
	EXPECT(a.bytes < 64 * MIB || a.backing == PCPA_BACKING_HUGETLB);
	memset(a.base, 1, a.bytes);
	EXPECT(pcpi_space_destroy(&space) == 0);
	return 0;
}

static int locked_memory(void)
{
	struct pcpi_space space;

	limit(RLIMIT_MEMLOCK, 64 * MIB);
	if (geteuid() == 0 && setuid(65534) != 0)
		return SKIPPED;
	if (mlockall(MCL_FUTURE) != 0)
		return SKIPPED;
	EXPECT(create(&space, 256 * MIB, false) == -ENOMEM);
	EXPECT(strstr(said, "RLIMIT_MEMLOCK") != NULL);
	EXPECT(create(&space, 256 * MIB, true) == 0);
	EXPECT(space.bytes <= 64 * MIB);
	use(&space);
	return 0;
}

/* ---- A sandbox ------------------------------------------------------------ */

#define LOW_WORD(arg)                                                          \
	((unsigned)offsetof(struct seccomp_data, args[arg]) +                  \
	 (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4u : 0u))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offset))
#define REFUSE(error)                                                          \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)(error))
#define IF(op, value, yes, no)                                                 \
	BPF_JUMP(BPF_JMP | (op) | BPF_K, (unsigned)(value), yes, no)

/* What gVisor and container filters refuse, all together. */
static bool enter_sandbox(void)
{
	struct sock_filter code[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		IF(BPF_JEQ, __NR_mbind, 0, 1),
		REFUSE(EPERM),
		IF(BPF_JEQ, __NR_membarrier, 0, 1),
		REFUSE(ENOSYS),
		IF(BPF_JEQ, __NR_madvise, 0, 3),
		LOAD(LOW_WORD(2)),
		IF(BPF_JGE, 20, 0, 4),
		REFUSE(EINVAL),
		IF(BPF_JEQ, __NR_mmap, 0, 2),
		LOAD(LOW_WORD(3)),
		IF(BPF_JSET, MAP_HUGETLB, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		REFUSE(EINVAL),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

static int sandbox(void)
{
	struct pcpi_space space;
	void *p;

	if (!enter_sandbox())
		return SKIPPED;
	EXPECT(create(&space, 256 * MIB, false) == 0);
	EXPECT(strstr(said, "can't be bound to node 0 (error 1)") != NULL);
	EXPECT(pcpi_sys->membarrier_register() == -ENOSYS);
	EXPECT(pcpi_sys->populate(space.base, MIB) == -EINVAL);
	EXPECT(pcpi_sys->reserve(2 * MIB, 2 * MIB, &p) == 0);
	EXPECT(pcpi_sys->map_hugetlb(p, 2 * MIB, 2 * MIB) == -EINVAL);
	use(&space);
	return 0;
}

static unsigned run(const char *name, int (*body)(void))
{
	int status = 0;
	pid_t pid;

	if (IS_SANITIZED && body != sandbox)
		return 0;
	pid = fork();
	if (pid == 0) {
		int rc = body();

		if (failures > 0 && said[0] != '\0')
			fprintf(stderr, "%s", said);
		_exit(failures ? 1 : rc);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		printf("%s: skipped\n", name);
		return 0;
	}
	printf("%s: %s (%d)\n", name, status ? "FAILED" : "passed", status);
	return status != 0;
}

int main(void)
{
	unsigned bad = 0;

	setvbuf(stdout, NULL, _IONBF, 0);
	bad += run("default maximum under RLIMIT_AS", address_space_default);
	bad += run("maximum asked for under RLIMIT_AS", address_space_asked_for);
	bad += run("RLIMIT_DATA", data_limit);
	bad += run("RLIMIT_MEMLOCK", locked_memory);
	bad += run("sandbox", sandbox);
	return bad != 0;
}
