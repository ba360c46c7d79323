/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_config.c - knobs from text and from structs of any size, and from the
 * environment.  J1-J3 of config.c, V1 of env.c (V2 needs a set-user-id program
 * and is left to review).
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "env.h"

#define PAGE 4096u

static char error[PCPI_CONFIG_ERROR_BYTES];

/* ---- Helpers ------------------------------------------------------------- */

static size_t knob_bytes(const struct pcpi_knob *knob)
{
	if (knob->type == PCPI_KNOB_BYTES)
		return sizeof(size_t);
	return knob->type == PCPI_KNOB_NODES ? sizeof(char *) : sizeof(unsigned);
}

/* Field by field: a copy need not have the padding of what it was made from. */
static void expect_same(const struct pcpa_heap_options *a,
			const struct pcpa_heap_options *b)
{
	cr_expect_eq(a->struct_size, b->struct_size);
	cr_expect_eq(a->flags, b->flags);
	cr_expect_eq(a->initial_bytes, b->initial_bytes);
	cr_expect_eq(a->max_bytes, b->max_bytes);
	cr_expect_eq(a->nodes, b->nodes);
	cr_expect_eq(a->hugepage_bytes, b->hugepage_bytes);
	cr_expect_eq(a->batch_pages, b->batch_pages);
	cr_expect_eq(a->high_pages, b->high_pages);
	cr_expect_eq(a->high_fraction, b->high_fraction);
	cr_expect_eq(a->verbosity, b->verbosity);
	cr_expect_eq(a->reserve_pages, b->reserve_pages);
}

static size_t parse_bytes(const char *text)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	cr_assert_eq(pcpi_config_parse("max_bytes", text, &o, error,
				       sizeof(error)),
		     0, "%s: %s", text, error);
	return o.max_bytes;
}

/* The value is refused, the text names both, and nothing is written. */
static void parse_refused(const char *name, const char *value)
{
	struct pcpa_heap_options o, before;

	memset(&o, 0x5a, sizeof(o));
	before = o;
	error[0] = '\0';
	cr_expect_eq(pcpi_config_parse(name, value, &o, error, sizeof(error)),
		     -EINVAL, "%s=%s is taken", name, value);
	cr_expect_eq(memcmp(&o, &before, sizeof(o)), 0, "%s wrote", name);
	cr_expect(strstr(error, name), "no name in: %s", error);
	cr_expect(strstr(error, value), "no value in: %s", error);
}

static struct pcpa_heap_options check_ok(const struct pcpa_heap_options *o)
{
	struct pcpa_heap_options n;

	memset(&n, 0x5a, sizeof(n));
	cr_assert_eq(pcpi_config_check(o, PAGE, &n, error, sizeof(error)), 0,
		     "%s", error);
	return n;
}

static void check_refused(const struct pcpa_heap_options *o, const char *field,
			  const char *value)
{
	struct pcpa_heap_options n, before;

	memset(&n, 0x5a, sizeof(n));
	before = n;
	error[0] = '\0';
	cr_expect_eq(pcpi_config_check(o, PAGE, &n, error, sizeof(error)),
		     -EINVAL, "%s %s is taken", field, value);
	cr_expect_eq(memcmp(&n, &before, sizeof(n)), 0, "%s wrote", field);
	cr_expect_eq(strncmp(error, field, strlen(field)), 0,
		     "%s is not named first: %s", field, error);
	cr_expect(strstr(error, value), "no %s in: %s", value, error);
}

/* ---- The table ----------------------------------------------------------- */

Test(config, table_covers_every_field_once_in_order)
{
	size_t end = offsetof(struct pcpa_heap_options, flags);

	for (size_t i = 0; i < pcpi_knobs_count; i++) {
		const struct pcpi_knob *knob = &pcpi_knobs[i];
		size_t bytes = knob_bytes(knob);

		end = (end + bytes - 1) / bytes * bytes; /* alignment */
		cr_expect_eq(knob->offset, end, "%s", knob->name);
		end = knob->offset + bytes;
	}
	end = (end + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t);
	cr_expect_eq(end, sizeof(struct pcpa_heap_options));
}

Test(config, table_entry_is_complete)
{
	for (size_t i = 0; i < pcpi_knobs_count; i++) {
		const struct pcpi_knob *knob = &pcpi_knobs[i];

		cr_expect_eq(strncmp(knob->variable, "PCPA_", 5), 0);
		cr_expect_eq(strcasecmp(knob->variable + 5, knob->name), 0,
			     "%s", knob->variable);
		cr_expect_eq(pcpi_config_find(knob->name), knob);
		cr_expect_eq(pcpi_config_find(knob->variable), knob);
		cr_expect(knob->min <= knob->max);
		cr_expect(strcmp(knob->stability, "stable") == 0 ||
			  strcmp(knob->stability, "tuning") == 0);
		cr_expect(knob->help[0] != '\0');
	}
	cr_expect_null(pcpi_config_find("struct_size"));
	cr_expect_null(pcpi_config_find("PCPA_"));
	cr_expect_null(pcpi_config_find("initial"));
}

/* ---- Text ---------------------------------------------------------------- */

Test(config, size_suffixes_are_binary)
{
	cr_expect_eq(parse_bytes("0"), 0);
	cr_expect_eq(parse_bytes("12345"), 12345);
	cr_expect_eq(parse_bytes("3K"), (size_t)3 << 10);
	cr_expect_eq(parse_bytes("64M"), (size_t)64 << 20);
	cr_expect_eq(parse_bytes("64m"), (size_t)64 << 20);
	cr_expect_eq(parse_bytes("2G"), (size_t)2 << 30);
	cr_expect_eq(parse_bytes("16T"), (size_t)16 << 40);
	cr_expect_eq(parse_bytes("0016K"), (size_t)16 << 10);
}

Test(config, size_at_the_edge_of_64_bits_is_exact)
{
	cr_expect_eq(parse_bytes("18446744073709551615"), SIZE_MAX);
	cr_expect_eq(parse_bytes("18014398509481983K"), SIZE_MAX - 1023);
	parse_refused("max_bytes", "18446744073709551616");
	parse_refused("max_bytes", "18014398509481984K");
	parse_refused("max_bytes", "16777216T");
	parse_refused("max_bytes", "99999999999999999999999");
}

Test(config, bad_number_is_refused_and_named)
{
	static const char *const bad[] = {"",     " 1",   "1 ",   "-1",
					  "+1",   "0x10", "1.5G", "K",
					  "64MB", "64KK", "64 M", "64P",
					  "many", "1,5",  "1e6"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		parse_refused("initial_bytes", bad[i]);
		parse_refused("PCPA_HUGEPAGE_BYTES", bad[i]);
		parse_refused("high_pages", bad[i]);
	}
	parse_refused("batch_pages", "1K"); /* a count has no suffix */
}

Test(config, number_out_of_range_is_refused_and_named)
{
	parse_refused("batch_pages", "4097");
	parse_refused("high_pages", "65537");
	parse_refused("high_pages", "4294967296"); /* would wrap to 0 */
	parse_refused("PCPA_HIGH_FRACTION", "1");
	parse_refused("high_fraction", "7");
	parse_refused("high_fraction", "4294967304"); /* would wrap to 8 */
	parse_refused("verbosity", "2");
}

Test(config, number_in_range_reaches_its_field)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	static const char *const set[][2] = {
		{"PCPA_INITIAL_BYTES", "1M"},  {"max_bytes", "2M"},
		{"PCPA_HUGEPAGE_BYTES", "4K"}, {"batch_pages", "4096"},
		{"high_pages", "65536"},       {"high_fraction", "8"},
		{"PCPA_VERBOSITY", "0"},
	};

	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		cr_expect_eq(pcpi_config_parse(set[i][0], set[i][1], &o, error,
					       sizeof(error)),
			     0, "%s", error);
	cr_expect_eq(o.struct_size, sizeof(o));
	cr_expect_eq(o.initial_bytes, 1u << 20);
	cr_expect_eq(o.max_bytes, 2u << 20);
	cr_expect_eq(o.hugepage_bytes, 4096);
	cr_expect_eq(o.batch_pages, 4096);
	cr_expect_eq(o.high_pages, 65536);
	cr_expect_eq(o.high_fraction, 8);
	cr_expect_eq(o.verbosity, 0);
}

Test(config, flag_names_make_their_bits)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	static const struct {
		const char *text;
		unsigned flags;
	} set[] = {
		{"cow", PCPA_HEAP_COW},
		{"fixed", PCPA_HEAP_FIXED},
		{"legacy", PCPA_HEAP_LEGACY},
		{"checks", PCPA_HEAP_CHECKS},
		{"dump", PCPA_HEAP_DUMP},
		{"no_ipi", PCPA_HEAP_NO_IPI},
		{"background", PCPA_HEAP_BACKGROUND},
		{"shared", PCPA_HEAP_SHARED},
		{"contents", PCPA_HEAP_CONTENTS},
		{"bound", PCPA_HEAP_BOUND},
		{"dump,cow,dump", PCPA_HEAP_DUMP | PCPA_HEAP_COW},
	};

	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		cr_expect_eq(pcpi_config_parse("PCPA_FLAGS", set[i].text, &o,
					       error, sizeof(error)),
			     0);
		cr_expect_eq(o.flags, set[i].flags, "%s", set[i].text);
	}
}

Test(config, bad_flag_list_is_refused_and_named)
{
	static const char *const bad[] = {"",          "fix",      "fixedly",
					  "FIXED",     ",cow",     "cow,",
					  "cow,,dump", "cow dump", "3"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		parse_refused("flags", bad[i]);
}

Test(config, node_list_is_kept_and_empty_one_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	const char *list = "0,2-3";

	cr_expect_eq(pcpi_config_parse("nodes", list, &o, error, sizeof(error)),
		     0);
	cr_expect_eq(o.nodes, list);
	parse_refused("PCPA_NODES", "");
}

Test(config, unknown_knob_is_refused_and_named)
{
	parse_refused("PCPA_HIGH_PAGE", "12");
	parse_refused("struct_size", "64");
	parse_refused("", "64");
}

Test(config, error_text_is_cut_to_its_buffer)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	char small[8] = "xxxxxxx";
	char value[600];

	cr_expect_eq(pcpi_config_parse("flags", "?", &o, NULL, 0), -EINVAL);
	cr_expect_eq(pcpi_config_parse("flags", "?", &o, small, 6), -EINVAL);
	cr_expect_str_eq(small, "flags");
	memset(value, 'y', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	cr_expect_eq(pcpi_config_parse("flags", value, &o, error, sizeof(error)),
		     -EINVAL);
	cr_expect(strstr(error, "not a list"), "no reason in: %s", error);
}

/* ---- Size of the struct -------------------------------------------------- */

Test(config, null_options_are_defaults)
{
	const struct pcpa_heap_options d = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap_options n = check_ok(NULL);

	expect_same(&n, &d);
}

Test(config, struct_size_that_is_none_is_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.struct_size = 0;
	check_refused(&o, "struct_size", "0");
	o.struct_size = 4;
	check_refused(&o, "struct_size", "4");
	o.struct_size = SIZE_MAX; /* must not be read to its end */
	check_refused(&o, "struct_size", "18446744073709551615");
}

Test(config, larger_struct_needs_a_zero_tail)
{
	union {
		struct pcpa_heap_options o;
		unsigned char bytes[sizeof(struct pcpa_heap_options) + 24];
	} newer;
	const struct pcpa_heap_options init = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap_options n;

	memset(&newer, 0, sizeof(newer));
	newer.o = init;
	newer.o.struct_size = sizeof(newer);
	newer.o.batch_pages = 31;
	n = check_ok(&newer.o);
	cr_expect_eq(n.struct_size, sizeof(n));
	cr_expect_eq(n.batch_pages, 31);

	newer.bytes[sizeof(newer) - 1] = 1;
	check_refused(&newer.o, "struct_size", "96");
	newer.bytes[sizeof(newer) - 1] = 0;
	newer.bytes[sizeof(newer.o)] = 1;
	check_refused(&newer.o, "struct_size", "96");
}

/* An older caller's struct ends anywhere; the bytes behind it are not its. */
Test(config, smaller_struct_gets_defaults_for_the_rest)
{
	const struct pcpa_heap_options d = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap_options full = {
		sizeof(full), PCPA_HEAP_DUMP,
		1u << 20,     2u << 20,
		"0",          PAGE,
		31,           0,
		16,           0,
		64,
	};

	for (size_t have = sizeof(size_t); have <= sizeof(full); have++) {
		struct pcpa_heap_options *old = malloc(have);
		struct pcpa_heap_options n;

		cr_assert_not_null(old);
		full.struct_size = have;
		memcpy(old, &full, have);
		n = check_ok(old); /* AddressSanitizer sees a read too far */
		free(old);
		cr_expect_eq(n.struct_size, sizeof(n));
		for (size_t i = 0; i < pcpi_knobs_count; i++) {
			const struct pcpi_knob *knob = &pcpi_knobs[i];
			size_t at = knob->offset, len = knob_bytes(knob);
			const struct pcpa_heap_options *want =
				at + len <= have ? &full : &d;

			cr_expect_eq(memcmp((char *)&n + at,
					    (const char *)want + at, len),
				     0, "%s of a struct of %zu", knob->name,
				     have);
		}
	}
}

/* ---- Values that go together --------------------------------------------- */

Test(config, unknown_flag_is_refused_and_named)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.flags = PCPA_HEAP_COW | 0x4000u;
	check_refused(&o, "flags", "0x4000");
	o.flags = PCPA_HEAP_COW | PCPA_HEAP_LEGACY | PCPA_HEAP_CHECKS |
		  PCPA_HEAP_DUMP | PCPA_HEAP_NO_IPI | PCPA_HEAP_BACKGROUND |
		  PCPA_HEAP_CONTENTS;
	cr_expect_eq(check_ok(&o).flags, o.flags);
}

Test(config, fixed_heap_needs_initial_and_no_other_max)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.flags = PCPA_HEAP_FIXED;
	check_refused(&o, "initial_bytes", "0");
	o.max_bytes = 8u << 20;
	check_refused(&o, "initial_bytes", "0");
	o.initial_bytes = 4u << 20;
	check_refused(&o, "max_bytes", "8388608");
	o.initial_bytes = 16u << 20;
	check_refused(&o, "max_bytes", "8388608");
	o.initial_bytes = 8u << 20;
	cr_expect_eq(check_ok(&o).max_bytes, 8u << 20);
	o.max_bytes = 0;
	cr_expect_eq(check_ok(&o).max_bytes, 8u << 20);
}

Test(config, initial_above_max_is_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.max_bytes = 8u << 20;
	o.initial_bytes = o.max_bytes + 1;
	check_refused(&o, "initial_bytes", "8388609");
	o.initial_bytes = o.max_bytes;
	cr_expect_eq(check_ok(&o).initial_bytes, o.max_bytes);
	o.max_bytes = 0;
	cr_expect_eq(check_ok(&o).max_bytes, 0);
}

Test(config, more_pages_than_an_index_counts_are_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.max_bytes = (size_t)16 << 40;
	cr_expect_eq(check_ok(&o).max_bytes, o.max_bytes);
	o.max_bytes += 1;
	check_refused(&o, "max_bytes", "17592186044417");
	o.max_bytes = 0;
	o.initial_bytes = SIZE_MAX;
	check_refused(&o, "initial_bytes", "18446744073709551615");
}

Test(config, page_limit_follows_the_page_size)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT, n;

	o.max_bytes = (size_t)64 << 40;
	cr_expect_eq(pcpi_config_check(&o, 16384, &n, error, sizeof(error)), 0);
	o.hugepage_bytes = 4096;
	cr_expect_eq(pcpi_config_check(&o, 16384, &n, error, sizeof(error)),
		     -EINVAL);
	cr_expect(strstr(error, "hugepage_bytes 4096"), "%s", error);
}

Test(config, hugepage_size_must_be_a_power_of_two_from_a_page)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	static const size_t good[] = {PAGE, 65536, 2u << 20, 1u << 30};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		o.hugepage_bytes = good[i];
		cr_expect_eq(check_ok(&o).hugepage_bytes, good[i]);
	}
	o.hugepage_bytes = 2048;
	check_refused(&o, "hugepage_bytes", "2048");
	o.hugepage_bytes = 3u << 20;
	check_refused(&o, "hugepage_bytes", "3145728");
	o.hugepage_bytes = 1;
	check_refused(&o, "hugepage_bytes", "1");
}

Test(config, cow_with_explicit_huge_pages_is_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.flags = PCPA_HEAP_COW;
	o.hugepage_bytes = 2u << 20;
	check_refused(&o, "hugepage_bytes", "2097152");
	o.hugepage_bytes = PAGE;
	cr_expect_eq(check_ok(&o).hugepage_bytes, PAGE);
	o.hugepage_bytes = 0;
	cr_expect_eq(check_ok(&o).hugepage_bytes, 0);
}

Test(config, field_out_of_range_is_refused_and_named)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.batch_pages = 4097;
	check_refused(&o, "batch_pages", "4097");
	o.batch_pages = 4096;
	o.high_pages = 65537;
	check_refused(&o, "high_pages", "65537");
	o.high_pages = 4096;
	o.verbosity = 2;
	check_refused(&o, "verbosity", "2");
	o.verbosity = 0;
	cr_expect_eq(check_ok(&o).verbosity, 0);
	o.high_pages = 0;
	for (unsigned f = 1; f < 8; f++) {
		o.high_fraction = f;
		check_refused(&o, "high_fraction", "must be 0 or 8");
	}
	o.high_fraction = 8;
	cr_expect_eq(check_ok(&o).high_fraction, 8);
	o.high_fraction = UINT_MAX;
	cr_expect_eq(check_ok(&o).high_fraction, UINT_MAX);
}

Test(config, high_below_batch_is_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.batch_pages = 63;
	o.high_pages = 62;
	check_refused(&o, "high_pages", "62");
	o.high_pages = 63;
	cr_expect_eq(check_ok(&o).high_pages, 63);
	o.batch_pages = 0;
	o.high_pages = 1;
	cr_expect_eq(check_ok(&o).high_pages, 1);
}

Test(config, high_pages_and_fraction_together_are_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.high_pages = 814;
	o.high_fraction = 8;
	check_refused(&o, "high_fraction", "8");
}

Test(config, reserve_above_a_quarter_is_refused)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.reserve_pages = 100000;
	check_ok(&o); /* of what there will be */
	o.max_bytes = (size_t)2000 << 20;
	check_ok(&o);
	o.max_bytes = (size_t)100 << 20;
	check_refused(&o, "reserve_pages", "100000");
	o.max_bytes = 0;
	o.initial_bytes = (size_t)100 << 20;
	check_ok(&o);
	o.flags = PCPA_HEAP_FIXED;
	check_refused(&o, "reserve_pages", "100000");
	o.reserve_pages = (100 << 20) / PAGE / 4;
	check_ok(&o);
}

/* ---- The environment (env.c) --------------------------------------------- */

static void environment_clear(void)
{
	clearenv();
	setenv("HOME", "/", 1);
}

Test(config, environment_without_variables_is_defaults,
     .init = environment_clear)
{
	const struct pcpa_heap_options d = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap_options o;

	setenv("PCPAX", "1", 1); /* not ours */
	setenv("pcpa_flags", "none", 1);
	memset(&o, 0x5a, sizeof(o));
	cr_assert_eq(pcpi_env_options(&o, error, sizeof(error)), 0);
	expect_same(&o, &d);
}

Test(config, empty_environment_is_defaults)
{
	struct pcpa_heap_options o;

	clearenv();
	cr_assert_eq(pcpi_env_options(&o, error, sizeof(error)), 0);
	cr_expect_eq(o.verbosity, 1);
}

Test(config, environment_sets_every_field, .init = environment_clear)
{
	struct pcpa_heap_options o;

	setenv("PCPA_FLAGS", "fixed,no_ipi", 1);
	setenv("PCPA_INITIAL_BYTES", "64M", 1);
	setenv("PCPA_MAX_BYTES", "65536K", 1);
	setenv("PCPA_NODES", "0,2-3", 1);
	setenv("PCPA_HUGEPAGE_BYTES", "2M", 1);
	setenv("PCPA_BATCH_PAGES", "31", 1);
	setenv("PCPA_HIGH_PAGES", "814", 1);
	setenv("PCPA_HIGH_FRACTION", "0", 1);
	setenv("PCPA_VERBOSITY", "0", 1);
	setenv("PCPA_RESERVE_PAGES", "4096", 1);
	cr_assert_eq(pcpi_env_options(&o, error, sizeof(error)), 0, "%s", error);
	o = check_ok(&o);
	cr_expect_eq(o.flags, PCPA_HEAP_FIXED | PCPA_HEAP_NO_IPI);
	cr_expect_eq(o.initial_bytes, 64u << 20);
	cr_expect_eq(o.max_bytes, 64u << 20);
	cr_expect_str_eq(o.nodes, "0,2-3");
	cr_expect_eq(o.hugepage_bytes, 2u << 20);
	cr_expect_eq(o.batch_pages, 31);
	cr_expect_eq(o.high_pages, 814);
	cr_expect_eq(o.high_fraction, 0);
	cr_expect_eq(o.verbosity, 0);
	cr_expect_eq(o.reserve_pages, 4096);
}

static void environment_refused(const char *variable, const char *value)
{
	struct pcpa_heap_options o, before;

	memset(&o, 0x5a, sizeof(o));
	before = o;
	setenv(variable, value, 1);
	cr_expect_eq(pcpi_env_options(&o, error, sizeof(error)), -EINVAL,
		     "%s=%s is taken", variable, value);
	unsetenv(variable);
	cr_expect(strstr(error, variable), "no name in: %s", error);
	cr_expect_eq(memcmp(&o, &before, sizeof(o)), 0);
}

Test(config, bad_variable_is_refused_and_named, .init = environment_clear)
{
	for (size_t i = 0; i < pcpi_knobs_count; i++)
		environment_refused(pcpi_knobs[i].variable, "");
	environment_refused("PCPA_MAX_BYTES", "64Q");
	cr_expect(strstr(error, "64Q"), "no value in: %s", error);
	environment_refused("PCPA_HIGH_FRACTION", "5");
	cr_expect(strstr(error, "5"), "no value in: %s", error);
}

Test(config, unknown_variable_is_refused_and_named, .init = environment_clear)
{
	char variable[100] = "PCPA_";

	environment_refused("PCPA_HIGHPAGES", "814");
	environment_refused("PCPA_", "1");
	environment_refused("PCPA_FLAGSX", "cow");
	environment_refused("PCPA_flags", "cow");
	memset(variable + 5, 'X', 94); /* longer than the text's part */
	setenv(variable, "1", 1);
	struct pcpa_heap_options o;
	cr_expect_eq(pcpi_env_options(&o, error, sizeof(error)), -EINVAL);
	cr_expect(strstr(error, "PCPA_XXXX"), "%s", error);
}
