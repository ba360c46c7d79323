/* SPDX-License-Identifier: BSD-2-Clause */
/* pcp.c - see pcp.h. */
#include "pcp.h"

#include "bits.h"
#include "page.h"
#include "sys/sys.h"

/* A tick of the policy. */
#define TICK_NS UINT64_C(1000000000)

/* Every so many hand-overs the depot's surplus is looked at. */
#define SURPLUS_EVERY 16u

/* ---- Memory -------------------------------------------------------------- */

static uint32_t high_cap(const struct pcpi_zone *zone)
{
	uint32_t bound = pcpi_zone_high_bound(zone);

	return pcpi_min(bound, PCPI_CACHE_PAGES_MAX);
}

static uint32_t ring_capacity(uint32_t high_pages, unsigned order)
{
	uint64_t blocks = (high_pages >> order) + PCPI_RING_MARGIN;

	return (uint32_t)pcpi_pow2_ceil(blocks);
}

static size_t slots_bytes(uint32_t high_pages)
{
	size_t entries = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		entries += ring_capacity(high_pages, o);
	return entries * sizeof(uint32_t);
}

/* cache | peers[nr_zones] | outbox[nr_zones] | slots of the rings */
static size_t peers_bytes(const struct pcpi_pcp_env *env)
{
	return pcpi_round_up(env->nr_zones * sizeof(struct pcpi_cache *),
			     PCPI_CACHELINE);
}

static size_t outbox_bytes(const struct pcpi_pcp_env *env)
{
	return env->nr_zones > 1 ? env->nr_zones * sizeof(struct pcpi_outbox) : 0;
}

size_t pcpi_cache_bytes(const struct pcpi_pcp_env *env,
			const struct pcpi_zone *zone)
{
	return sizeof(struct pcpi_cache) + peers_bytes(env) +
	       outbox_bytes(env) + slots_bytes(high_cap(zone));
}

/* The count at which the next free looks at the policy: one batch on, to see a
 * pure freer early, and never later than at high. */
static uint32_t next_limit(const struct pcpi_cache *c,
			   const struct pcpi_pageset *ps, uint32_t count)
{
	uint32_t high = pcpi_min(c->high, c->high_cap);

	if (!ps->legacy)
		high = pcpi_min(high, count + ps->depot_batch);
	return pcpi_max(high, 1u);
}

static void limit_set(struct pcpi_cache *c, uint32_t limit)
{
	/* relaxed: the owner's own; statistics read it. */
	pcpi_store_relaxed(&c->limit, limit);
}

/* relaxed (both): whoever has the mark or the claim changes it (C1); others
 * only look. */
static uint32_t count_get(const struct pcpi_cache *c)
{
	return pcpi_load_relaxed(&c->count);
}

static void count_set(struct pcpi_cache *c, uint32_t count)
{
	pcpi_store_relaxed(&c->count, count);
}

struct pcpi_cache *pcpi_cache_init(void *memory, struct pcpi_pcp_env *env,
				   struct pcpi_zone *zone)
{
	struct pcpi_cache *c = memory;
	char *at = (char *)memory + sizeof(*c);
	uint32_t *slots;
	unsigned o;

	c->env = env;
	c->zone = zone;
	c->first_pfn = zone->first_pfn;
	c->nr_pfns = zone->nr_pfns;
	c->claim = env->exchange || env->checks ? PCPI_CLAIM_SLOW : 0;
	c->peers = (struct pcpi_cache **)(void *)at;
	at += peers_bytes(env);
	c->outbox = env->nr_zones > 1 ? (struct pcpi_outbox *)(void *)at : NULL;
	slots = (uint32_t *)(void *)(at + outbox_bytes(env));
	c->high_cap = high_cap(zone);
	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		uint32_t capacity = ring_capacity(c->high_cap, o);

		pcpi_ring_init(&c->list[o].ring, slots, capacity);
		slots += capacity;
	}
	pcpi_cache_adopt(c);
	return c;
}

static uint64_t allocs_total(const struct pcpi_cache *c)
{
	return c->list[0].allocs + c->list[1].allocs + c->list[2].allocs +
	       c->list[3].allocs;
}

static uint64_t frees_total(const struct pcpi_cache *c)
{
	return c->list[0].frees + c->list[1].frees + c->list[2].frees +
	       c->list[3].frees;
}

void pcpi_cache_adopt(struct pcpi_cache *c)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);

	c->high = ps.high_min;
	c->alloc_factor = c->free_factor = 0;
	c->free_count = 0;
	c->allocs_at_drain = c->allocs_noted = allocs_total(c);
	c->frees_noted = frees_total(c);
	limit_set(c, next_limit(c, &ps, count_get(c)));
}

/* ---- Mark and claim ------------------------------------------------------- */

bool pcpi_cache_enter(struct pcpi_cache *c)
{
	unsigned claim;

	/* relaxed: only this thread sets it; set means that we interrupted it. */
	if (pcpi_load_relaxed(&c->busy))
		return false;
	if (c->env->exchange) {
		/* docs/memory-order.md, "The mark by exchange" */
		pcpi_exchange_seq_cst(&c->busy, 1);
		claim = pcpi_load_seq_cst(&c->claim); /* docs/memory-order.md */
	} else {
		/* relaxed: ordered by the drainer's membarrier. */
		pcpi_store_relaxed(&c->busy, 1);
		pcpi_compiler_barrier();
		/* acquire: pairs with pcpi_cache_empty_claimed(). */
		claim = pcpi_load_acquire(&c->claim);
	}
	if ((claim & PCPI_CLAIM_STATE) != PCPI_CLAIM_CLAIMED)
		return true;
	pcpi_cache_leave(c);
	return false;
}

void pcpi_cache_leave(struct pcpi_cache *c)
{
	/* release: pairs with pcpi_cache_claimed_quiet(). */
	pcpi_store_release(&c->busy, 0);
}

bool pcpi_cache_claim(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);
	uint8_t slow = seen & PCPI_CLAIM_SLOW;

	do {
		if ((seen & PCPI_CLAIM_STATE) == PCPI_CLAIM_CLAIMED)
			return false;
		/* docs/memory-order.md, "Claiming" */
	} while (!pcpi_cas_seq_cst(&c->claim, &seen,
				   (uint8_t)(slow | PCPI_CLAIM_CLAIMED)));
	return true;
}

bool pcpi_cache_claimed_quiet(const struct pcpi_cache *c)
{
	/* docs/memory-order.md, "Claiming"; pairs with pcpi_cache_leave(). */
	return pcpi_load_seq_cst(&c->busy) == 0;
}

static void claim_end(struct pcpi_cache *c, unsigned state)
{
	unsigned slow = pcpi_load_relaxed(&c->claim) & PCPI_CLAIM_SLOW; /* relaxed: C7 */

	/* release: pairs with pcpi_cache_enter(). */
	pcpi_store_release(&c->claim, (uint8_t)(slow | state));
}

void pcpi_cache_claim_postpone(struct pcpi_cache *c)
{
	pcpi_counter_add(&c->busy_skipped, 1);
	claim_end(c, PCPI_CLAIM_PENDING);
}

void pcpi_cache_ask(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	if ((seen & PCPI_CLAIM_STATE) == PCPI_CLAIM_NONE)
		/* acquire/release: pairs with pcpi_cache_settle(). */
		pcpi_cas_acq_rel(&c->claim, &seen,
				 (uint8_t)(seen | PCPI_CLAIM_PENDING));
}

void pcpi_cache_settle(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	if ((seen & PCPI_CLAIM_STATE) != PCPI_CLAIM_PENDING)
		return;
	pcpi_cache_flush(c);
	/* acquire/release: pairs with pcpi_cache_ask() and
	 * pcpi_cache_claim_postpone(); a new claim in between stays. */
	pcpi_cas_acq_rel(&c->claim, &seen, (uint8_t)(seen & PCPI_CLAIM_SLOW));
}

/* ---- Around the caches ----------------------------------------------------- */

/* Whether the depots of a zone may hold n more blocks. */
static bool depot_accepts(const struct pcpi_zone *z, unsigned order, uint32_t n)
{
	/* relaxed: a bound that may be overshot by a batch. */
	return pcpi_zone_depot_pages(z) + ((uint64_t)n << order) <=
	       pcpi_load_relaxed(&z->depot_limit);
}

/* To the depot, or where it is full to the zone; true: the depot. */
static bool blocks_return(struct pcpi_zone *z, unsigned order,
			  const uint32_t *pfns, uint32_t n)
{
	if (depot_accepts(z, order, n) &&
	    pcpi_depot_put(&z->depots[order], pfns, n))
		return true;
	pcpi_zone_give_bulk(z, order, pfns, n);
	return false;
}

static void surplus_return(struct pcpi_zone *z, unsigned order)
{
	uint64_t now = pcpi_sys->coarse_ns();
	uint32_t pfns[PCPI_CHUNK], n;

	while ((n = pcpi_depot_surplus(&z->depots[order], now, pfns, PCPI_CHUNK)))
		pcpi_zone_give_bulk(z, order, pfns, n);
}

uint32_t pcpi_direct_take(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			  uint32_t n)
{
	uint32_t got = 0;

	if (order < PCPI_PCP_ORDERS)
		got = pcpi_depot_get(&z->depots[order], pfns, n);
	if (got > 0)
		pcpi_fetch_add_relaxed(&z->depot_gets, 1); /* relaxed: counter */
	if (got < n)
		got += pcpi_zone_take_bulk(z, order, pfns + got, n - got, NULL);
	return got;
}

void pcpi_direct_give(struct pcpi_zone *z, unsigned order, const uint32_t *pfns,
		      uint32_t n)
{
	if (order >= PCPI_PCP_ORDERS)
		pcpi_zone_give_bulk(z, order, pfns, n);
	else if (blocks_return(z, order, pfns, n))
		pcpi_fetch_add_relaxed(&z->depot_puts, 1); /* relaxed: counter */
}

uint64_t pcpi_depots_empty(struct pcpi_zone *z)
{
	uint32_t pfns[PCPI_CHUNK], n;
	uint64_t pages = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		while ((n = pcpi_depot_shift(&z->depots[o], pfns, PCPI_CHUNK))) {
			pcpi_zone_give_bulk(z, o, pfns, n);
			pages += (uint64_t)n << o;
		}
	return pages;
}

/* ---- Moves out -------------------------------------------------------------- */

/* With PCPA_HEAP_CHECKS blocks in rings are marked as not handed out. */
static void blocks_hold(const struct pcpi_cache *c, unsigned order,
			const uint32_t *pfns, uint32_t n)
{
	uint32_t i;

	if (!c->env->checks)
		return;
	for (i = 0; i < n; i++)
		pcpi_page_write(c->env->orders, pfns[i],
				(order + 1) | PCPI_PAGE_HELD);
}

static uint32_t shift_marked(struct pcpi_cache *c, unsigned order,
			     uint32_t *pfns, uint32_t n)
{
	n = pcpi_min(n, pcpi_ring_len(&c->list[order].ring));
	pcpi_ring_shift(&c->list[order].ring, pfns, n);
	count_set(c, count_get(c) - (n << order)); /* C4 */
	return n;
}

static void batch_return(struct pcpi_cache *c, unsigned order,
			 const uint32_t *pfns, uint32_t n)
{
	if (!blocks_return(c->zone, order, pfns, n))
		return;
	pcpi_counter_add(&c->depot_puts, 1);
	if (c->depot_puts % SURPLUS_EVERY == 0)
		surplus_return(c->zone, order);
}

/* Moves n blocks of the cold end to the depot, a private batch at a time. */
static void cold_return(struct pcpi_cache *c, unsigned order, uint32_t n)
{
	uint32_t pfns[PCPI_CHUNK], got;

	while (n > 0 && pcpi_cache_enter(c)) {
		got = shift_marked(c, order, pfns, pcpi_min(n, PCPI_CHUNK));
		pcpi_cache_leave(c);
		if (got == 0)
			return;
		batch_return(c, order, pfns, got);
		n -= got;
	}
}

/* ---- Policy ------------------------------------------------------------------ */

/* The factors decay by one with each alloc or free: the counters tell how often
 * that was, so that the hot path need not do it. */
static uint32_t factor_decay(uint32_t factor, uint64_t times)
{
	return times < 32 ? factor >> times : 0;
}

static struct pcpi_pcp_state state_load(struct pcpi_cache *c,
					const struct pcpi_pageset *ps)
{
	uint64_t allocs = allocs_total(c), frees = frees_total(c);
	struct pcpi_pcp_state s = {
		.count = count_get(c),
		.high = c->high,
		.free_count = pcpi_min(c->free_count,
				       ps->batch << PCPI_SCALE_MAX),
		.free_factor = factor_decay(c->free_factor,
					    allocs - c->allocs_noted),
		.alloc_factor = factor_decay(c->alloc_factor,
					     frees - c->frees_noted),
		.free_high_batch = c->env->free_high_batch,
	};

	c->allocs_noted = allocs;
	c->frees_noted = frees;
	return s;
}

static void state_save(struct pcpi_cache *c, const struct pcpi_pcp_state *s)
{
	/* relaxed: the owner's own; statistics read it. */
	pcpi_store_relaxed(&c->high, pcpi_min(s->high, c->high_cap));
	pcpi_store_relaxed(&c->free_count, s->free_count);
	c->free_factor = s->free_factor;
	c->alloc_factor = s->alloc_factor;
}

/* Blocks of each list that a drain must leave, because the list was allocated
 * from a moment ago: F4 of policy.h. */
static void kept(struct pcpi_cache *c, const struct pcpi_pageset *ps,
		 const uint32_t lens[PCPI_PCP_ORDERS],
		 uint32_t keep[PCPI_PCP_ORDERS])
{
	uint64_t tick = pcpi_sys->coarse_ns() / TICK_NS, since;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		if (c->list_allocs[o] != c->list[o].allocs) {
			c->list_allocs[o] = c->list[o].allocs;
			c->list_tick[o] = tick;
		}
		since = pcpi_min(tick - c->list_tick[o], (uint64_t)UINT32_MAX);
		keep[o] = pcpi_policy_kept(ps, o, lens[o], (uint32_t)since);
	}
}

/* A plan made under the mark and carried out after it. */
struct trim_plan {
	uint32_t take[PCPI_PCP_ORDERS]; /* blocks */
	uint32_t pages, count, high;
	enum pcpi_drain_reason reason;
};

static bool pure_freer(const struct pcpi_cache *c, const struct pcpi_pageset *ps)
{
	return !ps->legacy && count_get(c) >= ps->depot_batch &&
	       allocs_total(c) == c->allocs_at_drain;
}

static uint32_t trim_budget(struct pcpi_cache *c, const struct pcpi_pageset *ps,
			    unsigned order, struct trim_plan *plan)
{
	struct pcpi_pcp_state s = state_load(c, ps);
	/* relaxed: a hint for policy. */
	uint32_t flags = pcpi_load_relaxed(&c->zone->flags), budget;

	/* All frees since the last trim stand for the one before this. */
	s.prev_free_high_order = c->list[0].frees == c->frees0_at_trim;
	c->frees0_at_trim = c->list[0].frees;
	plan->reason = PCPI_DRAIN_HIGH;
	if (pure_freer(c, ps)) {
		/* What came in, and as much again of what it still has. */
		plan->reason = PCPI_DRAIN_FREER;
		budget = pcpi_min(plan->count / ps->depot_batch, 2u) *
			 ps->depot_batch;
	} else {
		budget = pcpi_policy_drain(
			&s, ps, flags, pcpi_policy_free_high(&s, ps, order),
			false);
	}
	state_save(c, &s);
	return budget;
}

static void trim_plan_make(struct pcpi_cache *c, unsigned order,
			   struct trim_plan *plan)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	uint32_t lens[PCPI_PCP_ORDERS], keep[PCPI_PCP_ORDERS], budget;
	unsigned o;

	plan->count = count_get(c);
	plan->high = c->high;
	budget = trim_budget(c, &ps, order, plan);
	if (budget == 0) {
		limit_set(c, pcpi_max(pcpi_min(c->high, c->high_cap), 1u));
		plan->pages = 0;
		return;
	}
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		lens[o] = pcpi_ring_len(&c->list[o].ring);
	kept(c, &ps, lens, keep);
	plan->pages = pcpi_policy_split(&pcpi_split_cache, lens, keep, budget,
					&c->cursor, plan->take);
	c->allocs_at_drain = c->allocs_noted;
	limit_set(c, next_limit(c, &ps, plan->count - plan->pages));
}

static void drain_note(struct pcpi_cache *c, enum pcpi_drain_reason reason,
		       unsigned order, uint64_t pages, uint32_t count,
		       uint32_t high)
{
	pcpi_counter_add(&c->drains[reason], 1);
	if (pcpi_trace_on(&c->env->trace))
		pcpi_trace_emit(&c->env->trace, PCPA_EVENT_PCPU_DRAIN,
				(int)c->zone->config.os_node, order, pages,
				count, high);
}

void pcpi_cache_trim(struct pcpi_cache *c, unsigned order)
{
	struct trim_plan plan;
	unsigned o;

	if (!pcpi_cache_enter(c))
		return;
	trim_plan_make(c, order, &plan);
	pcpi_cache_leave(c);
	if (plan.pages == 0)
		return;
	drain_note(c, plan.reason, order, plan.pages, plan.count, plan.high);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		cold_return(c, o, plan.take[o]);
}

/* ---- Alloc ------------------------------------------------------------------- */

uint32_t pcpi_cache_pop(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			uint32_t n)
{
	struct pcpi_pcp_list *list = &c->list[order];

	if (!pcpi_cache_enter(c))
		return 0;
	n = pcpi_min(n, pcpi_ring_len(&list->ring));
	pcpi_ring_pop(&list->ring, pfns, n);
	count_set(c, count_get(c) - (n << order)); /* C4 */
	if (n == 1)
		c->free_count >>= 1;
	pcpi_counter_add(&list->allocs, n);
	pcpi_cache_leave(c);
	return n;
}

/* Blocks that policy would take from the zone; grows high on the way. */
static uint32_t refill_plan(struct pcpi_cache *c, const struct pcpi_pageset *ps,
			    unsigned order)
{
	/* relaxed: a hint for policy. */
	uint32_t flags = pcpi_load_relaxed(&c->zone->flags), blocks;
	struct pcpi_pcp_state s = state_load(c, ps);

	blocks = pcpi_policy_refill(&s, ps, flags, order);
	state_save(c, &s);
	if (flags & PCPI_ZONE_BELOW_HIGH)
		limit_set(c, pcpi_max(pcpi_min(c->limit, ps->high_min), 1u));
	return pcpi_max(blocks, 1u);
}

/* Puts fresh blocks into the ring, hot or cold; what a claim or a full ring
 * keeps out goes back.  True when they went in. */
static bool ring_put(struct pcpi_cache *c, unsigned order, const uint32_t *pfns,
		     uint32_t n, bool hot)
{
	struct pcpi_ring *ring = &c->list[order].ring;
	bool in = false;

	if (n == 0)
		return true;
	blocks_hold(c, order, pfns, n);
	if (pcpi_cache_enter(c)) {
		in = n <= pcpi_ring_room(ring);
		if (in && hot)
			pcpi_ring_push(ring, pfns, n);
		else if (in)
			pcpi_ring_append_cold(ring, pfns, n);
		if (in)
			count_set(c, count_get(c) + (n << order)); /* C4 */
		pcpi_cache_leave(c);
	}
	if (!in)
		pcpi_direct_give(c->zone, order, pfns, n);
	return in;
}

static void allocs_count(struct pcpi_cache *c, unsigned order, uint32_t n)
{
	if (pcpi_cache_enter(c)) {
		pcpi_counter_add(&c->list[order].allocs, n);
		pcpi_cache_leave(c);
	} else {
		/* relaxed: counter */
		pcpi_fetch_add_relaxed(&c->zone->direct_allocs, n);
	}
}

/* The hottest n of a batch go to the caller, the others to the hot end. */
static uint32_t refill_from_depot(struct pcpi_cache *c, unsigned order,
				  uint32_t depot_batch, uint32_t *pfns,
				  uint32_t n)
{
	uint32_t batch[PCPI_CHUNK], got, blocks;

	blocks = pcpi_min(pcpi_policy_depot_blocks(depot_batch, order),
			  PCPI_CHUNK);
	got = pcpi_depot_get(&c->zone->depots[order], batch,
			     pcpi_max(blocks, n));
	if (got == 0)
		return 0;
	pcpi_counter_add(&c->depot_gets, 1);
	n = pcpi_min(n, got);
	memcpy(pfns, batch + got - n, n * sizeof(*pfns));
	ring_put(c, order, batch, got - n, true);
	return n;
}

static void zone_note(struct pcpi_cache *c, unsigned order, uint32_t blocks,
		      bool broken)
{
	struct pcpi_trace *t = &c->env->trace;
	int node = (int)c->zone->config.os_node;

	if (!pcpi_trace_on(t))
		return;
	pcpi_trace_emit(t, PCPA_EVENT_ZONE_LOCKED, node, order,
			(uint64_t)blocks << order, count_get(c), c->high);
	if (broken)
		pcpi_trace_emit(t, PCPA_EVENT_EXTFRAG, node, order,
				(uint64_t)blocks << order, count_get(c), c->high);
}

/* Ascending: the first n of the first chunk to the caller, then the ring. */
static uint32_t refill_from_zone(struct pcpi_cache *c, unsigned order,
				 uint32_t blocks, uint32_t *pfns, uint32_t n)
{
	uint32_t batch[PCPI_CHUNK], got, want, left = blocks, given = 0;
	bool broken, in = true;

	while (left > 0 && in) {
		want = pcpi_min(left, PCPI_CHUNK);
		got = pcpi_zone_take_bulk(c->zone, order, batch, want, &broken);
		if (got == 0)
			break;
		zone_note(c, order, got, broken);
		want = pcpi_min(n - given, got);
		memcpy(pfns + given, batch, want * sizeof(*pfns));
		given += want;
		in = ring_put(c, order, batch + want, got - want, false);
		left -= got;
	}
	return given;
}

uint32_t pcpi_cache_refill(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			   uint32_t n)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	uint32_t count = count_get(c), blocks = refill_plan(c, &ps, order), got;

	n = pcpi_min(n, PCPI_CHUNK);
	got = refill_from_depot(c, order, ps.depot_batch, pfns, n);
	if (got == 0)
		got = refill_from_zone(c, order, pcpi_max(blocks, n), pfns, n);
	if (got == 0)
		return 0;
	allocs_count(c, order, got);
	pcpi_counter_add(&c->refills, 1);
	if (pcpi_trace_on(&c->env->trace))
		pcpi_trace_emit(&c->env->trace, PCPA_EVENT_PCPU_REFILL,
				(int)c->zone->config.os_node, order,
				(uint64_t)count_get(c) + ((uint64_t)got << order) -
					count,
				count, c->high);
	return got;
}

/* ---- Free -------------------------------------------------------------------- */

void pcpi_cache_push(struct pcpi_cache *c, unsigned order, const uint32_t *pfns,
		     uint32_t n)
{
	struct pcpi_pcp_list *list = &c->list[order];
	bool in = false, full = false;

	blocks_hold(c, order, pfns, n);
	if (pcpi_cache_enter(c)) {
		in = n <= pcpi_ring_room(&list->ring);
		if (in) {
			pcpi_ring_push(&list->ring, pfns, n);
			count_set(c, count_get(c) + (n << order)); /* C4 */
			c->free_count += n << order;
			pcpi_counter_add(&list->frees, n);
			full = count_get(c) >= c->limit;
		}
		pcpi_cache_leave(c);
	}
	if (full)
		pcpi_cache_trim(c, order);
	if (in)
		return;
	/* relaxed: counter */
	pcpi_fetch_add_relaxed(&c->zone->direct_frees, n);
	pcpi_direct_give(c->zone, order, pfns, n);
}

void pcpi_cache_push_remote(struct pcpi_cache *c, struct pcpi_zone *home,
			    unsigned order, uint32_t pfn)
{
	struct pcpi_outbox *box = &c->outbox[home->config.position];
	uint32_t pfns[PCPI_CHUNK], n = 0, full;

	full = pcpi_policy_depot_blocks(pcpi_zone_pageset(home).depot_batch, order);
	full = pcpi_min(full, PCPI_CHUNK);
	blocks_hold(c, order, &pfn, 1);
	if (!pcpi_cache_enter(c)) {
		/* relaxed: counter */
		pcpi_fetch_add_relaxed(&home->direct_frees, 1);
		pcpi_direct_give(home, order, &pfn, 1);
		return;
	}
	box->pfns[order][box->len[order]] = pfn;
	pcpi_store_relaxed(&box->len[order], box->len[order] + 1); /* relaxed: C5 */
	pcpi_counter_add(&box->frees, 1);
	if (box->len[order] >= full) {
		n = box->len[order];
		memcpy(pfns, box->pfns[order], n * sizeof(*pfns));
		pcpi_store_relaxed(&box->len[order], 0); /* relaxed: C5 */
	}
	pcpi_cache_leave(c);
	if (n > 0)
		pcpi_direct_give(home, order, pfns, n);
}

/* ---- Whole caches ------------------------------------------------------------- */

/* Takes an outbox's blocks of one order out; C1 holds. */
static uint32_t outbox_take(struct pcpi_outbox *box, unsigned order,
			    uint32_t *pfns)
{
	uint32_t n = box->len[order];

	memcpy(pfns, box->pfns[order], n * sizeof(*pfns));
	pcpi_store_relaxed(&box->len[order], 0); /* relaxed: C5 */
	return n;
}

static uint64_t outboxes_flush(struct pcpi_cache *c)
{
	uint32_t pfns[PCPI_CHUNK], n;
	uint64_t pages = 0;
	unsigned z, o;

	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		for (o = 0; o < PCPI_PCP_ORDERS; o++) {
			if (!pcpi_cache_enter(c))
				return pages;
			n = outbox_take(&c->outbox[z], o, pfns);
			pcpi_cache_leave(c);
			if (n > 0)
				pcpi_direct_give(&c->env->zones[z], o, pfns, n);
			pages += (uint64_t)n << o;
		}
	return pages;
}

void pcpi_cache_flush(struct pcpi_cache *c)
{
	uint32_t count = count_get(c);
	uint64_t pages;
	unsigned o;

	pages = count + outboxes_flush(c);
	if (pages == 0)
		return;
	drain_note(c, PCPI_DRAIN_FLUSH, 0, pages, count, c->high);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		cold_return(c, o, pcpi_ring_len_racy(&c->list[o].ring));
}

void pcpi_cache_abandon(struct pcpi_cache *c)
{
	uint32_t pages = 0;
	unsigned o;

	/* relaxed: set, it keeps drainers out until it is cleared (C1). */
	if (pcpi_load_relaxed(&c->busy)) {
		for (o = 0; o < PCPI_PCP_ORDERS; o++)
			pages += pcpi_ring_len(&c->list[o].ring) << o;
		count_set(c, pages);
		pcpi_cache_leave(c);
	}
	pcpi_cache_settle(c);
	pcpi_cache_flush(c);
}

static uint64_t outboxes_empty_claimed(struct pcpi_cache *c)
{
	uint32_t pfns[PCPI_CHUNK], n;
	uint64_t pages = 0;
	unsigned z, o;

	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		for (o = 0; o < PCPI_PCP_ORDERS; o++) {
			n = outbox_take(&c->outbox[z], o, pfns);
			pcpi_zone_give_bulk(&c->env->zones[z], o, pfns, n);
			pages += (uint64_t)n << o;
		}
	return pages;
}

uint64_t pcpi_cache_empty_claimed(struct pcpi_cache *c)
{
	uint32_t pfns[PCPI_CHUNK], n;
	uint32_t count = count_get(c);
	uint64_t pages;
	unsigned o;

	pages = count + outboxes_empty_claimed(c);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		while ((n = shift_marked(c, o, pfns, PCPI_CHUNK)))
			pcpi_zone_give_bulk(c->zone, o, pfns, n);
	claim_end(c, PCPI_CLAIM_NONE);
	if (pages > 0)
		drain_note(c, PCPI_DRAIN_SWEEP, 0, pages, count,
			   pcpi_load_relaxed(&c->high)); /* relaxed: a report */
	return pages;
}

uint64_t pcpi_cache_pages(const struct pcpi_cache *c, uint64_t *remote)
{
	uint64_t pages = 0;
	unsigned z, o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pages += (uint64_t)pcpi_ring_len_racy(&c->list[o].ring) << o;
	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		for (o = 0; o < PCPI_PCP_ORDERS; o++)
			/* relaxed: a statistic. */
			remote[z] += (uint64_t)pcpi_load_relaxed(
					     &c->outbox[z].len[o])
				     << o;
	return pages;
}

bool pcpi_cache_check(const struct pcpi_cache *c)
{
	uint64_t pages = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pages += (uint64_t)pcpi_ring_len(&c->list[o].ring) << o;
	return pages == count_get(c); /* C4 */
}
