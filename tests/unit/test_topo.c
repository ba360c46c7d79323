/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_topo.c - questions asked of a topology value (lib/topo.c), on values
 * written by hand.  Machines are in test_topo_hwloc.c.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo.h"

#define GIB (UINT64_C(1) << 30)

/* Two packages, and a node of memory only beside the first; numbers 0, 1, 4. */
static const struct pcpi_topo_node three_nodes[] = {
	{.os_index = 0, .has_cpus = true, .nr_cpus = 2, .memory_bytes = GIB},
	{.os_index = 1, .has_cpus = true, .nr_cpus = 3, .memory_bytes = GIB},
	{.os_index = 4, .memory_bytes = 248 * GIB},
};
static const unsigned three_distance[] = {10, 21, 17, 21, 10, 28, 17, 28, 10};
/* CPU 2 isn't allowed. */
static const int three_cpus[] = {0, 0, -1, 1, 1, 1};
static const struct pcpi_topo three = {
	.nr_nodes = 3,
	.nr_cpus = 5,
	.nodes = three_nodes,
	.distance = three_distance,
	.cpu_node = three_cpus,
	.nr_os_cpus = 6,
};

/* A machine of n nodes, one CPU each, numbered 3, 6, 9, ... */
struct row {
	struct pcpi_topo topo;
	struct pcpi_topo_node nodes[64];
	unsigned distance[64 * 64];
	int cpu_node[64];
};

static void row_init(struct row *row, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		row->nodes[i] = (struct pcpi_topo_node){
			.os_index = 3 * (i + 1),
			.has_cpus = true,
			.nr_cpus = 1,
			.memory_bytes = GIB,
		};
		row->cpu_node[i] = (int)i;
		for (unsigned j = 0; j < n; j++)
			row->distance[i * n + j] = i == j ? 10 : 20;
	}
	row->topo = (struct pcpi_topo){
		.nr_nodes = n,
		.nr_cpus = n,
		.nodes = row->nodes,
		.distance = row->distance,
		.cpu_node = row->cpu_node,
		.nr_os_cpus = n,
	};
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

Test(topo, find_with_gaps_gives_position)
{
	struct row row;

	cr_assert_eq(pcpi_topo_find(&three, 0), 0);
	cr_assert_eq(pcpi_topo_find(&three, 1), 1);
	cr_assert_eq(pcpi_topo_find(&three, 4), 2);
	cr_assert_eq(pcpi_topo_find(&three, 2), -1);
	cr_assert_eq(pcpi_topo_find(&three, 5), -1);
	cr_assert_eq(pcpi_topo_find(&three, UINT32_MAX), -1);
	for (unsigned n = 1; n <= 64; n++) {
		row_init(&row, n);
		for (unsigned os = 0; os <= 3 * n + 1; os++)
			cr_assert_eq(pcpi_topo_find(&row.topo, os),
				     os % 3 == 0 && os > 0 && os <= 3 * n
					     ? (int)os / 3 - 1
					     : -1);
	}
}

Test(topo, node_of_unknown_cpu_is_minus_one)
{
	cr_assert_eq(pcpi_topo_node_of_cpu(&three, 1), 0);
	cr_assert_eq(pcpi_topo_node_of_cpu(&three, 5), 1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&three, 2), -1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&three, 6), -1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&three, INT32_MAX), -1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&three, -1), -1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&three, INT32_MIN), -1);
}

Test(topo, single_node_without_table_has_every_cpu)
{
	static const struct pcpi_topo_node node = {0, true, 2, GIB};
	static const unsigned distance[] = {10};
	const struct pcpi_topo one = {
		.nr_nodes = 1,
		.nr_cpus = 2,
		.nodes = &node,
		.distance = distance,
	};
	unsigned order[1] = {7};

	cr_assert(pcpi_topo_check(&one));
	cr_assert_eq(pcpi_topo_node_of_cpu(&one, 0), 0);
	cr_assert_eq(pcpi_topo_node_of_cpu(&one, 5000), 0);
	cr_assert_eq(pcpi_topo_node_of_cpu(&one, -1), -1);
	cr_assert_eq(pcpi_topo_cpus_of(&one, 0), 2);
	pcpi_topo_fallback(&one, 0, order);
	cr_assert_eq(order[0], 0);
	cr_assert_eq(pcpi_topo_nearest_with_memory(&one, 0), 0);
}

Test(topo, node_without_cpus_counts_all_cpus)
{
	cr_assert(pcpi_topo_check(&three));
	cr_assert_eq(pcpi_topo_cpus_of(&three, 0), 2);
	cr_assert_eq(pcpi_topo_cpus_of(&three, 1), 3);
	cr_assert_eq(pcpi_topo_cpus_of(&three, 2), 5);
}

static void expect_order(const struct pcpi_topo *topo, unsigned self,
			 const unsigned *want)
{
	unsigned got[64];

	pcpi_topo_fallback(topo, self, got);
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		cr_assert_eq(got[i], want[i], "self %u, place %u: %u for %u",
			     self, i, got[i], want[i]);
}

Test(topo, fallback_is_by_distance)
{
	expect_order(&three, 0, (const unsigned[]){0, 2, 1});
	expect_order(&three, 1, (const unsigned[]){1, 0, 2});
	expect_order(&three, 2, (const unsigned[]){2, 0, 1});
}

Test(topo, fallback_self_is_first_even_when_not_nearest)
{
	unsigned distance[] = {30, 10, 10, 30};
	struct row row;

	row_init(&row, 2);
	row.topo.distance = distance;
	expect_order(&row.topo, 0, (const unsigned[]){0, 1});
	expect_order(&row.topo, 1, (const unsigned[]){1, 0});
}

/* The table in topo.c's opening comment. */
Test(topo, fallback_two_packages_of_four_rotates_inside_groups)
{
	struct row row;

	row_init(&row, 8);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < 8; j++)
			row.distance[i * 8 + j] = i == j           ? 10
						  : i / 4 == j / 4 ? 11
								   : 21;
	expect_order(&row.topo, 0, (const unsigned[]){0, 1, 2, 3, 4, 5, 6, 7});
	expect_order(&row.topo, 1, (const unsigned[]){1, 2, 3, 0, 5, 6, 7, 4});
	expect_order(&row.topo, 2, (const unsigned[]){2, 3, 0, 1, 6, 7, 4, 5});
	expect_order(&row.topo, 3, (const unsigned[]){3, 0, 1, 2, 7, 4, 5, 6});
}

Test(topo, fallback_of_equal_nodes_shares_no_victim)
{
	unsigned order[64], chosen[64];
	struct row row;

	for (unsigned n = 2; n <= 64; n++) {
		row_init(&row, n);
		memset(chosen, 0, sizeof(chosen));
		for (unsigned self = 0; self < n; self++) {
			pcpi_topo_fallback(&row.topo, self, order);
			chosen[order[1]]++;
		}
		for (unsigned i = 0; i < n; i++)
			cr_assert_eq(chosen[i], 1, "%u nodes: node %u", n, i);
	}
}

Test(topo, fallback_on_random_distances_is_a_sorted_permutation)
{
	unsigned seed = 7, order[64];
	struct row row;

	printf("seed %u\n", seed);
	for (int round = 0; round < 2000; round++) {
		unsigned n = 1 + next_random(&seed) % 64;
		unsigned self = next_random(&seed) % n;
		uint64_t seen = 0;

		row_init(&row, n);
		for (unsigned i = 0; i < n * n; i++)
			row.distance[i] = 1 + next_random(&seed) % 6;
		row.distance[next_random(&seed) % (n * n)] = UINT32_MAX;
		pcpi_topo_fallback(&row.topo, self, order);
		cr_assert_eq(order[0], self);
		for (unsigned i = 0; i < n; i++)
			seen |= UINT64_C(1) << order[i];
		cr_assert_eq(seen,
			     n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1);
		for (unsigned i = 2; i < n; i++)
			cr_assert_leq(
				pcpi_topo_distance(&row.topo, self, order[i - 1]),
				pcpi_topo_distance(&row.topo, self, order[i]));
	}
}

Test(topo, nearest_with_memory_skips_nodes_without)
{
	struct row row;

	row_init(&row, 4);
	cr_assert_eq(pcpi_topo_nearest_with_memory(&row.topo, 2), 2);
	row.nodes[0].memory_bytes = 0;
	row.nodes[1].memory_bytes = 0;
	row.distance[0 * 4 + 1] = 11;
	row.distance[0 * 4 + 3] = 12;
	cr_assert_eq(pcpi_topo_nearest_with_memory(&row.topo, 0), 3);
	/* 2 and 3 are equally far from 1: rotated, 1 % 2. */
	cr_assert_eq(pcpi_topo_nearest_with_memory(&row.topo, 1), 3);
	row.nodes[3].memory_bytes = 0;
	cr_assert_eq(pcpi_topo_nearest_with_memory(&row.topo, 1), 2);
	row.nodes[2].memory_bytes = 0;
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(pcpi_topo_nearest_with_memory(&row.topo, i), -1);
}

static void expect_selected(const struct pcpi_topo *topo, const char *list,
			    const char *want)
{
	struct pcpi_topo_error err;
	unsigned out[64], nr = 99;
	char got[256] = "";
	size_t len = 0;

	cr_assert_eq(pcpi_topo_select(topo, list, out, &nr, &err), 0, "%s",
		     list ? list : "NULL");
	for (unsigned i = 0; i < nr; i++)
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%u ",
					out[i]);
	cr_assert_str_eq(got, want);
}

static void expect_refused(const struct pcpi_topo *topo, const char *list,
			   int rc, enum pcpi_topo_refusal what, size_t where)
{
	struct pcpi_topo_error err = {PCPI_TOPO_BAD_TEXT, 12345};
	unsigned out[64], nr = 99;

	memset(out, 0xa5, sizeof(out));
	cr_assert_eq(pcpi_topo_select(topo, list, out, &nr, &err), rc, "%s",
		     list ? list : "NULL");
	cr_assert_eq(err.what, what);
	cr_assert_eq(err.where, where);
	cr_assert_eq(nr, 99);
	for (unsigned i = 0; i < 64; i++)
		cr_assert_eq(out[i], 0xa5a5a5a5u);
}

Test(topo, select_null_takes_every_node_with_memory)
{
	struct row row;

	expect_selected(&three, NULL, "0 1 2 ");
	row_init(&row, 4);
	row.nodes[1].memory_bytes = 0;
	expect_selected(&row.topo, NULL, "0 2 3 ");
}

Test(topo, select_named_gives_ascending_positions_once)
{
	expect_selected(&three, "4", "2 ");
	expect_selected(&three, "4,0", "0 2 ");
	expect_selected(&three, "1,0-1,1", "0 1 ");
	expect_selected(&three, "0-1,4", "0 1 2 ");
}

Test(topo, select_refused_says_which_node_and_writes_nothing)
{
	struct row row;

	expect_refused(&three, "0-4", -ENODEV, PCPI_TOPO_NO_NODE, 2);
	expect_refused(&three, "0,1,5", -ENODEV, PCPI_TOPO_NO_NODE, 5);
	expect_refused(&three, "0-65534", -ENODEV, PCPI_TOPO_NO_NODE, 2);
	/* The text is looked at first: no node of a bad list is judged. */
	expect_refused(&three, "7,x", -EINVAL, PCPI_TOPO_BAD_TEXT, 2);
	expect_refused(&three, "", -EINVAL, PCPI_TOPO_BAD_TEXT, 0);
	expect_refused(&three, "0,65535", -EINVAL, PCPI_TOPO_BAD_TEXT, 2);
	row_init(&row, 2);
	row.nodes[0].memory_bytes = 0;
	expect_refused(&row.topo, "6,3", -ENODEV, PCPI_TOPO_NO_MEMORY, 3);
	row.nodes[1].memory_bytes = 0;
	expect_refused(&row.topo, NULL, -ENODEV, PCPI_TOPO_NO_MEMORY, 3);
}

Test(topo, check_finds_each_broken_invariant)
{
	struct row row;

	row_init(&row, 3);
	cr_assert(pcpi_topo_check(&row.topo));
	row.nodes[1].os_index = row.nodes[0].os_index; /* T1 */
	cr_assert_not(pcpi_topo_check(&row.topo));
	row_init(&row, 3);
	row.cpu_node[2] = 3; /* T2 */
	cr_assert_not(pcpi_topo_check(&row.topo));
	row.cpu_node[2] = -2;
	cr_assert_not(pcpi_topo_check(&row.topo));
	row.cpu_node[2] = 1; /* T3 */
	cr_assert_not(pcpi_topo_check(&row.topo));
	row_init(&row, 3);
	row.topo.nr_cpus = 4;
	cr_assert_not(pcpi_topo_check(&row.topo));
	row_init(&row, 3);
	row.nodes[0].has_cpus = false; /* T4 */
	cr_assert_not(pcpi_topo_check(&row.topo));
	row_init(&row, 3);
	row.distance[5] = 0; /* T5 */
	cr_assert_not(pcpi_topo_check(&row.topo));
	row_init(&row, 3);
	row.topo.cpu_node = NULL; /* T6 */
	cr_assert_not(pcpi_topo_check(&row.topo));
	row.topo.nr_nodes = 0;
	cr_assert_not(pcpi_topo_check(&row.topo));
}
