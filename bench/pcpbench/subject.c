/* SPDX-License-Identifier: BSD-2-Clause */
/* subject.c - see subject.h. */
#include "subject.h"

int bench_subject_heap(struct bench_subject *s, const char *name, size_t mib,
		       unsigned flags, unsigned batch, unsigned high)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;

	opts.flags = flags | PCPA_HEAP_FIXED;
	opts.initial_bytes = mib << 20;
	opts.batch_pages = batch;
	opts.high_pages = high;
	opts.verbosity = 0; /* sweep makes many */
	*s = (struct bench_subject){.name = name};
	return pcpa_heap_create(&opts, &s->heap);
}

int bench_subject_kpcp(struct bench_subject *s, const char *name,
		       struct kpcp *k, const struct kpcp_options *o)
{
	*s = (struct bench_subject){.name = name, .kpcp = k};
	return kpcp_retune(k, o);
}

void bench_subject_close(struct bench_subject *s)
{
	if (s->heap)
		pcpa_heap_destroy(s->heap);
	s->heap = NULL;
}

void bench_user_attach(struct bench_user *u, struct bench_subject *s)
{
	u->subject = s;
	if (s->kpcp)
		kpcp_attach(s->kpcp, &u->cache);
}

void bench_user_detach(struct bench_user *u)
{
	if (u->subject->kpcp)
		kpcp_detach(&u->cache);
	else
		pcpa_thread_flush(u->subject->heap);
}
