/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock_fixture.h - heaps on the machine that runs the test, whose clock of ticks the
 * test turns.
 */
#ifndef CLOCK_FIXTURE_H
#define CLOCK_FIXTURE_H

#include "../../lib/heap.h"
#include "heap_fixture.h"
#include "sys/sys.h"

#define SECOND UINT64_C(1000000000)

static struct pcpi_sys table;
static uint64_t now_ns;

static inline uint64_t coarse_said(void)
{
	return pcpi_load_relaxed(&now_ns); /* relaxed: threads are joined */
}

static inline void clock_setup(void)
{
	table = pcpi_sys_linux;
	table.coarse_ns = coarse_said;
	pcpi_sys = &table;
	now_ns = 1000 * SECOND;
}

/* A tick passes, and is done. */
static inline void tick(struct pcpa_heap *heap)
{
	now_ns += SECOND;
	cr_assert_eq(pcpa_heap_tick(heap), 0);
}

#endif
