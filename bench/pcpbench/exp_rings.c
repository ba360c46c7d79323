/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_rings.c - receive bandwidth over the number of receive rings, for three ways
 * in which a driver gets pages, over three allocators.
 *
 * The original (100 Gb/s, TCP, one core for each ring and others for the
 * applications): driver 1, two packets a page, rises and stays at the wire's rate;
 * driver 2, a page a packet, peaks at 6 rings and falls, with 85.58 % of the time
 * in the zone's lock; driver 3, a huge cache of its own, stays at the wire's rate.
 *
 * Real: rings_real.h, as many rings as there are CPUs for.  --simulate: sim_rings.h,
 * with two sets of costs, and held against the real run where both can be had.
 */
#include "experiment.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#include "rings_real.h"
#include "sim_measure.h"
#include "sim_rings.h"

static const unsigned rings_of[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64};

enum { STEPS = sizeof(rings_of) / sizeof(rings_of[0]), ORIGINALS = 8 };

static const double original[SIM_DRIVERS][ORIGINALS] = {
	{23.8, 44.1, 62.1, 78.1, 94.2, 94.2, 94.2, 94.2},
	{18.8, 36.7, 50.5, 61.7, 63.6, 60.3, 51.0, 43.3},
	{19.3, 44.9, 69.5, 87.4, 94.3, 94.3, 94.3, 94.3},
};

static const char *const drivers[SIM_DRIVERS] = {
	"driver 1: two packets a page",
	"driver 2: a page a packet",
	"driver 3: a page a packet, from a huge cache of its own",
};

/* ---- Output ---------------------------------------------------------------- */

/* 0: nobody measured that. */
static double original_gbps(unsigned driver, unsigned rings)
{
	for (unsigned i = 0; i < ORIGINALS; i++)
		if (rings_of[i] == rings)
			return original[driver - 1][i];
	return 0;
}

static void driver_head(unsigned driver, unsigned steps)
{
	printf("\n  %s\n    %-22s", drivers[driver - 1], "rings");
	for (unsigned i = 0; i < steps; i++)
		printf(" %11u", rings_of[i]);
	printf("\n    %-22s", "original");
	for (unsigned i = 0; i < steps && i < ORIGINALS; i++)
		printf(" %6.1f     ", original[driver - 1][i]);
	putchar('\n');
}

static void cell_table(double gbps, double share)
{
	if (share < 0)
		printf(" %6.1f     ", gbps);
	else
		printf(" %6.1f %3.0f%%", gbps, 100 * share);
}

/* What all lines of the experiment have; the caller adds to it. */
static struct json_object *cell_json(const char *mode, unsigned driver,
				     enum sim_allocator which, unsigned rings,
				     double gbps, double share)
{
	struct json_object *o = bench_experiment_json("rings");
	double was = original_gbps(driver, rings);

	json_object_object_add(o, "mode", json_object_new_string(mode));
	json_object_object_add(o, "driver", json_object_new_int((int)driver));
	json_object_object_add(
		o, "allocator",
		json_object_new_string(sim_allocator_names[which]));
	json_object_object_add(o, "rings", json_object_new_int((int)rings));
	json_object_object_add(o, "gbps", json_object_new_double(gbps));
	json_object_object_add(o, "lock_share",
			       share < 0 ? NULL : json_object_new_double(share));
	json_object_object_add(o, "original_gbps",
			       was > 0 ? json_object_new_double(was) : NULL);
	return o;
}

/* ---- Real ------------------------------------------------------------------ */

static bool real_cell(const struct bench_experiment_args *args,
		      struct rings_store *store, unsigned driver, unsigned rings,
		      unsigned windows, struct rings_result *result)
{
	const struct rings_setup setup = {
		.store = store,
		.driver = driver,
		.rings = rings,
		.cpu = args->cpus,
		.cpus = args->nr_cpus,
		.ticks_per_ns = args->ticks_per_ns,
		.windows = windows,
	};

	return rings_real_run(&setup, result);
}

/* How many of rings_of[] there are CPUs for. */
static unsigned real_steps(const struct bench_experiment_args *args)
{
	unsigned n = 0;
	bool shared;

	while (n < STEPS && rings_real_fits(rings_of[n], args->nr_cpus, &shared))
		n++;
	return n;
}

static bool real_row(const struct bench_experiment_args *args,
		     struct rings_store *store, unsigned driver, unsigned steps)
{
	enum sim_allocator which = store->which;
	struct rings_result r;

	if (!args->json)
		printf("    %-22s", sim_allocator_names[which]);
	for (unsigned i = 0; i < steps; i++) {
		struct json_object *o;

		if (!real_cell(args, store, driver, rings_of[i], args->reps, &r))
			return false;
		if (!args->json) {
			cell_table(r.gbps, r.lock_share);
			continue;
		}
		o = cell_json("real", driver, which, rings_of[i], r.gbps,
			      r.lock_share);
		json_object_object_add(o, "p25", json_object_new_double(r.p25));
		json_object_object_add(o, "p75", json_object_new_double(r.p75));
		json_object_object_add(o, "discarded",
				       json_object_new_int((int)r.discarded));
		json_object_object_add(o, "disturbed",
				       json_object_new_int((int)r.disturbed));
		bench_experiment_print(o);
	}
	if (!args->json)
		putchar('\n');
	return true;
}

static bool real_run(const struct bench_experiment_args *args,
		     struct rings_store *stores)
{
	unsigned steps = real_steps(args);

	if (!args->json)
		printf("\nrings: Gb/s over receive rings; in percent: of the busy "
		       "time, what was spent\nwaiting for the zone's lock.  Real, "
		       "on %u CPUs, without a network: the receiver\nwrites 64 "
		       "bytes, the application copies 1500.  Where 2 * rings > "
		       "CPUs, each CPU\nreceives for one ring and is the "
		       "application of another.\n",
		       args->nr_cpus);
	for (unsigned driver = 1; driver <= SIM_DRIVERS; driver++) {
		if (!args->json)
			driver_head(driver, steps);
		for (int a = 0; a < SIM_ALLOCATORS; a++)
			if (!real_row(args, &stores[a], driver, steps))
				return false;
	}
	return true;
}

/* ---- Simulated ------------------------------------------------------------- */

static const char assumptions[] =
	"\nrings, simulated: Gb/s over receive rings; in percent: of the busy time, "
	"what was\nspent waiting for locks.  How many pages move is decided by the "
	"library's own policy\n(lib/policy_*.c, kpcp_policy.h); how long each step "
	"takes is an input, below.\nAssumed: a receiving and an application core for "
	"each ring; packets of 1500 bytes, spread\nevenly; locks first come, first "
	"served, a hand-over slower by one transfer of a line for\neach who goes on "
	"waiting (a ticket lock: the pessimistic end); work varies by half from\nburst "
	"to burst; memory, buses, sockets and the processors' speed are no limit.  "
	"More:\nsim_rings.h, sim_costs.c, docs/simulation.md.\n";

static void costs_table(const struct sim_costs *c)
{
	printf("  line %.1f; lock: alone %.1f, hand-over %.1f, per waiter %.1f; "
	       "depot: a hold %.1f, a page\n  of it near %.2f, far %.2f (ns)\n",
	       c->line, c->lock.take, c->lock.hand_over, c->lock.per_waiter,
	       c->depot_fixed, c->depot_near, c->depot_far);
	for (int i = 0; i < 2; i++) {
		const struct sim_alloc_costs *a = i ? &c->pcpalloc : &c->kernel;

		printf("  %-10s hits: alloc %.1f, free %.1f; slow way %.1f; "
		       "zone, a page: take near %.1f, far %.1f, give near %.1f, "
		       "far %.1f\n",
		       i ? "pcpalloc" : "kernel-5.x", a->alloc, a->free, a->look,
		       a->take_near, a->take_far, a->give_near, a->give_far);
	}
	printf("  a packet: receive %.1f, consume %.1f; count near %.1f, far "
	       "%.1f; a burst: push %.1f, pop %.1f; ",
	       c->receive, c->consume, c->ref_near, c->ref_far, c->push, c->pop);
	if (c->wire_gbps > 0)
		printf("wire %.1f Gb/s\n", c->wire_gbps);
	else
		puts("no wire");
}

static void costs_json(const struct sim_costs *c)
{
	const struct { const char *name; double ns; } field[] = {
		{"line", c->line}, {"lock_take", c->lock.take},
		{"lock_hand_over", c->lock.hand_over},
		{"lock_per_waiter", c->lock.per_waiter},
		{"depot_fixed", c->depot_fixed}, {"depot_page_far", c->depot_far},
		{"kernel_alloc", c->kernel.alloc},
		{"kernel_free", c->kernel.free},
		{"kernel_take_far", c->kernel.take_far},
		{"kernel_give_far", c->kernel.give_far},
		{"pcpalloc_hit", c->pcpalloc.alloc},
		{"pcpalloc_take_far", c->pcpalloc.take_far},
		{"pcpalloc_give_far", c->pcpalloc.give_far},
		{"receive", c->receive}, {"consume", c->consume},
		{"ref_near", c->ref_near}, {"ref_far", c->ref_far},
		{"push", c->push}, {"pop", c->pop},
	};
	struct json_object *o = bench_experiment_json("rings-costs");

	json_object_object_add(o, "costs", json_object_new_string(c->name));
	for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++)
		json_object_object_add(o, field[i].name,
				       json_object_new_double(field[i].ns));
	bench_experiment_print(o);
}

static void simulated_json(const struct sim_setup *s, const struct sim_result *r,
			   const char *costs)
{
	struct json_object *o = cell_json("simulated", s->driver, s->allocator,
					  s->rings, r->gbps, r->lock_share);

	json_object_object_add(o, "costs", json_object_new_string(costs));
	json_object_object_add(o, "wire_gbps",
			       s->costs->wire_gbps > 0
				       ? json_object_new_double(
						 s->costs->wire_gbps)
				       : NULL);
	json_object_object_add(
		o, "per_waiter_ns",
		json_object_new_double(s->costs->lock.per_waiter));
	bench_experiment_print(o);
}

/* A row of one allocator over all numbers of rings. */
static bool simulated_row(const struct bench_experiment_args *args,
			  const char *label, unsigned driver,
			  enum sim_allocator which, const struct sim_costs *costs)
{
	if (!args->json)
		printf("    %-22s", label);
	for (unsigned i = 0; i < STEPS; i++) {
		struct sim_setup s =
			SIM_SETUP_INIT(which, driver, rings_of[i], costs);
		struct sim_result r;

		if (!sim_rings_run(&s, &r)) {
			fprintf(stderr, "pcpbench: rings: out of pages\n");
			return false;
		}
		if (args->json)
			simulated_json(&s, &r, costs->name);
		else
			cell_table(r.gbps, r.lock_share);
	}
	if (!args->json)
		putchar('\n');
	return true;
}

static bool simulated_drivers(const struct bench_experiment_args *args,
			      const struct sim_costs *costs)
{
	for (unsigned driver = 1; driver <= SIM_DRIVERS; driver++) {
		if (!args->json)
			driver_head(driver, STEPS);
		for (int a = 0; a < SIM_ALLOCATORS; a++)
			if (!simulated_row(args, sim_allocator_names[a], driver,
					   (enum sim_allocator)a, costs))
				return false;
	}
	return true;
}

/* Driver 2 without the wire's bound, and with locks that suffer less from waiters:
 * how much of the figures hangs on that assumption. */
static bool simulated_limits(const struct bench_experiment_args *args,
			     struct sim_costs costs)
{
	double per_waiter = costs.lock.per_waiter;
	char label[64];

	costs.wire_gbps = 0;
	if (!args->json)
		puts("\n  driver 2 without a wire's bound, by the price of each "
		     "further waiter");
	for (int part = 2; part >= 0; part--)
		for (int a = 0; a < SIM_ALLOCATORS; a++) {
			costs.lock.per_waiter = per_waiter * part / 2;
			snprintf(label, sizeof(label), "%s, %.0f ns",
				 sim_allocator_names[a], costs.lock.per_waiter);
			if (!simulated_row(args, label, 2,
					   (enum sim_allocator)a, &costs))
				return false;
		}
	return true;
}

static bool simulated_set(const struct bench_experiment_args *args,
			  const char *title, const struct sim_costs *costs)
{
	if (args->json) {
		costs_json(costs);
	} else {
		printf("\n%s\n", title);
		costs_table(costs);
	}
	return simulated_drivers(args, costs) && simulated_limits(args, *costs);
}

/* ---- Simulated against real ------------------------------------------------- */

enum { TURNS = 7, TURN_WINDOWS = 7 }; /* at most, of --reps; of each turn */

/* Of all turns; each is sorted by itself. */
struct check {
	unsigned turns;
	double real[TURNS], simulated[TURNS], error[TURNS];
};

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value, unsigned n)
{
	qsort(value, n, sizeof(value[0]), double_compare);
	return value[n / 2];
}

/* Of the sorted errors: all but one each way of seven. */
static double error_least(const struct check *c)
{
	return c->error[c->turns / 7];
}

static double error_most(const struct check *c)
{
	return c->error[c->turns - 1 - c->turns / 7];
}

static void check_json(const struct sim_setup *s, const struct check *c,
		       double real, double gbps, double error)
{
	struct json_object *o = bench_experiment_json("rings-check");
	const struct {
		const char *key;
		double value;
	} figures[] = {
		{"real_gbps", real},
		{"gbps", gbps},
		{"error_percent", error},
		{"error_least_percent", error_least(c)},
		{"error_most_percent", error_most(c)},
	};

	json_object_object_add(o, "driver", json_object_new_int((int)s->driver));
	json_object_object_add(
		o, "allocator",
		json_object_new_string(sim_allocator_names[s->allocator]));
	json_object_object_add(o, "rings", json_object_new_int((int)s->rings));
	json_object_object_add(o, "turns", json_object_new_int((int)c->turns));
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		json_object_object_add(o, figures[i].key,
				       json_object_new_double(figures[i].value));
	bench_experiment_print(o);
}

static void check_print(const struct bench_experiment_args *args,
			const struct sim_setup *s, struct check *c)
{
	double real = median(c->real, c->turns);
	double gbps = median(c->simulated, c->turns);
	double error = median(c->error, c->turns);

	if (args->json)
		check_json(s, c, real, gbps, error);
	else
		printf("    driver %u  %-11s %u ring%s  real %6.1f  simulated "
		       "%6.1f  %+6.1f%%  (%+.0f..%+.0f)\n",
		       s->driver, sim_allocator_names[s->allocator], s->rings,
		       s->rings > 1 ? "s" : " ", real, gbps, error,
		       error_least(c), error_most(c));
}

/* Packets' costs, reality and simulation next to each other, several times. */
static bool check_cell(const struct bench_experiment_args *args,
		       struct rings_store *store, unsigned driver, unsigned rings,
		       struct sim_costs *costs)
{
	struct sim_setup s = SIM_SETUP_INIT(store->which, driver, rings, costs);
	struct rings_result real;
	struct sim_result sim;
	struct check c = {.turns = pcpi_min(args->reps, (unsigned)TURNS)};

	s.heap_pages = store->pages;
	s.shared = rings > 1;
	for (unsigned t = 0; t < c.turns; t++) {
		if (!sim_measure_packets(args->cpus, args->ticks_per_ns,
					 TURN_WINDOWS, store, costs) ||
		    !real_cell(args, store, driver, rings, TURN_WINDOWS, &real) ||
		    !sim_rings_run(&s, &sim))
			return false;
		c.real[t] = real.gbps;
		c.simulated[t] = sim.gbps;
		/* A machine that others use may let nothing through. */
		c.error[t] = 100 * (sim.gbps / pcpi_max(real.gbps, 1e-3) - 1);
	}
	check_print(args, &s, &c);
	return true;
}

static bool check_run(const struct bench_experiment_args *args,
		      struct rings_store *stores, struct sim_costs *costs)
{
	/* The first one is for the eye. */
	if (!sim_measure_packets(args->cpus, args->ticks_per_ns, TURN_WINDOWS,
				 stores, costs))
		return false;
	if (args->json) {
		/* Not those of simulated_set(), which have no packets of here. */
		struct sim_costs whole = *costs;

		whole.name = "here, packets too";
		costs_json(&whole);
	} else {
		puts("\nThe simulation against the real run, with the costs and the "
		     "two CPUs of this machine;\npackets' costs are measured again "
		     "for each line, seven times.  Each figure is a median, the\n"
		     "error that of the seven runs' own errors (in brackets all but "
		     "one each way)");
		costs_table(costs);
	}
	for (unsigned driver = 1; driver <= SIM_DRIVERS; driver++)
		for (int a = 0; a < SIM_ALLOCATORS; a++)
			for (unsigned rings = 1; rings <= 2; rings++)
				if (!check_cell(args, &stores[a], driver, rings,
						costs))
					return false;
	return true;
}

/* Memory as here; packets and the wire as in the original, since there is no
 * network stack here. */
static struct sim_costs mixed(const struct sim_costs *here)
{
	struct sim_costs c = *here;

	c.receive = sim_costs_xeon.receive;
	c.consume = sim_costs_xeon.consume;
	c.wire_gbps = sim_costs_xeon.wire_gbps;
	return c;
}

/* What needs two CPUs: this machine's costs. */
static bool simulate_here(const struct bench_experiment_args *args,
			  struct rings_store *stores)
{
	struct bench_experiment_args two = *args;
	struct sim_costs here;

	two.nr_cpus = 2;
	if (!sim_measure(args->cpu, args->ticks_per_ns, stores, &here) ||
	    !check_run(&two, stores, &here))
		return false;
	here = mixed(&here);
	return simulated_set(args,
			     "Costs of this machine, but for packets and wire",
			     &here);
}

static bool with_stores(const struct bench_experiment_args *args,
			bool (*run)(const struct bench_experiment_args *,
				    struct rings_store *))
{
	struct rings_store stores[SIM_ALLOCATORS];
	int opened = 0;
	bool ok = true;

	while (ok && opened < SIM_ALLOCATORS) {
		ok = rings_store_open(&stores[opened],
				      (enum sim_allocator)opened) == 0;
		opened += ok;
	}
	ok = ok && run(args, stores);
	while (opened > 0)
		ok = rings_store_close(&stores[--opened]) && ok;
	return ok;
}

bool bench_exp_rings(const struct bench_experiment_args *args)
{
	if (args->simulate && !args->json)
		fputs(assumptions, stdout);
	if (args->simulate &&
	    !simulated_set(args, "Costs of the original's machines",
			   &sim_costs_xeon))
		return false;
	if (args->nr_cpus >= 2)
		return with_stores(args, args->simulate ? simulate_here
							: real_run);
	fprintf(stderr, "pcpbench: rings: what runs on this machine is left out: "
			"it needs a second CPU\n");
	return true;
}
