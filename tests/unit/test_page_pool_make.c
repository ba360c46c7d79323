/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_make.c - options, and the layout that they make.
 */
#include "../support/pool_fixture.h"

static void *bufs[256];
static struct pcpa_heap *heap;

static void setup(void)
{
	pool_sys_install();
	heap = pool_heap(64 * MIB, 0, 0);
}

TestSuite(page_pool_make, .init = setup);

Test(page_pool_make, buffers_begin_at_16_lines)
{
	struct pcpa_pool *pool = pool_with(heap, .headroom_bytes = 100,
					   .tailroom_bytes = 50);
	struct pcpa_pool_info info = info_of(pool);
	unsigned of[16] = { 0 };

	cr_expect_eq(info.page_bytes, PAGE);
	cr_expect_eq(info.colours, 16);
	cr_expect_eq(info.headroom_bytes, 128);
	cr_expect_eq(info.tailroom_bytes, 50);
	cr_expect_eq(info.data_bytes, 4096 - 960 - 128 - 50);
	cr_expect_eq(info.ring_slots, 1024);
	get_all(pool, bufs, 64);
	for (unsigned i = 0; i < 64; i++) {
		cr_assert_eq((uintptr_t)bufs[i] % 64, 0);
		cr_assert_lt((uintptr_t)bufs[i] % PAGE, 1024);
		of[(uintptr_t)bufs[i] % PAGE / 64]++;
	}
	for (unsigned i = 0; i < 16; i++)
		cr_expect_eq(of[i], 4, "%u at line %u", of[i], i);
	pcpa_pool_put_bulk(heap, bufs, 64);
	pool_and_heap_end(pool, heap);
}

Test(page_pool_make, buffer_is_found_by_any_address_in_it)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	void *again;

	get_all(pool, bufs, 40);
	for (unsigned i = 0; i < 40; i++) {
		char *page = (char *)bufs[i] - (uintptr_t)bufs[i] % PAGE;

		pcpa_pool_put(pool, page + i * 100);
		again = pcpa_pool_get(pool);
		cr_assert_eq(again, bufs[i]);
	}
	put_elsewhere(pool, bufs, 40);
	pool_and_heap_end(pool, heap);
}

Test(page_pool_make, colours_give_way_to_room)
{
	static const struct { size_t data, align; unsigned flags, colours; }
	cases[] = {
		{ 0, 0, 0, 16 }, { 3136, 0, 0, 16 }, { 3137, 0, 0, 8 },
		{ 3648, 0, 0, 8 }, { 3649, 0, 0, 4 }, { 3904, 0, 0, 4 },
		{ 4032, 0, 0, 2 }, { 4033, 0, 0, 1 }, { 4096, 0, 0, 1 },
		{ 0, 64, 0, 16 }, { 0, 8, 0, 16 }, { 0, 128, 0, 1 },
		{ 0, 4096, 0, 1 }, { 0, 0, PCPA_POOL_NO_COLOUR, 1 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pcpa_pool *pool = pool_with(heap,
			.data_bytes = cases[i].data,
			.align_bytes = cases[i].align, .flags = cases[i].flags);
		struct pcpa_pool_info info = info_of(pool);

		cr_expect_eq(info.colours, cases[i].colours, "case %u: %u", i,
			     info.colours);
		cr_expect_eq(info.data_bytes, 4096 - 64 * (info.colours - 1));
		get_all(pool, bufs, 64);
		for (unsigned b = 0; b < 64; b++)
			cr_assert_lt((uintptr_t)bufs[b] % PAGE,
				     64 * cases[i].colours);
		put_elsewhere(pool, bufs, 64);
		pool_end(pool);
	}
	heap_end(heap);
}

Test(page_pool_make, bad_options_are_named)
{
	static const struct { struct pcpa_pool_options o; const char *said; }
	cases[] = {
		{ { .flags = 2 }, "unknown flags 0x2" },
		{ { .order = 11 }, "order 11" },
		{ { .alloc_flags = PCPA_ZERO }, "alloc_flags 0x10" },
		{ { .alloc_flags = PCPA_NODE(77) }, "node 77" },
		{ { .align_bytes = 96 }, "align_bytes 96" },
		{ { .align_bytes = 8192 }, "align_bytes 8192" },
		{ { .data_bytes = 4097 }, "data_bytes 4097" },
		{ { .headroom_bytes = 2048, .tailroom_bytes = 2048 },
		  "headroom_bytes 2048" },
		{ { .tailroom_bytes = SIZE_MAX }, "tailroom_bytes 184467" },
		{ { .headroom_bytes = SIZE_MAX }, "headroom_bytes 184467" },
	};
	struct pcpa_pool *pool = (struct pcpa_pool *)(uintptr_t)ERRNO_MARK;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pcpa_pool_options o = cases[i].o;

		o.struct_size = sizeof(o);
		cr_expect_eq(pcpa_pool_create(heap, &o, &pool), -EINVAL,
			     "case %u", i);
		cr_expect_eq(pool_said_count(cases[i].said), 1, "no \"%s\" in: %s",
			     cases[i].said, pool_said);
		cr_expect_eq(pool, (struct pcpa_pool *)(uintptr_t)ERRNO_MARK);
	}
	cr_expect_eq(pcpa_pool_create(NULL, NULL, &pool), -EINVAL);
	cr_expect_eq(pcpa_pool_create(heap, NULL, NULL), -EINVAL);
	heap_end(heap);
}

Test(page_pool_make, options_of_another_version_are_read_as_far_as_they_go)
{
	struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;
	struct pcpa_pool *pool;

	o.order = 1;
	o.align_bytes = 3;
	o.struct_size = offsetof(struct pcpa_pool_options, ring_slots);
	cr_assert_eq(pcpa_pool_create(heap, &o, &pool), 0);
	cr_expect_eq(info_of(pool).page_bytes, 2 * PAGE);
	pool_and_heap_end(pool, heap);
}

Test(page_pool_make, ring_size_is_1024_and_at_most_16384)
{
	static const unsigned asked[] = { 0, 1, 100, 16384, 16385, 4000000 };
	static const unsigned got[] = { 1024, 1, 100, 16384, 16384, 16384 };

	for (unsigned i = 0; i < 6; i++) {
		struct pcpa_pool *pool = pool_with(heap, .ring_slots = asked[i]);

		cr_expect_eq(info_of(pool).ring_slots, got[i]);
		pool_end(pool);
	}
	heap_end(heap);
}
