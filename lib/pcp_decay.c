/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp_decay.c - what time does to a cache; see pcp.h.
 *
 * Owns: the moves that a tick (tick.c) causes.  How many pages is policy.h's.
 *
 *   in use     the owner finds at a look at the policy that ticks have come: for
 *              each its high sinks by an eighth
 *   idle       who ticks plays the owner's part, on a copy of high: first what
 *              is above high goes, tick by tick.  Of outboxes and of a cache of
 *              another node than the owner's, a batch goes at the third tick
 *              and then at every third; of the owner's own node's, when decay and
 *              the former have come to their end, batch << 5 pages likewise: so
 *              it ends at nothing, and the owner refills when it comes back
 *
 *   tick            1     2     3     4     5     6     7 ...
 *   outbox, 200           used        -63               -63
 *   home, 20000     used -2016 -2016 -1996 ...  down to high_min, then to 0
 *
 * DE1  Who ticks touches of a claimed cache what a sweep touches: the lists,
 *     outboxes and counts, and none of the policy's state, which the owner reads
 *     without the mark.
 * DE2  Idle is a cache without an alloc or free of any list since the last
 *     tick.  An outbox has a clock of its own.
 * DE3  What goes, goes to the zone: depots are for who is in a hurry.
 *
 * A limit of a list (pcp_tune.h) stays what it was: an owner that comes back and
 * only frees looks at the policy at a count of before, which is below high_max,
 * and drains then to the bound that has sunk.
 *
 * Cost: owner: nothing but a compare where no tick came.  Who ticks: some 40
 * loads a cache.  Failure: none.
 * Proved by tests/unit/test_pcp_decay.c, test_tick.c, tests/conc/tick.c.
 */
#include "pcp.h"

#include "pcp_tune.h"
#include "sys/sys.h"

/* Of the ticks that an owner has missed, so many at once, so that its call takes
 * no longer than four drains; the others at its next looks. */
#define STEPS 4u

/* ---- The owner ------------------------------------------------------------------ */

static void plan_give(struct pcpi_cache *c, const struct pcpi_trim_plan *plan)
{
	uint32_t pfns[PCPI_CHUNK], left, n;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		for (left = plan->take[o]; left > 0; left -= n) {
			if (!pcpi_cache_enter(c))
				return;
			n = pcpi_cache_shift(c, o, pfns,
					     pcpi_min(left, PCPI_CHUNK));
			pcpi_cache_leave(c);
			if (n == 0)
				break;
			pcpi_zone_give_bulk(c->zone, o, pfns, n); /* DE3 */
		}
}

static void plan_emit(struct pcpi_cache *c, const struct pcpi_trim_plan *plan)
{
	if (pcpi_trace_on(&c->env->trace))
		pcpi_trace_emit(&c->env->trace, PCPA_EVENT_PCPU_DRAIN,
				(int)c->zone->config.os_node, 0, plan->pages,
				plan->count, plan->high);
}

/* One tick of those that the owner has to catch up with; false: no more. */
static bool step(struct pcpi_cache *c, uint64_t now_ns)
{
	struct pcpi_trim_plan plan;
	bool more;

	if (!pcpi_cache_enter(c))
		return false;
	more = pcpi_tune_decay(c, now_ns, &plan);
	if (plan.pages > 0)
		pcpi_counter_add(&c->drains[PCPI_DRAIN_DECAY], 1);
	pcpi_cache_leave(c);
	/* relaxed: a tick more or less. */
	c->ticks_seen = more ? c->ticks_seen + 1
			     : pcpi_load_relaxed(&c->env->ticks);
	if (plan.pages > 0) {
		plan_emit(c, &plan);
		plan_give(c, &plan);
	}
	return pcpi_cache_has_ticks(c);
}

void pcpi_cache_decay(struct pcpi_cache *c, unsigned order)
{
	uint64_t now_ns = pcpi_sys->coarse_ns();
	unsigned i = 0;

	while (i++ < STEPS && step(c, now_ns))
		;
	pcpi_tune_drained(c, order);
}

/* ---- Who ticks: the plan ---------------------------------------------------------- */

static uint64_t ops_of(const struct pcpi_cache *c)
{
	uint64_t ops = pcpi_cache_allocs(c);
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		ops += pcpi_cache_list_frees(c, o);
	return ops;
}

static void lists_plan(struct pcpi_cache *c, bool used, enum pcpi_idle_place at)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	uint32_t most = at == PCPI_IDLE_AWAY ? ps.batch : pcpi_policy_scaled(&ps);
	struct pcpi_cache_idle *i = &c->idle;
	struct pcpi_decay todo = { 0, true };
	struct pcpi_pcp_state s = {
		.count = pcpi_cache_count(c),
		.high = i->high,
	};

	if (used)
		s.high = pcpi_load_relaxed(&c->high); /* relaxed: a moment ago */
	else
		todo = pcpi_policy_decay(&s, &ps);
	i->owes = pcpi_cache_is_pending(c);
	i->flush = i->owes && !used;
	i->high = s.high;
	i->decayed = todo.pages;
	used |= at == PCPI_IDLE_WAIT || (at == PCPI_IDLE_HOME && todo.more);
	i->expired = pcpi_policy_idle(&i->idle, used, s.count, most);
}

static uint32_t box_pages(const struct pcpi_outbox *box)
{
	uint32_t pages = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		/* relaxed: true a moment ago. */
		pages += pcpi_load_relaxed(&box->len[o]) << o;
	return pages;
}

static void box_plan(struct pcpi_outbox *box, const struct pcpi_zone *z)
{
	uint64_t frees = pcpi_load_relaxed(&box->frees); /* relaxed: as above */

	box->give = pcpi_policy_idle(&box->idle, frees != box->frees_noted,
				     box_pages(box), pcpi_zone_pageset(z).batch);
	box->frees_noted = frees;
}

bool pcpi_cache_idle_expired(const struct pcpi_cache *c)
{
	bool any = c->idle.expired > 0 || c->idle.flush;
	unsigned z;

	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		any |= c->outbox[z].give > 0;
	return any;
}

bool pcpi_cache_has_away(const struct pcpi_cache *c, bool home)
{
	unsigned z;

	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		if (box_pages(&c->outbox[z]) > 0)
			return true;
	return !home && pcpi_cache_count(c) > 0;
}

bool pcpi_cache_idle_plan(struct pcpi_cache *c, enum pcpi_idle_place at)
{
	uint64_t ops = ops_of(c);
	unsigned z;

	lists_plan(c, ops != c->idle.ops, at);
	c->idle.ops = ops;
	for (z = 0; c->outbox && z < c->env->nr_zones; z++)
		box_plan(&c->outbox[z], &c->env->zones[z]);
	return c->idle.decayed > 0 || pcpi_cache_idle_expired(c);
}

/* ---- Who ticks: carrying it out ----------------------------------------------------- */

static uint64_t lists_give(struct pcpi_cache *c)
{
	static const uint32_t none[PCPI_PCP_ORDERS];
	uint32_t lens[PCPI_PCP_ORDERS], take[PCPI_PCP_ORDERS] = { 0 };
	uint32_t pages, pfns[PCPI_CHUNK], n;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		lens[o] = pcpi_cache_len(c, o);
	pages = pcpi_min(c->idle.decayed + c->idle.expired, pcpi_cache_count(c));
	if (pages > 0)
		pages = pcpi_policy_split(&pcpi_split_cache, lens, none, pages,
					  &c->idle.cursor, take);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		for (; take[o] > 0; take[o] -= n) {
			n = pcpi_cache_shift(c, o, pfns,
					     pcpi_min(take[o], PCPI_CHUNK));
			if (n == 0)
				break;
			pcpi_zone_give_bulk(c->zone, o, pfns, n); /* DE3 */
		}
	return pages;
}

/* The last of each order, as no order among them is known. */
static uint64_t box_give(struct pcpi_outbox *box, struct pcpi_zone *z)
{
	uint32_t left = box->give, n, from;
	uint64_t pages = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS && left > 0; o++) {
		n = pcpi_min(box->len[o], (left + (1u << o) - 1) >> o);
		if (n == 0)
			continue;
		from = box->len[o] - n;
		pcpi_store_relaxed(&box->len[o], from); /* relaxed: C1, C5 */
		pcpi_zone_give_bulk(z, o, box->pfns[o] + from, n);
		left -= pcpi_min(left, n << o);
		pages += (uint64_t)n << o;
	}
	return pages;
}

void pcpi_cache_idle_give(struct pcpi_cache *c, uint64_t *moved)
{
	uint64_t pages;
	unsigned z;

	pcpi_cache_tuck(c); /* C7 */
	pages = lists_give(c);
	moved[c->zone->config.position] += pages;
	for (z = 0; c->outbox && z < c->env->nr_zones; z++) {
		uint64_t boxed = box_give(&c->outbox[z], &c->env->zones[z]);

		moved[z] += boxed;
		pages += boxed;
	}
	if (pages > 0)
		pcpi_counter_add(&c->drains[PCPI_DRAIN_DECAY], 1);
}
