/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts.h - what the machine is, for every JSON line.
 *
 * Concurrency: one thread.  Cost: read once, a few files of /proc and /sys.
 */
#ifndef BENCH_FACTS_H
#define BENCH_FACTS_H

struct json_object;

/* Adds cpu and kernel. */
void bench_facts_add(struct json_object *o);

#endif
