/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_arena_node.c - memory that can't be bound to its node or came from
 * another, on an invented machine (lib/arena_node.c).
 */
#include <stdio.h>

#include "../support/arena_fixture.h"

TestSuite(arena_node, .init = setup, .fini = teardown);

/* A step of ordinary memory that is looked at. */
#define LOOKED (16 * KIB * 4)

static void expect_refused(int rc)
{
	cr_expect_eq(pcpi_space_create(&space, &spec), rc);
	cr_expect_eq(fake_sys_mapped(), 0);
	cr_expect_eq(fake_sys_open_files(), 0);
	cr_expect_eq(fake_sys_said("demand"), 1, "%s", fake.said);
}

/* ---- Binding -------------------------------------------------------------- */

Test(arena_node, refused_binding_is_said_once)
{
	fake.bind_rc = -EPERM;
	spec.nr_nodes = 3;
	create();
	cr_expect_eq(fake_sys_said("can't be bound to node 0"), 1);
	cr_expect_eq(fake.says, 1);
	grow(2, 2 * MIB);
}

Test(arena_node, missing_binding_is_said_where_there_are_several_nodes)
{
	fake.bind_rc = -ENOSYS;
	spec.nr_nodes = 2;
	create();
	cr_expect_eq(fake_sys_said("can't be bound to node 0 (error 38)"), 1);
}

Test(arena_node, one_node_needs_no_binding)
{
	fake.bind_rc = -EPERM;
	fake.elsewhere_rc = -EPERM;
	spec.one_node = true;
	spec.bound = true;
	create();
	cr_expect_eq(grow(0, 2 * MIB).bytes, 2 * MIB);
	cr_expect_eq(fake_sys_said("bound"), 0);
	fake.elsewhere_rc = 0;
	fake.near_left = 0; /* what is allowed was changed */
	expect_no_arena(0, 2 * MIB, false);
}

Test(arena_node, machine_of_one_node_is_asked_nothing)
{
	fake.near_left = 0;
	spec.one_node = spec.alone = true;
	create();
	grow(0, 2 * MIB);
	cr_expect_eq(fake.looks, 0);
	cr_expect_eq(space.nodes[0].misplaced_bytes, 0);
}

Test(arena_node, bound_space_is_refused_where_binding_is)
{
	spec.nr_nodes = 2;
	spec.bound = true;
	fake_sys_pool(2 * MIB, 0, 10);
	fake.bind_rc = -EPERM;
	expect_refused(-EPERM);
	fake.bind_rc = -ENOSYS;
	memset(fake.said, 0, sizeof(fake.said));
	expect_refused(-ENOSYS);
}

Test(arena_node, bound_space_is_refused_where_places_are_hidden)
{
	spec.bound = true;
	fake.elsewhere_rc = -EPERM;
	expect_refused(-EPERM);
	cr_expect_eq(fake_sys_said("allow move_pages"), 1, "%s", fake.said);
}

Test(arena_node, bound_shared_space_that_is_refused_closes_its_files)
{
	spec.bound = true;
	spec.shared = true;
	fake.bind_rc = -EINVAL;
	expect_refused(-EINVAL);
}

/* What its node can't hold is an error of populate() for hugetlb memory, and a
 * kill for ordinary memory. */
Test(arena_node, only_hugetlb_memory_is_bound_strictly)
{
	fake_sys_pool(2 * MIB, 0, 10);
	create();
	cr_assert_eq(fake.binds, 2);
	cr_expect_eq(fake.bound_how[0], PCPI_BIND_ONLY);
	cr_expect_eq(fake.bound_how[1], PCPI_BIND_PREFER);
}

/* ---- Where pages are ------------------------------------------------------ */

Test(arena_node, memory_of_another_node_is_said_once_and_counted)
{
	spec.nr_nodes = 2;
	create();
	grow(1, 8 * MIB);
	cr_expect_eq(space.nodes[1].misplaced_bytes, 0);
	fake.says = 0;
	fake.near_left = 6 * MIB;
	cr_expect_eq(grow(1, 8 * MIB).bytes, 8 * MIB);
	cr_expect_eq(space.nodes[1].misplaced_bytes, 2 * MIB);
	fake.near_left = 8 * MIB - LOOKED;
	grow(1, 8 * MIB);
	cr_expect_eq(space.nodes[1].misplaced_bytes, 2 * MIB + LOOKED);
	cr_expect_eq(space.nodes[0].misplaced_bytes, 0);
	cr_expect_eq(fake_sys_said("node 1: 2048 KiB came from other nodes"), 1,
		     "%s", fake.said);
	cr_expect_eq(fake.says, 1);
}

Test(arena_node, place_that_is_not_told_is_taken_as_it_is)
{
	fake.elsewhere_rc = -EPERM;
	create();
	cr_expect_eq(grow(0, 8 * MIB).bytes, 8 * MIB);
	cr_expect_eq(space.nodes[0].misplaced_bytes, 0);
}

Test(arena_node, bound_space_gives_back_what_came_from_elsewhere)
{
	spec.bound = true;
	create();
	fake.near_left = 5 * MIB;
	cr_expect_eq(grow(0, 16 * MIB).bytes, 4 * MIB, "halved until it fits");
	cr_expect_eq(fake.populated_bytes, 4 * MIB);
	cr_expect_eq(space.nodes[0].misplaced_bytes, 0);
	cr_expect_eq(fake_sys_said("node 0 has 4 MiB left"), 1, "%s", fake.said);
	fake.near_left = 0;
	expect_no_arena(0, 16 * MIB, false);
	expect_no_arena(0, 2 * MIB, true);
	cr_expect_eq(fake.populated_bytes, 4 * MIB);
}

Test(arena_node, bound_space_takes_no_hugetlb_page_of_elsewhere)
{
	struct pcpi_arena a;

	fake_sys_pool(2 * MIB, 0, 10);
	spec.bound = true;
	create();
	fake.near_left = 2 * MIB;
	a = grow(0, 8 * MIB);
	cr_expect_eq(a.bytes, 2 * MIB);
	cr_expect_eq(a.backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(fake.pools[0].free, 9);
}

Test(arena_node, place_that_is_hidden_later_gives_a_bound_space_nothing)
{
	spec.bound = true;
	create();
	fake.elsewhere_rc = -EPERM;
	expect_no_arena(0, 2 * MIB, false);
	cr_expect_eq(fake.populated_bytes, 0);
}

/* ---- What a node has ------------------------------------------------------ */

static void node_1_has(const char *meminfo)
{
	fake_sys_file("/sys/devices/system/node/node1/meminfo", meminfo);
}

/* What the other nodes have free: the kernel would rather take that than drop
 * file pages of this one. */
static void others_have(const char *free)
{
	static char text[256];

	snprintf(text, sizeof(text),
		 "MemTotal: 4194304 kB\nMemFree: %s kB\nMemAvailable: 9999999 kB\n",
		 free);
	fake_sys_file("/proc/meminfo", text);
	fake_sys_file("/proc/sys/vm/min_free_kbytes", "13107\n");
}

/* 52 MiB free, 16 and 4 of files; of the kernel's reserve a quarter, 3.2 MiB and a
 * fourth of that; a margin of 4. */
static const char meminfo[] = "Node 1 MemTotal:  1048576 kB\n"
			      "Node 1 MemFree:     53248 kB\n"
			      "Node 1 Active:     999999 kB\n"
			      "Node 1 Active(file):   16384 kB\n"
			      "Node 1 Inactive(file):  4096 kB\n";

Test(arena_node, near_space_takes_no_more_than_the_node_has)
{
	spec.nr_nodes = 2;
	node_1_has(meminfo);
	others_have("1048576");
	create();
	space.near = true;
	cr_expect_eq(grow(1, 64 * MIB).bytes, 44 * MIB);
	cr_expect_eq(fake_sys_said("node 1 has 44 MiB left"), 1, "%s", fake.said);
	cr_expect_eq(grow(0, 64 * MIB).bytes, 64 * MIB, "which says nothing");
	node_1_has("Node 1 MemTotal: 1048576 kB\nNode 1 MemFree: 8192 kB\n");
	expect_no_arena(1, 2 * MIB, false);
}

/* Then it has to drop file pages somewhere: here is as well as elsewhere. */
Test(arena_node, file_pages_count_where_no_node_has_enough_free)
{
	spec.nr_nodes = 2;
	node_1_has(meminfo);
	others_have("100000");
	create();
	space.near = true;
	cr_expect_eq(grow(1, 128 * MIB).bytes, 64 * MIB);
}

Test(arena_node, near_space_gives_back_what_came_from_elsewhere)
{
	spec.nr_nodes = 2;
	create();
	fake.near_left = 6 * MIB;
	space.near = true;
	cr_expect_eq(grow(1, 16 * MIB).bytes, 4 * MIB);
	cr_expect_eq(space.nodes[1].misplaced_bytes, 0);
	fake.near_left = 0;
	expect_no_arena(1, 16 * MIB, false);
	fake.elsewhere_rc = -EPERM;
	cr_expect_eq(grow(1, 16 * MIB).bytes, 16 * MIB, "it isn't told");
}

Test(arena_node, space_that_asks_no_other_node_takes_what_comes)
{
	spec.nr_nodes = 2;
	node_1_has(meminfo);
	create();
	cr_expect_eq(grow(1, 64 * MIB).bytes, 64 * MIB);
}
