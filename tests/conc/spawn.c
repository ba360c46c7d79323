/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spawn.c - processes are started by posix_spawn() and vfork() from all threads
 * of a churn.
 *
 * Their children share the parent's memory until they execute something else,
 * and run none of its fork handlers: no lock of the library may be taken and
 * nothing changed on their behalf, and the churn goes on beside them.
 */
#include "conc.h"

#include <spawn.h>
#include <sys/wait.h>

#define THREADS 8u

extern char **environ;

struct spawn_case {
	struct pcpa_heap *plain, *cow;
	unsigned each;
	uint64_t seed;
};

static void child_awaited(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void spawn_one(void)
{
	char path[] = "/bin/true", *argv[] = { path, NULL };
	pid_t pid;

	CHECK(posix_spawn(&pid, path, NULL, NULL, argv, environ) == 0);
	child_awaited(pid);
}

static void vfork_one(void)
{
	char path[] = "/bin/true", *argv[] = { path, NULL };
	pid_t pid = vfork();

	if (pid == 0) {
		execve(path, argv, environ);
		_exit(1);
	}
	CHECK(pid > 0);
	child_awaited(pid);
}

static void spawner(unsigned index, void *arg)
{
	const struct spawn_case *the = arg;
	struct conc_churn plain, cow;
	unsigned i;

	conc_churn_init(&plain, the->plain, the->seed, index, 6);
	conc_churn_init(&cow, the->cow, the->seed, index + THREADS, 6);
	for (i = 0; i < the->each; i++) {
		conc_churn_steps(&plain, 200);
		conc_churn_steps(&cow, 200);
		if (i % 2)
			vfork_one();
		else
			spawn_one();
		if (i % 16 == 0)
			CHECK(pcpa_heap_drain(the->plain) == 0);
	}
	conc_churn_end(&plain);
	conc_churn_end(&cow);
}

int main(void)
{
	struct spawn_case the = {
		.plain = conc_heap(16 * MIB, 0),
		.cow = conc_heap(16 * MIB, PCPA_HEAP_COW),
		.each = conc_size(10000, 320, 80) / THREADS,
		.seed = conc_seed(),
	};

	alarm(100 + the.each);
	conc_run(THREADS, spawner, &the);
	conc_heap_end(the.plain);
	conc_heap_end(the.cow);
	return 0;
}
