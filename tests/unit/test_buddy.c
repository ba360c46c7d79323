/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_buddy.c - splitting, merging and bulk of both buddy cores, on small
 * ranges whose outcome is known by hand.  Every case but the last ones holds
 * for both; the model test finds what nobody thought of.
 */
#include <criterion/criterion.h>
#include <signal.h>

#include "buddy_core.h"

#define FIRST 4096u
#define MAX_PAGES 65536u

static uint32_t pfns[MAX_PAGES];

/* Runs a body for each core in turn. */
#define FOR_BOTH(c)                                                            \
	for (struct core c = {.kind = CORE_BITMAP}; c.kind < CORE_KINDS;       \
	     c.kind++)

static void must_check(const struct core *c)
{
	cr_assert(CORE_ASK(c, check), "%s core is inconsistent",
		  core_name(c->kind));
}

/* The free blocks by order are those listed, from order 0 on. */
static void must_count(const struct core *c, const uint32_t *want, unsigned n)
{
	uint32_t have[PCPI_MAX_ORDER + 1];

	must_check(c);
	core_counts(c, have);
	for (unsigned j = 0; j <= PCPI_MAX_ORDER; j++)
		cr_assert_eq(have[j], j < n ? want[j] : 0,
			     "%s core: %u blocks of order %u",
			     core_name(c->kind), have[j], j);
}

#define MUST_COUNT(c, ...)                                                     \
	must_count((c), (const uint32_t[]){__VA_ARGS__},                       \
		   sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

Test(buddy, nothing_added_has_nothing)
{
	FOR_BOTH(c)
	{
		core_make(&c, c.kind, FIRST, 3, 9);
		must_check(&c);
		cr_assert_eq(CORE_DO(&c, take, 0), PCPI_NO_PFN);
		cr_assert_eq(CORE_DO(&c, take_bulk, 0, pfns, 8), 0);
		cr_assert_not(CORE_DO(&c, has, 0));
		cr_assert_not(CORE_DO(&c, is_free, FIRST));
		cr_assert_eq(CORE_ASK(&c, free_pages), 0);
		core_unmake(&c);
	}
}

Test(buddy, add_of_some_chunks_leaves_the_others_unmanaged)
{
	FOR_BOTH(c)
	{
		core_make(&c, c.kind, FIRST, 4, 9);
		CORE_DO(&c, add, FIRST + 512, 1024);
		MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2);
		cr_assert_eq(CORE_ASK(&c, free_pages), 1024);
		cr_assert_not(CORE_DO(&c, is_free, FIRST + 511));
		cr_assert(CORE_DO(&c, is_free, FIRST + 512));
		cr_assert(CORE_DO(&c, is_free, FIRST + 1535));
		cr_assert_not(CORE_DO(&c, is_free, FIRST + 1536));
		cr_assert_eq(core_take_all(&c, 0, pfns, 2048), 1024);
		for (uint32_t i = 0; i < 1024; i++)
			cr_assert(pfns[i] >= FIRST + 512 &&
				  pfns[i] < FIRST + 1536);
		core_unmake(&c);
	}
}

Test(buddy, range_is_taken_out_of_the_blocks_around_it)
{
	FOR_BOTH(c)
	{
		uint32_t first = 0;

		core_make_free(&c, c.kind, FIRST, 2, 9);
		/* From page 509 of the first chunk to page 70 of the second. */
		CORE_DO(&c, range_take, FIRST + 509, 74);
		MUST_COUNT(&c, 2, 0, 1, 2, 2, 2, 1, 2, 2);
		cr_assert_eq(CORE_ASK(&c, free_pages), 1024 - 74);
		cr_assert_eq(CORE_DO(&c, range_free, FIRST, 1024), 1024 - 74);
		cr_assert_eq(CORE_DO(&c, range_free, FIRST + 509, 74), 0);
		cr_assert_eq(CORE_DO(&c, range_free, FIRST + 508, 76), 2);
		cr_assert_eq(CORE_DO(&c, range_run, FIRST, 1024, &first), 509);
		cr_assert_eq(first, FIRST);
		cr_assert_eq(CORE_DO(&c, range_run, FIRST + 509, 74, &first), 0);
		cr_assert_eq(CORE_DO(&c, range_run, FIRST + 510, 76, &first), 3);
		cr_assert_eq(first, FIRST + 583);
		CORE_DO(&c, range_give, FIRST + 509, 74);
		MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2);
		core_unmake(&c);
	}
}

Test(buddy, range_of_what_is_not_managed_has_nothing_free)
{
	FOR_BOTH(c)
	{
		uint32_t first = 0;

		core_make(&c, c.kind, FIRST, 3, 9);
		CORE_DO(&c, add, FIRST + 512, 512);
		cr_assert_eq(CORE_DO(&c, range_free, FIRST, 512), 0);
		cr_assert_eq(CORE_DO(&c, range_free, FIRST, 1536), 512);
		cr_assert_eq(CORE_DO(&c, range_run, FIRST, 1536, &first), 512);
		cr_assert_eq(first, FIRST + 512);
		core_unmake(&c);
	}
}

Test(buddy, range_that_is_not_all_free_traps_on_take, .signal = SIGILL)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 1, 9);
	CORE_DO(&c, range_take, FIRST + 100, 1);
	CORE_DO(&c, range_take, FIRST + 60, 41);
}

Test(buddy, range_that_is_free_in_part_traps_on_give, .signal = SIGILL)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 1, 9);
	CORE_DO(&c, range_take, FIRST + 60, 41);
	CORE_DO(&c, range_give, FIRST + 60, 42);
}

Test(buddy, is_free_outside_the_range_is_false)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 9);
		cr_assert_not(CORE_DO(&c, is_free, 0));
		cr_assert_not(CORE_DO(&c, is_free, FIRST - 1));
		cr_assert_not(CORE_DO(&c, is_free, FIRST + 512));
		cr_assert_not(CORE_DO(&c, is_free, PCPI_NO_PFN));
		core_unmake(&c);
	}
}

Test(buddy, take_page_splits_one_block_of_each_order)
{
	FOR_BOTH(c)
	{
		uint32_t pfn;

		core_make_free(&c, c.kind, FIRST, 1, 9);
		pfn = CORE_DO(&c, take, 0);
		cr_assert_eq(pfn, FIRST);
		MUST_COUNT(&c, 1, 1, 1, 1, 1, 1, 1, 1, 1);
		cr_assert_eq(core_splits(&c), 1);
		/* The upper half came back at each order: order 0 is next. */
		cr_assert_eq(CORE_DO(&c, take, 0), FIRST + 1);
		cr_assert_eq(core_splits(&c), 1);
		MUST_COUNT(&c, 0, 1, 1, 1, 1, 1, 1, 1, 1);
		core_unmake(&c);
	}
}

Test(buddy, take_uses_the_smallest_block_that_fits)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 9);
		cr_assert_eq(CORE_DO(&c, take, 9), FIRST);
		CORE_DO(&c, give, FIRST + 256, 8);
		CORE_DO(&c, give, FIRST + 128, 4);
		CORE_DO(&c, give, FIRST + 8, 3);
		CORE_DO(&c, give, FIRST + 3, 0);
		cr_assert_eq(CORE_DO(&c, take, 2), FIRST + 8);
		MUST_COUNT(&c, 1, 0, 1, 0, 1, 0, 0, 0, 1);
		cr_assert_eq(CORE_DO(&c, take, 3), FIRST + 128);
		MUST_COUNT(&c, 1, 0, 1, 1, 0, 0, 0, 0, 1);
		cr_assert_eq(CORE_DO(&c, take, 5), FIRST + 256);
		MUST_COUNT(&c, 1, 0, 1, 1, 0, 1, 1, 1);
		cr_assert_eq(CORE_DO(&c, take, 0), FIRST + 3);
		core_unmake(&c);
	}
}

Test(buddy, give_last_page_merges_to_top)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 9);
		cr_assert_eq(core_take_all(&c, 0, pfns, 512), 512);
		for (uint32_t i = 0; i < 512; i += 2)
			CORE_DO(&c, give, pfns[i], 0);
		MUST_COUNT(&c, 256);
		for (uint32_t i = 1; i < 511; i += 2)
			CORE_DO(&c, give, pfns[i], 0);
		MUST_COUNT(&c, 1, 1, 1, 1, 1, 1, 1, 1, 1);
		CORE_DO(&c, give, pfns[511], 0);
		MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
		core_unmake(&c);
	}
}

Test(buddy, neighbours_that_are_no_buddies_stay_apart)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 9);
		cr_assert_eq(CORE_DO(&c, take, 9), FIRST);
		CORE_DO(&c, give, FIRST + 1, 0);
		CORE_DO(&c, give, FIRST + 2, 0);
		MUST_COUNT(&c, 2);
		CORE_DO(&c, give, FIRST + 66, 1);
		CORE_DO(&c, give, FIRST + 68, 2);
		MUST_COUNT(&c, 2, 1, 1);
		cr_assert(CORE_DO(&c, has, 2));
		cr_assert_not(CORE_DO(&c, has, 3));
		core_unmake(&c);
	}
}

Test(buddy, chunks_never_merge)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 2, 4);
		MUST_COUNT(&c, 0, 0, 0, 0, 2);
		cr_assert_eq(core_take_all(&c, 3, pfns, 4), 4);
		for (uint32_t i = 0; i < 4; i++)
			CORE_DO(&c, give, pfns[i], 3);
		MUST_COUNT(&c, 0, 0, 0, 0, 2);
		cr_assert_not(CORE_DO(&c, has, 5));
		core_unmake(&c);
	}
}

Test(buddy, exhausted_gives_no_block_until_one_is_given)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 2, 9);
		cr_assert_eq(core_take_all(&c, 9, pfns, 8), 2);
		for (unsigned j = 0; j <= 9; j++) {
			cr_assert_not(CORE_DO(&c, has, j));
			cr_assert_eq(CORE_DO(&c, take, j), PCPI_NO_PFN);
			cr_assert_eq(CORE_DO(&c, take_bulk, j, pfns, 4), 0);
		}
		CORE_DO(&c, give, FIRST + 513, 0);
		cr_assert_eq(CORE_DO(&c, take, 1), PCPI_NO_PFN);
		cr_assert_eq(CORE_DO(&c, take, 0), FIRST + 513);
		must_check(&c);
		core_unmake(&c);
	}
}

Test(buddy, every_order_of_every_top_order_comes_and_goes)
{
	for (unsigned top = PCPI_BUDDY_MIN_TOP_ORDER; top <= PCPI_MAX_ORDER;
	     top++)
		for (unsigned order = 0; order <= top; order++)
			FOR_BOTH(c)
			{
				uint32_t n = 3u << (top - order), got;
				uint32_t whole[PCPI_MAX_ORDER + 1] = {0};

				core_make_free(&c, c.kind, 3u << top, 3, top);
				got = core_take_all(&c, order, pfns, n + 1);
				cr_assert_eq(got, n);
				cr_assert_eq(CORE_ASK(&c, free_pages), 0);
				must_check(&c);
				for (uint32_t i = 0; i < n; i++)
					cr_assert_eq(pfns[i] % (1u << order), 0);
				CORE_DO(&c, give_bulk, order, pfns, n);
				whole[top] = 3;
				must_count(&c, whole, top + 1);
				core_unmake(&c);
			}
}

Test(buddy, bulk_of_a_fresh_range_is_one_ascending_run)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 2, 9);
		cr_assert_eq(CORE_DO(&c, take_bulk, 0, pfns, 63), 63);
		for (uint32_t i = 0; i < 63; i++)
			cr_assert_eq(pfns[i], FIRST + i);
		MUST_COUNT(&c, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1);
		cr_assert_eq(core_splits(&c), 1);
		core_unmake(&c);
	}
}

Test(buddy, bulk_across_words_breaks_as_little_as_it_can)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 9);
		/* 100 blocks of 4 pages: 6 words and a quarter. */
		cr_assert_eq(CORE_DO(&c, take_bulk, 2, pfns, 100), 100);
		for (uint32_t i = 0; i < 100; i++)
			cr_assert_eq(pfns[i], FIRST + 4 * i);
		MUST_COUNT(&c, 0, 0, 0, 0, 1, 1, 1);
		core_unmake(&c);
	}
}

Test(buddy, bulk_takes_fragments_before_it_breaks_a_block)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 9);
		cr_assert_eq(CORE_DO(&c, take, 9), FIRST);
		for (uint32_t i = 0; i < 20; i++)
			CORE_DO(&c, give, FIRST + 1 + 2 * i, 0);
		CORE_DO(&c, give, FIRST + 256, 8);
		cr_assert_eq(core_take_all(&c, 0, pfns, 20), 20);
		cr_assert_eq(core_splits(&c), 0);
		MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 1);
		core_unmake(&c);
	}
}

Test(buddy, bulk_of_nothing_changes_nothing)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 9);
		cr_assert_eq(CORE_DO(&c, take_bulk, 0, pfns, 0), 0);
		CORE_DO(&c, give_bulk, 0, pfns, 0);
		MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
		core_unmake(&c);
	}
}

Test(buddy, pages_of_a_block_may_come_back_one_by_one)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 1, 10);
		cr_assert_eq(CORE_DO(&c, take, 10), FIRST);
		for (uint32_t i = 1024; i-- > 0;)
			CORE_DO(&c, give, FIRST + i, 0);
		MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
		core_unmake(&c);
	}
}

Test(buddy, all_given_in_random_order_is_whole_again)
{
	for (uint64_t seed = 1; seed <= 4; seed++)
		FOR_BOTH(c)
		{
			uint64_t state = seed * 7919;
			uint32_t n = 32u << 9;

			cr_log_info("seed %llu", (unsigned long long)seed);
			core_make_free(&c, c.kind, FIRST, 32, 9);
			cr_assert_eq(core_take_all(&c, 0, pfns, n), n);
			core_shuffle(pfns, n, &state);
			for (uint32_t i = 0; i < n; i += 63)
				CORE_DO(&c, give_bulk, 0, pfns + i,
					pcpi_min(63u, n - i));
			MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32);
			core_unmake(&c);
		}
}

Test(buddy, giving_runs_up_or_down_is_the_same)
{
	FOR_BOTH(c)
	{
		core_make_free(&c, c.kind, FIRST, 2, 9);
		cr_assert_eq(core_take_all(&c, 9, pfns, 2), 2);
		for (uint32_t i = 0; i < 300; i++) {
			pfns[i] = FIRST + 100 + i;
			pfns[599 - i] = FIRST + 512 + 100 + i;
		}
		CORE_DO(&c, give_bulk, 0, pfns, 600);
		/* Twice 100..399 = 4 + 8 + 16 + 128 + 128 + 16. */
		MUST_COUNT(&c, 0, 0, 2, 2, 4, 0, 0, 4);
		core_unmake(&c);
	}
}

Test(buddy, last_range_below_the_end_of_the_index_works)
{
	FOR_BOTH(c)
	{
		uint32_t first = UINT32_MAX - 1023;

		/* The chunk that PCPI_NO_PFN is in stays unmanaged. */
		core_make(&c, c.kind, first, 2, 9);
		CORE_DO(&c, add, first, 512);
		cr_assert_eq(core_take_all(&c, 0, pfns, 600), 512);
		CORE_DO(&c, give_bulk, 0, pfns, 512);
		MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
		core_unmake(&c);
	}
}

Test(buddy, page_given_twice_traps_bitmap, .signal = SIGILL)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 1, 9);
	cr_assert_eq(CORE_DO(&c, take, 3), FIRST);
	CORE_DO(&c, give, FIRST + 5, 0);
	CORE_DO(&c, give, FIRST + 4, 1);
}

Test(buddy, page_given_twice_traps_list, .signal = SIGILL)
{
	struct core c;

	core_make_free(&c, CORE_LIST, FIRST, 1, 9);
	cr_assert_eq(CORE_DO(&c, take, 3), FIRST);
	CORE_DO(&c, give, FIRST + 5, 0);
	CORE_DO(&c, give, FIRST + 5, 0);
}

Test(buddy, list_block_that_may_merge_twice_waits_at_the_tail)
{
	struct core c;

	core_make_free(&c, CORE_LIST, FIRST, 1, 9);
	cr_assert_eq(CORE_DO(&c, take, 9), FIRST);
	CORE_DO(&c, give, FIRST + 8, 0);
	CORE_DO(&c, give, FIRST + 2, 1);
	/* Its buddy's return would make a pair, and with 2..3 a block of 4. */
	CORE_DO(&c, give, FIRST, 0);
	cr_assert_eq(CORE_DO(&c, take, 0), FIRST + 8);
	cr_assert_eq(CORE_DO(&c, take, 0), FIRST);
	must_check(&c);
	core_unmake(&c);
}

/* ---- Bitmap core only --------------------------------------------------- */

/* Takes everything and gives back `each` pages of each chunk, two apart. */
static void leave_crumbs(struct core *c, uint32_t each)
{
	uint32_t chunk = 1u << c->top_order;

	cr_assert_eq(core_take_all(c, 0, pfns, core_pages(c)), core_pages(c));
	for (uint32_t i = 0; i < c->chunks; i++)
		for (uint32_t k = 0; k < each; k++)
			CORE_DO(c, give, c->first + i * chunk + 2 * k, 0);
}

Test(buddy, take_touches_at_most_four_chunks)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 8, 9);
	leave_crumbs(&c, 3);
	cr_assert_eq(CORE_DO(&c, take_bulk, 0, pfns, 64), 12);
	cr_assert_eq(CORE_DO(&c, take_bulk, 0, pfns, 64), 12);
	cr_assert_eq(CORE_DO(&c, take_bulk, 0, pfns, 64), 0);
	must_check(&c);
	core_unmake(&c);
}

Test(buddy, take_prefers_a_chunk_that_serves_all_of_it)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 8, 9);
	leave_crumbs(&c, 40);
	for (uint32_t k = 0; k < 24; k++)
		CORE_DO(&c, give, FIRST + 512 + 2 * k + 80, 0);
	cr_assert_eq(CORE_DO(&c, take_bulk, 0, pfns, 63), 63);
	for (uint32_t i = 0; i < 63; i++)
		cr_assert_eq((pfns[i] - FIRST) / 512, 1);
	core_unmake(&c);
}

Test(buddy, take_page_comes_from_the_fullest_chunk)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 4, 9);
	leave_crumbs(&c, 200);
	cr_assert_eq(core_take_all(&c, 0, pfns, 800), 800);
	CORE_DO(&c, give, FIRST + 8, 3);
	CORE_DO(&c, give, FIRST + 1024, 1);
	CORE_DO(&c, give, FIRST + 1536, 8);
	cr_assert_eq(CORE_DO(&c, take, 0), FIRST + 1024);
	cr_assert_eq(CORE_DO(&c, take, 1), FIRST + 8);
	cr_assert_eq(CORE_DO(&c, take, 3), FIRST + 1536);
	must_check(&c);
	core_unmake(&c);
}

/* The first chunk is the fuller one, and has but one block, of order 4. */
Test(buddy, take_breaks_no_large_block_where_others_have_small_ones)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 2, 9);
	cr_assert_eq(core_take_all(&c, 0, pfns, 1024), 1024);
	CORE_DO(&c, give, FIRST + 16, 4);
	for (uint32_t i = 0; i < 64; i++)
		CORE_DO(&c, give, FIRST + 512 + 8 * i, 0);
	for (uint32_t i = 0; i < 64; i++)
		cr_assert_geq(CORE_DO(&c, take, 0), FIRST + 512);
	cr_assert_eq(CORE_DO(&c, take, 4), FIRST + 16);
	must_check(&c);
	core_unmake(&c);
}

Test(buddy, whole_chunks_are_broken_last)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 8, 9);
	cr_assert_eq(CORE_DO(&c, take, 0), FIRST);
	/* Until the first chunk is used up, the other seven stay whole. */
	for (uint32_t i = 1; i < 512; i++) {
		cr_assert_eq(CORE_DO(&c, take, 0), FIRST + i);
		cr_assert(CORE_DO(&c, has, 9));
	}
	MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7);
	core_unmake(&c);
}

Test(buddy, metadata_is_a_fraction_of_a_byte_a_page)
{
	cr_assert_leq(pcpi_buddy_meta_bytes(1u << 19, 9), (1u << 28) / 5);
	for (unsigned top = PCPI_BUDDY_MIN_TOP_ORDER; top <= PCPI_MAX_ORDER;
	     top++)
		cr_assert_leq(pcpi_buddy_meta_bytes(1u << 16, top),
			      2 * ((size_t)1 << (16 + top)));
}

Test(buddy, init_touches_only_the_end_of_its_metadata)
{
	size_t bytes = pcpi_buddy_meta_bytes(4096, 9);
	unsigned char *meta = aligned_alloc(PCPI_CACHELINE, bytes);
	struct pcpi_buddy b;

	cr_assert_not_null(meta);
	memset(meta, 0, bytes);
	pcpi_buddy_init(&b, meta, 0, 4096, 9);
	for (size_t i = 0; i < bytes - 2048; i++)
		cr_assert_eq(meta[i], 0);
	cr_assert(pcpi_buddy_check(&b));
	free(meta);
}

/* ---- Giving chunks up: the bitmap core only ----------------------------------- */

Test(buddy, remove_of_free_chunks_leaves_them_unmanaged)
{
	struct core c;

	core_make_free(&c, CORE_BITMAP, FIRST, 4, 9);
	cr_assert(pcpi_buddy_remove(&c.u.bitmap, FIRST + 512, 1024));
	MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2);
	cr_assert_not(CORE_DO(&c, is_free, FIRST + 512));
	cr_assert_eq(core_take_all(&c, 0, pfns, 2048), 1024);
	must_check(&c);
	cr_assert_not(pcpi_buddy_remove(&c.u.bitmap, FIRST + 512, 512),
		      "not managed");
	CORE_DO(&c, add, FIRST + 512, 1024);
	MUST_COUNT(&c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2);
	core_unmake(&c);
}

Test(buddy, remove_beside_a_page_in_use_changes_nothing)
{
	uint32_t counts[PCPI_MAX_ORDER + 1], after[PCPI_MAX_ORDER + 1];
	struct core c;
	uint32_t pfn;

	core_make_free(&c, CORE_BITMAP, FIRST, 3, 9);
	pfn = CORE_DO(&c, take, 0);
	core_counts(&c, counts);
	cr_assert_not(pcpi_buddy_remove(&c.u.bitmap, FIRST, 1536));
	core_counts(&c, after);
	cr_assert_arr_eq(counts, after, sizeof(counts));
	must_check(&c);
	CORE_DO(&c, give, pfn, 0);
	cr_assert(pcpi_buddy_remove(&c.u.bitmap, FIRST, 1536));
	cr_assert_eq(CORE_ASK(&c, free_pages), 0);
	must_check(&c);
	core_unmake(&c);
}
