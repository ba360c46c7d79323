/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork_register.c - a fork while another thread is registered with liburcu, or
 * ends: it counts its readers under a lock that its fork handlers don't take (R1
 * and R2 of lib/rcu.h).  The thread is held up where it has that lock: this
 * program's pthread_mutex_unlock() is the one that liburcu calls.
 *
 * Not under sanitizers, whose runtimes have a pthread_mutex_unlock() of their own.
 */
#include "conc.h"

#include <dlfcn.h>
#include <sys/wait.h>

#if CONC_TSAN || defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define FORK_REGISTER_SANITIZED 1
#else
#define FORK_REGISTER_SANITIZED 0
#endif

/* Less than a fork waits for. */
#define HELD_MS 50u

/* The nth call from now on, by liburcu, is held up; 0: none. */
static __thread unsigned hold_up;
static bool held, let_go;

#if !FORK_REGISTER_SANITIZED
__attribute__((visibility("default"))) int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*real)(pthread_mutex_t *);
	Dl_info from;

	/* Before there are threads: libraries' constructors come here. */
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	if (hold_up && dladdr(__builtin_return_address(0), &from) &&
	    strstr(from.dli_fname, "liburcu-bp") && --hold_up == 0) {
		conc_raise(&held);
		conc_sleep_ms(HELD_MS);
		conc_raise(&let_go);
	}
	return real(mutex);
}
#endif

static void read_stats(unsigned index, void *heap)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;

	(void)index;
	CHECK(pcpa_stats_read(heap, -1, &stats) == 0);
}

static void registers(unsigned index, void *heap)
{
	hold_up = 1;
	read_stats(index, heap);
	CHECK(!hold_up);
}

/* liburcu has the lock of its list first. */
static void ends(unsigned index, void *heap)
{
	read_stats(index, heap);
	hold_up = 2;
}

/* Forks while fn's thread is held up. */
static void fork_meets(struct pcpa_heap *heap, void (*fn)(unsigned, void *))
{
	struct conc_thread other;
	int status;
	pid_t pid;

	/* relaxed: no other thread. */
	pcpi_store_relaxed(&held, false);
	pcpi_store_relaxed(&let_go, false);
	conc_start(&other, 1, fn, heap);
	while (!conc_flag(&held))
		sched_yield();
	pid = fork();
	if (pid == 0) {
		alarm(10);
		conc_run(1, read_stats, heap);
		exit(0); /* liburcu takes the lock there, too */
	}
	CHECK(pid > 0);
	CHECK(conc_flag(&let_go));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	conc_join(&other, 1);
}

int main(void)
{
	struct pcpa_heap *heap;

	if (FORK_REGISTER_SANITIZED)
		return 77;
	heap = conc_growing_heap(4 * MIB, PCPA_HEAP_COW);
	fork_meets(heap, registers);
	fork_meets(heap, ends);
	CHECK(pcpa_heap_destroy(heap) == 0);
	return 0;
}
