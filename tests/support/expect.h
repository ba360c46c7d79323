/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expect.h - checks of programs that are no Criterion suites.
 *
 *   EXPECT   says what doesn't hold, and counts it: the exit status is main()'s
 *   CHECK    says it and ends the process
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned failures;

static inline bool expect_true(bool holds, const char *what, const char *file,
			       int line)
{
	if (!holds) {
		fprintf(stderr, "%s:%d: %s (errno %d)\n", file, line, what, errno);
		failures++;
	}
	return holds;
}

#define EXPECT(cond) expect_true((cond), #cond, __FILE__, __LINE__)

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!expect_true((cond), #cond, __FILE__, __LINE__))           \
			exit(1);                                               \
	} while (0)

#endif
