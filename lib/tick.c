/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tick.c - what is done once a second.  Layer 5, part of heap.h.
 *
 * Owns: when a tick is due, and the drainer's side of it (design.md D5, D9).
 *
 *   who     a call that the cache couldn't serve, if nobody sweeps just then;
 *           pcpa_heap_tick(); the background thread (background.c)
 *   lock DRAIN
 *   tell    caches' owners: ticks + 1, which they look at by themselves
 *   plan    for each cache what it gives back if it was idle for a whole tick,
 *           and claim those that give something        threads lock
 *   membarrier                                          none without a claim
 *   give    of the claimed caches whose owners are out; who comes back just now
 *           is left alone until the next tick
 *   end     every claim
 *   depots  what nobody needed for a second goes to the zone
 *   cpus    where some went offline or came, bounds follow (cpus.c)
 *   pools   of packets, which wait for theirs after their end, tell it: no lock
 *
 * TI1  At most one tick a second, however many call.
 * TI2  A cache in use is not claimed but for an outbox that isn't, nor one that
 *     has nothing to give.
 * TI3  A claim ends under the threads lock: a cache whose owner has ended
 *     meanwhile is emptied, for nobody else would (sweep.c, SW3); one whose owner
 *     owed a flush, of which the tick has not done all, owes it again.  PENDING
 *     comes with DRAIN only, so that what the plan saw is no less.
 * TI4  Of a heap of several nodes, each thread sees at its first call after a tick
 *     on which it is.
 *
 * With PCPA_HEAP_NO_IPI a cache with an owner is not claimed: where its pages are
 * due it is asked to flush, and its high sinks when it looks.
 *
 * Cost: early, a clock of some 8 ns; else a small file (cpus.c), some 40 loads a
 * cache, and a membarrier and a zone lock a batch where something is to give.
 * Failure: a tick that can't run is left out.
 * Proved by tests/unit/test_tick.c, tests/conc/tick.c.
 */
#include "annotate.h"
#include "heap.h"
#include "list.h"
#include "page_pool_table.h"
#include "rcu.h"

#define TICK_NS UINT64_C(1000000000)

/* The coarse clock goes in steps of up to 10 ms: a caller's second may seem
 * shorter by that. */
#define SLACK_NS (TICK_NS / 64)

/* The background thread sleeps at least so long, and that much longer than to the
 * next tick. */
#define LATE_NS (TICK_NS / 64)

static bool is_due(const struct pcpa_heap *heap, uint64_t now_ns)
{
	/* relaxed: looked at again with the lock. */
	return now_ns + SLACK_NS >= pcpi_load_relaxed(&heap->next_tick_ns);
}

void pcpi_heap_tick_begin(struct pcpa_heap *heap)
{
	/* relaxed: the heap is nobody else's yet. */
	pcpi_store_relaxed(&heap->next_tick_ns, pcpi_sys->coarse_ns() + TICK_NS);
}

/* ---- Plan --------------------------------------------------------------------- */

static bool is_home(const struct pcpi_cache *c)
{
	/* relaxed: a tick's difference. */
	const struct pcpi_cache *home = pcpi_load_relaxed(&c->root->home);

	return c == (home ? home : c->root);
}

static enum pcpi_idle_place place_of(const struct pcpa_heap *heap,
				     const struct pcpi_cache *c)
{
	if (!is_home(c))
		return PCPI_IDLE_AWAY;
	return c->root->idle.away == heap->env.ticks ? PCPI_IDLE_WAIT
						     : PCPI_IDLE_HOME;
}

/* Sooner than so many hits as pcp_hot.h says: TI4. */
static void home_ask(const struct pcpa_heap *heap, struct pcpi_cache *c)
{
	/* acquire: pairs with thread.c's cache_offer_locked(). */
	if (heap->nr_zones > 1 && is_home(c) && pcpi_load_acquire(&c->owner))
		pcpi_cache_ask_where(c);
}

static bool cache_claim(struct pcpa_heap *heap, struct pcpi_cache *c)
{
	if (!pcpi_cache_idle_plan(c, place_of(heap, c)))
		return false;
	/* acquire: pairs with thread.c's cache_offer_locked(). */
	if ((heap->options_flags & PCPA_HEAP_NO_IPI) &&
	    pcpi_load_acquire(&c->owner)) {
		if (pcpi_cache_idle_expired(c))
			pcpi_cache_ask(c);
		return false;
	}
	return pcpi_cache_claim(c);
}

static unsigned idle_claim(struct pcpa_heap *heap)
{
	struct pcpi_cache *c;
	unsigned n = 0;

	pcpi_lock_take(&heap->threads_lock);
	pcpi_list_each(c, &heap->caches, registry)
		if (pcpi_cache_has_away(c, is_home(c)))
			c->root->idle.away = heap->env.ticks;
	pcpi_list_each(c, &heap->caches, registry) {
		c->claimed = cache_claim(heap, c); /* TI2 */
		n += c->claimed;
		home_ask(heap, c);
	}
	pcpi_lock_drop(&heap->threads_lock);
	return n;
}

/* ---- Give ----------------------------------------------------------------------- */

static void idle_give(struct pcpa_heap *heap, uint64_t *moved)
{
	struct pcpi_cache *c;

	pcpi_list_each(c, &heap->caches, registry) {
		if (!c->claimed || !pcpi_cache_claimed_quiet(c))
			continue;
		if (c->idle.flush) {
			pcpi_cache_empty_claimed(c, moved);
			c->claimed = false;
		} else {
			pcpi_cache_idle_give(c, moved);
		}
	}
}

static void claims_end(struct pcpa_heap *heap, uint64_t *moved)
{
	struct pcpi_cache *c;

	pcpi_lock_take(&heap->threads_lock);
	pcpi_list_each(c, &heap->caches, registry) {
		if (!c->claimed)
			continue;
		c->claimed = false;
		/* acquire: pairs with thread.c's cache_offer_locked(). */
		if (!pcpi_load_acquire(&c->owner))
			pcpi_cache_empty_claimed(c, moved); /* TI3 */
		else
			pcpi_cache_claim_end(c, c->idle.owes
							? PCPI_CLAIM_PENDING
							: PCPI_CLAIM_NONE);
	}
	pcpi_lock_drop(&heap->threads_lock);
}

static void depots_trim(struct pcpa_heap *heap)
{
	unsigned z, o;

	for (z = 0; z < heap->nr_zones; z++)
		for (o = 0; o < PCPI_PCP_ORDERS; o++)
			pcpi_surplus_return(&heap->env.zones[z], o);
}

static void tick(struct pcpa_heap *heap, uint64_t *moved)
{
	struct pcpi_section section;

	/* relaxed: owners may see it a call later. */
	pcpi_counter_add(&heap->env.ticks, 1);
	section = pcpi_rcu_read_lock();
	pcpi_annotate_claim_begin();
	if (idle_claim(heap) > 0) {
		if (pcpi_heap_owners_show(heap))
			idle_give(heap, moved);
		claims_end(heap, moved);
	}
	pcpi_annotate_claim_end();
	pcpi_rcu_read_unlock(section);
	pcpi_deferred_look(&heap->env);
	depots_trim(heap);
}

/* With the drain lock, which it drops. */
static void tick_locked(struct pcpa_heap *heap, uint64_t now_ns)
{
	uint64_t moved[heap->nr_zones];
	bool due = is_due(heap, now_ns), fell[heap->nr_zones];
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		moved[z] = 0;
	if (due) { /* TI1 */
		/* relaxed: a look without the lock may come too early. */
		pcpi_store_relaxed(&heap->next_tick_ns, now_ns + TICK_NS);
		tick(heap, moved);
		pcpi_heap_cpus_look(heap, fell);
	}
	pcpi_lock_drop(&heap->drain_lock);
	pcpi_sweep_tell(heap, moved);
	if (!due)
		return;
	pcpi_pools_tick(&heap->pools);
	for (z = 0; z < heap->nr_zones; z++)
		if (fell[z])
			pcpi_heap_bounds_enforce(heap, &heap->env.zones[z]);
}

void pcpi_heap_tick(struct pcpa_heap *heap)
{
	uint64_t now_ns = pcpi_sys->coarse_ns();

	if (!is_due(heap, now_ns))
		return;
	pcpi_lock_take(&heap->drain_lock);
	tick_locked(heap, now_ns);
}

void pcpi_heap_tick_poll(struct pcpa_heap *heap)
{
	uint64_t now_ns = pcpi_sys->coarse_ns();

	if (pcpi_unlikely(is_due(heap, now_ns)) &&
	    pcpi_lock_try(&heap->drain_lock))
		tick_locked(heap, now_ns);
}

uint64_t pcpi_heap_tick_in_background(void *arg)
{
	struct pcpa_heap *heap = arg;
	uint64_t now_ns = pcpi_sys->coarse_ns(), next;

	pcpi_heap_tick(heap);
	next = pcpi_load_relaxed(&heap->next_tick_ns); /* relaxed: a hint */
	return LATE_NS + (next > now_ns ? next - now_ns : 0);
}
