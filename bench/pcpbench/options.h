/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - what pcpbench was asked for.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog.h"
#include "experiment.h"

struct bench_options {
	bool workload[BENCH_WORKLOADS];
	bool experiment[BENCH_EXPERIMENTS];
	int allocator[BENCH_ALLOCATORS]; /* in the order named */
	size_t nr_allocators;
	bool allocators_named; /* an absent one is then an error */
	unsigned reps;
	unsigned heap_mib;
	int cpu[2]; /* -1: there is no second one */
	const char *compare; /* file of an older run, or NULL */
	const char *input;   /* file to compare it with instead of a run */
	int cpus[BENCH_CPUS]; /* all that experiments may use, those two first */
	unsigned nr_cpus;
	bool simulate;
	bool json;
	bool list;
};

/*
 * Reads the command line.  Returns -1 to go on, or the exit status: 0 after
 * --help, 2 after an error, which is on stderr and names the value.
 */
int bench_options_read(struct bench_options *o, int argc, char **argv);

/* Prints the workloads and allocators. */
void bench_options_list(void);

#endif
