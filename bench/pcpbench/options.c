/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c - the command line, checked against the catalog.
 *
 * A value that can't be used is an error that names it, never a default.
 */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEFAULT_REPS = 31,
	MAX_REPS = 100000,
	DEFAULT_HEAP_MIB = 1024,
	MIN_HEAP_MIB = 16,
	MAX_HEAP_MIB = 1 << 20,
	EXIT_USAGE = 2,
	/* Options without a letter. */
	OPTION_COMPARE = 256,
	OPTION_INPUT,
};

static const char usage[] =
	"Usage: pcpbench WORKLOAD... [OPTION...]\n"
	"       pcpbench --compare OLD --input NEW [--json]\n"
	"Measures page allocators against each other; they take turns.\n"
	"\n"
	"  WORKLOAD              one or more names of --list, `latency' for all that\n"
	"                        begin with it, `all', `mappings', or `experiments'\n"
	"  -a, --allocators LIST names of --list, with commas; ratios are against\n"
	"                        the first (default: all that are there)\n"
	"  -n, --reps N          repetitions that count (default 31)\n"
	"  -m, --heap-mib N      size of a heap, populated beforehand (default 1024)\n"
	"  -c, --cpus A[,B]      CPUs of the first and the second thread\n"
	"                        (default: the first two allowed)\n"
	"      --compare FILE    JSON lines of an older run: says at the end what moved\n"
	"                        beyond the spread\n"
	"      --input FILE      with --compare: JSON lines to compare instead of a run\n"
	"  -s, --simulate        rings: simulated on up to 128 cores\n"
	"  -j, --json            one JSON object a line\n"
	"  -l, --list            workloads and allocators\n"
	"  -h, --help            this text\n";

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "pcpbench: %s: '%s'\n", what, value);
	fprintf(stderr, "Try 'pcpbench --help' or 'pcpbench --list'.\n");
	return EXIT_USAGE;
}

/* A whole number within bounds, or -1. */
static long number_read(const char *text, long least, long most)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		return -1;
	return n;
}

static int number_take(const char *what, const char *text, long least,
		       long most, unsigned *out)
{
	long n = number_read(text, least, most);

	if (n < 0) {
		fprintf(stderr,
			"pcpbench: %s: '%s' is not a number from %ld to %ld\n",
			what, text, least, most);
		return EXIT_USAGE;
	}
	*out = (unsigned)n;
	return -1;
}

static int allocator_add(struct bench_options *o, const char *name)
{
	int found = bench_allocator_find(name);

	if (found < 0)
		return usage_error("unknown allocator", name);
	for (size_t i = 0; i < o->nr_allocators; i++)
		if (o->allocator[i] == found)
			return usage_error("allocator named twice", name);
	o->allocator[o->nr_allocators++] = found;
	return -1;
}

static int allocators_take(struct bench_options *o, char *list)
{
	char *rest = NULL;
	int status = -1;

	o->allocators_named = true;
	o->nr_allocators = 0;
	for (char *name = strtok_r(list, ",", &rest); name && status < 0;
	     name = strtok_r(NULL, ",", &rest))
		status = allocator_add(o, name);
	if (status < 0 && !o->nr_allocators)
		return usage_error("no allocator in the list", list);
	return status;
}

/* Whether a thread may run there: asks by going there and back. */
static bool cpu_usable(long cpu)
{
	cpu_set_t before, set;
	bool ok;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (sched_getaffinity(0, sizeof(before), &before))
		return false;
	ok = sched_setaffinity(0, sizeof(set), &set) == 0;
	sched_setaffinity(0, sizeof(before), &before);
	return ok;
}

static int cpus_take(struct bench_options *o, char *list)
{
	char *second = strchr(list, ',');
	long a, b = -1;

	if (second)
		*second++ = '\0';
	a = number_read(list, 0, CPU_SETSIZE - 1);
	if (a < 0)
		return usage_error("not a CPU", list);
	if (second) {
		b = number_read(second, 0, CPU_SETSIZE - 1);
		if (b < 0 || b == a)
			return usage_error("not a second CPU", second);
	}
	if (!cpu_usable(a))
		return usage_error("no CPU that may be used", list);
	if (second && !cpu_usable(b))
		return usage_error("no CPU that may be used", second);
	o->cpu[0] = o->cpus[0] = (int)a;
	o->cpu[1] = o->cpus[1] = (int)b;
	o->nr_cpus = second ? 2 : 1;
	return -1;
}

static int experiment_add(struct bench_options *o, const char *name)
{
	bool all = strcmp(name, "experiments") == 0;
	int found = bench_experiment_find(name);

	if (found < 0 && !all)
		return usage_error("unknown workload", name);
	for (int i = 0; i < BENCH_EXPERIMENTS; i++)
		o->experiment[i] |= all || i == found;
	return -1;
}

static int workload_add(struct bench_options *o, const char *name)
{
	int found = bench_workload_find(name);

	if (strcmp(name, "all") == 0) {
		for (int i = 0; i < BENCH_WORKLOADS; i++)
			o->workload[i] |= !bench_is_mapping((unsigned)i);
		return -1;
	}
	if (strcmp(name, "mappings") == 0) {
		for (unsigned i = 0; i < BENCH_WORKLOADS; i++)
			o->workload[i] |= bench_is_mapping(i);
		return -1;
	}
	if (strcmp(name, "latency") == 0) {
		for (unsigned i = 0; i < BENCH_WORKLOADS; i++)
			o->workload[i] |= bench_is_latency(i);
		return -1;
	}
	if (found < 0)
		return experiment_add(o, name);
	o->workload[found] = true;
	return -1;
}

static void cpus_default(struct bench_options *o)
{
	cpu_set_t set;

	o->cpu[0] = 0;
	o->cpu[1] = -1;
	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && o->nr_cpus < BENCH_CPUS; cpu++)
		if (CPU_ISSET((unsigned)cpu, &set))
			o->cpus[o->nr_cpus++] = cpu;
	for (unsigned i = 0; i < 2 && i < o->nr_cpus; i++)
		o->cpu[i] = o->cpus[i];
}

static int option_take(struct bench_options *o, int c)
{
	switch (c) {
	case 'a':
		return allocators_take(o, optarg);
	case 'n':
		return number_take("--reps", optarg, 1, MAX_REPS, &o->reps);
	case 'm':
		return number_take("--heap-mib", optarg, MIN_HEAP_MIB,
				   MAX_HEAP_MIB, &o->heap_mib);
	case 'c':
		return cpus_take(o, optarg);
	case OPTION_COMPARE:
		o->compare = optarg;
		return -1;
	case OPTION_INPUT:
		o->input = optarg;
		return -1;
	case 's':
		o->simulate = true;
		return -1;
	case 'j':
		o->json = true;
		return -1;
	case 'l':
		o->list = true;
		return -1;
	case 'h':
		fputs(usage, stdout);
		return 0;
	default:
		return EXIT_USAGE; /* getopt has said why */
	}
}

/* What keeps a workload from being run as asked, or NULL. */
static const char *obstacle(const struct bench_options *o, int workload)
{
	const struct bench_workload_info *w = &bench_workloads[workload];

	if (w->threads > 1 && o->cpu[1] < 0)
		return "needs a second CPU";
	if (w->least_heap_mib > o->heap_mib)
		return "needs a larger --heap-mib";
	return NULL;
}

/* An error where the workload was named, left out of `all'. */
static int obstacles_check(struct bench_options *o, bool all)
{
	for (int i = 0; i < BENCH_WORKLOADS; i++) {
		const char *what = o->workload[i] ? obstacle(o, i) : NULL;

		if (what && !all)
			return usage_error(what, bench_workloads[i].name);
		if (what)
			fprintf(stderr, "pcpbench: %s is left out: it %s\n",
				bench_workloads[i].name, what);
		o->workload[i] = o->workload[i] && !what;
	}
	return -1;
}

static int workloads_take(struct bench_options *o, int argc, char **argv)
{
	bool all = false;
	int status = -1;

	if (optind == argc) {
		fprintf(stderr, "pcpbench: no workload\n%s", usage);
		return EXIT_USAGE;
	}
	for (int i = optind; i < argc && status < 0; i++) {
		all |= strcmp(argv[i], "all") == 0;
		status = workload_add(o, argv[i]);
	}
	if (status < 0 && o->simulate &&
	    !o->experiment[bench_experiment_find("rings")])
		return usage_error("--simulate is for rings, not for",
				   argv[optind]);
	return status < 0 ? obstacles_check(o, all) : status;
}

/* There is nothing to run then. */
static int input_check(const struct bench_options *o, int argc, char **argv)
{
	if (!o->compare)
		return usage_error("--input needs --compare", o->input);
	if (optind < argc)
		return usage_error("a workload beside --input", argv[optind]);
	return -1;
}

int bench_options_read(struct bench_options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"allocators", required_argument, NULL, 'a'},
		{"reps", required_argument, NULL, 'n'},
		{"heap-mib", required_argument, NULL, 'm'},
		{"cpus", required_argument, NULL, 'c'},
		{"compare", required_argument, NULL, OPTION_COMPARE},
		{"input", required_argument, NULL, OPTION_INPUT},
		{"simulate", no_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c, status = -1;

	*o = (struct bench_options){.reps = DEFAULT_REPS,
				    .heap_mib = DEFAULT_HEAP_MIB};
	for (int i = 0; i < BENCH_ALLOCATORS; i++)
		o->allocator[o->nr_allocators++] = i;
	cpus_default(o);
	while (status < 0 &&
	       (c = getopt_long(argc, argv, "a:n:m:c:sjlh", longs, NULL)) != -1)
		status = option_take(o, c);
	if (status >= 0 || o->list)
		return status;
	if (o->input)
		return input_check(o, argc, argv);
	return workloads_take(o, argc, argv);
}

static void workloads_list(bool mappings)
{
	for (unsigned i = 0; i < BENCH_WORKLOADS; i++)
		if (bench_is_mapping(i) == mappings)
			printf("  %-16s %s (%s)\n", bench_workloads[i].name,
			       bench_workloads[i].what, bench_workloads[i].unit);
}

void bench_options_list(void)
{
	puts("Workloads:");
	workloads_list(false);
	puts("Mappings:");
	workloads_list(true);
	puts("Experiments:");
	for (int i = 0; i < BENCH_EXPERIMENTS; i++)
		printf("  %-16s %s\n", bench_experiments[i].name,
		       bench_experiments[i].what);
	puts("Allocators:");
	for (int i = 0; i < BENCH_ALLOCATORS; i++) {
		const struct bench_allocator_info *info = &bench_allocators[i];

		printf("  %-21s %s\n", info->name, info->what);
		if (info->settings)
			printf("  %-21s   %s\n", "", info->settings);
	}
}
