/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rseq.c - hits that are interrupted.
 *
 *   signals   an owner in a tight loop of hits; another thread sends it signals
 *             as fast as it can, whose handler makes hits on the same cache.  The
 *             handler finds the cache before or after each move: nothing is lost
 *             or handed out twice.
 *   drains    owners in tight loops of hits and refills beside a drainer, more
 *             than there are processors, so that they are preempted inside.  A
 *             drain is late where that is in a refill, which has the mark.
 *   slowed    pops that wait long between what they read and their commit, beside
 *             drains: a drainer that didn't have them begin again would take what
 *             they are about to take.  Nothing but sequences touches the caches
 *             during a drain, so none has to wait, whoever is off its processor:
 *             they are given no time to.
 *
 * The first two run with the mark alone, too (GLIBC_TUNABLES=
 * glibc.pthread.rseq=0, and wherever there are no sequences), where the handler is
 * turned away inside.
 */
#include "conc.h"

#include <signal.h>

#include "rseq.h"

#define MS 1500u
#define OWNERS 8u
#define DEPTH 3u

/* ---- Signals ------------------------------------------------------------------- */

static struct pcpa_heap *heap;
static __thread uint64_t handler_hits, handler_turned;
static uint64_t all_hits, all_turned;

/* A hit or nothing: the slow way is not for handlers. */
static void *hit_alloc(void)
{
	void *block = pcpi_hot_alloc(&heap->hot, 0, 0, false);

	return block ? block : pcpi_hot_alloc(&heap->hot, 0, 0, true);
}

static bool hit_free(void *block)
{
	return pcpi_hot_free(&heap->hot, block, false) ||
	       pcpi_hot_free(&heap->hot, block, true);
}

static void *kept; /* by the handler until its next run */

static void handler(int signo)
{
	uint64_t stamp = 1000;
	void *block;

	(void)signo;
	if (kept) {
		conc_unstamp(heap, kept, 0, stamp);
		if (!hit_free(kept)) {
			conc_stamp(heap, kept, 0, stamp);
			handler_turned++;
			return;
		}
		kept = NULL;
	}
	block = hit_alloc();
	handler_hits += block != NULL;
	handler_turned += block == NULL;
	kept = block;
	if (block)
		conc_stamp(heap, block, 0, stamp);
}

static bool stop, in;

static void interrupted(unsigned index, void *arg)
{
	void *blocks[DEPTH], *warm[32];
	unsigned i;

	(void)arg;
	CHECK(pcpa_alloc_bulk(heap, 0, 0, warm, 32) == 32);
	pcpa_free_bulk(heap, warm, 32);
	conc_raise(&in);
	while (!conc_flag(&stop)) {
		for (i = 0; i < DEPTH; i++) {
			/* None where a handler took just the one that was seen. */
			do
				blocks[i] = hit_alloc();
			while (!blocks[i]);
			conc_stamp(heap, blocks[i], 0, index + 1);
		}
		while (i-- > 0) {
			conc_unstamp(heap, blocks[i], 0, index + 1);
			while (!hit_free(blocks[i]))
				;
		}
	}
	all_hits = handler_hits;
	all_turned = handler_turned;
}

static void signals(void)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct conc_thread thread;
	uint64_t end, sent = 0;

	heap = conc_heap(16 * MIB, 0);
	CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
	conc_start(&thread, 1, interrupted, NULL);
	conc_await(&in);
	end = conc_now_ms() + MS;
	for (; conc_now_ms() < end; sent++)
		CHECK(pthread_kill(thread.id, SIGUSR1) == 0);
	conc_raise(&stop);
	conc_join(&thread, 1);
	if (kept) {
		conc_unstamp(heap, kept, 0, 1000);
		pcpa_free(heap, kept);
	}
	fprintf(stderr, "%" PRIu64 " signals, %" PRIu64 " hits in handlers, %"
		PRIu64 " turned away\n", sent, all_hits, all_turned);
	CHECK_U64(all_hits, >, 0);
	conc_heap_end(heap);
}

/* ---- Drains --------------------------------------------------------------------- */

static void hitter(unsigned index, void *arg)
{
	void *block;

	(void)arg;
	while (!conc_flag(&stop)) {
		block = pcpa_alloc(heap, 0, 0);
		CHECK(block);
		conc_stamp(heap, block, 0, index + 1);
		conc_unstamp(heap, block, 0, index + 1);
		pcpa_free(heap, block);
	}
}

static void drains(void)
{
	struct conc_thread threads[OWNERS];
	uint64_t end = conc_now_ms() + MS;
	unsigned n = 0, late = 0;

	stop = false;
	heap = conc_heap(64 * MIB, 0);
	conc_start(threads, OWNERS, hitter, NULL);
	do {
		late += pcpa_heap_drain(heap) != 0;
		n++;
	} while (conc_now_ms() < end);
	conc_raise(&stop);
	conc_join(threads, OWNERS);
	fprintf(stderr, "%u drains, %u late, sequences: %s\n", n, late,
		heap->env.rseq ? "yes" : "no");
	CHECK_U64(conc_stats(heap).drains_sweep, >, 0);
	conc_heap_end(heap);
}

/* ---- Slowed ----------------------------------------------------------------------- */

#if PCPI_RSEQ

#define SLOW_OWNERS 4u
#define SLOW_ORDER 1u
#define STOCK 4u

/* Held by a drain, and by an owner on a slow path. */
static pthread_mutex_t between = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pops, cuts; /* a */

/* pcpi_section_pop() with a wait in it. */
static bool slow_pop(struct pcpi_cache *c, struct pcpi_ring *ring, uint32_t *pfn)
{
	uint32_t head;
	void *tmp, *at;

	__asm__ __volatile__ goto(PCPI_MOVE_BEGIN
				  "movl %c[rhead](%[ring]), %[head]\n\t"
				  "cmpl %c[rtail](%[ring]), %[head]\n\t"
				  "je %l[out]\n\t"
				  "subl $1, %[head]\n\t"
				  "movl $300, %k[at]\n"
				  "5:\tpause\n\t"
				  "subl $1, %k[at]\n\t"
				  "jnz 5b\n\t"
				  "movl %c[rmask](%[ring]), %k[at]\n\t"
				  "andl %[head], %k[at]\n\t"
				  "movq %c[rslots](%[ring]), %[tmp]\n\t"
				  "movl (%[tmp],%q[at],4), %k[at]\n\t"
				  "movl %[head], %c[rhead](%[ring])"
				  PCPI_RSEQ_END
				  : [tmp] "=&r"(tmp), [head] "=&r"(head), [at] "=&r"(at)
				  : PCPI_MOVE_CACHE(c), PCPI_MOVE_RING(ring)
				  : "memory", "cc"
				  : out);
	*pfn = (uint32_t)(uintptr_t)at;
	return true;
out:
	return false;
}

struct stock {
	void *blocks[STOCK];
	unsigned n;
	uint64_t stamp;
};

static void stock_put(struct stock *s, void *block)
{
	CHECK(block);
	conc_stamp(heap, block, SLOW_ORDER, s->stamp);
	s->blocks[s->n++] = block;
}

static void *stock_get(struct stock *s)
{
	void *block = s->blocks[--s->n];

	conc_unstamp(heap, block, SLOW_ORDER, s->stamp);
	return block;
}

static void stock_refill(struct stock *s)
{
	pthread_mutex_lock(&between);
	while (s->n < STOCK)
		stock_put(s, pcpa_alloc(heap, SLOW_ORDER, 0));
	pthread_mutex_unlock(&between);
}

/* Puts a block in and takes one out, by sequences only. */
static void stock_turn(struct stock *s, struct pcpi_cache *c)
{
	struct pcpi_ring *ring = &c->list[SLOW_ORDER].ring;
	void *block = stock_get(s);
	uint32_t pfn = (uint32_t)((size_t)((char *)block - heap->hot.base) >>
				  heap->hot.page_shift);
	uint32_t head;

	if (!pcpi_section_push(c, ring, pfn, &head)) {
		stock_put(s, block);
		return;
	}
	if (!slow_pop(c, ring, &pfn)) {
		pcpi_fetch_add_relaxed(&cuts, 1);
		return;
	}
	(void)pcpi_allocs_add(&c->list[SLOW_ORDER].allocs, 1);
	pcpi_fetch_add_relaxed(&pops, 1);
	stock_put(s, heap->hot.base + ((size_t)pfn << heap->hot.page_shift));
}

static void slow_owner(unsigned index, void *arg)
{
	struct stock s = { .stamp = index + 1 };

	(void)arg;
	while (!conc_flag(&stop)) {
		if (s.n == 0)
			stock_refill(&s);
		stock_turn(&s, pcpi_hot_cache(&heap->hot));
	}
	/* The drains are over. */
	while (s.n > 0)
		pcpa_free_sized(heap, stock_get(&s), SLOW_ORDER);
}

static void slowed(void)
{
	struct conc_thread threads[SLOW_OWNERS];
	uint64_t end = conc_now_ms() + MS;
	unsigned n;

	stop = false;
	heap = conc_heap(64 * MIB, 0);
	if (!heap->env.rseq) {
		conc_heap_end(heap);
		return;
	}
	conc_start(threads, SLOW_OWNERS, slow_owner, NULL);
	for (n = 0; conc_now_ms() < end; n++) {
		pthread_mutex_lock(&between);
		CHECK(pcpi_heap_sweep(heap, 0).late == 0);
		pthread_mutex_unlock(&between);
		usleep(20); /* lets owners have the mutex */
	}
	conc_raise(&stop);
	conc_join(threads, SLOW_OWNERS);
	fprintf(stderr, "%u drains beside %" PRIu64 " slow pops, %" PRIu64
		" cut or empty\n", n, pops, cuts);
	CHECK_U64(pops, >, 0);
	conc_heap_end(heap);
}

#else

static void slowed(void)
{
}

#endif

int main(void)
{
	signals();
	drains();
	slowed();
	return 0;
}
