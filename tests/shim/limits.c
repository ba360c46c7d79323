/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c - rule 6: limits of the process are the kernel's, and below them there is
 * always memory.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <stdio.h>
#include <sys/resource.h>

static void limit(int what, size_t bytes)
{
	struct rlimit now;

	OK(getrlimit((__rlimit_resource_t)what, &now));
	now.rlim_cur = bytes;
	if (now.rlim_max < now.rlim_cur)
		probe_skip("a lower limit is set already");
	OK(setrlimit((__rlimit_resource_t)what, &now));
}

/* More of each size than a cache has room for, all of it at once. */
static void rule06_twenty_thousand_pages(void)
{
	enum { N = 20000 };
	static unsigned char *p[N];

	for (unsigned i = 0; i < N; i++) {
		p[i] = map(PAGE);
		p[i][0] = (unsigned char)i;
		p[i][PAGE - 1] = (unsigned char)(i >> 8);
	}
	for (unsigned i = 0; i < N; i++) {
		EXPECT(p[i][0] == (unsigned char)i);
		EXPECT(p[i][PAGE - 1] == (unsigned char)(i >> 8));
		unmap(p[i], PAGE);
	}
	expect_clean(PAGE);
}

static void rule06_hundred_large_ones(void)
{
	enum { N = 100 };
	unsigned char *p[N];

	for (unsigned i = 0; i < N; i++) {
		p[i] = map_with(64 * MIB, MAP_NORESERVE);
		p[i][i * PAGE] = 1;
	}
	for (unsigned i = 0; i < N; i++)
		unmap(p[i], 64 * MIB);
}

static void rule06_larger_than_what_is_cached(void)
{
	static const size_t bytes[] = {64 * MIB + PAGE, 100 * MIB, 400 * MIB};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		unsigned char *p = map_with(bytes[i], MAP_NORESERVE);

		p[0] = p[bytes[i] - 1] = SOIL;
		unmap(p, bytes[i]);
		p = map_with(bytes[i], MAP_NORESERVE);
		EXPECT(p[0] == 0 && p[bytes[i] - 1] == 0);
		unmap(p, bytes[i]);
	}
}

static void rule06_rlimit_as_is_kept(void)
{
	size_t used;
	void *p;

	soil(4 * MIB);
	used = (size_t)status_kib("VmSize:") * KIB;
	limit(RLIMIT_AS, used + 32 * MIB);
	FAILS(mmap(NULL, 64 * MIB, RW, ANON, -1, 0), ENOMEM);
	p = map(8 * MIB);
	for (unsigned i = 0; i < 64; i++) {
		p = mmap(NULL, MIB, RW, ANON, -1, 0);
		if (p == MAP_FAILED)
			break;
	}
	EXPECT(p == MAP_FAILED && errno == ENOMEM);
}

/* What is freed makes room. */
static void rule06_rlimit_as_leaves_room(void)
{
	limit(RLIMIT_AS, (size_t)status_kib("VmSize:") * KIB + 64 * MIB);
	for (unsigned i = 0; i < 40; i++) {
		unsigned char *p = map(32 * MIB);

		p[i * PAGE] = SOIL;
		unmap(p, 32 * MIB);
		p = map((i + 1) * 256 * KIB);
		memset(p, SOIL, 256 * KIB);
		unmap(p, (i + 1) * 256 * KIB);
	}
}

void helper_small_space(void)
{
	for (unsigned round = 0; round < 3; round++) {
		unsigned char *p[60];

		for (unsigned i = 0; i < 60; i++) {
			p[i] = map(MIB);
			expect_zero(p[i], MIB, "in a small address space");
			memset(p[i], SOIL, MIB);
		}
		for (unsigned i = 0; i < 60; i++)
			unmap(p[i], MIB);
	}
	FAILS(mmap(NULL, 512 * MIB, RW, ANON, -1, 0), ENOMEM);
}

/* As started by a shell with `ulimit -v 131072`. */
static void rule06_small_address_space_from_the_start(void)
{
	limit(RLIMIT_AS, 128 * MIB);
	run_helper("helper_small_space");
}

static void rule06_rlimit_data_leaves_room(void)
{
	unsigned char *p;

	soil(4 * MIB);
	limit(RLIMIT_DATA, (size_t)status_kib("VmData:") * KIB + 16 * MIB);
	for (unsigned i = 0; i < 20; i++) {
		p = map(8 * MIB);
		expect_zero(p, 8 * MIB, "below RLIMIT_DATA");
		memset(p, SOIL, 8 * MIB);
		unmap(p, 8 * MIB);
	}
}

static void rule06_locked_is_counted_as_asked(void)
{
	unsigned char *p = map_soiled(16 * PAGE);
	long before = status_kib("VmLck:");

	if (mlock(p + PAGE, 3 * PAGE) != 0)
		probe_skip("no locked memory: %s", error_name(errno));
	EXPECT(status_kib("VmLck:") == before + 12);
	OK(munlock(p, 16 * PAGE));
	EXPECT(status_kib("VmLck:") == before);
}

static void rule06_memlock_limit(void)
{
	unsigned char *p = map_soiled(MIB);

	limit(RLIMIT_MEMLOCK, 64 * KIB);
	if (!become_nobody())
		probe_skip("can't become an ordinary user");
	OK(mlock(p, 32 * KIB));
	FAILS(mlock(p, 256 * KIB), ENOMEM);
	FAILS(mmap(NULL, MIB, RW, ANON | MAP_LOCKED, -1, 0), EAGAIN);
	OK(munlock(p, 32 * KIB));
	OK(mlock(p + 64 * KIB, 64 * KIB));
}

const struct probe probes_limits[] = {
	PROBE(rule06_twenty_thousand_pages),
	PROBE(rule06_hundred_large_ones),
	PROBE(rule06_larger_than_what_is_cached),
	PROBE(rule06_rlimit_as_is_kept),
	PROBE(rule06_rlimit_as_leaves_room),
	PROBE(rule06_small_address_space_from_the_start),
	PROBE(rule06_rlimit_data_leaves_room),
	PROBE(rule06_locked_is_counted_as_asked),
	PROBE(rule06_memlock_limit),
	PROBES_END,
};
