/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_figures.c - what pcpbench makes of its figures: quartiles, and two files
 * of them compared.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
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
	CELL("pair", "x", "ns/pair", p25, median, p75, 11, rest)

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
	verdict_expect(CELL("coalesce", "x", "blocks", 5, 5, 5, 11, ""),
		       CELL("coalesce", "x", "blocks", 6, 6, 6, 11, ""), "higher");
	verdict_expect(CELL("coalesce", "x", "blocks", 5, 5, 5, 11, ""),
		       CELL("coalesce", "x", "blocks", 4, 4, 4, 11, ""), "lower");
}

Test(compare, few_repetitions_have_no_spread)
{
	verdict_expect(PAIR(9, 10, 11, ""),
		       CELL("pair", "x", "ns/pair", 20, 20, 20, 4, ""),
		       "too few repetitions");
}

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
