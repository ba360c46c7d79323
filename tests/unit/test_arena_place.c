/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_arena_place.c - the addresses that arenas give back, and who gets them.
 */
#include "../support/arena_fixture.h"

TestSuite(arena_place, .init = setup, .fini = teardown);

static struct pcpi_arena part_of(const struct pcpi_arena *a, uint64_t from,
				 uint64_t bytes)
{
	struct pcpi_arena part = *a;

	part.base += from;
	part.bytes = bytes;
	part.first_pfn += (uint32_t)(from >> space.page_shift);
	part.pages = (uint32_t)(bytes >> space.page_shift);
	return part;
}

static void give(const struct pcpi_arena *a, uint64_t from, uint64_t bytes)
{
	struct pcpi_arena part = part_of(a, from, bytes);

	cr_assert_eq(pcpi_arena_give_back(&space, &part), 0);
	pcpi_space_check(&space);
}

Test(arena_place, hole_is_used_by_the_next_arena_that_fits)
{
	struct pcpi_arena a, b;

	create();
	a = grow(0, 16 * MIB);
	b = grow(0, 4 * MIB);
	give(&a, 4 * MIB, 4 * MIB);
	cr_expect_eq(fake.populated_bytes, 16 * MIB);
	cr_expect_eq(fake.decommits, 0, "no area of its own");
	cr_expect_eq(grow(0, 6 * MIB).base, b.base + 4 * MIB, "doesn't fit");
	cr_expect_eq(grow(0, 2 * MIB).base, a.base + 4 * MIB);
	cr_expect_eq(grow(0, 2 * MIB).base, a.base + 6 * MIB);
	cr_expect_eq(fake.committed_bytes, 26 * MIB);
	pcpi_space_check(&space);
}

Test(arena_place, holes_at_the_end_are_closed)
{
	struct pcpi_arena a, b;

	create();
	a = grow(0, 8 * MIB);
	b = grow(0, 8 * MIB);
	give(&a, 2 * MIB, 6 * MIB);
	give(&b, 0, 8 * MIB);
	cr_expect_eq(space.windows[0].next, 2 * MIB);
	cr_expect_eq(space.windows[0].hole_bytes, 0);
	cr_expect_eq(fake.committed_bytes, 2 * MIB);
	cr_expect_eq(fake.populated_bytes, 2 * MIB);
}

Test(arena_place, full_window_grows_into_its_largest_hole)
{
	struct pcpi_arena a, b;

	create();
	a = grow(0, 256 * MIB);
	cr_assert_eq(a.bytes, 256 * MIB);
	give(&a, 8 * MIB, 2 * MIB);
	give(&a, 32 * MIB, 6 * MIB);
	cr_expect_eq(pcpi_arena_grow(&space, 0, 8 * MIB, true, &b), -ENOMEM,
		     "in two pieces");
	b = grow(0, 8 * MIB);
	cr_expect_eq(b.base, a.base + 32 * MIB);
	cr_expect_eq(b.bytes, 6 * MIB);
	cr_expect_eq(grow(0, 8 * MIB).bytes, 2 * MIB);
	cr_expect_eq(pcpi_arena_grow(&space, 0, 2 * MIB, false, &b), -ENOMEM);
	pcpi_space_check(&space);
}

Test(arena_place, addresses_never_run_out_beside_a_page_in_use)
{
	struct pcpi_arena keep, a;

	create();
	for (unsigned i = 0; i < 100; i++) {
		a = grow(0, 120 * MIB);
		if (i == 0)
			give(&a, 0, 60 * MIB);
		else
			give(&a, 0, 120 * MIB);
		if (i == 0)
			keep = part_of(&a, 60 * MIB, 60 * MIB);
	}
	cr_expect_eq(space.nodes[0].used_bytes, keep.bytes);
	give(&keep, 0, keep.bytes);
	cr_expect_eq(space.windows[0].next, 0);
	cr_expect_eq(fake.committed_bytes, 0);
}

Test(arena_place, failed_growth_in_a_hole_leaves_a_hole)
{
	struct pcpi_arena a, b;

	create();
	a = grow(0, 16 * MIB);
	give(&a, 4 * MIB, 8 * MIB);
	fake.memory_left = 2 * MIB;
	cr_expect_eq(pcpi_arena_grow(&space, 0, 8 * MIB, true, &b), -ENOMEM);
	cr_expect_eq(fake.populated_bytes, 8 * MIB);
	cr_expect_eq(fake.committed_bytes, 16 * MIB);
	pcpi_space_check(&space);
	cr_expect_eq(grow(0, 8 * MIB).bytes, 2 * MIB);
	pcpi_space_check(&space);
}

Test(arena_place, refusal_after_a_part_was_given_is_no_refusal)
{
	struct pcpi_arena a;

	create();
	a = grow(0, 16 * MIB);
	fake.dontneed_rc = -ENOMEM;
	fake.populate_rc = -EFAULT;
	cr_expect_eq(pcpi_arena_give_back(&space, &a), 0);
	cr_expect_eq(space.nodes[0].used_bytes, 0);
	pcpi_space_check(&space);
	fake.populate_rc = 0;
	cr_expect_eq(grow(0, 16 * MIB).base, a.base, "populated once more");
}
