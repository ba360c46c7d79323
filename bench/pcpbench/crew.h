/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew.h - the worker processes, from pcpbench's side.
 *
 * Owns: their start, the conversation of wire.h, their end.  One worker works
 * at a time; the others sleep.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdbool.h>
#include <sys/types.h>

#include "catalog.h"
#include "wire.h"

struct bench_member {
	const char *allocator;
	pid_t pid;
	int fd;
	char backing[32]; /* what its memory is made of */
	char why[192];    /* the last failure, as on stderr */
};

/* Whether the allocator's worker was built; it lies beside pcpbench. */
bool bench_member_exists(const struct bench_allocator_info *info);

/*
 * Starts the worker in the environment that the allocator's settings ask for,
 * and sets it up.  Returns false with the reason on stderr and in m->why.
 */
bool bench_member_start(struct bench_member *m,
			const struct bench_allocator_info *info,
			const struct wire_request *setup);

/* Asks and waits for the reply; false, with the reason on stderr and in why, when the
 * worker ended, is silent for two minutes, or says that it failed. */
bool bench_member_ask(struct bench_member *m, const struct wire_request *q,
		      struct wire_reply *r);

void bench_member_stop(struct bench_member *m);

#endif
