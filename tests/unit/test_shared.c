/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_shared.c - heaps of memory files, on the invented machine: which file an
 * arena is in, what is said when hugetlb or huge pages can't be had, that memory is
 * given back by holes, and which options go together.
 */
#include "../support/arena_fixture.h"
#include "../support/fake_sys.h"
#include "heap.h"

#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#define HUGE_PAGE (2 * MIB)
#define SHMEM "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

static void setup_shared(void)
{
	setup();
	spec.shared = true;
	fake_sys_file(SHMEM, "always within_size [advise] never deny force\n");
}

static void teardown_shared(void)
{
	teardown();
	cr_expect_eq(fake_sys_open_files(), 0);
}

TestSuite(shared, .init = setup_shared, .fini = teardown_shared);

static struct pcpa_arena_info info_of(const struct pcpi_arena *a)
{
	struct pcpa_arena_info info;

	pcpi_arena_info(&space, a, &info);
	return info;
}

/* ---- Files --------------------------------------------------------------------- */

Test(shared, each_kind_of_page_has_its_file)
{
	struct pcpa_arena_info huge, thp, more;
	struct pcpi_arena a;

	fake_sys_pool(HUGE_PAGE, 0, 4);
	create();
	cr_expect_eq(fake_sys_open_files(), 2);
	a = grow(0, 8 * MIB);
	huge = info_of(&a);
	a = grow(0, 8 * MIB);
	thp = info_of(&a);
	a = grow(0, 8 * MIB);
	more = info_of(&a);
	cr_expect_eq(huge.backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(thp.backing, PCPA_BACKING_THP);
	cr_expect_geq(huge.fd, 0);
	cr_expect_geq(thp.fd, 0);
	cr_expect_neq(huge.fd, thp.fd);
	cr_expect_eq(more.fd, thp.fd);
	cr_expect_eq(huge.offset, 0);
	cr_expect_eq(thp.offset, 0);
	cr_expect_eq(more.offset, 8 * MIB);
	cr_expect_eq(more.granule_bytes, HUGE_PAGE);
	cr_expect_eq(huge.struct_size, sizeof(huge));
}

Test(shared, each_node_has_its_own)
{
	struct pcpi_arena a, b;

	spec.nr_nodes = 2;
	create();
	a = grow(0, 4 * MIB);
	b = grow(1, 4 * MIB);
	cr_expect_eq(fake_sys_open_files(), 2);
	cr_expect_neq(info_of(&a).fd, info_of(&b).fd);
}

Test(shared, other_heaps_have_none)
{
	struct pcpi_arena a;

	spec.shared = false;
	create();
	a = grow(0, 4 * MIB);
	cr_expect_eq(info_of(&a).fd, -1);
	cr_expect_eq(info_of(&a).offset, 0);
	cr_expect_eq(fake_sys_open_files(), 0);
}

Test(shared, window_keeps_out_of_children_and_dumps)
{
	create();
	cr_expect_eq(fake.dontforks, 1);
	cr_expect_eq(fake.dontdumps, 1);
	cr_expect_eq(fake.binds, 1);
}

Test(shared, child_closes_the_files)
{
	create();
	cr_expect_eq(fake_sys_open_files(), 1);
	pcpi_space_forked(&space);
	cr_expect_eq(fake_sys_open_files(), 0);
	space.windows[0].bytes = 0; /* unusable, as in a child */
}

/* ---- Falls ----------------------------------------------------------------------- */

Test(shared, refused_hugetlb_file_falls_and_is_said_once)
{
	struct pcpi_arena a;

	fake_sys_pool(HUGE_PAGE, 0, 4);
	fake.memory_file_hugetlb_rc = -ENOSYS;
	create();
	a = grow(0, 4 * MIB);
	grow(0, 4 * MIB);
	cr_expect_eq(a.backing, PCPA_BACKING_THP);
	cr_expect_eq(fake_sys_said("memfd_create(MFD_HUGETLB) is refused"), 1);
}

Test(shared, huge_pages_of_files_have_their_own_setting)
{
	struct pcpi_arena a;

	fake_sys_file(SHMEM, "always within_size advise [never] deny force\n");
	create();
	a = grow(0, 4 * MIB);
	grow(0, 4 * MIB);
	cr_expect_eq(a.backing, PCPA_BACKING_BASE);
	cr_expect_eq(fake_sys_said("no transparent huge pages for shared memory"),
		     1);
	cr_expect_eq(fake_sys_said("echo advise"), 1);
	cr_expect_eq(fake_sys_said("shmem_enabled"), 1);
}

Test(shared, setting_of_the_size_comes_first)
{
	static const struct {
		const char *size, *all;
		enum pcpi_thp_mode mode;
	} cases[] = {
		{ "always inherit [advise] never\n", "[never] deny\n",
		  PCPI_THP_MADVISE },
		{ "always [inherit] advise never\n", "[within_size]\n",
		  PCPI_THP_ALWAYS },
		{ "always [inherit] advise never\n", "[force]\n",
		  PCPI_THP_ALWAYS },
		{ "always inherit advise [never]\n", "[always]\n",
		  PCPI_THP_NEVER },
		{ NULL, "[always]\n", PCPI_THP_ALWAYS },
		{ NULL, "[deny]\n", PCPI_THP_NEVER },
		{ NULL, NULL, PCPI_THP_NEVER },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_sys_file("/sys/kernel/mm/transparent_hugepage/"
			      "hugepages-2048kB/shmem_enabled",
			      cases[i].size);
		fake_sys_file(SHMEM, cases[i].all);
		cr_expect_eq(pcpi_hugepages_thp(true), cases[i].mode, "%zu", i);
		cr_expect_eq(pcpi_hugepages_thp(false), PCPI_THP_MADVISE);
	}
}

Test(shared, no_file_is_an_error_that_names_the_limit)
{
	fake.memory_file_rc = -EFBIG;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EFBIG);
	cr_expect_eq(fake_sys_said("RLIMIT_FSIZE"), 1);
	fake.memory_file_rc = -EMFILE;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EMFILE);
	cr_expect_eq(fake_sys_said("RLIMIT_NOFILE"), 1);
	cr_expect_eq(fake_sys_mapped(), 0);
}

/* A touch of memory that isn't there would be a signal. */
Test(shared, is_never_touched)
{
	create();
	fake.populate_rc = -EINVAL;
	expect_no_arena(0, 4 * MIB, false);
	expect_no_arena(0, 4 * MIB, false);
	cr_expect_eq(fake_sys_said("MADV_POPULATE_WRITE"), 1);
	fake.populate_rc = 0;
	grow(0, 4 * MIB);
}

/* ---- Back ------------------------------------------------------------------------- */

Test(shared, memory_goes_back_by_holes)
{
	struct fake_pool *pool = fake_sys_pool(HUGE_PAGE, 0, 4);
	struct pcpi_arena a, b;

	create();
	a = grow(0, 8 * MIB);
	b = grow(0, 8 * MIB);
	cr_assert_eq(a.backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(pcpi_arena_give_back(&space, &a), 0);
	cr_expect_eq(pool->free, 4);
	cr_expect_eq(pcpi_arena_give_back(&space, &b), 0);
	cr_expect_eq(fake.populated_bytes, 0);
	cr_expect_eq(fake.punches, 2);
	cr_expect_eq(fake.dontneeds, 0);
	pcpi_space_check(&space);
}

Test(shared, refused_hole_changes_nothing)
{
	struct pcpi_arena a;

	create();
	a = grow(0, 8 * MIB);
	fake.punch_rc = -ENOMEM;
	cr_expect_eq(pcpi_arena_give_back(&space, &a), -ENOMEM);
	cr_expect_eq(fake.populated_bytes, 8 * MIB);
	pcpi_space_check(&space);
	fake.punch_rc = 0;
	cr_expect_eq(pcpi_arena_give_back(&space, &a), 0);
}

/* A part that came before the error goes back, too. */
Test(shared, growth_that_fails_leaves_nothing)
{
	create();
	fake.memory_left = 4 * MIB;
	expect_no_arena(0, 8 * MIB, true);
	cr_expect_eq(fake.populated_bytes, 0);
	cr_expect_eq(fake.dontneeds, 0);
}

Test(shared, arena_that_nobody_used_goes_whatever_the_kernel_says)
{
	struct pcpi_arena a, b;

	create();
	a = grow(0, 8 * MIB);
	pcpi_arena_cancel(&space, &a);
	cr_expect_eq(fake.populated_bytes, 0);
	a = grow(0, 8 * MIB);
	fake.punch_rc = -ENOMEM;
	pcpi_arena_cancel(&space, &a);
	pcpi_space_check(&space);
	fake.punch_rc = 0;
	b = grow(0, 8 * MIB);
	cr_expect_eq(b.base, a.base, "the next one there");
	cr_expect_eq(fake.populated_bytes, 8 * MIB);
}

/* ---- Heaps ------------------------------------------------------------------------ */

static int create_heap(unsigned flags, struct pcpa_heap **heap)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.initial_bytes = 8 * MIB;
	o.max_bytes = flags & PCPA_HEAP_FIXED ? 0 : 64 * MIB;
	o.flags = flags | PCPA_HEAP_SHARED;
	return pcpa_heap_create(&o, heap);
}

TestSuite(shared_heap, .init = setup_shared);

Test(shared_heap, combinations)
{
	static const unsigned good[] = { 0, PCPA_HEAP_FIXED, PCPA_HEAP_DUMP,
					 PCPA_HEAP_CHECKS, PCPA_HEAP_LEGACY,
					 PCPA_HEAP_NO_IPI,
					 PCPA_HEAP_FIXED | PCPA_HEAP_CHECKS |
						 PCPA_HEAP_DUMP };
	struct pcpa_heap *heap = NULL;
	void *block;

	cr_expect_eq(create_heap(PCPA_HEAP_COW, &heap), -EINVAL);
	cr_expect_eq(fake_sys_said("flags 0x81: cow and shared"), 1);
	cr_expect_eq(heap, NULL);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert_eq(create_heap(good[i], &heap), 0, "%x", good[i]);
		block = pcpa_alloc(heap, 3, PCPA_NODE(0));
		cr_expect(block);
		pcpa_free(heap, block);
		cr_expect_eq(pcpa_heap_destroy(heap), 0);
	}
}

static int count_file(const struct pcpa_arena_info *info, void *arg)
{
	cr_expect_geq(info->fd, 0);
	cr_expect_eq(info->bytes % info->granule_bytes, 0);
	*(uint64_t *)arg += info->bytes;
	return 0;
}

Test(shared_heap, arenas_are_listed_with_their_files)
{
	struct pcpa_heap *heap = NULL;
	uint64_t bytes = 0;

	cr_assert_eq(create_heap(0, &heap), 0);
	cr_expect_eq(pcpa_for_each_arena(heap, count_file, &bytes), 0);
	cr_expect_eq(bytes, 8 * MIB);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 8 * MIB);
	cr_expect_eq(fake.populated_bytes, 0);
	cr_expect_eq(pcpa_heap_destroy(heap), 0);
}
