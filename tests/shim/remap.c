/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remap.c - rule 10: mremap.
 */
#define _GNU_SOURCE
#include "contract.h"

static void rule10_shrink_frees_the_tail(void)
{
	for (size_t bytes = 2 * PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		EXPECT(mremap(p, bytes, bytes / 2, 0) == p);
		EXPECT(is_hole(p + bytes / 2) && is_hole(p + bytes - PAGE));
		expect_bytes(p, bytes / 2, SOIL, "shrunk");
		expect_clean(bytes / 2);
		expect_bytes(p, bytes / 2, SOIL, "shrunk, later");
		unmap(p, bytes / 2);
		expect_clean(bytes);
	}
}

static void rule10_shrink_to_odd_length(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	EXPECT(mremap(p, 16 * PAGE, 2 * PAGE + 1, MREMAP_MAYMOVE) == p);
	EXPECT(is_hole(p + 3 * PAGE) && !is_hole(p + 2 * PAGE));
	expect_bytes(p, 3 * PAGE, SOIL, "shrunk to an odd length");
	unmap(p, 3 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule10_grow_may_move(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 2) {
		unsigned char *p = map_soiled(bytes), *q;

		q = mremap(p, bytes, bytes + 3 * PAGE, MREMAP_MAYMOVE);
		EXPECT(q != MAP_FAILED);
		EXPECT(q == p || is_hole(p));
		expect_bytes(q, bytes, SOIL, "grown");
		expect_zero(q + bytes, 3 * PAGE, "the new part");
		memset(q, SOIL, bytes + 3 * PAGE);
		unmap(q, bytes + 3 * PAGE);
		expect_clean(bytes);
		expect_clean(bytes + 3 * PAGE);
	}
}

static void rule10_grow_into_a_hole_behind(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		unmap(p + bytes / 2, bytes / 2);
		EXPECT(mremap(p, bytes / 2, bytes, 0) == p);
		expect_bytes(p, bytes / 2, SOIL, "grown in place");
		expect_zero(p + bytes / 2, bytes / 2, "grown in place");
		memset(p, SOIL, bytes);
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

static void rule10_no_room_behind(void)
{
	unsigned char *p = map_soiled(16 * PAGE), *q;

	FAILS(mremap(p, 4 * PAGE, 8 * PAGE, 0), ENOMEM);
	expect_bytes(p, 16 * PAGE, SOIL, "after a refusal");
	/* The first pages move away, the others stay. */
	q = mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	EXPECT(q != MAP_FAILED && q != p);
	EXPECT(is_hole(p) && is_hole(p + 3 * PAGE));
	expect_bytes(q, 4 * PAGE, SOIL, "moved away");
	expect_zero(q + 4 * PAGE, 4 * PAGE, "moved away, the new part");
	expect_bytes(p + 4 * PAGE, 12 * PAGE, SOIL, "stayed");
	unmap(p, 16 * PAGE);
	unmap(q, 8 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule10_part_moves_out_of_the_middle(void)
{
	unsigned char *p = map_soiled(MIB), *to = free_range(MIB);
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	memset(p + 256 * KIB, 77, 256 * KIB);
	EXPECT(mremap(p + 256 * KIB, 256 * KIB, 256 * KIB, flags, to) == to);
	expect_bytes(to, 256 * KIB, 77, "moved");
	EXPECT(is_hole(p + 256 * KIB) && is_hole(p + 512 * KIB - PAGE));
	expect_bytes(p, 256 * KIB, SOIL, "below");
	expect_bytes(p + 512 * KIB, 512 * KIB, SOIL, "above");
	unmap(p, MIB);
	unmap(to, 256 * KIB);
	expect_clean(MIB);
	expect_clean(256 * KIB);
}

static void rule10_fixed_replaces_the_target(void)
{
	for (size_t bytes = 2 * PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes), *to = map(2 * bytes);

		memset(p, 1, bytes);
		memset(to, 2, 2 * bytes);
		EXPECT(mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
			      to) == to);
		EXPECT(is_hole(p));
		expect_bytes(to, bytes, 1, "the target");
		expect_bytes(to + bytes, bytes, 2, "behind the target");
		expect_clean(bytes);
		expect_bytes(to, bytes, 1, "the target, later");
		unmap(to, 2 * bytes);
		expect_clean(2 * bytes);
	}
}

/* Larger and smaller than it was, on the way. */
static void rule10_fixed_with_another_size(void)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	unsigned char *p = map_soiled(64 * KIB), *to = free_range(MIB);

	EXPECT(mremap(p, 64 * KIB, 128 * KIB, flags, to) == to);
	expect_bytes(to, 64 * KIB, SOIL, "larger on the way");
	expect_zero(to + 64 * KIB, 64 * KIB, "larger on the way");
	EXPECT(is_hole(p));
	EXPECT(mremap(to, 128 * KIB, 16 * KIB, flags, to + 512 * KIB) ==
	       to + 512 * KIB);
	expect_bytes(to + 512 * KIB, 16 * KIB, SOIL, "smaller on the way");
	EXPECT(is_hole(to) && is_hole(to + 64 * KIB));
	unmap(to + 512 * KIB, 16 * KIB);
	expect_clean(64 * KIB);
}

/* Back onto memory that was freed: jemalloc and the JVM place things so. */
static void rule10_fixed_onto_freed(void)
{
	unsigned char *p = map_soiled(MIB), *q = map(MIB);

	memset(q, 3, MIB);
	unmap(p, MIB);
	EXPECT(mremap(q, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p);
	for (unsigned i = 0; i < 4; i++)
		memset(map(MIB), 1, MIB);
	expect_bytes(p, MIB, 3, "on freed memory");
	unmap(p, MIB);
	expect_clean(MIB);
}

static void rule10_dontunmap_leaves_zeros(void)
{
	unsigned char *p = map_soiled(MIB), *q;

	q = mremap(p, MIB, MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (q == MAP_FAILED && errno == EINVAL)
		probe_skip("no MREMAP_DONTUNMAP");
	EXPECT(q != MAP_FAILED && q != p);
	expect_bytes(q, MIB, SOIL, "moved by MREMAP_DONTUNMAP");
	expect_zero(p, MIB, "left by MREMAP_DONTUNMAP");
	memset(p, 1, MIB);
	expect_bytes(q, MIB, SOIL, "apart from what was left");
	unmap(p, MIB);
	unmap(q, MIB);
	expect_clean(MIB);
}

static void rule10_refused_arguments(void)
{
	unsigned char *p = map_soiled(16 * PAGE);
	unsigned char *to = free_range(MIB);
	const int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;

	FAILS(mremap(p, PAGE, 0, MREMAP_MAYMOVE), EINVAL);
	FAILS(mremap(p + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EINVAL);
	FAILS(mremap(p, PAGE, 2 * PAGE, 64), EINVAL);
	FAILS(mremap(p, PAGE, PAGE, MREMAP_FIXED, to), EINVAL);
	FAILS(mremap(p, PAGE, PAGE, fixed, to + 1), EINVAL);
	FAILS(mremap(p, 4 * PAGE, 4 * PAGE, fixed, p + 2 * PAGE), EINVAL);
	FAILS(mremap(p, 4 * PAGE, 4 * PAGE, fixed, p), EINVAL);
	FAILS(mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP),
	      EINVAL);
	expect_bytes(p, 16 * PAGE, SOIL, "after refusals");
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule10_old_size_zero(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	FAILS(mremap(p, 0, 4 * PAGE, MREMAP_MAYMOVE), EINVAL);
	expect_bytes(p, 16 * PAGE, SOIL, "after a refusal");
}

static void rule10_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p, 16 * PAGE);
	FAILS(mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
	FAILS(mremap(p, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE), EFAULT);
	FAILS(mremap(p, 16 * PAGE, 32 * PAGE, 0), EFAULT);
	expect_clean(16 * PAGE);
}

static void rule10_beyond_the_mapping(void)
{
	int fd = file_of(8 * PAGE, 6);
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p + 8 * PAGE, 8 * PAGE);
	FAILS(mremap(p, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE), EFAULT);
	EXPECT(mmap(p + 8 * PAGE, 8 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd,
		    0) == p + 8 * PAGE);
	FAILS(mremap(p, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE), EFAULT);
	expect_bytes(p, 8 * PAGE, SOIL, "the memory");
	expect_bytes(p + 8 * PAGE, 8 * PAGE, 6, "the file");
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule10_too_large(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	/* 127 TiB: below all limits, and there is no such gap. */
	FAILS(mremap(p, 16 * PAGE, (size_t)127 << 40, MREMAP_MAYMOVE), ENOMEM);
	expect_bytes(p, 16 * PAGE, SOIL, "after a refusal");
}

/* The fifth argument is there only with MREMAP_FIXED (and DONTUNMAP). */
static void rule10_four_arguments(void)
{
	for (unsigned i = 0; i < 50; i++) {
		unsigned char *p = map_soiled(PAGE);

		p = mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
		EXPECT(p != MAP_FAILED);
		p = mremap(p, 2 * PAGE, 2 * PAGE, 0);
		EXPECT(p != MAP_FAILED);
		expect_bytes(p, PAGE, SOIL, "with four arguments");
		unmap(p, 2 * PAGE);
	}
}

static void rule10_same_size_changes_nothing(void)
{
	unsigned char *p = map_soiled(MIB);

	EXPECT(mremap(p, MIB, MIB, 0) == p);
	EXPECT(mremap(p, MIB, MIB, MREMAP_MAYMOVE) == p);
	EXPECT(mremap(p, MIB, MIB - 5, MREMAP_MAYMOVE) == p);
	expect_bytes(p, MIB, SOIL, "as large as before");
	unmap(p, MIB);
}

/* A vector that doubles from a page to 64 MiB. */
static void rule10_doubling(void)
{
	size_t bytes = PAGE;
	unsigned char *p;

	for (size_t size = PAGE; size <= 16 * MIB; size *= 4)
		soil(size);
	p = map(bytes);
	p[0] = SOIL;
	for (; bytes < 64 * MIB; bytes *= 2) {
		p = mremap(p, bytes, 2 * bytes, MREMAP_MAYMOVE);
		EXPECT(p != MAP_FAILED);
		EXPECT(p[0] == SOIL &&
		       p[bytes - 1] == (bytes == PAGE ? 0 : SOIL));
		expect_zero(p + bytes, bytes, "doubled");
		p[2 * bytes - 1] = SOIL;
	}
	unmap(p, bytes);
}

static void rule10_realloc(void)
{
	unsigned char *p = malloc(32 * MIB);

	EXPECT(p != NULL);
	memset(p, SOIL, 32 * MIB);
	p = realloc(p, 64 * MIB);
	EXPECT(p != NULL);
	expect_bytes(p, 32 * MIB, SOIL, "realloc");
	memset(p, SOIL, 64 * MIB);
	p = realloc(p, MIB);
	EXPECT(p != NULL);
	expect_bytes(p, MIB, SOIL, "realloc to less");
	free(p);
}

/* What has a protection of its own keeps it where it goes. */
static void rule10_protection_moves_along(void)
{
	unsigned char *p = map_soiled(64 * KIB), *to = free_range(MIB);

	OK(mprotect(p, 64 * KIB, PROT_READ));
	EXPECT(mremap(p, 64 * KIB, 64 * KIB, MREMAP_MAYMOVE | MREMAP_FIXED,
		      to) == to);
	expect_bytes(to, 64 * KIB, SOIL, "read-only, moved");
	expect_segv(fault_write(to), SEGV_ACCERR, "read-only, moved");
	unmap(to, 64 * KIB);
	expect_clean(64 * KIB);
}

/* New mappings are in one piece, whatever was in their place before. */
static void grows_in_one_piece(size_t bytes)
{
	enum { N = 3 };
	unsigned char *p[N];

	for (unsigned i = 0; i < N; i++) {
		p[i] = map(bytes);
		memset(p[i], SOIL, bytes);
	}
	for (unsigned i = 0; i < N; i++) {
		p[i] = mremap(p[i], bytes, 2 * bytes, MREMAP_MAYMOVE);
		EXPECT(p[i] != MAP_FAILED);
		expect_bytes(p[i], bytes, SOIL, "grown");
		unmap(p[i], 2 * bytes);
	}
}

static void rule10_grow_where_pieces_were(void)
{
	for (size_t bytes = 512 * KIB; bytes <= 8 * MIB; bytes *= 2)
		for (unsigned i = 0; i < 4; i++) {
			unsigned char *p = map_soiled(bytes), *q;

			q = p + bytes / 4 + i * PAGE;
			if (i == 0)
				OK(mmap(q, PAGE, RW, ANON | MAP_FIXED, -1, 0));
			else if (i == 1)
				unmap(q, bytes / 2);
			else
				OK(mprotect(q, bytes / i, PROT_READ));
			if (i == 3)
				OK(mprotect(q, bytes / 3, RW));
			if (i == 0)
				memset(q, SOIL, PAGE);
			unmap(p, bytes);
			grows_in_one_piece(bytes);
		}
}

/* So is what the kernel was advised about, which takes no copy for the pages. */
static void moves_in_one_piece(size_t bytes)
{
	unsigned char *p = map(bytes), *to = free_range(bytes), *q;

	OK(madvise(p, bytes, MADV_RANDOM));
	memset(p, SOIL, bytes);
	q = mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (q != to)
		probe_fail("%zu KiB can't be moved: %s", bytes >> 10,
			   error_name(errno));
	expect_bytes(to, bytes, SOIL, "moved");
	q = mremap(to, bytes, 2 * bytes, MREMAP_MAYMOVE);
	EXPECT(q != MAP_FAILED);
	expect_bytes(q, bytes, SOIL, "moved and grown");
	unmap(q, 2 * bytes);
}

static void rule10_move_where_pieces_were(void)
{
	enum { N = 32 };

	for (size_t bytes = 256 * KIB; bytes <= 4 * MIB; bytes *= 2) {
		unsigned char *p[N];

		for (unsigned i = 0; i < N; i++)
			p[i] = map_soiled(bytes);
		for (unsigned i = 0; i < N; i += 2)
			OK(mprotect(p[i], bytes, PROT_READ));
		for (unsigned i = 0; i < N; i++)
			unmap(p[i], bytes);
		for (unsigned i = 0; i < N / 2; i++)
			moves_in_one_piece(2 * bytes);
	}
}

const struct probe probes_remap[] = {
	PROBE(rule10_move_where_pieces_were),
	PROBE(rule10_grow_where_pieces_were),
	PROBE(rule10_shrink_frees_the_tail),
	PROBE(rule10_shrink_to_odd_length),
	PROBE(rule10_grow_may_move),
	PROBE(rule10_grow_into_a_hole_behind),
	PROBE(rule10_no_room_behind),
	PROBE(rule10_part_moves_out_of_the_middle),
	PROBE(rule10_fixed_replaces_the_target),
	PROBE(rule10_fixed_with_another_size),
	PROBE(rule10_fixed_onto_freed),
	PROBE(rule10_dontunmap_leaves_zeros),
	PROBE(rule10_refused_arguments),
	PROBE(rule10_old_size_zero),
	PROBE(rule10_hole),
	PROBE(rule10_beyond_the_mapping),
	PROBE(rule10_too_large),
	PROBE(rule10_four_arguments),
	PROBE(rule10_same_size_changes_nothing),
	PROBE(rule10_doubling),
	PROBE(rule10_realloc),
	PROBE(rule10_protection_moves_along),
	PROBES_END,
};
