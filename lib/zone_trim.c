/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zone_trim.c - giving memory back to the kernel; see zone.h.
 *
 * Owns: which free memory goes, its way out of the buddy and the list of arenas.
 * Does not own: how much shall go (trim.c), what the kernel is asked
 * (arena.c).
 *
 *   plan     for each arena, the latest first, a run of granules (huge pages)
 *            from its end that are wholly free, at most 64 MiB: out of the
 *            buddy, and managed falls                   zone lock, 64 chunks
 *   ask      the subscriber, where there is one         no lock but the turn
 *   run      pcpi_arena_give_back()                     grow lock only
 *   settle   given: the arena's record is replaced by what is left of it;
 *            refused, by the subscriber or the kernel: the run becomes free
 *            again, which keeps it for the next trim, and is counted
 *
 *        arena   [ . . u . . . . ]       u: a page in use; 1 and 2: runs
 *                  2 2   1 1 1 1         left: [u]
 *
 * ZT1  Nobody takes pages of a run: they aren't in the buddy.  Their order bytes
 *      are 0, as for all pages of the buddy, so frees of them are refused.
 * ZT2  A record that was listed is used again only after a grace period.
 * ZT3  What the subscriber has let go and the kernel refuses it is told of again;
 *      if it refuses, too, the run is in no arena any more and the next one there
 *      takes the memory over (A8).
 *
 * Concurrency: one trim at a time, beside anything.  The grow lock is dropped
 * between runs, and for grace periods.
 * Cost: a lock operation a granule, a system call a run, and two records.
 * Failure: what is refused stays in use.
 * Proved by tests/unit/test_trim.c, tests/conc/trim.c.
 */
#include "list.h"
#include "rcu.h"
#include "zone.h"

#include "bits.h"

/* Given back in one go, and at least a granule: takes 0.3 ms with huge pages, 4
 * with base pages. */
#define RUN_BYTES (UINT64_C(64) << 20)

/* Half of the pool's spare records, since each step may need two more. */
#define RETIRED (PCPI_ZONE_RETIRED_MAX - 2u)

struct trim {
	struct pcpi_zone *z;
	struct pcpi_lock *trim_lock;
	uint64_t left, given; /* pages */
	struct pcpi_arena *retired[RETIRED];
	unsigned nr_retired;
};

/* Pages, all of one arena. */
struct run {
	uint32_t first, pages;
};

/* ---- Records ------------------------------------------------------------------ */

struct pcpi_arena *pcpi_zone_arena_take(struct pcpi_zone *z)
{
	struct pcpi_arena *a = z->arena_idle;

	if (!a)
		return &z->arena_pool[z->arenas_used++];
	z->arena_idle = (struct pcpi_arena *)(void *)a->link.next;
	return a;
}

void pcpi_zone_arena_give(struct pcpi_zone *z, struct pcpi_arena *a)
{
	a->link.next = (struct cds_list_head *)(void *)z->arena_idle;
	z->arena_idle = a;
}

/* ZT2.  Drops the grow lock meanwhile. */
static void retired_settle(struct trim *t)
{
	unsigned i;

	if (t->nr_retired == 0)
		return;
	pcpi_lock_drop(&t->z->grow_lock);
	pcpi_rcu_synchronize();
	pcpi_lock_take(&t->z->grow_lock);
	for (i = 0; i < t->nr_retired; i++)
		pcpi_zone_arena_give(t->z, t->retired[i]);
	t->nr_retired = 0;
}

/* A part of an arena. */
static struct pcpi_arena part_of(const struct pcpi_zone *z,
				 const struct pcpi_arena *a, struct run part)
{
	struct pcpi_arena p = *a;

	p.base = pcpi_space_addr(z->space, part.first);
	p.first_pfn = part.first;
	p.pages = part.pages;
	p.bytes = (uint64_t)part.pages << z->space->page_shift;
	return p;
}

/* Lists a part of an arena behind it. */
static struct pcpi_arena *part_list(struct trim *t, struct pcpi_arena *a,
				    struct run part)
{
	struct pcpi_arena *p;

	if (part.pages == 0)
		return NULL;
	p = pcpi_zone_arena_take(t->z);
	*p = part_of(t->z, a, part);
	pcpi_list_insert(&p->link, &a->link);
	return p;
}

/* Lists what is left of an arena instead of it; returns the part before the run,
 * NULL: none. */
static struct pcpi_arena *arena_cut(struct trim *t, struct pcpi_arena *a,
				    struct run run)
{
	uint32_t end = a->first_pfn + a->pages, run_end = run.first + run.pages;
	struct run before = { a->first_pfn, run.first - a->first_pfn };
	struct run after = { run_end, end - run_end };
	uint32_t listed = (before.pages > 0 ? 1u : 0u) +
			  (after.pages > 0 ? 1u : 0u);
	struct pcpi_arena *lower;

	part_list(t, a, after);
	lower = part_list(t, a, before);
	pcpi_list_remove(&a->link);
	/* relaxed: a statistic. */
	pcpi_store_relaxed(&t->z->nr_arenas, t->z->nr_arenas - 1 + listed);
	t->retired[t->nr_retired++] = a;
	if (t->nr_retired == RETIRED)
		retired_settle(t);
	return lower;
}

/* ---- Runs ----------------------------------------------------------------------- */

/* Takes a granule out of the buddy if it is wholly free. */
static bool granule_take(struct pcpi_zone *z, uint32_t first, uint32_t pages)
{
	uint32_t step = PCPI_ZONE_HOLD_CHUNKS << z->space->top_order, done, run;

	for (done = 0; done < pages; done += run) {
		run = pcpi_min(step, pages - done);
		if (!pcpi_zone_unsettle(z, first + done, run)) {
			pcpi_zone_settle(z, first, done);
			return false;
		}
	}
	return true;
}

/* The last run of an arena that ends at *end or before and has at most `most`
 * pages; *end becomes where to go on. */
static struct run run_take(struct pcpi_zone *z, const struct pcpi_arena *a,
			   uint32_t granule, uint64_t most, uint32_t *end)
{
	struct run run = { *end, 0 };

	while (run.first > a->first_pfn && run.pages + granule <= most) {
		*end -= granule;
		if (granule_take(z, *end, granule))
			run = (struct run){ *end, run.pages + granule };
		else if (run.pages > 0)
			break;
		else
			run.first = *end;
	}
	return run;
}

static uint32_t granule_pages(const struct pcpi_zone *z,
			      const struct pcpi_arena *a)
{
	const struct pcpi_window *w = pcpi_space_window(z->space, a->first_pfn);

	return (uint32_t)(w->granule_bytes >> z->space->page_shift);
}

/* Asks the subscriber, with no lock but the turn. */
static int run_ask(struct trim *t, enum pcpa_arena_change change,
		   const struct pcpi_arena *part)
{
	int rc;

	if (!part->told)
		return 0;
	t->z->removing_pages += part->pages;
	pcpi_lock_drop(&t->z->grow_lock);
	pcpi_lock_drop(t->trim_lock);
	rc = pcpi_notify_tell(t->z->config.notify, change, part);
	pcpi_lock_take(t->trim_lock);
	pcpi_lock_take(&t->z->grow_lock);
	t->z->removing_pages -= part->pages;
	return rc;
}

/* A run that the subscriber has let go; whether it left the arena. */
static bool run_release(struct trim *t, const struct pcpi_arena *part)
{
	if (pcpi_arena_give_back(t->z->space, part) == 0) {
		t->given += part->pages;
		return true;
	}
	pcpi_counter_add(&t->z->trim_failed, 1);
	if (run_ask(t, PCPA_ARENA_ADD, part) == 0)
		return false;
	pcpi_arena_cancel(t->z->space, part); /* ZT3 */
	return true;
}

/* Gives a run back; returns the part of the arena before it, or where it is
 * refused the arena. */
static struct pcpi_arena *run_give(struct trim *t, struct pcpi_arena *a,
				   struct run run)
{
	struct pcpi_arena part = part_of(t->z, a, run);

	if (run_ask(t, PCPA_ARENA_REMOVE, &part) != 0) {
		pcpi_counter_add(&t->z->trim_vetoed, 1);
		pcpi_zone_settle(t->z, run.first, run.pages);
		return a;
	}
	if (!run_release(t, &part)) {
		pcpi_zone_settle(t->z, run.first, run.pages);
		return a;
	}
	t->left -= run.pages;
	return arena_cut(t, a, run);
}

static void arena_trim(struct trim *t, struct pcpi_arena *a)
{
	uint32_t granule = granule_pages(t->z, a), end = a->first_pfn + a->pages;
	uint64_t step = pcpi_max(RUN_BYTES >> t->z->space->page_shift,
				 (uint64_t)granule);
	struct run run;

	while (a && t->left >= granule) {
		run = run_take(t->z, a, granule, pcpi_min(t->left, step), &end);
		if (run.pages == 0)
			break;
		a = run_give(t, a, run);
		/* Whoever wants to grow comes in between. */
		pcpi_lock_drop(&t->z->grow_lock);
		pcpi_lock_take(&t->z->grow_lock);
	}
}

uint64_t pcpi_zone_trim(struct pcpi_zone *z, uint64_t most_pages,
			struct pcpi_lock *trim_lock)
{
	struct trim t = { .z = z, .trim_lock = trim_lock, .left = most_pages };
	struct cds_list_head *at, *before;

	pcpi_zone_reclaim(z, true);
	pcpi_lock_take(&z->grow_lock);
	/* Nobody else removes, and what is added comes behind. */
	for (at = z->arenas.prev; at != &z->arenas; at = before) {
		before = at->prev;
		arena_trim(&t, pcpi_container_of(at, struct pcpi_arena, link));
	}
	retired_settle(&t);
	pcpi_lock_drop(&z->grow_lock);
	pcpi_zone_reclaim(z, false);
	return t.given;
}
