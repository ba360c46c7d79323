/* SPDX-License-Identifier: BSD-2-Clause */
/* rings_pages.c - see rings_pages.h. */
#include "rings_pages.h"

#include <errno.h>
#include <pcpalloc/stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct range {
	char *from, *to;
};

static int arena_note(const struct pcpa_arena_info *a, void *arg)
{
	struct range *r = arg;
	char *from = a->base, *to = from + a->bytes;

	if (!r->from || from < r->from)
		r->from = from;
	if (to > r->to)
		r->to = to;
	return 0;
}

static int heap_open(struct rings_store *s)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct range r = {NULL, NULL};
	int err;

	opts.flags = PCPA_HEAP_FIXED;
	if (s->which == SIM_LEGACY)
		opts.flags |= PCPA_HEAP_LEGACY;
	opts.initial_bytes = (size_t)RINGS_MIB << 20;
	opts.verbosity = 0;
	err = pcpa_heap_create(&opts, &s->heap);
	if (err)
		return err;
	pcpa_for_each_arena(s->heap, arena_note, &r);
	s->base = r.from;
	s->pages = (size_t)(r.to - r.from) / RINGS_PAGE;
	return 0;
}

static int kpcp_begin(struct rings_store *s)
{
	struct kpcp_options opts = KPCP_OPTIONS_INIT;
	int err;

	opts.mib = RINGS_MIB;
	err = kpcp_open(&s->kpcp, &opts);
	if (err)
		return err;
	s->base = s->kpcp.base;
	s->pages = s->kpcp.bytes / RINGS_PAGE;
	return 0;
}

static int store_end(struct rings_store *s)
{
	free(s->refs);
	if (s->which != SIM_KERNEL)
		return pcpa_heap_destroy(s->heap);
	kpcp_close(&s->kpcp);
	return 0;
}

int rings_store_open(struct rings_store *s, enum sim_allocator which)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->which = which;
	err = which == SIM_KERNEL ? kpcp_begin(s) : heap_open(s);
	if (!err) {
		s->refs = aligned_alloc(64, s->pages * sizeof(s->refs[0]));
		if (s->refs)
			memset(s->refs, 0, s->pages * sizeof(s->refs[0]));
		else
			store_end(s);
		err = s->refs ? 0 : -ENOMEM;
	}
	if (err)
		fprintf(stderr, "pcpbench: rings: %s with %d MiB: %s\n",
			sim_allocator_names[which], RINGS_MIB, strerror(-err));
	return err;
}

static bool is_whole(const struct rings_store *s)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;

	if (s->which == SIM_KERNEL)
		return s->kpcp.buddy.free_pages == s->pages;
	return pcpa_stats_read(s->heap, -1, &stats) == 0 &&
	       stats.used_blocks == 0;
}

bool rings_store_whole(const struct rings_store *s)
{
	if (is_whole(s))
		return true;
	fprintf(stderr, "pcpbench: rings: %s didn't get all pages back\n",
		sim_allocator_names[s->which]);
	return false;
}

bool rings_store_close(struct rings_store *s)
{
	return rings_store_whole(s) && store_end(s) == 0;
}

void rings_user_begin(struct rings_user *u, struct rings_store *s)
{
	memset(u, 0, sizeof(*u));
	u->store = s;
	if (s->which == SIM_KERNEL)
		kpcp_attach(&s->kpcp, &u->kpcp);
}

void rings_user_end(struct rings_user *u)
{
	if (u->store->which == SIM_KERNEL)
		kpcp_detach(&u->kpcp);
}
