/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arenas.c - the ranges of memory behind a heap, as a driver needs them to map
 * for DMA or to register as UMEM or external memory; and the text that shows
 * the heap from inside.
 */
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const backings[] = {
	[PCPA_BACKING_HUGETLB] = "hugetlb",
	[PCPA_BACKING_THP] = "transparent huge pages",
	[PCPA_BACKING_BASE] = "base pages",
};

/* Called for each arena; another value than 0 would end the walk. */
static int show_arena(const struct pcpa_arena_info *arena, void *arg)
{
	size_t *total = arg;

	printf("  %p, %zu KiB, node %d, %s of %zu KiB\n", arena->base,
	       arena->bytes >> 10, arena->node, backings[arena->backing],
	       arena->page_bytes >> 10);
	*total += arena->bytes;
	return 0;
}

static int show_zoneinfo(struct pcpa_heap *heap)
{
	int len = pcpa_stats_format(heap, PCPA_STATS_ZONEINFO, NULL, 0);
	char *text;

	if (len < 0)
		return -1;
	text = malloc((size_t)len + 1);
	if (!text)
		return -1;
	pcpa_stats_format(heap, PCPA_STATS_ZONEINFO, text, (size_t)len + 1);
	fputs(text, stdout);
	free(text);
	return 0;
}

int main(void)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	size_t total = 0;
	int err;

	opts.initial_bytes = 8u << 20; /* backed when create returns */
	opts.max_bytes = 64u << 20;
	err = pcpa_heap_create(&opts, &heap);
	if (err) {
		fprintf(stderr, "heap: %s\n", strerror(-err));
		return 1;
	}

	puts("arenas:");
	pcpa_for_each_arena(heap, show_arena, &total);
	if (total < opts.initial_bytes) {
		fprintf(stderr, "only %zu bytes are backed\n", total);
		return 1;
	}
	if (show_zoneinfo(heap)) {
		fprintf(stderr, "no text\n");
		return 1;
	}
	return pcpa_heap_destroy(heap) ? 1 : 0;
}
