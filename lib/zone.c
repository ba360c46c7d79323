/* SPDX-License-Identifier: BSD-2-Clause */
/* zone.c - see zone.h. */
#include "zone.h"

#include <errno.h>

#include "annotate.h"
#include "bits.h"
#include "list.h"
#include "page.h"
#include "sys/sys.h"

#define HOLD_PAGES_MIN 64u

/* Z7.  Mapping 64 MiB for a device takes about as long. */
#define ADD_WAIT_NS UINT64_C(10000000)

static void zone_lock(struct pcpi_zone *z)
{
	bool waited = pcpi_lock_take(&z->lock);

	pcpi_counter_add(&z->locks, 1);
	if (waited)
		pcpi_counter_add(&z->contended, 1);
}

static void zone_unlock(struct pcpi_zone *z)
{
	/* relaxed: for readers outside the lock, who may see it late. */
	pcpi_store_relaxed(&z->free_pages, pcpi_buddy_free_pages(&z->buddy));
	pcpi_lock_drop(&z->lock);
}

/* Blocks of an order that one hold of the lock may move: Z3. */
static uint32_t hold_blocks(const struct pcpi_zone *z, unsigned order)
{
	/* relaxed: a bound, not a balance. */
	uint32_t pages = pcpi_load_relaxed(&z->pageset.batch);

	return pcpi_max(pcpi_max(pages, HOLD_PAGES_MIN) >> order, 1u);
}

/* Below the high watermark caches stop growing and give back more.  Blocks in
 * the depot are anyone's and count as free. */
static void flags_update_locked(struct pcpi_zone *z)
{
	uint64_t available = pcpi_buddy_free_pages(&z->buddy) +
			     pcpi_zone_depot_pages(z);
	uint32_t flags = z->flags & ~(uint32_t)PCPI_ZONE_BELOW_HIGH;

	if (available < z->marks.high)
		flags |= PCPI_ZONE_BELOW_HIGH;
	if (flags != z->flags)
		/* relaxed: a hint for the caches' policy. */
		pcpi_store_relaxed(&z->flags, flags);
}

/* relaxed (both): the numbers are hints for policy; a cache that mixes old and
 * new ones corrects itself at its next slow path. */
static void pageset_publish(struct pcpi_zone *z, const struct pcpi_pageset *ps)
{
	pcpi_store_relaxed(&z->pageset.high_min, ps->high_min);
	pcpi_store_relaxed(&z->pageset.high_max, ps->high_max);
	pcpi_store_relaxed(&z->pageset.batch, ps->batch);
	pcpi_store_relaxed(&z->pageset.depot_batch, ps->depot_batch);
}

static struct pcpi_pageset pageset_for(const struct pcpi_zone *z,
				       uint64_t managed, uint32_t caches)
{
	size_t page_bytes = (size_t)1 << z->space->page_shift;
	struct pcpi_watermarks marks =
		pcpi_policy_watermarks(managed, page_bytes, 0, PCPI_WATERMARK_SCALE);
	struct pcpi_pageset_inputs in = {
		.managed_pages = managed,
		.page_bytes = page_bytes,
		.low_pages = marks.low,
		/* relaxed: under the lock; other readers can do with any. */
		.node_cpus = pcpi_load_relaxed(&z->node_cpus),
		/* relaxed: as above. */
		.all_cpus = pcpi_load_relaxed(&z->all_cpus),
		/* Z4: doubling steps, so that bounds change rarely. */
		.threads = caches ? (uint32_t)pcpi_pow2_ceil(caches) : 1,
		.fraction = z->config.high_fraction,
		.batch_pages = z->config.batch_pages,
		.high_pages = z->config.high_pages,
		.legacy = z->config.legacy,
		.ring_capacity_pages = PCPI_CACHE_PAGES_MAX,
	};

	return pcpi_policy_pageset(&in);
}

static void marks_publish(struct pcpi_zone *z, const struct pcpi_watermarks *marks)
{
	/* relaxed: readers outside the lock take each for itself. */
	pcpi_store_relaxed(&z->marks.min, marks->min);
	pcpi_store_relaxed(&z->marks.low, marks->low);
	pcpi_store_relaxed(&z->marks.high, marks->high);
	pcpi_store_relaxed(&z->marks.promo, marks->promo);
	if (z->config.reserve_pages > 0)
		pcpi_store_relaxed(&z->reserve, marks->min); /* relaxed: Z5 */
}

static void retune_locked(struct pcpi_zone *z)
{
	size_t page_bytes = (size_t)1 << z->space->page_shift;
	/* relaxed: whoever changes it retunes after. */
	uint32_t caches = pcpi_load_relaxed(&z->live_caches);
	struct pcpi_pageset ps = pageset_for(z, z->managed_pages, caches);
	struct pcpi_watermarks marks;

	if (pcpi_zone_is_disabled(z)) {
		ps.high_min = ps.high_max = 0;
		ps.batch = 1;
	}
	marks = pcpi_policy_watermarks(z->managed_pages, page_bytes,
				       z->config.reserve_pages,
				       PCPI_WATERMARK_SCALE);
	marks_publish(z, &marks);
	/* relaxed: a bound that may be overshot by a batch. */
	pcpi_store_relaxed(&z->depot_limit,
			   (uint32_t)pcpi_policy_depot_limit(z->managed_pages,
							     z->config.fixed));
	pageset_publish(z, &ps);
	flags_update_locked(z);
}

uint32_t pcpi_zone_high_bound(const struct pcpi_zone *z)
{
	return pageset_for(z, z->config.max_pages, 1).high_max;
}

bool pcpi_zone_caches_changed(struct pcpi_zone *z, int by)
{
	uint32_t before;
	bool fell;

	zone_lock(z);
	before = z->pageset.high_max;
	/* relaxed: under the lock; readers size memory by it. */
	pcpi_store_relaxed(&z->live_caches, z->live_caches + (uint32_t)by);
	retune_locked(z);
	fell = z->pageset.high_max < before;
	zone_unlock(z);
	return fell;
}

bool pcpi_zone_cpus_changed(struct pcpi_zone *z, uint32_t node_cpus,
			    uint32_t all_cpus)
{
	uint32_t before;
	bool fell;

	zone_lock(z);
	before = z->pageset.high_max;
	pcpi_store_relaxed(&z->node_cpus, node_cpus); /* relaxed: pageset_for() */
	pcpi_store_relaxed(&z->all_cpus, all_cpus); /* relaxed: ditto */
	retune_locked(z);
	fell = z->pageset.high_max < before;
	zone_unlock(z);
	return fell;
}

void pcpi_zone_disable(struct pcpi_zone *z, int by)
{
	uint32_t depth = z->disable_depth + (uint32_t)by;
	unsigned o;

	/* release: pairs with pcpi_zone_is_disabled(). */
	pcpi_store_release(&z->disable_depth, depth);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pcpi_depot_close(&z->depots[o], depth > 0);
	if (z->quarantine)
		pcpi_quarantine_close(z->quarantine, depth > 0);
	zone_lock(z);
	retune_locked(z);
	zone_unlock(z);
}

/* Ring capacity of the depot of an order: D2. */
static uint32_t depot_capacity(const struct pcpi_zone_config *config,
			       unsigned order)
{
	uint64_t pages = pcpi_policy_depot_limit(config->max_pages, config->fixed);
	uint64_t blocks = pcpi_max(pages >> order, UINT64_C(64));

	/* Of the orders above 0 rather too few than too much memory: what a full
	 * depot refuses goes to the zone. */
	return order == 0 ? (uint32_t)pcpi_pow2_ceil(blocks)
			  : UINT32_C(1) << pcpi_log2(blocks);
}

static size_t arena_pool_bytes(const struct pcpi_zone *z)
{
	uint64_t most = (z->config.max_pages >> z->space->top_order) + 1;

	most += PCPI_ZONE_RETIRED_MAX;
	return (size_t)most * sizeof(struct pcpi_arena);
}

static size_t quarantine_bytes(const struct pcpi_zone *z)
{
	return z->config.checks ? pcpi_quarantine_bytes() : 0;
}

/* quarantine | arena_pool[most arenas there can be] | slots of the depots */
static int memory_init(struct pcpi_zone *z)
{
	size_t entries = 0;
	uint32_t *slots;
	char *at;
	unsigned o;
	int err;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		entries += depot_capacity(&z->config, o);
	z->memory_bytes = pcpi_round_up(quarantine_bytes(z) + arena_pool_bytes(z) +
						entries * sizeof(*slots),
					pcpi_sys_page_bytes());
	err = pcpi_sys->map_meta(z->memory_bytes, &z->memory);
	if (err)
		return err;
	at = z->memory;
	z->quarantine = z->config.checks ? (void *)at : NULL;
	if (z->quarantine)
		pcpi_quarantine_init(z->quarantine);
	at += quarantine_bytes(z);
	z->arena_pool = (struct pcpi_arena *)(void *)at;
	slots = (uint32_t *)(void *)(at + arena_pool_bytes(z));
	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		uint32_t capacity = depot_capacity(&z->config, o);

		pcpi_depot_init(&z->depots[o], slots, capacity);
		slots += capacity;
	}
	return 0;
}

int pcpi_zone_init(struct pcpi_zone *z, const struct pcpi_zone_config *config,
		   struct pcpi_space *space, uint8_t *orders, void *buddy_meta,
		   uint32_t first_pfn, uint32_t nr_pfns)
{
	int err;

	z->config = *config;
	z->node_cpus = config->node_cpus;
	z->all_cpus = config->all_cpus;
	z->space = space;
	z->orders = orders;
	z->first_pfn = first_pfn;
	z->nr_pfns = nr_pfns;
	err = memory_init(z);
	if (err)
		return err;
	pcpi_lock_init(&z->lock, PCPI_RANK_ZONE);
	pcpi_lock_init(&z->grow_lock, PCPI_RANK_GROW);
	CDS_INIT_LIST_HEAD(&z->arenas);
	pcpi_buddy_init(&z->buddy, buddy_meta, first_pfn,
			nr_pfns >> space->top_order, space->top_order);
	zone_lock(z);
	retune_locked(z);
	zone_unlock(z);
	return 0;
}

void pcpi_zone_fini(struct pcpi_zone *z)
{
	struct pcpi_arena *a;
	unsigned o;

	pcpi_list_each(a, &z->arenas, link)
		pcpi_annotate_remove(a->base, (size_t)a->bytes);
	if (z->quarantine)
		pcpi_quarantine_fini(z->quarantine);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pcpi_depot_fini(&z->depots[o]);
	pcpi_sys->unmap(z->memory, z->memory_bytes);
	pcpi_lock_fini(&z->grow_lock);
	pcpi_lock_fini(&z->lock);
}

static void mark_blocks(struct pcpi_zone *z, unsigned order,
			const uint32_t *pfns, uint32_t n)
{
	unsigned held = z->config.checks ? PCPI_PAGE_HELD : 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		pcpi_page_mark_as(z->orders, pfns[i], order, held);
}

/* Blocks that may be taken in this hold: Z3, Z5. */
static uint32_t take_locked(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			    uint32_t n, uint64_t kept)
{
	uint64_t free = pcpi_buddy_free_pages(&z->buddy);
	uint64_t spare = free > kept ? (free - kept) >> order : 0;

	n = (uint32_t)pcpi_min((uint64_t)pcpi_min(n, hold_blocks(z, order)), spare);
	if (n > 0)
		n = pcpi_buddy_take_bulk(&z->buddy, order, pfns, n);
	flags_update_locked(z);
	return n;
}

static uint32_t zone_take(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			  uint32_t n, uint64_t kept, bool *broken)
{
	uint32_t got = 0, more;
	uint64_t splits = 0;

	/* relaxed: a hint */
	if (pcpi_load_relaxed(&z->free_pages) < kept + (UINT64_C(1) << order))
		return 0;
	do {
		zone_lock(z);
		splits -= z->buddy.splits;
		more = take_locked(z, order, pfns + got, n - got, kept);
		splits += z->buddy.splits;
		zone_unlock(z);
		got += more;
	} while (more > 0 && got < n);
	mark_blocks(z, order, pfns, got); /* Z2 */
	if (broken)
		*broken = splits > 0;
	return got;
}

uint32_t pcpi_zone_take_bulk(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			     uint32_t n, bool *broken)
{
	/* relaxed: it changes with growth, which no taker waits for. */
	return zone_take(z, order, pfns, n, pcpi_load_relaxed(&z->reserve), broken);
}

uint32_t pcpi_zone_take_reserve(struct pcpi_zone *z, unsigned order,
				uint32_t *pfns, uint32_t n)
{
	return zone_take(z, order, pfns, n, 0, NULL);
}

uint32_t pcpi_zone_try_take(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			    uint32_t n, bool reserve, bool *busy)
{
	/* relaxed: as above. */
	uint64_t kept = reserve ? 0 : pcpi_load_relaxed(&z->reserve);
	uint32_t got = 0, more;

	/* relaxed: a hint */
	if (pcpi_load_relaxed(&z->free_pages) < kept + (UINT64_C(1) << order))
		return 0;
	do {
		if (!pcpi_lock_try(&z->lock)) {
			*busy = true;
			break;
		}
		pcpi_counter_add(&z->locks, 1);
		more = take_locked(z, order, pfns + got, n - got, kept);
		zone_unlock(z);
		got += more;
	} while (more > 0 && got < n);
	mark_blocks(z, order, pfns, got); /* Z2 */
	return got;
}

void pcpi_zone_give_bulk(struct pcpi_zone *z, unsigned order,
			 const uint32_t *pfns, uint32_t n)
{
	uint32_t hold = hold_blocks(z, order), i, run;

	for (i = 0; i < n; i++)
		pcpi_page_clear(z->orders, pfns[i], order); /* Z2 */
	for (i = 0; i < n; i += run) {
		run = pcpi_min(hold, n - i);
		zone_lock(z);
		pcpi_buddy_give_bulk(&z->buddy, order, pfns + i, run);
		if (pcpi_unlikely(z->isolated.pages > 0)) /* Z6 */
			pcpi_zone_isolate_more_locked(z, order, pfns + i, run);
		flags_update_locked(z);
		zone_unlock(z);
	}
}

void pcpi_zone_settle(struct pcpi_zone *z, uint32_t first_pfn, uint32_t pages)
{
	uint32_t step = PCPI_ZONE_HOLD_CHUNKS << z->space->top_order, done, run;

	for (done = 0; done < pages; done += run) {
		run = pcpi_min(step, pages - done);
		zone_lock(z);
		pcpi_buddy_add(&z->buddy, first_pfn + done, run);
		if (z->isolated.pages > 0) /* Z6 */
			pcpi_zone_isolate_part_locked(z, first_pfn + done, run);
		/* Free before managed: who looks for pages, after it has seen
		 * these managed, must not find free what was free before.
		 * relaxed: ordered by the next. */
		pcpi_store_relaxed(&z->free_pages,
				   pcpi_buddy_free_pages(&z->buddy));
		/* release: pairs with local_reclaim() and foreign_take() of
		 * route.c. */
		pcpi_store_release(&z->managed_pages, z->managed_pages + run);
		retune_locked(z);
		zone_unlock(z);
	}
}

bool pcpi_zone_unsettle(struct pcpi_zone *z, uint32_t first_pfn, uint32_t pages)
{
	bool whole;

	zone_lock(z);
	whole = pcpi_buddy_free_pages(&z->buddy) >= pages + z->reserve && /* Z5 */
		pcpi_buddy_remove(&z->buddy, first_pfn, pages);
	if (whole) {
		/* Readers may see more free than managed for a moment.
		 * relaxed: who has seen more managed only finds less. */
		pcpi_store_relaxed(&z->managed_pages, z->managed_pages - pages);
		retune_locked(z);
	}
	zone_unlock(z);
	/* The kernel may take the pattern with the pages, also where it refuses. */
	if (whole && z->config.checks)
		pcpi_checks_add(z->config.checks, first_pfn, pages);
	return whole;
}

void pcpi_zone_reclaim(struct pcpi_zone *z, bool on)
{
	uint32_t flags;

	zone_lock(z);
	flags = z->flags & ~(uint32_t)PCPI_ZONE_RECLAIM_ACTIVE;
	/* relaxed: a hint for the caches' policy. */
	pcpi_store_relaxed(&z->flags,
			   flags | (on ? PCPI_ZONE_RECLAIM_ACTIVE : 0u));
	zone_unlock(z);
}

/* Lists an arena that the subscriber, if there is one, agrees to: Z7. */
static int arena_list(struct pcpi_zone *z, struct pcpi_arena *a)
{
	struct pcpi_notify *n = z->config.notify;
	int err = 0;

	while (!err && !pcpi_notify_list(n, a, &z->arenas)) {
		z->adding_pages += a->pages;
		pcpi_lock_drop(&z->grow_lock);
		err = pcpi_notify_grown(n, a);
		pcpi_lock_take(&z->grow_lock);
		z->adding_pages -= a->pages;
	}
	return err;
}

static int grow_locked(struct pcpi_zone *z, uint64_t bytes, bool exact,
		       uint64_t *grown)
{
	uint64_t room = (z->config.max_pages - z->managed_pages - z->adding_pages)
			<< z->space->page_shift;
	struct pcpi_arena *a;
	int err;

	if (room == 0 || (exact && room < bytes))
		return -ENOSPC;
	a = pcpi_zone_arena_take(z);
	err = pcpi_arena_grow(z->space, z->config.position,
			      pcpi_min(bytes, room), exact, a);
	if (err) {
		pcpi_zone_arena_give(z, a);
		return err;
	}
	err = arena_list(z, a);
	if (err) {
		pcpi_arena_cancel(z->space, a);
		pcpi_zone_arena_give(z, a);
		pcpi_counter_add(&z->grow_vetoed, 1);
		return err;
	}
	if (z->config.checks)
		pcpi_checks_add(z->config.checks, a->first_pfn, a->pages);
	pcpi_zone_settle(z, a->first_pfn, a->pages);
	/* relaxed: a statistic. */
	pcpi_store_relaxed(&z->nr_arenas, z->nr_arenas + 1);
	*grown = a->pages;
	return 0;
}

/* Until what others add is there, and what they take away is gone, or 10 ms: for as
 * long as it is with the subscriber, which may wait for a lock that our caller
 * holds. */
static void subscriber_wait(struct pcpi_zone *z, uint64_t seen_managed)
{
	uint64_t deadline = 0, now;

	while (z->adding_pages + z->removing_pages > 0 &&
	       z->managed_pages == seen_managed) {
		now = pcpi_sys->clock_ns();
		deadline = deadline ? deadline : now + ADD_WAIT_NS;
		if (now >= deadline)
			break;
		pcpi_lock_drop(&z->grow_lock);
		pcpi_sys->yield();
		pcpi_lock_take(&z->grow_lock);
	}
}

int pcpi_zone_grow(struct pcpi_zone *z, uint64_t seen_managed, uint64_t bytes,
		   bool exact, uint64_t *grown)
{
	int err = 0;

	*grown = 0;
	pcpi_lock_take(&z->grow_lock);
	subscriber_wait(z, seen_managed);
	if (z->managed_pages == seen_managed)
		err = grow_locked(z, bytes, exact, grown);
	pcpi_lock_drop(&z->grow_lock);
	return err;
}

uint64_t pcpi_zone_depot_pages(const struct pcpi_zone *z)
{
	uint64_t pages = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pages += (uint64_t)pcpi_depot_len(&z->depots[o]) << o;
	return pages;
}

void pcpi_zone_count_free(struct pcpi_zone *z, uint64_t counts[PCPI_MAX_ORDER + 1])
{
	uint32_t chunks = z->nr_pfns >> z->space->top_order, c, end;
	uint32_t part[PCPI_MAX_ORDER + 1] = { 0 };
	unsigned o;

	for (c = 0; c < chunks; c = end) {
		end = pcpi_min(chunks, c + PCPI_ZONE_HOLD_CHUNKS);
		zone_lock(z);
		for (; c < end; c++)
			pcpi_buddy_chunk_counts(&z->buddy, c, part);
		zone_unlock(z);
	}
	for (o = 0; o <= PCPI_MAX_ORDER; o++)
		counts[o] += part[o];
}

void pcpi_zone_hold(struct pcpi_zone *z)
{
	zone_lock(z);
}

void pcpi_zone_hold_end(struct pcpi_zone *z)
{
	flags_update_locked(z);
	zone_unlock(z);
}

bool pcpi_zone_check(struct pcpi_zone *z)
{
	bool ok;

	zone_lock(z);
	ok = pcpi_buddy_check(&z->buddy) &&
	     pcpi_buddy_free_pages(&z->buddy) <= z->managed_pages; /* Z1 */
	zone_unlock(z);
	return ok;
}
