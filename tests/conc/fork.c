/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork.c - forks while other threads are anywhere in the library.
 *
 *   ordinary heap   the child's calls say ENODEV at once, and nothing hangs
 *   COW heap        the child allocates, frees and drains with what the parent
 *                   had; what the vanished threads held is only used, and at most
 *                   the page that each had in its hand is lost
 *
 * A child that hangs is ended by its alarm.
 */
#include "conc.h"

#include <signal.h>
#include <sys/wait.h>

#define THREADS 8u
#define CHILD_SECONDS 10u
#define MIXED 60u

struct fork_case {
	struct pcpa_heap *plain, *cow;
	bool stop;
};

static void churner(unsigned index, void *arg)
{
	struct fork_case *the = arg;
	struct conc_churn plain, cow;

	conc_churn_init(&plain, the->plain, 5, index, 6);
	conc_churn_init(&cow, the->cow, 6, index, 6);
	while (!conc_flag(&the->stop)) {
		conc_churn_steps(&plain, 32);
		conc_churn_steps(&cow, 32);
		if (conc_random(&cow.random) % 64 == 0)
			pcpa_heap_drain(the->cow);
		if (conc_random(&cow.random) % 16 == 0)
			conc_sleep_ms(1); /* lets the forks have a processor */
	}
	conc_churn_end(&plain);
	conc_churn_end(&cow);
}

/* ---- The child ------------------------------------------------------------ */

static void plain_refused(struct pcpa_heap *heap, void *block)
{
	void *blocks[4];

	errno = 0;
	CHECK(!pcpa_alloc(heap, 0, 0) && errno == ENODEV);
	CHECK(!pcpa_alloc(heap, 7, 0) && errno == ENODEV);
	CHECK(pcpa_alloc_bulk(heap, 0, 0, blocks, 4) == 0 && errno == ENODEV);
	CHECK(pcpa_heap_drain(heap) == -ENODEV);
	CHECK(pcpa_thread_flush(heap) == -ENODEV);
	pcpa_free(heap, block); /* does nothing */
}

static void cow_works(struct pcpa_heap *heap, void *block)
{
	uint64_t used = conc_stats(heap).used_pages, lost;
	void *blocks[MIXED];
	unsigned i;

	CHECK(*(uint64_t *)block == 42);
	pcpa_free(heap, block);
	for (i = 0; i < MIXED; i++) {
		blocks[i] = pcpa_alloc(heap, i % 5, 0);
		CHECK(blocks[i]);
		*(unsigned *)blocks[i] = i;
	}
	for (i = 0; i < MIXED; i++) {
		CHECK(*(unsigned *)blocks[i] == i);
		pcpa_free(heap, blocks[i]);
	}
	CHECK(pcpa_heap_drain(heap) == 0);
	CHECK_U64(conc_stats(heap).cached_pages, ==, 0);
	/* All of the dead threads' caches are back by now. */
	lost = conc_stats(heap).used_pages;
	CHECK_U64(lost, <=, used - 1);
	for (i = 0; i < heap->nr_zones; i++)
		CHECK(pcpi_zone_check(&heap->env.zones[i]));
}

static _Noreturn void child(const struct fork_case *the, void *plain, void *cow)
{
	alarm(CHILD_SECONDS);
	plain_refused(the->plain, plain);
	cow_works(the->cow, cow);
	_exit(0);
}

/* ---- The parent ------------------------------------------------------------- */

static void fork_once(const struct fork_case *the)
{
	void *plain = pcpa_alloc(the->plain, 0, 0);
	void *cow = pcpa_alloc(the->cow, 0, 0);
	int status;
	pid_t pid;

	CHECK(plain && cow);
	*(uint64_t *)cow = 42;
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(the, plain, cow);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		fprintf(stderr, "the child got signal %d\n", WTERMSIG(status));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	*(uint64_t *)cow = 0;
	pcpa_free(the->plain, plain);
	pcpa_free(the->cow, cow);
}

int main(void)
{
	struct fork_case the = {
		.plain = conc_heap(16 * MIB, 0),
		.cow = conc_heap(16 * MIB, PCPA_HEAP_COW),
	};
	struct conc_thread threads[THREADS];
	unsigned forks = conc_size(2000, 200, 30), i;

	alarm(100 + forks); /* the parent's handlers must not hang, either */
	conc_start(threads, THREADS, churner, &the);
	for (i = 0; i < forks; i++)
		fork_once(&the);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	conc_heap_end(the.plain);
	conc_heap_end(the.cow);
	return 0;
}
