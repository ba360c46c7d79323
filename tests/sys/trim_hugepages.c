/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trim_hugepages.c - a trim gives pages back to the machine's hugetlb pool, whole
 * ones only, and no area is made by it.  Needs root; leaves the pool as it was.
 */
#include <pcpalloc/stats.h>
#include <string.h>

#include "../support/expect.h"
#include "../support/hugepool.h"
#include "../support/smaps.h"

#define PAGE_BYTES POOL_PAGE_BYTES
#define PAGES 24u
#define ROUNDS 1000u

/* Of this process: others may use the pool, too. */
static long own_pages(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "HugetlbPages: %ld kB", &kib);
	if (f)
		fclose(f);
	return kib * 1024 / (long)PAGE_BYTES;
}

static struct pcpa_heap *make(void)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.initial_bytes = PAGES * PAGE_BYTES;
	o.max_bytes = PAGES * PAGE_BYTES;
	o.hugepage_bytes = PAGE_BYTES;
	CHECK(pcpa_heap_create(&o, &heap) == 0);
	return heap;
}

/* All pages in use, then half of them, then all again. */
static void round_trip(struct pcpa_heap *heap, unsigned odd)
{
	void *blocks[PAGES];
	unsigned n = 0, i;

	while (n < PAGES && (blocks[n] = pcpa_alloc(heap, 9, 0)))
		memset(blocks[n++], 1, 1);
	CHECK(n == PAGES);
	for (i = odd; i < n; i += 2)
		pcpa_free(heap, blocks[i]);
	CHECK(pcpa_heap_trim(heap, 0) == n / 2 * PAGE_BYTES);
	CHECK(own_pages() == (long)PAGES / 2);
	for (i = !odd; i < n; i += 2)
		pcpa_free(heap, blocks[i]);
}

int main(void)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	struct pcpa_heap *heap;
	unsigned before, i;

	/* A pool that is large enough may be there. */
	before = (unsigned)pool_file("nr_hugepages");
	if (!pool_take(before > PAGES ? before : PAGES)) {
		puts("skipped: needs root, a pool that isn't in use, and memory");
		return 77;
	}
	heap = make();
	CHECK(own_pages() == (long)PAGES);
	round_trip(heap, 0);
	before = smaps_areas();
	for (i = 1; i < ROUNDS; i++)
		round_trip(heap, i % 2);
	CHECK(smaps_areas() <= before);
	CHECK(pcpa_heap_trim(heap, 0) == PAGES * PAGE_BYTES / 2);
	CHECK(own_pages() == 0);
	CHECK(pcpa_stats_read(heap, -1, &s) == 0);
	CHECK(s.managed_pages == 0 && s.trim_failed == 0);
	CHECK(pcpa_heap_destroy(heap) == 0);
	return 0;
}
