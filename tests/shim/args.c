/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.c - rule 2: which arguments mmap refuses, and with which errno; rule 3: where
 * a mapping goes that has a hint.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <fcntl.h>

static void rule02_length_zero(void)
{
	FAILS(mmap(NULL, 0, RW, ANON, -1, 0), EINVAL);
	soil(PAGE);
	FAILS(mmap(NULL, 0, RW, ANON, -1, 0), EINVAL);
	FAILS(mmap(NULL, 0, PROT_NONE, ANON, -1, 0), EINVAL);
}

static void rule02_neither_shared_nor_private(void)
{
	FAILS(mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0), EINVAL);
	FAILS(mmap(NULL, MIB, RW, MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), EINVAL);
}

static void rule02_unaligned_offset(void)
{
	int fd = file_of(2 * PAGE, 1);

	FAILS(mmap(NULL, PAGE, RW, ANON, -1, 1), EINVAL);
	FAILS(mmap(NULL, PAGE, RW, ANON, -1, 4095), EINVAL);
	FAILS(mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 100), EINVAL);
}

static void rule02_offset_of_anonymous_is_ignored(void)
{
	unsigned char *p;

	soil(2 * PAGE);
	p = mmap(NULL, 2 * PAGE, RW, ANON, -1, 16 * PAGE);
	EXPECT(p != MAP_FAILED);
	expect_zero(p, 2 * PAGE, "anonymous with an offset");
}

static void rule02_too_long(void)
{
	volatile size_t all = SIZE_MAX; /* what compilers refuse to see */

	FAILS(mmap(NULL, all, RW, ANON, -1, 0), ENOMEM);
	FAILS(mmap(NULL, all - PAGE + 1, RW, ANON, -1, 0), ENOMEM);
	FAILS(mmap(NULL, all / 2, RW, ANON | MAP_NORESERVE, -1, 0), ENOMEM);
	FAILS(mmap(NULL, (size_t)1 << 57, RW, ANON | MAP_NORESERVE, -1, 0),
	      ENOMEM);
}

static void rule02_file_without_descriptor(void)
{
	FAILS(mmap(NULL, PAGE, RW, MAP_PRIVATE, -1, 0), EBADF);
	FAILS(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, -1, 0), EBADF);
	FAILS(mmap(NULL, MIB, RW, MAP_PRIVATE, 1000000, 0), EBADF);
}

static void rule02_anonymous_with_descriptor(void)
{
	static const int fds[] = {0, 1, 77, -1, -5};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		unsigned char *p;

		soil(64 * KIB);
		p = mmap(NULL, 64 * KIB, RW, ANON, fds[i], 0);
		EXPECT(p != MAP_FAILED);
		expect_zero(p, 64 * KIB, "anonymous with a descriptor");
		unmap(p, 64 * KIB);
	}
}

static void rule02_private_file(void)
{
	int fd = file_of(64 * KIB, 7);
	unsigned char *p, byte = 0;

	soil(64 * KIB);
	p = mmap(NULL, 64 * KIB, RW, MAP_PRIVATE, fd, 0);
	EXPECT(p != MAP_FAILED);
	expect_bytes(p, 64 * KIB, 7, "a private file");
	memset(p, SOIL, 64 * KIB);
	EXPECT(pread(fd, &byte, 1, 0) == 1 && byte == 7);
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule02_file_that_cannot_be_written(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	EXPECT(fd >= 0);
	FAILS(mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0), EACCES);
}

static void rule02_dev_zero(void)
{
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	unsigned char *p;

	if (fd < 0)
		probe_skip("no /dev/zero");
	soil(64 * KIB);
	p = mmap(NULL, 64 * KIB, RW, MAP_PRIVATE, fd, 0);
	EXPECT(p != MAP_FAILED);
	expect_zero(p, 64 * KIB, "/dev/zero");
	memset(p, SOIL, 64 * KIB);
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule02_unaligned_fixed(void)
{
	unsigned char *p = map_soiled(4 * PAGE);

	FAILS(mmap(p + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0), EINVAL);
	FAILS(mmap(p + 100, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0),
	      EINVAL);
	expect_bytes(p, 4 * PAGE, SOIL, "after a refused MAP_FIXED");
}

const struct probe probes_args[] = {
	PROBE(rule02_length_zero),
	PROBE(rule02_neither_shared_nor_private),
	PROBE(rule02_unaligned_offset),
	PROBE(rule02_offset_of_anonymous_is_ignored),
	PROBE(rule02_too_long),
	PROBE(rule02_file_without_descriptor),
	PROBE(rule02_anonymous_with_descriptor),
	PROBE(rule02_private_file),
	PROBE(rule02_file_that_cannot_be_written),
	PROBE(rule02_dev_zero),
	PROBE(rule02_unaligned_fixed),
	PROBES_END,
};

static void rule03_free_hint_is_honoured(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *want = free_range(bytes);

		EXPECT(mmap(want, bytes, RW, ANON, -1, 0) == want);
		expect_zero(want, bytes, "at a hint");
		memset(want, SOIL, bytes);
		unmap(want, bytes);
		expect_clean(bytes);
	}
}

/* What was freed is free to be hinted at: the block, and a part of it. */
static void rule03_freed_hint_is_honoured(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		unmap(p, bytes);
		EXPECT(mmap(p, bytes, RW, ANON, -1, 0) == p);
		expect_zero(p, bytes, "at a hint that was freed");
		memset(p, SOIL, bytes);
		unmap(p, bytes);
		EXPECT(mmap(p + PAGE, PAGE, RW, ANON, -1, 0) == p + PAGE);
		expect_zero(p + PAGE, PAGE, "at a hint inside");
		EXPECT(is_hole(p) && is_hole(p + 2 * PAGE));
		unmap(p + PAGE, PAGE);
	}
}

static void rule03_live_hint_goes_elsewhere(void)
{
	unsigned char *p = map_soiled(64 * KIB);
	unsigned char *q = mmap(p + PAGE, 64 * KIB, RW, ANON, -1, 0);

	EXPECT(q != MAP_FAILED);
	EXPECT(q + 64 * KIB <= p || q >= p + 64 * KIB);
	expect_zero(q, 64 * KIB, "beside a live hint");
	expect_bytes(p, 64 * KIB, SOIL, "at a live hint");
}

static void rule03_noreplace_on_live(void)
{
	const int flags = ANON | MAP_FIXED_NOREPLACE;
	unsigned char *p = map_soiled(16 * PAGE);

	FAILS(mmap(p, 16 * PAGE, RW, flags, -1, 0), EEXIST);
	FAILS(mmap(p + 3 * PAGE, PAGE, RW, flags, -1, 0), EEXIST);
	FAILS(mmap(p + 15 * PAGE, 4 * PAGE, RW, flags, -1, 0), EEXIST);
	FAILS(mmap(p, PAGE, PROT_NONE, flags, -1, 0), EEXIST);
	expect_bytes(p, 16 * PAGE, SOIL, "after MAP_FIXED_NOREPLACE");
}

static void rule03_noreplace_on_freed(void)
{
	for (size_t bytes = PAGE; bytes <= 4 * MIB; bytes *= 4) {
		unsigned char *p = map_soiled(bytes);

		unmap(p, bytes);
		EXPECT(mmap(p, bytes, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) ==
		       p);
		expect_zero(p, bytes, "MAP_FIXED_NOREPLACE on freed memory");
		memset(p, SOIL, bytes);
		for (unsigned i = 0; i < 4; i++)
			memset(map(bytes), 1, bytes);
		expect_bytes(p, bytes, SOIL, "among further mappings");
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

/* With other protections, too, which go to the kernel. */
static void rule03_noreplace_none_on_freed(void)
{
	unsigned char *p = map_soiled(64 * KIB), *q;

	unmap(p, 64 * KIB);
	EXPECT(mmap(p, 64 * KIB, PROT_NONE, ANON | MAP_FIXED_NOREPLACE, -1,
		    0) == p);
	for (unsigned i = 0; i < 8; i++) {
		q = map(64 * KIB);
		EXPECT(q + 64 * KIB <= p || q >= p + 64 * KIB);
	}
	expect_segv(fault_read(p), SEGV_ACCERR, "PROT_NONE on freed memory");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule03_noreplace_on_a_hole_inside(void)
{
	const int flags = ANON | MAP_FIXED_NOREPLACE;
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p + 4 * PAGE, 4 * PAGE);
	FAILS(mmap(p + 4 * PAGE, 5 * PAGE, RW, flags, -1, 0), EEXIST);
	EXPECT(mmap(p + 4 * PAGE, 4 * PAGE, RW, flags, -1, 0) == p + 4 * PAGE);
	expect_zero(p + 4 * PAGE, 4 * PAGE, "in the hole");
	expect_bytes(p, 4 * PAGE, SOIL, "below the hole");
	expect_bytes(p + 8 * PAGE, 8 * PAGE, SOIL, "above the hole");
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule03_file_at_a_freed_hint(void)
{
	int fd = file_of(64 * KIB, 3);
	unsigned char *p = map_soiled(64 * KIB);

	unmap(p, 64 * KIB);
	EXPECT(mmap(p, 64 * KIB, RW, MAP_SHARED, fd, 0) == p);
	expect_bytes(p, 64 * KIB, 3, "a file at a freed hint");
	for (unsigned i = 0; i < 8; i++)
		memset(map(64 * KIB), SOIL, 64 * KIB);
	expect_bytes(p, 64 * KIB, 3, "a file among further mappings");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

/* No address for a mapping of a user's, or no page's: taken as well as can be. */
static void rule03_odd_hints(void)
{
	static const uintptr_t hints[] = {
		1,     PAGE - 1,   (uintptr_t)1 << 50, (uintptr_t)1 << 63,
		-PAGE, UINTPTR_MAX};

	for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
		unsigned char *p;

		soil(64 * KIB);
		p = mmap((void *)hints[i], 64 * KIB, RW, ANON, -1, 0);
		EXPECT(p != MAP_FAILED);
		EXPECT((uintptr_t)p % PAGE == 0);
		expect_zero(p, 64 * KIB, "with an odd hint");
		memset(p, SOIL, 64 * KIB);
		unmap(p, 64 * KIB);
		EXPECT(is_hole(p));
	}
}

const struct probe probes_hint[] = {
	PROBE(rule03_odd_hints),
	PROBE(rule03_free_hint_is_honoured),
	PROBE(rule03_freed_hint_is_honoured),
	PROBE(rule03_live_hint_goes_elsewhere),
	PROBE(rule03_noreplace_on_live),
	PROBE(rule03_noreplace_on_freed),
	PROBE(rule03_noreplace_none_on_freed),
	PROBE(rule03_noreplace_on_a_hole_inside),
	PROBE(rule03_file_at_a_freed_hint),
	PROBES_END,
};
