/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy_pcp.c - how many pages a cache takes and gives, from its state.
 *
 * Owns the two policies.  Owns neither the pages nor their orders, neither
 * sizes (policy_size.c) nor the choice of lists (policy_share.c).
 *
 *   count ^
 *    high |......../|......../|....../|      each / frees, each | a drain
 *         |       / |       / |     / |      LEGACY: batch << free_factor
 *         |      /  |     /   |   /   |      MODERN: free_count
 *         |     /   |   /     | /     |      at least batch, and at least
 *   batch |.../.....|./.......|/......|      batch stay behind
 *         +-------------------------------> frees
 *
 *            LEGACY                        MODERN
 *   high     fixed                         high_min..high_max: grows with
 *                                          refills and drains, sinks by tick,
 *                                          below watermark high, in reclaim
 *   a free   -                             alloc_factor /= 2,
 *                                          free_count += pages
 *   an alloc free_factor /= 2              free_count /= 2
 *   a drain  free_factor += 1              -
 *   a refill -                             alloc_factor += 1
 *
 * The factors are noted lazily: the hot path counts its frees and allocations
 * and the slow path applies them in one step.  n steps at once and one step n
 * times have the same outcome.
 *
 * Invariants (X: policy, decisions):
 * X1 a drain is at most count; once the bound is reached it is at least one
 *    page (the kernel's formula gives 0 between batch and 2 * batch, and a
 *    cache would then grow without end).
 * X2 after every call that moves it, high_min <= high <= high_max; but a tick
 *    keeps high above high_max while more than batch << PCPI_SCALE_MAX pages
 *    would have to go at once.
 * X3 free_factor, alloc_factor <= PCPI_SCALE_MAX, so nothing moves more than
 *    batch << PCPI_SCALE_MAX at once and no shift overflows.
 * X4 free_count < (batch << PCPI_SCALE_MAX) + one block.
 * X5 high below batch means disabled: refills of one block, drains of one.
 * X6 count >= pcpi_policy_drain_bound() exactly when pcpi_policy_drain() of the
 *    same state drains a cache that isn't empty.
 *
 * Concurrency: pure; the owner of a state calls.  Cost: no loop, no division.
 * Failure: none.  Proved by tests/unit/test_policy_legacy.c,
 * test_policy_modern.c and test_policy_decay.c.
 */
#include "policy.h"

/* Four times a block of each cached order. */
#define TIGHT_PAGES 60u

uint32_t pcpi_policy_scaled(const struct pcpi_pageset *ps)
{
	return ps->batch << PCPI_SCALE_MAX;
}

/* a - b, or 0 where that is negative. */
static uint32_t sub_floor(uint32_t a, uint32_t b)
{
	return a > b ? a - b : 0;
}

static uint32_t halve(uint32_t x, uint64_t times)
{
	return times < 32 ? x >> times : 0;
}

/* An update of the zone leaves high alone; whoever needs it next clamps. X2 */
static uint32_t clamp_high(const struct pcpi_pcp_state *state,
			   const struct pcpi_pageset *ps)
{
	return pcpi_clamp(state->high, ps->high_min, ps->high_max);
}

void pcpi_policy_note_frees(struct pcpi_pcp_state *state,
			    const struct pcpi_pageset *ps, uint32_t blocks,
			    unsigned order)
{
	uint32_t room = sub_floor(pcpi_policy_scaled(ps), state->free_count);
	uint32_t room_blocks =
		(room >> order) + ((room & ((1u << order) - 1)) != 0);

	if (blocks == 0)
		return;
	state->alloc_factor = halve(state->alloc_factor, blocks);
	/* The last one may pass the limit by a part of a block.  X4 */
	state->free_count += pcpi_min(blocks, room_blocks) << order;
	state->prev_free_high_order = order >= 1 && order < PCPI_PCP_ORDERS;
}

void pcpi_policy_note_allocs(struct pcpi_pcp_state *state, uint32_t blocks)
{
	state->free_factor = halve(state->free_factor, blocks);
	state->free_count = halve(state->free_count, blocks);
}

void pcpi_policy_catch_up(struct pcpi_pcp_state *state,
			  const struct pcpi_pageset *ps, uint64_t allocs,
			  uint64_t frees, uint64_t freed_pages)
{
	uint64_t count = halve(state->free_count, allocs);

	state->free_factor = halve(state->free_factor, allocs);
	state->alloc_factor = halve(state->alloc_factor, frees);
	count += freed_pages / (allocs + 1);
	state->free_count =
		(uint32_t)pcpi_min(count, (uint64_t)pcpi_policy_scaled(ps)); /* X4 */
}

uint32_t pcpi_policy_hand_over(uint32_t count, uint32_t depot_batch)
{
	if (depot_batch == 0)
		return 0;
	return pcpi_min(count / depot_batch, 2u) * depot_batch;
}

uint32_t pcpi_policy_room(const struct pcpi_pageset *ps, uint32_t count)
{
	if (ps->high_max == 0)
		return 0;
	return pcpi_max(sub_floor(ps->high_max, count), ps->batch);
}

bool pcpi_policy_is_tight(uint32_t high_max)
{
	return high_max < TIGHT_PAGES;
}

bool pcpi_policy_free_high(const struct pcpi_pcp_state *state,
			   const struct pcpi_pageset *ps, unsigned order)
{
	if (ps->legacy || order < 1 || order >= PCPI_PCP_ORDERS)
		return false;
	if (!state->prev_free_high_order)
		return false;
	if (state->free_count < ps->batch + ps->high_min / 2)
		return false;
	return !state->free_high_batch || state->count >= ps->batch;
}

/* high after a step down, in reclaim or below the high watermark. */
static uint32_t sink_high(const struct pcpi_pcp_state *state,
			  const struct pcpi_pageset *ps, uint32_t high)
{
	uint32_t step = pcpi_max(state->free_count, ps->batch);

	return pcpi_max(sub_floor(high, step), ps->high_min);
}

uint32_t pcpi_policy_drain_bound(const struct pcpi_pcp_state *state,
				 const struct pcpi_pageset *ps,
				 unsigned zone_flags)
{
	uint32_t high = clamp_high(state, ps);

	if (ps->legacy || high == 0)
		return high;
	if (zone_flags & PCPI_ZONE_RECLAIM_ACTIVE)
		return pcpi_min(4 * ps->batch, sink_high(state, ps, high));
	if (zone_flags & PCPI_ZONE_BELOW_HIGH)
		return ps->high_min;
	return high;
}

/* What a drain is measured against, and high for the next one. */
static uint32_t move_high(struct pcpi_pcp_state *state,
			  const struct pcpi_pageset *ps, unsigned zone_flags,
			  bool free_high, bool pure_freer)
{
	uint32_t high = state->high = clamp_high(state, ps);
	uint32_t need = state->free_count + ps->batch;

	if (high == 0)
		return 0;
	if (free_high) {
		state->high = pcpi_max(sub_floor(high, pcpi_policy_scaled(ps)),
				       ps->high_min);
		return 0;
	}
	if (zone_flags & PCPI_ZONE_RECLAIM_ACTIVE) {
		state->high = sink_high(state, ps, high);
		return pcpi_min(4 * ps->batch, state->high);
	}
	if (ps->high_min == ps->high_max)
		return high;
	if (zone_flags & PCPI_ZONE_BELOW_HIGH) {
		state->high = sink_high(state, ps, high);
		return pcpi_max(state->count, ps->high_min);
	}
	/* Room for as many frees in a row as there were; from the next drain
	 * on. */
	if (state->count >= high && high < need && !pure_freer)
		state->high = pcpi_min(need, ps->high_max);
	return high;
}

/* Between one batch and all but one batch of the bound.  X1, X5 */
static uint32_t bound_drain(const struct pcpi_pageset *ps, uint32_t want,
			    uint32_t bound)
{
	if (bound < ps->batch)
		return 1;
	return pcpi_clamp(want, ps->batch, pcpi_max(bound - ps->batch, 1u));
}

static uint32_t drain_legacy(struct pcpi_pcp_state *state,
			     const struct pcpi_pageset *ps)
{
	uint32_t high = state->high = clamp_high(state, ps);
	uint32_t want = ps->batch << state->free_factor;

	if (state->count < high)
		return 0;
	/* The exponent rests once the bound is what limits the drain; X3. */
	if (high >= ps->batch && want < high - ps->batch &&
	    state->free_factor < PCPI_SCALE_MAX)
		state->free_factor++;
	return bound_drain(ps, want, high);
}

static uint32_t drain_modern(struct pcpi_pcp_state *state,
			     const struct pcpi_pageset *ps, unsigned zone_flags,
			     bool free_high, bool pure_freer)
{
	uint32_t bound = move_high(state, ps, zone_flags, free_high, pure_freer);

	if (state->count < bound)
		return 0;
	if (free_high)
		return pcpi_policy_scaled(ps);
	return bound_drain(ps, state->free_count, bound);
}

uint32_t pcpi_policy_drain(struct pcpi_pcp_state *state,
			   const struct pcpi_pageset *ps, unsigned zone_flags,
			   bool free_high, bool pure_freer)
{
	uint32_t pages;

	if (ps->legacy)
		pages = drain_legacy(state, ps);
	else
		pages = drain_modern(state, ps, zone_flags, free_high,
				     pure_freer);
	/* More than there is would have the walk over the lists never end. */
	return pcpi_min(pages, state->count);
}

/* Pages of an order-0 refill of up to want pages, so that a batch of frees
 * still fits below high; may raise the exponent of the next. */
static uint32_t refill_single(struct pcpi_pcp_state *state,
			      const struct pcpi_pageset *ps, uint32_t want)
{
	uint32_t room =
		sub_floor(sub_floor(state->high, state->count), ps->batch);
	uint32_t most = pcpi_max(room, ps->batch);

	if (want <= most && state->alloc_factor < PCPI_SCALE_MAX)
		state->alloc_factor++; /* X3 */
	return pcpi_min(want, most);
}

static uint32_t refill_modern(struct pcpi_pcp_state *state,
			      const struct pcpi_pageset *ps,
			      unsigned zone_flags, unsigned order)
{
	uint32_t want = ps->batch;

	if (order == 0)
		want <<= state->alloc_factor;
	/* A larger bound would have saved this refill. */
	if (ps->high_min != ps->high_max && !(zone_flags & PCPI_ZONE_BELOW_HIGH))
		state->high = pcpi_min(state->high + want, ps->high_max);
	return order == 0 ? refill_single(state, ps, want) : want;
}

uint32_t pcpi_policy_refill(struct pcpi_pcp_state *state,
			    const struct pcpi_pageset *ps, unsigned zone_flags,
			    unsigned order)
{
	uint32_t pages = ps->batch;

	state->high = clamp_high(state, ps);
	if (state->high < ps->batch)
		return 1; /* X5 */
	if (!ps->legacy)
		pages = refill_modern(state, ps, zone_flags, order);
	/* A batch of 1 means that the zone has nothing to spare. */
	return pages > 1 ? pcpi_max(pages >> order, 2u) : 1;
}

/* Below 64 pages an eighth is rounded up: rounded down it is late (F6), and of 7
 * pages it is nothing, so that high would rest there for ever. */
static uint32_t decay_high(const struct pcpi_pcp_state *state,
			   const struct pcpi_pageset *ps)
{
	uint32_t eighth = (state->high + (state->high < 64 ? 7 : 0)) / 8;
	uint32_t high;

	if (state->high <= ps->high_min)
		return ps->high_min;
	high = pcpi_min(state->high - eighth, ps->high_max);
	/* The most that one tick may drain keeps high up. */
	high = pcpi_max(high, sub_floor(state->count, pcpi_policy_scaled(ps)));
	return pcpi_max(high, ps->high_min);
}

struct pcpi_decay pcpi_policy_decay(struct pcpi_pcp_state *state,
				    const struct pcpi_pageset *ps)
{
	struct pcpi_decay todo;

	state->high = decay_high(state, ps);
	todo.pages = sub_floor(state->count, state->high);
	todo.more = state->high > ps->high_min || todo.pages != 0;
	return todo;
}

uint32_t pcpi_policy_idle(struct pcpi_idle *idle, bool used, uint32_t count,
			  uint32_t most)
{
	if (used || idle->gave)
		idle->expire = PCPI_IDLE_TICKS;
	idle->gave = false;
	if (idle->expire == 0 || count == 0 || --idle->expire > 0)
		return 0;
	idle->gave = true;
	return pcpi_min(count, most);
}
