/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread.c - which thread has which cache.  Layer 5, part of heap.h.
 *
 * Owns: the thread-local pointer, the threads' records, the making and
 * adopting of caches, and what happens when a thread ends.
 *
 *   pcpi_table --> record: [slot 0: heap, cache][slot 1: ...] ... tid
 *       |                            |
 *       |                            +--> cache of the caller's node
 *       +--> `nobody` before the first call, `gone` after the thread's end:
 *            read-only tables of zeros that match no heap
 *
 * A heap's slot modulo PCPI_ENTRIES picks the entry; where two heaps share one,
 * the slow path finds the cache in the heap's registry and switches the entry.
 *
 * TH1  A cache has an owner or is adoptable (owner NULL, in heap->adoptable), never
 *     both; the owner of a cache that is in the registry changes under the threads
 *     lock.
 * TH2  root->peers[] of a thread's first cache of a heap lists them all.
 * TH3  At a thread's end its caches are adoptable, and empty unless claimed; who
 *     has claimed one doesn't give up on it without an owner (sweep.c, SW3).
 * TH4  A thread without the bit of a heap's entry in `used` has no cache of it.
 * TH5  root->home is the cache of the thread's hits.  The thread looks whether it is
 *      still that of its node in each call that is no hit, and with the hits that
 *      pcp_hot.h says (HO3).  One that it has left has WHERE set, so that handles of
 *      inline.h to it are calls; nested calls set it to have the next call look.
 * TH6  What is in the outboxes of that cache goes home with the first look after
 *      PCPI_LOOK_ALLOCS allocations from it, of which a look counts as LOOK_WEIGHT,
 *      if no batch came together before.
 *
 * Progress: a thread that is past its end is served without a cache.
 * Not seen: a thread that makes its first call of all in the last round of its
 * keys' destructors, of a key that is younger than ours.  Its cache stays taken;
 * what is in it a sweep finds.
 * Cost: the first call of a thread on a heap maps its cache, unless another
 * thread left one, and takes the zone lock once.  Its end walks the heap's caches.
 */
#include "heap.h"
#include "list.h"

#include <errno.h>
#include <pthread.h>

#include "bits.h"
#include "nest.h"
#include "pcp_tune.h"
#include "rcu.h"
#include "rseq.h"

/* A batch of frees at least lies between two looks of who only frees. */
#define LOOK_WEIGHT 64u

/* o: the thread; l: pool_lock. */
struct thread_record {
	struct pcpi_entry entries[PCPI_ENTRIES]; /* o */
	int tid;				 /* o */
	bool making;				 /* o: inside cache making */
	uint64_t used; /* o: a bit an entry, which had a cache of the thread's: TH4 */
	struct thread_record *next;		 /* l: in the pool */
};

/* Never written: no entry matches, so nobody gets as far as a store. */
static const struct thread_record nobody, gone;

__thread char *pcpi_table __attribute__((tls_model("initial-exec"))) =
	(char *)(uintptr_t)&nobody;

static pthread_key_t end_key;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread_record *pool;

/* ---- Records --------------------------------------------------------------- */

/* A page each, because of where its table lies in it (PCPI_CACHE_OFFSET);
 * kept for the next thread, never unmapped. */
static struct thread_record *record_map(void)
{
	size_t bytes = pcpi_sys_page_bytes();
	void *memory;

	if (pcpi_sys->map_meta(bytes, &memory))
		return NULL;
	pcpi_sys->name(memory, bytes, "pcpalloc:thread");
	return memory;
}

static struct thread_record *record_take(void)
{
	struct thread_record *r;

	pthread_mutex_lock(&pool_lock);
	r = pool;
	if (r)
		pool = r->next;
	pthread_mutex_unlock(&pool_lock);
	return r ? r : record_map();
}

static void record_give(struct thread_record *r)
{
	*r = (struct thread_record){ 0 };
	pthread_mutex_lock(&pool_lock);
	r->next = pool;
	pool = r;
	pthread_mutex_unlock(&pool_lock);
}

/* The calling thread's record, or NULL past its end. */
static struct thread_record *record_self(void)
{
	struct thread_record *r;

	if (pcpi_table == (char *)(uintptr_t)&gone)
		return NULL;
	if (pcpi_table != (char *)(uintptr_t)&nobody)
		return (struct thread_record *)(void *)pcpi_table;
	r = record_take();
	if (!r)
		return NULL;
	if (pthread_setspecific(end_key, r) != 0) {
		record_give(r);
		return NULL;
	}
	r->tid = pcpi_sys->tid();
	pcpi_compiler_barrier(); /* a handler finds it whole */
	pcpi_table = (char *)r;
	return r;
}

/* ---- Making and adopting ----------------------------------------------------- */

static struct pcpi_cache *cache_adopt_locked(struct pcpa_heap *heap,
					     struct pcpi_zone *zone)
{
	struct pcpi_cache **at, *c;

	for (at = &heap->adoptable; (c = *at); at = &c->next_adoptable)
		if (c->zone == zone) {
			*at = c->next_adoptable;
			return c;
		}
	return NULL;
}

/* With the threads lock, or in a child that has one thread. */
static void cache_offer_locked(struct pcpa_heap *heap, struct pcpi_cache *c)
{
	c->next_adoptable = heap->adoptable;
	heap->adoptable = c;
	/* release: pairs with cache_claim() and cache_postpone() of sweep.c; TH1,
	 * TH3. */
	pcpi_store_release(&c->owner, NULL);
}

static struct pcpi_cache *cache_make(struct pcpa_heap *heap,
				     struct pcpi_zone *zone)
{
	size_t bytes = pcpi_round_up(pcpi_cache_bytes(&heap->env, zone),
				     pcpi_sys_page_bytes());
	void *memory;

	if (pcpi_sys->map_meta(bytes, &memory))
		return NULL;
	pcpi_sys->name(memory, bytes, "pcpalloc:cache");
	return pcpi_cache_init(memory, bytes, &heap->env, zone);
}

static void cache_own(struct pcpi_cache *c, struct thread_record *self,
		      struct pcpi_cache *root)
{
	unsigned z;

	for (z = 0; z < c->env->nr_zones; z++)
		c->peers[z] = NULL;
	c->by_mark = !(c->env->rseq && pcpi_rseq_ready());
	c->root = root ? root : c;
	pcpi_store_relaxed(&c->home, NULL); /* relaxed: a hint for ticks. */
	c->root->peers[c->zone->config.position] = c; /* TH2 */
	pcpi_store_relaxed(&c->tid, self->tid); /* relaxed: a statistic. */
	/* release: pairs with registry_find() and caches_leave(); TH1. */
	pcpi_store_release(&c->owner, self);
}

static struct pcpi_cache *cache_get(struct pcpa_heap *heap,
				    struct pcpi_zone *zone,
				    struct thread_record *self,
				    struct pcpi_cache *root)
{
	struct pcpi_cache *c, *fresh = NULL;
	bool fell = pcpi_zone_caches_changed(zone, 1);

	pcpi_lock_take(&heap->threads_lock);
	c = cache_adopt_locked(heap, zone);
	if (c) {
		pcpi_tune_start(c);
		cache_own(c, self, root);
	}
	pcpi_lock_drop(&heap->threads_lock);
	if (!c)
		c = fresh = cache_make(heap, zone);
	if (!c) {
		pcpi_zone_caches_changed(zone, -1);
		return NULL;
	}
	if (fresh) {
		cache_own(c, self, root);
		pcpi_lock_take(&heap->threads_lock);
		pcpi_cache_off(c, pcpi_heap_hits_off(heap, zone));
		pcpi_list_add(&c->registry, &heap->caches); /* E2 */
		pcpi_lock_drop(&heap->threads_lock);
	}
	if (fell)
		pcpi_heap_bounds_enforce(heap, zone);
	return c;
}

static uint64_t entry_bit(const struct pcpa_heap *heap)
{
	return UINT64_C(1) << heap->hot.entry / sizeof(struct pcpi_entry);
}

/* The thread's first cache of a heap whose entry another heap has taken. */
static struct pcpi_cache *registry_find(struct pcpa_heap *heap,
					const struct thread_record *self)
{
	struct pcpi_section section;
	struct pcpi_cache *c, *found = NULL;

	if (!(self->used & entry_bit(heap))) /* TH4 */
		return NULL;
	section = pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry) {
		/* acquire: pairs with cache_own(). */
		if (pcpi_load_acquire(&c->owner) == self) {
			found = c->root;
			break;
		}
	}
	pcpi_rcu_read_unlock(section);
	return found;
}

/* The calling thread's first cache of the heap, whose peers are the others;
 * NULL: it has none. */
static struct pcpi_cache *root_find(struct pcpa_heap *heap)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);

	/* A thread without a record owns nothing: nothing is found. */
	return c ? c->root
		 : registry_find(heap, (const struct thread_record *)(const void *)
					       pcpi_table);
}

static struct pcpi_cache *peer_get(struct pcpa_heap *heap,
				   struct pcpi_zone *zone,
				   struct thread_record *self,
				   struct pcpi_cache *root)
{
	struct pcpi_cache *c = NULL;

	if (root)
		c = root->peers[zone->config.position];
	return c ? c : cache_get(heap, zone, self, root);
}

static struct pcpi_entry *entry_of(struct thread_record *self,
				   const struct pcpa_heap *heap)
{
	return (struct pcpi_entry *)(void *)((char *)self + heap->hot.entry);
}

/* A signal handler that comes in between finds no heap there, never one with
 * another's cache: HO2. */
static void entry_set(struct thread_record *self, const struct pcpa_heap *heap,
		      struct pcpi_cache *c)
{
	struct pcpi_entry *entry = entry_of(self, heap);
	struct pcpi_cache *old = c->root->home;

	if (old && old != c)
		pcpi_cache_ask_where(old); /* TH5 */
	pcpi_cache_where_answer(c);
	self->used |= entry_bit(heap);
	/* A handler finds the old pair, none, or the new one.
	 * relaxed: for this thread; see entry_clear(). */
	pcpi_store_relaxed(&entry->heap, NULL);
	pcpi_compiler_barrier();
	entry->cache = c;
	pcpi_compiler_barrier();
	pcpi_store_relaxed(&entry->heap, &heap->hot); /* relaxed: as above */
	pcpi_store_relaxed(&c->root->home, c); /* relaxed: a hint for ticks. */
}

/* Where another thread's is cleared, that one may just put another heap there,
 * whose entry may be lost by that: it is found again. */
static void entry_clear(struct thread_record *of, const struct pcpa_heap *heap)
{
	struct pcpi_entry *entry = entry_of(of, heap);

	/* relaxed: the callers of this heap are quiet. */
	if (pcpi_load_relaxed(&entry->heap) == &heap->hot)
		pcpi_store_relaxed(&entry->heap, NULL);
}

/* The thread's cache of the zone where it is, which becomes the entry's. */
static struct pcpi_cache *home_move(struct pcpa_heap *heap,
				    struct pcpi_zone *here,
				    struct thread_record *self,
				    struct pcpi_cache *root)
{
	struct pcpi_cache *c = peer_get(heap, here, self, root);

	if (c)
		entry_set(self, heap, c);
	return c;
}

struct pcpi_cache *pcpi_thread_cache(struct pcpa_heap *heap,
				     struct pcpi_zone *zone)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);
	struct thread_record *self;

	if (c && (!zone || c->zone == zone))
		return c;
	self = record_self();
	if (!self || self->making)
		return NULL;
	self->making = true;
	if (!c)
		c = home_move(heap, pcpi_heap_local_zone(heap), self,
			      registry_find(heap, self));
	if (c && zone && c->zone != zone)
		c = peer_get(heap, zone, self, c->root);
	self->making = false;
	return c;
}

/* ---- A thread that moves: TH5, TH6 ------------------------------------------------- */

/* TH6 */
static void outboxes_send(struct pcpi_cache *c)
{
	uint64_t ops = ++c->looks * LOOK_WEIGHT + pcpi_cache_allocs(c);

	if (ops - c->ops_at_send < PCPI_LOOK_ALLOCS)
		return;
	c->ops_at_send = ops;
	pcpi_cache_outboxes_flush(c);
}

struct pcpi_zone *pcpi_thread_look(struct pcpa_heap *heap)
{
	struct thread_record *self;
	struct pcpi_cache *root, *left, *c;
	struct pcpi_zone *here;

	root = heap->nr_zones > 1 ? root_find(heap) : NULL;
	left = root ? root->home : NULL;
	self = left ? record_self() : NULL;
	if (!self || self->making)
		return pcpi_heap_local_zone(heap);
	pcpi_cache_where_answer(left);
	pcpi_cache_settle(root);
	outboxes_send(left);
	here = pcpi_heap_local_zone(heap);
	if (left->zone != here) {
		self->making = true;
		c = home_move(heap, here, self, root);
		self->making = false;
		if (c)
			pcpi_cache_flush_whole(left);
	}
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
	return here;
}

/* A cache that isn't a heap's, as in the lower layers' tests, has no home. */
static bool can_move(const struct pcpi_cache *c)
{
	return c->env->nr_zones > 1 && c->root->home;
}

void pcpi_outer_look(struct pcpi_cache *c)
{
	if (can_move(c))
		pcpi_thread_look(pcpi_container_of(c->env, struct pcpa_heap, env));
}

/* Enters; false: nested, the next call looks. */
static bool look_enter(struct pcpi_cache *c)
{
	bool outer = pcpi_nest_enter();

	if (outer)
		pcpi_outer_look(c);
	else if (can_move(c))
		pcpi_cache_ask_where(c);
	return outer;
}

static void hit_look(struct pcpi_cache *c)
{
	int saved = errno;

	pcpi_cache_allocs_wrap(c);
	look_enter(c);
	pcpi_nest_leave();
	errno = saved;
}

void *pcpi_hit_look(struct pcpi_cache *c, void *block)
{
	hit_look(c);
	return block;
}

size_t pcpi_hit_look_bulk(struct pcpi_cache *c, size_t n)
{
	hit_look(c);
	return n;
}

void pcpi_hit_trim(struct pcpi_cache *c, unsigned order)
{
	int saved = errno;

	if (look_enter(c)) {
		pcpi_deferred_look(c->env);
		pcpi_cache_trim(c, order);
	} else {
		pcpi_cache_defer(c, order);
	}
	pcpi_nest_leave();
	errno = saved;
}

void pcpi_thread_flush(struct pcpa_heap *heap)
{
	struct pcpi_cache *root = root_find(heap);
	unsigned z;

	pcpi_deferred_look(&heap->env);
	if (root)
		pcpi_cache_settle(root);
	for (z = 0; root && z < heap->nr_zones; z++)
		if (root->peers[z])
			pcpi_cache_flush(root->peers[z]);
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
}

void pcpi_thread_flush_for(struct pcpa_heap *heap, const struct pcpi_zone *zone)
{
	struct pcpi_cache *root = root_find(heap);
	uint64_t remote[heap->nr_zones], pages = 0;
	unsigned z, at = zone->config.position;

	for (z = 0; z < heap->nr_zones; z++)
		remote[z] = 0;
	for (z = 0; root && z < heap->nr_zones; z++)
		if (root->peers[z])
			pcpi_cache_remote_pages(root->peers[z], remote);
	if (root && root->peers[at])
		pages = pcpi_cache_count(root->peers[at]);
	if (pages + remote[at] > 0)
		pcpi_thread_flush(heap);
}

/* ---- The end of a thread ------------------------------------------------------- */

/* A drainer that claims the cache while it is emptied keeps the rest out of the
 * depots, and empties it itself; if it gives up first, the rest is ours again. */
static void cache_disown(struct pcpa_heap *heap, struct pcpi_cache *c)
{
	bool done;

	do {
		pcpi_cache_abandon(c);
		pcpi_lock_take(&heap->threads_lock);
		done = pcpi_cache_is_claimed(c) || pcpi_cache_pages(c) == 0;
		if (done)
			cache_offer_locked(heap, c);
		pcpi_lock_drop(&heap->threads_lock);
	} while (!done);
}

static void caches_leave(struct pcpa_heap *heap, const struct thread_record *self)
{
	struct pcpi_cache *c;

	pcpi_list_each(c, &heap->caches, registry) {
		/* acquire: pairs with cache_own(). */
		if (pcpi_load_acquire(&c->owner) != self)
			continue;
		pcpi_zone_caches_changed(c->zone, -1);
		cache_disown(heap, c);
	}
}

/* What the end has moved may be news, which is told with no lock held; the heap
 * waits to be destroyed meanwhile. */
static void ends_tell(void)
{
	struct pcpa_heap *heap = pcpi_heap_pin(0);

	while (heap) {
		pcpi_watch_zones(&heap->env.watch, heap->env.zones,
				 heap->nr_zones);
		heap = pcpi_heap_unpin(heap);
	}
}

static void thread_end(void *arg)
{
	struct pcpi_section section;
	struct thread_record *self = arg;
	struct pcpa_heap *heap;

	pcpi_nest_enter();
	pcpi_table = (char *)(uintptr_t)&gone;
	pcpi_compiler_barrier(); /* a handler must not use what is given up */
	/* Not the other way round: whoever waits for readers may be waited for by
	 * the holder of this lock. */
	pcpi_lock_take(&pcpi_heaps_lock);
	section = pcpi_rcu_read_lock();
	pcpi_list_each(heap, &pcpi_heaps, link) {
		/* relaxed: only a fork's child sets it, before it can end. */
		if (!pcpi_load_relaxed(&heap->forked))
			caches_leave(heap, self);
	}
	pcpi_rcu_read_unlock(section);
	pcpi_lock_drop(&pcpi_heaps_lock);
	ends_tell();
	record_give(self);
	pcpi_nest_leave();
}

int pcpi_thread_setup(void)
{
	return -pthread_key_create(&end_key, thread_end);
}

void pcpi_thread_forget(struct pcpa_heap *heap)
{
	struct thread_record *owner;
	struct pcpi_cache *c;

	pcpi_list_each(c, &heap->caches, registry) {
		/* acquire: pairs with cache_own(); owners end under this lock. */
		owner = (struct thread_record *)(uintptr_t)pcpi_load_acquire(
			&c->owner);
		if (owner)
			entry_clear(owner, heap);
	}
}

/* ---- Fork ------------------------------------------------------------------------ */

void pcpi_thread_freeze(void)
{
	pthread_mutex_lock(&pool_lock);
}

void pcpi_thread_thaw(void)
{
	pthread_mutex_unlock(&pool_lock);
}

void pcpi_thread_forked(struct pcpa_heap *heap)
{
	struct thread_record *self = (struct thread_record *)(void *)pcpi_table;
	struct pcpi_cache *c;

	heap->pins = 0;
	pcpi_watch_forked(&heap->env.watch, heap->env.zones, heap->nr_zones);
	pcpi_space_forked(&heap->space);
	if (!(heap->options_flags & PCPA_HEAP_COW)) {
		/* relaxed: the child has one thread. */
		pcpi_store_relaxed(&heap->forked, true);
		entry_clear(self, heap);
		/* What inline.h's handles point to turns them to calls. */
		pcpi_list_each(c, &heap->caches, registry)
			pcpi_cache_off(c, true);
		return;
	}
	pcpi_list_each(c, &heap->caches, registry) {
		/* relaxed: as above. */
		if (pcpi_load_relaxed(&c->owner) != self &&
		    pcpi_load_relaxed(&c->owner)) {
			pcpi_cache_abandon(c);
			pcpi_zone_caches_changed(c->zone, -1);
			cache_offer_locked(heap, c);
		}
	}
}
