/* SPDX-License-Identifier: BSD-2-Clause */
/* pcp_tune.c - see pcp_tune.h. */
#include "pcp_tune.h"

/* A tick of the policy. */
#define TICK_NS UINT64_C(1000000000)

/* Has not allocated since its last drain: hands over whole batches (D6). */
static bool is_freer(const struct pcpi_cache *c, const struct pcpi_pageset *ps)
{
	return !ps->legacy && pcpi_cache_allocs(c) == c->allocs_at_drain;
}

/* The count at which the next free looks at the policy: one batch on, to see a
 * pure freer early, and never later than at high. */
static uint32_t next_target(const struct pcpi_cache *c,
			    const struct pcpi_pageset *ps, uint32_t count)
{
	uint32_t high = pcpi_min(c->high, c->high_cap);

	return ps->legacy ? high : pcpi_min(high, count + ps->depot_batch);
}

/* Pages that the next free of an order may put into the front, which has no
 * limit. */
static uint32_t front_may_take(const struct pcpi_cache *c, unsigned order)
{
	return order == 0 && !c->front_rest && !pcpi_cache_front_len(c, 0);
}

/* TU3: far enough from the ring's end for a chunk, and what handlers do. */
static void limit_set(struct pcpi_ring *ring, uint32_t limit)
{
	PCPA_ASSERT(limit + PCPI_RING_MARGIN / 2 <= ring->mask + 1);
	ring->limit = limit;
}

/*
 * Makes a free look at the policy no later than when the cache holds `target`
 * pages, without a count on the hot path: what is missing to the target is
 * divided among the lists that were freed to since the last look, and the
 * length that each may reach is its limit.  So the sum of what the lists may
 * still take is what the cache may still take, and with one list in use the look
 * comes exactly at the target.
 */
static void limits_spread(struct pcpi_cache *c, uint32_t target,
			  const bool used[PCPI_PCP_ORDERS])
{
	uint32_t count = pcpi_cache_count(c), room = 0;
	uint32_t lists = 0, len, limit, alone;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		lists += used[o];
		count += used[o] ? front_may_take(c, o) : 0;
	}
	if (target > count)
		room = (target - count) / pcpi_max(lists, 1u);
	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		len = pcpi_ring_len(&c->list[o].ring);
		limit = pcpi_max(len + (used[o] ? room >> o : 0), len + 1);
		/* The length may be one that a drainer just makes less: TU2. */
		alone = (target + (1u << o) - 1) >> o;
		limit_set(&c->list[o].ring, pcpi_min(limit, pcpi_max(alone, 1u)));
	}
}

/* The limits don't count the front, so where caches are small there is none. */
static bool front_allowed(const struct pcpi_cache *c)
{
	/* relaxed: a number for policy. */
	return !pcpi_policy_is_tight(
		pcpi_load_relaxed(&c->zone->pageset.high_max));
}

static void front_rest(struct pcpi_cache *c)
{
	/* relaxed: a sweep reads it, and either value will do. */
	pcpi_store_relaxed(&c->front_rest, PCPI_FRONT_OFF);
}

void pcpi_tune_start(struct pcpi_cache *c)
{
	static const bool single[PCPI_PCP_ORDERS] = { true };
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	unsigned o;

	/* relaxed: statistics read it. */
	pcpi_store_relaxed(&c->high, ps.high_min);
	c->alloc_factor = c->free_factor = c->free_count = 0;
	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		c->allocs_noted[o] = pcpi_allocs(&c->list[o].allocs);
		c->frees_noted[o] = pcpi_cache_list_frees(c, o);
		c->list_tick[o] = 1; /* not allocated from since long: F4 */
	}
	c->allocs_at_drain = pcpi_cache_allocs(c);
	/* relaxed: a tick more or less. */
	c->ticks_seen = pcpi_load_relaxed(&c->env->ticks);
	if (!front_allowed(c))
		front_rest(c);
	limits_spread(c, next_target(c, &ps, pcpi_cache_count(c)), single);
}

void pcpi_tune_flushed(struct pcpi_cache *c)
{
	static const bool single[PCPI_PCP_ORDERS] = { true };
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);

	/* relaxed: statistics read it. */
	pcpi_store_relaxed(&c->high,
			   pcpi_clamp(c->high, ps.high_min, ps.high_max));
	if (!front_allowed(c))
		front_rest(c);
	limits_spread(c, next_target(c, &ps, pcpi_cache_count(c)), single);
}

uint32_t pcpi_tune_hand_over(struct pcpi_cache *c, unsigned order)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	struct pcpi_ring *ring = &c->list[order].ring;
	uint32_t count = pcpi_ring_len(ring) << order, blocks, left, target;

	if (!is_freer(c, &ps) || pcpi_cache_count(c) != count)
		return 0;
	blocks = pcpi_policy_hand_over(count, ps.depot_batch) >> order;
	left = count - (blocks << order);
	target = next_target(c, &ps, left);
	if (blocks == 0 || target <= left)
		return 0;
	target -= pcpi_min(target, front_may_take(c, order));
	limit_set(ring, pcpi_max(target, left + (1u << order)) >> order); /* TU2 */
	return blocks;
}

bool pcpi_tune_is_taker(const struct pcpi_cache *c, unsigned order)
{
	return pcpi_cache_list_frees(c, order) == c->frees_noted[order];
}

/* What happened since the last look. */
struct pcp_past {
	uint64_t allocs, frees, freed_pages;
	bool freed[PCPI_PCP_ORDERS];
};

/* The front comes back when so many blocks of order 0 went through the cache and
 * none of another; a few don't tell. */
#define FRONT_BLOCKS 64u

static void front_switch(struct pcpi_cache *c, const struct pcp_past *past,
			 bool others)
{
	uint64_t blocks = past->allocs + past->frees;

	if (others || !front_allowed(c))
		front_rest(c);
	else if (blocks >= FRONT_BLOCKS)
		/* relaxed: a sweep reads it, and either value will do. */
		pcpi_store_relaxed(&c->front_rest, NULL);
}

static struct pcp_past past_take(struct pcpi_cache *c)
{
	struct pcp_past past = { 0 };
	uint64_t allocs, frees;
	bool others = false;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		allocs = pcpi_allocs(&c->list[o].allocs) - c->allocs_noted[o];
		frees = pcpi_cache_list_frees(c, o) - c->frees_noted[o];
		if ((int64_t)frees < 0) /* a sweep has them in its hand: C4 */
			frees = 0;
		c->allocs_noted[o] += allocs;
		c->frees_noted[o] += frees;
		past.allocs += allocs;
		past.frees += frees;
		past.freed_pages += frees << o;
		past.freed[o] = frees > 0;
		if (allocs > 0)
			c->list_tick[o] = 0; /* kept() dates it */
		others |= o > 0 && allocs + frees > 0;
	}
	front_switch(c, &past, others);
	return past;
}

/* The state as the policy would have it had it seen every alloc and free. */
static struct pcpi_pcp_state state_load(struct pcpi_cache *c,
					const struct pcpi_pageset *ps,
					const struct pcp_past *past)
{
	struct pcpi_pcp_state s = {
		.count = pcpi_cache_count(c),
		.high = c->high,
		.free_count = c->free_count,
		.free_factor = c->free_factor,
		.alloc_factor = c->alloc_factor,
		.free_high_batch = c->env->free_high_batch,
		.prev_free_high_order = past->frees > 1 && !past->freed[0],
	};

	pcpi_policy_catch_up(&s, ps, past->allocs, past->frees,
			     past->freed_pages);
	return s;
}

static void state_save(struct pcpi_cache *c, const struct pcpi_pcp_state *s)
{
	/* relaxed: the owner's own; statistics read it. */
	pcpi_store_relaxed(&c->high, pcpi_min(s->high, c->high_cap));
	c->free_count = s->free_count;
	c->free_factor = s->free_factor;
	c->alloc_factor = s->alloc_factor;
}

/* Blocks of each list that a drain must leave, because the list was allocated
 * from a moment ago: F4 of policy.h. */
static void kept(struct pcpi_cache *c, const struct pcpi_pageset *ps,
		 uint64_t now_ns, const uint32_t lens[PCPI_PCP_ORDERS],
		 uint32_t keep[PCPI_PCP_ORDERS])
{
	uint64_t tick = now_ns / TICK_NS + 1, since;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		if (c->list_tick[o] == 0)
			c->list_tick[o] = tick;
		since = pcpi_min(tick - c->list_tick[o], (uint64_t)UINT32_MAX);
		keep[o] = pcpi_policy_kept(ps, o, lens[o], (uint32_t)since);
	}
}

/* Pages to drain, 0: none; then plan->target is where to look again. */
static void trim_budget(struct pcpi_cache *c, const struct pcpi_pageset *ps,
			const struct pcp_past *past, unsigned order,
			struct pcpi_trim_plan *plan)
{
	struct pcpi_pcp_state s = state_load(c, ps, past);
	bool freer = is_freer(c, ps);
	bool free_high = !freer && pcpi_policy_free_high(&s, ps, order);
	/* relaxed: a hint for policy. */
	uint32_t flags = pcpi_load_relaxed(&c->zone->flags);

	plan->count = s.count;
	plan->high = s.high;
	plan->reason = PCPI_DRAIN_FREER;
	plan->pages = freer ? pcpi_policy_hand_over(s.count, ps->depot_batch) : 0;
	if (plan->pages == 0) {
		plan->reason = PCPI_DRAIN_HIGH;
		plan->pages = pcpi_policy_drain(&s, ps, flags, free_high, freer);
	}
	state_save(c, &s);
	plan->target = pcpi_policy_drain_bound(&s, ps, flags);
	if (freer)
		plan->target = pcpi_min(plan->target, ps->depot_batch);
}

/* The hot path doesn't test for room, TU3; but a drain of a few pages may have
 * fallen to another list, and a bulk free may bring more than a small bound ever
 * drains. */
static void rings_relieve(const struct pcpi_cache *c,
			  const uint32_t lens[PCPI_PCP_ORDERS],
			  struct pcpi_trim_plan *plan)
{
	uint32_t most, over;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		most = c->list[o].ring.mask + 1 - PCPI_RING_MARGIN / 2;
		if (lens[o] - plan->take[o] <= most)
			continue;
		over = lens[o] - plan->take[o] - most;
		plan->take[o] += over;
		plan->pages += over << o;
	}
}

void pcpi_tune_trim(struct pcpi_cache *c, unsigned order, uint64_t now_ns,
		    struct pcpi_trim_plan *plan)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	struct pcp_past past = past_take(c);
	uint32_t lens[PCPI_PCP_ORDERS], keep[PCPI_PCP_ORDERS];
	unsigned o;

	past.freed[order] = true; /* also where an alloc has undone it */
	trim_budget(c, &ps, &past, order, plan);
	if (plan->pages == 0) {
		limits_spread(c, pcpi_min(plan->target, c->high_cap),
			      past.freed);
		return;
	}
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		lens[o] = pcpi_cache_len(c, o);
	kept(c, &ps, now_ns, lens, keep);
	plan->pages = pcpi_policy_split(&pcpi_split_cache, lens, keep,
					plan->pages, &c->cursor, plan->take);
	rings_relieve(c, lens, plan);
	c->allocs_at_drain = pcpi_cache_allocs(c);
}

void pcpi_tune_drained(struct pcpi_cache *c, unsigned order)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	bool used[PCPI_PCP_ORDERS] = { false };

	used[order] = true;
	limits_spread(c, next_target(c, &ps, pcpi_cache_count(c)), used);
}

uint32_t pcpi_tune_refill(struct pcpi_cache *c, const struct pcpi_pageset *ps,
			  unsigned order)
{
	/* relaxed: a hint for policy. */
	uint32_t flags = pcpi_load_relaxed(&c->zone->flags), blocks;
	struct pcp_past past = past_take(c);
	struct pcpi_pcp_state s = state_load(c, ps, &past);

	blocks = pcpi_policy_refill(&s, ps, flags, order);
	state_save(c, &s);
	if (flags & PCPI_ZONE_BELOW_HIGH)
		limits_spread(c, pcpi_min(ps->high_min, c->high_cap), past.freed);
	return pcpi_max(blocks, 1u);
}

/* Has the plan's pages taken from the lists, as far as F4 lets it. */
static void decay_split(struct pcpi_cache *c, const struct pcpi_pageset *ps,
			uint64_t now_ns, struct pcpi_trim_plan *plan)
{
	uint32_t lens[PCPI_PCP_ORDERS], keep[PCPI_PCP_ORDERS];
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		lens[o] = pcpi_cache_len(c, o);
	kept(c, ps, now_ns, lens, keep);
	plan->pages = pcpi_policy_split(&pcpi_split_cache, lens, keep,
					plan->pages, &c->cursor, plan->take);
}

bool pcpi_tune_decay(struct pcpi_cache *c, uint64_t now_ns,
		     struct pcpi_trim_plan *plan)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	struct pcpi_pcp_state s = {
		.count = pcpi_cache_count(c),
		.high = c->high,
	};
	struct pcpi_decay todo = pcpi_policy_decay(&s, &ps);

	*plan = (struct pcpi_trim_plan){
		.count = s.count,
		.high = c->high,
		.pages = todo.pages,
		.reason = PCPI_DRAIN_DECAY,
	};
	/* relaxed: the owner's own; statistics read it. */
	pcpi_store_relaxed(&c->high, pcpi_min(s.high, c->high_cap));
	if (plan->pages > 0)
		decay_split(c, &ps, now_ns, plan);
	return todo.more;
}
