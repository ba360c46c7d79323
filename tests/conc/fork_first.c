/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork_first.c - a fork while another thread is in the very first use of the
 * library: reading the machine, registering the fork handlers, making the first
 * heap or its first block.
 *
 *   this program          never uses the library
 *    +- fresh process     thread A: first heap, first block
 *        |                main: forks all the while
 *        +- child         makes a heap of its own, allocates, frees, destroys it,
 *                         and uses the default heap: works, or says ENODEV
 *                         where that is its parent's
 *
 * A process that hangs is ended by its alarm, and its parent then fails.
 *
 * Not under AddressSanitizer, whose allocator forgets its locks at a fork: a child
 * hangs in it when the other thread was just inside.
 */
#include "conc.h"

#include <signal.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define FORK_FIRST_ASAN 1
#else
#define FORK_FIRST_ASAN 0
#endif

#define SECONDS 20u

static bool done;

/* A child can't join what only its parent had. */
__attribute__((visibility("default"))) const char *
__tsan_default_options(void);

const char *__tsan_default_options(void)
{
	return "report_thread_leaks=0";
}

static void child_awaited(pid_t pid)
{
	int status;

	CHECK(pid >= 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		fprintf(stderr, "the child got signal %d\n", WTERMSIG(status));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void heap_lives(struct pcpa_heap **heap)
{
	void *block;

	*heap = conc_growing_heap(4 * MIB, 0);
	block = pcpa_alloc(*heap, 0, 0);
	CHECK(block);
	pcpa_free(*heap, block);
}

static void default_lives(bool forked)
{
	struct pcpa_heap *heap = pcpa_default_heap();
	void *block;

	CHECK(heap);
	block = pcpa_alloc(heap, 0, 0);
	CHECK(block || (forked && errno == ENODEV));
	pcpa_free(heap, block);
}

static _Noreturn void child(void)
{
	struct pcpa_heap *heap;

	alarm(SECONDS);
	heap_lives(&heap);
	CHECK(pcpa_heap_destroy(heap) == 0);
	default_lives(true);
	_exit(0);
}

static void first_user(unsigned index, void *arg)
{
	struct pcpa_heap *heap;

	(void)index;
	if (*(const bool *)arg) {
		default_lives(false);
	} else {
		heap_lives(&heap);
		CHECK(pcpa_heap_destroy(heap) == 0);
	}
	conc_raise(&done);
}

static _Noreturn void fresh_process(uint64_t random, bool use_default)
{
	struct conc_thread user;
	unsigned forks = 0;
	pid_t pid;

	alarm(3 * SECONDS);
	conc_start(&user, 1, first_user, &use_default);
	do {
		for (unsigned n = (unsigned)(conc_random(&random) % 40000); n; n--)
			pcpi_compiler_barrier();
		pid = fork();
		if (pid == 0)
			child();
		child_awaited(pid);
		forks++;
	} while (!conc_flag(&done) && forks < 20);
	conc_join(&user, 1);
	_exit(0);
}

int main(void)
{
	unsigned rounds = conc_size(1000, 150, 10), i;
	uint64_t random = conc_seed();
	pid_t pid;

	if (FORK_FIRST_ASAN)
		return 77;

	setenv("PCPA_VERBOSITY", "0", 1);
	setenv("PCPA_MAX_BYTES", "4M", 1);
	for (i = 0; i < rounds; i++) {
		conc_random(&random);
		pid = fork();
		if (pid == 0)
			fresh_process(random, i % 2);
		child_awaited(pid);
	}
	return 0;
}
