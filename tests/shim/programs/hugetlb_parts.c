/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb_parts.c - `hugetlb parts`: all that can be done to a part of a huge page.
 */
#define _GNU_SOURCE
#include "hugetlb.h"

#include <errno.h>

static void part_protect(unsigned char *p)
{
	int fds[2];

	CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
	CHECK(pipe(fds) == 0);
	CHECK(write(fds[1], p + PAGE, 1) == -1 && errno == EFAULT);
	CHECK(mprotect(p + PAGE, PAGE, RW) == 0);
	close(fds[0]);
	close(fds[1]);
	CHECK(all(p, 7, UNIT));
}

static void part_unmap(unsigned char *p)
{
	CHECK(munmap(p + 8 * PAGE, PAGE) == 0);
	CHECK(msync(p + 8 * PAGE, PAGE, MS_ASYNC) == -1 && errno == ENOMEM);
	CHECK(all(p, 7, 8 * PAGE));
	CHECK(mmap(p + 8 * PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) ==
	      p + 8 * PAGE);
	CHECK(all(p + 8 * PAGE, 0, PAGE));
	memset(p + 8 * PAGE, 7, PAGE);
}

static void part_replace(unsigned char *p)
{
	CHECK(mmap(p + PAGE, PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0) ==
	      p + PAGE);
	CHECK(all(p + PAGE, 0, PAGE) && all(p, 7, PAGE));
	CHECK(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + PAGE);
	memset(p + PAGE, 7, PAGE);
}

static void part_advise(unsigned char *p)
{
	CHECK(madvise(p + PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(all(p + PAGE, 0, PAGE) && all(p + 2 * PAGE, 7, PAGE));
	CHECK(madvise(p + PAGE, UNIT / 2 + PAGE, MADV_DONTNEED) == 0);
	CHECK(all(p + PAGE, 0, UNIT / 2 + PAGE) && *p == 7);
	memset(p, 7, UNIT);
	CHECK(madvise(p + PAGE, PAGE, MADV_FREE) == 0);
	CHECK(madvise(p + PAGE, PAGE, MADV_WILLNEED) == 0);
	CHECK(madvise(p + PAGE, PAGE, MADV_COLD) == 0);
	CHECK(madvise(p, UNIT, MADV_POPULATE_WRITE) == 0);
	memset(p, 7, UNIT);
	CHECK(madvise(p + PAGE, PAGE, MADV_DONTFORK) == 0);
	CHECK(all(p, 7, UNIT));
}

static void part_lock(unsigned char *p)
{
	unsigned char seen;

	CHECK(mincore(p + PAGE, PAGE, &seen) == 0 && (seen & 1));
	CHECK(mlock(p + PAGE, PAGE) == 0 && munlock(p + PAGE, PAGE) == 0);
}

static void part_move(unsigned char *p)
{
	unsigned char *q = map(UNIT);

	CHECK(mremap(p, UNIT, UNIT, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	CHECK(all(q, 7, UNIT));
	CHECK(mremap(q, UNIT, UNIT / 2, 0) == q);
	q = mremap(q, UNIT / 2, UNIT, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && all(q, 7, UNIT / 2));
	CHECK(all(q + UNIT / 2, 0, UNIT / 2));
	CHECK(munmap(q, UNIT) == 0);
}

static void part_moves_out(unsigned char *p)
{
	unsigned char *q = mremap(p + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);

	CHECK(q != MAP_FAILED && all(q, 7, PAGE) && all(q + PAGE, 0, PAGE));
	CHECK(munmap(q, 2 * PAGE) == 0);
	CHECK(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) ==
	      p + PAGE);
	q = mremap(p + UNIT / 2, UNIT / 4, UNIT / 4,
		   MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	CHECK(q != MAP_FAILED && all(q, 7, UNIT / 4));
	CHECK(all(p + UNIT / 2, 0, UNIT / 4) && *p == 7);
	CHECK(munmap(q, UNIT / 4) == 0);
}

static void large_parts(void)
{
	unsigned char *p = map(4 * UNIT);

	memset(p, 7, 4 * UNIT);
	CHECK(madvise(p + PAGE, 3 * UNIT, MADV_DONTNEED) == 0);
	CHECK(all(p, 7, PAGE) && all(p + PAGE, 0, 3 * UNIT));
	CHECK(all(p + PAGE + 3 * UNIT, 7, UNIT - PAGE));
	CHECK(mprotect(p + 2 * UNIT, PAGE, PROT_READ) == 0);
	CHECK(madvise(p, 4 * UNIT, MADV_DONTNEED) == 0);
	CHECK(all(p, 0, 4 * UNIT));
	memset(p + 3 * UNIT, 7, UNIT);
	CHECK(munmap(p + 2 * UNIT + PAGE, UNIT) == 0);
	CHECK(all(p + 3 * UNIT + PAGE, 7, UNIT - PAGE));
	CHECK(munmap(p, 4 * UNIT) == 0);
	p = map(4 * UNIT);
	memset(p, 7, 4 * UNIT);
	CHECK(munmap(p + UNIT + PAGE, 3 * UNIT - PAGE) == 0);
	CHECK(all(p, 7, UNIT + PAGE));
	p = mremap(p, UNIT + PAGE, 4 * UNIT, MREMAP_MAYMOVE);
	CHECK(all(p, 7, UNIT + PAGE));
	CHECK(all(p + UNIT + PAGE, 0, 3 * UNIT - PAGE));
	CHECK(munmap(p, 4 * UNIT) == 0);
}

static bool resident(unsigned char *p)
{
	unsigned char seen;

	CHECK(mincore(p, PAGE, &seen) == 0);
	return seen & 1;
}

/* What was given back of a mapping goes on being part of it for the kernel. */
static void given_back(void)
{
	unsigned char *p = map(4 * UNIT), *q;

	memset(p, 7, 4 * UNIT);
	CHECK(madvise(p + UNIT, 2 * UNIT, MADV_DONTNEED) == 0);
	p[2 * UNIT] = 9;
	CHECK(madvise(p, 4 * UNIT, MADV_DONTDUMP) == 0);
	CHECK(!resident(p + UNIT + PAGE));
	q = mremap(p, 4 * UNIT, 16 * UNIT, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	CHECK(all(q, 7, UNIT) && all(q + UNIT, 0, UNIT));
	CHECK(q[2 * UNIT] == 9 && all(q + 2 * UNIT + 1, 0, UNIT - 1));
	CHECK(all(q + 3 * UNIT, 7, UNIT) && all(q + 4 * UNIT, 0, 12 * UNIT));
	CHECK(munmap(q, 16 * UNIT) == 0);
}

void parts(void)
{
	static void (*const each[])(unsigned char *) = {
		part_protect, part_unmap, part_replace,   part_advise,
		part_lock,    part_move,  part_moves_out,
	};
	int count = 0;

	warm();
	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
		unsigned char *p = filled();

		count += pooled(p);
		each[i](p);
		CHECK(munmap(p, UNIT) == 0);
		large_parts();
		given_back();
		warm();
	}
	printf("pool: %d\n", count);
}
