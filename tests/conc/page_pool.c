/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool.c - one thread gets packets, many put them: each is seen once, none is
 * in two hands, and in the end every page is accounted for.
 *
 *   packets   an owner, and threads that put one by one, in bulk, and by reference;
 *             whole pages, parts of pages, small rings and large
 *   endings   pools are destroyed while their packets are out, on their way to
 *             threads that put them; who puts the last ends the pool
 *   owners    a pool goes from thread to thread
 *   firsts    an owner that counts parts alone, and the first parts that others put
 *   forks     with all of that under way
 *
 * A packet carries the number that its owner gave it, at both ends of what it has.
 */
#include <pcpalloc/page_pool.h>
#include <sys/wait.h>

#include "conc.h"
#include "page_pool.h"

#define PUTTERS_MAX 6u
#define RING 1024u
#define BURST 32u

/* One producer, one consumer. */
struct lane {
	uint32_t head PCPI_ALIGNED(PCPI_CACHELINE);
	uint32_t tail PCPI_ALIGNED(PCPI_CACHELINE);
	uint64_t sum PCPI_ALIGNED(PCPI_CACHELINE); /* of the numbers seen */
	uint64_t seen;
	void *slots[RING];
};

struct packets {
	struct pcpa_heap *heap;
	struct pcpa_pool *pool;
	size_t part_bytes; /* 0: whole pages */
	unsigned putters;
	uint64_t number;
	bool refer;
	struct lane lanes[PUTTERS_MAX];
};

/* ---- Lanes ---------------------------------------------------------------------- */

static bool lane_put(struct lane *l, void *p)
{
	uint32_t head = pcpi_load_relaxed(&l->head);

	/* acquire: pairs with lane_get(). */
	if (head - pcpi_load_acquire(&l->tail) == RING)
		return false;
	l->slots[head % RING] = p;
	/* release: pairs with lane_get(). */
	pcpi_store_release(&l->head, head + 1);
	return true;
}

static bool lane_get(struct lane *l, void **p)
{
	uint32_t tail = pcpi_load_relaxed(&l->tail);

	/* acquire: pairs with lane_put(). */
	if (pcpi_load_acquire(&l->head) == tail)
		return false;
	*p = l->slots[tail % RING];
	/* release: pairs with lane_put(). */
	pcpi_store_release(&l->tail, tail + 1);
	return true;
}

static void lane_put_all(struct lane *l, void *p)
{
	while (!lane_put(l, p))
		sched_yield();
}

/* ---- Packets ------------------------------------------------------------------------ */

static size_t packet_words(const struct packets *the)
{
	return (the->part_bytes ? the->part_bytes : 1024) / sizeof(uint64_t);
}

static void packet_write(const struct packets *the, void *buf, uint64_t number)
{
	uint64_t *words = buf, *last = words + packet_words(the) - 1;

	conc_expect_free(the->heap, *words);
	conc_expect_free(the->heap, *last);
	*words = *last = number;
}

/* Before a put: its number, and nothing is left of it. */
static uint64_t packet_read(const struct packets *the, void *buf)
{
	uint64_t *words = buf, *last = words + packet_words(the) - 1;
	uint64_t number = *words;

	CHECK_U64(number, !=, 0);
	CHECK_U64(*last, ==, number);
	*words = *last = 0;
	return number;
}

static void *packet_get(struct packets *the)
{
	void *buf;

	do {
		buf = the->part_bytes
			      ? pcpa_pool_get_frag(the->pool, the->part_bytes, NULL)
			      : pcpa_pool_get(the->pool);
		if (!buf) {
			CHECK(errno == ENOMEM);
			sched_yield();
		}
	} while (!buf);
	return buf;
}

/* With a reference the number stays to be read after the put. */
static void put_referred(struct packets *the, void *buf, uint64_t number)
{
	uint64_t *words = buf;

	CHECK(pcpa_pool_ref(the->heap, buf) == 0);
	words[1] = number;
	pcpa_pool_put(the->pool, buf);
	CHECK_U64(words[1], ==, number);
	words[1] = 0;
	CHECK(pcpa_pool_unref(the->heap, buf) == 0);
}

static void own(struct packets *the)
{
	uint64_t random = 88172645463325252u, i;
	unsigned lane;
	void *buf;

	for (i = 1; i <= the->number; i++) {
		buf = packet_get(the);
		packet_write(the, buf, i);
		lane = (unsigned)(conc_random(&random) % (the->putters + 1));
		if (lane == the->putters) { /* by ourselves */
			CHECK_U64(packet_read(the, buf), ==, i);
			if (the->refer && i % 64 == 0)
				put_referred(the, buf, i);
			else
				pcpa_pool_put(the->pool, buf);
			pcpi_fetch_add_relaxed(&the->lanes[0].seen, 1);
			pcpi_fetch_add_relaxed(&the->lanes[0].sum, i);
			continue;
		}
		lane_put_all(&the->lanes[lane], buf);
	}
	for (lane = 0; lane < the->putters; lane++)
		lane_put_all(&the->lanes[lane], NULL);
}

static void put_some(struct packets *the, struct lane *l, void **bufs, size_t n,
		     unsigned index)
{
	uint64_t sum = 0, number;
	size_t i;

	for (i = 0; i < n; i++) {
		sum += number = packet_read(the, bufs[i]);
		if (the->refer && number % 64 == 0)
			put_referred(the, bufs[i], number);
		else if (index % 2 == 0)
			pcpa_pool_put(the->pool, bufs[i]);
		else
			continue;
		bufs[i] = NULL;
	}
	pcpa_pool_put_bulk(the->heap, bufs, n);
	pcpi_fetch_add_relaxed(&l->sum, sum);
	pcpi_fetch_add_relaxed(&l->seen, n);
}

static void put(struct packets *the, unsigned index)
{
	struct lane *l = &the->lanes[index];
	void *bufs[BURST];
	size_t n = 0;

	for (;;) {
		if (!lane_get(l, &bufs[n])) {
			if (n == 0)
				sched_yield();
			put_some(the, l, bufs, n, index);
			n = 0;
			continue;
		}
		if (!bufs[n])
			break;
		if (++n == BURST) {
			put_some(the, l, bufs, n, index);
			n = 0;
		}
	}
	put_some(the, l, bufs, n, index);
}

static void role(unsigned index, void *arg)
{
	struct packets *the = arg;

	if (index == 0)
		own(the);
	else
		put(the, index - 1);
}

static void all_seen(const struct packets *the)
{
	uint64_t seen = 0, sum = 0;
	unsigned i;

	for (i = 0; i < the->putters; i++) {
		seen += the->lanes[i].seen;
		sum += the->lanes[i].sum;
	}
	CHECK_U64(seen, ==, the->number);
	CHECK_U64(sum, ==, the->number * (the->number + 1) / 2);
}

static struct packets *packets_make(unsigned flags, size_t bytes,
				    unsigned ring_slots)
{
	struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;
	struct packets *the = aligned_alloc(PCPI_CACHELINE, sizeof(*the));

	CHECK(the);
	memset(the, 0, sizeof(*the));
	the->heap = conc_heap(bytes, flags);
	o.ring_slots = ring_slots;
	CHECK(pcpa_pool_create(the->heap, &o, &the->pool) == 0);
	return the;
}

static void packets(unsigned flags, size_t bytes, unsigned ring_slots,
		    size_t part_bytes, unsigned putters, uint64_t number)
{
	struct packets *the = packets_make(flags, bytes, ring_slots);
	struct pcpa_pool_stats s = PCPA_POOL_STATS_INIT;

	the->part_bytes = part_bytes;
	the->putters = putters;
	the->number = number;
	the->refer = true;
	conc_run(putters + 1, role, the);
	all_seen(the);
	CHECK(pcpa_pool_stats_read(the->pool, &s) == 0);
	CHECK_U64(s.bad_puts, ==, 0);
	fprintf(stderr, "%" PRIu64 " packets, %u putters, ring %u, parts of %zu: "
		"%" PRIu64 " fast, %" PRIu64 " slow, %" PRIu64 " refills, %" PRIu64
		" to the ring, %" PRIu64 " times full\n", number, putters,
		ring_slots, part_bytes, s.alloc_fast, s.alloc_slow,
		s.alloc_refill, s.recycle_ring, s.recycle_ring_full);
	CHECK(pcpa_pool_destroy(the->pool) == 0);
	conc_heap_end(the->heap);
	free(the);
}

/* ---- Endings -------------------------------------------------------------------------- */

struct endings {
	struct packets *the;
	struct pcpa_pool *pools[3];
	unsigned rounds;
	pthread_barrier_t round;
};

/* Everything that is in the putters' lanes belongs to pools that are ended. */
static void end_rounds(struct endings *e)
{
	struct packets *the = e->the;
	uint64_t random = 362436069;
	unsigned round, i, p;
	int left;

	for (round = 0; round < e->rounds; round++) {
		struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;

		o.ring_slots = 1 + (unsigned)conc_random(&random) % 200;
		for (p = 0; p < 3; p++)
			CHECK(pcpa_pool_create(the->heap, &o, &e->pools[p]) == 0);
		for (i = 0; i < 600; i++) {
			void *buf = pcpa_pool_get(e->pools[i % 3]);

			CHECK(buf);
			packet_write(the, buf, i + 1);
			lane_put_all(&the->lanes[i % the->putters], buf);
		}
		for (p = 0; p < 3; p++) {
			left = pcpa_pool_destroy(e->pools[p]);
			CHECK(left >= 0 && left <= 200);
		}
		for (i = 0; i < the->putters; i++)
			lane_put_all(&the->lanes[i], NULL);
		pthread_barrier_wait(&e->round);
		/* All puts are over. */
		CHECK_U64(the->heap->pools.count, ==, 0);
		CHECK_U64(conc_stats(the->heap).used_blocks, ==, 0);
		pthread_barrier_wait(&e->round);
	}
}

static void end_puts(struct endings *e, unsigned index)
{
	struct packets *the = e->the;
	struct lane *l = &the->lanes[index];
	void *bufs[BURST];
	unsigned round;
	size_t n = 0;

	for (round = 0; round < e->rounds; round++) {
		for (;;) {
			if (!lane_get(l, &bufs[n])) {
				sched_yield();
				continue;
			}
			if (!bufs[n])
				break;
			packet_read(the, bufs[n++]);
			/* Mixed pools: the bulk finds them. */
			if (n == (index % 2 ? BURST : 1)) {
				pcpa_pool_put_bulk(the->heap, bufs, n);
				n = 0;
			}
		}
		pcpa_pool_put_bulk(the->heap, bufs, n);
		n = 0;
		pthread_barrier_wait(&e->round);
		pthread_barrier_wait(&e->round);
	}
}

static void end_role(unsigned index, void *arg)
{
	struct endings *e = arg;

	if (index == 0)
		end_rounds(e);
	else
		end_puts(e, index - 1);
}

static void endings(unsigned putters, unsigned rounds)
{
	struct endings e = { .rounds = rounds };

	e.the = packets_make(0, 32 * MIB, 1);
	CHECK(pcpa_pool_destroy(e.the->pool) == 0);
	e.the->putters = putters;
	pthread_barrier_init(&e.round, NULL, putters + 1);
	conc_run(putters + 1, end_role, &e);
	pthread_barrier_destroy(&e.round);
	conc_heap_end(e.the->heap);
	free(e.the);
}

/* ---- Owners --------------------------------------------------------------------------- */

struct relay {
	struct pcpa_heap *heap;
	struct pcpa_pool *pool;
	unsigned turns;
	unsigned refused; /* a */
};

static void run_relay(unsigned index, void *arg)
{
	struct relay *r = arg;
	void *bufs[40];
	unsigned turn;
	size_t n, i;

	(void)index;
	for (turn = 0; turn < r->turns;) {
		n = pcpa_pool_get_bulk(r->pool, bufs, 40);
		if (n == 0) {
			CHECK(errno == EPERM);
			pcpi_fetch_add_relaxed(&r->refused, 1);
			sched_yield();
			continue;
		}
		for (i = 0; i < n; i++) {
			uint64_t *word = bufs[i];

			CHECK_U64(*word, ==, 0);
			*word = index + 1;
		}
		for (i = 0; i < n / 2; i++) {
			*(uint64_t *)bufs[i] = 0;
			pcpa_pool_put(r->pool, bufs[i]);
		}
		CHECK(pcpa_pool_detach(r->pool) == 0);
		for (; i < n; i++) {
			CHECK_U64(*(uint64_t *)bufs[i], ==, index + 1);
			*(uint64_t *)bufs[i] = 0;
			pcpa_pool_put(r->pool, bufs[i]);
		}
		turn++;
	}
}

static void owners(unsigned threads, unsigned turns)
{
	struct packets *the = packets_make(0, 32 * MIB, 64);
	struct relay r = { the->heap, the->pool, turns, 0 };

	conc_run(threads, run_relay, &r);
	fprintf(stderr, "%u turns of %u owners, %u refused\n", turns, threads,
		r.refused);
	CHECK(pcpa_pool_destroy(the->pool) == 0);
	conc_heap_end(the->heap);
	free(the);
}

/* ---- Firsts ----------------------------------------------------------------------------- */

#define FIRSTS 64u

struct firsts {
	struct packets *the;
	unsigned rounds;
	pthread_barrier_t round;
};

/* Of each page one part is the owner's and one another thread's, and both put at once:
 * a page whose count went wrong stays out, or is let go twice. */
static void first_role(unsigned index, void *arg)
{
	struct firsts *f = arg;
	struct packets *the = f->the;
	struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;
	struct pcpa_pool_stats s = PCPA_POOL_STATS_INIT;
	static void *parts[3][FIRSTS];
	unsigned round, i;

	for (round = 0; round < f->rounds; round++) {
		if (index == 0) {
			CHECK(pcpa_pool_create(the->heap, &o, &the->pool) == 0);
			for (i = 0; i < 3 * FIRSTS; i++) {
				void *part = pcpa_pool_get_frag(the->pool, 1344, NULL);

				CHECK(part);
				parts[i % 3][i / 3] = part;
			}
		}
		pthread_barrier_wait(&f->round);
		for (i = 0; i < FIRSTS; i++)
			pcpa_pool_put(the->pool, parts[index][i]);
		pthread_barrier_wait(&f->round);
		if (index != 0)
			continue;
		CHECK(pcpa_pool_stats_read(the->pool, &s) == 0);
		/* Parts come off the last page still. */
		CHECK_U64(s.recycle_cached + s.recycle_ring, ==, FIRSTS - 1);
		CHECK_U64(s.bad_puts, ==, 0);
		CHECK(pcpa_pool_destroy(the->pool) == 0);
		CHECK_U64(conc_stats(the->heap).used_blocks, ==, 0);
	}
}

static void firsts(unsigned rounds)
{
	struct firsts f = { .rounds = rounds };

	f.the = packets_make(0, 32 * MIB, 64);
	CHECK(pcpa_pool_destroy(f.the->pool) == 0);
	pthread_barrier_init(&f.round, NULL, 3);
	conc_run(3, first_role, &f);
	pthread_barrier_destroy(&f.round);
	conc_heap_end(f.the->heap);
	free(f.the);
}

/* ---- Forks ------------------------------------------------------------------------------ */

static void forks(unsigned number)
{
	struct packets *the = packets_make(PCPA_HEAP_COW, 16 * MIB, 100);
	struct conc_thread threads[3];
	unsigned i;
	int status;

	the->putters = 2;
	the->number = number;
	conc_start(threads, 3, role, the);
	for (i = 0; i < 20; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0) {
			void *buf;

			/* The locks are free, and the pool is ours. */
			CHECK(pcpa_pool_attach(the->pool) == 0);
			buf = pcpa_pool_get(the->pool);
			CHECK(buf);
			pcpa_pool_put(the->pool, buf);
			CHECK(pcpa_pool_detach(the->pool) == 0);
			_Exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	conc_join(threads, 3);
	all_seen(the);
	CHECK(pcpa_pool_destroy(the->pool) == 0);
	conc_heap_end(the->heap);
	free(the);
}

int main(void)
{
	unsigned number = conc_size(10000000, 300000, 30000);

	packets(0, 32 * MIB, 1024, 0, 1, number);
	packets(0, 32 * MIB, 1024, 2048, 1, number / 4);
	packets(0, 32 * MIB, 64, 0, PUTTERS_MAX, number / 4);
	packets(0, 32 * MIB, 1, 512, 3, number / 4);
	/* Hardly enough memory: gets fail and are tried again. */
	packets(0, 2 * MIB, 64, 0, 2, number / 4);
	packets(PCPA_HEAP_CHECKS, 16 * MIB, 300, 0, 2, number / 20);
	endings(4, conc_size(5000, 100, 20));
	owners(4, conc_size(20000, 500, 50));
	firsts(conc_size(20000, 1000, 100));
	if (!CONC_TSAN)
		forks(number / 4);
	return 0;
}
