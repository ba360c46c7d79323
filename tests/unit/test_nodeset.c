/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nodeset.c - the grammar of node lists (lib/nodeset.c).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nodeset.h"

/* Reads a whole list and writes it out again as "first-last first-last ". */
static int spell(const char *list, char *out, size_t size)
{
	struct pcpi_node_range r;
	size_t len = 0;
	int rc;

	out[0] = '\0';
	while ((rc = pcpi_nodeset_next(&list, &r)) > 0)
		len += (size_t)snprintf(out + len, size - len, "%u-%u ",
					r.first, r.last);
	return rc;
}

static void expect(const char *list, const char *want)
{
	char got[256];
	size_t at = 12345;

	cr_assert_eq(spell(list, got, sizeof(got)), 0, "\"%s\"", list);
	cr_assert_str_eq(got, want);
	cr_assert_eq(pcpi_nodeset_check(list, &at), 0, "\"%s\"", list);
	cr_assert_eq(at, 12345);
}

static void refuse(const char *list, size_t mistake)
{
	size_t at = 12345;

	cr_assert_eq(pcpi_nodeset_check(list, &at), -EINVAL, "\"%s\"", list);
	cr_assert_eq(at, mistake, "\"%s\": at %zu", list, at);
}

Test(nodeset, numbers_and_ranges_are_read_in_order)
{
	expect("0", "0-0 ");
	expect("0,2-3", "0-0 2-3 ");
	expect("7-7", "7-7 ");
	expect("252,8,3-5", "252-252 8-8 3-5 ");
	expect("1,1,0-2", "1-1 1-1 0-2 ");
	expect("007", "7-7 ");
}

Test(nodeset, largest_number_is_read_next_one_refused)
{
	expect("65534", "65534-65534 ");
	expect("0-65534", "0-65534 ");
	refuse("65535", 0);
	refuse("0-65535", 2);
	refuse("0,4294967296", 2);
	refuse("99999999999999999999999", 0);
}

Test(nodeset, anything_else_is_refused_at_its_place)
{
	refuse("", 0);
	refuse(",", 0);
	refuse("0,", 2);
	refuse(",0", 0);
	refuse("0,,1", 2);
	refuse("-1", 0);
	refuse("1-", 2);
	refuse("3-2", 2);
	refuse("1-2-3", 3);
	refuse(" 1", 0);
	refuse("1 ", 1);
	refuse("0, 1", 2);
	refuse("+1", 0);
	refuse("0x1", 1);
	refuse("all", 0);
	refuse("1;2", 1);
}

Test(nodeset, refused_range_leaves_out_untouched)
{
	struct pcpi_node_range r = {11, 12};
	const char *cursor = "3-2";

	cr_assert_eq(pcpi_nodeset_next(&cursor, &r), -EINVAL);
	cr_assert_str_eq(cursor, "2");
	cr_assert_eq(r.first, 11);
	cr_assert_eq(r.last, 12);
}

Test(nodeset, list_has_the_numbers_of_its_ranges_alone)
{
	static const char list[] = "252,8,3-5";

	for (unsigned n = 0; n < 300; n++)
		cr_expect_eq(pcpi_nodeset_has(list, n),
			     n == 252 || n == 8 || (n >= 3 && n <= 5), "%u", n);
}

/* Random text: whatever is accepted consists of numbers in bounds, and the
 * walk never leaves the string (the address sanitizer watches). */
Test(nodeset, random_text_is_accepted_only_in_bounds)
{
	static const char letters[] = "0123456789,,--- x";
	unsigned seed = 20260117, accepted = 0;
	struct pcpi_node_range r;
	char text[12];

	printf("seed %u\n", seed);
	for (int round = 0; round < 200000; round++) {
		const char *cursor = text;
		size_t len, at;

		seed = seed * 1664525u + 1013904223u;
		len = (seed >> 8) % (sizeof(text) - 1);
		for (size_t i = 0; i < len; i++) {
			seed = seed * 1664525u + 1013904223u;
			text[i] = letters[(seed >> 8) % (sizeof(letters) - 1)];
		}
		text[len] = '\0';
		if (pcpi_nodeset_check(text, &at) != 0) {
			cr_assert_leq(at, len);
			continue;
		}
		accepted++;
		cr_assert_gt(len, 0);
		cr_assert_eq(strspn(text, "0123456789,-"), len);
		while (pcpi_nodeset_next(&cursor, &r) > 0)
			cr_assert(r.first <= r.last &&
				  r.last <= PCPI_NODESET_MAX);
		cr_assert_eq(*cursor, '\0');
	}
	cr_assert_gt(accepted, 1000);
}
