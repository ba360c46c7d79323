/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zero.c - rule 1: a new mapping is zero, also where the memory was somebody's.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <pthread.h>

static void reused_is_zero(size_t bytes)
{
	unsigned char *p = map_reused(bytes);

	expect_zero(p, (bytes + PAGE - 1) & -PAGE, "mapped again");
	memset(p, SOIL, bytes);
	unmap(p, bytes);
	expect_clean(bytes);
}

static void rule01_reused_page(void)
{
	reused_is_zero(PAGE);
}

static void rule01_reused_powers_of_two(void)
{
	for (size_t bytes = 2 * PAGE; bytes <= 8 * MIB; bytes *= 2)
		reused_is_zero(bytes);
}

static void rule01_reused_16_and_64_mib(void)
{
	reused_is_zero(16 * MIB);
	reused_is_zero(64 * MIB);
}

static void rule01_reused_odd_sizes(void)
{
	static const size_t pages[] = {3, 5, 7, 17, 100, 511, 513, 1025};

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		reused_is_zero(pages[i] * PAGE);
}

/* The whole last page belongs to the mapping, whatever its length. */
static void rule01_tail_page(void)
{
	static const size_t bytes[] = {1,          100,          PAGE + 1,
				       5000,       3 * PAGE - 1, 64 * KIB + 7,
				       MIB + 4000, 2 * MIB + 1};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		reused_is_zero(bytes[i]);
}

static void rule01_populate(void)
{
	for (size_t bytes = PAGE; bytes <= 4 * MIB; bytes *= 4) {
		unsigned char *p;

		soil(bytes);
		p = map_with(bytes, MAP_POPULATE);
		expect_zero(p, bytes, "MAP_POPULATE");
		memset(p, SOIL, bytes);
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

static void rule01_stack_and_noreserve(void)
{
	static const int flags[] = {MAP_STACK, MAP_NORESERVE,
				    MAP_STACK | MAP_NORESERVE};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
			unsigned char *p;

			soil(bytes);
			p = map_with(bytes, flags[i]);
			expect_zero(p, bytes, "MAP_STACK, MAP_NORESERVE");
			memset(p, SOIL, bytes);
			unmap(p, bytes);
			expect_clean(bytes);
		}
}

static void rule01_mremap_growth(void)
{
	for (size_t bytes = PAGE; bytes <= MIB; bytes *= 4) {
		unsigned char *p, *q;

		soil(4 * bytes);
		soil(bytes);
		p = map_soiled(bytes);
		q = mremap(p, bytes, 4 * bytes, MREMAP_MAYMOVE);
		EXPECT(q != MAP_FAILED);
		expect_bytes(q, bytes, SOIL, "mremap, the old part");
		expect_zero(q + bytes, 3 * bytes, "mremap, the new part");
		memset(q, SOIL, 4 * bytes);
		unmap(q, 4 * bytes);
		expect_clean(bytes);
		expect_clean(4 * bytes);
	}
}

/* Shrunk and grown again: what was cut off doesn't come back. */
static void rule01_mremap_regrowth(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 4 * MIB; bytes *= 4) {
		unsigned char *p = map_soiled(bytes);

		EXPECT(mremap(p, bytes, bytes / 4, 0) == p);
		p = mremap(p, bytes / 4, bytes, MREMAP_MAYMOVE);
		EXPECT(p != MAP_FAILED);
		expect_bytes(p, bytes / 4, SOIL, "grown again, the old part");
		expect_zero(p + bytes / 4, bytes - bytes / 4,
			    "grown again, the new part");
		unmap(p, bytes);
	}
}

/* A page here and there was written: which ones differs from round to round. */
static void rule01_sparsely_written(void)
{
	const size_t bytes = 2 * MIB;

	for (size_t round = 0; round < 60; round++) {
		unsigned char *p = map(bytes);

		expect_zero(p, bytes, "written here and there");
		for (size_t at = round * PAGE; at < bytes; at += 37 * PAGE)
			p[at + round] = SOIL;
		unmap(p, bytes);
	}
}

/* Untouched for long, so that a cache takes the size for one that isn't touched. */
static void rule01_written_after_untouched_rounds(void)
{
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 16) {
		for (size_t round = 0; round < 300; round++)
			unmap(map(bytes), bytes);
		reused_is_zero(bytes);
	}
}

#define SLOTS 64u

struct slot {
	unsigned char *p;
	size_t bytes;
	unsigned char value;
};

static unsigned draw(unsigned *random, unsigned n)
{
	*random = *random * 1103515245u + 12345u;
	return (*random >> 16) % n;
}

/* Nobody else writes into a mapping, and it begins as zero. */
static void rule01_random_sizes(void)
{
	static struct slot slots[SLOTS];
	unsigned random = 1;

	for (unsigned step = 0; step < scaled(4000); step++) {
		struct slot *s = &slots[draw(&random, SLOTS)];

		if (s->p) {
			expect_bytes(s->p, s->bytes, s->value, "held");
			unmap(s->p, s->bytes);
			s->p = NULL;
			continue;
		}
		s->bytes = PAGE << draw(&random, 8);
		s->bytes += draw(&random, 3) * PAGE;
		s->value = (unsigned char)(step | 1);
		s->p = map(s->bytes);
		expect_zero(s->p, s->bytes, "one of 64");
		memset(s->p, s->value, s->bytes);
	}
}

static void *soil_elsewhere(void *p)
{
	memset(p, SOIL, MIB);
	unmap(p, MIB);
	soil(MIB);
	return NULL;
}

static void rule01_freed_by_another_thread(void)
{
	for (unsigned round = 0; round < scaled(20); round++) {
		unsigned char *p = map(MIB);
		pthread_t thread;

		EXPECT(pthread_create(&thread, NULL, soil_elsewhere, p) == 0);
		EXPECT(pthread_join(thread, NULL) == 0);
		expect_clean(MIB);
	}
}

static void rule01_eight_threads(void)
{
	unsigned random = 99;

	churn_start(8);
	for (unsigned round = 0; round < scaled(1000); round++)
		EXPECT(churn_round(&random));
	churn_stop();
}

/* Two live mappings never share a byte. */
static void rule01_live_mappings_are_apart(void)
{
	enum { N = 200 };
	unsigned char *p[N];

	soil(64 * KIB);
	for (unsigned i = 0; i < N; i++) {
		p[i] = map(64 * KIB);
		memset(p[i], (int)i, 64 * KIB);
	}
	for (unsigned i = 0; i < N; i++)
		expect_bytes(p[i], 64 * KIB, (unsigned char)i, "its own byte");
}

const struct probe probes_zero[] = {
	PROBE(rule01_reused_page),
	PROBE(rule01_reused_powers_of_two),
	PROBE(rule01_reused_16_and_64_mib),
	PROBE(rule01_reused_odd_sizes),
	PROBE(rule01_tail_page),
	PROBE(rule01_populate),
	PROBE(rule01_stack_and_noreserve),
	PROBE(rule01_mremap_growth),
	PROBE(rule01_mremap_regrowth),
	PROBE(rule01_sparsely_written),
	PROBE(rule01_written_after_untouched_rounds),
	PROBE(rule01_random_sizes),
	PROBE(rule01_freed_by_another_thread),
	PROBE(rule01_eight_threads),
	PROBE(rule01_live_mappings_are_apart),
	PROBES_END,
};
