/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_page_pool.c - random calls on a pool against a naive one: a list for the
 * cache, a queue for the ring with what is consumed and not yet NULL, a record for
 * each page.  After each call all counters are the same, and what is handed out is the
 * very page that the model says, wherever it isn't one of the heap's choice.
 *
 * The owner and the others are one thread, which says who it is by the pool's owner.
 */
#include <pcpalloc/page_pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../lib/page_pool.h"

#define STEPS 60000u
#define PAGES 4096u
#define OUT 1500u

struct page {
	void *buf;
	unsigned pieces; /* parts that are out, or 1 */
	unsigned refs;	 /* beside the pool's */
	bool left;	 /* let go while there were */
	bool whole;
};

struct model {
	struct pcpa_pool_stats s;
	void *cache[PCPI_POOL_CACHE];
	unsigned cached;
	void *ring[20000];
	unsigned size, first, length, pending, at; /* at: index of first */
	struct page *frag;
	size_t frag_offset;
};

static struct model m;
static struct page pages[PAGES];
static unsigned nr_pages;
static void *out[OUT]; /* what this program may put, each once */
static unsigned nr_out;
static void *referred[OUT];
static unsigned nr_referred;
static struct pcpa_heap *heap;
static struct pcpa_pool *pool;
static unsigned seed, step;

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: seed %u, step %u: %s\n",       \
				__FILE__, __LINE__, seed, step, #cond);        \
			exit(1);                                               \
		}                                                              \
	} while (0)

static unsigned below(unsigned n)
{
	return (unsigned)rand() % n;
}

/* ---- The model -------------------------------------------------------------- */

static uintptr_t page_no(const void *p)
{
	return (uintptr_t)p / 4096;
}

static struct page *page_of(const void *p)
{
	for (unsigned i = 0; i < nr_pages; i++)
		if (pages[i].buf && page_no(pages[i].buf) == page_no(p))
			return &pages[i];
	return NULL;
}

static void page_gone(struct page *p)
{
	m.s.release++;
	if (p->refs)
		p->left = true;
	else
		*p = pages[--nr_pages];
}

static unsigned batch(void)
{
	return m.size / 2 < 16 ? 1 : 16;
}

static bool model_ring_put(void *buf)
{
	if (m.length + m.pending == m.size)
		return false;
	m.ring[(m.first + m.length++) % m.size] = buf;
	return true;
}

static void *model_ring_take(void)
{
	void *buf = m.ring[m.first];

	m.first = (m.first + 1) % m.size;
	m.length--;
	m.pending++;
	if (m.pending >= batch() || m.first == 0)
		m.pending = 0;
	return buf;
}

static void model_back(struct page *p, bool owner)
{
	if (p->refs) {
		m.s.recycle_released_ref++;
		page_gone(p);
		return;
	}
	if (owner && m.cached < PCPI_POOL_CACHE) {
		m.cache[m.cached++] = p->buf;
		m.s.recycle_cached++;
		return;
	}
	m.s.recycle_cache_full += owner;
	if (model_ring_put(p->buf)) {
		m.s.recycle_ring++;
	} else {
		m.s.recycle_ring_full++;
		page_gone(p);
	}
}

/* What comes next, NULL: fresh from the heap. */
static void *model_take(void)
{
	if (m.cached > 0) {
		m.s.alloc_fast++;
		return m.cache[--m.cached];
	}
	if (m.length > 0) {
		while (m.cached < PCPI_POOL_REFILL && m.length > 0)
			m.cache[m.cached++] = model_ring_take();
		m.s.alloc_refill++;
		return m.cache[--m.cached];
	}
	m.s.alloc_empty++;
	m.s.alloc_slow++;
	m.s.hold += PCPI_POOL_REFILL;
	return NULL;
}

/* Learns what came from the heap: the cache, and what was handed out. */
static void model_learn(void *got)
{
	CHECK(pool->count == PCPI_POOL_REFILL - 1);
	CHECK(nr_pages + PCPI_POOL_REFILL <= PAGES);
	for (unsigned i = 0; i < PCPI_POOL_REFILL; i++) {
		void *buf = i < pool->count ? pool->cache[i] : got;

		CHECK(!page_of(buf));
		pages[nr_pages++] = (struct page){ .buf = buf, .whole = true };
		if (i < pool->count)
			m.cache[m.cached++] = buf;
	}
}

/* ---- Calls ------------------------------------------------------------------------- */

static void stats_same(void)
{
	struct pcpa_pool_stats s = PCPA_POOL_STATS_INIT;

	CHECK(pcpa_pool_stats_read(pool, &s) == 0);
	CHECK(s.alloc_fast == m.s.alloc_fast);
	CHECK(s.alloc_slow == m.s.alloc_slow);
	CHECK(s.alloc_empty == m.s.alloc_empty);
	CHECK(s.alloc_refill == m.s.alloc_refill);
	CHECK(s.alloc_slow_ho == 0 && s.alloc_waive == 0 && s.bad_puts == 0);
	CHECK(s.recycle_cached == m.s.recycle_cached);
	CHECK(s.recycle_cache_full == m.s.recycle_cache_full);
	CHECK(s.recycle_ring == m.s.recycle_ring);
	CHECK(s.recycle_ring_full == m.s.recycle_ring_full);
	CHECK(s.recycle_released_ref == m.s.recycle_released_ref);
	CHECK(s.hold == m.s.hold && s.release == m.s.release);
	CHECK(s.inflight == (int32_t)(m.s.hold - m.s.release));
	CHECK(s.cached == m.cached);
}

static void get_one(void)
{
	void *want, *got;

	if (nr_out == OUT)
		return;
	want = model_take();
	got = pcpa_pool_get(pool);
	CHECK(got);
	if (want)
		CHECK(got == want);
	else
		model_learn(got);
	page_of(got)->pieces = 1;
	page_of(got)->whole = true;
	out[nr_out++] = got;
}

static void *frag_page_model(void)
{
	struct page *old = m.frag;

	m.frag_offset = 0;
	if (old && old->pieces == 0 && !old->refs) {
		m.s.recycle_cached++;
		m.s.alloc_fast++;
		return old->buf;
	}
	m.frag = NULL;
	if (old && old->pieces == 0) {
		m.s.recycle_released_ref++;
		page_gone(old);
	}
	return model_take();
}

static void get_part(void)
{
	static const size_t sizes[] = { 64, 512, 1500, 2048, 2048, 4096 };
	size_t bytes = sizes[below(6)], offset, need = (bytes + 63) & ~63u;
	bool fresh = !m.frag || m.frag_offset + need > 4096;
	void *want = NULL, *got;

	if (nr_out == OUT)
		return;
	if (fresh)
		want = frag_page_model();
	got = pcpa_pool_get_frag(pool, bytes, &offset);
	CHECK(got);
	if (fresh) {
		if (!want) {
			model_learn((char *)got);
			page_of(got)->buf = got;
		}
		CHECK(!want || page_no(want) == page_no(got));
		m.frag = page_of(got);
		m.frag->whole = false;
		m.frag->pieces = 0;
	}
	CHECK(page_of(got) == m.frag);
	CHECK(offset == m.frag_offset && (uintptr_t)got % 4096 == offset);
	m.frag_offset += need;
	m.frag->pieces++;
	out[nr_out++] = got;
}

/* The canonical address of a page, which the cache has. */
static void name_page(struct page *p)
{
	p->buf = pcpi_pool_buf(pool, pcpi_pool_pfn(pool, p->buf));
}

/* The model's part of a put. */
static void model_put(void *buf, bool owner)
{
	struct page *p = page_of(buf);

	CHECK(p && p->pieces > 0);
	name_page(p);
	if (--p->pieces == 0 && p != m.frag)
		model_back(p, owner);
}

/* m.frag points into pages[], whose last may have moved. */
static void frag_find(const void *buf)
{
	if (buf)
		m.frag = page_of(buf);
}

static void become(bool owner)
{
	const void *who = owner ? pcpi_pool_self() : (const void *)&m;

	pool->owner = pool->hit_owner = who;
}

static void put_one(bool owner)
{
	const void *frag = m.frag ? m.frag->buf : NULL;
	unsigned at;

	if (nr_out == 0)
		return;
	at = below(nr_out);
	model_put(out[at], owner);
	frag_find(frag);
	become(owner);
	pcpa_pool_put(pool, (char *)out[at] + below(8) * 8);
	become(true);
	out[at] = out[--nr_out];
}

static void put_many(bool owner)
{
	const void *frag = m.frag ? m.frag->buf : NULL;
	unsigned n = below(100), ring_full = 0;
	void *some[100];

	if (n > nr_out)
		n = nr_out;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = below(nr_out);

		some[i] = out[at];
		out[at] = out[--nr_out];
	}
	for (unsigned i = 0; i < n; i++) {
		uint64_t full = m.s.recycle_ring_full;

		model_put(some[i], owner);
		frag_find(frag);
		/* Once for all of them. */
		if (m.s.recycle_ring_full > full && ring_full++ > 0)
			m.s.recycle_ring_full = full;
	}
	become(owner);
	pcpa_pool_put_bulk(heap, some, n);
	become(true);
}

static void refer(void)
{
	void *buf;

	if (nr_out == 0 || nr_referred == OUT)
		return;
	buf = out[below(nr_out)];
	CHECK(pcpa_pool_ref(heap, buf) == 0);
	page_of(buf)->refs++;
	referred[nr_referred++] = buf;
}

static void unrefer(void)
{
	const void *frag = m.frag ? m.frag->buf : NULL;
	struct page *p;
	unsigned at;

	if (nr_referred == 0)
		return;
	at = below(nr_referred);
	p = page_of(referred[at]);
	CHECK(p);
	CHECK(pcpa_pool_unref(heap, referred[at]) == 0);
	if (--p->refs == 0 && p->left)
		*p = pages[--nr_pages];
	frag_find(frag);
	referred[at] = referred[--nr_referred];
}

static void one_step(void)
{
	/* Tides, so that cache and ring run full and empty. */
	bool rising = step / 3000 % 2 == 0;

	switch (below(10)) {
	case 0: case 1: case 2:
		return rising ? get_one() : put_one(below(2));
	case 3:
		return rising ? get_part() : put_one(false);
	case 4:
		return put_one(below(2));
	case 5:
		return get_part();
	case 6: case 7:
		return get_one();
	case 8:
		return rising ? get_one() : put_many(below(2));
	default:
		return below(2) ? refer() : unrefer();
	}
}

static void run(unsigned ring_slots)
{
	struct pcpa_heap_options ho = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_pool_options po = PCPA_POOL_OPTIONS_INIT;

	memset(&m, 0, sizeof(m));
	nr_pages = nr_out = nr_referred = 0;
	ho.initial_bytes = 64u << 20;
	ho.flags = PCPA_HEAP_FIXED;
	ho.verbosity = 0;
	po.ring_slots = m.size = ring_slots;
	CHECK(pcpa_heap_create(&ho, &heap) == 0);
	CHECK(pcpa_pool_create(heap, &po, &pool) == 0);
	srand(seed);
	pcpa_pool_attach(pool);
	for (step = 0; step < STEPS; step++) {
		one_step();
		stats_same();
	}
	printf("ring of %u: %llu fast, %llu slow, %llu refills, %llu cached, "
	       "%llu cache full, %llu to the ring, %llu ring full, %llu referred\n",
	       ring_slots, (unsigned long long)m.s.alloc_fast,
	       (unsigned long long)m.s.alloc_slow,
	       (unsigned long long)m.s.alloc_refill,
	       (unsigned long long)m.s.recycle_cached,
	       (unsigned long long)m.s.recycle_cache_full,
	       (unsigned long long)m.s.recycle_ring,
	       (unsigned long long)m.s.recycle_ring_full,
	       (unsigned long long)m.s.recycle_released_ref);
	while (nr_referred > 0)
		unrefer();
	pcpa_pool_put_bulk(heap, out, nr_out);
	CHECK(pcpa_pool_destroy(pool) == 0);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

int main(void)
{
	static const unsigned rings[] = { 1024, 20, 64, 1, 300 };

	seed = getenv("MODEL_SEED") ? (unsigned)atoi(getenv("MODEL_SEED"))
				    : (unsigned)time(NULL);
	printf("MODEL_SEED=%u\n", seed);
	for (unsigned i = 0; i < 5; i++)
		run(rings[i]);
	return 0;
}
