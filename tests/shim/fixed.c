/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fixed.c - rule 4: MAP_FIXED over mappings replaces these pages and no others;
 * rule 5: which mappings are not plain memory, and stay what they are.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <stdio.h>
#include <sys/shm.h>

/* Before and behind of `bytes` at `at` in p of `whole` bytes: untouched. */
static void neighbours_intact(const unsigned char *p, size_t whole, size_t at,
			      size_t bytes)
{
	expect_bytes(p, at, SOIL, "below MAP_FIXED");
	expect_bytes(p + at + bytes, whole - at - bytes, SOIL,
		     "above MAP_FIXED");
}

static void rule04_anonymous_in_the_middle(void)
{
	for (size_t bytes = 8 * PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes), *q = p + bytes / 4;

		EXPECT(mmap(q, bytes / 4, RW, ANON | MAP_FIXED, -1, 0) == q);
		expect_zero(q, bytes / 4, "MAP_FIXED in the middle");
		neighbours_intact(p, bytes, bytes / 4, bytes / 4);
		memset(q, SOIL, bytes / 4);
		unmap(p, bytes);
		EXPECT(is_hole(p) && is_hole(q) && is_hole(p + bytes - PAGE));
		expect_clean(bytes);
	}
}

static void rule04_anonymous_over_all(void)
{
	for (size_t bytes = PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		EXPECT(mmap(p, bytes, RW, ANON | MAP_FIXED, -1, 0) == p);
		expect_zero(p, bytes, "MAP_FIXED over all");
		memset(p, SOIL, bytes);
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

/* The file keeps its bytes, and its pages are nobody's anonymous memory later. */
static void file_over(size_t bytes, size_t at, size_t length, bool at_once)
{
	int fd = file_of(length, 9);
	unsigned char *p = map_soiled(bytes), *q = p + at, byte = 0;

	EXPECT(mmap(q, length, RW, MAP_SHARED | MAP_FIXED, fd, 0) == q);
	expect_bytes(q, length, 9, "a file over memory");
	neighbours_intact(p, bytes, at, length);
	*q = 10;
	EXPECT(pread(fd, &byte, 1, 0) == 1 && byte == 10);
	if (at_once) {
		unmap(p, bytes);
	} else {
		unmap(q, length);
		unmap(p, at);
		unmap(q + length, bytes - at - length);
	}
	expect_clean(bytes);
	expect_clean(length);
	EXPECT(pread(fd, &byte, 1, 0) == 1 && byte == 10);
	EXPECT(pread(fd, &byte, 1, (off_t)length - 1) == 1 && byte == 9);
	close(fd);
}

static void rule04_file_in_the_middle(void)
{
	file_over(16 * PAGE, 4 * PAGE, 4 * PAGE, true);
	file_over(MIB, 128 * KIB, 4 * PAGE, true);
	file_over(4 * MIB, MIB, 2 * MIB, true);
}

static void rule04_file_then_piecewise(void)
{
	file_over(16 * PAGE, 4 * PAGE, 4 * PAGE, false);
	file_over(4 * MIB, 2 * MIB, PAGE, false);
}

static void rule04_none_in_the_middle(void)
{
	unsigned char *p = map_soiled(64 * KIB), *q = p + 5 * PAGE;

	EXPECT(mmap(q, PAGE, PROT_NONE, ANON | MAP_FIXED, -1, 0) == q);
	expect_segv(fault_read(q), SEGV_ACCERR, "PROT_NONE over memory");
	neighbours_intact(p, 64 * KIB, 5 * PAGE, PAGE);
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule04_read_only_over_all(void)
{
	unsigned char *p = map_soiled(MIB);

	EXPECT(mmap(p, MIB, PROT_READ, ANON | MAP_FIXED, -1, 0) == p);
	expect_zero(p, MIB, "PROT_READ over memory");
	expect_segv(fault_write(p + MIB / 2), SEGV_ACCERR, "PROT_READ");
	unmap(p, MIB);
	expect_clean(MIB);
}

/* From the middle of one mapping into what is next to it. */
static void rule04_across_the_end(void)
{
	unsigned char *p = map_soiled(16 * PAGE), *q = p + 4 * PAGE;
	int fd = file_of(4 * PAGE, 5);

	unmap(p + 8 * PAGE, 8 * PAGE);
	EXPECT(mmap(p + 8 * PAGE, 4 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd,
		    0) == p + 8 * PAGE);
	EXPECT(mmap(q, 6 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == q);
	expect_zero(q, 6 * PAGE, "MAP_FIXED across");
	expect_bytes(p, 4 * PAGE, SOIL, "below");
	expect_bytes(q + 6 * PAGE, 2 * PAGE, 5, "above, the file");
	memset(q, SOIL, 6 * PAGE);
	unmap(p, 12 * PAGE);
	expect_clean(16 * PAGE);
}

/* Over several mappings and the holes between them. */
static void rule04_over_several(void)
{
	unsigned char *p = map_soiled(MIB);

	unmap(p + 64 * KIB, 64 * KIB);
	unmap(p + 512 * KIB, PAGE);
	EXPECT(mmap(p, MIB, RW, ANON | MAP_FIXED, -1, 0) == p);
	expect_zero(p, MIB, "MAP_FIXED over holes");
	memset(p, SOIL, MIB);
	for (unsigned i = 0; i < 8; i++)
		memset(map(64 * KIB), 1, 64 * KIB);
	expect_bytes(p, MIB, SOIL, "after further mappings");
	unmap(p, MIB);
	expect_clean(MIB);
}

static void rule04_over_freed(void)
{
	unsigned char *p = map_soiled(256 * KIB);

	unmap(p, 256 * KIB);
	EXPECT(mmap(p, 256 * KIB, RW, ANON | MAP_FIXED, -1, 0) == p);
	expect_zero(p, 256 * KIB, "MAP_FIXED over freed memory");
	memset(p, SOIL, 256 * KIB);
	for (unsigned i = 0; i < 8; i++)
		memset(map(256 * KIB), 1, 256 * KIB);
	expect_bytes(p, 256 * KIB, SOIL, "after further mappings");
	unmap(p, 256 * KIB);
	expect_clean(256 * KIB);
}

/* Refused before anything is replaced. */
static void rule04_refused_changes_nothing(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	FAILS(mmap(p, 4 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, -1, 0), EBADF);
	FAILS(mmap(p, 0, RW, ANON | MAP_FIXED, -1, 0), EINVAL);
	FAILS(mmap(p, PAGE, RW, MAP_ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
	expect_bytes(p, 16 * PAGE, SOIL, "after refusals");
	unmap(p, 16 * PAGE);
}

/* A thread's stack that somebody places himself, and grows by hand. */
static void rule04_many_times_at_one_place(void)
{
	unsigned char *p = map_soiled(2 * MIB);

	for (unsigned i = 0; i < 50; i++) {
		unsigned char *q = p + i * 37 % 500 * PAGE;

		EXPECT(mmap(q, 8 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == q);
		expect_zero(q, 8 * PAGE, "MAP_FIXED again and again");
		memset(q, SOIL, 8 * PAGE);
	}
	expect_bytes(p, 2 * MIB, SOIL, "around");
	unmap(p, 2 * MIB);
	expect_clean(2 * MIB);
}

static void rule04_shared_memory_segment(void)
{
	int id = shmget(IPC_PRIVATE, 64 * KIB, IPC_CREAT | 0600);
	unsigned char *p = map_soiled(256 * KIB), *q = p + 64 * KIB;

	if (id < 0)
		probe_skip("shmget: %s", error_name(errno));
	EXPECT(shmat(id, q, SHM_REMAP) == q);
	shmctl(id, IPC_RMID, NULL);
	expect_zero(q, 64 * KIB, "shmat with SHM_REMAP");
	expect_bytes(p, 64 * KIB, SOIL, "below a segment");
	expect_bytes(q + 64 * KIB, 128 * KIB, SOIL, "above a segment");
	memset(q, 3, 64 * KIB);
	OK(shmdt(q));
	unmap(p, 64 * KIB);
	unmap(q + 64 * KIB, 128 * KIB);
	expect_clean(256 * KIB);
	expect_clean(64 * KIB);
}

const struct probe probes_fixed[] = {
	PROBE(rule04_shared_memory_segment),
	PROBE(rule04_anonymous_in_the_middle),
	PROBE(rule04_anonymous_over_all),
	PROBE(rule04_file_in_the_middle),
	PROBE(rule04_file_then_piecewise),
	PROBE(rule04_none_in_the_middle),
	PROBE(rule04_read_only_over_all),
	PROBE(rule04_across_the_end),
	PROBE(rule04_over_several),
	PROBE(rule04_over_freed),
	PROBE(rule04_refused_changes_nothing),
	PROBE(rule04_many_times_at_one_place),
	PROBES_END,
};
