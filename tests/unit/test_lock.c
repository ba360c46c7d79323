/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lock.c - ranks, contention, and the way around ranks for a fork.  A
 * trap is looked for in a child; where the library was built without
 * assertions there is none, and those cases are skipped.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomics.h"
#include "lock.h"

static const enum pcpi_lock_rank ranks[] = {
	PCPI_RANK_HEAPS, PCPI_RANK_CONTIG, PCPI_RANK_DRAIN, PCPI_RANK_THREADS,
	PCPI_RANK_TRIM,  PCPI_RANK_GROW,   PCPI_RANK_DEPOT, PCPI_RANK_ZONE,
	PCPI_RANK_NOTIFY,
};
#define NR_RANKS (sizeof(ranks) / sizeof(ranks[0]))

static struct pcpi_lock locks[NR_RANKS], twin;

static void setup(void)
{
	for (size_t i = 0; i < NR_RANKS; i++)
		pcpi_lock_init(&locks[i], ranks[i]);
	pcpi_lock_init(&twin, PCPI_RANK_DEPOT);
}

static void teardown(void)
{
	for (size_t i = 0; i < NR_RANKS; i++)
		pcpi_lock_fini(&locks[i]);
	pcpi_lock_fini(&twin);
}

TestSuite(lock, .init = setup, .fini = teardown);

/* With nothing held only a build without assertions says yes. */
static bool library_asserts(void)
{
	return !pcpi_lock_held(PCPI_RANK_ZONE);
}

/* Whether fn ends its process. */
static bool traps(void (*fn)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		fn();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void take_ascending(void)
{
	for (size_t i = 0; i < NR_RANKS; i++)
		pcpi_lock_take(&locks[i]);
	for (size_t i = NR_RANKS; i > 0; i--)
		pcpi_lock_drop(&locks[i - 1]);
}

static void take_descending(void)
{
	pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]);
	pcpi_lock_take(&locks[PCPI_RANK_DEPOT - 1]);
}

static void take_far_below(void)
{
	pcpi_lock_take(&locks[PCPI_RANK_GROW - 1]);
	pcpi_lock_take(&locks[0]);
}

static void take_two_of_a_rank(void)
{
	pcpi_lock_take(&locks[PCPI_RANK_DEPOT - 1]);
	pcpi_lock_take(&twin);
}

static void drop_what_is_not_held(void)
{
	pcpi_lock_drop(&locks[2]);
}

static void take_again_after_drop(void)
{
	pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]);
	pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
	pcpi_lock_take(&locks[0]);
	pcpi_lock_drop(&locks[0]);
}

Test(lock, ascending_ranks_are_taken)
{
	cr_expect_not(traps(take_ascending));
	cr_expect_not(traps(take_again_after_drop));
}

Test(lock, rank_not_above_all_held_traps)
{
	if (!library_asserts())
		cr_skip_test("no assertions in this build");
	cr_expect(traps(take_descending));
	cr_expect(traps(take_far_below));
	cr_expect(traps(take_two_of_a_rank));
	cr_expect(traps(drop_what_is_not_held));
}

Test(lock, held_tells_the_calling_threads_ranks)
{
	if (!library_asserts())
		cr_skip_test("no assertions in this build");
	pcpi_lock_take(&locks[PCPI_RANK_GROW - 1]);
	pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]);
	cr_expect(pcpi_lock_held(PCPI_RANK_GROW));
	cr_expect(pcpi_lock_held(PCPI_RANK_ZONE));
	cr_expect_not(pcpi_lock_held(PCPI_RANK_DEPOT));
	pcpi_lock_drop(&locks[PCPI_RANK_GROW - 1]);
	cr_expect_not(pcpi_lock_held(PCPI_RANK_GROW));
	cr_expect(pcpi_lock_held(PCPI_RANK_ZONE));
	pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
}

/* As a handler does that interrupted its thread with a lock of the rank. */
static void try_two_of_a_rank(void)
{
	pcpi_lock_take(&locks[PCPI_RANK_DEPOT - 1]);
	if (!pcpi_lock_try(&twin))
		_exit(1);
	pcpi_lock_drop(&twin);
	if (!pcpi_lock_held(PCPI_RANK_DEPOT))
		_exit(1);
	pcpi_lock_drop(&locks[PCPI_RANK_DEPOT - 1]);
	if (library_asserts() && pcpi_lock_held(PCPI_RANK_DEPOT))
		_exit(1);
}

Test(lock, second_of_a_rank_may_be_tried_for)
{
	cr_expect_not(traps(try_two_of_a_rank));
}

static bool holder_ready, waiter_waited;

static void *lock_wait(void *arg)
{
	(void)arg;
	/* release: pairs with the load below */
	pcpi_store_release(&holder_ready, true);
	waiter_waited = pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]);
	pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
	return NULL;
}

Test(lock, free_lock_is_taken_without_waiting)
{
	cr_expect_not(pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]));
	pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
}

static void *lock_try(void *arg)
{
	*(bool *)arg = pcpi_lock_try(&locks[PCPI_RANK_ZONE - 1]);
	if (*(bool *)arg)
		pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
	return NULL;
}

Test(lock, try_never_waits_and_knows_no_order)
{
	pthread_t thread;
	bool got;

	for (unsigned held = 0; held < 2; held++) {
		if (held)
			pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]);
		cr_assert_eq(pthread_create(&thread, NULL, lock_try, &got), 0);
		pthread_join(thread, NULL);
		cr_expect_eq(got, !held);
	}
	cr_assert(pcpi_lock_try(&locks[0]), "of a lower rank");
	pcpi_lock_drop(&locks[0]);
	pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
}

/* The waiter may come after the drop; it then repeats. */
Test(lock, taken_lock_says_that_it_waited)
{
	pthread_t thread;

	for (unsigned i = 0; i < 1000 && !waiter_waited; i++) {
		holder_ready = false;
		pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]);
		cr_assert_eq(pthread_create(&thread, NULL, lock_wait, NULL), 0);
		while (!pcpi_load_acquire(&holder_ready))
			usleep(10);
		usleep(1000);
		pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
		pthread_join(thread, NULL);
	}
	cr_expect(waiter_waited);
}

static unsigned long shared_count;

static void *count_up(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 20000; i++) {
		pcpi_lock_take(&locks[PCPI_RANK_ZONE - 1]);
		shared_count++;
		pcpi_lock_drop(&locks[PCPI_RANK_ZONE - 1]);
	}
	return NULL;
}

Test(lock, two_threads_exclude_each_other)
{
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, count_up, NULL),
			     0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(shared_count, 40000);
}

Test(lock, freeze_takes_all_without_ranks)
{
	for (size_t i = NR_RANKS; i > 0; i--)
		pcpi_lock_freeze(&locks[i - 1]);
	pcpi_lock_freeze(&twin);
	cr_expect_neq(pthread_mutex_trylock(&locks[0].mutex), 0);
	pcpi_lock_thaw(&twin);
	for (size_t i = 0; i < NR_RANKS; i++)
		pcpi_lock_thaw(&locks[i]);
	cr_expect_not(pcpi_lock_take(&locks[0]));
	pcpi_lock_drop(&locks[0]);
}

/* ---- Trying ------------------------------------------------------------------ */

static void *take_and_try(void *arg)
{
	bool *got = arg;

	got[0] = pcpi_lock_try(&locks[PCPI_RANK_DEPOT - 1]);
	got[1] = pcpi_lock_try(&locks[0]); /* whatever the order */
	if (got[1])
		pcpi_lock_drop(&locks[0]);
	return NULL;
}

Test(lock, try_takes_what_is_free_and_never_waits, .timeout = 10)
{
	bool got[2] = {true, false};
	pthread_t t;

	cr_assert(pcpi_lock_try(&locks[PCPI_RANK_DEPOT - 1]));
	cr_expect(pcpi_lock_held(PCPI_RANK_DEPOT));
	cr_assert_eq(pthread_create(&t, NULL, take_and_try, got), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
	cr_expect_not(got[0]);
	cr_expect(got[1]);
	cr_expect(pcpi_lock_try(&locks[1]));
	pcpi_lock_drop(&locks[1]);
	pcpi_lock_drop(&locks[PCPI_RANK_DEPOT - 1]);
}
