/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_areas.c - what the real kernel makes of a heap's memory, on any machine
 * and as anybody.
 *
 *   transparent   without hugetlb pages nearly all of a heap is in transparent
 *                 ones; left out where the kernel gives none to anybody
 *   core dumps    no area of a heap is part of them, unless it is to be
 *   children      a heap's areas aren't inherited, unless it is copy-on-write
 *   reservation   what isn't backed is without access and not charged
 *   flat          the number of areas is the same after growing and trimming
 *                 hundreds of times, and after many allocations; a fork works then
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "../support/children.h"
#include "../support/heap_new.h"
#include "../support/smaps.h"
#include "heap.h"

#define MIB ((size_t)1 << 20)
#define BYTES (64 * MIB)
#define ROUNDS 200u
#define BLOCKS 12u

static struct pcpa_heap *make(size_t initial, size_t max, unsigned flags)
{
	struct pcpa_heap *heap;

	CHECK(heap_new(NULL, initial, max, flags, &heap) == 0);
	return heap;
}

static struct smaps look(const struct pcpa_heap *heap, const char *flag)
{
	return smaps_read(heap->space.base, heap->space.bytes, flag);
}

/* Of so many bytes in a mapping of our own, with the same calls. */
static unsigned long huge_kib_for_anybody(void)
{
	size_t all = BYTES + 2 * MIB;
	char *raw = mmap(NULL, all, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = raw + (-(uintptr_t)raw & (2 * MIB - 1));
	unsigned long kib = 0;

	if (raw == MAP_FAILED)
		return 0;
	if (madvise(at, BYTES, MADV_HUGEPAGE) == 0) {
		memset(at, 1, BYTES);
		kib = smaps_read(at, BYTES, "").huge_kib;
	}
	munmap(raw, all);
	return kib;
}

static void transparent(void)
{
	struct pcpa_heap *heap;

	if (huge_kib_for_anybody() < BYTES >> 10) {
		puts("transparent: left out, the kernel gives none now");
		return;
	}
	/* Copy-on-write heaps never use hugetlb pages. */
	heap = make(BYTES, BYTES, PCPA_HEAP_COW);
	EXPECT(look(heap, "").huge_kib >= (BYTES >> 10) / 100 * 95);
	EXPECT(pcpa_heap_destroy(heap) == 0);
}

static void dumped_and_inherited(void)
{
	static const unsigned flags[] = { 0, PCPA_HEAP_COW, PCPA_HEAP_DUMP,
					  PCPA_HEAP_COW | PCPA_HEAP_DUMP };
	struct smaps s;

	for (unsigned i = 0; i < 4; i++) {
		struct pcpa_heap *heap = make(8 * MIB, BYTES, flags[i]);

		s = look(heap, " dd");
		EXPECT(s.areas > 0);
		EXPECT(s.flagged == (flags[i] & PCPA_HEAP_DUMP ? 0 : s.areas));
		s = look(heap, " dc");
		EXPECT(s.flagged == (flags[i] & PCPA_HEAP_COW ? 0 : s.areas));
		EXPECT(pcpa_heap_destroy(heap) == 0);
	}
}

/* " ac": the kernel charges the area against what it may promise. */
static void reserved(void)
{
	struct pcpa_heap *heap = make(0, BYTES, PCPA_HEAP_COW);
	struct smaps s = look(heap, " ac");

	EXPECT(s.areas > 0);
	EXPECT(s.closed == s.areas);
	EXPECT(s.flagged == 0);
	EXPECT(pcpa_heap_destroy(heap) == 0);
}

/* A block of a huge page each, every other kept over a trim. */
static void round_trip(struct pcpa_heap *heap, unsigned round)
{
	unsigned order = pcpa_heap_max_order(heap), n = 0, i;
	void *at[BLOCKS], *small[BLOCKS];

	while (n < BLOCKS && (at[n] = pcpa_alloc(heap, order, 0)))
		n++;
	EXPECT(n == BLOCKS);
	for (i = round % 2; i < n; i += 2)
		pcpa_free(heap, at[i]);
	pcpa_heap_trim(heap, 0);
	EXPECT(pcpa_alloc_bulk(heap, 0, 0, small, BLOCKS) == BLOCKS);
	pcpa_free_bulk(heap, small, BLOCKS);
	for (i = (round + 1) % 2; i < n; i += 2)
		pcpa_free(heap, at[i]);
	pcpa_heap_trim(heap, round % 8 * 4 * MIB);
}

static void forks(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	EXPECT(child_status(pid) == 0);
}

static void flat(void)
{
	size_t huge = 2 * MIB;
	struct pcpa_heap *heap = make(0, (BLOCKS + 8) * huge, PCPA_HEAP_COW);
	unsigned before = 0, i;

	for (i = 0; i < ROUNDS; i++) {
		round_trip(heap, i);
		if (i == 10)
			before = smaps_areas();
	}
	EXPECT(smaps_areas() <= before + 2);
	for (i = 0; i < 1000 * ROUNDS; i++)
		pcpa_free(heap, pcpa_alloc(heap, i % 4, 0));
	EXPECT(smaps_areas() <= before + 2);
	forks();
	EXPECT(pcpa_heap_destroy(heap) == 0);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	transparent();
	dumped_and_inherited();
	reserved();
	flat();
	return failures != 0;
}
