/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare.h - two runs side by side: what moved beyond the spread.
 *
 * A cell is one workload of one allocator.  It has moved when
 *
 *   1. the ranges between its quartiles don't overlap,
 *
 *        old   |---|                     old   |---|
 *        new          |---|   slower     new     |---|   -
 *
 *   2. and its single repetitions lie further apart by rank than equal ones do
 *      but once in a hundred times: ranges of few repetitions often miss each
 *      other by chance, 8 % of 7 against 7, 20 % of 5 against 5;
 *   3. and, where both runs have a reference (`calls`, else `limit`), the ranges in
 *      units of the reference have moved the same way: a machine that is slower
 *      today is slower for the reference, too.  Between different processors this
 *      alone decides, ranks of values in these units included.
 *
 * Lines of older versions have quartiles alone, whose distance says enough from
 * QUARTILES_REPS repetitions on.  Below LEAST_REPS there is no spread to speak of.
 *
 * This is of the repetitions of two runs.  What differs from process to process
 * and not within one (where memory lies) is no chance to it.
 *
 * Concurrency: one thread.  Failure: a file that can't be read, or a line that is
 * no JSON or lacks a field, is told with the file's name and the line's number.
 * Proved by test_figures.c.
 */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct json_object;

/* Strings are the line's. */
struct bench_cell {
	struct json_object *line;
	const char *workload, *allocator, *unit;
	const char *cpu; /* "" where the line doesn't say */
	double p25, median, p75;
	int reps;
	double *value; /* reps of them; NULL where the line has none */
};

struct bench_cells {
	struct bench_cell *cell;
	size_t n;
};

/*
 * Takes in one line of a run, which stays the caller's.  Lines of other kinds
 * (experiments, missing allocators) are passed over; of two for the same cell the
 * later counts.  False: a field is missing or of a wrong kind, *why says which.
 */
bool bench_cells_add(struct bench_cells *c, struct json_object *line,
		     const char **why);

/* Takes in a file of lines.  False: *why, of the given size, says what is wrong
 * where; what was read before that is in c. */
bool bench_cells_read(struct bench_cells *c, const char *path, char *why,
		      size_t size);

void bench_cells_free(struct bench_cells *c);

/* Prints the cells that both have, as a table or as JSON lines. */
void bench_compare(const struct bench_cells *old, const struct bench_cells *now,
		   bool json, FILE *out);

#endif
