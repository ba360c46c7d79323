/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts.h - what was measured, where and when, for every JSON line.
 *
 * Concurrency: one thread.  Cost: a few small files of /proc and /sys a line,
 * some 100 us, between measurements.  Failure: what the machine doesn't tell is
 * empty or "none", never left out.
 */
#ifndef BENCH_FACTS_H
#define BENCH_FACTS_H

struct json_object;

/*
 * Adds, all as text but cpus: cpu (the processor's name), kernel, cpus (online),
 * hugepages (free of each size at this moment, and the mode of transparent ones),
 * governor (of the first CPU, "none" without frequency scaling), commit (of the
 * tree when it was built, with -dirty; "unknown" outside a repository), version,
 * date (UTC, ISO 8601).
 */
void bench_facts_add(struct json_object *o);

#endif
