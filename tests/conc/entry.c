/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entry.c - two heaps that share an entry of the thread's table, used in turns,
 * with a signal handler after every single instruction of the change (the
 * processor's trap flag): it never finds a heap there with another heap's cache,
 * with which its hit would give out the wrong heap's block.
 */
#include "steps.h"

#if STEPS

static struct pcpa_heap *heaps[2];
static struct pcpi_entry *entry;
static uint64_t seen[3]; /* with either heap in it, and with none */

static void look(void)
{
	const struct pcpi_hot *hot = pcpi_load_relaxed(&entry->heap);
	unsigned h;

	for (h = 0; h < 2; h++)
		if (hot == &heaps[h]->hot) {
			CHECK(entry->cache->env == &heaps[h]->env);
			break;
		}
	CHECK(h < 2 || !hot);
	seen[h]++;
}

static void *alloc_in_steps(struct pcpa_heap *heap)
{
	void *block;

	steps_begin();
	block = pcpa_alloc(heap, 0, 0);
	steps_end();
	return block;
}

static void change(unsigned to)
{
	void *block = alloc_in_steps(heaps[to]);

	CHECK(block);
	CHECK(entry->heap == &heaps[to]->hot);
	pcpa_free(heaps[to], block);
}

int main(void)
{
	struct pcpa_heap *all[PCPI_ENTRIES + 1];
	unsigned i;

	for (i = 0; i <= PCPI_ENTRIES; i++) {
		all[i] = conc_growing_heap(8 * MIB, 0);
		pcpa_free(all[i], pcpa_alloc(all[i], 0, 0));
	}
	heaps[0] = all[0];
	heaps[1] = all[PCPI_ENTRIES];
	CHECK(heaps[0]->hot.entry == heaps[1]->hot.entry);
	entry = pcpi_hot_entry(&heaps[0]->hot);
	steps_setup(look);
	for (i = 0; i < 4; i++)
		change(i % 2);
	fprintf(stderr, "%" PRIu64 " steps\n", steps_taken);
	for (i = 0; i < 3; i++)
		CHECK_U64(seen[i], >, 0);
	for (i = 0; i <= PCPI_ENTRIES; i++)
		conc_heap_end(all[i]);
	return 0;
}

#else

int main(void)
{
	fprintf(stderr, "no steps here: skipped\n");
	return 77;
}

#endif
