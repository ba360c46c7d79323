/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subject.h - an allocator of an experiment: the kernel-like one (kpcp.h) in one
 * of its settings, or a heap of the library, behind the same few calls.
 *
 *   struct bench_subject   what the process has of it
 *   struct bench_user      what one thread has of it
 *
 * Which of both it is costs a branch a call, the same for both.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include "kpcp.h"

struct bench_subject {
	const char *name;
	struct kpcp *kpcp; /* NULL: it is a heap */
	struct pcpa_heap *heap;
};

struct bench_user {
	struct bench_subject *subject;
	struct kpcp_cache cache;
};

/* A heap of fixed size, populated.  flags: PCPA_HEAP_LEGACY or 0; batch and high
 * 0: the library's own.  Returns 0 or a negative errno. */
int bench_subject_heap(struct bench_subject *s, const char *name, size_t mib,
		       unsigned flags, unsigned batch, unsigned high);

/* The kernel-like allocator with these settings from now on; mib is ignored.
 * Requires: no user is attached to it.  Returns 0 or a negative errno. */
int bench_subject_kpcp(struct bench_subject *s, const char *name,
		       struct kpcp *k, const struct kpcp_options *o);

/* Destroys the heap, if it is one. */
void bench_subject_close(struct bench_subject *s);

/* By the thread that uses it; detaching gives its pages back. */
void bench_user_attach(struct bench_user *u, struct bench_subject *s);
void bench_user_detach(struct bench_user *u);

/* NULL: none left. */
static inline void *bench_user_alloc(struct bench_user *u, unsigned order)
{
	if (u->subject->kpcp)
		return kpcp_alloc(&u->cache, order);
	return pcpa_alloc(u->subject->heap, order, 0);
}

static inline void bench_user_free(struct bench_user *u, void *block,
				   unsigned order)
{
	if (u->subject->kpcp)
		kpcp_free(&u->cache, block, order);
	else
		pcpa_free(u->subject->heap, block);
}

#endif
