/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trim_hugepages.c - a trim gives pages back to the machine's hugetlb pool, whole
 * ones only, and no area is made by it.  Needs root; leaves the pool as it was.
 */
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define PAGE_BYTES ((size_t)2 << 20)
#define PAGES 24u
#define ROUNDS 1000u

static long pool_before = -1, pool_now;

static long pool_file(const char *name)
{
	char path[128];
	long x = -1;
	FILE *f;

	snprintf(path, sizeof(path), POOL "%s", name);
	f = fopen(path, "r");
	if (f && fscanf(f, "%ld", &x) != 1)
		x = -1;
	if (f)
		fclose(f);
	return x;
}

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

static int pool_set(long pages)
{
	FILE *f = fopen(POOL "nr_hugepages", "w");

	if (!f)
		return -1;
	fprintf(f, "%ld", pages);
	return fclose(f);
}

static void restore(void)
{
	if (pool_before >= 0)
		pool_set(pool_before);
}

static void on_signal(int sig)
{
	restore();
	fprintf(stderr, "signal %d\n", sig);
	_exit(1);
}

#define EXPECT(cond)                                                           \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#cond);                                        \
			restore();                                             \
			exit(1);                                               \
		}                                                              \
	} while (0)

static unsigned areas(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	EXPECT(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static struct pcpa_heap *make(void)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.initial_bytes = PAGES * PAGE_BYTES;
	o.max_bytes = PAGES * PAGE_BYTES;
	o.hugepage_bytes = PAGE_BYTES;
	EXPECT(pcpa_heap_create(&o, &heap) == 0);
	return heap;
}

/* All pages in use, then half of them, then all again. */
static void round_trip(struct pcpa_heap *heap, unsigned odd)
{
	void *blocks[PAGES];
	unsigned n = 0, i;

	while (n < PAGES && (blocks[n] = pcpa_alloc(heap, 9, 0)))
		memset(blocks[n++], 1, 1);
	EXPECT(n == PAGES);
	for (i = odd; i < n; i += 2)
		pcpa_free(heap, blocks[i]);
	EXPECT(pcpa_heap_trim(heap, 0) == n / 2 * PAGE_BYTES);
	EXPECT(own_pages() == (long)PAGES / 2);
	for (i = !odd; i < n; i += 2)
		pcpa_free(heap, blocks[i]);
}

int main(void)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	struct pcpa_heap *heap;
	unsigned before, i;

	pool_before = pool_file("nr_hugepages");
	pool_now = pool_before > (long)PAGES ? pool_before : (long)PAGES;
	if (pool_before < 0 || pool_file("free_hugepages") != pool_before ||
	    geteuid() != 0) {
		puts("skipped: needs root and a pool that isn't in use");
		return 77;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGSEGV, on_signal);
	if (pool_set(pool_now) != 0 || pool_file("free_hugepages") != pool_now) {
		restore();
		puts("skipped: the machine gives no huge pages now");
		return 77;
	}
	heap = make();
	EXPECT(own_pages() == (long)PAGES);
	round_trip(heap, 0);
	before = areas();
	for (i = 1; i < ROUNDS; i++)
		round_trip(heap, i % 2);
	EXPECT(areas() <= before);
	EXPECT(pcpa_heap_trim(heap, 0) == PAGES * PAGE_BYTES / 2);
	EXPECT(own_pages() == 0);
	EXPECT(pcpa_stats_read(heap, -1, &s) == 0);
	EXPECT(s.managed_pages == 0 && s.trim_failed == 0);
	EXPECT(pcpa_heap_destroy(heap) == 0);
	restore();
	return 0;
}
