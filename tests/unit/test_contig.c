/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_contig.c - ranges of any length from outside: arguments, what they are
 * made of, refused frees, growth.
 */
#include <signal.h>
#include <unistd.h>

#include "../support/heap_fixture.h"
#include "heap.h"

#define PAGES 4096u /* of 16 MiB */
#define HUGE_PAGES 512u

static struct pcpa_heap *heap;
static void *blocks[PAGES];
static size_t page;

static void setup(void)
{
	heap = heap_fixed(16 * MIB, 0);
	page = pcpa_heap_page_bytes(heap);
}

static void teardown(void)
{
	expect_all_free(heap);
	heap_end(heap);
}

TestSuite(contig, .init = setup, .fini = teardown);

static void heap_replace(struct pcpa_heap *next)
{
	heap_end(heap);
	heap = next;
}

static void *contig(size_t pages, size_t align)
{
	return pcpa_alloc_contig(heap, pages, align, 0);
}

static void expect_refused(struct pcpa_heap *h, size_t pages, size_t align,
			   unsigned flags, int error)
{
	errno = 0;
	cr_expect_null(pcpa_alloc_contig(h, pages, align, flags));
	cr_expect_eq(errno, error, "%zu pages, align %zu, flags %#x: errno %d",
		     pages, align, flags, errno);
}

Test(contig, bad_arguments_are_refused)
{
	expect_refused(NULL, 1, 1, 0, EINVAL);
	expect_refused(heap, 0, 1, 0, EINVAL);
	expect_refused(heap, 1, 0, 0, EINVAL);
	expect_refused(heap, 1, 3, 0, EINVAL);
	expect_refused(heap, 1, (size_t)1 << 62, 0, EINVAL);
	expect_refused(heap, PAGES + 1, 1, 0, EINVAL);
	expect_refused(heap, SIZE_MAX, 1, 0, EINVAL);
	expect_refused(heap, ((size_t)1 << 32) + 1, 1, 0, EINVAL);
	expect_refused(heap, 1, 1, 1, EINVAL);
	expect_refused(heap, 1, 1, PCPA_NODE(4000), EINVAL);
	cr_expect_eq(stats_of(heap, -1).used_pages, 0);
	cr_expect_eq(stats_of(heap, -1).failed_total, 0);
	KEEPS_ERRNO(pcpa_free_contig(heap, NULL, 1));
	KEEPS_ERRNO(pcpa_free_contig(NULL, heap, 1));
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
}

Test(contig, any_length_and_alignment)
{
	static const size_t lengths[] = {1, 2, 3, 7, 64, 100, 511, 512, 513,
					 1000, 2049};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t align = 1; align <= 1024; align *= 2) {
			size_t n = lengths[i];
			void *start;

			KEEPS_ERRNO(start = contig(n, align));
			cr_assert(start, "%zu pages, align %zu", n, align);
			cr_expect_eq((uintptr_t)start % (align * page), 0);
			memset(start, 0xa5, n * page);
			cr_expect_eq(stats_summed(heap).used_pages, n);
			cr_expect_eq(stats_of(heap, -1).used_blocks, 1);
			KEEPS_ERRNO(pcpa_free_contig(heap, start, n));
			cr_expect_eq(stats_summed(heap).used_pages, 0);
		}
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
}

Test(contig, whole_node_in_one_piece)
{
	void *start = contig(PAGES, HUGE_PAGES);

	cr_assert(start);
	cr_expect_eq(stats_summed(heap).free_pages, 0);
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	expect_refused(heap, 1, 1, 0, ENOMEM);
	pcpa_free_contig(heap, start, PAGES);
	start = pcpa_alloc(heap, pcpa_heap_max_order(heap), 0);
	cr_expect(start, "merged");
	pcpa_free(heap, start);
}

Test(contig, zeroed_on_demand)
{
	char *start = contig(700, 1);

	cr_assert(start);
	memset(start, 0xff, 700 * page);
	pcpa_free_contig(heap, start, 700);
	start = pcpa_alloc_contig(heap, 700, 1, PCPA_ZERO);
	cr_assert(start);
	for (size_t i = 0; i < 700 * page; i++)
		cr_assert_eq(start[i], 0);
	pcpa_free_contig(heap, start, 700);
}

/* ---- What it is made of -------------------------------------------------------- */

static void *cacher(void *arg)
{
	size_t n = pcpa_alloc_bulk(heap, 0, 0, blocks, PAGES);

	(void)arg;
	cr_expect_eq(n, PAGES);
	pcpa_free_bulk(heap, blocks, n);
	n = alloc_all(heap, 3, 0, blocks, 10);
	free_all(heap, blocks, n);
	return NULL;
}

/* Every page was freed into a cache, by this thread and by one that ended. */
Test(contig, cached_pages_are_drained_for_it)
{
	struct pcpa_stats s;
	void *start;

	thread_run(cacher, NULL);
	free_all(heap, blocks, alloc_all(heap, 0, 0, blocks, 100));
	s = stats_summed(heap);
	cr_assert_gt(s.cached_pages, 0);
	cr_assert_gt(s.depot_pages, 0);
	start = contig(PAGES, 1);
	cr_expect(start);
	cr_expect_eq(stats_summed(heap).used_pages, PAGES);
	pcpa_free_contig(heap, start, PAGES);
}

static uint32_t pfn_of(const void *block)
{
	return pcpi_space_pfn(&heap->space, block);
}

/* One page in 64 is in use: 63 in one piece are to be had, 64 are not. */
Test(contig, pages_in_use_disqualify)
{
	uint32_t first = heap->env.zones[0].first_pfn, kept = 0;
	size_t n = pcpa_alloc_bulk(heap, 0, 0, blocks, PAGES);
	void *start;

	cr_assert_eq(n, PAGES);
	for (size_t i = 0; i < n; i++)
		if ((pfn_of(blocks[i]) - first) % 64 == 63)
			blocks[kept++] = blocks[i];
		else
			pcpa_free(heap, blocks[i]);
	cr_assert_eq(kept, PAGES / 64);
	expect_refused(heap, 64, 1, 0, ENOMEM);
	expect_refused(heap, 64, 64, PCPA_NOGROW | PCPA_THISNODE, ENOMEM);
	cr_expect_eq(stats_of(heap, -1).failed_total, 2);
	start = contig(63, 64);
	cr_assert(start);
	cr_expect_eq((pfn_of(start) - first) % 64, 0);
	cr_expect_eq(stats_summed(heap).used_pages, kept + 63);
	pcpa_free_contig(heap, start, 63);
	free_all(heap, blocks, kept);
}

/* ---- Growth ---------------------------------------------------------------------- */

Test(contig, heap_grows_by_what_it_needs)
{
	void *start, *more;

	heap_replace(heap_make(2 * MIB, 64 * MIB, 0));
	expect_refused(heap, 3000, 1, PCPA_NOGROW, ENOMEM);
	cr_expect_eq(stats_of(heap, -1).managed_pages, HUGE_PAGES);
	start = contig(3000, 1);
	cr_assert(start);
	more = contig(5000, 2 * HUGE_PAGES);
	cr_assert(more);
	cr_expect_eq((uintptr_t)more % (2 * HUGE_PAGES * page), 0);
	memset(start, 1, 3000 * page);
	memset(more, 1, 5000 * page);
	cr_expect_eq(stats_summed(heap).used_pages, 8000);
	expect_refused(heap, 16384, 1, 0, ENOMEM);
	expect_refused(heap, 16385, 1, 0, EINVAL);
	pcpa_free_contig(heap, more, 5000);
	pcpa_free_contig(heap, start, 3000);
}

/* ---- Frees that are refused ----------------------------------------------------------- */

Test(contig, frees_of_blocks_refuse_it)
{
	char *start = contig(100, 1);
	void *some[2];

	cr_assert(start);
	cr_expect_eq(pcpa_block_order(heap, start), -EINVAL);
	cr_expect_eq(pcpa_block_order(heap, start + page), -EINVAL);
	KEEPS_ERRNO(pcpa_free(heap, start));
	pcpa_free(heap, start + page);
	pcpa_free(heap, start + 99 * page);
	some[0] = start;
	some[1] = start + 50 * page;
	pcpa_free_bulk(heap, some, 2);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 5);
	cr_expect_eq(stats_summed(heap).used_pages, 100);
	pcpa_free_contig(heap, start, 100);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 5);
}

Test(contig, wrong_start_or_length_changes_nothing)
{
	char *start = contig(100, 1), *next = contig(10, 1);
	void *block = pcpa_alloc(heap, 2, 0);
	uint64_t bad = 0;

	cr_assert(start && next && block);
	KEEPS_ERRNO(pcpa_free_contig(heap, start, 99));
	pcpa_free_contig(heap, start, 101);
	pcpa_free_contig(heap, start, 0);
	pcpa_free_contig(heap, start, 110);
	pcpa_free_contig(heap, start, SIZE_MAX);
	pcpa_free_contig(heap, start, ((size_t)1 << 32) + 100);
	pcpa_free_contig(heap, start + page, 99);
	pcpa_free_contig(heap, start + 1, 100);
	pcpa_free_contig(heap, &bad, 1);
	pcpa_free_contig(heap, block, 4);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 10);
	cr_expect_eq(stats_summed(heap).used_pages, 114);
	pcpa_free_contig(heap, start, 100);
	pcpa_free_contig(heap, start, 100);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 11, "the second");
	cr_expect_eq(stats_summed(heap).used_pages, 14);
	pcpa_free_contig(heap, next, 10);
	pcpa_free(heap, block);
}

/* How often a text was said while fn ran. */
static unsigned said(void (*fn)(void), const char *text)
{
	int before = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	char line[512];
	unsigned n = 0;

	cr_assert(file && before >= 0);
	fflush(stderr);
	cr_assert(dup2(fileno(file), STDERR_FILENO) >= 0);
	fn();
	fflush(stderr);
	cr_assert(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, text) != NULL;
	fclose(file);
	return n;
}

static void free_badly(void)
{
	char *start = contig(100, 1);

	pcpa_free_contig(heap, start, 42);
	pcpa_free_contig(heap, start, 43);
	pcpa_free_contig(heap, start, 100);
}

Test(contig, wrong_length_is_said_once_with_the_values)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;

	heap_end(heap);
	opts.initial_bytes = 16 * MIB;
	opts.flags = PCPA_HEAP_FIXED;
	cr_assert_eq(pcpa_heap_create(&opts, &heap), 0);
	cr_expect_eq(said(free_badly, "a range of 100 pages, not of 42"), 1);
	cr_expect_eq(said(free_badly, "a range of"), 0);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 4);
}

Test(contig, checks_abort_on_a_wrong_length, .signal = SIGABRT)
{
	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_CHECKS));
	pcpa_free_contig(heap, contig(100, 1), 101);
}

Test(contig, works_beside_disabled_caches_and_checks)
{
	void *start;

	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_CHECKS));
	cacher(NULL);
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	start = contig(PAGES, 1);
	cr_assert(start);
	pcpa_free_contig(heap, start, PAGES);
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
}
