/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange.c - the whole on a machine that refuses membarrier: the mark is set
 * by an exchange, the same churn and the same drains lose and double nothing,
 * and the call is not tried again.
 */
#include "conc.h"

#include "sys/sys.h"

#define THREADS 4u
#define MS 2000u

static unsigned barriers; /* a */

static int refuse_register(void)
{
	return -EPERM;
}

static int count_barrier(void)
{
	pcpi_fetch_add_relaxed(&barriers, 1);
	return -EPERM;
}

struct exchange_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	bool stop;
};

static void churner(unsigned index, void *arg)
{
	struct exchange_case *the = arg;

	conc_churn_until(&the->stop, the->heap, the->seed, index, 9);
}

int main(void)
{
	static struct pcpi_sys sys;
	struct exchange_case the = { .seed = conc_seed() };
	struct conc_thread threads[THREADS];

	sys = pcpi_sys_linux;
	sys.membarrier_register = refuse_register;
	sys.membarrier = count_barrier;
	pcpi_sys = &sys;
	the.heap = conc_heap(64 * MIB, 0);
	CHECK(the.heap->env.exchange);
	conc_start(threads, THREADS, churner, &the);
	conc_drain_for(the.heap, MS);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	CHECK_U64(conc_stats(the.heap).drains_sweep, >, 0);
	conc_heap_end(the.heap);
	CHECK_U64(barriers, ==, 0);
	return 0;
}
