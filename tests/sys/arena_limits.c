/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_limits.c - arenas under the limits that a real kernel enforces.
 *
 * Each case is a child process (children.h), skipped where the kernel doesn't offer
 * what it needs.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../../lib/arena.h"
#include "../support/children.h"
#include "../support/sandbox.h"
#include "../support/sanitized.h"

#define MIB (UINT64_C(1) << 20)

static int create(struct pcpi_space *space, uint64_t max_bytes, bool is_default)
{
	struct pcpi_space_node_spec node = {0, max_bytes};
	struct pcpi_space_spec spec = {.nodes = &node,
				       .nr_nodes = 1,
				       .max_is_default = is_default,
				       .verbosity = 1};

	listen_in();
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
	EXPECT(is_said("RLIMIT_AS"));
	use(&space);
	return 0;
}

static int address_space_asked_for(void)
{
	struct pcpi_space space;

	limit(RLIMIT_AS, 1024 * MIB);
	EXPECT(create(&space, 2048 * MIB, false) == -ENOMEM);
	EXPECT(is_said("RLIMIT_AS (ulimit -v)"));
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
	EXPECT(is_said("RLIMIT_MEMLOCK"));
	EXPECT(create(&space, 256 * MIB, true) == 0);
	EXPECT(space.bytes <= 64 * MIB);
	use(&space);
	return 0;
}

/* What gVisor and container filters refuse, all together. */
static bool enter_sandbox(void)
{
	return sandbox_refuse(__NR_mbind, EPERM) &&
	       sandbox_refuse(__NR_membarrier, ENOSYS) &&
	       sandbox_refuse_if(__NR_madvise, 2, BPF_JGE, 20, EINVAL) &&
	       sandbox_refuse_if(__NR_mmap, 3, BPF_JSET, MAP_HUGETLB, EINVAL);
}

static int sandbox(void)
{
	struct pcpi_space space;
	void *p;

	if (!enter_sandbox())
		return SKIPPED;
	EXPECT(create(&space, 256 * MIB, false) == 0);
	EXPECT(is_said("can't be bound to node 0 (error 1)"));
	EXPECT(pcpi_sys->membarrier_register() == -ENOSYS);
	EXPECT(pcpi_sys->populate(space.base, MIB) == -EINVAL);
	EXPECT(pcpi_sys->reserve(2 * MIB, 2 * MIB, &p) == 0);
	EXPECT(pcpi_sys->map_hugetlb(p, 2 * MIB, 2 * MIB) == -EINVAL);
	use(&space);
	return 0;
}

static void limited(const char *name, int (*body)(void))
{
	if (!IS_SANITIZED)
		case_run(name, body);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	limited("default maximum under RLIMIT_AS", address_space_default);
	limited("maximum asked for under RLIMIT_AS", address_space_asked_for);
	limited("RLIMIT_DATA", data_limit);
	limited("RLIMIT_MEMLOCK", locked_memory);
	case_run("sandbox", sandbox);
	return cases_status();
}
