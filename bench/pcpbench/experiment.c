/* SPDX-License-Identifier: BSD-2-Clause */
/* experiment.c - the table of experiments, and the frame of their JSON lines. */
#include "experiment.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "facts.h"

const struct bench_experiment bench_experiments[BENCH_EXPERIMENTS] = {
	{"rings", "bandwidth over receive rings, three drivers (--simulate: 128 cores)",
	 bench_exp_rings},
	{"unmap", "how many pages a cache drains while a process only frees",
	 bench_exp_unmap},
	{"sweep", "throughput and the lock's part of it with larger batches",
	 bench_exp_sweep},
	{"orders", "blocks of order 3 with and without caches for them",
	 bench_exp_orders},
	{"lazy", "merging on every free, deferred, and the library's",
	 bench_exp_lazy},
	{"events", "what an allocating and a freeing CPU do with the zone",
	 bench_exp_events},
	{"pool", "a packet pool's get and put, and a heap's pair", bench_exp_pool},
	{"pool-frag", "two packets a page, and a page a packet",
	 bench_exp_pool_frag},
	{"pool-frag-remote", "the same between two threads",
	 bench_exp_pool_frag_remote},
	{"pool-colour", "a pipeline over packets with and without colours",
	 bench_exp_pool_colour},
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

void bench_experiment_text(struct json_object *o, const char *key,
			   const char *text)
{
	json_object_object_add(o, key,
			       text ? json_object_new_string(text) : NULL);
}

void bench_experiment_number(struct json_object *o, const char *key,
			     double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	json_object_object_add(o, key,
			       isfinite(value)
				       ? json_object_new_double_s(value, text)
				       : NULL);
}

void bench_experiment_count(struct json_object *o, const char *key,
			    uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

void bench_experiment_print(struct json_object *o)
{
	bench_facts_add(o);
	puts(json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
	json_object_put(o);
}
