/* SPDX-License-Identifier: BSD-2-Clause */
/* quickstart.c - a heap, a block, a burst of blocks, and where pages are. */
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_stats stats = PCPA_STATS_INIT;
	struct pcpa_heap *heap;
	void *burst[32];

	opts.max_bytes = 64u << 20; /* grows up to this on each node */
	int err = pcpa_heap_create(&opts, &heap);
	if (err) {
		fprintf(stderr, "heap: %s\n", strerror(-err));
		return 1;
	}

	char *frame = pcpa_alloc(heap, 1, 0); /* 2^1 pages, aligned to 2 */
	if (!frame) {
		perror("block");
		return 1;
	}
	memset(frame, 0x55, 2 * pcpa_heap_page_bytes(heap));
	pcpa_free(heap, frame); /* by any thread; the order is known */

	size_t n = pcpa_alloc_bulk(heap, 0, 0, burst, 32);
	pcpa_stats_read(heap, -1, &stats);
	printf("%zu blocks out, %llu pages cached, %llu free\n", n,
	       (unsigned long long)stats.cached_pages,
	       (unsigned long long)stats.free_pages);
	pcpa_free_bulk(heap, burst, n);

	return pcpa_heap_destroy(heap) ? 1 : 0; /* -EBUSY: blocks are out */
}
