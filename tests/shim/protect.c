/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protect.c - rule 9: mprotect on single pages of what was mapped as RW, and memory
 * that is plain again when it is mapped the next time.
 */
#define _GNU_SOURCE
#include "contract.h"

static void rule09_guard_page(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes), *q = p + bytes / 2;

		OK(mprotect(q, PAGE, PROT_NONE));
		expect_segv(fault_read(q), SEGV_ACCERR, "read of a guard");
		expect_segv(fault_write(q + PAGE - 1), SEGV_ACCERR,
			    "write to a guard");
		expect_bytes(p, bytes / 2, SOIL, "below a guard");
		expect_bytes(q + PAGE, bytes / 2 - PAGE, SOIL, "above a guard");
		EXPECT(fault_write(q - 1).signal == 0);
		EXPECT(fault_write(q + PAGE).signal == 0);
		unmap(p, bytes);
		expect_clean(bytes);
		expect_clean(PAGE);
	}
}

static void rule09_guards_at_both_ends(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	OK(mprotect(p, PAGE, PROT_NONE));
	OK(mprotect(p + 15 * PAGE, PAGE, PROT_NONE));
	expect_segv(fault_read(p), SEGV_ACCERR, "the first page");
	expect_segv(fault_read(p + 15 * PAGE), SEGV_ACCERR, "the last page");
	expect_bytes(p + PAGE, 14 * PAGE, SOIL, "between guards");
	/* Piecewise: the guards go last. */
	unmap(p + PAGE, 14 * PAGE);
	unmap(p, PAGE);
	unmap(p + 15 * PAGE, PAGE);
	expect_clean(64 * KIB);
	expect_clean(PAGE);
}

static void rule09_every_second_page(void)
{
	unsigned char *p = map_soiled(256 * KIB);

	for (size_t at = 0; at < 256 * KIB; at += 2 * PAGE)
		OK(mprotect(p + at, PAGE, PROT_READ));
	for (size_t at = 0; at < 256 * KIB; at += 2 * PAGE) {
		expect_segv(fault_write(p + at), SEGV_ACCERR, "PROT_READ");
		EXPECT(fault_write(p + at + PAGE).signal == 0);
	}
	expect_bytes(p, 256 * KIB, SOIL, "with every second page read-only");
	unmap(p, 256 * KIB);
	expect_clean(256 * KIB);
}

static void rule09_read_only_keeps_its_bytes(void)
{
	unsigned char *p = map_soiled(MIB);

	OK(mprotect(p, MIB, PROT_READ));
	expect_bytes(p, MIB, SOIL, "PROT_READ");
	expect_segv(fault_write(p + MIB / 2), SEGV_ACCERR, "PROT_READ");
	unmap(p, MIB);
	expect_clean(MIB);
}

static void rule09_none_and_back(void)
{
	for (size_t bytes = PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		OK(mprotect(p, bytes, PROT_NONE));
		expect_segv(fault_read(p), SEGV_ACCERR, "PROT_NONE");
		OK(mprotect(p, bytes, RW));
		expect_bytes(p, bytes, SOIL, "PROT_NONE and back");
		OK(mprotect(p, bytes, PROT_NONE));
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

#if defined(__x86_64__) || defined(__aarch64__)
static void put_return(unsigned char *p)
{
#if defined(__x86_64__)
	*p = 0xc3;
#else
	*(uint32_t *)(void *)p = 0xd65f03c0;
#endif
	__builtin___clear_cache((char *)p, (char *)p + 4);
}

/* As compilers at run time do: written, then executable. */
static void rule09_executable(void)
{
	unsigned char *p = map_reused(64 * KIB);

	put_return(p + PAGE);
	if (mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC) != 0 &&
	    (errno == EACCES || errno == EPERM))
		probe_skip("no memory may become executable");
	EXPECT(fault_call(p + PAGE).signal == 0);
	expect_segv(fault_write(p + PAGE), SEGV_ACCERR, "code");
	EXPECT(fault_write(p).signal == 0);
	expect_segv(fault_call(p), SEGV_ACCERR, "beside code");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule09_not_executable_after_reuse(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_reused(bytes);

		if (mprotect(p, bytes, RW | PROT_EXEC) != 0 &&
		    (errno == EACCES || errno == EPERM))
			probe_skip("no memory may become executable");
		put_return(p);
		unmap(p, bytes);
		expect_clean(bytes);
		for (unsigned i = 0; i < 8; i++) {
			p = map(bytes);
			put_return(p);
			expect_segv(fault_call(p), SEGV_ACCERR,
				    "a call after reuse");
		}
	}
}
#else
static void rule09_executable(void)
{
	probe_skip("no code for this processor");
}

static void rule09_not_executable_after_reuse(void)
{
	probe_skip("no code for this processor");
}
#endif

static void rule09_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p, 16 * PAGE);
	FAILS(mprotect(p, PAGE, RW), ENOMEM);
	FAILS(mprotect(p + 4 * PAGE, 4 * PAGE, PROT_NONE), ENOMEM);
	expect_clean(16 * PAGE);
}

/* The kernel has changed what lies before the hole. */
static void rule09_into_a_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p + 8 * PAGE, 8 * PAGE);
	FAILS(mprotect(p + 4 * PAGE, 8 * PAGE, PROT_READ), ENOMEM);
	expect_segv(fault_write(p + 4 * PAGE), SEGV_ACCERR, "before a hole");
	EXPECT(fault_write(p).signal == 0);
	EXPECT(is_hole(p + 8 * PAGE));
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule09_refused_arguments(void)
{
	unsigned char *p = map_soiled(16 * PAGE);
	volatile size_t all = SIZE_MAX;

	FAILS(mprotect(p + 1, PAGE, PROT_READ), EINVAL);
	FAILS(mprotect(p, PAGE, PROT_GROWSDOWN | PROT_GROWSUP), EINVAL);
	FAILS(mprotect(p, all - PAGE, PROT_READ), ENOMEM);
	OK(mprotect(p, 0, PROT_NONE));
	memset(p, SOIL, 16 * PAGE);
}

static void rule09_across_memory_and_a_file(void)
{
	int fd = file_of(8 * PAGE, 6);
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p + 8 * PAGE, 8 * PAGE);
	EXPECT(mmap(p + 8 * PAGE, 8 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, fd,
		    0) == p + 8 * PAGE);
	OK(mprotect(p + 4 * PAGE, 8 * PAGE, PROT_NONE));
	expect_segv(fault_read(p + 4 * PAGE), SEGV_ACCERR, "in the memory");
	expect_segv(fault_read(p + 11 * PAGE), SEGV_ACCERR, "in the file");
	expect_bytes(p, 4 * PAGE, SOIL, "before");
	expect_bytes(p + 12 * PAGE, 4 * PAGE, 6, "behind");
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
}

/* The free part has the guard, the rest goes on. */
static void rule09_guard_in_freed_part(void)
{
	unsigned char *p = map_soiled(MIB);

	OK(mprotect(p + 512 * KIB, 256 * KIB, PROT_NONE));
	unmap(p + 512 * KIB, 512 * KIB);
	expect_bytes(p, 512 * KIB, SOIL, "the half that is left");
	expect_clean(256 * KIB);
	expect_clean(512 * KIB);
	unmap(p, 512 * KIB);
	expect_clean(MIB);
}

#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL, since 6.13 */

static void rule09_guard_regions(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	if (madvise(p + PAGE, 2 * PAGE, GUARD_INSTALL) != 0)
		probe_skip("no MADV_GUARD_INSTALL");
	EXPECT(fault_read(p + PAGE).signal == SIGSEGV);
	EXPECT(fault_read(p + 3 * PAGE).signal == 0);
	unmap(p, 64 * KIB);
	for (unsigned i = 0; i < 8; i++) {
		p = map(64 * KIB);
		for (size_t at = 0; at < 64 * KIB; at += PAGE)
			EXPECT(fault_write(p + at).signal == 0);
	}
}

const struct probe probes_protect[] = {
	PROBE(rule09_guard_page),
	PROBE(rule09_guards_at_both_ends),
	PROBE(rule09_every_second_page),
	PROBE(rule09_read_only_keeps_its_bytes),
	PROBE(rule09_none_and_back),
	PROBE(rule09_executable),
	PROBE(rule09_not_executable_after_reuse),
	PROBE(rule09_hole),
	PROBE(rule09_into_a_hole),
	PROBE(rule09_refused_arguments),
	PROBE(rule09_across_memory_and_a_file),
	PROBE(rule09_guard_in_freed_part),
	PROBE(rule09_guard_regions),
	PROBES_END,
};
