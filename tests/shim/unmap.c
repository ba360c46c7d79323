/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unmap.c - rule 7: munmap takes any pages; rule 8: and then they are gone.
 *
 * The probes of rule 7 ask mincore() whether a page is mapped; those of rule 8 touch
 * it, which a library that keeps freed memory mapped can't make fail.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>

static void rule07_middle(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 4 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		unmap(p + bytes / 4, bytes / 4);
		EXPECT(is_hole(p + bytes / 4));
		EXPECT(is_hole(p + bytes / 2 - PAGE));
		expect_bytes(p, bytes / 4, SOIL, "below a hole");
		expect_bytes(p + bytes / 2, bytes / 2, SOIL, "above a hole");
		unmap(p, bytes / 4);
		unmap(p + bytes / 2, bytes / 2);
		expect_clean(bytes);
		expect_clean(bytes / 4);
	}
}

/* As programs do that want an alignment: ruby, mimalloc, the JVM. */
static void rule07_head_and_tail_trims(void)
{
	for (size_t bytes = 64 * KIB; bytes <= 4 * MIB; bytes *= 4) {
		for (unsigned i = 0; i < scaled(20); i++) {
			unsigned char *p = map_reused(2 * bytes - PAGE), *q;

			q = (unsigned char *)(((uintptr_t)p + bytes - 1) &
					      -bytes);
			if (q > p)
				unmap(p, (size_t)(q - p));
			if (q + bytes < p + 2 * bytes - PAGE)
				unmap(q + bytes, (size_t)(p - q) + bytes - PAGE);
			expect_zero(q, bytes, "after trims");
			memset(q, SOIL, bytes);
			EXPECT(q == p || is_hole(q - PAGE));
			unmap(q, bytes);
			EXPECT(is_hole(q));
			if (bytes > MIB)
				break;
		}
		expect_clean(bytes);
	}
}

static void rule07_page_by_page(void)
{
	for (size_t bytes = 2 * PAGE; bytes <= MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		for (size_t at = 0; at < bytes; at += 2 * PAGE)
			unmap(p + at, PAGE);
		for (size_t at = 0; at < bytes; at += 2 * PAGE) {
			EXPECT(is_hole(p + at));
			expect_bytes(p + at + PAGE, PAGE, SOIL, "every 2nd");
		}
		for (size_t at = PAGE; at < bytes; at += 2 * PAGE)
			unmap(p + at, PAGE);
		expect_clean(bytes);
		expect_clean(PAGE);
	}
}

/* Two calls, the second of which spans what the first left and what it took. */
static void rule07_over_what_is_gone(void)
{
	unsigned char *p = map_soiled(64 * PAGE);

	unmap(p + 8 * PAGE, 8 * PAGE);
	unmap(p + 32 * PAGE, PAGE);
	unmap(p, 64 * PAGE);
	EXPECT(is_hole(p) && is_hole(p + 33 * PAGE) && is_hole(p + 63 * PAGE));
	expect_clean(64 * PAGE);
}

static void rule07_twice(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		unmap(p, bytes);
		unmap(p, bytes);
		EXPECT(is_hole(p));
		expect_clean(bytes);
		unmap(p, bytes);
		expect_clean(bytes);
	}
}

static void rule07_twice_gives_no_memory_twice(void)
{
	enum { N = 16 };
	unsigned char *p[N];

	for (unsigned i = 0; i < N; i++)
		p[i] = map_soiled(64 * KIB);
	for (unsigned i = 0; i < N; i++) {
		unmap(p[i], 64 * KIB);
		unmap(p[i], 64 * KIB);
	}
	for (unsigned i = 0; i < N; i++) {
		p[i] = map(64 * KIB);
		memset(p[i], (int)i, 64 * KIB);
	}
	for (unsigned i = 0; i < N; i++)
		expect_bytes(p[i], 64 * KIB, (unsigned char)i, "its own");
}

static void rule07_hole(void)
{
	unsigned char *p = free_range(4 * MIB);

	unmap(p, 4 * MIB);
	unmap(p + PAGE, PAGE);
	soil(MIB);
	unmap(p, 4 * MIB);
}

static void rule07_unaligned(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	FAILS(munmap(p + 1, PAGE), EINVAL);
	FAILS(munmap(p + PAGE + 8, 4 * PAGE), EINVAL);
	FAILS(munmap(p + PAGE - 1, 15 * PAGE), EINVAL);
	expect_bytes(p, 16 * PAGE, SOIL, "after refusals");
	unmap(p, 16 * PAGE);
	FAILS(munmap(p + 1, PAGE), EINVAL);
}

static void rule07_length_zero(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	FAILS(munmap(p, 0), EINVAL);
	FAILS(munmap(p + PAGE, 0), EINVAL);
	expect_bytes(p, 16 * PAGE, SOIL, "after refusals");
}

static void rule07_beyond_all_addresses(void)
{
	unsigned char *p = map_soiled(4 * PAGE);
	volatile size_t all = SIZE_MAX;

	FAILS(munmap(p, all), EINVAL);
	FAILS(munmap(p, all - PAGE), EINVAL);
	FAILS(munmap((void *)-PAGE, PAGE), EINVAL);
	expect_bytes(p, 4 * PAGE, SOIL, "after refusals");
}

static void rule07_length_is_rounded_up(void)
{
	unsigned char *p = map_soiled(8 * PAGE);

	unmap(p, PAGE + 1);
	EXPECT(is_hole(p) && is_hole(p + PAGE) && !is_hole(p + 2 * PAGE));
	expect_bytes(p + 2 * PAGE, 6 * PAGE, SOIL, "behind");
	unmap(p + 2 * PAGE, 5 * PAGE + 5);
	EXPECT(is_hole(p + 7 * PAGE));
}

/* The length is what was asked for, on both calls; nothing accumulates. */
static void rule07_odd_length_ten_thousand_times(void)
{
	const size_t bytes = 10 * MIB + 1;
	long before, after;

	unmap(map(bytes), bytes);
	before = status_kib("VmSize:");
	for (unsigned i = 0; i < 10000; i++) {
		unsigned char *p = map(bytes);

		if (i % 100 == 0)
			p[bytes - 1] = SOIL;
		unmap(p, bytes);
	}
	after = status_kib("VmSize:");
	EXPECT(after - before <= 64 * 1024);
}

static void rule07_across_memory_and_a_file(void)
{
	int fd = file_of(8 * PAGE, 4);
	unsigned char *p = map_soiled(16 * PAGE), byte = 0;

	unmap(p + 8 * PAGE, 8 * PAGE);
	EXPECT(mmap(p + 8 * PAGE, 8 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd,
		    0) == p + 8 * PAGE);
	unmap(p + 4 * PAGE, 8 * PAGE);
	EXPECT(is_hole(p + 4 * PAGE) && is_hole(p + 11 * PAGE));
	expect_bytes(p, 4 * PAGE, SOIL, "what is left of the memory");
	expect_bytes(p + 12 * PAGE, 4 * PAGE, 4, "what is left of the file");
	unmap(p, 16 * PAGE);
	expect_clean(16 * PAGE);
	EXPECT(pread(fd, &byte, 1, 0) == 1 && byte == 4);
}

/* Neighbours that were mapped each by its own call. */
static void rule07_across_two_mappings(void)
{
	enum { N = 40 };
	unsigned char *p[N];
	unsigned found = 0;

	for (unsigned i = 0; i < N; i++) {
		p[i] = map_reused(64 * KIB);
		memset(p[i], SOIL, 64 * KIB);
	}
	for (unsigned i = 0; i + 1 < N && found < 10; i++) {
		unsigned char *low = p[i] < p[i + 1] ? p[i] : p[i + 1];

		if ((size_t)labs(p[i] - p[i + 1]) != 64 * KIB)
			continue;
		found++;
		i++; /* both are done with */
		unmap(low + 32 * KIB, 64 * KIB);
		EXPECT(is_hole(low + 32 * KIB) && is_hole(low + 64 * KIB));
		expect_bytes(low, 32 * KIB, SOIL, "the lower's rest");
		expect_bytes(low + 96 * KIB, 32 * KIB, SOIL, "the upper's rest");
	}
	if (found == 0)
		probe_skip("no two mappings are neighbours");
	for (unsigned i = 0; i < N; i++)
		unmap(p[i], 64 * KIB);
	expect_clean(64 * KIB);
}

const struct probe probes_unmap[] = {
	PROBE(rule07_middle),
	PROBE(rule07_head_and_tail_trims),
	PROBE(rule07_page_by_page),
	PROBE(rule07_over_what_is_gone),
	PROBE(rule07_twice),
	PROBE(rule07_twice_gives_no_memory_twice),
	PROBE(rule07_hole),
	PROBE(rule07_unaligned),
	PROBE(rule07_length_zero),
	PROBE(rule07_beyond_all_addresses),
	PROBE(rule07_length_is_rounded_up),
	PROBE(rule07_odd_length_ten_thousand_times),
	PROBE(rule07_across_memory_and_a_file),
	PROBE(rule07_across_two_mappings),
	PROBES_END,
};

/* ---- Rule 8 ---------------------------------------------------------------------- */

static void rule08_read_is_a_fault(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		unmap(p, bytes);
		expect_segv(fault_read(p), SEGV_MAPERR, "read of freed memory");
		expect_segv(fault_read(p + bytes - 1), SEGV_MAPERR,
			    "read of the end of freed memory");
	}
}

static void rule08_write_is_a_fault(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8) {
		unsigned char *p = map_soiled(bytes);

		unmap(p, bytes);
		expect_segv(fault_write(p), SEGV_MAPERR,
			    "write to freed memory");
	}
}

static void rule08_part_is_a_fault(void)
{
	unsigned char *p = map_soiled(16 * PAGE);

	unmap(p + 4 * PAGE, 4 * PAGE);
	expect_segv(fault_read(p + 4 * PAGE), SEGV_MAPERR, "a freed part");
	expect_segv(fault_write(p + 8 * PAGE - 1), SEGV_MAPERR, "a freed part");
	expect_bytes(p + 8 * PAGE, 8 * PAGE, SOIL, "behind the part");
}

static void rule08_calls_say_efault(void)
{
	unsigned char *p = map_soiled(64 * KIB), buffer[16];
	struct iovec here = {buffer, 16}, there = {p, 16};
	int fds[2];

	OK(pipe(fds));
	EXPECT(write(fds[1], "0123456789abcdef", 16) == 16);
	unmap(p, 64 * KIB);
	FAILS(read(fds[0], p, 16), EFAULT);
	FAILS(write(fds[1], p, 16), EFAULT);
	FAILS(process_vm_readv(getpid(), &here, 1, &there, 1, 0), EFAULT);
}

static void rule08_gone_from_maps(void)
{
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 16) {
		unsigned char *p = map_soiled(bytes);

		unmap(p, bytes);
		EXPECT(*maps_mode(p) == '\0');
		EXPECT(*maps_mode(p + bytes - PAGE) == '\0');
	}
}

static void resident_falls(size_t bytes)
{
	unsigned char *p = map(bytes);
	long full;

	memset(p, SOIL, bytes);
	full = smaps_kib(NULL, "Rss:");
	unmap(p, bytes);
	EXPECT(smaps_kib(NULL, "Rss:") <= full - (long)(bytes / KIB) + 512);
}

static void rule08_resident_falls(void)
{
	resident_falls(4 * MIB);
	resident_falls(64 * MIB);
}

/* Pages that a pipe holds are no longer this process's. */
static void rule08_spliced_pages_keep_their_bytes(void)
{
	unsigned char *p = map_soiled(PAGE), seen[PAGE];
	struct iovec v = {p, PAGE};
	int fds[2];

	OK(pipe(fds));
	if (vmsplice(fds[1], &v, 1, 0) != (ssize_t)PAGE)
		probe_skip("no vmsplice: %s", error_name(errno));
	unmap(p, PAGE);
	for (unsigned i = 0; i < 8; i++)
		memset(map(PAGE), 1, PAGE);
	EXPECT(read(fds[0], seen, PAGE) == (ssize_t)PAGE);
	expect_bytes(seen, PAGE, SOIL, "a spliced page");
}

const struct probe probes_freed[] = {
	PROBE(rule08_read_is_a_fault),
	PROBE(rule08_write_is_a_fault),
	PROBE(rule08_part_is_a_fault),
	PROBE(rule08_calls_say_efault),
	PROBE(rule08_gone_from_maps),
	PROBE(rule08_resident_falls),
	PROBE(rule08_spliced_pages_keep_their_bytes),
	PROBES_END,
};
