/* SPDX-License-Identifier: BSD-2-Clause */
/* test_rcu.c - what a grace period waits for, and what it doesn't: rcu.h. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_fixture.h"
#include "rcu.h"
#include "sanitized.h"

static bool over; /* a */

static void *synchronizer(void *arg)
{
	(void)arg;
	pcpi_rcu_synchronize();
	/* release: pairs with is_over(). */
	pcpi_store_release(&over, true);
	return NULL;
}

static bool is_over(void)
{
	/* acquire: pairs with synchronizer(). */
	return pcpi_load_acquire(&over);
}

static pthread_t synchronizer_start(void)
{
	pthread_t t;

	cr_assert_eq(pthread_create(&t, NULL, synchronizer, NULL), 0);
	return t;
}

static void end(pthread_t t)
{
	cr_assert_eq(pthread_join(t, NULL), 0);
	cr_expect(is_over());
}

static void others_turn(void)
{
	usleep(20000);
}

Test(rcu, grace_period_waits_for_a_section)
{
	struct pcpi_section s = pcpi_rcu_read_lock();
	pthread_t t = synchronizer_start();

	others_turn();
	cr_expect_not(is_over());
	pcpi_rcu_read_unlock(s);
	end(t);
}

Test(rcu, grace_period_waits_for_the_outer_of_nested_sections)
{
	struct pcpi_section outer = pcpi_rcu_read_lock();
	pthread_t t = synchronizer_start();
	struct pcpi_section inner;

	others_turn();
	inner = pcpi_rcu_read_lock();
	others_turn();
	pcpi_rcu_read_unlock(inner);
	others_turn();
	cr_expect_not(is_over());
	pcpi_rcu_read_unlock(outer);
	end(t);
}

/* Sections that overlap, so that there always is one. */
Test(rcu, grace_period_ends_while_new_sections_begin_all_the_time, .timeout = 60)
{
	struct pcpi_section a = pcpi_rcu_read_lock(), b;
	pthread_t t = synchronizer_start();

	while (!is_over()) {
		b = pcpi_rcu_read_lock();
		pcpi_rcu_read_unlock(a);
		a = b;
	}
	end(t);
	pcpi_rcu_read_unlock(a);
}

static void *dies_inside(void *arg)
{
	struct pcpi_section s;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	s = pcpi_rcu_read_lock();
	pthread_barrier_wait(arg);
	others_turn();
	pcpi_rcu_read_unlock(s);
	for (;;)
		pause();
	return NULL;
}

/* AddressSanitizer takes the end of a stack that is left in the middle for an error. */
Test(rcu, thread_that_is_cancelled_in_a_section_ends_it, .timeout = 60,
     .disabled = IS_SANITIZED)
{
	pthread_barrier_t inside;
	pthread_t t;

	pthread_barrier_init(&inside, NULL, 2);
	cr_assert_eq(pthread_create(&t, NULL, dies_inside, &inside), 0);
	pthread_barrier_wait(&inside);
	cr_assert_eq(pthread_cancel(t), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
	pcpi_rcu_synchronize();
	pthread_barrier_destroy(&inside);
}

/* As a callback of pcpa_for_each_arena() may fork. */
Test(rcu, section_that_was_begun_before_a_fork_ends_in_both, .timeout = 60)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, PCPA_HEAP_COW);
	struct pcpi_section s = pcpi_rcu_read_lock();
	pid_t pid = fork();
	int status;

	pcpi_rcu_read_unlock(s);
	if (pid == 0)
		alarm(20);
	pcpi_rcu_synchronize();
	if (pid == 0)
		_exit(0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	heap_end(heap);
}

static void *stays_inside(void *arg)
{
	struct pcpi_section s = pcpi_rcu_read_lock();

	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	pcpi_rcu_read_unlock(s);
	return NULL;
}

static void ignore(const struct pcpa_event *e, void *arg)
{
	(void)e;
	(void)arg;
}

Test(rcu, forked_child_waits_for_no_section_of_its_parent, .timeout = 60)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, PCPA_HEAP_COW);
	pthread_barrier_t steps;
	pthread_t t;
	int status;
	pid_t pid;

	pthread_barrier_init(&steps, NULL, 2);
	cr_assert_eq(pthread_create(&t, NULL, stays_inside, &steps), 0);
	pthread_barrier_wait(&steps);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(pcpa_heap_trace(heap, ignore, NULL) ? 1 : 0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pthread_barrier_wait(&steps);
	cr_assert_eq(pthread_join(t, NULL), 0);
	pthread_barrier_destroy(&steps);
	heap_end(heap);
}
