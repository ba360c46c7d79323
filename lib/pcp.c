/* SPDX-License-Identifier: BSD-2-Clause */
/* pcp.c - see pcp.h. */
#include "pcp.h"

#include "bits.h"
#include "convert.h"
#include "pcp_tune.h"
#include "sys/sys.h"

/* Every so many hand-overs, and with each that a full depot refuses, the depots'
 * surplus is looked at. */
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
	return PCPI_CACHE_OFFSET + sizeof(struct pcpi_cache) +
	       peers_bytes(env) + outbox_bytes(env) + slots_bytes(high_cap(zone));
}

struct pcpi_cache *pcpi_cache_init(void *memory, size_t bytes,
				   struct pcpi_pcp_env *env,
				   struct pcpi_zone *zone)
{
	char *at = (char *)memory + PCPI_CACHE_OFFSET;
	struct pcpi_cache *c = (struct pcpi_cache *)(void *)at;
	uint32_t *slots;
	unsigned o;

	at += sizeof(*c);
	c->memory = memory;
	c->bytes = bytes;
	c->env = env;
	c->zone = zone;
	c->first_pfn = zone->first_pfn;
	c->nr_pfns = zone->nr_pfns;
	c->base = env->base;
	c->start = env->base + (c->first_pfn << env->page_shift);
	c->orders = env->orders + c->first_pfn;
	c->page_shift = env->page_shift;
	c->wide = pcpi_convert_wide();
	c->by_mark = 1; /* until it has an owner who can do without */
	c->claim = env->exchange || env->watched ? PCPI_CLAIM_SLOW : 0;
	c->peers = (struct pcpi_cache **)(void *)at;
	at += peers_bytes(env);
	c->outbox = env->nr_zones > 1 ? (struct pcpi_outbox *)(void *)at : NULL;
	slots = (uint32_t *)(void *)(at + outbox_bytes(env));
	/* The bound may have risen since pcpi_cache_bytes(). */
	for (c->high_cap = high_cap(zone);
	     (size_t)((char *)slots - (char *)memory) + slots_bytes(c->high_cap) > bytes;
	     c->high_cap /= 2)
		;
	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		uint32_t capacity = ring_capacity(c->high_cap, o);

		pcpi_ring_init(&c->list[o].ring, slots, capacity);
		slots += capacity;
	}
	pcpi_tune_start(c);
	return c;
}

/* ---- Moves out -------------------------------------------------------------- */

uint32_t pcpi_cache_shift(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			  uint32_t n)
{
	n = pcpi_min(n, pcpi_ring_len(&c->list[order].ring));
	pcpi_ring_shift(&c->list[order].ring, pfns, n);
	pcpi_counter_add(&c->out[order], n); /* C4 */
	return n;
}

static void batch_return(struct pcpi_cache *c, unsigned order,
			 const uint32_t *pfns, uint32_t n)
{
	bool in = pcpi_blocks_return(c->zone, order, pfns, n);
	unsigned o;

	pcpi_depot_guess_given(&c->guess[order], &c->zone->depots[order],
			       in ? n : 0);
	if (in)
		pcpi_counter_add(&c->depot_puts, 1);
	if (in && c->depot_puts % SURPLUS_EVERY != 0)
		return;
	/* All orders: whose turn it is may follow the same pattern, and what keeps
	 * a block out may be blocks of another order. */
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pcpi_surplus_return(c->zone, o);
}

/* Moves n blocks of the cold end to the depot, a private batch at a time; how
 * many. */
static uint32_t cold_return(struct pcpi_cache *c, unsigned order, uint32_t n)
{
	uint32_t pfns[PCPI_DEPOT_CHUNK], moved = 0, got;

	while (moved < n && pcpi_cache_enter(c)) {
		got = pcpi_cache_shift(c, order, pfns,
				       pcpi_min(n - moved, PCPI_DEPOT_CHUNK));
		pcpi_cache_leave(c);
		if (got == 0)
			break;
		batch_return(c, order, pfns, got);
		moved += got;
	}
	return moved;
}

static void drain_emit(struct pcpi_cache *c, unsigned order, uint64_t pages,
		       uint32_t count, uint32_t high)
{
	if (pcpi_trace_on(&c->env->trace))
		pcpi_trace_emit(&c->env->trace, PCPA_EVENT_PCPU_DRAIN,
				(int)c->zone->config.os_node, order, pages,
				count, high);
}

/* Carries out one decision; false when there is nothing to drain. */
static bool trim_once(struct pcpi_cache *c, unsigned order, uint64_t now)
{
	struct pcpi_trim_plan plan;
	unsigned o;

	if (!pcpi_cache_enter(c))
		return false;
	pcpi_tune_trim(c, order, now, &plan);
	pcpi_cache_leave(c);
	if (plan.pages == 0)
		return false;
	pcpi_counter_add(&c->drains[plan.reason], 1);
	drain_emit(c, order, plan.pages, plan.count, plan.high);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		cold_return(c, o, plan.take[o]);
	pcpi_tune_drained(c, order);
	return true;
}

/* Hands a pure freer's batch over; false: the policy must look. */
static bool freer_trim(struct pcpi_cache *c, unsigned order)
{
	uint32_t pfns[2 * PCPI_DEPOT_CHUNK], count, n;

	if (!pcpi_cache_enter(c))
		return true;
	count = pcpi_cache_count(c);
	n = pcpi_min(pcpi_tune_hand_over(c, order), 2 * PCPI_DEPOT_CHUNK);
	if (n > 0)
		pcpi_depot_expect_put(&c->zone->depots[order], &c->guess[order]);
	pcpi_cache_shift(c, order, pfns, n);
	pcpi_cache_leave(c);
	if (n == 0)
		return false;
	pcpi_counter_add(&c->drains[PCPI_DRAIN_FREER], 1);
	drain_emit(c, order, (uint64_t)n << order, count, c->high);
	batch_return(c, order, pfns, n);
	return true;
}

static void policy_trim(struct pcpi_cache *c, unsigned order)
{
	uint64_t now;

	if (freer_trim(c, order))
		return;
	if (pcpi_cache_has_ticks(c))
		pcpi_cache_decay(c, order);
	now = pcpi_sys->coarse_ns();
	/* A batch of frees may have brought more than one decision gives back. */
	while (trim_once(c, order, now) &&
	       pcpi_cache_count(c) >= pcpi_min(c->high, c->high_cap))
		;
}

void pcpi_cache_trim(struct pcpi_cache *c, unsigned order)
{
	policy_trim(c, order);
	pcpi_watch_zone(&c->env->watch, c->zone);
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
	(void)pcpi_allocs_add(&list->allocs, n);
	pcpi_cache_leave(c);
	return n;
}

/* As pcpi_cache_enter(), to put blocks of a zone in: false, without the mark,
 * also while the caches of the zone are disabled, C9. */
static bool enter_to_put(struct pcpi_cache *c, const struct pcpi_zone *z)
{
	if (!pcpi_cache_enter(c))
		return false;
	if (!pcpi_zone_is_disabled(z))
		return true;
	pcpi_cache_leave(c);
	return false;
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
	if (enter_to_put(c, c->zone)) {
		in = n <= pcpi_ring_room(ring);
		if (in)
			pcpi_counter_add(&c->in[order], n); /* C4 */
		pcpi_compiler_barrier(); /* pcpi_cache_list_frees() */
		if (in && hot)
			pcpi_ring_push(ring, pfns, n);
		else if (in)
			pcpi_ring_append_cold(ring, pfns, n);
		pcpi_cache_leave(c);
	}
	if (!in)
		pcpi_direct_give(c->zone, order, pfns, n);
	return in;
}

/* Blocks that went past the ring to the caller. */
static void allocs_count(struct pcpi_cache *c, unsigned order, uint32_t n)
{
	if (pcpi_cache_enter(c)) {
		pcpi_counter_add(&c->in[order], n); /* C4 */
		pcpi_compiler_barrier(); /* pcpi_cache_list_frees() */
		(void)pcpi_allocs_add(&c->list[order].allocs, n);
		pcpi_cache_leave(c);
	} else {
		/* relaxed: counter */
		pcpi_fetch_add_relaxed(&c->zone->direct_allocs, n);
	}
}

/* Blocks of a depot batch that the cache has room for. */
static uint32_t depot_blocks(const struct pcpi_pageset *ps, uint32_t count,
			     unsigned order)
{
	uint32_t room = pcpi_policy_room(ps, count);
	uint32_t blocks = pcpi_policy_depot_blocks(ps->depot_batch, order);

	return pcpi_min(pcpi_min(blocks, room >> order), PCPI_DEPOT_GET);
}

/* After a get of so many. */
static void guess_got(struct pcpi_cache *c, unsigned order,
		      const struct pcpi_pageset *ps, uint32_t got)
{
	pcpi_depot_guess_got(&c->guess[order], &c->zone->depots[order], got,
			     pcpi_policy_depot_blocks(ps->depot_batch, order));
}

/* The hottest n of a batch go to the caller, the others to the hot end.
 * *taken: all of them. */
static uint32_t refill_from_depot(struct pcpi_cache *c, unsigned order,
				  const struct pcpi_pageset *ps, uint32_t *pfns,
				  uint32_t n, uint32_t *taken)
{
	uint32_t batch[PCPI_DEPOT_GET], got;

	got = depot_blocks(ps, pcpi_cache_count(c), order);
	got = pcpi_depot_get(&c->zone->depots[order], batch, pcpi_max(got, n));
	guess_got(c, order, ps, got);
	if (got == 0)
		return 0;
	pcpi_counter_add(&c->depot_gets, 1);
	*taken = got;
	n = pcpi_min(n, got);
	memcpy(pfns, batch + got - n, n * sizeof(*pfns));
	ring_put(c, order, batch, got - n, true);
	return n;
}

static void refill_note(struct pcpi_cache *c, unsigned order, uint32_t taken,
			uint32_t count)
{
	pcpi_counter_add(&c->refills, 1);
	if (pcpi_trace_on(&c->env->trace))
		pcpi_trace_emit(&c->env->trace, PCPA_EVENT_PCPU_REFILL,
				(int)c->zone->config.os_node, order,
				(uint64_t)taken << order, count, c->high);
}

void pcpi_cache_expect_refill(const struct pcpi_cache *c, unsigned order)
{
	pcpi_depot_expect_get(&c->zone->depots[order], &c->guess[order]);
}

static void blocks_expect(const struct pcpi_cache *c, unsigned order,
			  const struct pcpi_pageset *ps)
{
	pcpi_depot_expect_blocks(&c->zone->depots[order],
				 pcpi_policy_depot_blocks(ps->depot_batch, order));
}

/* A try-lock may be taken with the mark (C2), so a copy and two marks are spared. */
uint32_t pcpi_cache_refill_at_once(struct pcpi_cache *c, unsigned order,
				   uint32_t *pfns, uint32_t n)
{
	struct pcpi_pcp_list *list = &c->list[order];
	struct pcpi_ring *ring = &list->ring;
	uint32_t *slots, count, want, got;
	struct pcpi_pageset ps;
	bool busy; /* or empty: refill_asked() waits, and looks further */

	if (!enter_to_put(c, c->zone))
		return 0;
	ps = pcpi_zone_pageset(c->zone);
	blocks_expect(c, order, &ps);
	count = pcpi_cache_count(c);
	want = pcpi_min(pcpi_max(depot_blocks(&ps, count, order), n),
			pcpi_ring_room(ring));
	slots = pcpi_ring_run(ring, ring->head, want, &want);
	got = pcpi_depot_try_get(&c->zone->depots[order], slots, want, &busy);
	n = pcpi_min(n, got);
	memcpy(pfns, slots + got - n, n * sizeof(*pfns));
	pcpi_counter_add(&c->in[order], got); /* C4 */
	pcpi_compiler_barrier(); /* pcpi_cache_list_frees() */
	pcpi_ring_commit(ring, ring->head + got - n, ring->tail);
	(void)pcpi_allocs_add(&list->allocs, n);
	pcpi_cache_leave(c);
	if (got == 0)
		return 0;
	guess_got(c, order, &ps, got);
	pcpi_counter_add(&c->depot_gets, 1);
	refill_note(c, order, got, count);
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
			(uint64_t)blocks << order, pcpi_cache_count(c), c->high);
	if (broken)
		pcpi_trace_emit(t, PCPA_EVENT_EXTFRAG, node, order,
				(uint64_t)blocks << order, pcpi_cache_count(c), c->high);
}

/* Ascending: the first n of the first chunk to the caller, then the ring.
 * *taken: all of them. */
static uint32_t refill_from_zone(struct pcpi_cache *c, unsigned order,
				 uint32_t blocks, uint32_t *pfns, uint32_t n,
				 uint32_t *taken)
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
		*taken += got;
	}
	return given;
}

/* By the policy: who both takes and gives, or found nothing in the depot. */
static uint32_t refill_asked(struct pcpi_cache *c, unsigned order,
			     const struct pcpi_pageset *ps, uint32_t *pfns,
			     uint32_t n, uint32_t *taken)
{
	uint32_t blocks, got;

	if (pcpi_cache_has_ticks(c))
		pcpi_cache_decay(c, order);
	blocks = pcpi_tune_refill(c, ps, order);
	got = refill_from_depot(c, order, ps, pfns, n, taken);
	if (got == 0)
		got = refill_from_zone(c, order, pcpi_max(blocks, n), pfns, n,
				       taken);
	if (got > 0)
		allocs_count(c, order, got);
	return got;
}

uint32_t pcpi_cache_refill(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			   uint32_t n)
{
	struct pcpi_pageset ps;
	uint32_t count, got = 0, taken = 0;

	n = pcpi_min(n, PCPI_CHUNK);
	if (pcpi_tune_is_taker(c, order))
		got = pcpi_cache_refill_at_once(c, order, pfns, n);
	if (got > 0)
		return got;
	ps = pcpi_zone_pageset(c->zone);
	blocks_expect(c, order, &ps);
	count = pcpi_cache_count(c);
	got = refill_asked(c, order, &ps, pfns, n, &taken);
	if (got > 0)
		refill_note(c, order, taken, count);
	return got;
}

/* ---- Free -------------------------------------------------------------------- */

void pcpi_cache_push(struct pcpi_cache *c, unsigned order, const uint32_t *pfns,
		     uint32_t n)
{
	struct pcpi_pcp_list *list = &c->list[order];
	bool in = false, full = false;

	if (enter_to_put(c, c->zone)) {
		in = n <= pcpi_ring_room(&list->ring);
		if (in) {
			pcpi_ring_push(&list->ring, pfns, n);
			full = pcpi_ring_len(&list->ring) >= list->ring.limit;
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

/* Blocks that an outbox collects: a depot batch, but no more than it has place for,
 * or what a node of small caches lets a cache hold of four orders. */
static uint32_t outbox_blocks(const struct pcpi_zone *home, unsigned order)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(home);
	uint32_t batch = pcpi_min(ps.depot_batch, PCPI_CHUNK);
	uint32_t blocks = pcpi_policy_depot_blocks(batch, order);
	uint32_t most = (ps.high_max / PCPI_PCP_ORDERS) >> order;

	return pcpi_min(blocks, pcpi_max(most, 1u));
}

/* Inside (C1): up to n blocks into the outbox; how many.  *out: what it held, where
 * that is a batch now. */
static uint32_t outbox_put(struct pcpi_outbox *box, unsigned order,
			   const uint32_t *pfns, uint32_t n, uint32_t full,
			   uint32_t *out, uint32_t *nr_out)
{
	uint32_t len = box->len[order];

	n = pcpi_min(n, len < full ? full - len : 1);
	memcpy(box->pfns[order] + len, pfns, n * sizeof(*pfns));
	len += n;
	pcpi_counter_add(&box->frees, n);
	*nr_out = len >= full ? len : 0;
	memcpy(out, box->pfns[order], *nr_out * sizeof(*out));
	/* relaxed: C5 */
	pcpi_store_relaxed(&box->len[order], *nr_out ? 0 : len);
	return n;
}

bool pcpi_cache_push_remote(struct pcpi_cache *c, struct pcpi_zone *home,
			    unsigned order, const uint32_t *pfns, uint32_t n)
{
	struct pcpi_outbox *box = &c->outbox[home->config.position];
	uint32_t out[PCPI_CHUNK], nr_out, full = outbox_blocks(home, order), done;
	bool went = false;

	for (done = 0; done < n;) {
		if (!enter_to_put(c, home)) {
			/* relaxed: counter */
			pcpi_fetch_add_relaxed(&home->direct_frees, n - done);
			pcpi_direct_give(home, order, pfns + done, n - done);
			return true;
		}
		done += outbox_put(box, order, pfns + done, n - done, full, out,
				   &nr_out);
		pcpi_cache_leave(c);
		if (nr_out > 0)
			pcpi_direct_give(home, order, out, nr_out);
		went |= nr_out > 0;
	}
	return went;
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

uint64_t pcpi_cache_outboxes_flush(struct pcpi_cache *c)
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

/* Everything to the depots; pages moved. */
static uint64_t all_return(struct pcpi_cache *c)
{
	uint64_t pages = pcpi_cache_outboxes_flush(c);
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pages += (uint64_t)cold_return(c, o, pcpi_cache_len(c, o)) << o;
	if (pages > 0)
		pcpi_counter_add(&c->drains[PCPI_DRAIN_FLUSH], 1);
	return pages;
}

void pcpi_cache_flush(struct pcpi_cache *c)
{
	uint32_t count = pcpi_cache_count(c);
	uint64_t pages = all_return(c);

	pcpi_tune_flushed(c);
	if (pcpi_cache_enter(c)) /* fronts rest as that has found: C7 */
		pcpi_cache_leave(c);
	if (pages > 0)
		drain_emit(c, 0, pages, count, c->high);
}

void pcpi_cache_abandon(struct pcpi_cache *c)
{
	pcpi_cache_leave(c);
	all_return(c);
}

static void outboxes_empty_claimed(struct pcpi_cache *c, uint64_t *moved)
{
	uint32_t pfns[PCPI_CHUNK], n;
	unsigned z, o;

	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		for (o = 0; o < PCPI_PCP_ORDERS; o++) {
			n = outbox_take(&c->outbox[z], o, pfns);
			pcpi_zone_give_bulk(&c->env->zones[z], o, pfns, n);
			moved[z] += (uint64_t)n << o;
		}
}

void pcpi_cache_empty_claimed(struct pcpi_cache *c, uint64_t *moved)
{
	uint32_t pfns[PCPI_CHUNK], n;
	uint64_t pages;
	unsigned o;

	pcpi_cache_tuck(c); /* C7 */
	pages = pcpi_cache_count(c);
	outboxes_empty_claimed(c, moved);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		while ((n = pcpi_cache_shift(c, o, pfns, PCPI_CHUNK)))
			pcpi_zone_give_bulk(c->zone, o, pfns, n);
	moved[c->zone->config.position] += pages;
	if (pages > 0)
		pcpi_counter_add(&c->drains[PCPI_DRAIN_SWEEP], 1);
	pcpi_cache_claim_end(c, PCPI_CLAIM_NONE);
}

void pcpi_cache_remote_pages(const struct pcpi_cache *c, uint64_t *remote)
{
	unsigned z, o;

	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		for (o = 0; o < PCPI_PCP_ORDERS; o++)
			/* relaxed: a statistic. */
			remote[z] += (uint64_t)pcpi_load_relaxed(
					     &c->outbox[z].len[o])
				     << o;
}

uint64_t pcpi_cache_pages(const struct pcpi_cache *c)
{
	uint64_t remote[c->env->nr_zones], pages = pcpi_cache_count(c);
	unsigned z;

	for (z = 0; z < c->env->nr_zones; z++)
		remote[z] = 0;
	pcpi_cache_remote_pages(c, remote);
	for (z = 0; z < c->env->nr_zones; z++)
		pages += remote[z];
	return pages;
}

uint64_t pcpi_cache_frees(struct pcpi_cache *c)
{
	/* relaxed: a statistic; the compare keeps it from falling. */
	uint64_t frees = 0, seen = pcpi_load_relaxed(&c->frees_seen);
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		frees += pcpi_cache_list_frees(c, o);
	do {
		/* The parts were read one after the other. */
		if ((int64_t)(frees - seen) <= 0)
			return seen;
		/* acquire/release: pairs with itself. */
	} while (!pcpi_cas_acq_rel(&c->frees_seen, &seen, frees));
	return frees;
}

bool pcpi_cache_check(const struct pcpi_cache *c)
{
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		if (pcpi_cache_len(c, o) > c->list[o].ring.mask + 1) /* R1 */
			return false;
		if ((int64_t)pcpi_cache_list_frees(c, o) < 0) /* C4 */
			return false;
	}
	return true;
}
