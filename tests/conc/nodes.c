/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodes.c - a machine with two nodes, whose threads move between them, hand
 * each other blocks, and free what is not of their node, while caches are
 * drained: outboxes and second caches lose and double nothing.
 *
 * The nodes are invented (hwloc reads a description), and each thread says on
 * which CPU it is.  Time goes a thousand times as fast, so that a tick each
 * millisecond asks the threads where they are, and takes from their outboxes.
 */
#include "conc.h"

#include "sys/sys.h"

#define THREADS 4u
#define BOXES 64u
#define MS 1500u

#define HASTE 1000u

static __thread int my_cpu;

static uint64_t coarse_hurried(void)
{
	return pcpi_sys_linux.clock_ns() * HASTE;
}

static int cpu_said(void)
{
	return my_cpu;
}

struct nodes_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	bool stop;
	void *boxes[BOXES]; /* a: blocks that change hands */
};

/* A block of order 0 to 3, by its node or the thread's. */
static void *block_take(struct nodes_case *the, uint64_t *random)
{
	uint64_t r = conc_random(random);
	unsigned order = (unsigned)(r % PCPI_PCP_ORDERS), node = r >> 8 & 1;
	void *block;

	if (r >> 16 & 1)
		return pcpa_alloc(the->heap, order, 0);
	block = pcpa_alloc(the->heap, order, PCPA_NODE(node) | PCPA_THISNODE);
	if (block)
		CHECK(pcpa_block_node(the->heap, block) == (int)node);
	return block;
}

/* Puts it in a box, and frees what was there. */
static void block_pass(struct nodes_case *the, void *block, uint64_t *random)
{
	void **box = &the->boxes[conc_random(random) % BOXES];
	unsigned order;

	if (block)
		conc_stamp(the->heap, block,
			   (unsigned)pcpa_block_order(the->heap, block), 7);
	/* acquire/release: pairs with itself, in another thread. */
	block = pcpi_exchange_acq_rel(box, block);
	if (!block)
		return;
	order = (unsigned)pcpa_block_order(the->heap, block);
	conc_unstamp(the->heap, block, order, 7);
	pcpa_free(the->heap, block);
}

static void passer(unsigned index, void *arg)
{
	struct nodes_case *the = arg;
	uint64_t random = the->seed + index * 2 + 1;

	while (!conc_flag(&the->stop)) {
		if (conc_random(&random) % 128 == 0)
			my_cpu = (int)(conc_random(&random) % 8);
		block_pass(the, block_take(the, &random), &random);
	}
}

static void boxes_empty(struct nodes_case *the)
{
	unsigned i;

	for (i = 0; i < BOXES; i++)
		if (the->boxes[i])
			conc_unstamp(the->heap, the->boxes[i],
				     (unsigned)pcpa_block_order(the->heap,
								the->boxes[i]),
				     7);
	pcpa_free_bulk(the->heap, the->boxes, BOXES);
}

static void passed(uint64_t seed, unsigned flags)
{
	struct nodes_case the = {.heap = conc_heap(8 * MIB, flags),
				 .seed = seed};
	struct conc_thread threads[THREADS];
	uint64_t end = conc_now_ms() + MS;
	uint64_t random = seed;
	struct pcpa_stats s;

	CHECK(the.heap->nr_zones == 2);
	conc_start(threads, THREADS, passer, &the);
	do {
		int err = conc_random(&random) % 8 ? pcpa_heap_tick(the.heap)
						   : pcpa_heap_drain(the.heap);

		CHECK(err == 0 || err == -ETIMEDOUT);
		conc_sleep_ms(1);
	} while (conc_now_ms() < end);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	boxes_empty(&the);
	s = conc_stats(the.heap);
	fprintf(stderr,
		"%" PRIu64 " blocks, %" PRIu64 " swept, %" PRIu64
		" ticks, %u caches\n",
		s.alloc_total, s.drains_sweep, the.heap->env.ticks,
		conc_caches_made(the.heap));
	CHECK(the.heap->env.ticks > 0);
	CHECK_U64(conc_caches_made(the.heap), <=, 2 * (THREADS + 1));
	conc_heap_end(the.heap);
}

int main(void)
{
	static struct pcpi_sys sys;
	uint64_t seed = conc_seed();

	CHECK(setenv("HWLOC_SYNTHETIC",
		     "Package:2 [NUMANode(memory=1GiB)] PU:4", 1) == 0);
	sys = pcpi_sys_linux;
	sys.cpu = cpu_said;
	sys.coarse_ns = coarse_hurried;
	pcpi_sys = &sys;
	passed(seed, 0);
	passed(seed, PCPA_HEAP_NO_IPI);
	passed(seed, PCPA_HEAP_CHECKS);
	return 0;
}
