/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle.c - pages of another node in the cache of a thread that has gone idle go back
 * by time: a batch at the third tick, and then at every third; and so does what an
 * outbox has collected.
 */
#include "../vm.h"

#define CACHED 200u
#define BOXED 40u
#define BATCH 63u

static void *blocks[512];

static struct pcpa_heap *cached, *boxed;
static size_t taken;

static struct pcpa_heap *heap_make(void)
{
	struct pcpa_heap_options options = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	options.initial_bytes = 64 * MIB;
	options.batch_pages = BATCH;
	CHECK_EQ(pcpa_heap_create(&options, &heap), 0);
	return heap;
}

/* CACHED pages of node 1 in the thread's cache of that node. */
static void fill_cache(void)
{
	do
		CHECK((blocks[taken] = pcpa_alloc(cached, 0, PCPA_NODE(1))));
	while (++taken < 512 && vm_cached(cached, 1) != CACHED);
}

/* BOXED of them in the outbox of its own node's. */
static void fill_box(void)
{
	CHECK_EQ(pcpa_alloc_bulk(boxed, 4, PCPA_NODE(1), blocks, 1), 1);
	pcpa_free_bulk(boxed, blocks, 1);
	for (unsigned i = 0; i < BOXED; i++)
		CHECK((blocks[i] = pcpa_alloc(boxed, 0, PCPA_NODE(1))));
	pcpa_thread_flush(boxed);
	for (unsigned i = 0; i < BOXED; i++)
		pcpa_free(boxed, blocks[i]);
	CHECK_EQ(vm_cached(boxed, 1), BOXED);
}

static void give_back(unsigned node)
{
	(void)node;
	pcpa_free_bulk(cached, blocks, taken);
}

/* Twelve ticks. */
static void watch(void)
{
	uint64_t left = CACHED, box = BOXED;

	for (unsigned tick = 1; tick <= 12; tick++) {
		usleep(1050 * 1000);
		CHECK_EQ(pcpa_heap_tick(cached), 0);
		CHECK_EQ(pcpa_heap_tick(boxed), 0);
		if (tick % 3 == 0) {
			left -= left < BATCH ? left : BATCH;
			box -= box < BATCH ? box : BATCH;
		}
		CHECK_EQ(vm_cached(cached, 1), left);
		CHECK_EQ(vm_cached(boxed, 1), box);
	}
	CHECK_EQ(left + box, 0);
	printf("| %u pages of node 1, idle in the cache of a thread on node 0 | "
	       "%u at home after 3, 6 and 9 ticks each, the rest after 12 |\n"
	       "| %u pages of node 1, idle in its outbox | at home after 3 "
	       "ticks |\n",
	       CACHED, BATCH, BOXED);
}

int main(void)
{
	vm_run_on(0, 0);
	boxed = heap_make();
	fill_box();
	cached = heap_make();
	fill_cache();
	vm_thread_on(1, 0, give_back);
	CHECK_EQ(vm_cached(cached, 1), CACHED);
	watch();
	CHECK_EQ(pcpa_heap_destroy(boxed), 0);
	CHECK_EQ(pcpa_heap_destroy(cached), 0);
	return 0;
}
