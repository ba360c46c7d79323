/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_contig.c - ranges of any length from outside: arguments, what they are
 * made of, refused frees, growth.
 */
#include <signal.h>
#include <unistd.h>

#include "../support/heap_fixture.h"
#include "heap.h"
#include "rcu.h"

#define PAGES 4096u /* of 16 MiB */
#define HUGE_PAGES 512u

static struct pcpa_heap *heap;
static void *blocks[PAGES];
static size_t page;

/* In one arena: a pool of few huge pages would be one of its own. */
static struct pcpa_heap *one_window(unsigned flags)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *made = NULL;

	o.flags = flags | PCPA_HEAP_FIXED;
	o.initial_bytes = 16 * MIB;
	o.hugepage_bytes = (size_t)sysconf(_SC_PAGESIZE);
	cr_assert_eq(pcpa_heap_create(&o, &made), 0);
	return made;
}

static void setup(void)
{
	heap = one_window(0);
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
	expect_refused(heap, 1, 1, PCPA_NOWAIT, EINVAL);
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
	heap_replace(one_window(PCPA_HEAP_CHECKS));
	pcpa_free_contig(heap, contig(100, 1), 101);
}

Test(contig, works_beside_disabled_caches_and_checks)
{
	void *start;

	heap_replace(one_window(PCPA_HEAP_CHECKS));
	cacher(NULL);
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	start = contig(PAGES, 1);
	cr_assert(start);
	pcpa_free_contig(heap, start, PAGES);
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
}

/* ---- Waiting --------------------------------------------------------------------- */

struct search {
	pthread_barrier_t met;
	int tid;
	bool go; /* a */
};

static void *searcher(void *arg)
{
	struct search *s = arg;

	pcpa_free_contig(heap, contig(3, 1), 3); /* its first call */
	s->tid = pcpi_sys->tid();
	pthread_barrier_wait(&s->met);
	/* acquire: pairs with the release in the test; spins, as it must not be
	 * asleep before. */
	while (!pcpi_load_acquire(&s->go))
		;
	pcpa_free_contig(heap, contig(3, 1), 3);
	return NULL;
}

/* Until the thread sleeps, or doesn't. */
static void sleep_await(int tid, bool asleep)
{
	char path[64], state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	do {
		pcpi_sys->yield();
		f = fopen(path, "r");
		cr_assert(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
		fclose(f);
	} while ((state == 'S') != asleep);
}

/* A fork's handler has the zone's lock while it waits for one whose holder may
 * wait for a grace period, on whichever heap. */
Test(contig, search_that_waits_for_the_zone_delays_no_grace_period, .timeout = 20)
{
	struct pcpi_zone *z = &heap->env.zones[0];
	struct search s = { .go = false };
	pthread_t t;

	pthread_barrier_init(&s.met, NULL, 2);
	cr_assert_eq(pthread_create(&t, NULL, searcher, &s), 0);
	pthread_barrier_wait(&s.met);
	pcpi_lock_freeze(&z->lock);
	sleep_await(s.tid, false);
	/* release: pairs with searcher(). */
	pcpi_store_release(&s.go, true);
	sleep_await(s.tid, true);
	pcpi_rcu_synchronize();
	pcpi_lock_thaw(&z->lock);
	pthread_join(t, NULL);
	pthread_barrier_destroy(&s.met);
}

/* More arenas than a search looks at in one go; only one has room. */
Test(contig, range_is_found_in_the_last_of_many_arenas)
{
	size_t i, n;
	void *start[2];

	heap_replace(heap_make(160 * MIB, 160 * MIB, 0));
	n = alloc_all(heap, 9, 0, blocks, 80);
	cr_assert_eq(n, 80);
	qsort(blocks, n, sizeof(blocks[0]), compare_pointers);
	for (i = 1; i < n; i += 2)
		pcpa_free(heap, blocks[i]);
	cr_assert_eq(pcpa_heap_trim(heap, 0), 80 * MIB);
	for (i = 0; i < 2; i++) {
		pcpa_free(heap, blocks[i * (n - 2)]);
		start[i] = pcpa_alloc_contig(heap, HUGE_PAGES, 1, PCPA_NOGROW);
		cr_expect_eq(start[i], blocks[i * (n - 2)]);
	}
	for (i = 0; i < 2; i++)
		pcpa_free_contig(heap, start[i], HUGE_PAGES);
	for (i = 2; i < n - 2; i += 2)
		pcpa_free(heap, blocks[i]);
}

/* ---- Beside the reserve and watchers ------------------------------------------------ */

static enum pcpa_event_kind told[8];
static unsigned nr_told;

static void note_told(const struct pcpa_event *e, void *arg)
{
	(void)arg;
	if (nr_told < 8)
		told[nr_told++] = e->kind;
}

Test(contig, reserve_is_for_who_may_have_it_and_watchers_are_told)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *next;
	size_t all, n;
	void *range, *rest;

	o.flags = PCPA_HEAP_FIXED;
	o.initial_bytes = 16 * MIB;
	o.hugepage_bytes = (size_t)sysconf(_SC_PAGESIZE); /* one window */
	o.reserve_pages = 200;
	cr_assert_eq(pcpa_heap_create(&o, &next), 0);
	heap_replace(next);
	cr_assert_eq(pcpa_heap_watch(heap, note_told, NULL), 0);
	all = stats_of(heap, -1).managed_pages;
	n = all - 200;
	expect_refused(heap, n + 1, 1, 0, ENOMEM);
	range = contig(n, 1);
	cr_assert(range);
	cr_expect_eq(stats_of(heap, -1).free_pages, 200);
	cr_expect_eq(nr_told, 1);
	cr_expect_eq(told[0], PCPA_EVENT_LOW);
	expect_refused(heap, 1, 1, 0, ENOMEM);
	rest = pcpa_alloc_contig(heap, 200, 1, PCPA_RESERVE);
	cr_expect(rest);
	pcpa_free_contig(heap, rest, 200);
	pcpa_free_contig(heap, range, n);
	cr_expect_eq(nr_told, 2);
	cr_expect_eq(told[1], PCPA_EVENT_AVAILABLE);
	cr_assert_eq(pcpa_heap_watch(heap, NULL, NULL), 0);
}
