/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rseq.c - whether sequences work here, and what happens where they don't.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/heap_fixture.h"
#include "heap.h"
#include "rseq.h"

static int refuse(void)
{
	return -EPERM;
}

static int no_offset(ptrdiff_t *out)
{
	(void)out;
	return -ENOSYS;
}

static int never(void)
{
	cr_assert_fail("asked although it was refused");
	return 0;
}

static int lie(void)
{
	return 0;
}

static bool here(void)
{
	ptrdiff_t offset;

	return PCPI_RSEQ && pcpi_sys_linux.rseq_offset(&offset) == 0 &&
	       pcpi_sys_linux.membarrier_rseq_register() == 0;
}

/* On an overloaded machine the two threads of the self-test may not meet: some
 * tries, in a process each. */
static bool works_in_a_child(void)
{
	unsigned n;
	int status = 1;
	pid_t child;

	for (n = 0; n < 6 && status != 0; n++) {
		child = fork();
		if (child == 0)
			_exit(pcpi_rseq_setup() && pcpi_rseq_setup() &&
			      pcpi_rseq_ready() ? 0 : 1);
		cr_assert_eq(waitpid(child, &status, 0), child);
	}
	return status == 0;
}

Test(rseq, works_where_library_and_kernel_have_it)
{
	if (!here())
		cr_skip_test("no restartable sequences here");
	cr_expect(works_in_a_child());
}

static void *thread_ready(void *arg)
{
	*(bool *)arg = pcpi_rseq_ready();
	return NULL;
}

Test(rseq, is_ready_in_every_thread)
{
	bool ready = false;
	pthread_t t;

	if (!pcpi_rseq_setup())
		cr_skip_test("no restartable sequences here");
	cr_assert_eq(pthread_create(&t, NULL, thread_ready, &ready), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
	cr_expect(ready);
}

static struct pcpi_sys sys;

static void with(int (*offset)(ptrdiff_t *), int (*reg)(void), int (*cut)(void))
{
	sys = pcpi_sys_linux;
	if (offset)
		sys.rseq_offset = offset;
	if (reg)
		sys.membarrier_rseq_register = reg;
	if (cut)
		sys.membarrier_rseq = cut;
	pcpi_sys = &sys;
}

Test(rseq, is_off_without_the_c_librarys_area)
{
	with(no_offset, never, never);
	cr_expect_not(pcpi_rseq_setup());
	cr_expect_not(pcpi_rseq_ready());
}

Test(rseq, is_off_where_the_kernel_refuses)
{
	with(NULL, refuse, never);
	cr_expect_not(pcpi_rseq_setup());
}

/* In a process of its own, as it is asked once. */
static bool setup_says_off(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(pcpi_rseq_setup());
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The last of the threads that look is believed where none ever ran beside this
 * one, which happens on a loaded machine; not time after time. */
static void expect_off(void)
{
	unsigned tries;

	for (tries = 0; tries < 8; tries++)
		if (setup_says_off())
			return;
	cr_assert_fail("believed %u times", tries);
}

/* Kernels that say yes at registration.  Where there is one CPU only, nothing tells
 * the first from an honest one. */
Test(rseq, is_off_where_nothing_is_cut_short)
{
	if (!here())
		cr_skip_test("no restartable sequences here");
	if (pcpi_sys_linux.cpus() == 1)
		cr_skip_test("one CPU");
	with(NULL, NULL, lie);
	expect_off();
}

Test(rseq, is_off_where_cutting_is_refused)
{
	with(NULL, NULL, refuse);
	cr_expect_not(pcpi_rseq_setup());
}

/* Switches that nobody counts look as if the call had cut. */
static uint64_t no_switches(void)
{
	return 0;
}

Test(rseq, is_off_where_nothing_is_cut_short_nor_counted)
{
	if (!here())
		cr_skip_test("no restartable sequences here");
	if (pcpi_sys_linux.cpus() == 1)
		cr_skip_test("one CPU");
	with(NULL, NULL, lie);
	sys.switches = no_switches;
	expect_off();
}

static unsigned calls;

static int count_call(void)
{
	calls++;
	return pcpi_sys_linux.membarrier_rseq();
}

static void pin(void)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	CPU_SET((unsigned)(cpu < 0 ? 0 : cpu), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		cr_skip_test("can't be pinned");
}

Test(rseq, works_for_a_caller_with_one_cpu)
{
	if (!here())
		cr_skip_test("no restartable sequences here");
	pin();
	cr_expect(works_in_a_child());
}

Test(rseq, is_off_for_a_caller_with_one_cpu_where_cutting_is_refused)
{
	with(NULL, NULL, refuse);
	pin();
	cr_expect_not(pcpi_rseq_setup());
}

Test(rseq, calls_a_few_times_at_most)
{
	with(NULL, NULL, count_call);
	if (pcpi_rseq_setup())
		cr_expect_gt(calls, 0);
	cr_expect_leq(calls, 16 * 5);
}

static int no_thread(const char *name, void *(*fn)(void *arg), void *arg,
		     pthread_t *out)
{
	(void)name, (void)fn, (void)arg, (void)out;
	return -EAGAIN;
}

Test(rseq, is_off_where_no_thread_can_be_made)
{
	with(NULL, NULL, never);
	sys.thread_start = no_thread;
	cr_expect_not(pcpi_rseq_setup());
}

/* ---- A thread that has taken itself out of the kernel's books --------------------- */

struct outsider {
	struct pcpa_heap *heap;
	bool could, ready, by_mark;
};

static void *unregister(void *arg)
{
	struct outsider *the = arg;
	ptrdiff_t offset;
	void *block;

	if (pcpi_sys_linux.rseq_offset(&offset) != 0)
		return NULL;
	/* Length and signature are those that the C library registers with. */
	the->could = syscall(SYS_rseq, (char *)__builtin_thread_pointer() + offset,
			     32, 1, 0x53053053) == 0;
	if (!the->could)
		return NULL;
	the->ready = pcpi_rseq_ready();
	block = pcpa_alloc(the->heap, 0, 0);
	cr_assert_not_null(block);
	the->by_mark = pcpi_hot_cache(&the->heap->hot)->by_mark;
	pcpa_free(the->heap, block);
	return NULL;
}

Test(rseq, thread_that_unregistered_hits_by_the_mark)
{
	struct outsider the = { .ready = true };
	pthread_t t;

	if (!pcpi_rseq_setup())
		cr_skip_test("no restartable sequences here");
	the.heap = heap_fixed(8 * MIB, 0);
	cr_assert_eq(pthread_create(&t, NULL, unregister, &the), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
	if (!the.could)
		cr_skip_test("the C library registers otherwise");
	cr_expect_not(the.ready);
	cr_expect(the.by_mark);
	heap_end(the.heap);
}
