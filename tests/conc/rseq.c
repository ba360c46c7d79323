/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rseq.c - hits that are interrupted.
 *
 *   signals   an owner in a tight loop of hits; another thread sends it signals
 *             as fast as it can, whose handler makes hits on the same cache.  The
 *             handler finds the cache before or after each move: nothing is lost
 *             or handed out twice.
 *   drains    owners in tight loops of hits beside a drainer, more than there are
 *             processors, so that they are preempted inside: no drain waits for
 *             one that is off its processor in a sequence.
 *
 * Both run with the mark alone, too (GLIBC_TUNABLES=glibc.pthread.rseq=0, and
 * wherever there are no sequences), where the handler is turned away inside.
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

int main(void)
{
	signals();
	drains();
	return 0;
}
