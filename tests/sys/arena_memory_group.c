/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_memory_group.c - a heap in a control group with little memory.
 *
 * Makes a group of 64 MiB below the process's own, and has a child
 * in it grow until there is no more: the child must get most of it and must
 * not be killed.  Exit 77: no such group can be made.
 */
#define _GNU_SOURCE
#include <string.h>

#include "../../lib/arena.h"
#include "../../lib/sys/cgroup.h"
#include "../support/children.h"
#include "../support/group.h"

#define MIB (UINT64_C(1) << 20)
#define GROUP_BYTES (64 * MIB)
#define GROUP_LIMIT "67108864"

/* Exits 0 when most of the group's memory could be had. */
static void grow_to_the_end(const struct group *group)
{
	struct pcpi_space_node_spec node = {0, 1024 * MIB};
	/* Pages of a hugetlb pool wouldn't be of the group's memory. */
	struct pcpi_space_spec spec = {
		.nodes = &node, .nr_nodes = 1, .cow = true, .verbosity = 1};
	struct pcpi_memory_room room;
	struct pcpi_space space;
	struct pcpi_arena a;
	uint64_t sum = 0;

	if (!group_enter(group))
		_exit(SKIPPED);
	pcpi_cgroup_memory(&room);
	if (room.limit > GROUP_BYTES || pcpi_space_create(&space, &spec) != 0)
		_exit(1);
	while (pcpi_arena_grow(&space, 0, 16 * MIB, false, &a) == 0) {
		memset(a.base, 1, a.bytes);
		sum += a.bytes;
	}
	printf("%llu of %llu MiB\n", (unsigned long long)(sum / MIB),
	       (unsigned long long)(GROUP_BYTES / MIB));
	fflush(stdout);
	_exit(sum >= GROUP_BYTES / 2 && sum < GROUP_BYTES ? 0 : 1);
}

int main(void)
{
	struct group group;
	int status;
	pid_t pid;

	if (!group_make(&group, "memory", "memory.max", "memory.limit_in_bytes")) {
		puts("skipped: no control group of memory can be made");
		return SKIPPED;
	}
	CHECK(group_write(&group, group.v1 ? "memory.limit_in_bytes" : "memory.max",
			  GROUP_LIMIT));
	pid = fork();
	if (pid == 0)
		grow_to_the_end(&group);
	status = child_status(pid);
	group_remove(&group);
	return status < 0 ? 1 : status;
}
