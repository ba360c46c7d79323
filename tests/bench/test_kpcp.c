/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kpcp.c - the kernel-like allocator of the benchmarks: its rules by number,
 * and a model of which pages are out, in each way of merging, by one thread and
 * by several.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kpcp.h"

enum { MIB = 16, PAGES = MIB * 256, CHUNKS = MIB / 2, STEPS = 60000 };

static void must_open(struct kpcp *k, unsigned batch, unsigned high,
		      unsigned orders, enum kpcp_merge merge)
{
	struct kpcp_options o = {MIB, batch, high, orders, merge};

	cr_assert_eq(kpcp_open(k, &o), 0);
}

/* All pages are free and merge to blocks of the top order. */
static void must_be_whole(struct kpcp *k)
{
	struct kpcp_cache c;

	kpcp_attach(k, &c);
	kpcp_merge_all(&c);
	kpcp_detach(&c);
	cr_assert(pcpi_buddy_list_check(&k->buddy));
	cr_assert_eq(k->unmerged_pages, 0);
	cr_assert_eq(kpcp_free_blocks(k, KPCP_TOP_ORDER), CHUNKS);
}

/* ---- The rules ----------------------------------------------------------- */

Test(kpcp, rules_are_the_kernels)
{
	cr_assert_eq(kpcp_refill_pages(31), 31);
	cr_assert_eq(kpcp_refill_blocks(31, 0), 31);
	cr_assert_eq(kpcp_refill_blocks(31, 3), 3);
	cr_assert_eq(kpcp_refill_blocks(7, 3), 2);
	cr_assert_eq(kpcp_refill_blocks(1, 0), 1);
	cr_assert_eq(kpcp_drain_pages(185, 31, 186), 0);
	cr_assert_eq(kpcp_drain_pages(186, 31, 186), 31);
	cr_assert_eq(kpcp_drain_pages(377, 63, 378), 0);
	cr_assert_eq(kpcp_drain_pages(378, 63, 378), 63);
	cr_assert_eq(kpcp_drain_pages(2, 31, 2), 2);
}

/* Frees pages until it has drained `drains` times; each at `high`, of `batch`. */
static void must_drain(unsigned batch, unsigned high, unsigned drains)
{
	static void *page[PAGES];
	struct kpcp k;
	struct kpcp_cache c;
	unsigned n = high + drains * batch, before = 0;

	must_open(&k, batch, high, 1, KPCP_EAGER);
	kpcp_attach(&k, &c);
	for (unsigned i = 0; i < n; i++)
		cr_assert((page[i] = kpcp_alloc(&c, 0)) != NULL);
	/* What a refill left is given back first. */
	while (c.count)
		cr_assert((page[n++] = kpcp_alloc(&c, 0)) != NULL);
	for (unsigned i = 0; i < n; i++) {
		uint64_t done = c.counters.drains;

		kpcp_free(&c, page[i], 0);
		if (c.counters.drains == done)
			continue;
		cr_assert_eq(i + 1, high + before * batch);
		cr_assert_eq(c.counters.drain_pages, (++before) * batch);
		cr_assert_eq(c.count, high - batch);
	}
	cr_assert_geq(before, drains);
	kpcp_detach(&c);
	must_be_whole(&k);
	kpcp_close(&k);
}

Test(kpcp, pure_freer_drains_31_at_186)
{
	must_drain(31, 186, 8);
}

Test(kpcp, pure_freer_drains_63_at_378_as_unpatched)
{
	must_drain(63, 378, 8);
}

Test(kpcp, empty_list_takes_a_batch_under_one_lock)
{
	struct kpcp k;
	struct kpcp_cache c;
	char *first, *next;

	must_open(&k, 31, 186, 1, KPCP_EAGER);
	kpcp_attach(&k, &c);
	first = kpcp_alloc(&c, 0);
	cr_assert_eq(c.count, 30);
	cr_assert_eq(c.counters.locks, 1);
	/* Ascending, and no further lock until the 32nd. */
	for (int i = 1; i < 31; i++, first = next) {
		next = kpcp_alloc(&c, 0);
		cr_assert_eq(next, first + KPCP_PAGE_BYTES);
	}
	cr_assert_eq(c.counters.refills, 1);
	kpcp_alloc(&c, 0);
	cr_assert_eq(c.counters.refills, 2);
	cr_assert_eq(c.counters.refill_pages, 62);
	cr_assert_eq(c.counters.locks, 2);
	cr_assert_eq(c.counters.lock_contended, 0);
	kpcp_close(&k);
}

Test(kpcp, freed_last_is_handed_out_first)
{
	struct kpcp k;
	struct kpcp_cache c;
	void *a, *b;

	must_open(&k, 31, 186, 1, KPCP_EAGER);
	kpcp_attach(&k, &c);
	a = kpcp_alloc(&c, 0);
	b = kpcp_alloc(&c, 0);
	kpcp_free(&c, a, 0);
	kpcp_free(&c, b, 0);
	cr_assert_eq(kpcp_alloc(&c, 0), b);
	cr_assert_eq(kpcp_alloc(&c, 0), a);
	kpcp_close(&k);
}

Test(kpcp, orders_above_0_have_lists_only_where_asked_for)
{
	struct kpcp k;
	struct kpcp_cache c;

	for (unsigned orders = 1; orders <= 4; orders += 3) {
		must_open(&k, 31, 186, orders, KPCP_EAGER);
		kpcp_attach(&k, &c);
		for (int i = 0; i < 100; i++) {
			void *block = kpcp_alloc(&c, 3);

			cr_assert_eq((uintptr_t)block % (8 * KPCP_PAGE_BYTES), 0);
			kpcp_free(&c, block, 3);
		}
		cr_assert_eq(c.counters.locks, orders == 1 ? 200 : 1);
		cr_assert_eq(c.counters.directs, orders == 1 ? 200 : 0);
		kpcp_detach(&c);
		must_be_whole(&k);
		kpcp_close(&k);
	}
}

Test(kpcp, bad_options_are_refused)
{
	static const struct kpcp_options bad[] = {
		{1, 31, 186, 1, KPCP_EAGER},	{16, 0, 186, 1, KPCP_EAGER},
		{16, 31, 30, 1, KPCP_EAGER},	{16, 31, 186, 0, KPCP_EAGER},
		{16, 31, 186, 5, KPCP_EAGER},	{16, 31, 186, 1, KPCP_MERGES},
		{16, 4097, 9999, 1, KPCP_EAGER},
	};
	struct kpcp k;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(kpcp_open(&k, &bad[i]), -EINVAL, "%zu", i);
}

/* ---- Merging ------------------------------------------------------------- */

static unsigned runs_count(const struct kpcp *k)
{
	unsigned n = 0;

	for (uint32_t link = k->runs; link; link = k->page[link - 1].run_next)
		n++;
	return n;
}

/* Takes all pages and gives them back: what of them is merged then? */
static void all_through(struct kpcp *k, struct kpcp_cache *c)
{
	static void *page[PAGES];

	for (unsigned i = 0; i < PAGES; i++)
		cr_assert((page[i] = kpcp_alloc(c, 0)) != NULL);
	cr_assert_eq(kpcp_alloc(c, 0), NULL);
	for (unsigned i = 0; i < PAGES; i++)
		kpcp_free(c, page[i], 0);
	cr_assert_eq(k->buddy.free_pages + k->unmerged_pages + c->count, PAGES);
}

Test(kpcp, eager_merges_each_page)
{
	struct kpcp k;
	struct kpcp_cache c;

	must_open(&k, 31, 186, 1, KPCP_EAGER);
	kpcp_attach(&k, &c);
	all_through(&k, &c);
	cr_assert_eq(k.unmerged_pages, 0);
	cr_assert_eq(kpcp_free_blocks(&k, 9), CHUNKS - 1);
	kpcp_close(&k);
}

Test(kpcp, deferred_merges_when_a_larger_block_is_missed)
{
	struct kpcp k;
	struct kpcp_cache c;

	for (enum kpcp_merge m = KPCP_LAZY; m < KPCP_MERGES; m++) {
		must_open(&k, 31, 186, 1, m);
		kpcp_attach(&k, &c);
		all_through(&k, &c);
		cr_assert_eq(k.unmerged_pages + c.count, PAGES);
		cr_assert_eq(k.buddy.free_pages, 0);
		kpcp_free(&c, kpcp_alloc(&c, 9), 9);
		cr_assert_eq(k.merge_passes, 1);
		cr_assert_eq(k.unmerged_pages, 0);
		cr_assert_not(k.merge_needed);
		kpcp_detach(&c);
		must_be_whole(&k);
		kpcp_close(&k);
	}
}

Test(kpcp, missed_in_vain_turns_merging_on_until_one_is_found)
{
	static void *page[PAGES];
	struct kpcp k;
	struct kpcp_cache c;

	must_open(&k, 31, 186, 1, KPCP_CLUSTER);
	kpcp_attach(&k, &c);
	for (unsigned i = 0; i < PAGES; i++)
		page[i] = kpcp_alloc(&c, 0);
	cr_assert_eq(kpcp_alloc(&c, 9), NULL);
	cr_assert(k.merge_needed);
	for (unsigned i = 0; i < PAGES; i++)
		kpcp_free(&c, page[i], 0);
	cr_assert_eq(k.unmerged_pages, 0);
	cr_assert_eq(kpcp_free_blocks(&k, 9), CHUNKS - 1);
	kpcp_free(&c, kpcp_alloc(&c, 9), 9);
	cr_assert_not(k.merge_needed);
	kpcp_detach(&c);
	must_be_whole(&k);
	kpcp_close(&k);
}

Test(kpcp, cluster_takes_runs_whole)
{
	struct kpcp k;
	struct kpcp_cache c;

	must_open(&k, 31, 186, 1, KPCP_CLUSTER);
	kpcp_attach(&k, &c);
	all_through(&k, &c);
	cr_assert_eq(runs_count(&k), (PAGES - c.count) / 31);
	kpcp_close(&k);
}

/* ---- Model --------------------------------------------------------------- */

struct out {
	uint32_t pfn;
	unsigned order;
};

/* Marks the pages of a block, which must all have been the other. */
static void must_mark(uint8_t *used, uint32_t pfn, unsigned order, uint8_t to)
{
	cr_assert_eq(pfn % (1u << order), 0);
	for (uint32_t i = pfn; i < pfn + (1u << order); i++) {
		cr_assert_neq(used[i], to);
		used[i] = to;
	}
}

static void model_run(unsigned orders, enum kpcp_merge merge, unsigned seed)
{
	static uint8_t used[PAGES];
	static struct out out[PAGES];
	struct kpcp k;
	struct kpcp_cache c[2];
	unsigned n = 0, pages = 0;

	memset(used, 0, sizeof(used));
	must_open(&k, 15, 90, orders, merge);
	kpcp_attach(&k, &c[0]);
	kpcp_attach(&k, &c[1]);
	for (unsigned step = 0; step < STEPS; step++) {
		struct kpcp_cache *any = &c[rand_r(&seed) % 2];
		unsigned dice = (unsigned)rand_r(&seed);

		if (n && (dice % 2 || pages > PAGES * 3 / 4)) {
			struct out *o = &out[(dice >> 4) % n];

			must_mark(used, o->pfn, o->order, 0);
			kpcp_free(any, k.base + (size_t)o->pfn * 4096, o->order);
			pages -= 1u << o->order;
			*o = out[--n];
		} else {
			unsigned order = (dice >> 4) % 50 == 0
						 ? (dice >> 12) % 10
						 : (dice >> 12) % 5;
			char *p = kpcp_alloc(any, order);

			if (!p)
				continue;
			out[n].pfn = (uint32_t)((size_t)(p - k.base) / 4096);
			out[n].order = order;
			must_mark(used, out[n++].pfn, order, 1);
			pages += 1u << order;
		}
		cr_assert_eq(k.buddy.free_pages + k.unmerged_pages + c[0].count +
				     c[1].count + pages,
			     PAGES);
	}
	while (n--)
		kpcp_free(&c[n % 2], k.base + (size_t)out[n].pfn * 4096,
			  out[n].order);
	kpcp_detach(&c[0]);
	kpcp_detach(&c[1]);
	must_be_whole(&k);
	kpcp_close(&k);
}

Test(kpcp, no_page_is_out_twice_and_all_merge)
{
	for (enum kpcp_merge m = KPCP_EAGER; m < KPCP_MERGES; m++)
		for (unsigned orders = 1; orders <= KPCP_ORDERS; orders++)
			model_run(orders, m, 7 * orders + (unsigned)m);
}

/* ---- Threads ------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 400, TAKEN = 200 };

static void *thread_main(void *arg)
{
	struct kpcp_cache c;
	uint64_t *word[TAKEN];

	kpcp_attach(arg, &c);
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < TAKEN; i++) {
			word[i] = kpcp_alloc(&c, 0);
			if (!word[i])
				return "no page";
			*word[i] = (uintptr_t)&c + (uint64_t)i;
		}
		for (int i = 0; i < TAKEN; i++) {
			if (*word[i] != (uintptr_t)&c + (uint64_t)i)
				return "page out twice";
			kpcp_free(&c, word[i], 0);
		}
	}
	kpcp_detach(&c);
	return NULL;
}

Test(kpcp, threads_share_no_page)
{
	for (enum kpcp_merge m = KPCP_EAGER; m < KPCP_MERGES; m++) {
		pthread_t thread[THREADS];
		struct kpcp k;

		must_open(&k, 15, 90, 1, m);
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_create(&thread[i], NULL,
						    thread_main, &k),
				     0);
		for (int i = 0; i < THREADS; i++) {
			void *fault;

			pthread_join(thread[i], &fault);
			cr_assert_eq(fault, NULL, "%s", (char *)fault);
		}
		must_be_whole(&k);
		kpcp_close(&k);
	}
}
