/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy_sim.h - a cache that only counts, and random numbers, for the suites of the
 * policy.
 */
#ifndef POLICY_SIM_H
#define POLICY_SIM_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "policy.h"

struct sim {
	struct pcpi_pageset ps;
	struct pcpi_pcp_state state;
	unsigned zone_flags;
	bool pure_freer;
	uint32_t frees;
};

/* One free as a cache does it; returns the pages drained. */
static inline uint32_t free_block(struct sim *s, unsigned order)
{
	bool free_high;
	uint32_t pages;

	s->frees++;
	s->state.count += 1u << order;
	free_high = pcpi_policy_free_high(&s->state, &s->ps, order);
	pcpi_policy_note_frees(&s->state, &s->ps, 1, order);
	pages = pcpi_policy_drain(&s->state, &s->ps, s->zone_flags, free_high,
				  s->pure_freer);
	s->state.count -= pages;
	return pages;
}

/* Frees single pages until one of them drains; returns how many pages. */
static inline uint32_t free_to_drain(struct sim *s)
{
	for (uint32_t i = 0; i < 1000000; i++) {
		uint32_t pages = free_block(s, 0);

		if (pages != 0)
			return pages;
	}
	return 0;
}

static inline void alloc(struct sim *s, uint32_t blocks)
{
	s->state.count -= blocks;
	pcpi_policy_note_allocs(&s->state, blocks);
}

/* The pages of each drain; a legacy one happens at count == high. */
static inline void expect_drains(struct sim *s, const uint32_t *pages, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t got = free_to_drain(s);

		cr_assert_eq(got, pages[i], "drain %zu: %u", i, got);
		if (s->ps.legacy)
			cr_assert_eq(s->state.count + got, s->ps.high_max);
	}
}

#define EXPECT_DRAINS(s, ...)                                                  \
	do {                                                                   \
		static const uint32_t pages_[] = {__VA_ARGS__};                \
		expect_drains((s), pages_, sizeof(pages_) / sizeof(*pages_));  \
	} while (0)

/* PCPI_SEED repeats a run. */
static inline void start_random(void)
{
	const char *text = getenv("PCPI_SEED");
	unsigned seed =
		text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)time(NULL);

	fprintf(stderr, "PCPI_SEED=%u\n", seed);
	srand(seed);
}

static inline uint32_t draw(uint32_t below)
{
	return (uint32_t)rand() % below;
}

#endif
