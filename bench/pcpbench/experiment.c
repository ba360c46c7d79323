/* SPDX-License-Identifier: BSD-2-Clause */
/* experiment.c - the table of experiments, and the frame of their JSON lines. */
#include "experiment.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "facts.h"

const struct bench_experiment bench_experiments[BENCH_EXPERIMENTS] = {
	{"rings", "bandwidth over receive rings, three drivers (--simulate: 128 cores)",
	 bench_exp_rings},
	{"unmap", "how many pages a cache drains while a process only frees",
	 bench_exp_unmap},
};

int bench_experiment_find(const char *name)
{
	for (int i = 0; i < BENCH_EXPERIMENTS; i++)
		if (strcmp(bench_experiments[i].name, name) == 0)
			return i;
	return -1;
}

struct json_object *bench_experiment_json(const char *name)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "experiment", json_object_new_string(name));
	return o;
}

void bench_experiment_print(struct json_object *o)
{
	bench_facts_add(o);
	puts(json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
	json_object_put(o);
}
