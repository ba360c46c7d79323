/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * advice.c - rule 11: MADV_DONTNEED, MADV_FREE and what madvise refuses.
 */
#define _GNU_SOURCE
#include "contract.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void rule11_dontneed_reads_zero(void)
{
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 4) {
		unsigned char *p = map_soiled(bytes);

		OK(madvise(p, bytes, MADV_DONTNEED));
		expect_zero(p, bytes, "MADV_DONTNEED");
		memset(p, SOIL, bytes);
		expect_bytes(p, bytes, SOIL, "written after MADV_DONTNEED");
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

/* The way jemalloc purges: pieces, again and again. */
static void rule11_dontneed_of_pieces(void)
{
	unsigned char *p = map_soiled(4 * MIB);

	for (unsigned i = 0; i < 400; i++) {
		size_t at = i * 31 % 1000 * PAGE, bytes = (i % 20 + 1) * PAGE;

		memset(p + at, SOIL, bytes);
		OK(madvise(p + at, bytes, MADV_DONTNEED));
		expect_zero(p + at, bytes, "MADV_DONTNEED of a piece");
		memset(p + at, SOIL, bytes);
	}
	expect_bytes(p, 4 * MIB, SOIL, "around the pieces");
	unmap(p, 4 * MIB);
	expect_clean(4 * MIB);
}

static void rule11_dontneed_spares_neighbours(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	OK(madvise(p + 5 * PAGE, PAGE, MADV_DONTNEED));
	expect_bytes(p, 5 * PAGE, SOIL, "before MADV_DONTNEED");
	expect_zero(p + 5 * PAGE, PAGE, "MADV_DONTNEED");
	expect_bytes(p + 6 * PAGE, 10 * PAGE, SOIL, "behind MADV_DONTNEED");
}

static void rule11_dontneed_length_is_rounded_up(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	OK(madvise(p + PAGE, PAGE + 1, MADV_DONTNEED));
	expect_bytes(p, PAGE, SOIL, "before");
	expect_zero(p + PAGE, 2 * PAGE, "an odd length");
	expect_bytes(p + 3 * PAGE, 13 * PAGE, SOIL, "behind");
}

static void rule11_dontneed_gives_memory_back(void)
{
	unsigned char *p = map_soiled(64 * MIB);
	long full = smaps_kib(NULL, "Rss:");

	OK(madvise(p, 64 * MIB, MADV_DONTNEED));
	EXPECT(smaps_kib(NULL, "Rss:") <= full - 63 * 1024);
	memset(p, SOIL, 64 * MIB);
	OK(madvise(p + 16 * MIB, 32 * MIB, MADV_DONTNEED));
	EXPECT(smaps_kib(NULL, "Rss:") <= full - 31 * 1024);
	expect_bytes(p, 16 * MIB, SOIL, "before");
}

static void rule11_dontneed_on_read_only(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	OK(mprotect(p, 64 * KIB, PROT_READ));
	OK(madvise(p, 32 * KIB, MADV_DONTNEED));
	expect_zero(p, 32 * KIB, "MADV_DONTNEED of read-only memory");
	expect_bytes(p + 32 * KIB, 32 * KIB, SOIL, "behind");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule11_dontneed_on_none(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	OK(mprotect(p, 64 * KIB, PROT_NONE));
	OK(madvise(p, 64 * KIB, MADV_DONTNEED));
	expect_segv(fault_read(p), SEGV_ACCERR, "still PROT_NONE");
	OK(mprotect(p, 64 * KIB, RW));
	expect_zero(p, 64 * KIB, "MADV_DONTNEED of PROT_NONE");
}

static void rule11_dontneed_of_a_private_file(void)
{
	int fd = file_of(64 * KIB, 8);
	unsigned char *p = map_soiled(128 * KIB);

	EXPECT(mmap(p, 64 * KIB, RW, MAP_PRIVATE | MAP_FIXED, fd, 0) == p);
	memset(p, SOIL, 64 * KIB);
	OK(madvise(p, 128 * KIB, MADV_DONTNEED));
	expect_bytes(p, 64 * KIB, 8, "the file again");
	expect_zero(p + 64 * KIB, 64 * KIB, "the memory");
	unmap(p, 128 * KIB);
	expect_clean(128 * KIB);
}

static void rule11_locked_is_refused(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	if (mlock(p + 4 * PAGE, PAGE) != 0)
		probe_skip("no locked memory: %s", error_name(errno));
	FAILS(madvise(p + 4 * PAGE, PAGE, MADV_DONTNEED), EINVAL);
	expect_bytes(p + 4 * PAGE, PAGE, SOIL, "locked");
	OK(munlock(p + 4 * PAGE, PAGE));
	OK(madvise(p, 16 * PAGE, MADV_DONTNEED));
	expect_zero(p, 16 * PAGE, "unlocked");
}

static void rule11_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p, 16 * PAGE);
	FAILS(madvise(p, PAGE, MADV_DONTNEED), ENOMEM);
	FAILS(madvise(p, 16 * PAGE, MADV_DONTNEED), ENOMEM);
	FAILS(madvise(p, 16 * PAGE, MADV_WILLNEED), ENOMEM);
	expect_clean(16 * PAGE);
}

/* What is mapped on both sides was advised all the same. */
static void rule11_over_a_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p + 4 * PAGE, 4 * PAGE);
	FAILS(madvise(p, 12 * PAGE, MADV_DONTNEED), ENOMEM);
	expect_zero(p, 4 * PAGE, "before a hole");
	expect_zero(p + 8 * PAGE, 4 * PAGE, "behind a hole");
	expect_bytes(p + 12 * PAGE, 4 * PAGE, SOIL, "not asked for");
	EXPECT(is_hole(p + 4 * PAGE));
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule11_refused_arguments(void)
{
	unsigned char *p = map_soiled(16 * PAGE);
	volatile size_t all = SIZE_MAX;

	FAILS(madvise(p + 1, PAGE, MADV_DONTNEED), EINVAL);
	FAILS(madvise(p, PAGE, 12345), EINVAL);
	FAILS(madvise(p, PAGE, -1), EINVAL);
	FAILS(madvise(p, all - PAGE, MADV_DONTNEED), EINVAL);
	OK(madvise(p, 0, MADV_DONTNEED));
	FAILS(madvise(p, 0, 12345), EINVAL);
	FAILS(madvise(p, PAGE, MADV_REMOVE), EINVAL);
	expect_bytes(p, 16 * PAGE, SOIL, "after refusals");
}

static void rule11_free_keeps_or_clears(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		if (madvise(p, bytes, MADV_FREE) != 0)
			probe_skip("no MADV_FREE: %s", error_name(errno));
		for (size_t at = 0; at < bytes; at += PAGE)
			expect_bytes(p + at, PAGE, p[at] ? SOIL : 0,
				     "MADV_FREE");
		memset(p, 1, bytes);
		expect_bytes(p, bytes, 1, "written after MADV_FREE");
		OK(madvise(p, bytes, MADV_FREE));
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

static void rule11_willneed_and_others_succeed(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	OK(madvise(p, 64 * KIB, MADV_NORMAL));
	OK(madvise(p, 64 * KIB, MADV_RANDOM));
	OK(madvise(p, 64 * KIB, MADV_SEQUENTIAL));
	OK(madvise(p, 64 * KIB, MADV_WILLNEED));
	madvise(p, 64 * KIB, MADV_COLD); /* since 5.4 */
	madvise(p, 64 * KIB, MADV_PAGEOUT);
	madvise(p, 64 * KIB, MADV_HUGEPAGE);
	expect_bytes(p, 64 * KIB, SOIL, "after advice");
	OK(posix_madvise(p, 64 * KIB, POSIX_MADV_DONTNEED));
	expect_bytes(p, 64 * KIB, SOIL, "after posix_madvise");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule11_populate_write(void)
{
	unsigned char *p = map_reused(MIB);

	if (madvise(p, MIB, MADV_POPULATE_WRITE) != 0 && errno == EINVAL)
		probe_skip("no MADV_POPULATE_WRITE");
	for (size_t at = 0; at < MIB; at += PAGE)
		EXPECT(is_resident(p + at));
	expect_zero(p, MIB, "populated");
	unmap(p, MIB);
}

const struct probe probes_advice[] = {
	PROBE(rule11_dontneed_reads_zero),
	PROBE(rule11_dontneed_of_pieces),
	PROBE(rule11_dontneed_spares_neighbours),
	PROBE(rule11_dontneed_length_is_rounded_up),
	PROBE(rule11_dontneed_gives_memory_back),
	PROBE(rule11_dontneed_on_read_only),
	PROBE(rule11_dontneed_on_none),
	PROBE(rule11_dontneed_of_a_private_file),
	PROBE(rule11_locked_is_refused),
	PROBE(rule11_hole),
	PROBE(rule11_over_a_hole),
	PROBE(rule11_refused_arguments),
	PROBE(rule11_free_keeps_or_clears),
	PROBE(rule11_willneed_and_others_succeed),
	PROBE(rule11_populate_write),
	PROBES_END,
};
