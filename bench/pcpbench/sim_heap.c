/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_heap.c - see sim_heap.h. */
#include "sim_heap.h"

#include "direct.h"
#include "kpcp_policy.h"

/* What lib/pcp.c moves at once in a pure freer's hand-over. */
#define FREER_CHUNK (2 * PCPI_DEPOT_CHUNK)

enum { PAGE_BYTES = 4096 };

/* What one cache's ring can hold at all (pcp.h). */
enum { RING_PAGES = 65024 };

/* Watermarks' distance, in 1/10000 of the zone. */
enum { WATERMARK_SCALE = PCPI_WATERMARK_SCALE };

const char *const sim_allocator_names[SIM_ALLOCATORS] = {
	[SIM_KERNEL] = "kernel-5.x",
	[SIM_LEGACY] = "legacy",
	[SIM_MODERN] = "modern",
};

/* ---- Sizes ---------------------------------------------------------------- */

static void library_size(struct sim_heap *h, uint32_t threads)
{
	struct pcpi_watermarks marks = pcpi_policy_watermarks(
		h->managed_pages, PAGE_BYTES, 0, WATERMARK_SCALE);
	const struct pcpi_pageset_inputs in = {
		.managed_pages = h->managed_pages,
		.page_bytes = PAGE_BYTES,
		.low_pages = marks.low,
		.node_cpus = threads,
		.all_cpus = threads,
		.threads = threads,
		.ring_capacity_pages = RING_PAGES,
		.legacy = h->which == SIM_LEGACY,
	};

	h->pageset = pcpi_policy_pageset(&in);
	h->mark_high = marks.high;
	h->depot_limit = pcpi_policy_depot_limit(h->managed_pages, true);
}

void sim_heap_init(struct sim_heap *h, enum sim_allocator which,
		   const struct sim_costs *costs, uint64_t pages,
		   uint32_t threads)
{
	*h = (struct sim_heap){
		.which = which,
		.costs = costs,
		.own = which == SIM_KERNEL ? &costs->kernel : &costs->pcpalloc,
		.managed_pages = pages,
		.free_pages = pages,
	};
	sim_lock_init(&h->zone);
	sim_lock_init(&h->depot);
	if (which != SIM_KERNEL)
		library_size(h, threads);
}

/* ---- What lib/pcp_tune.c does --------------------------------------------- */

static uint32_t next_target(const struct sim_heap *h, const struct sim_cache *c,
			    uint32_t count)
{
	const struct pcpi_pageset *ps = &h->pageset;

	return ps->legacy ? c->state.high
			  : pcpi_min(c->state.high, count + ps->depot_batch);
}

/* Of one list that is in use. */
static void limit_set(struct sim_cache *c, uint32_t target)
{
	uint32_t soonest = c->state.count + 1;

	c->limit = pcpi_min(pcpi_max(target, soonest), pcpi_max(target, 1u));
}

void sim_cache_init(const struct sim_heap *h, struct sim_cache *c)
{
	*c = (struct sim_cache){.state.high = h->pageset.high_min};
	limit_set(c, next_target(h, c, 0));
}

static unsigned zone_flags(const struct sim_heap *h)
{
	return h->free_pages + h->depot_pages < h->mark_high
		       ? PCPI_ZONE_BELOW_HIGH
		       : 0;
}

/* The policy is told what happened since the last look. */
static void past_note(const struct sim_heap *h, struct sim_cache *c)
{
	pcpi_policy_catch_up(&c->state, &h->pageset, c->allocs, c->frees,
			     c->frees);
	c->allocs = c->frees = 0;
}

static bool is_freer(const struct sim_heap *h, const struct sim_cache *c)
{
	return !h->pageset.legacy && !c->allocated;
}

/* A pure freer's common case: whole depot batches, the policy isn't asked. */
static bool freer_trim(const struct sim_heap *h, struct sim_cache *c,
		       struct sim_op *op)
{
	uint32_t n, left, target;

	if (!is_freer(h, c))
		return false;
	n = pcpi_policy_hand_over(c->state.count, h->pageset.depot_batch);
	n = pcpi_min(n, FREER_CHUNK);
	left = c->state.count - n;
	target = next_target(h, c, left);
	if (n == 0 || target <= left)
		return false;
	c->state.count = left;
	limit_set(c, target);
	*op = (struct sim_op){SIM_FREE_GIVE, n, FREER_CHUNK, false, false};
	return true;
}

/* One decision of the policy at a free; false: nothing to drain. */
static bool policy_trim(const struct sim_heap *h, struct sim_cache *c,
			struct sim_op *op)
{
	const struct pcpi_pageset *ps = &h->pageset;
	bool freer = is_freer(h, c);
	uint32_t pages, target;

	past_note(h, c);
	pages = freer ? pcpi_policy_hand_over(c->state.count, ps->depot_batch)
		      : 0;
	if (pages == 0)
		pages = pcpi_policy_drain(&c->state, ps, zone_flags(h), false,
					  freer);
	if (pages == 0) {
		target = pcpi_policy_drain_bound(&c->state, ps, zone_flags(h));
		if (freer)
			target = pcpi_min(target, ps->depot_batch);
		limit_set(c, target);
		return false;
	}
	c->state.count -= pages;
	c->allocated = false;
	*op = (struct sim_op){SIM_FREE_GIVE, pages, PCPI_DEPOT_CHUNK,
			      true, false};
	return true;
}

static uint32_t refill_ask(const struct sim_heap *h, struct sim_cache *c)
{
	past_note(h, c);
	return pcpi_policy_refill(&c->state, &h->pageset, zone_flags(h), 0);
}

/* ---- The walks: private steps --------------------------------------------- */

void sim_alloc_begin(struct sim_op *op)
{
	*op = (struct sim_op){.stage = SIM_ALLOC};
}

void sim_free_begin(struct sim_op *op)
{
	*op = (struct sim_op){.stage = SIM_FREE};
}

static enum sim_next op_end(struct sim_op *op)
{
	op->stage = SIM_OP_NONE;
	return SIM_DONE;
}

static enum sim_next alloc_hit(struct sim_heap *h, struct sim_cache *c,
			       struct sim_op *op, uint64_t *ps)
{
	c->state.count--;
	c->allocs++;
	c->allocated = true;
	*ps += sim_ps(h->own->alloc);
	return op_end(op);
}

static enum sim_next zone_ask(struct sim_op *op, uint32_t pages, uint32_t chunk)
{
	op->stage = SIM_ALLOC_ZONE;
	op->left = pages;
	op->chunk = chunk;
	return SIM_ZONE;
}

static enum sim_next alloc_step(struct sim_heap *h, struct sim_cache *c,
				struct sim_op *op, uint64_t *ps)
{
	bool fresh = op->stage == SIM_ALLOC, taker = c->frees == 0;

	if (h->exhausted)
		return op_end(op);
	if (c->state.count > 0 && op->left == 0)
		return alloc_hit(h, c, op, ps);
	if (op->stage == SIM_ALLOC_ZONE && op->left > 0)
		return SIM_ZONE;
	if (fresh)
		*ps += sim_ps(h->own->look);
	if (h->which == SIM_KERNEL)
		return zone_ask(op, kpcp_refill_pages(KPCP_BATCH), KPCP_BATCH);
	/* A list that only gives blocks out has nothing to tell the policy. */
	if (fresh && taker && h->depot_pages > 0) {
		op->stage = SIM_ALLOC_DEPOT;
		return SIM_DEPOT;
	}
	if (op->stage != SIM_ALLOC_AGAIN) {
		op->chunk = refill_ask(h, c); /* kept while the depot is asked */
		op->stage = SIM_ALLOC_AGAIN;
		if (h->depot_pages > 0)
			return SIM_DEPOT;
	}
	return zone_ask(op, op->chunk, PCPI_CHUNK);
}

static enum sim_next give_ask(struct sim_heap *h, struct sim_op *op)
{
	uint32_t n = pcpi_min(op->left, op->chunk);

	op->to_depot = h->which != SIM_KERNEL &&
		       h->depot_pages + n <= h->depot_limit;
	return op->to_depot ? SIM_DEPOT : SIM_ZONE;
}

static enum sim_next kernel_free(struct sim_heap *h, struct sim_cache *c,
				 struct sim_op *op, uint64_t *ps)
{
	uint32_t n = kpcp_drain_pages(c->state.count, KPCP_BATCH, KPCP_HIGH);

	if (n == 0)
		return op_end(op);
	*ps += sim_ps(h->own->look);
	c->state.count -= n;
	*op = (struct sim_op){SIM_FREE_GIVE, n, n, false, false};
	return SIM_ZONE;
}

static enum sim_next free_look(struct sim_heap *h, struct sim_cache *c,
			       struct sim_op *op)
{
	if (!freer_trim(h, c, op) && !policy_trim(h, c, op))
		return op_end(op);
	return give_ask(h, op);
}

static enum sim_next free_step(struct sim_heap *h, struct sim_cache *c,
			       struct sim_op *op, uint64_t *ps)
{
	if (op->stage == SIM_FREE) {
		c->state.count++;
		c->frees++;
		*ps += sim_ps(h->own->free);
		if (h->which == SIM_KERNEL)
			return kernel_free(h, c, op, ps);
		if (c->state.count < c->limit)
			return op_end(op);
		*ps += sim_ps(h->own->look);
		return free_look(h, c, op);
	}
	if (op->left > 0)
		return give_ask(h, op);
	/* Pages come one by one, so one drain is enough. */
	if (op->relimit)
		limit_set(c, next_target(h, c, c->state.count));
	return op_end(op);
}

enum sim_next sim_op_step(struct sim_heap *h, struct sim_cache *c,
			  struct sim_op *op, uint64_t *ps)
{
	return op->stage < SIM_FREE ? alloc_step(h, c, op, ps)
				    : free_step(h, c, op, ps);
}

/* ---- The walks: under a lock ---------------------------------------------- */

static uint64_t depot_cost(const struct sim_heap *h, uint32_t n)
{
	double page = sim_lock_is_far(&h->depot) ? h->costs->depot_far
						 : h->costs->depot_near;

	return sim_ps(h->costs->depot_fixed + n * page);
}

static uint64_t depot_get(struct sim_heap *h, struct sim_cache *c)
{
	const struct pcpi_pageset *ps = &h->pageset;
	uint32_t room = pcpi_policy_room(ps, c->state.count);
	uint32_t n = pcpi_policy_depot_blocks(ps->depot_batch, 0);

	n = pcpi_max(pcpi_min(pcpi_min(n, room), PCPI_DEPOT_GET), 1u);
	n = (uint32_t)pcpi_min((uint64_t)n, h->depot_pages);
	h->depot_pages -= n;
	c->state.count += n;
	return depot_cost(h, n);
}

static uint64_t zone_take(struct sim_heap *h, struct sim_cache *c,
			  struct sim_op *op)
{
	uint32_t n = pcpi_min(op->left, op->chunk);
	double page = sim_lock_is_far(&h->zone) ? h->own->take_far
						: h->own->take_near;

	n = (uint32_t)pcpi_min((uint64_t)n, h->free_pages);
	h->free_pages -= n;
	c->state.count += n;
	op->left = n == 0 ? 0 : op->left - n;
	h->exhausted |= c->state.count == 0;
	return sim_ps(n * page);
}

static uint64_t give(struct sim_heap *h, struct sim_op *op)
{
	uint32_t n = pcpi_min(op->left, op->chunk);
	double page = sim_lock_is_far(&h->zone) ? h->own->give_far
						: h->own->give_near;

	op->left -= n;
	if (op->to_depot) {
		h->depot_pages += n;
		return depot_cost(h, n);
	}
	h->free_pages += n;
	return sim_ps(n * page);
}

uint64_t sim_op_locked(struct sim_heap *h, struct sim_cache *c,
		       struct sim_op *op)
{
	if (op->stage == SIM_FREE_GIVE)
		return give(h, op);
	if (op->stage == SIM_ALLOC_ZONE)
		return zone_take(h, c, op);
	return depot_get(h, c);
}
