/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_memory_group.c - a heap in a control group with little memory.
 *
 * Makes a group of 64 MiB below the process's own (version 2), and has a child
 * in it grow until there is no more: the child must get most of it and must
 * not be killed.  Exit 77: no such group can be made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/arena.h"
#include "../../lib/sys/cgroup.h"

#define MIB (UINT64_C(1) << 20)
#define GROUP_BYTES (64 * MIB)

static bool write_text(const char *dir, const char *file, const char *text)
{
	char path[600];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return fclose(f) == 0 && ok;
}

static bool exists(const char *dir, const char *file)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return access(path, W_OK) == 0;
}

/* Makes a group below our own that has memory.max. */
static bool make_group(char *dir, size_t size)
{
	char text[1024], *path, *end;
	char limit[24];

	if (pcpi_sys->read_file("/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	path = strstr(text, "0::/");
	if (!path)
		return false;
	path += 3;
	end = strchr(path, '\n');
	if (end)
		*end = '\0';
	snprintf(dir, size, "/sys/fs/cgroup%s/pcpalloc-test-%d",
		 strcmp(path, "/") ? path : "", (int)getpid());
	/* Without this file the directory is no control group. */
	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) != 0)
		return false;
	if (mkdir(dir, 0755) != 0)
		return false;
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)GROUP_BYTES);
	if (exists(dir, "memory.max") && write_text(dir, "memory.max", limit))
		return true;
	rmdir(dir);
	return false;
}

/* Exits 0 when most of the group's memory could be had. */
static void grow_to_the_end(const char *dir)
{
	struct pcpi_space_node_spec node = {0, 1024 * MIB};
	struct pcpi_space_spec spec = {
		.nodes = &node, .nr_nodes = 1, .verbosity = 1};
	struct pcpi_memory_room room;
	struct pcpi_space space;
	struct pcpi_arena a;
	uint64_t sum = 0;

	if (!write_text(dir, "cgroup.procs", "0"))
		_exit(77);
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
	char dir[512];
	int status = 0;
	pid_t pid;

	if (!make_group(dir, sizeof(dir))) {
		puts("skipped: no control group with memory.max can be made");
		return 77;
	}
	pid = fork();
	if (pid == 0)
		grow_to_the_end(dir);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = 1;
	rmdir(dir);
	if (WIFSIGNALED(status))
		printf("killed by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
