/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim.c - the simulation of receive rings: its parts, its rules (L1, L2, H1,
 * R1, R2), and the shapes of the curves with the fixed costs of sim_costs.c.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "direct.h"
#include "kpcp_policy.h"
#include "sim_rings.h"

static const struct sim_costs free_of_charge;

/* ---- Events ---------------------------------------------------------------- */

Test(sim, events_come_by_time_and_then_by_turn)
{
	static const uint64_t at[] = {50, 10, 30, 10, 40, 10, 20, 50};
	static const uint32_t expected[] = {1, 3, 5, 6, 2, 4, 0, 7};
	struct sim_queue q = {.n = 0};
	struct sim_event e;

	for (uint32_t i = 0; i < 8; i++)
		sim_queue_put(&q, at[i], i);
	for (uint32_t i = 0; i < 8; i++) {
		cr_assert(sim_queue_take(&q, &e));
		cr_assert_eq(e.core, expected[i], "%u: core %u", i, e.core);
		cr_assert_eq(e.at, at[e.core]);
	}
	cr_assert_not(sim_queue_take(&q, &e));
}

/* ---- Locks ----------------------------------------------------------------- */

Test(sim, lock_serves_in_order_and_costs_more_the_more_wait)
{
	const struct sim_costs costs = {.line = 100,
					.lock = {7, 50, 10}};
	struct sim_lock l;
	uint64_t at = 0;

	sim_lock_init(&l);
	cr_assert(sim_lock_ask(&l, &costs, 3, 1000, &at));
	cr_assert_eq(at, 1000 + 7000); /* nobody had it: near */
	cr_assert_not(sim_lock_is_far(&l));
	for (uint32_t core = 4; core < 7; core++)
		cr_assert_not(sim_lock_ask(&l, &costs, core, 2000, &at));
	cr_assert_eq(sim_lock_drop(&l, &costs, 9000, &at), 4);
	cr_assert_eq(at, 9000 + 50000 + 2 * 10000);
	cr_assert(sim_lock_is_far(&l));
	cr_assert_eq(sim_lock_drop(&l, &costs, 100000, &at), 5);
	cr_assert_eq(at, 100000 + 50000 + 10000);
	cr_assert_eq(sim_lock_drop(&l, &costs, 200000, &at), 6);
	cr_assert_eq(at, 200000 + 50000);
	cr_assert_eq(sim_lock_drop(&l, &costs, 300000, &at), -1);
	/* The next core fetches the line, the same one doesn't. */
	cr_assert(sim_lock_ask(&l, &costs, 6, 300000, &at));
	cr_assert_eq(at, 300000 + 7000);
	cr_assert_eq(sim_lock_drop(&l, &costs, 400000, &at), -1);
	cr_assert(sim_lock_ask(&l, &costs, 7, 400000, &at));
	cr_assert_eq(at, 400000 + 107000);
	cr_assert_eq(l.takes, 6);
	cr_assert_eq(l.waits, 3);
	cr_assert_eq(l.most, 3);
}

/* ---- Allocators ------------------------------------------------------------- */

enum { PAGES = 1 << 18, THREADS = 2 };

/* Carries one operation out alone; counts what it locked. */
static void op_run(struct sim_heap *h, struct sim_cache *c, struct sim_op *op,
		   unsigned *zone, unsigned *depot)
{
	enum sim_next next;
	uint64_t ps = 0;

	while ((next = sim_op_step(h, c, op, &ps)) != SIM_DONE) {
		*(next == SIM_ZONE ? zone : depot) += 1;
		sim_op_locked(h, c, op);
	}
}

static void alloc_run(struct sim_heap *h, struct sim_cache *c, unsigned *zone,
		      unsigned *depot)
{
	struct sim_op op;

	sim_alloc_begin(&op);
	op_run(h, c, &op, zone, depot);
}

static void free_run(struct sim_heap *h, struct sim_cache *c, unsigned *zone,
		     unsigned *depot)
{
	struct sim_op op;

	sim_free_begin(&op);
	op_run(h, c, &op, zone, depot);
}

/* One core takes n pages, another one frees them. */
static void pages_pass(struct sim_heap *h, struct sim_cache c[2], unsigned n,
		       unsigned *zone, unsigned *depot)
{
	for (unsigned i = 0; i < n; i++)
		alloc_run(h, &c[0], zone, depot);
	for (unsigned i = 0; i < n; i++)
		free_run(h, &c[1], zone, depot);
	cr_assert_eq(h->free_pages + h->depot_pages + c[0].state.count +
			     c[1].state.count,
		     h->managed_pages); /* H1 */
}

static void heap_start(struct sim_heap *h, struct sim_cache c[2],
		       enum sim_allocator which)
{
	sim_heap_init(h, which, &free_of_charge, PAGES, THREADS);
	sim_cache_init(h, &c[0]);
	sim_cache_init(h, &c[1]);
}

Test(sim, kernel_moves_batches_of_31_each_way)
{
	unsigned zone = 0, depot = 0;
	struct sim_cache c[2];
	struct sim_heap h;

	heap_start(&h, c, SIM_KERNEL);
	pages_pass(&h, c, 31 * 10, &zone, &depot);
	/* 10 refills; a drain at 186 and one after each 31 pages from there. */
	cr_assert_eq(zone, 10 + 1 + (310 - 186) / 31);
	cr_assert_eq(depot, 0);
	cr_assert_eq(c[1].state.count, 310 - 5 * 31);
}

/* The simulated cache drains what the policy says when it is asked directly. */
Test(sim, legacy_drains_as_its_policy_does)
{
	unsigned zone = 0, depot = 0, drains = 0;
	struct pcpi_pcp_state direct = {0};
	struct sim_cache c[2];
	struct sim_heap h;

	heap_start(&h, c, SIM_LEGACY);
	direct.high = h.pageset.high_min;
	h.free_pages -= 20000; /* somebody has them */
	for (unsigned i = 0; i < 20000; i++) {
		free_run(&h, &c[1], &zone, &depot);
		direct.count++;
		if (direct.count >= direct.high) {
			uint32_t n = pcpi_policy_drain(&direct, &h.pageset, 0,
						       false, false);

			direct.count -= n;
			drains++;
		}
		cr_assert_eq(c[1].state.count, direct.count, "free %u", i);
		cr_assert_eq(c[1].state.free_factor, direct.free_factor);
	}
	cr_assert_geq(drains, 5);
	cr_assert_geq(direct.free_factor, 2); /* drains have grown */
}

Test(sim, modern_hands_over_through_the_depot_without_the_zone)
{
	unsigned zone = 0, depot = 0;
	struct sim_cache c[2];
	struct sim_heap h;

	heap_start(&h, c, SIM_MODERN);
	pages_pass(&h, c, 4096, &zone, &depot);
	zone = depot = 0;
	pages_pass(&h, c, 4096, &zone, &depot);
	cr_assert_eq(zone, 0);
	cr_assert_gt(depot, 0);
	/* Half a batch a get; one or two a put. */
	cr_assert_leq(depot, 3 * 4096 / h.pageset.depot_batch);
}

Test(sim, modern_pure_freer_hands_over_before_its_bound)
{
	unsigned zone = 0, depot = 0;
	struct sim_cache c[2];
	struct sim_heap h;

	heap_start(&h, c, SIM_MODERN);
	h.free_pages -= 4096; /* somebody has them */
	for (unsigned i = 0; i < 4096; i++) {
		free_run(&h, &c[1], &zone, &depot);
		cr_assert_leq(c[1].state.count, 2 * h.pageset.depot_batch);
		cr_assert_eq(c[1].state.high, h.pageset.high_min);
	}
	cr_assert_gt(h.pageset.high_min, h.pageset.depot_batch);
	cr_assert_geq(depot, 4096 / 2 / h.pageset.depot_batch);
	cr_assert_eq(zone, 0);
}

/* A list that only gives blocks out refills without a word to the policy. */
Test(sim, modern_pure_taker_leaves_the_policy_alone)
{
	unsigned zone = 0, depot = 0;
	struct sim_cache c[2];
	struct sim_heap h;

	heap_start(&h, c, SIM_MODERN);
	h.free_pages -= 1024;
	h.depot_pages = 1024;
	for (unsigned i = 0; i < 1024; i++)
		alloc_run(&h, &c[0], &zone, &depot);
	cr_assert_eq(zone, 0);
	cr_assert_eq(depot, 1024 / PCPI_DEPOT_GET);
	cr_assert_eq(c[0].state.high, h.pageset.high_min);
	cr_assert_eq(c[0].state.alloc_factor, 0);
	alloc_run(&h, &c[0], &zone, &depot);
	cr_assert_gt(c[0].state.high, h.pageset.high_min);
}

Test(sim, modern_looks_again_a_batch_after_a_drain)
{
	unsigned zone = 0, depot = 0;
	struct sim_cache c[2];
	struct sim_heap h;

	heap_start(&h, c, SIM_MODERN);
	h.free_pages -= 8192;
	alloc_run(&h, &c[1], &zone, &depot);
	zone = depot = 0;
	for (unsigned i = 0; depot == 0; i++) {
		cr_assert_lt(i, 8192);
		free_run(&h, &c[1], &zone, &depot);
	}
	cr_assert_eq(c[1].limit, pcpi_min(c[1].state.high,
					  c[1].state.count +
						  h.pageset.depot_batch));
}

Test(sim, legacy_uses_the_depot_too)
{
	unsigned zone = 0, depot = 0;
	struct sim_cache c[2];
	struct sim_heap h;

	heap_start(&h, c, SIM_LEGACY);
	pages_pass(&h, c, 8192, &zone, &depot);
	zone = depot = 0;
	pages_pass(&h, c, 4096, &zone, &depot);
	cr_assert_eq(zone, 0);
	cr_assert_gt(depot, 0);
}

Test(sim, heap_without_pages_says_so)
{
	struct sim_costs costs = sim_costs_xeon;
	struct sim_setup s = SIM_SETUP_INIT(0, 2, 4, &costs);
	struct sim_result r;

	costs.consume = 2000; /* so that rings are full: 4 * 1024 packets */
	for (int a = 0; a < SIM_ALLOCATORS; a++) {
		s.allocator = (enum sim_allocator)a;
		s.heap_pages = 4096;
		cr_assert_not(sim_rings_run(&s, &r), "%d", a);
		s.heap_pages = 1 << 16;
		cr_assert(sim_rings_run(&s, &r), "%d", a);
	}
}

/* ---- Runs: R1, R2 ------------------------------------------------------------ */

static struct sim_result run(enum sim_allocator a, unsigned driver,
			     unsigned rings)
{
	struct sim_setup s = SIM_SETUP_INIT(a, driver, rings, &sim_costs_xeon);
	struct sim_result r;

	cr_assert(sim_rings_run(&s, &r));
	return r;
}

Test(sim, same_setup_same_result)
{
	struct sim_setup s = SIM_SETUP_INIT(SIM_KERNEL, 2, 12, &sim_costs_xeon);
	struct sim_result a, b;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	cr_assert(sim_rings_run(&s, &a));
	cr_assert(sim_rings_run(&s, &b));
	cr_assert_eq(a.packets, b.packets);
	cr_assert_eq(a.zone_takes, b.zone_takes);
	cr_assert_eq(a.zone_waits, b.zone_waits);
	cr_assert_eq(a.free, b.free);
	cr_assert(a.lock_share == b.lock_share);
	s.seed = 2;
	cr_assert(sim_rings_run(&s, &b));
	cr_assert(a.packets != b.packets || a.zone_waits != b.zone_waits);
}

static void must_conserve(const struct sim_setup *s)
{
	struct sim_result r;

	cr_assert(sim_rings_run(s, &r));
	cr_assert_gt(r.packets, 1000);
	cr_assert_eq(r.managed,
		     r.free + r.depot + r.cached + r.moving + r.held +
			     r.in_flight,
		     "%s, driver %u, %u rings: %ld pages too many",
		     sim_allocator_names[s->allocator], s->driver, s->rings,
		     (long)(r.free + r.depot + r.cached + r.moving + r.held +
			    r.in_flight - r.managed));
}

Test(sim, pages_are_conserved)
{
	static const unsigned rings[] = {1, 2, 3, 7, 16};

	for (int a = 0; a < SIM_ALLOCATORS; a++)
		for (unsigned driver = 1; driver <= SIM_DRIVERS; driver++)
			for (unsigned i = 0; i < 5; i++) {
				struct sim_setup s = SIM_SETUP_INIT(
					(enum sim_allocator)a, driver, rings[i],
					&sim_costs_xeon);

				must_conserve(&s);
				s.shared = true;
				s.driver_pages = 40; /* too few */
				s.run_ns = 5000001 + 77777 * i;
				must_conserve(&s);
			}
}

Test(sim, small_driver_cache_asks_the_allocator_again)
{
	struct sim_setup s = SIM_SETUP_INIT(SIM_MODERN, 3, 1, &sim_costs_xeon);
	struct sim_result large, small;

	cr_assert(sim_rings_run(&s, &large));
	s.driver_pages = 16;
	cr_assert(sim_rings_run(&s, &small));
	cr_assert_gt(small.zone_takes + small.depot_takes, 100);
	cr_assert_lt(large.zone_takes + large.depot_takes, 10);
	cr_assert_leq(small.held, 16);
}

Test(sim, driver_1_takes_half_the_pages_of_driver_2)
{
	/* Below the wire's rate and without waits: packets are what limits. */
	struct sim_result one = run(SIM_KERNEL, 1, 2);
	struct sim_result two = run(SIM_KERNEL, 2, 2);
	double a = (double)one.zone_takes / (double)one.packets;
	double b = (double)two.zone_takes / (double)two.packets;

	cr_assert(a > 0.48 * b && a < 0.52 * b, "%g %g", a, b);
}

/* ---- Shapes, with the costs of the original's machines ------------------------ */

static const unsigned few[] = {1, 2, 3, 4, 6, 8, 12, 16};

enum { FEW = sizeof(few) / sizeof(few[0]) };

static double gbps[FEW];

/* Fills gbps; returns the index of the largest. */
static unsigned curve(enum sim_allocator a, unsigned driver)
{
	unsigned best = 0;

	for (unsigned i = 0; i < FEW; i++) {
		gbps[i] = run(a, driver, few[i]).gbps;
		if (gbps[i] > gbps[best])
			best = i;
	}
	return best;
}

/* Rises up to the wire's rate and stays there. */
static void must_never_fall(enum sim_allocator a, unsigned driver)
{
	double most = 0;

	curve(a, driver);
	for (unsigned i = 0; i < FEW; i++) {
		cr_assert_geq(gbps[i], 0.98 * most, "%s, driver %u, %u rings",
			      sim_allocator_names[a], driver, few[i]);
		most = gbps[i] > most ? gbps[i] : most;
	}
	cr_assert(most > 0.98 * sim_costs_xeon.wire_gbps &&
			  most < 1.01 * sim_costs_xeon.wire_gbps,
		  "%s, driver %u: %g", sim_allocator_names[a], driver, most);
	cr_assert_leq(gbps[0], 0.35 * most);
}

Test(sim, driver_2_over_the_kernels_lists_peaks_and_falls)
{
	unsigned best = curve(SIM_KERNEL, 2);
	struct sim_result sixteen = run(SIM_KERNEL, 2, 16);

	cr_assert(few[best] >= 4 && few[best] <= 8, "peak at %u", few[best]);
	cr_assert_leq(sixteen.gbps, 0.75 * gbps[best]);
	cr_assert_gt(sixteen.lock_share, 0.5);
	cr_assert_lt(gbps[best], 0.95 * sim_costs_xeon.wire_gbps);
}

Test(sim, drivers_1_and_3_never_fall)
{
	for (int a = 0; a < SIM_ALLOCATORS; a++) {
		must_never_fall((enum sim_allocator)a, 1);
		must_never_fall((enum sim_allocator)a, 3);
	}
}

Test(sim, driver_2_over_the_library_never_falls)
{
	must_never_fall(SIM_LEGACY, 2);
	must_never_fall(SIM_MODERN, 2);
	cr_assert_lt(run(SIM_MODERN, 2, 16).lock_share, 0.05);
}

/* The fall is the hand-over's doing, and nothing else's. */
Test(sim, without_a_price_for_waiters_the_curve_is_flat)
{
	struct sim_costs costs = sim_costs_xeon;
	struct sim_setup s = SIM_SETUP_INIT(SIM_KERNEL, 2, 6, &costs);
	struct sim_result six, sixteen;

	costs.lock.per_waiter = 0;
	cr_assert(sim_rings_run(&s, &six));
	s.rings = 16;
	cr_assert(sim_rings_run(&s, &sixteen));
	cr_assert_geq(sixteen.gbps, 0.98 * six.gbps);
	cr_assert_gt(sixteen.lock_share, 0.5);
}

/* And the lock's limit is that of the pages' lines: with cheap ones the wire is. */
Test(sim, with_near_lines_the_lock_is_no_limit)
{
	struct sim_costs costs = sim_costs_xeon;
	struct sim_setup s = SIM_SETUP_INIT(SIM_KERNEL, 2, 16, &costs);
	struct sim_result r;

	costs.kernel.take_far = costs.kernel.give_far = 5;
	cr_assert(sim_rings_run(&s, &r));
	cr_assert_geq(r.gbps, 0.98 * costs.wire_gbps);
}
