/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rseq.c - whether sequences work here, and what happens where they don't.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#include "../support/fake_sys.h"
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

Test(rseq, works_where_library_and_kernel_have_it)
{
	if (!here())
		cr_skip_test("no restartable sequences here");
	cr_expect(pcpi_rseq_setup());
	cr_expect(pcpi_rseq_setup(), "the same answer again");
	cr_expect(pcpi_rseq_ready());
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

/* A kernel that says yes and does nothing: the sequence ends by itself, unless it
 * was preempted, which is as good. */
Test(rseq, self_test_ends_where_nothing_is_cut_short)
{
	with(NULL, NULL, lie);
	pcpi_rseq_setup();
}

Test(rseq, self_test_fails_where_cutting_fails)
{
	with(NULL, NULL, refuse);
	pcpi_rseq_setup();
}
