/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_contig_trim.c - contiguous ranges where memory goes and comes again while
 * one is looked for; on the invented machine.
 *
 * The linker has pcpi_zone_search() wrapped (CMakeLists.txt): what other threads
 * may do between the look at where arenas are and the search happens there.  A
 * chunk is 2 MiB.
 */
#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"
#include "heap.h"

#define CHUNK (2 * MIB)
#define CHUNK_PAGES 512u

static struct pcpa_heap *heap;
static unsigned splits; /* so far */

void __real_pcpi_zone_search(struct pcpi_zone *z, const struct pcpi_search *s,
			     struct pcpi_candidate *best);
void __wrap_pcpi_zone_search(struct pcpi_zone *z, const struct pcpi_search *s,
			     struct pcpi_candidate *best);

/* Another thread's, since the one that searches may hold locks. */
static void (*meanwhile)(struct pcpi_zone *z);

static void *meanwhile_main(void *zone)
{
	meanwhile(zone);
	return NULL;
}

static void meanwhile_run(struct pcpi_zone *z)
{
	pthread_t t;

	cr_assert_eq(pthread_create(&t, NULL, meanwhile_main, z), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
}

void __wrap_pcpi_zone_search(struct pcpi_zone *z, const struct pcpi_search *s,
			     struct pcpi_candidate *best)
{
	if (meanwhile && s->end - s->from >= s->pages)
		meanwhile_run(z);
	__real_pcpi_zone_search(z, s, best);
}

static void setup(size_t bytes)
{
	fake_sys_install();
	heap = heap_make(bytes, bytes, 0);
	splits = 0;
}

static void teardown(void)
{
	meanwhile = NULL;
	cr_expect(pcpi_zone_check(&heap->env.zones[0]));
	pcpi_space_check(&heap->space);
	expect_all_free(heap);
	heap_end(heap);
}

static void arena_add(struct pcpi_zone *z, size_t bytes)
{
	uint64_t grown;

	cr_assert_eq(pcpi_zone_grow(z, z->managed_pages, bytes, true, &grown), 0);
	cr_assert_eq(grown << heap->hot.page_shift, bytes);
}

struct found {
	const char *start;
	size_t bytes;
	unsigned n;
};

static int arena_compare(const struct pcpa_arena_info *info, void *arg)
{
	const char *base = info->base;
	struct found *f = arg;

	f->n += f->start >= base && f->start + f->bytes <= base + info->bytes;
	return 0;
}

/* The range is in one arena, and goes. */
static void expect_in_one_arena(void *start, size_t pages)
{
	struct found f = { start, pages * fake.page_bytes, 0 };

	cr_assert(start);
	cr_expect_eq(pcpa_for_each_arena(heap, arena_compare, &f), 0);
	cr_expect_eq(f.n, 1, "in %u arenas", f.n);
	cr_expect_eq(stats_summed(heap).used_pages, pages);
	pcpa_free_contig(heap, start, pages);
}

/* ---- The end of an arena goes, and another takes its place -------------------- */

static void split_once(struct pcpi_zone *z)
{
	uint64_t managed = z->managed_pages << heap->hot.page_shift;

	if (splits++ > 0)
		return;
	cr_assert_eq(pcpi_heap_trim(heap, managed / 4, 0), managed / 4 * 3);
	arena_add(z, managed / 4 * 3);
}

Test(contig_trim, free_range_lies_in_one_arena)
{
	void *start;

	setup(4 * CHUNK);
	meanwhile = split_once;
	start = pcpa_alloc_contig(heap, 3 * CHUNK_PAGES, 1, PCPA_NOGROW);
	cr_expect_gt(splits, 0);
	expect_in_one_arena(start, 3 * CHUNK_PAGES);
	teardown();
}

/* Too long for one hold of the lock, so that it is isolated. */
Test(contig_trim, isolated_range_lies_in_one_arena)
{
	void *start;

	setup(100 * CHUNK);
	meanwhile = split_once;
	start = pcpa_alloc_contig(heap, 70 * CHUNK_PAGES, 1, PCPA_NOGROW);
	cr_expect_gt(splits, 0);
	expect_in_one_arena(start, 70 * CHUNK_PAGES);
	teardown();
}

/* With each search another border. */
static void split_anew(struct pcpi_zone *z)
{
	size_t first = splits++ % 2 ? 3 * CHUNK : CHUNK;

	cr_assert_eq(pcpi_heap_trim(heap, 0, 0), 4 * CHUNK);
	arena_add(z, first);
	arena_add(z, 4 * CHUNK - first);
}

Test(contig_trim, search_ends_where_arenas_never_rest)
{
	void *start;

	setup(4 * CHUNK);
	meanwhile = split_anew;
	errno = 0;
	start = pcpa_alloc_contig(heap, 3 * CHUNK_PAGES, 1, 0);
	cr_expect_null(start);
	cr_expect_eq(errno, ENOMEM);
	cr_expect_geq(splits, 2);
	cr_expect_leq(splits, 30);
	cr_expect_eq(stats_summed(heap).used_pages, 0);
	cr_expect_eq(stats_of(heap, -1).failed_total, 1);
	meanwhile = NULL;
	start = pcpa_alloc_contig(heap, 3 * CHUNK_PAGES, 1, 0);
	expect_in_one_arena(start, 3 * CHUNK_PAGES);
	teardown();
}

/* What is whole when the search comes by may go before the range is taken. */
static void gone_once(struct pcpi_zone *z)
{
	(void)z;
	if (splits++ == 0)
		cr_assert_eq(pcpi_heap_trim(heap, 0, 0), 4 * CHUNK);
}

Test(contig_trim, memory_that_went_is_grown_again)
{
	void *start;

	setup(4 * CHUNK);
	meanwhile = gone_once;
	start = pcpa_alloc_contig(heap, 3 * CHUNK_PAGES, 1, 0);
	expect_in_one_arena(start, 3 * CHUNK_PAGES);
	teardown();
}
