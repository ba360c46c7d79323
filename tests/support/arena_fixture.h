/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_fixture.h - a space on the fake machine, for the suites of arena.
 */
#ifndef ARENA_FIXTURE_H
#define ARENA_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../lib/arena.h"
#include "fake_sys.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static struct pcpi_space space;
static struct pcpi_space_node_spec nodes[8];
static struct pcpi_space_spec spec;

/* One node of 256 MiB at verbosity 1; tests change what they need. */
static inline void setup(void)
{
	fake_sys_install();
	for (unsigned i = 0; i < 8; i++)
		nodes[i] = (struct pcpi_space_node_spec){i, 256 * MIB};
	spec = (struct pcpi_space_spec){
		.nodes = nodes, .nr_nodes = 1, .verbosity = 1};
}

static inline void teardown(void)
{
	if (fake_sys_mapped() > 0) {
		pcpi_space_check(&space);
		cr_expect_eq(pcpi_space_destroy(&space), 0);
	}
	cr_expect_eq(fake_sys_mapped(), 0);
	cr_expect_eq(fake.populated_bytes, 0);
}

static inline void create(void)
{
	cr_assert_eq(pcpi_space_create(&space, &spec), 0, "%s", fake.said);
	pcpi_space_check(&space);
}

static inline struct pcpi_arena grow(unsigned node, uint64_t bytes)
{
	struct pcpi_arena a;

	memset(&a, 0, sizeof(a));
	cr_assert_eq(pcpi_arena_grow(&space, node, bytes, false, &a), 0, "%s",
		     fake.said);
	pcpi_space_check(&space);
	return a;
}

/* Nothing of the kind could be had. */
static inline void expect_no_arena(unsigned node, uint64_t bytes, bool exact)
{
	struct pcpi_arena a;

	cr_expect_eq(pcpi_arena_grow(&space, node, bytes, exact, &a), -ENOMEM);
	pcpi_space_check(&space);
}

#endif
