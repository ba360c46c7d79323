/* SPDX-License-Identifier: BSD-2-Clause */
/* test_trace.c - one subscriber, replaced as a whole. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "trace.h"

static struct pcpi_trace trace;
static struct pcpa_event last;
static unsigned calls;

static void note(const struct pcpa_event *event, void *arg)
{
	last = *event;
	calls++;
	if (arg)
		++*(unsigned *)arg;
}

static void emit(void)
{
	pcpi_trace_emit(&trace, PCPA_EVENT_EXTFRAG, 3, 2, 1000, 2000, 3000);
}

Test(trace, without_subscriber_nothing_is_called)
{
	cr_expect_not(pcpi_trace_on(&trace));
	emit();
	cr_expect_eq(calls, 0);
}

Test(trace, subscriber_gets_every_field_and_its_argument)
{
	unsigned mine = 0;

	pcpi_trace_set(&trace, note, &mine);
	cr_expect(pcpi_trace_on(&trace));
	emit();
	cr_expect_eq(mine, 1);
	cr_expect_eq(last.struct_size, sizeof(last));
	cr_expect_eq(last.kind, PCPA_EVENT_EXTFRAG);
	cr_expect_eq(last.node, 3);
	cr_expect_eq(last.order, 2);
	cr_expect_eq(last.pages, 1000);
	cr_expect_eq(last.count, 2000);
	cr_expect_eq(last.high, 3000);
}

Test(trace, replacement_gets_what_the_old_one_no_longer_does)
{
	unsigned count[5] = {0};

	for (unsigned i = 0; i < 5; i++) {
		pcpi_trace_set(&trace, note, &count[i]);
		emit();
		emit();
	}
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(count[i], 2);
}

Test(trace, null_ends_it)
{
	pcpi_trace_set(&trace, note, NULL);
	pcpi_trace_set(&trace, NULL, NULL);
	cr_expect_not(pcpi_trace_on(&trace));
	emit();
	cr_expect_eq(calls, 0);
	pcpi_trace_set(&trace, note, NULL);
	emit();
	cr_expect_eq(calls, 1);
}

/* Whoever has read the old pair may still be about to use it. */
Test(trace, old_pair_stays_whole_beside_the_new_one)
{
	unsigned first = 0, second = 0;
	struct pcpi_trace_sink *old;

	pcpi_trace_set(&trace, note, &first);
	old = trace.sink;
	pcpi_trace_set(&trace, note, &second);
	cr_expect_neq(trace.sink, old);
	cr_expect_eq(old->arg, &first);
	cr_expect_eq(trace.sink->arg, &second);
}

/* ---- A subscriber and its argument are one ------------------------------- */

static bool stop, torn;

static void expect_even(const struct pcpa_event *event, void *arg)
{
	(void)event;
	if ((uintptr_t)arg % 2 != 0)
		pcpi_store_relaxed(&torn, true);
}

static void expect_odd(const struct pcpa_event *event, void *arg)
{
	(void)event;
	if ((uintptr_t)arg % 2 != 1)
		pcpi_store_relaxed(&torn, true);
}

static void *emit_until_stop(void *arg)
{
	(void)arg;
	while (!pcpi_load_relaxed(&stop))
		emit();
	return NULL;
}

Test(trace, replaced_while_in_use_never_mixes_function_and_argument)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, emit_until_stop, NULL), 0);
	for (uintptr_t i = 0; i < 300; i++)
		pcpi_trace_set(&trace, i % 2 ? expect_odd : expect_even,
			       (void *)i);
	pcpi_store_relaxed(&stop, true);
	pthread_join(thread, NULL);
	cr_expect_not(torn);
}
