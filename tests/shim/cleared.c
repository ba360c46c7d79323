/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cleared.c - rule 12: advice, memory policies and protection keys take effect on
 * memory that was reused, and are gone when it is mapped the next time; rule 13:
 * mlock and mincore.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <linux/mempolicy.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- Advice that changes what an area is ------------------------------------------ */

/* Advises half of a reused block, checks the flag, and what comes after. */
static void flag_is_set_and_cleared(size_t bytes, int advice, const char *flag)
{
	unsigned char *p = map_soiled(bytes), *q = p + bytes / 2;

	if (madvise(q, bytes / 2, advice) != 0)
		probe_skip("madvise(%d): %s", advice, error_name(errno));
	EXPECT(has_vm_flag(q, flag));
	EXPECT(!has_vm_flag(q - 1, flag));
	expect_bytes(p, bytes, SOIL, "after advice");
	unmap(p, bytes);
	expect_clean(bytes);
	expect_clean(bytes / 2);
}

static void flag_for_sizes(int advice, const char *flag)
{
	for (size_t bytes = 2 * PAGE; bytes <= 4 * MIB; bytes *= 8)
		flag_is_set_and_cleared(bytes, advice, flag);
}

static void rule12_dontfork_flag(void)
{
	flag_for_sizes(MADV_DONTFORK, "dc");
}

static void rule12_wipeonfork_flag(void)
{
	flag_for_sizes(MADV_WIPEONFORK, "wf");
}

/* Cleared where it makes a difference: in mappings with room for huge pages. */
static void rule12_nohugepage_flag(void)
{
	for (size_t bytes = 2 * PAGE; bytes <= 8 * MIB; bytes *= 4) {
		unsigned char *p = map_soiled(bytes);

		if (madvise(p, bytes, MADV_NOHUGEPAGE) != 0)
			probe_skip("no MADV_NOHUGEPAGE: %s", error_name(errno));
		EXPECT(has_vm_flag(p, "nh"));
		EXPECT(has_vm_flag(p + bytes - PAGE, "nh"));
		expect_bytes(p, bytes, SOIL, "after advice");
		unmap(p, bytes);
		for (unsigned i = 0; i < 4 && bytes >= 4 * MIB; i++) {
			p = map(bytes);
			EXPECT(!has_vm_flag(p + bytes / 2, "nh"));
		}
	}
}

static void rule12_dontdump_flag(void)
{
	flag_for_sizes(MADV_DONTDUMP, "dd");
}

static void rule12_mergeable_flag(void)
{
	flag_for_sizes(MADV_MERGEABLE, "mg");
}

struct block {
	unsigned char *p;
	size_t bytes;
};

static void child_has_none(void *arg)
{
	struct block *b = arg;

	expect_segv(fault_read(b->p), SEGV_MAPERR, "MADV_DONTFORK in a child");
}

static void child_has_zeros(void *arg)
{
	struct block *b = arg;

	expect_zero(b->p, b->bytes, "MADV_WIPEONFORK in a child");
}

static void child_has_soil(void *arg)
{
	struct block *b = arg;

	expect_bytes(b->p, b->bytes, SOIL, "inherited");
}

static void rule12_dontfork(void)
{
	struct block b = {map_soiled(MIB), MIB}, half = b;

	half.p += 512 * KIB;
	half.bytes = 512 * KIB;
	OK(madvise(half.p, half.bytes, MADV_DONTFORK));
	in_child(child_has_none, &half);
	half.p = b.p;
	in_child(child_has_soil, &half);
	OK(madvise(b.p, MIB, MADV_DOFORK));
	in_child(child_has_soil, &b);
	OK(madvise(b.p, MIB, MADV_DONTFORK));
	unmap(b.p, MIB);
	/* Of the next ones a child has all. */
	for (unsigned i = 0; i < 8; i++) {
		b.p = map(MIB);
		memset(b.p, SOIL, MIB);
		in_child(child_has_soil, &b);
	}
}

static void rule12_wipeonfork(void)
{
	struct block b = {map_soiled(MIB), MIB};

	OK(madvise(b.p, MIB, MADV_WIPEONFORK));
	in_child(child_has_zeros, &b);
	expect_bytes(b.p, MIB, SOIL, "the parent's");
	OK(madvise(b.p, MIB, MADV_KEEPONFORK));
	in_child(child_has_soil, &b);
	OK(madvise(b.p, MIB, MADV_WIPEONFORK));
	unmap(b.p, MIB);
	for (unsigned i = 0; i < 8; i++) {
		b.p = map(MIB);
		memset(b.p, SOIL, MIB);
		in_child(child_has_soil, &b);
	}
}

/* ---- Memory policy ---------------------------------------------------------------- */

static int policy_of(void *p)
{
	int mode = -1;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, p, MPOL_F_ADDR) != 0)
		probe_skip("get_mempolicy: %s", error_name(errno));
	return mode;
}

static void rule12_policy(void)
{
	unsigned long node0 = 1;

	for (size_t bytes = 2 * PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		if (syscall(SYS_mbind, p, bytes, MPOL_BIND, &node0, 64UL,
			    0UL) != 0)
			probe_skip("mbind: %s", error_name(errno));
		EXPECT(policy_of(p) == MPOL_BIND);
		EXPECT(policy_of(p + bytes - PAGE) == MPOL_BIND);
		unmap(p, bytes);
		for (unsigned i = 0; i < 8; i++) {
			p = map(bytes);
			EXPECT(policy_of(p) == MPOL_DEFAULT);
			EXPECT(policy_of(p + bytes - PAGE) == MPOL_DEFAULT);
		}
	}
}

static void rule12_policy_of_a_hole(void)
{
	unsigned char *p = map_soiled(64 * KIB);
	unsigned long node0 = 1;

	if (syscall(SYS_mbind, p, 64 * KIB, MPOL_BIND, &node0, 64UL, 0UL) != 0)
		probe_skip("mbind: %s", error_name(errno));
	unmap(p, 64 * KIB);
	FAILS(syscall(SYS_mbind, p, 64 * KIB, MPOL_BIND, &node0, 64UL, 0UL),
	      EFAULT);
	expect_clean(64 * KIB);
}

/* ---- Names and seals ---------------------------------------------------------------- */

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static void rule12_name(void)
{
	unsigned char *p = map_soiled(MIB);

	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, MIB, "probe") != 0)
		probe_skip("no names of areas: %s", error_name(errno));
	EXPECT(maps_name_is(p, "[anon:probe]"));
	unmap(p, MIB);
	for (unsigned i = 0; i < 8; i++)
		EXPECT(!maps_name_is(map(MIB), "[anon:probe]"));
}

/* Of a part, of a mapping that is freed in parts, of one that moves. */
static void rule12_name_in_parts(void)
{
	unsigned char *p;

	for (unsigned i = 0; i < 4; i++) {
		size_t from = i == 0 ? PAGE : 0;

		p = map_soiled(MIB);
		if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p + from, MIB - from,
			  "probe") != 0)
			probe_skip("no names of areas: %s", error_name(errno));
		EXPECT(maps_name_is(p + PAGE, "[anon:probe]"));
		EXPECT(maps_name_is(p, "[anon:probe]") == (from == 0));
		if (i == 1) {
			unmap(p + MIB / 2, MIB / 2);
			EXPECT(maps_name_is(p, "[anon:probe]"));
			unmap(p, MIB / 2);
		} else if (i == 2) {
			unmap(p, MIB / 2);
			EXPECT(maps_name_is(p + MIB / 2, "[anon:probe]"));
			unmap(p + MIB / 2, MIB / 2);
		} else if (i == 3) {
			p = mremap(p, MIB, 4 * MIB, MREMAP_MAYMOVE);
			EXPECT(p != MAP_FAILED);
			EXPECT(maps_name_is(p, "[anon:probe]"));
			expect_bytes(p, MIB, SOIL, "named, moved");
			unmap(p, 4 * MIB);
		} else {
			unmap(p, MIB);
		}
		for (unsigned k = 0; k < 8; k++)
			EXPECT(!maps_name_is(map(MIB), "[anon:probe]"));
		expect_clean(MIB);
	}
}

#define SEAL_CALL 462L /* mseal, since 6.10 */

static void rule12_seal(void)
{
	unsigned char *p = map_soiled(64 * KIB);

	if (syscall(SEAL_CALL, p, 64 * KIB, 0L) != 0)
		probe_skip("no mseal: %s", error_name(errno));
	FAILS(munmap(p, 64 * KIB), EPERM);
	FAILS(munmap(p + PAGE, PAGE), EPERM);
	FAILS(mprotect(p, PAGE, PROT_READ), EPERM);
	FAILS(mmap(p, PAGE, RW, ANON | MAP_FIXED, -1, 0), EPERM);
	FAILS(mremap(p, 64 * KIB, PAGE, MREMAP_MAYMOVE), EPERM);
	expect_clean(64 * KIB);
	expect_bytes(p, 64 * KIB, SOIL, "sealed");
}

/* ---- Protection keys --------------------------------------------------------------- */

static void rule12_protection_key(void)
{
	int key = pkey_alloc(0, 0);
	unsigned char *p;

	if (key < 0)
		probe_skip("no protection keys: %s", error_name(errno));
	p = map_soiled(MIB);
	OK(pkey_mprotect(p, MIB, RW, key));
	EXPECT(smaps_kib(p, "ProtectionKey:") == key);
	OK(pkey_set(key, PKEY_DISABLE_ACCESS));
	unmap(p, MIB);
	for (unsigned i = 0; i < 8; i++) {
		p = map(MIB);
		EXPECT(smaps_kib(p, "ProtectionKey:") == 0);
		expect_zero(p, MIB, "after a protection key");
	}
}

static void rule12_protection_key_denies(void)
{
	int key = pkey_alloc(0, 0);
	unsigned char *p;

	if (key < 0)
		probe_skip("no protection keys: %s", error_name(errno));
	p = map_soiled(64 * KIB);
	OK(pkey_mprotect(p + PAGE, PAGE, RW, key));
	OK(pkey_set(key, PKEY_DISABLE_WRITE));
	expect_segv(fault_write(p + PAGE), SEGV_PKUERR, "a denied write");
	EXPECT(fault_write(p).signal == 0);
	EXPECT(fault_write(p + 2 * PAGE).signal == 0);
}

const struct probe probes_cleared[] = {
	PROBE(rule12_dontfork_flag),
	PROBE(rule12_wipeonfork_flag),
	PROBE(rule12_nohugepage_flag),
	PROBE(rule12_dontdump_flag),
	PROBE(rule12_mergeable_flag),
	PROBE(rule12_dontfork),
	PROBE(rule12_wipeonfork),
	PROBE(rule12_policy),
	PROBE(rule12_policy_of_a_hole),
	PROBE(rule12_name),
	PROBE(rule12_name_in_parts),
	PROBE(rule12_seal),
	PROBE(rule12_protection_key),
	PROBE(rule12_protection_key_denies),
	PROBES_END,
};

/* ---- Rule 13 ----------------------------------------------------------------------- */

static void rule13_mlock_of_a_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p, 16 * PAGE);
	FAILS(mlock(p, PAGE), ENOMEM);
	FAILS(mlock(p + 2 * PAGE, 4 * PAGE), ENOMEM);
	FAILS(munlock(p, PAGE), ENOMEM);
	expect_clean(16 * PAGE);
}

static void rule13_mlock_into_a_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p + 4 * PAGE, 4 * PAGE);
	FAILS(mlock(p, 8 * PAGE), ENOMEM);
	FAILS(munlock(p, 8 * PAGE), ENOMEM);
	unmap(p, 16 * PAGE);
	EXPECT(status_kib("VmLck:") == 0);
	expect_clean(16 * PAGE);
}

static void rule13_mincore_of_a_hole(void)
{
	unsigned char *p = map_soiled(16 * PAGE), vec[16];

	OK(mincore(p, 16 * PAGE, vec));
	unmap(p + 4 * PAGE, PAGE);
	FAILS(mincore(p, 16 * PAGE, vec), ENOMEM);
	OK(mincore(p, 4 * PAGE, vec));
	OK(mincore(p + 5 * PAGE, 11 * PAGE, vec));
	unmap(p, 16 * PAGE);
	FAILS(mincore(p, 16 * PAGE, vec), ENOMEM);
	FAILS(mincore(p + 15 * PAGE, PAGE, vec), ENOMEM);
	expect_clean(16 * PAGE);
}

static void rule13_mincore_refuses(void)
{
	unsigned char *p = map_soiled(16 * PAGE), vec[16];

	FAILS(mincore(p + 1, PAGE, vec), EINVAL);
	FAILS(mincore(p, PAGE, (unsigned char *)1), EFAULT);
	memset(vec, 0xff, sizeof(vec));
	OK(mincore(p, 0, vec));
	OK(mincore(p, 16 * PAGE, vec));
	for (unsigned i = 0; i < 16; i++)
		EXPECT(vec[i] & 1);
}

static void rule13_msync(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	OK(msync(p, 16 * PAGE, MS_SYNC));
	unmap(p + 4 * PAGE, PAGE);
	FAILS(msync(p, 16 * PAGE, MS_ASYNC), ENOMEM);
	FAILS(msync(p + 1, PAGE, MS_SYNC), EINVAL);
	unmap(p, 16 * PAGE);
	FAILS(msync(p, PAGE, MS_SYNC), ENOMEM);
}

static void rule13_freeing_unlocks(void)
{
	for (size_t bytes = PAGE; bytes <= 64 * KIB; bytes *= 4) {
		unsigned char *p = map_soiled(bytes);

		if (mlock(p, bytes) != 0)
			probe_skip("no locked memory: %s", error_name(errno));
		EXPECT(status_kib("VmLck:") == (long)(bytes / KIB));
		unmap(p, bytes);
		EXPECT(status_kib("VmLck:") == 0);
		expect_clean(bytes);
		EXPECT(status_kib("VmLck:") == 0);
	}
}

static void rule13_freeing_a_part_unlocks_it(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	if (mlock(p, 16 * PAGE) != 0)
		probe_skip("no locked memory: %s", error_name(errno));
	unmap(p + 4 * PAGE, 8 * PAGE);
	EXPECT(status_kib("VmLck:") == 32);
	EXPECT(has_vm_flag(p, "lo") && has_vm_flag(p + 12 * PAGE, "lo"));
	expect_clean(8 * PAGE);
	unmap(p, 16 * PAGE);
	EXPECT(status_kib("VmLck:") == 0);
}

static void rule13_lock_on_fault(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	if (mlock2(p, 16 * PAGE, MLOCK_ONFAULT) != 0)
		probe_skip("no mlock2: %s", error_name(errno));
	EXPECT(has_vm_flag(p, "lo"));
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
}

static void rule13_lock_all_that_comes(void)
{
	unsigned char *p;

	soil(64 * KIB);
	if (mlockall(MCL_FUTURE) != 0)
		probe_skip("no mlockall: %s", error_name(errno));
	p = mmap(NULL, 64 * KIB, RW, ANON, -1, 0);
	if (p == MAP_FAILED)
		probe_skip("no more locked memory: %s", error_name(errno));
	EXPECT(has_vm_flag(p, "lo"));
	for (size_t at = 0; at < 64 * KIB; at += PAGE)
		EXPECT(is_resident(p + at));
	OK(munlockall());
	EXPECT(status_kib("VmLck:") == 0);
	EXPECT(!has_vm_flag(p, "lo"));
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

/* An ordinary user whose limit is above what the program has: what a cache
   reserves isn't counted, and not made resident. */
static void rule13_lock_all_that_is(void)
{
	struct rlimit limit;
	unsigned char *p = map_soiled(64 * KIB);
	long before;

	OK(getrlimit(RLIMIT_MEMLOCK, &limit));
	if (limit.rlim_max > 128 * MIB)
		limit.rlim_max = 128 * MIB;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_cur < 8 * MIB)
		probe_skip("RLIMIT_MEMLOCK is lower than this program");
	OK(setrlimit(RLIMIT_MEMLOCK, &limit));
	if (!become_nobody())
		probe_skip("can't become an ordinary user");
	before = smaps_kib(NULL, "Rss:");
	OK(mlockall(MCL_CURRENT));
	EXPECT(has_vm_flag(p, "lo"));
	EXPECT(smaps_kib(NULL, "Rss:") - before < 64 * 1024);
	OK(munlockall());
	unmap(p, 64 * KIB);
	expect_clean(64 * KIB);
}

const struct probe probes_lock[] = {
	PROBE(rule13_mlock_of_a_hole),
	PROBE(rule13_mlock_into_a_hole),
	PROBE(rule13_mincore_of_a_hole),
	PROBE(rule13_mincore_refuses),
	PROBE(rule13_msync),
	PROBE(rule13_freeing_unlocks),
	PROBE(rule13_freeing_a_part_unlocks_it),
	PROBE(rule13_lock_on_fault),
	PROBE(rule13_lock_all_that_comes),
	PROBE(rule13_lock_all_that_is),
	PROBES_END,
};
