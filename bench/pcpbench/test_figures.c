/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_figures.c - what pcpbench makes of its figures: quartiles, and two files
 * of them compared.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "series.h"

/* ---- Quartiles ---- */

Test(series, quartiles_lie_between_the_values_beside_their_rank)
{
	const double value[] = {40, 10, 30, 20};
	struct bench_summary s = bench_series_summary(value, 4);

	cr_assert_float_eq(s.p25, 17.5, 1e-9);
	cr_assert_float_eq(s.median, 25, 1e-9);
	cr_assert_float_eq(s.p75, 32.5, 1e-9);
	cr_assert_float_eq(s.min, 10, 1e-9);
	cr_assert_float_eq(s.p99, 40, 1e-9);
}

Test(series, quartiles_of_one_value_are_it)
{
	const double value[] = {7};
	struct bench_summary s = bench_series_summary(value, 1);

	cr_assert_float_eq(s.p25, 7, 1e-9);
	cr_assert_float_eq(s.p75, 7, 1e-9);
}

Test(series, rank_of_equal_series_is_none)
{
	const double a[] = {1, 2, 3}, same[] = {5, 5, 5};

	cr_assert_float_eq(bench_series_rank(a, 3, a, 3), 0, 1e-9);
	cr_assert_float_eq(bench_series_rank(same, 3, same, 3), 0, 1e-9);
	cr_assert_float_eq(bench_series_rank(a, 0, a, 3), 0, 1e-9);
}

/* U is 0 of 25, its mean 12.5, its variance 25 x 11 / 12; with ties 25 / 12 x
 * (11 - 240 / 90). */
Test(series, rank_counts_pairs)
{
	const double low[] = {1, 2, 3, 4, 5}, high[] = {6, 7, 8, 9, 10};
	const double fives[] = {5, 5, 5, 5, 5}, sixes[] = {6, 6, 6, 6, 6};

	cr_assert_float_eq(bench_series_rank(low, 5, high, 5), 2.5067, 1e-4);
	cr_assert_float_eq(bench_series_rank(high, 5, low, 5), -2.5067, 1e-4);
	cr_assert_float_eq(bench_series_rank(fives, 5, sixes, 5), 2.88, 1e-4);
}

/* ---- Files ---- */

static void file_make(char *path, const char *text)
{
	int fd;

	strcpy(path, "pcpbench-test-XXXXXX"); /* where the tests run */
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static bool text_read(struct bench_cells *c, const char *text, char *why,
		      size_t size, char *path)
{
	bool ok;

	file_make(path, text);
	ok = bench_cells_read(c, path, why, size);
	unlink(path);
	return ok;
}

#define CELL(workload, allocator, unit, p25, median, p75, reps, rest) \
	"{\"workload\":\"" workload "\",\"allocator\":\"" allocator \
	"\",\"unit\":\"" unit "\",\"p25\":" #p25 ",\"median\":" #median \
	",\"p75\":" #p75 ",\"reps\":" #reps rest "}\n"
#define PAIR(p25, median, p75, rest) \
	CELL("pair", "x", "ns/pair", p25, median, p75, 31, rest)

/* Compares two texts; what is printed is to be freed. */
static char *texts_compare(const char *old, const char *now, bool json)
{
	struct bench_cells a = {.n = 0}, b = {.n = 0};
	char why[256] = "", path[64], *printed = NULL;
	size_t size;
	FILE *out;

	cr_assert(text_read(&a, old, why, sizeof(why), path), "%s", why);
	cr_assert(text_read(&b, now, why, sizeof(why), path), "%s", why);
	out = open_memstream(&printed, &size);
	cr_assert_not_null(out);
	bench_compare(&a, &b, json, out);
	fclose(out);
	bench_cells_free(&a);
	bench_cells_free(&b);
	return printed;
}

static void verdict_expect(const char *old, const char *now, const char *verdict)
{
	char *printed = texts_compare(old, now, true), wanted[64];

	snprintf(wanted, sizeof(wanted), "\"verdict\":\"%s\"", verdict);
	cr_assert_not_null(strstr(printed, wanted), "%s: %s", wanted, printed);
	free(printed);
}

Test(compare, ranges_that_touch_have_not_moved)
{
	verdict_expect(PAIR(9, 10, 11, ""), PAIR(11, 12, 13, ""), "same");
	verdict_expect(PAIR(9, 10, 11, ""), PAIR(7, 8, 9, ""), "same");
}

Test(compare, range_above_is_slower_and_below_is_faster)
{
	verdict_expect(PAIR(9, 10, 11, ""), PAIR(11.1, 12, 13, ""), "slower");
	verdict_expect(PAIR(9, 10, 11, ""), PAIR(7, 8, 8.9, ""), "faster");
}

Test(compare, counts_are_higher_or_lower)
{
	verdict_expect(CELL("coalesce", "x", "blocks", 5, 5, 5, 31, ""),
		       CELL("coalesce", "x", "blocks", 6, 6, 6, 31, ""), "higher");
	verdict_expect(CELL("coalesce", "x", "blocks", 5, 5, 5, 31, ""),
		       CELL("coalesce", "x", "blocks", 4, 4, 4, 31, ""), "lower");
}

Test(compare, few_repetitions_have_no_spread)
{
	/* Without their values; with them 5 are enough. */
	verdict_expect(PAIR(9, 10, 11, ""),
		       CELL("pair", "x", "ns/pair", 20, 20, 20, 20, ""),
		       "too few repetitions");
	verdict_expect(CELL("pair", "x", "ns/pair", 1, 1, 1, 4,
			    ",\"values\":[1,1,1,1]"),
		       CELL("pair", "x", "ns/pair", 2, 2, 2, 4,
			    ",\"values\":[2,2,2,2]"),
		       "too few repetitions");
	verdict_expect(PAIR(9, 10, 11, ""),
		       CELL("pair", "x", "ns/pair", 20, 20, 20, 4, ""),
		       "too few repetitions");
}

Test(compare, values_decide_where_quartiles_miss_each_other)
{
	/* One of five on the other side. */
	verdict_expect(CELL("pair", "x", "ns/pair", 1, 1.1, 1.2, 5,
			    ",\"values\":[1,1,1.1,1.2,1.6]"),
		       CELL("pair", "x", "ns/pair", 1.3, 1.4, 1.5, 5,
			    ",\"values\":[1.3,1.3,1.4,1.5,1.5]"),
		       "same");
	verdict_expect(CELL("pair", "x", "ns/pair", 1, 1.1, 1.2, 5,
			    ",\"values\":[1,1,1.1,1.2,1.2]"),
		       CELL("pair", "x", "ns/pair", 1.3, 1.4, 1.5, 5,
			    ",\"values\":[1.3,1.3,1.4,1.5,1.5]"),
		       "slower");
}

/* ---- Equal cells: what chance does ---- */

enum { CELLS = 1000, REPS_MOST = 31 };

static uint64_t random_state;

/* Above 0 and up to 1; the same in each run. */
static double uniform_draw(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(random_state >> 33) + 1) / 2147483648.0;
}

static double even_draw(void)
{
	return 10 + uniform_draw();
}

/* Twelve of them are nearly a normal one. */
static double normal_draw(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += uniform_draw();
	return 10 + (sum - 6) / 4;
}

/* Many at the least value and a long tail, as times have. */
static double tail_draw(void)
{
	double u = uniform_draw();

	return 10 + 0.2 / (u + 0.05);
}

/* Two heights, as where a huge page comes from the hypervisor or doesn't. */
static double heights_draw(void)
{
	return (uniform_draw() < 0.5 ? 10 : 30) + uniform_draw();
}

/* Steps of a clock: many values are equal. */
static double steps_draw(void)
{
	return 10 + (double)(int)(4 * uniform_draw());
}

/* A run of CELLS cells, to be freed; all of its values are larger by `more`. */
static char *run_draw(double (*draw)(void), size_t reps, double more)
{
	double value[REPS_MOST];
	struct bench_summary s;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	for (int cell = 0; cell < CELLS; cell++) {
		for (size_t i = 0; i < reps; i++)
			value[i] = draw() + more;
		s = bench_series_summary(value, reps);
		fprintf(out, "{\"workload\":\"w%d\",\"allocator\":\"x\","
			     "\"unit\":\"ns\",\"p25\":%g,\"median\":%g,"
			     "\"p75\":%g,\"reps\":%zu,\"values\":[%g",
			cell, s.p25, s.median, s.p75, reps, value[0]);
		for (size_t i = 1; i < reps; i++)
			fprintf(out, ",%g", value[i]);
		fputs("]}\n", out);
	}
	fclose(out);
	return text;
}

/* Of CELLS cells of two runs, those that are said to have moved. */
static int moved_count(double (*draw)(void), size_t reps, double more)
{
	char *old = run_draw(draw, reps, 0), *now = run_draw(draw, reps, more);
	char *printed = texts_compare(old, now, true);
	int same = 0;

	for (const char *at = printed;
	     (at = strstr(at, "\"verdict\":\"same\"")) != NULL; at++)
		same++;
	free(printed);
	free(now);
	free(old);
	return CELLS - same;
}

Test(compare, equal_cells_are_called_moved_once_in_a_hundred_times)
{
	static const struct {
		const char *name;
		double (*draw)(void);
	} spreads[] = {
		{"even", even_draw},
		{"normal", normal_draw},
		{"tail", tail_draw},
		{"heights", heights_draw},
		{"steps", steps_draw},
	};
	static const size_t reps[] = {5, 7, 11, 31};

	for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++)
		for (size_t k = 0; k < sizeof(reps) / sizeof(reps[0]); k++) {
			random_state = 1;
			int moved = moved_count(spreads[i].draw, reps[k], 0);

			cr_expect_leq(moved, CELLS * 15 / 1000,
				      "%s, %zu repetitions: %d of %d",
				      spreads[i].name, reps[k], moved, CELLS);
		}
}

/* Four standard deviations. */
Test(compare, seven_repetitions_show_what_has_moved)
{
	random_state = 1;
	cr_assert_geq(moved_count(normal_draw, 7, 1), CELLS * 98 / 100);
}

/* ---- References ---- */

/* All was half as fast: the same in units of the reference. */
Test(compare, slow_run_is_not_slower_than_its_reference)
{
	verdict_expect(PAIR(9, 10, 11, ",\"ratio_to\":{\"calls\":2.0}"),
		       PAIR(18, 20, 22, ",\"ratio_to\":{\"calls\":2.0}"), "same");
}

/* The reference alone moved. */
Test(compare, moved_reference_alone_is_no_verdict)
{
	verdict_expect(PAIR(9, 10, 11, ",\"ratio_to\":{\"calls\":2.0}"),
		       PAIR(9, 10, 11, ",\"ratio_to\":{\"calls\":4.0}"), "same");
}

Test(compare, both_moved_the_same_way_is_a_verdict)
{
	verdict_expect(PAIR(9, 10, 11, ",\"ratio_to\":{\"calls\":2.0}"),
		       PAIR(18, 20, 22, ",\"ratio_to\":{\"calls\":4.0}"),
		       "slower");
}

Test(compare, limit_is_the_reference_where_calls_is_missing)
{
	char *printed = texts_compare(
		PAIR(9, 10, 11, ",\"ratio_to\":{\"calls\":2.0,\"limit\":5.0}"),
		PAIR(9, 10, 11, ",\"ratio_to\":{\"limit\":5.0}"), true);

	cr_assert_not_null(strstr(printed, "\"reference\":\"limit\""), "%s",
			   printed);
	free(printed);
}

/* Twice as fast a machine, on which the allocator fell back by half. */
Test(compare, other_processor_is_judged_in_units_alone)
{
	verdict_expect(
		PAIR(9, 10, 11, ",\"cpu\":\"A\",\"ratio_to\":{\"calls\":2.0}"),
		PAIR(4.5, 5, 5.5, ",\"cpu\":\"B\",\"ratio_to\":{\"calls\":3.0}"),
		"slower");
	verdict_expect(PAIR(9, 10, 11, ",\"cpu\":\"A\""),
		       PAIR(4.5, 5, 5.5, ",\"cpu\":\"B\""), "same");
}

Test(compare, table_counts_what_only_one_run_has)
{
	char *printed = texts_compare(
		PAIR(9, 10, 11, "")
		CELL("churn", "gone", "ns/pair", 1, 1, 1, 11, ""),
		PAIR(7, 8, 8.5, "")
		CELL("churn", "new", "ns/pair", 1, 1, 1, 11, "")
		CELL("churn", "newer", "ns/pair", 1, 1, 1, 11, ""), false);

	cr_assert_not_null(strstr(printed, "faster"), "%s", printed);
	cr_assert_not_null(strstr(printed, "1 in both: 1 less, 0 more"), "%s",
			   printed);
	cr_assert_not_null(
		strstr(printed, "1 only in the old, 2 only in the new"), "%s",
		printed);
	free(printed);
}

/* ---- What a file may hold ---- */

Test(compare, other_lines_are_passed_over_and_the_later_cell_counts)
{
	struct bench_cells c = {.n = 0};
	char why[256] = "", path[64];

	cr_assert(text_read(&c,
			    "{\"missing\":\"jemalloc\",\"why\":\"not found\"}\n"
			    "\n"
			    "{\"experiment\":\"unmap\",\"high\":378}\n"
			    PAIR(9, 10, 11, "") PAIR(1, 2, 3, ""),
			    why, sizeof(why), path), "%s", why);
	cr_assert_eq(c.n, 1);
	cr_assert_float_eq(c.cell[0].median, 2, 1e-9);
	bench_cells_free(&c);
}

static void error_expect(const char *text, unsigned line, const char *wanted)
{
	struct bench_cells c = {.n = 0};
	char why[256] = "", path[64], place[96];

	cr_assert_not(text_read(&c, text, why, sizeof(why), path));
	snprintf(place, sizeof(place), "%s:%u: ", path, line);
	cr_assert_eq(strncmp(why, place, strlen(place)), 0, "%s", why);
	cr_assert_not_null(strstr(why, wanted), "%s", why);
	bench_cells_free(&c);
}

Test(compare, line_that_is_no_json_is_named_by_its_number)
{
	error_expect(PAIR(9, 10, 11, "") "\npair: 5 ns\n", 3, "");
	error_expect("{\"a\":1} x\n", 1, "");
	error_expect("{\"workload\":\"pair\",\n", 1, "");
	error_expect("{\"workload\":\"pair\"", 1, "");
	error_expect("17\n", 1, "not a JSON object");
}

Test(compare, cell_without_a_field_is_named)
{
	error_expect("{\"workload\":\"pair\",\"allocator\":\"x\","
		     "\"unit\":\"ns/pair\",\"median\":1,\"reps\":9}\n",
		     1, "p25");
	error_expect("{\"workload\":7}\n", 1, "workload");
	error_expect("{\"workload\":\"pair\",\"allocator\":\"x\","
		     "\"unit\":\"ns/pair\",\"p25\":\"1\",\"median\":1,"
		     "\"p75\":1,\"reps\":9}\n",
		     1, "p25");
}

Test(compare, values_must_be_as_many_numbers_as_repetitions)
{
	error_expect(PAIR(9, 10, 11, ",\"values\":[1,2]"), 1, "values");
	error_expect(CELL("pair", "x", "ns", 1, 1, 1, 2, ",\"values\":[1,\"2\"]"),
		     1, "values");
	error_expect(CELL("pair", "x", "ns", 1, 1, 1, 2, ",\"values\":2"), 1,
		     "values");
}

Test(compare, file_that_cannot_be_read_is_named)
{
	struct bench_cells c = {.n = 0};
	char why[256] = "";

	cr_assert_not(bench_cells_read(&c, "/nonexistent/old.json", why,
				       sizeof(why)));
	cr_assert_str_eq(why, "/nonexistent/old.json: No such file or directory");
	cr_assert_not(bench_cells_read(&c, "/tmp", why, sizeof(why)));
	cr_assert_str_eq(why, "/tmp: Is a directory");
	bench_cells_free(&c);
}
