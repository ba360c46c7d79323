/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare.h - two runs side by side: what moved beyond the spread.
 *
 * A cell is one workload of one allocator.  It has moved when the ranges between
 * its quartiles don't overlap,
 *
 *   old   |---|                     old   |---|
 *   new          |---|   slower     new     |---|   -
 *
 * and, where both runs have a reference (`calls`, else `limit`), when the ranges in
 * units of the reference have moved the same way: a machine that is slower today
 * is slower for the reference, too.  Between different processors the latter
 * alone decides.  Below LEAST_REPS repetitions there is no spread to speak of.
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
