/* SPDX-License-Identifier: BSD-2-Clause */
/* page_pool_table.c - see page_pool_table.h. */
#include "page_pool_table.h"

#include <errno.h>
#include <inttypes.h>

#include "check.h"
#include "sys/sys.h"

/* ---- Pools come and go ------------------------------------------------------ */

void pcpi_pools_init(struct pcpi_pools *t)
{
	*t = (struct pcpi_pools){ 0 };
	pcpi_lock_init(&t->lock, PCPI_RANK_POOLS);
}

void pcpi_pools_fini(struct pcpi_pools *t)
{
	if (t->pools)
		pcpi_sys->unmap(t->pools, t->bytes);
	pcpi_lock_fini(&t->lock);
}

static int map_locked(struct pcpi_pools *t, uint64_t nr_pfns)
{
	size_t page = pcpi_sys_page_bytes();
	size_t table = PCPI_POOLS_MAX * sizeof(struct pcpa_pool *);
	size_t bytes = table + nr_pfns * sizeof(struct pcpi_pool_page);
	void *p;
	int err;

	if (t->pools)
		return 0;
	bytes = (bytes + page - 1) & ~(page - 1);
	err = pcpi_sys->map_meta(bytes, &p);
	if (err)
		return err;
	pcpi_sys->name(p, bytes, "pcpalloc:pools");
	t->pools = p;
	/* release: pairs with pcpi_pools_pages(). */
	pcpi_store_release(&t->pages, (void *)((char *)p + table));
	t->bytes = bytes;
	return 0;
}

/* A free number, or 0. */
static unsigned id_locked(const struct pcpi_pools *t)
{
	unsigned id = 1;

	while (id < PCPI_POOLS_MAX && t->pools[id])
		id++;
	return id < PCPI_POOLS_MAX ? id : 0;
}

static int add_locked(struct pcpi_pools *t, struct pcpa_pool *pool,
		      uint64_t nr_pfns)
{
	int err = map_locked(t, nr_pfns);
	unsigned id = err ? 0 : id_locked(t);

	if (err)
		return err;
	if (id == 0)
		return -ENOSPC;
	pool->id = id;
	pool->mine = pcpi_pool_word(id);
	pool->pages = t->pages;
	pool->nr_pfns = nr_pfns;
	t->pools[id] = pool;
	pcpi_counter_add(&t->count, 1);
	return 0;
}

int pcpi_pools_add(struct pcpi_pools *t, struct pcpa_pool *pool,
		   uint64_t nr_pfns)
{
	int err;

	pcpi_lock_take(&t->lock);
	err = add_locked(t, pool, nr_pfns);
	pcpi_lock_drop(&t->lock);
	return err;
}

void pcpi_pools_remove(struct pcpi_pools *t, struct pcpa_pool *pool)
{
	pcpi_lock_take(&t->lock);
	PCPA_ASSERT(t->pools[pool->id] == pool); /* PT1 */
	t->pools[pool->id] = NULL;
	pcpi_counter_add(&t->count, -1u);
	if (pool->ending)
		pcpi_counter_add(&t->ending, -1u);
	pcpi_lock_drop(&t->lock);
}

void pcpi_pools_ending(struct pcpi_pools *t)
{
	pcpi_lock_take(&t->lock);
	pcpi_counter_add(&t->ending, 1);
	pcpi_lock_drop(&t->lock);
}

/* ---- Pools that wait -------------------------------------------------------- */

/* What is said of a pool. */
struct overdue {
	const void *pool;
	uint64_t seconds;
	uint32_t hold, release;
};

/* Whether it is time; then not again for as long.  The pool is kept. */
static bool overdue_look(struct pcpa_pool *pool, uint64_t now_ns,
			 struct overdue *out)
{
	uint64_t due = pcpi_load_relaxed(&pool->warn_ns); /* relaxed: see below */
	/* relaxed: what was true a moment ago. */
	uint64_t word = pcpi_load_relaxed(&pool->count_out.word);

	if (due == 0 || now_ns < due)
		return false;
	/* acquire/release: pairs with itself; one caller tells. */
	if (!pcpi_cas_acq_rel(&pool->warn_ns, &due, now_ns + PCPI_POOL_WARN_NS))
		return false;
	*out = (struct overdue){
		.pool = pool,
		.seconds = (now_ns - pool->ending_ns) / 1000000000,
		.hold = pcpi_pool_count_held(word) - 1,
		.release = pcpi_pool_count_gone(word) - 1,
	};
	return true;
}

static void overdue_say(const struct overdue *o)
{
	pcpi_sys_say("pool %p: destroyed %" PRIu64 " s ago, still waits for %" PRId32
		     " pages that are out (took %" PRIu32 ", gave back %" PRIu32
		     ")", o->pool, o->seconds,
		     pcpi_pool_inflight(o->hold, o->release), o->hold, o->release);
}

void pcpi_pool_overdue(struct pcpa_pool *pool)
{
	struct overdue o;

	/* relaxed: looked at again. */
	if (pcpi_load_relaxed(&pool->warn_ns) != 0 &&
	    overdue_look(pool, pcpi_sys->coarse_ns(), &o))
		overdue_say(&o);
}

/* Those of a table that are told of in one tick. */
#define OVERDUE_MOST 8u

static unsigned overdue_locked(struct pcpi_pools *t, uint64_t now_ns,
			       struct overdue *out)
{
	unsigned id, n = 0;

	for (id = 1; id < PCPI_POOLS_MAX && n < OVERDUE_MOST; id++)
		n += t->pools[id] && overdue_look(t->pools[id], now_ns, &out[n]);
	return n;
}

void pcpi_pools_tick(struct pcpi_pools *t)
{
	struct overdue out[OVERDUE_MOST];
	unsigned i, n;

	/* relaxed: it is looked at again in a second. */
	if (pcpi_load_relaxed(&t->ending) == 0)
		return;
	pcpi_lock_take(&t->lock);
	n = overdue_locked(t, pcpi_sys->coarse_ns(), out);
	pcpi_lock_drop(&t->lock);
	for (i = 0; i < n; i++)
		overdue_say(&out[i]);
}

/* ---- Forks -------------------------------------------------------------------- */

void pcpi_pools_freeze(struct pcpi_pools *t)
{
	unsigned id;

	pcpi_lock_freeze(&t->lock);
	for (id = 1; t->pools && id < PCPI_POOLS_MAX; id++) {
		if (!t->pools[id])
			continue;
		pcpi_lock_freeze(&t->pools[id]->ring.consumer_lock);
		pcpi_lock_freeze(&t->pools[id]->ring.producer_lock);
	}
}

void pcpi_pools_thaw(struct pcpi_pools *t)
{
	unsigned id;

	for (id = PCPI_POOLS_MAX; t->pools && id-- > 1;) {
		if (!t->pools[id])
			continue;
		pcpi_lock_thaw(&t->pools[id]->ring.producer_lock);
		pcpi_lock_thaw(&t->pools[id]->ring.consumer_lock);
	}
	pcpi_lock_thaw(&t->lock);
}

void pcpi_pools_forked(struct pcpi_pools *t, bool inherited)
{
	unsigned id;

	for (id = 1; t->pools && id < PCPI_POOLS_MAX; id++) {
		if (!t->pools[id])
			continue;
		/* relaxed: the child has one thread, which forked outside of a put. */
		pcpi_store_relaxed(&t->pools[id]->counting, 0);
		if (inherited)
			continue;
		/* relaxed: the child has one thread. */
		pcpi_store_relaxed(&t->pools[id]->hit_owner, NULL);
		pcpi_store_relaxed(&t->pools[id]->owner, PCPI_POOL_NOBODY);
	}
}
