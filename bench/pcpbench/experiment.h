/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * experiment.h - experiments of the threads that the library goes back to, done
 * again, each with the figures of the original beside ours.
 *
 * An experiment is no comparison of allocators in turns: it runs in pcpbench's
 * own process, on the library, and prints what it found by itself: a table, or
 * with --json a JSON object a line, which begins with "experiment": its name.
 */
#ifndef BENCH_EXPERIMENT_H
#define BENCH_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

enum { BENCH_CPUS = 128 };

struct bench_experiment_args {
	int cpu[2]; /* cpu[1] < 0: there is no second one */
	const int *cpus; /* all that may be used, these two first */
	unsigned nr_cpus;
	bool simulate; /* rings */
	double ticks_per_ns;
	unsigned reps;
	bool json;
};

struct bench_experiment {
	const char *name;
	const char *what;
	/* False, with the reason on stderr, when it failed. */
	bool (*run)(const struct bench_experiment_args *args);
};

enum { BENCH_EXPERIMENTS = 10 };

extern const struct bench_experiment bench_experiments[BENCH_EXPERIMENTS];

/* Index of a name, or -1. */
int bench_experiment_find(const char *name);

/* An object with "experiment": name, for an experiment's own fields. */
struct json_object *bench_experiment_json(const char *name);

/* Fields; text NULL: null, as is a number that isn't finite. */
void bench_experiment_text(struct json_object *o, const char *key,
			   const char *text);
void bench_experiment_number(struct json_object *o, const char *key,
			     double value);
void bench_experiment_count(struct json_object *o, const char *key,
			    uint64_t value);

/* Adds the machine's facts, prints the object on a line and frees it. */
void bench_experiment_print(struct json_object *o);

/* exp_NAME.c */
bool bench_exp_rings(const struct bench_experiment_args *args);
bool bench_exp_unmap(const struct bench_experiment_args *args);
bool bench_exp_sweep(const struct bench_experiment_args *args);
bool bench_exp_orders(const struct bench_experiment_args *args);
bool bench_exp_lazy(const struct bench_experiment_args *args);
bool bench_exp_events(const struct bench_experiment_args *args);

/* exp_pool.c */
bool bench_exp_pool(const struct bench_experiment_args *args);
bool bench_exp_pool_frag(const struct bench_experiment_args *args);
bool bench_exp_pool_frag_remote(const struct bench_experiment_args *args);
bool bench_exp_pool_colour(const struct bench_experiment_args *args);

#endif
