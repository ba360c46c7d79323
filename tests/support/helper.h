/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper.h - a second thread that does what the test says, step by step, and in
 * between is blocked in a system call.
 */
#ifndef HELPER_H
#define HELPER_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <unistd.h>

struct helper {
	pthread_t thread;
	int go[2], done[2];
	void (*fn)(void *arg);
	void *arg;
};

static inline void *helper_main(void *arg)
{
	struct helper *h = arg;
	char byte;

	while (read(h->go[0], &byte, 1) == 1 && h->fn) {
		h->fn(h->arg);
		cr_assert_eq(write(h->done[1], "", 1), 1);
	}
	return NULL;
}

static inline void helper_start(struct helper *h)
{
	cr_assert_eq(pipe(h->go), 0);
	cr_assert_eq(pipe(h->done), 0);
	cr_assert_eq(pthread_create(&h->thread, NULL, helper_main, h), 0);
}

/* Runs fn(arg) there; returns when it has returned. */
static inline void helper_call(struct helper *h, void (*fn)(void *), void *arg)
{
	char byte;

	h->fn = fn;
	h->arg = arg;
	cr_assert_eq(write(h->go[1], "", 1), 1);
	cr_assert_eq(read(h->done[0], &byte, 1), 1);
}

static inline void helper_end(struct helper *h)
{
	unsigned i;

	h->fn = NULL;
	cr_assert_eq(write(h->go[1], "", 1), 1);
	cr_assert_eq(pthread_join(h->thread, NULL), 0);
	for (i = 0; i < 2; i++) {
		close(h->go[i]);
		close(h->done[i]);
	}
}

#endif
