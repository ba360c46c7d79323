/* SPDX-License-Identifier: BSD-2-Clause */
/* compare.c - see compare.h. */
#define _GNU_SOURCE
#include "compare.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

enum { LEAST_REPS = 5, QUARTILES_REPS = 21 };

/* Standard deviations of the ranks: equal cells exceed it once in a hundred times. */
#define LEAST_RANK 2.5

/* ---- Reading ---- */

static const char *text_get(struct json_object *o, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    !json_object_is_type(v, json_type_string))
		return NULL;
	return json_object_get_string(v);
}

static bool number_get(struct json_object *o, const char *key, double *out)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) ||
	    (!json_object_is_type(v, json_type_double) &&
	     !json_object_is_type(v, json_type_int)))
		return false;
	*out = json_object_get_double(v);
	return true;
}

/* The repetitions, each a number, or NULL: *bad, something else is there. */
static double *values_get(struct json_object *line, int reps, bool *bad)
{
	struct json_object *array, *v;
	double *value;

	*bad = false;
	if (!json_object_object_get_ex(line, "values", &array))
		return NULL;
	*bad = !json_object_is_type(array, json_type_array) || reps < 1 ||
	       json_object_array_length(array) != (size_t)reps;
	value = *bad ? NULL : calloc((size_t)reps, sizeof(*value));
	for (int i = 0; value && i < reps; i++) {
		v = json_object_array_get_idx(array, (size_t)i);
		*bad |= !json_object_is_type(v, json_type_double) &&
			!json_object_is_type(v, json_type_int);
		value[i] = json_object_get_double(v);
	}
	if (*bad) {
		free(value);
		value = NULL;
	}
	return value;
}

/* The name of what a cell lacks, or NULL. */
static const char *cell_fill(struct bench_cell *c, struct json_object *line)
{
	const char *cpu = text_get(line, "cpu");
	double reps;
	bool bad;

	c->line = line;
	c->cpu = cpu ? cpu : "";
	if (!(c->workload = text_get(line, "workload")))
		return "no text \"workload\"";
	if (!(c->allocator = text_get(line, "allocator")))
		return "no text \"allocator\"";
	if (!(c->unit = text_get(line, "unit")))
		return "no text \"unit\"";
	if (!number_get(line, "p25", &c->p25))
		return "no number \"p25\"";
	if (!number_get(line, "median", &c->median))
		return "no number \"median\"";
	if (!number_get(line, "p75", &c->p75))
		return "no number \"p75\"";
	if (!number_get(line, "reps", &reps))
		return "no number \"reps\"";
	c->reps = (int)reps;
	c->value = values_get(line, c->reps, &bad);
	return bad ? "\"values\" is no array of \"reps\" numbers" : NULL;
}

static struct bench_cell *cell_find(const struct bench_cells *c,
				    const struct bench_cell *like)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->cell[i].workload, like->workload) == 0 &&
		    strcmp(c->cell[i].allocator, like->allocator) == 0)
			return &c->cell[i];
	return NULL;
}

static void cell_drop(struct bench_cell *c)
{
	free(c->value);
	json_object_put(c->line);
}

static struct bench_cell *cell_room(struct bench_cells *c)
{
	struct bench_cell *more =
		realloc(c->cell, (c->n + 1) * sizeof(*c->cell));

	if (!more)
		abort();
	c->cell = more;
	return &c->cell[c->n++];
}

bool bench_cells_add(struct bench_cells *c, struct json_object *line,
		     const char **why)
{
	struct bench_cell cell, *at;

	if (!json_object_is_type(line, json_type_object)) {
		*why = "not a JSON object";
		return false;
	}
	if (!json_object_object_get_ex(line, "workload", NULL))
		return true;
	*why = cell_fill(&cell, line);
	if (*why)
		return false;
	json_object_get(line);
	at = cell_find(c, &cell);
	if (at)
		cell_drop(at);
	else
		at = cell_room(c);
	*at = cell;
	return true;
}

static bool line_blank(const char *line)
{
	return !line[strspn(line, " \t\r\n")];
}

/* NULL with the reason when the line isn't one value of JSON. */
static struct json_object *line_parse(const char *line, const char **why)
{
	struct json_tokener *t = json_tokener_new();
	struct json_object *o;
	enum json_tokener_error err;

	if (!t)
		abort();
	json_tokener_set_flags(t, JSON_TOKENER_STRICT);
	/* With its zero, so that what is cut short is no "continue". */
	o = json_tokener_parse_ex(t, line, (int)strlen(line) + 1);
	err = json_tokener_get_error(t);
	if (err != json_tokener_success) {
		*why = err == json_tokener_continue
			       ? "it ends too early"
			       : json_tokener_error_desc(err);
		json_object_put(o);
		o = NULL;
	}
	json_tokener_free(t);
	return o;
}

static bool line_take(struct bench_cells *c, const char *line, const char **why)
{
	struct json_object *o;
	bool ok;

	if (line_blank(line))
		return true;
	o = line_parse(line, why);
	if (!o)
		return false;
	ok = bench_cells_add(c, o, why);
	json_object_put(o);
	return ok;
}

bool bench_cells_read(struct bench_cells *c, const char *path, char *why,
		      size_t size)
{
	FILE *f = fopen(path, "r");
	const char *reason = NULL;
	unsigned long number = 0;
	char *line = NULL;
	size_t room = 0;
	bool ok = f;

	while (ok && (errno = 0, getline(&line, &room, f)) >= 0) {
		number++;
		ok = line_take(c, line, &reason);
	}
	if (reason && !ok)
		snprintf(why, size, "%s:%lu: %s", path, number, reason);
	else if (!ok || ferror(f)) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		ok = false;
	}
	free(line);
	if (f)
		fclose(f);
	return ok;
}

void bench_cells_free(struct bench_cells *c)
{
	for (size_t i = 0; i < c->n; i++)
		cell_drop(&c->cell[i]);
	free(c->cell);
	*c = (struct bench_cells){.cell = NULL};
}

/* ---- Comparing ---- */

enum verdict { UNMOVED, LESS, MORE, TOO_FEW };

struct comparison {
	const struct bench_cell *old, *now;
	double ratio;          /* of the medians, new to old; 0: of nothing */
	const char *reference; /* NULL: none that both have */
	double old_scale, now_scale; /* a value times it is in references */
	double normalised;           /* ratio of the medians in references */
	enum verdict verdict;
};

static double ratio_to(const struct bench_cell *c, const char *reference)
{
	struct json_object *ratios;
	double ratio;

	if (!json_object_object_get_ex(c->line, "ratio_to", &ratios) ||
	    !json_object_is_type(ratios, json_type_object) ||
	    !number_get(ratios, reference, &ratio))
		return 0;
	return ratio;
}

static void reference_find(struct comparison *k)
{
	static const char *const references[] = {"calls", "limit"};

	for (size_t i = 0; i < 2; i++) {
		double old = ratio_to(k->old, references[i]);
		double now = ratio_to(k->now, references[i]);

		if (old <= 0 || now <= 0 || k->old->median <= 0 ||
		    k->now->median <= 0)
			continue;
		k->reference = references[i];
		k->old_scale = old / k->old->median;
		k->now_scale = now / k->now->median;
		k->normalised = now / old;
		return;
	}
}

/* Whether the repetitions say it, too; the quartiles of many do alone.  The least
 * rank is also what ties leave of 5 against 5, all apart. */
static bool ranks_apart(const struct comparison *k, double old_scale,
			double now_scale)
{
	size_t n = (size_t)k->now->reps;
	double *scaled, rank;

	if (!k->old->value || !k->now->value)
		return true;
	scaled = calloc(n, sizeof(*scaled));
	if (!scaled)
		abort();
	for (size_t i = 0; i < n; i++)
		scaled[i] = k->now->value[i] * now_scale / old_scale;
	rank = bench_series_rank(k->old->value, (size_t)k->old->reps, scaled, n);
	free(scaled);
	return rank >= LEAST_RANK || rank <= -LEAST_RANK;
}

static enum verdict range_moved(const struct comparison *k, double old_scale,
				double now_scale)
{
	enum verdict way = UNMOVED;

	if (k->now->p75 * now_scale < k->old->p25 * old_scale)
		way = LESS;
	else if (k->now->p25 * now_scale > k->old->p75 * old_scale)
		way = MORE;
	return way != UNMOVED && ranks_apart(k, old_scale, now_scale) ? way
								       : UNMOVED;
}

static bool enough(const struct bench_cell *c)
{
	return c->reps >= (c->value ? LEAST_REPS : QUARTILES_REPS);
}

static enum verdict cells_judge(const struct comparison *k)
{
	bool same_cpu = strcmp(k->old->cpu, k->now->cpu) == 0;
	enum verdict bare = range_moved(k, 1, 1), scaled;

	if (!enough(k->old) || !enough(k->now))
		return TOO_FEW;
	if (!k->reference)
		return same_cpu ? bare : UNMOVED;
	scaled = range_moved(k, k->old_scale, k->now_scale);
	return !same_cpu || bare == scaled ? scaled : UNMOVED;
}

static struct comparison cells_compare(const struct bench_cell *old,
				       const struct bench_cell *now)
{
	struct comparison k = {.old = old, .now = now};

	if (old->median > 0)
		k.ratio = now->median / old->median;
	reference_find(&k);
	k.verdict = cells_judge(&k);
	return k;
}

/* Only of a time it is known which way is better. */
static const char *verdict_name(const struct comparison *k)
{
	const char *unit = k->now->unit;
	bool time = strncmp(unit, "ns", 2) == 0 || strncmp(unit, "us", 2) == 0 ||
		    strncmp(unit, "ms", 2) == 0;

	switch (k->verdict) {
	case LESS:
		return time ? "faster" : "lower";
	case MORE:
		return time ? "slower" : "higher";
	case TOO_FEW:
		return "too few repetitions";
	default:
		return "same";
	}
}

/* ---- Printing ---- */

static void range_print(const struct bench_cell *c, FILE *out)
{
	fprintf(out, " %9.2f %9.2f %9.2f", c->median, c->p25, c->p75);
}

static void table_row(const struct comparison *k, FILE *out)
{
	fprintf(out, "%-16s %-21s", k->now->workload, k->now->allocator);
	range_print(k->old, out);
	fputs("  ", out);
	range_print(k->now, out);
	fprintf(out, " %8.2f", k->ratio);
	if (k->reference)
		fprintf(out, " %8.2f %-5s", k->normalised, k->reference);
	else
		fprintf(out, " %8s %-5s", "-", "");
	fprintf(out, "  %s\n", k->verdict == UNMOVED ? "-" : verdict_name(k));
}

static void table_header(FILE *out)
{
	fprintf(out, "\ncompared: medians and quartiles; new/old bare and in units "
		     "of a reference of the same run\n");
	fprintf(out, "%-38s %29s   %29s\n", "", "------------ old ------------",
		"------------ new ------------");
	fprintf(out, "%-38s %9s %9s %9s   %9s %9s %9s %8s %8s\n", "", "median",
		"p25", "p75", "median", "p25", "p75", "new/old", "in units");
}

static void number_add(struct json_object *o, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f", value);
	json_object_object_add(o, key, json_object_new_double_s(value, text));
}

static struct json_object *range_json(const struct bench_cell *c)
{
	struct json_object *o = json_object_new_object();

	number_add(o, "median", c->median);
	number_add(o, "p25", c->p25);
	number_add(o, "p75", c->p75);
	return o;
}

static void text_add(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static void json_row(const struct comparison *k, FILE *out)
{
	struct json_object *o = json_object_new_object();

	text_add(o, "compared", k->now->workload);
	text_add(o, "allocator", k->now->allocator);
	text_add(o, "unit", k->now->unit);
	json_object_object_add(o, "old", range_json(k->old));
	json_object_object_add(o, "new", range_json(k->now));
	number_add(o, "ratio", k->ratio);
	if (k->reference) {
		text_add(o, "reference", k->reference);
		number_add(o, "normalised_ratio", k->normalised);
	}
	text_add(o, "verdict", verdict_name(k));
	fprintf(out, "%s\n",
		json_object_to_json_string_ext(
			o, JSON_C_TO_STRING_PLAIN |
				   JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

void bench_compare(const struct bench_cells *old, const struct bench_cells *now,
		   bool json, FILE *out)
{
	size_t both = 0, count[TOO_FEW + 1] = {0};

	if (!json)
		table_header(out);
	for (size_t i = 0; i < now->n; i++) {
		const struct bench_cell *was = cell_find(old, &now->cell[i]);
		struct comparison k;

		if (!was)
			continue;
		k = cells_compare(was, &now->cell[i]);
		both++;
		count[k.verdict]++;
		if (json)
			json_row(&k, out);
		else
			table_row(&k, out);
	}
	if (!json)
		fprintf(out,
			"%zu in both: %zu less, %zu more, %zu within the spread, "
			"%zu of too few repetitions; %zu only in the old, "
			"%zu only in the new\n",
			both, count[LESS], count[MORE], count[UNMOVED],
			count[TOO_FEW], old->n - both, now->n - both);
	fflush(out);
}
