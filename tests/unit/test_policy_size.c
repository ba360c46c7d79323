/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_policy_size.c - section A of the specification number by number, and
 * Y1-Y5 of policy_size.c with random inputs.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "policy.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* The zone of the first report: 248 GiB of persistent memory, no CPUs, in a
 * machine with 96. */
#define SEED_MANAGED UINT64_C(65011712)
#define SEED_LOW UINT64_C(69584)

#define RANDOM_ROUNDS 200000

static uint64_t random_state;

/* PCPI_SEED repeats a run. */
static void start_random(void)
{
	const char *text = getenv("PCPI_SEED");

	random_state = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	fprintf(stderr, "PCPI_SEED=%llu\n", (unsigned long long)random_state);
}

/* splitmix64, of a random width: small and large numbers are equally likely. */
static uint64_t draw(unsigned max_bits)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return (z >> 8) & ((UINT64_C(1) << (z % (max_bits + 1))) - 1);
}

static struct pcpi_pageset_inputs seed_inputs(void)
{
	return (struct pcpi_pageset_inputs){
		.managed_pages = SEED_MANAGED,
		.page_bytes = 4 * KIB,
		.low_pages = SEED_LOW,
		.node_cpus = 0,
		.all_cpus = 96,
		.threads = 1,
		.ring_capacity_pages = 65536,
	};
}

/* A zone of so many bytes in 4 KiB pages with the marks it would have. */
static struct pcpi_pageset_inputs zone_inputs(uint64_t bytes, uint32_t cpus,
					      uint32_t threads)
{
	uint64_t managed = bytes / (4 * KIB);
	struct pcpi_watermarks wm =
		pcpi_policy_watermarks(managed, 4 * KIB, 0, 10);

	return (struct pcpi_pageset_inputs){
		.managed_pages = managed,
		.page_bytes = 4 * KIB,
		.low_pages = wm.low,
		.node_cpus = cpus,
		.all_cpus = cpus,
		.threads = threads,
		.ring_capacity_pages = 65536,
	};
}

static void expect_pageset(const struct pcpi_pageset_inputs *in,
			   uint32_t high_min, uint32_t high_max, uint32_t batch)
{
	struct pcpi_pageset ps = pcpi_policy_pageset(in);

	cr_expect_eq(ps.high_min, high_min, "high_min %u", ps.high_min);
	cr_expect_eq(ps.high_max, high_max, "high_max %u", ps.high_max);
	cr_expect_eq(ps.batch, batch, "batch %u", ps.batch);
	cr_expect_eq(ps.legacy, in->legacy);
}

/* ---- Watermarks ---------------------------------------------------------- */

static void expect_marks(uint64_t managed, uint64_t page_bytes, uint64_t min,
			 uint64_t low, uint64_t high)
{
	struct pcpi_watermarks wm =
		pcpi_policy_watermarks(managed, page_bytes, 0, 10);

	cr_expect_eq(wm.min, min, "%llu: min %llu", (unsigned long long)managed,
		     (unsigned long long)wm.min);
	cr_expect_eq(wm.low, low, "%llu: low %llu", (unsigned long long)managed,
		     (unsigned long long)wm.low);
	cr_expect_eq(wm.high, high, "%llu: high %llu",
		     (unsigned long long)managed, (unsigned long long)wm.high);
}

Test(policy_size, watermarks_of_the_seed_zone_are_the_reported)
{
	struct pcpi_watermarks wm =
		pcpi_policy_watermarks(SEED_MANAGED, 4 * KIB, 4573, 10);

	cr_expect_eq(wm.min, 4573);
	cr_expect_eq(wm.low, SEED_LOW);
	cr_expect_eq(wm.high, 134595);
	cr_expect_eq(wm.promo, 199606);
	cr_expect_eq(wm.high - wm.low, SEED_MANAGED / 1000);
}

Test(policy_size, watermarks_without_min_follow_the_square_root)
{
	/* sqrt(16 * KiB) KiB: 2 MiB of 256 MiB, 4 of 1 GiB, 16 of 16 GiB. */
	expect_marks(65536, 4 * KIB, 512, 640, 768);
	expect_marks(262144, 4 * KIB, 1024, 1286, 1548);
	expect_marks(16 * GIB / (4 * KIB), 4 * KIB, 4096, 8290, 12484);
	/* The same zone of 256 MiB in larger pages. */
	expect_marks(16384, 16 * KIB, 128, 160, 192);
	expect_marks(4096, 64 * KIB, 32, 40, 48);
}

Test(policy_size, watermarks_without_min_are_clamped)
{
	/* 128 KiB at least ... */
	expect_marks(2 * MIB / (4 * KIB), 4 * KIB, 45, 56, 67);
	expect_marks(1 * MIB / (4 * KIB), 4 * KIB, 32, 40, 48);
	expect_marks(512 * KIB / (4 * KIB), 4 * KIB, 32, 40, 48);
	/* ... but a quarter of the zone at most, and a page ... */
	expect_marks(16, 4 * KIB, 4, 5, 6);
	expect_marks(5, 4 * KIB, 1, 1, 1);
	expect_marks(1, 4 * KIB, 1, 1, 1);
	expect_marks(0, 4 * KIB, 0, 0, 0);
	/* ... and 256 MiB at most: reached at 4 TiB. */
	cr_expect_eq(
		pcpi_policy_watermarks((UINT64_C(1) << 30) - 1, 4 * KIB, 0, 10).min,
		65535);
	cr_expect_eq(
		pcpi_policy_watermarks(UINT64_C(1) << 30, 4 * KIB, 0, 10).min,
		65536);
	cr_expect_eq(
		pcpi_policy_watermarks(UINT64_C(1) << 40, 4 * KIB, 0, 10).min,
		65536);
}

Test(policy_size, watermarks_given_min_is_bounded_by_a_quarter)
{
	struct pcpi_watermarks wm =
		pcpi_policy_watermarks(1000, 4 * KIB, 999, 10);

	cr_expect_eq(wm.min, 250);
	cr_expect_eq(wm.low, 312);
	cr_expect_eq(wm.high, 374);
}

Test(policy_size, watermarks_whole_zone_as_gap_saturates)
{
	struct pcpi_watermarks wm = pcpi_policy_watermarks(
		UINT64_C(1) << 40, 4 * KIB, 0, UINT32_MAX);

	cr_expect_eq(wm.low, UINT64_C(1) << 40);
	cr_expect_eq(wm.promo, UINT64_C(1) << 40);
}

static void expect_marks_ordered(uint64_t managed, struct pcpi_watermarks wm)
{
	cr_assert(wm.min > 0 && wm.min <= wm.low && wm.low <= wm.high &&
			  wm.high <= wm.promo && wm.promo <= managed,
		  "managed %llu", (unsigned long long)managed);
}

static void expect_marks_grow(struct pcpi_watermarks a, struct pcpi_watermarks b)
{
	cr_assert(a.min <= b.min && a.low <= b.low && a.high <= b.high &&
		  a.promo <= b.promo);
}

Test(policy_size, watermarks_random_zones_are_ordered_and_monotone)
{
	start_random();
	for (int i = 0; i < RANDOM_ROUNDS; i++) {
		uint64_t managed = 1 + draw(40), page = 4 * KIB << draw(2);
		uint64_t min = draw(1) ? draw(41) : 0;
		uint32_t scale = (uint32_t)draw(14);
		struct pcpi_watermarks wm =
			pcpi_policy_watermarks(managed, page, min, scale);

		expect_marks_ordered(managed, wm);
		expect_marks_grow(wm, pcpi_policy_watermarks(managed + draw(40),
							     page, min, scale));
		expect_marks_grow(
			wm, pcpi_policy_watermarks(managed, page, min,
						   scale + (uint32_t)draw(14)));
		if (min != 0)
			expect_marks_grow(wm, pcpi_policy_watermarks(
						      managed, page,
						      min + draw(40), scale));
	}
}

/* ---- Batch --------------------------------------------------------------- */

Test(policy_size, batch_follows_the_table)
{
	static const struct {
		uint64_t bytes, page;
		uint32_t batch;
	} row[] = {
		/* Rounded to the nearest, not down. */
		{192 * MIB, 4 * KIB, 15}, {700 * MIB, 4 * KIB, 63},
		{16 * MIB, 4 * KIB, 1},   {64 * MIB, 4 * KIB, 3},
		{128 * MIB, 4 * KIB, 7},  {256 * MIB, 4 * KIB, 15},
		{512 * MIB, 4 * KIB, 31}, {1 * GIB, 4 * KIB, 63},
		{248 * GIB, 4 * KIB, 63}, {256 * GIB, 16 * KIB, 15},
		{256 * GIB, 64 * KIB, 3}, {256 * GIB, 2 * MIB, 1},
		{0, 4 * KIB, 1},          {4 * KIB, 4 * KIB, 1},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		cr_expect_eq(pcpi_policy_batch(row[i].bytes / row[i].page,
					       row[i].page),
			     row[i].batch, "row %zu", i);
	cr_expect_eq(pcpi_policy_batch(UINT64_C(1) << 40, 4 * KIB), 63);
}

Test(policy_size, batch_random_zones_is_one_less_than_a_power_of_two)
{
	start_random();
	for (int i = 0; i < RANDOM_ROUNDS; i++) {
		uint64_t managed = draw(40), page = 4 * KIB << draw(2);
		uint32_t batch = pcpi_policy_batch(managed, page);

		cr_assert(batch >= 1 && batch <= 63);
		cr_assert_eq(batch & (batch + 1), 0);
		cr_assert_leq(batch,
			      pcpi_policy_batch(managed + draw(40), page));
	}
}

/* ---- High ---------------------------------------------------------------- */

Test(policy_size, legacy_high_is_six_batches)
{
	cr_expect_eq(pcpi_policy_legacy_high(63), 378);
	cr_expect_eq(pcpi_policy_legacy_high(31), 186);
	cr_expect_eq(pcpi_policy_legacy_high(310), 1860);
}

Test(policy_size, fraction_below_eight_is_invalid)
{
	cr_expect(pcpi_policy_fraction_valid(0));
	for (uint32_t f = 1; f < 8; f++)
		cr_expect(!pcpi_policy_fraction_valid(f), "%u", f);
	cr_expect(pcpi_policy_fraction_valid(8));
	cr_expect(pcpi_policy_fraction_valid(UINT32_MAX));
}

Test(policy_size, highsize_of_a_node_without_cpus_is_split_by_all)
{
	cr_expect_eq(pcpi_policy_zone_highsize(SEED_MANAGED, SEED_LOW, 63, 0, 0,
					       96, 0),
		     724);
	/* 1/8 of the zone in the same way. */
	cr_expect_eq(pcpi_policy_zone_highsize(SEED_MANAGED, SEED_LOW, 63, 0, 0,
					       96, 8),
		     84650);
	/* What a single CPU gets; 96 of these were the old fault. */
	cr_expect_eq(pcpi_policy_zone_highsize(SEED_MANAGED, SEED_LOW, 63, 0, 0,
					       1, 0),
		     SEED_LOW);
}

Test(policy_size, highsize_after_a_97th_cpu_is_717)
{
	/* Elsewhere: the node without CPUs sees one more in all. */
	cr_expect_eq(pcpi_policy_zone_highsize(SEED_MANAGED, SEED_LOW, 63, 0, 0,
					       97, 0),
		     717);
	/* On the node itself, whose mask doesn't have it yet. */
	cr_expect_eq(pcpi_policy_zone_highsize(SEED_MANAGED, SEED_LOW, 63, 96,
					       1, 96, 0),
		     717);
	/* And once it has. */
	cr_expect_eq(pcpi_policy_zone_highsize(SEED_MANAGED, SEED_LOW, 63, 97,
					       0, 97, 0),
		     717);
}

Test(policy_size, highsize_is_at_least_four_batches)
{
	cr_expect_eq(pcpi_policy_zone_highsize(262144, 100, 63, 4, 0, 4, 0),
		     252);
	cr_expect_eq(pcpi_policy_zone_highsize(262144, 1007, 63, 4, 0, 4, 0),
		     252);
	cr_expect_eq(pcpi_policy_zone_highsize(262144, 1012, 63, 4, 0, 4, 0),
		     253);
}

Test(policy_size, highsize_of_a_guest_goes_from_378_to_649)
{
	/* Four CPUs whose low watermark is 649 pages each. */
	cr_expect_eq(pcpi_policy_legacy_high(pcpi_policy_batch(1 << 20, 4 * KIB)),
		     378);
	cr_expect_eq(pcpi_policy_zone_highsize(1 << 20, 2599, 63, 4, 0, 4, 0),
		     649);
}

Test(policy_size, highsize_without_any_cpu_counts_one)
{
	cr_expect_eq(pcpi_policy_zone_highsize(65536, 640, 15, 0, 0, 0, 0), 640);
}

/* ---- Pageset ------------------------------------------------------------- */

Test(policy_size, pageset_of_the_seed_zone_is_split_by_all_cpus)
{
	struct pcpi_pageset_inputs in = seed_inputs();

	in.ring_capacity_pages = 1 << 20;
	expect_pageset(&in, 724, 84650, 63);
	in.ring_capacity_pages = 65536;
	expect_pageset(&in, 724, 65536, 63);
	in.legacy = true;
	expect_pageset(&in, 724, 724, 63);
	in.all_cpus = 97;
	expect_pageset(&in, 717, 717, 63);
}

Test(policy_size, pageset_with_fraction_is_fixed)
{
	struct pcpi_pageset_inputs in = seed_inputs();

	in.ring_capacity_pages = 1 << 20;
	in.fraction = 8;
	expect_pageset(&in, 84650, 84650, 63);
	in.fraction = 1000;
	expect_pageset(&in, 677, 677, 63);
	in.legacy = true;
	expect_pageset(&in, 677, 677, 63);
	/* Batch never changes, and the floor holds. */
	in.fraction = 1000000;
	expect_pageset(&in, 252, 252, 63);
}

Test(policy_size, pageset_threads_beyond_the_cpus_share_too)
{
	struct pcpi_pageset_inputs in = zone_inputs(1 * GIB, 2, 1);

	expect_pageset(&in, 643, 16384, 63);
	in.threads = 4;
	expect_pageset(&in, 321, 8192, 63);
	in.threads = 16;
	expect_pageset(&in, 252, 2048, 63);
}

Test(policy_size, pageset_batch_is_halved_until_four_fit)
{
	static const struct {
		uint32_t threads, high_max, batch;
	} row[] = {
		{130, 252, 63}, {131, 250, 31}, {264, 124, 31}, {265, 123, 15},
		{546, 60, 15},  {547, 59, 7},   {1170, 28, 7},  {1171, 27, 3},
		{2730, 12, 3},  {2731, 11, 1},  {8192, 4, 1},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct pcpi_pageset_inputs in =
			zone_inputs(1 * GIB, 2, row[i].threads);
		struct pcpi_pageset ps = pcpi_policy_pageset(&in);

		cr_expect_eq(ps.batch, row[i].batch, "row %zu: batch %u", i,
			     ps.batch);
		cr_expect_eq(ps.high_max, row[i].high_max, "row %zu: high %u",
			     i, ps.high_max);
		cr_expect_leq(ps.high_min, ps.high_max);
		cr_expect_geq(ps.high_min, 4 * ps.batch);
	}
}

Test(policy_size, pageset_nothing_fits_caches_nothing)
{
	struct pcpi_pageset_inputs in = zone_inputs(1 * GIB, 2, 8193);

	expect_pageset(&in, 0, 0, 1);
	in.high_pages = 814;
	in.batch_pages = 63;
	expect_pageset(&in, 0, 0, 1);
	in = zone_inputs(0, 2, 1);
	expect_pageset(&in, 0, 0, 1);
	in = zone_inputs(1 * GIB, 2, 1);
	in.ring_capacity_pages = 0;
	expect_pageset(&in, 0, 0, 1);
}

Test(policy_size, pageset_knobs_win_within_the_share)
{
	struct pcpi_pageset_inputs in = zone_inputs(256 * MIB, 2, 2);

	in.legacy = true;
	in.batch_pages = 63;
	in.high_pages = 814;
	expect_pageset(&in, 814, 814, 63);
	/* high_pages over fraction, and fixed for MODERN as well. */
	in.fraction = 8;
	in.legacy = false;
	expect_pageset(&in, 814, 814, 63);
	in.high_pages = 1000000;
	expect_pageset(&in, 4096, 4096, 63);
	/* Below the floor of four batches, because somebody asked for it. */
	in.high_pages = 100;
	expect_pageset(&in, 100, 100, 63);
	in.batch_pages = 0;
	expect_pageset(&in, 100, 100, 15);
	in.high_pages = 50;
	expect_pageset(&in, 50, 50, 7);
	in.high_pages = 3;
	expect_pageset(&in, 3, 3, 1);
	in.high_pages = 0;
	in.fraction = 0;
	in.batch_pages = 63;
	expect_pageset(&in, 320, 4096, 63);
	in.batch_pages = 4096;
	expect_pageset(&in, 4096, 4096, 1024);
}

Test(policy_size, pageset_random_inputs_stay_within_the_share)
{
	start_random();
	for (int i = 0; i < RANDOM_ROUNDS; i++) {
		struct pcpi_pageset_inputs in = {
			.managed_pages = draw(40),
			.page_bytes = 4 * KIB << draw(2),
			.node_cpus = (uint32_t)draw(10),
			.all_cpus = (uint32_t)draw(11),
			.threads = (uint32_t)draw(14),
			.fraction = draw(2) ? 0 : 8 + (uint32_t)draw(20),
			.batch_pages = draw(2) ? 0 : (uint32_t)draw(32),
			.high_pages = draw(2) ? 0 : (uint32_t)draw(32),
			.ring_capacity_pages = (uint32_t)draw(20),
			.legacy = draw(1) != 0,
		};
		uint64_t sharers = in.node_cpus ? in.node_cpus : in.all_cpus;
		struct pcpi_pageset ps, more;

		in.low_pages = pcpi_policy_watermarks(in.managed_pages,
						      in.page_bytes, 0, 10)
				       .low;
		ps = pcpi_policy_pageset(&in);
		sharers = sharers > in.threads ? sharers : in.threads;
		cr_assert_leq(sharers * ps.high_max, in.managed_pages / 8);
		cr_assert_leq(ps.high_max, in.ring_capacity_pages);
		cr_assert_leq(ps.high_min, ps.high_max);
		cr_assert_geq(ps.batch, 1);
		cr_assert(ps.high_max == 0 ? ps.batch == 1 && ps.high_min == 0
					   : in.high_pages != 0 ||
						     4 * (uint64_t)ps.batch <=
							     ps.high_min);
		cr_assert(in.batch_pages != 0 || ps.batch == 1 ||
			  4 * ps.batch <= ps.high_min);
		if (in.legacy || in.fraction || in.high_pages)
			cr_assert_eq(ps.high_min, ps.high_max);
		in.managed_pages += draw(40);
		more = pcpi_policy_pageset(&in);
		cr_assert(more.batch >= ps.batch &&
			  more.high_max >= ps.high_max &&
			  more.high_min >= ps.high_min);
	}
}

/* ---- Depot --------------------------------------------------------------- */

Test(policy_size, depot_batch_shrinks_only_for_many_threads)
{
	/* 16 MiB: 1/8 is 512 pages. */
	cr_expect_eq(pcpi_policy_depot_batch(1, 4096), 256);
	cr_expect_eq(pcpi_policy_depot_batch(2, 4096), 128);
	cr_expect_eq(pcpi_policy_depot_batch(3, 4096), 64);
	cr_expect_eq(pcpi_policy_depot_batch(4, 4096), 64);
	cr_expect_eq(pcpi_policy_depot_batch(5, 4096), 32);
	cr_expect_eq(pcpi_policy_depot_batch(8, 4096), 32);
	cr_expect_eq(pcpi_policy_depot_batch(9, 4096), 8);
	cr_expect_eq(pcpi_policy_depot_batch(1000, 4096), 8);
	/* 64 MiB and two threads have the full batch. */
	cr_expect_eq(pcpi_policy_depot_batch(2, 64 * MIB / (4 * KIB)), 256);
	cr_expect_eq(pcpi_policy_depot_batch(0, 0), 8);
	cr_expect_eq(pcpi_policy_depot_batch(UINT32_MAX, UINT64_C(1) << 40), 8);
	cr_expect_eq(pcpi_policy_depot_batch(1000000, UINT64_C(1) << 40), 256);
}

Test(policy_size, depot_blocks_are_at_least_four_of_a_high_order)
{
	cr_expect_eq(pcpi_policy_depot_blocks(64, 0), 64);
	cr_expect_eq(pcpi_policy_depot_blocks(64, 1), 32);
	cr_expect_eq(pcpi_policy_depot_blocks(64, 3), 8);
	cr_expect_eq(pcpi_policy_depot_blocks(32, 3), 4);
	cr_expect_eq(pcpi_policy_depot_blocks(8, 0), 8);
	cr_expect_eq(pcpi_policy_depot_blocks(8, 1), 4);
	cr_expect_eq(pcpi_policy_depot_blocks(8, 3), 4);
}

Test(policy_size, depot_limit_is_a_quarter_unless_fixed)
{
	cr_expect_eq(pcpi_policy_depot_limit(65536, false), 16384);
	cr_expect_eq(pcpi_policy_depot_limit(65536, true), 65536);
	cr_expect_eq(pcpi_policy_depot_limit(UINT64_C(1) << 40, false),
		     UINT64_C(1) << 38);
}

Test(policy_size, free_high_batch_needs_more_than_three_batches_of_cache)
{
	cr_expect(!pcpi_policy_free_high_batch(756 * KIB, 4 * KIB, 63));
	cr_expect(!pcpi_policy_free_high_batch(759 * KIB, 4 * KIB, 63));
	cr_expect(pcpi_policy_free_high_batch(760 * KIB, 4 * KIB, 63));
	cr_expect(!pcpi_policy_free_high_batch(0, 4 * KIB, 1));
}

/* ---- Small caches --------------------------------------------------------- */

Test(policy_size, room_is_up_to_the_bound_and_a_batch_at_least)
{
	struct pcpi_pageset ps = {.high_min = 40, .high_max = 256, .batch = 7};

	cr_expect_eq(pcpi_policy_room(&ps, 0), 256);
	cr_expect_eq(pcpi_policy_room(&ps, 200), 56);
	cr_expect_eq(pcpi_policy_room(&ps, 250), 7);
	cr_expect_eq(pcpi_policy_room(&ps, 300), 7);
	ps = (struct pcpi_pageset){.batch = 1};
	cr_expect_eq(pcpi_policy_room(&ps, 0), 0, "nothing is cached");
}

Test(policy_size, tight_is_less_than_four_blocks_of_each_order)
{
	cr_expect(pcpi_policy_is_tight(0));
	cr_expect(pcpi_policy_is_tight(59));
	cr_expect_not(pcpi_policy_is_tight(60));
}
