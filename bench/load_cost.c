/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load_cost.c - a program that calls nothing of the library, and the watch that
 * times two such programs.  Built twice: see CMakeLists.txt.
 *
 * usage: load_cost                     does nothing
 *        load_cost threads             prints how many threads it has
 *        load_cost time RUNS P1 P2 [LIBRARY]
 *                                      starts both programs RUNS times each, in
 *                                      turns, the second with the library preloaded,
 *                                      and prints a line for each (median,
 *                                      quartiles, microseconds) and one for the
 *                                      difference of each turn
 *
 * Timed is from before the program is started until it has been waited for.
 */
#include <dirent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_RUNS 100000ul

static void die(const char *what)
{
	fprintf(stderr, "load_cost: %s\n", what);
	exit(1);
}

static int print_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned threads = 0;
	struct dirent *entry;

	if (!dir)
		die("can't read /proc/self/task");
	while ((entry = readdir(dir)))
		threads += entry->d_name[0] != '.';
	closedir(dir);
	printf("%u\n", threads);
	return 0;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct start {
	char *program, *variable; /* of the environment, or NULL */
};

static double start_us(struct start s)
{
	char *args[] = {s.program, NULL}, *env[] = {s.variable, NULL};
	double start = now_us();
	int status;
	pid_t pid;

	if (posix_spawn(&pid, s.program, NULL, NULL, args, env) ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		die("a program can't be started or fails");
	return now_us() - start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_spread(const char *what, double *us, size_t n)
{
	qsort(us, n, sizeof(*us), compare);
	printf("%s %.1f %.1f %.1f\n", what, us[n / 2], us[n / 4],
	       us[n - 1 - n / 4]);
}

static int print_times(size_t runs, struct start first, struct start second)
{
	double *us = calloc(3 * runs, sizeof(*us));
	double *a = us, *b = us + runs, *diff = b + runs;
	size_t i;

	if (!us)
		die("no memory");
	start_us(first); /* into the page cache */
	start_us(second);
	/* Who goes first changes, too. */
	for (i = 0; i < runs; i++) {
		if (i & 1)
			b[i] = start_us(second);
		a[i] = start_us(first);
		if (!(i & 1))
			b[i] = start_us(second);
		diff[i] = b[i] - a[i];
	}
	print_spread("first", a, runs);
	print_spread("second", b, runs);
	print_spread("difference", diff, runs);
	free(us);
	return 0;
}

int main(int argc, char **argv)
{
	struct start first = {NULL, NULL}, second = {NULL, NULL};
	char variable[4200];
	size_t runs;

	if (argc == 1)
		return 0;
	if (argc == 2 && strcmp(argv[1], "threads") == 0)
		return print_threads();
	if (argc < 5 || argc > 6 || strcmp(argv[1], "time") != 0)
		die("started by bench/load-cost only");
	runs = strtoul(argv[2], NULL, 10);
	if (runs == 0 || runs > MAX_RUNS)
		die("RUNS is 1 to 100000");
	first.program = argv[3];
	second.program = argv[4];
	if (argc == 6) {
		if ((size_t)snprintf(variable, sizeof(variable), "LD_PRELOAD=%s",
				     argv[5]) >= sizeof(variable))
			die("the library's path is too long");
		second.variable = variable;
	}
	return print_times(runs, first, second);
}
