/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nowait.c - requests that must not wait (lib/nowait.c), the reserve
 * (lib/zone.c, Z5), and bulk calls that pass the cache by (lib/api.c).
 */
#include "../support/heap_fixture.h"
#include "../support/helper.h"
#include "heap.h"

#define MANY 8192u

static void *blocks[MANY];

/* ---- A system none of whose functions may be called --------------------------- */

static unsigned called;

#define REFUSE(name, type, args)                                               \
	static type refuse_##name args                                         \
	{                                                                      \
		called++;                                                      \
		return (type)-1;                                               \
	}
#define REFUSE_VOID(name, args)                                                \
	static void refuse_##name args                                         \
	{                                                                      \
		called++;                                                      \
	}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
REFUSE(page_bytes, size_t, (void))
REFUSE(reserve, int, (size_t bytes, size_t align, void **out))
REFUSE(map_meta, int, (size_t bytes, void **out))
REFUSE(map_hugetlb, int, (void *addr, size_t bytes, size_t page_bytes))
REFUSE(memory_file, int, (const char *name, size_t bytes, size_t page_bytes))
REFUSE(map_file, int, (void *addr, size_t bytes, int fd))
REFUSE(punch, int, (int fd, uint64_t offset, size_t bytes))
REFUSE(pagemap, int, (const void *addr, uint64_t *out))
REFUSE(range, int, (void *addr, size_t bytes))
REFUSE(advise, int, (void *addr, size_t bytes, enum pcpi_advice advice))
REFUSE_VOID(name, (void *addr, size_t bytes, const char *name))
REFUSE(bind, int, (void *addr, size_t bytes, unsigned os_node,
		   enum pcpi_binding how))
REFUSE(elsewhere, ssize_t, (const void *addr, size_t bytes, size_t step,
			    unsigned os_node))
REFUSE_VOID(parallel, (unsigned n, void (*fn)(void *arg, unsigned i), void *arg))
REFUSE(read_file, ssize_t, (const char *path, char *buf, size_t size))
REFUSE(number, int, (void))
REFUSE(cpus, unsigned, (void))
REFUSE(ns, uint64_t, (void))
REFUSE_VOID(yield, (void))
REFUSE_VOID(event, (int fd))
REFUSE_VOID(write_err, (const char *text, size_t len))
#pragma GCC diagnostic pop

static struct pcpi_sys forbidden = {
	.page_bytes = refuse_page_bytes,
	.reserve = refuse_reserve,
	.map_meta = refuse_map_meta,
	.map_hugetlb = refuse_map_hugetlb,
	.memory_file = refuse_memory_file,
	.map_file = refuse_map_file,
	.punch = refuse_punch,
	.commit = refuse_range,
	.decommit = refuse_range,
	.unmap = refuse_range,
	.populate = refuse_range,
	.advise = refuse_advise,
	.name = refuse_name,
	.bind = refuse_bind,
	.elsewhere = refuse_elsewhere,
	.parallel = refuse_parallel,
	.read_file = refuse_read_file,
	.membarrier_register = refuse_number,
	.membarrier = refuse_number,
	.coarse_ns = refuse_ns,
	.clock_ns = refuse_ns,
	.cpu = refuse_number,
	.node = refuse_number,
	.cpus = refuse_cpus,
	.tid = refuse_number,
	.yield = refuse_yield,
	.address_space_left = refuse_ns,
	.event_make = refuse_number,
	.event_raise = refuse_event,
	.fd_close = refuse_event,
	.pagemap = refuse_pagemap,
	.write_err = refuse_write_err,
};

static const struct pcpi_sys *allowed;

static void system_forbid(void)
{
	allowed = pcpi_sys;
	pcpi_sys = &forbidden;
	called = 0;
}

static void system_allow(void)
{
	pcpi_sys = allowed;
	cr_expect_eq(called, 0, "%u calls of the system", called);
}

/* ---- PCPA_NOWAIT ------------------------------------------------------------------ */

/* Until it is refused, whatever the order: all of a fixed heap, without the
 * system but for the thread's number, which checks note. */
static void take_all(struct pcpa_heap *heap, unsigned order, bool checks)
{
	size_t all = stats_of(heap, -1).managed_pages >> order, n;

	system_forbid();
	forbidden.tid = checks ? pcpi_sys_linux.tid : refuse_number;
	n = alloc_all(heap, order, PCPA_NOWAIT, blocks, MANY);
	cr_expect_eq(errno, ENOMEM);
	system_allow();
	cr_expect_eq(n, all, "order %u: %zu of %zu", order, n, all);
	stats_summed(heap);
	free_all(heap, blocks, n);
	expect_all_free(heap);
}

Test(nowait, all_of_a_heap_without_the_system, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);

	for (unsigned order = 0; order <= 9; order++)
		take_all(heap, order, false); /* the first time without a cache */
	heap_end(heap);
}

Test(nowait, with_checks_too)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, PCPA_HEAP_CHECKS);

	for (unsigned order = 0; order < 4; order++)
		take_all(heap, order, true);
	heap_end(heap);
}

Test(nowait, batch_comes_into_the_cache)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, 0);
	struct pcpa_stats a, b;

	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	a = stats_of(heap, -1);
	for (unsigned i = 0; i < 64; i++)
		cr_assert(blocks[i] = pcpa_alloc(heap, 0, PCPA_NOWAIT));
	b = stats_summed(heap);
	cr_expect_leq(b.zone_locks - a.zone_locks, 1);
	cr_expect_eq(b.used_pages, 64);
	free_all(heap, blocks, 64);
	expect_all_free(heap);
	heap_end(heap);
}

Test(nowait, bulk_and_refill_take_no_system_call)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	void *out;

	system_forbid();
	cr_expect_eq(pcpa_alloc_bulk(heap, 0, PCPA_NOWAIT, blocks, 600), 600);
	out = blocks[300];
	blocks[300] = NULL;
	cr_expect_eq(pcpa_refill(heap, 0, PCPA_NOWAIT, blocks, 2000), 1023);
	cr_expect_eq(errno, ENOMEM);
	system_allow();
	cr_expect_eq(stats_of(heap, -1).used_pages, 1024);
	pcpa_free(heap, out);
	pcpa_free_bulk(heap, blocks, 1023);
	expect_all_free(heap);
	heap_end(heap);
}

/* More than one hold of the zone's lock takes (Z3). */
Test(nowait, bulk_takes_all_there_is_of_any_order)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);

	for (unsigned order = 0; order <= 9; order++) {
		size_t n = 1024 >> order;

		KEEPS_ERRNO(cr_expect_eq(pcpa_alloc_bulk(heap, order, PCPA_NOWAIT,
							 blocks, n),
					 n, "order %u", order));
		cr_expect_null(pcpa_alloc(heap, order, PCPA_NOWAIT));
		cr_expect_eq(errno, ENOMEM);
		free_all(heap, blocks, n);
		expect_all_free(heap);
	}
	heap_end(heap);
}

Test(nowait, zero_clears)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	unsigned char *block;
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);

	for (size_t i = 0; i < n; i++)
		memset(blocks[i], 0x5a, pcpa_heap_page_bytes(heap));
	free_all(heap, blocks, n);
	block = pcpa_alloc(heap, 0, PCPA_NOWAIT | PCPA_ZERO);
	cr_assert(block);
	for (size_t i = 0; i < pcpa_heap_page_bytes(heap); i++)
		cr_assert_eq(block[i], 0);
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(nowait, nothing_is_grown)
{
	struct pcpa_heap *heap = heap_make(0, 8 * MIB, 0);

	KEEPS_ERRNO(pcpa_free(heap, NULL));
	system_forbid();
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NOWAIT));
	cr_expect_eq(errno, ENOMEM);
	system_allow();
	cr_expect_eq(stats_of(heap, -1).managed_pages, 0);
	heap_end(heap);
}

/* ---- EAGAIN ------------------------------------------------------------------------ */

static void hold_zone(void *heap)
{
	pcpi_lock_take(&((struct pcpa_heap *)heap)->env.zones[0].lock);
}

static void leave_zone(void *heap)
{
	pcpi_lock_drop(&((struct pcpa_heap *)heap)->env.zones[0].lock);
}

static void hold_depot(void *heap)
{
	pcpi_lock_take(&((struct pcpa_heap *)heap)->env.zones[0].depots[0].lock);
}

static void leave_depot(void *heap)
{
	pcpi_lock_drop(&((struct pcpa_heap *)heap)->env.zones[0].depots[0].lock);
}

Test(nowait, lock_of_another_is_eagain, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	struct helper other;
	unsigned order;

	helper_start(&other);
	helper_call(&other, hold_zone, heap);
	for (order = 0; order < 6; order++) {
		errno = 0;
		cr_expect_null(pcpa_alloc(heap, order, PCPA_NOWAIT));
		cr_expect_eq(errno, EAGAIN);
		errno = 0;
		cr_expect_eq(pcpa_alloc_bulk(heap, order, PCPA_NOWAIT, blocks, 3), 0);
		cr_expect_eq(errno, EAGAIN);
	}
	helper_call(&other, leave_zone, heap);
	errno = ERRNO_MARK;
	blocks[0] = pcpa_alloc(heap, 0, PCPA_NOWAIT);
	cr_expect(blocks[0]);
	cr_expect_eq(errno, ERRNO_MARK);
	pcpa_free(heap, blocks[0]);
	helper_end(&other);
	heap_end(heap);
}

Test(nowait, depot_of_another_is_gone_around, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	struct helper other;
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);

	helper_start(&other);
	pcpa_free(heap, blocks[--n]);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	helper_call(&other, hold_depot, heap);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NOWAIT));
	cr_expect_eq(errno, EAGAIN);
	helper_call(&other, leave_depot, heap);
	blocks[n++] = pcpa_alloc(heap, 0, PCPA_NOWAIT);
	cr_expect(blocks[n - 1]);
	free_all(heap, blocks, n);
	helper_end(&other);
	expect_all_free(heap);
	heap_end(heap);
}

Test(nowait, claimed_cache_is_gone_around)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);

	pcpa_free(heap, blocks[--n]);
	cr_assert(pcpi_cache_claim(c));
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NOWAIT));
	cr_expect_eq(errno, EAGAIN);
	pcpi_cache_claim_end(c, PCPI_CLAIM_NONE);
	blocks[n++] = pcpa_alloc(heap, 0, PCPA_NOWAIT);
	cr_expect(blocks[n - 1]);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NOWAIT));
	cr_expect_eq(errno, ENOMEM);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* The pages of a range that is looked for may come back; tests/conc/steps.c has the
 * moments in which they do. */
Test(nowait, isolated_pages_are_eagain)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	struct pcpi_zone *z = &heap->env.zones[0];
	uint32_t missing;

	cr_assert(pcpi_zone_isolate(z, z->first_pfn, 512));
	cr_expect_eq(alloc_all(heap, 9, PCPA_NOWAIT, blocks, MANY), 1);
	for (unsigned order = 0; order <= 9; order++) {
		errno = 0;
		cr_expect_null(pcpa_alloc(heap, order, PCPA_NOWAIT));
		cr_expect_eq(errno, EAGAIN, "order %u: %d", order, errno);
		errno = 0;
		cr_expect_eq(pcpa_alloc_bulk(heap, order, PCPA_NOWAIT, blocks + 1,
					     3), 0);
		cr_expect_eq(errno, EAGAIN, "order %u: %d", order, errno);
	}
	cr_expect_not(pcpi_zone_isolate_end(z, UINT64_MAX, &missing));
	cr_expect_eq(alloc_all(heap, 9, PCPA_NOWAIT, blocks + 1, MANY), 1);
	cr_expect_eq(errno, ENOMEM);
	free_all(heap, blocks, 2);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- The reserve ------------------------------------------------------------------- */

static struct pcpa_heap *reserving(size_t bytes, unsigned pages)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL;

	opts.flags = PCPA_HEAP_FIXED;
	opts.initial_bytes = bytes;
	opts.reserve_pages = pages;
	opts.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&opts, &heap), 0);
	return heap;
}

Test(reserve, is_kept_for_who_asks)
{
	for (unsigned order = 0; order < 6; order++) {
		struct pcpa_heap *heap = reserving(4 * MIB, 100);
		size_t n = alloc_all(heap, order, 0, blocks, MANY), more;

		cr_expect_eq(n, (1024 - 100) >> order, "order %u: %zu", order, n);
		cr_expect_geq(stats_summed(heap).free_pages, 100);
		cr_expect_eq(stats_of(heap, -1).min_pages, 100);
		cr_expect_null(pcpa_alloc(heap, order, PCPA_NOWAIT));
		more = alloc_all(heap, order, PCPA_RESERVE, blocks + n, MANY - n);
		cr_expect_eq(n + more, 1024 >> order);
		free_all(heap, blocks, n + more);
		expect_all_free(heap);
		heap_end(heap);
	}
}

Test(reserve, goes_without_a_wait_too)
{
	struct pcpa_heap *heap = reserving(4 * MIB, 100);
	size_t n;

	n = alloc_all(heap, 0, PCPA_NOWAIT, blocks, MANY);
	cr_expect_eq(n, 924);
	n += pcpa_alloc_bulk(heap, 0, PCPA_NOWAIT | PCPA_RESERVE, blocks + n, 64);
	cr_expect_eq(n, 924 + 64);
	cr_expect_eq(stats_summed(heap).cached_pages, 0);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* Half of the reserve is taken: what comes back fills it first. */
Test(reserve, is_filled_before_others_are_served)
{
	struct pcpa_heap *heap = reserving(4 * MIB, 100);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY), i;

	cr_assert_eq(n, 924);
	n += pcpa_alloc_bulk(heap, 0, PCPA_RESERVE, blocks + n, 50);
	for (i = 0; i < 50; i++)
		pcpa_free(heap, blocks[--n]);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NOWAIT));
	cr_expect_eq(stats_summed(heap).free_pages, 100);
	pcpa_free(heap, blocks[--n]);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 1]);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* Blocks that were in the depot when the reserve was dipped into. */
Test(reserve, has_what_the_depot_has)
{
	struct pcpa_heap *heap = reserving(4 * MIB, 100);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);
	void *more[100];

	for (unsigned i = 0; i < 20; i++)
		pcpa_free(heap, blocks[--n]);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	cr_assert_eq(stats_of(heap, -1).depot_pages, 20);
	cr_assert_eq(pcpa_alloc_bulk(heap, 2, PCPA_RESERVE, more, 3), 3);
	cr_expect_eq(stats_of(heap, -1).free_pages, 88);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NOWAIT));
	n += alloc_all(heap, 0, 0, blocks + n, MANY - n);
	cr_expect_eq(n, 904 + 8);
	pcpa_free_bulk(heap, more, 3);
	free_all(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

Test(reserve, growing_heap_grows_instead_of_dipping)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL;
	size_t n;

	opts.max_bytes = 8 * MIB;
	opts.reserve_pages = 200;
	opts.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&opts, &heap), 0);
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_expect_eq(n, 2048 - 200);
	cr_expect_eq(stats_summed(heap).free_pages, 200);
	free_all(heap, blocks, n);
	heap_end(heap);
}

Test(reserve, without_one_the_flag_changes_nothing)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);

	cr_expect_eq(n, 512);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_RESERVE));
	free_all(heap, blocks, n);
	n = alloc_all(heap, 0, PCPA_RESERVE, blocks, MANY);
	cr_expect_eq(n, 512);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* ---- A ring's first filling --------------------------------------------------------- */

Test(prefill, large_bulk_leaves_the_cache_alone)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, 0);
	struct pcpa_stats a, b;

	for (unsigned order = 0; order < 4; order++) {
		size_t n = 4096 >> order;

		pcpa_free(heap, pcpa_alloc(heap, order, 0));
		a = stats_of(heap, -1);
		cr_assert_gt(a.cached_pages, 0);
		cr_assert_eq(pcpa_alloc_bulk(heap, order, 0, blocks, n), n);
		b = stats_summed(heap);
		cr_expect_eq(b.cached_pages, a.cached_pages, "order %u", order);
		cr_expect_eq(b.refills, a.refills);
		cr_expect_eq(b.used_pages, 4096);
		pcpa_free_bulk(heap, blocks, n);
		cr_assert_eq(pcpa_heap_drain(heap), 0);
	}
	heap_end(heap);
}

Test(prefill, takes_all_there_is)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n = alloc_all(heap, 0, 0, blocks, 300);

	free_all(heap, blocks, n); /* into the cache and the depot */
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, MANY);
	cr_expect_eq(n, 1024);
	cr_expect_eq(errno, ENOMEM);
	qsort(blocks, n, sizeof(*blocks), compare_pointers);
	for (size_t i = 1; i < n; i++)
		cr_assert_neq(blocks[i], blocks[i - 1]);
	pcpa_free_bulk(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}
