/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flags.c - rule 5: flags and protections that are not plain memory take effect,
 * and the flags that may be served do what they say.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <stdio.h>

#if defined(__x86_64__)
static const unsigned char return_code[] = {0xc3};
#elif defined(__aarch64__)
static const unsigned char return_code[] = {0xc0, 0x03, 0x5f, 0xd6};
#else
static const unsigned char return_code[] = {0};
#endif

static void child_writes(void *p)
{
	memset(p, 42, 64 * KIB);
}

static void rule05_shared_is_shared(void)
{
	unsigned char *p;

	soil(64 * KIB);
	p = mmap(NULL, 64 * KIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(p != MAP_FAILED);
	expect_zero(p, 64 * KIB, "shared");
	in_child(child_writes, p);
	expect_bytes(p, 64 * KIB, 42, "written by a child");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule05_none_is_guarded(void)
{
	unsigned char *p;

	soil(MIB);
	p = mmap(NULL, MIB, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
	EXPECT(p != MAP_FAILED);
	expect_segv(fault_read(p), SEGV_ACCERR, "PROT_NONE");
	expect_segv(fault_write(p + MIB - 1), SEGV_ACCERR, "PROT_NONE");
	OK(mprotect(p + PAGE, 2 * PAGE, RW));
	expect_zero(p + PAGE, 2 * PAGE, "committed by mprotect");
	memset(p + PAGE, SOIL, 2 * PAGE);
	expect_segv(fault_read(p + 3 * PAGE), SEGV_ACCERR, "not committed");
	unmap(p, MIB);
	expect_clean(MIB);
}

/* As the JVM and V8 do: a large reservation, parts of it mapped over, cut off. */
static void rule05_reserve_and_commit(void)
{
	const size_t whole = 256 * MIB;
	unsigned char *p, *q;

	p = mmap(NULL, whole, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
	EXPECT(p != MAP_FAILED);
	q = (unsigned char *)(((uintptr_t)p + 4 * MIB) & -(4 * MIB));
	unmap(p, (size_t)(q - p));
	unmap(q + 64 * MIB, (size_t)(p + whole - q) - 64 * MIB);
	for (unsigned i = 0; i < 3; i++) {
		EXPECT(mmap(q, 8 * MIB, RW, ANON | MAP_FIXED, -1, 0) == q);
		expect_zero(q, 8 * MIB, "committed");
		memset(q, SOIL, 8 * MIB);
		EXPECT(mmap(q, 8 * MIB, PROT_NONE,
			    ANON | MAP_FIXED | MAP_NORESERVE, -1, 0) == q);
		expect_segv(fault_read(q), SEGV_ACCERR, "uncommitted");
	}
	unmap(q, 64 * MIB);
	expect_clean(8 * MIB);
}

static void rule05_read_only(void)
{
	unsigned char *p;

	soil(64 * KIB);
	p = mmap(NULL, 64 * KIB, PROT_READ, ANON, -1, 0);
	EXPECT(p != MAP_FAILED);
	expect_zero(p, 64 * KIB, "PROT_READ");
	expect_segv(fault_write(p), SEGV_ACCERR, "PROT_READ");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule05_executable(void)
{
	unsigned char *p;

	if (sizeof(return_code) == 1 && return_code[0] == 0)
		probe_skip("no code for this processor");
	soil(64 * KIB);
	p = mmap(NULL, 64 * KIB, RW | PROT_EXEC, ANON, -1, 0);
	if (p == MAP_FAILED && (errno == EACCES || errno == EPERM))
		probe_skip("no memory that is writable and executable");
	EXPECT(p != MAP_FAILED);
	expect_zero(p, 64 * KIB, "PROT_EXEC");
	memcpy(p, return_code, sizeof(return_code));
	__builtin___clear_cache((char *)p, (char *)p + sizeof(return_code));
	EXPECT(fault_call(p).signal == 0);
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

/* What was served isn't executable. */
static void rule05_not_executable(void)
{
	unsigned char *p = map_reused(64 * KIB);

	memcpy(p, return_code, sizeof(return_code));
	expect_segv(fault_call(p), SEGV_ACCERR, "a call into PROT_RW");
}

static void rule05_hugetlb(void)
{
	unsigned char *p;

	soil(2 * MIB);
	p = mmap(NULL, 2 * MIB, RW, ANON | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		probe_skip("no huge pages: %s", error_name(errno));
	EXPECT((uintptr_t)p % (2 * MIB) == 0);
	EXPECT(has_vm_flag(p, "ht"));
	unmap(p, 2 * MIB);
	expect_clean(2 * MIB);
}

static void rule05_32bit(void)
{
#ifdef MAP_32BIT
	unsigned char *p;

	soil(64 * KIB);
	p = map_with(64 * KIB, MAP_32BIT);
	EXPECT((uintptr_t)p + 64 * KIB <= (uintptr_t)1 << 31);
	expect_zero(p, 64 * KIB, "MAP_32BIT");
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
#else
	probe_skip("no MAP_32BIT on this processor");
#endif
}

static void rule05_growsdown(void)
{
	unsigned char *p;

	soil(2 * PAGE);
	p = free_range(4 * MIB) + 3 * MIB;
	p = mmap(p, 2 * PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0);
	EXPECT(p != MAP_FAILED);
	EXPECT(has_vm_flag(p, "gd"));
	EXPECT(fault_write(p - 1).signal == 0);
	EXPECT(!is_hole(p - PAGE));
	unmap(p - PAGE, 3 * PAGE);
	expect_clean(2 * PAGE);
}

static void rule05_locked(void)
{
	long before = status_kib("VmLck:");
	unsigned char *p;

	soil(32 * KIB);
	p = mmap(NULL, 32 * KIB, RW, ANON | MAP_LOCKED, -1, 0);
	if (p == MAP_FAILED)
		probe_skip("no locked memory: %s", error_name(errno));
	EXPECT(status_kib("VmLck:") == before + 32);
	for (size_t at = 0; at < 32 * KIB; at += PAGE)
		EXPECT(is_resident(p + at));
	unmap(p, 32 * KIB);
	EXPECT(status_kib("VmLck:") == before);
	expect_clean(32 * KIB);
}

static void rule05_sync_is_refused_without_dax(void)
{
#ifdef MAP_SYNC
	int fd = file_of(PAGE, 0);

	FAILS(mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0),
	      EOPNOTSUPP);
#else
	probe_skip("no MAP_SYNC");
#endif
}

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 8 /* since 6.11 */
#endif

static void rule05_droppable(void)
{
	unsigned char *p;

	soil(64 * KIB);
	p = mmap(NULL, 64 * KIB, RW, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		probe_skip("no MAP_DROPPABLE: %s", error_name(errno));
	EXPECT(has_vm_flag(p, "dp"));
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

static void rule05_flags_without_effect(void)
{
	static const int flags[] = {MAP_DENYWRITE, MAP_EXECUTABLE, MAP_NONBLOCK,
				    MAP_FILE};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		soil(64 * KIB);
		expect_zero(map_with(64 * KIB, flags[i]), 64 * KIB, "a flag");
	}
}

static void populated_is_resident(size_t bytes, int flags)
{
	unsigned char *p;

	soil(bytes);
	p = map_with(bytes, flags | MAP_POPULATE);
	for (size_t at = 0; at < bytes; at += PAGE)
		EXPECT(is_resident(p + at));
	unmap(p, bytes);
}

static void rule05_populated_is_resident(void)
{
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 4)
		populated_is_resident(bytes, 0);
	populated_is_resident(MIB + 3, MAP_NORESERVE);
	populated_is_resident(7 * PAGE, MAP_STACK);
}

/* Also where the cache was emptied, and where nothing had been mapped. */
static void rule05_first_populated_is_resident(void)
{
	unsigned char *p = map_with(3 * MIB, MAP_POPULATE);

	for (size_t at = 0; at < 3 * MIB; at += PAGE)
		EXPECT(is_resident(p + at));
}

static void rule05_stack_holds_a_thread(void)
{
	unsigned char *p;

	soil(256 * KIB);
	p = map_with(256 * KIB, MAP_STACK | MAP_NORESERVE);
	OK(mprotect(p, PAGE, PROT_NONE));
	expect_segv(fault_write(p), SEGV_ACCERR, "a stack's guard");
	memset(p + PAGE, SOIL, 256 * KIB - PAGE);
	unmap(p, 256 * KIB);
	expect_clean(256 * KIB);
}

const struct probe probes_flags[] = {
	PROBE(rule05_shared_is_shared),
	PROBE(rule05_none_is_guarded),
	PROBE(rule05_reserve_and_commit),
	PROBE(rule05_read_only),
	PROBE(rule05_executable),
	PROBE(rule05_not_executable),
	PROBE(rule05_hugetlb),
	PROBE(rule05_32bit),
	PROBE(rule05_growsdown),
	PROBE(rule05_locked),
	PROBE(rule05_sync_is_refused_without_dax),
	PROBE(rule05_droppable),
	PROBE(rule05_flags_without_effect),
	PROBE(rule05_populated_is_resident),
	PROBE(rule05_first_populated_is_resident),
	PROBE(rule05_stack_holds_a_thread),
	PROBES_END,
};
