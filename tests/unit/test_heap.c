/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_heap.c - lives of heaps (lib/heap.c, route.c, sweep.c): creation and its
 * refusals, growth, and exhaustion that reaches everywhere.  (Threads that come
 * and go and many heaps: test_heap_threads.c.)  From outside, with one
 * exception: the pieces of the system that a case refuses are replaced in the
 * table of lib/sys.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "../support/heap_fixture.h"
#include "sys/sys.h"

#define MANY 4096u

static void *blocks[MANY];

/* ---- Creation ---------------------------------------------------------------- */

static char said[4096];

static void say_into(const char *text, size_t len)
{
	size_t at = strlen(said);

	if (at + len < sizeof(said))
		memcpy(said + at, text, len);
}

static struct pcpi_sys table;

/* The system as it is, with what the caller changes next. */
static struct pcpi_sys *table_install(void)
{
	struct pcpa_heap *first = heap_make(0, 2 * MIB, 0);

	heap_end(first);
	table = *pcpi_sys;
	table.write_err = say_into;
	pcpi_sys = &table;
	return &table;
}

/* Creation with these options fails so, names the text, and leaves nothing. */
static void expect_no_heap(const struct pcpa_heap_options *opts, int error,
			   const char *text)
{
	struct pcpa_heap *untouched = (struct pcpa_heap *)&said, *heap = untouched;
	unsigned long before = maps_kib();
	int err = 0;

	memset(said, 0, sizeof(said));
	KEEPS_ERRNO(err = pcpa_heap_create(opts, &heap));
	cr_expect_eq(err, error, "%s: %d", text, err);
	cr_expect_eq(heap, untouched);
	cr_expect(strstr(said, text), "\"%s\" in \"%s\"", text, said);
	cr_expect_eq(maps_kib(), before, "%s", text);
}

Test(heap, bad_option_is_named_and_leaves_nothing)
{
	struct pcpa_heap_options init = PCPA_HEAP_OPTIONS_INIT, o;

	table_install();
	o = init, o.flags = 1u << 30;
	expect_no_heap(&o, -EINVAL, "flags");
	o = init, o.flags = PCPA_HEAP_FIXED;
	expect_no_heap(&o, -EINVAL, "initial_bytes");
	o = init, o.flags = PCPA_HEAP_FIXED, o.initial_bytes = 4 * MIB,
	o.max_bytes = 8 * MIB;
	expect_no_heap(&o, -EINVAL, "max_bytes");
	o = init, o.initial_bytes = 8 * MIB, o.max_bytes = 4 * MIB;
	expect_no_heap(&o, -EINVAL, "initial_bytes");
	o = init, o.hugepage_bytes = 3000;
	expect_no_heap(&o, -EINVAL, "hugepage_bytes");
	o = init, o.flags = PCPA_HEAP_COW, o.hugepage_bytes = 2 * MIB;
	expect_no_heap(&o, -EINVAL, "hugepage_bytes");
	o = init, o.high_fraction = 7;
	expect_no_heap(&o, -EINVAL, "high_fraction");
	o = init, o.nodes = "0,x";
	expect_no_heap(&o, -EINVAL, "nodes");
	o = init, o.nodes = "";
	expect_no_heap(&o, -EINVAL, "nodes");
	o = init, o.nodes = "4000";
	expect_no_heap(&o, -ENODEV, "4000");
	o = init, o.struct_size = 1;
	expect_no_heap(&o, -EINVAL, "struct_size");
	cr_expect_eq(pcpa_heap_create(&init, NULL), -EINVAL);
}

Test(heap, bad_option_at_verbosity_0_is_silent)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	table_install();
	o.verbosity = 0;
	o.high_fraction = 7;
	expect_no_heap(&o, -EINVAL, "");
	cr_expect_str_empty(said);
}

static int populate_refused(void *addr, size_t bytes)
{
	(void)addr;
	(void)bytes;
	return -ENOMEM;
}

Test(heap, initial_bytes_that_cannot_be_backed_leave_nothing)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	table_install()->populate = populate_refused;
	o.initial_bytes = 8 * MIB;
	o.verbosity = 0;
	expect_no_heap(&o, -ENOMEM, "");
}

Test(heap, null_options_make_a_heap_with_defaults)
{
	struct pcpa_heap *heap;
	struct pcpa_stats s;
	void *block;

	cr_assert_eq(pcpa_heap_create(NULL, &heap), 0);
	s = stats_summed(heap);
	cr_expect_eq(s.managed_pages, 0);
	cr_expect_gt(s.reserved_pages, 0);
	block = pcpa_alloc(heap, 0, 0);
	cr_assert(block);
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(heap, short_options_of_an_older_header_get_defaults)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.initial_bytes = 2 * MIB;
	o.max_bytes = (size_t)-1; /* beyond the size: not looked at */
	o.struct_size = offsetof(struct pcpa_heap_options, max_bytes);
	cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
	cr_expect_eq(stats_of(heap, -1).managed_pages *
			     pcpa_heap_page_bytes(heap), 2 * MIB);
	heap_end(heap);
}

Test(heap, lives_leave_nothing_mapped)
{
	unsigned long before = 0;

	for (unsigned i = 0; i < 12; i++) {
		struct pcpa_heap *heap = heap_make(4 * MIB, 32 * MIB, 0);
		size_t n = alloc_all(heap, 9, 0, blocks, 4);

		n += pcpa_alloc_bulk(heap, 0, 0, blocks + n, 1000);
		free_all(heap, blocks, n);
		heap_end(heap);
		if (i == 1)
			before = maps_kib();
	}
	cr_expect_eq(maps_kib(), before);
}

/* ---- Destruction --------------------------------------------------------------- */

Test(heap, destroy_with_blocks_out_is_refused_and_changes_nothing)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	void *a = pcpa_alloc(heap, 0, 0), *b = pcpa_alloc(heap, 5, 0);
	struct pcpa_stats s;

	cr_assert(a && b);
	KEEPS_ERRNO(cr_expect_eq(pcpa_heap_destroy(heap), -EBUSY));
	s = stats_summed(heap);
	cr_expect_eq(s.used_blocks, 2);
	cr_expect_eq(s.used_pages, 33);
	memset(b, 1, 32 * pcpa_heap_page_bytes(heap));
	pcpa_free(heap, b);
	cr_expect_eq(pcpa_heap_destroy(heap), -EBUSY);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 1);
	pcpa_free(heap, a);
	cr_expect_eq(pcpa_heap_destroy(heap), 0);
}

/* ---- Growth ------------------------------------------------------------------- */

Test(heap, nothing_is_backed_before_first_use)
{
	struct pcpa_heap *heap = heap_make(0, 16 * MIB, 0);
	void *block;

	cr_expect_eq(stats_of(heap, -1).managed_pages, 0);
	cr_expect_eq(stats_of(heap, -1).arenas, 0);
	block = pcpa_alloc(heap, 0, 0);
	cr_assert(block);
	cr_expect_eq(stats_of(heap, -1).arenas, 1);
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(heap, grows_on_demand_to_its_maximum_and_no_further)
{
	struct pcpa_heap *heap = heap_make(0, 12 * MIB, 0);
	size_t page = pcpa_heap_page_bytes(heap), n, i;
	uint64_t managed = 0, now;

	for (n = 0; n < MANY && (blocks[n] = pcpa_alloc(heap, 0, 0)); n++) {
		memset(blocks[n], 1, page);
		now = stats_of(heap, -1).managed_pages;
		cr_assert_geq(now, managed);
		managed = now;
	}
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(n * page, 12 * MIB, "%zu pages", n);
	cr_expect_eq(managed, n);
	cr_expect_gt(stats_of(heap, -1).arenas, 1);
	for (i = 0; i < n; i++)
		pcpa_free(heap, blocks[i]);
	expect_all_free(heap);
	heap_end(heap);
}

Test(heap, one_bulk_grows_to_the_maximum)
{
	struct pcpa_heap *heap = heap_make(0, 8 * MIB, 0);
	size_t pages = 8 * MIB / pcpa_heap_page_bytes(heap), n;

	errno = 0;
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, pages + 1);
	cr_expect_eq(n, pages);
	cr_expect_eq(errno, ENOMEM);
	pcpa_free_bulk(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

/* Every combination of backing that a size may fall to. */
Test(heap, base_pages_only_serves_every_order)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	unsigned order;

	o.initial_bytes = 8 * MIB;
	o.hugepage_bytes = (size_t)sysconf(_SC_PAGESIZE);
	o.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
	for (order = 0; order <= pcpa_heap_max_order(heap); order++) {
		void *block = pcpa_alloc(heap, order, 0);

		cr_assert(block, "order %u", order);
		memset(block, 1, pcpa_heap_page_bytes(heap) << order);
		pcpa_free(heap, block);
	}
	heap_end(heap);
}

/* ---- What the system refuses -------------------------------------------------- */

static int refuse_noent(void)
{
	return -ENOSYS;
}

static int never_asked(void)
{
	cr_assert_fail("membarrier, although registering it was refused");
	return 0;
}

/* A thread that fills its cache, then waits until it is told to end. */
struct idler {
	struct pcpa_heap *heap;
	int go[2], done[2];
	size_t keep, cache;
	unsigned order;
};

static void *idle(void *arg)
{
	struct idler *w = arg;
	void *mine[MANY / 8];
	size_t n = pcpa_alloc_bulk(w->heap, w->order, 0, mine,
				   w->keep + w->cache);
	char byte = 0;

	cr_expect_eq(n, w->keep + w->cache);
	pcpa_free_bulk(w->heap, mine + w->keep, n - w->keep);
	cr_expect_eq(write(w->done[1], &byte, 1), 1);
	cr_expect_eq(read(w->go[0], &byte, 1), 1);
	pcpa_free_bulk(w->heap, mine, w->keep);
	return NULL;
}

static void idler_start(struct idler *w, pthread_t *t)
{
	char byte;

	cr_assert_eq(pipe(w->go), 0);
	cr_assert_eq(pipe(w->done), 0);
	cr_assert_eq(pthread_create(t, NULL, idle, w), 0);
	cr_assert_eq(read(w->done[0], &byte, 1), 1);
}

static void idler_end(struct idler *w, pthread_t t)
{
	char byte = 0;

	cr_assert_eq(write(w->go[1], &byte, 1), 1);
	cr_assert_eq(pthread_join(t, NULL), 0);
}

/* All that the idler has not kept can be had by another thread. */
static void expect_the_rest(struct pcpa_heap *heap, unsigned order, size_t keep)
{
	struct idler w = {.heap = heap, .keep = keep, .cache = 60, .order = order};
	uint64_t all = stats_of(heap, -1).managed_pages >> order;
	pthread_t t;
	size_t n;

	idler_start(&w, &t);
	n = alloc_all(heap, order, 0, blocks, MANY);
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(n, all - keep, "%zu of %zu", n, (size_t)all - keep);
	free_all(heap, blocks, n);
	idler_end(&w, t);
	expect_all_free(heap);
	heap_end(heap);
}

Test(heap, membarrier_refused_drains_by_exchange)
{
	struct pcpi_sys *sys = table_install();

	sys->membarrier_register = refuse_noent;
	sys->membarrier = never_asked;
	expect_the_rest(heap_fixed(4 * MIB, 0), 0, 1);
}

static int advise_no_huge(void *addr, size_t bytes, enum pcpi_advice advice)
{
	if (advice == PCPI_ADVISE_HUGE)
		return -EINVAL;
	return pcpi_sys_linux.advise(addr, bytes, advice);
}

static int bind_refused(void *addr, size_t bytes, unsigned os_node,
			enum pcpi_binding how)
{
	(void)how;
	(void)addr;
	(void)bytes;
	(void)os_node;
	return -EPERM;
}

static int hugetlb_refused(void *addr, size_t bytes, size_t page_bytes)
{
	(void)addr;
	(void)bytes;
	(void)page_bytes;
	return -ENOMEM;
}

Test(heap, huge_pages_and_binding_refused_serves_all_the_same)
{
	struct pcpi_sys *sys = table_install();

	sys->advise = advise_no_huge;
	sys->map_hugetlb = hugetlb_refused;
	sys->bind = bind_refused;
	expect_the_rest(heap_fixed(4 * MIB, 0), 0, 3);
}

static int populate_unknown(void *addr, size_t bytes)
{
	(void)addr;
	(void)bytes;
	return -EINVAL;
}

/* As on Linux before 5.14. */
Test(heap, kernel_without_populate_serves_all_the_same)
{
	struct pcpi_sys *sys = table_install();

	sys->populate = populate_unknown;
	expect_the_rest(heap_fixed(4 * MIB, 0), 0, 3);
}

/* ---- Exhaustion reaches everywhere ---------------------------------------------- */

Test(heap, idle_threads_cache_is_given_to_who_needs_it)
{
	for (unsigned order = 0; order < 4; order++)
		expect_the_rest(heap_fixed(4 * MIB, 0), order, 1);
}

Test(heap, thirty_two_blocks_of_which_another_holds_one_leave_thirty_one)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	struct idler w = {.heap = heap, .keep = 1, .cache = 8, .order = 4};
	pthread_t t;
	size_t n;

	idler_start(&w, &t);
	n = pcpa_alloc_bulk(heap, 4, 0, blocks, 32);
	cr_expect_eq(n, 31);
	free_all(heap, blocks, n);
	idler_end(&w, t);
	heap_end(heap);
}

/* 32 pages of order 0 in all: the rest is taken by a third party first. */
Test(heap, last_pages_are_found_in_an_idle_threads_cache)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	size_t all = stats_of(heap, -1).managed_pages, n;
	struct idler w = {.heap = heap, .keep = 1, .cache = 31, .order = 0};
	pthread_t t;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, all - 32), all - 32);
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	idler_start(&w, &t);
	n = alloc_all(heap, 0, 0, blocks + all - 32, 40);
	cr_expect_eq(n, 31);
	pcpa_free_bulk(heap, blocks, all - 32 + n);
	idler_end(&w, t);
	expect_all_free(heap);
	heap_end(heap);
}

Test(heap, high_orders_merge_from_caches_and_depot)
{
	for (unsigned order = 4; order <= 9; order++) {
		struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
		size_t all = stats_of(heap, -1).managed_pages, n;

		n = pcpa_alloc_bulk(heap, 0, 0, blocks, all);
		cr_assert_eq(n, all);
		free_all(heap, blocks, n);
		n = alloc_all(heap, order, PCPA_NOGROW, blocks, MANY);
		cr_expect_eq(n, all >> order, "order %u: %zu", order, n);
		free_all(heap, blocks, n);
		heap_end(heap);
	}
}

#define FREERS 4u

struct share {
	struct pcpa_heap *heap;
	void **from;
	size_t n;
};

static void *free_share(void *arg)
{
	struct share *s = arg;

	for (size_t i = 0; i < s->n; i++)
		pcpa_free(s->heap, s->from[i]);
	return NULL;
}

static void shuffle(void **array, size_t n, unsigned seed)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = (size_t)rand_r(&seed) % i;
		void *swap = array[i - 1];

		array[i - 1] = array[j];
		array[j] = swap;
	}
}

Test(heap, all_large_blocks_are_back_after_random_frees_of_many_threads)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);
	size_t all = stats_of(heap, -1).managed_pages, part = all / FREERS, n;
	struct share shares[FREERS];
	pthread_t t[FREERS];

	cr_assert_leq(all, MANY);
	printf("seed 7\n");
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, all), all);
	shuffle(blocks, all, 7);
	for (unsigned i = 0; i < FREERS; i++) {
		shares[i] = (struct share){heap, blocks + i * part, part};
		cr_assert_eq(pthread_create(&t[i], NULL, free_share, &shares[i]),
			     0);
	}
	for (unsigned i = 0; i < FREERS; i++)
		cr_assert_eq(pthread_join(t[i], NULL), 0);
	n = alloc_all(heap, 9, PCPA_NOGROW, blocks, MANY);
	cr_expect_eq(n, all >> 9);
	free_all(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- Flags of heaps ---------------------------------------------------------------- */

Test(heap, legacy_heap_serves_and_drains)
{
	expect_the_rest(heap_fixed(4 * MIB, PCPA_HEAP_LEGACY), 0, 2);
}

Test(heap, checked_heap_drains_an_idle_thread)
{
	expect_the_rest(heap_fixed(4 * MIB, PCPA_HEAP_CHECKS), 0, 2);
}

/* The idler is asked, not interrupted: what its cache has stays there. */
Test(heap, heap_without_interrupts_leaves_a_running_threads_cache)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, PCPA_HEAP_NO_IPI);
	struct idler w = {.heap = heap, .keep = 1, .cache = 20, .order = 0};
	pthread_t t;

	idler_start(&w, &t);
	pcpa_heap_drain(heap);
	cr_expect_gt(stats_summed(heap).cached_pages, 0);
	idler_end(&w, t);
	expect_all_free(heap);
	heap_end(heap);
}

Test(heap, initial_memory_that_is_not_there_is_refused_before_it_is_taken)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL;
	struct rusage before, after;

	opts.initial_bytes = (size_t)1 << 40;
	opts.verbosity = 0;
	getrusage(RUSAGE_SELF, &before);
	cr_assert_eq(pcpa_heap_create(&opts, &heap), -ENOMEM);
	getrusage(RUSAGE_SELF, &after);
	cr_expect_null(heap);
	cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 64 * 1024, "KiB");
}
