/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remote.c - one thread allocates, another frees: what the library is for.
 * Blocks go through a ring, with a pattern in them that the consumer checks.
 *
 * In the steady state pages travel from the consumer's cache over the depot to
 * the producer's without the zone lock: after a warm-up it is taken fewer than
 * 100 times in a million pages.  In the end all are back.
 */
#include "conc.h"

#define RING 1024u /* a power of two */
#define BURST 32u
#define WARM 60000u
#define PAGES 400000u
#define PAIRS_MAX 2u

/* Single producer, single consumer. */
struct ring {
	uint32_t head PCPI_ALIGNED(PCPI_CACHELINE); /* producer's */
	uint32_t tail PCPI_ALIGNED(PCPI_CACHELINE); /* consumer's */
	void *slots[RING];
};

struct pair {
	struct ring ring;
	uint64_t done; /* pages freed so far */
};

struct remote_case {
	struct pcpa_heap *heap;
	unsigned burst;
	struct pair pairs[PAIRS_MAX];
	pthread_barrier_t warm, go; /* consumers and who measures */
	pthread_barrier_t done, noted;
};

static void ring_put(struct ring *r, void *block)
{
	uint32_t head = pcpi_load_relaxed(&r->head);

	/* acquire: pairs with ring_get(). */
	while (head - pcpi_load_acquire(&r->tail) == RING)
		sched_yield();
	r->slots[head % RING] = block;
	/* release: pairs with ring_get(). */
	pcpi_store_release(&r->head, head + 1);
}

static void *ring_get(struct ring *r)
{
	uint32_t tail = pcpi_load_relaxed(&r->tail);
	void *block;

	/* acquire: pairs with ring_put(). */
	while (pcpi_load_acquire(&r->head) == tail)
		sched_yield();
	block = r->slots[tail % RING];
	/* release: pairs with ring_put(). */
	pcpi_store_release(&r->tail, tail + 1);
	return block;
}

static void blocks_take(const struct remote_case *the, void **blocks)
{
	if (the->burst == 1)
		blocks[0] = pcpa_alloc(the->heap, 0, 0);
	else
		CHECK(pcpa_alloc_bulk(the->heap, 0, 0, blocks, the->burst) ==
		      the->burst);
	CHECK(blocks[0]);
}

static void blocks_give(const struct remote_case *the, void **blocks)
{
	if (the->burst == 1)
		pcpa_free(the->heap, blocks[0]);
	else
		pcpa_free_bulk(the->heap, blocks, the->burst);
}

static void rest(struct remote_case *the)
{
	pthread_barrier_wait(&the->done);
	pthread_barrier_wait(&the->noted); /* their ends take locks, too */
}

static void produce(struct remote_case *the, struct pair *p)
{
	void *blocks[BURST];
	uint64_t made = 0;
	unsigned i;

	while (made < WARM + PAGES) {
		blocks_take(the, blocks);
		for (i = 0; i < the->burst; i++) {
			conc_stamp(the->heap, blocks[i], 0, ++made);
			ring_put(&p->ring, blocks[i]);
		}
	}
	rest(the);
}

static void consume(struct remote_case *the, struct pair *p)
{
	void *blocks[BURST];
	uint64_t seen = 0;
	unsigned i;

	while (seen < WARM + PAGES) {
		if (seen == WARM) {
			pthread_barrier_wait(&the->warm);
			pthread_barrier_wait(&the->go);
		}
		for (i = 0; i < the->burst; i++) {
			blocks[i] = ring_get(&p->ring);
			conc_unstamp(the->heap, blocks[i], 0, ++seen);
		}
		blocks_give(the, blocks);
		/* relaxed: progress only. */
		pcpi_store_relaxed(&p->done, seen);
	}
	rest(the);
}

static void role(unsigned index, void *arg)
{
	struct remote_case *the = arg;

	if (index % 2)
		consume(the, &the->pairs[index / 2]);
	else
		produce(the, &the->pairs[index / 2]);
}

static uint64_t pages_done(struct remote_case *the, unsigned pairs)
{
	uint64_t pages = 0;
	unsigned i;

	for (i = 0; i < pairs; i++)
		pages += pcpi_load_relaxed(&the->pairs[i].done);
	return pages;
}

static void flows(unsigned pairs, unsigned burst)
{
	struct remote_case *the = calloc(1, sizeof(*the));
	struct conc_thread threads[2 * PAIRS_MAX];
	uint64_t locks, pages;

	CHECK(the);
	the->heap = conc_heap(128 * MIB, 0);
	the->burst = burst;
	pthread_barrier_init(&the->warm, NULL, pairs + 1);
	pthread_barrier_init(&the->go, NULL, pairs + 1);
	pthread_barrier_init(&the->done, NULL, 2 * pairs + 1);
	pthread_barrier_init(&the->noted, NULL, 2 * pairs + 1);
	conc_start(threads, 2 * pairs, role, the);
	pthread_barrier_wait(&the->warm);
	locks = conc_stats(the->heap).zone_locks;
	pages = pages_done(the, pairs);
	pthread_barrier_wait(&the->go);
	pthread_barrier_wait(&the->done);
	locks = conc_stats(the->heap).zone_locks - locks;
	pages = pages_done(the, pairs) - pages;
	fprintf(stderr, "%u pairs, burst %u: %" PRIu64 " zone locks, %" PRIu64
		" pages\n", pairs, burst, locks, pages);
	CHECK_U64(locks * 1000000, <, pages * 100);
	pthread_barrier_wait(&the->noted);
	conc_join(threads, 2 * pairs);
	CHECK_U64(conc_stats(the->heap).alloc_total, ==,
		  (uint64_t)pairs * (WARM + PAGES));
	conc_heap_end(the->heap);
	pthread_barrier_destroy(&the->warm);
	pthread_barrier_destroy(&the->go);
	pthread_barrier_destroy(&the->done);
	pthread_barrier_destroy(&the->noted);
	free(the);
}

int main(void)
{
	flows(1, 1);
	flows(1, BURST);
	flows(PAIRS_MAX, BURST);
	return 0;
}
