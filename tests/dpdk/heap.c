/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.c - heaps whose memory EAL is told of (pcpalloc/dpdk.h): what it knows is what
 * they have, while they grow, shrink and go.
 *
 *     heap CASE
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pcpalloc/dpdk.h>
#include <pcpalloc/stats.h>

#include "eal.h"
#include "replaced.h"

#define MIB ((size_t)1 << 20)
#define MANY 16384u

static void *blocks[MANY];

static struct pcpa_heap *heap_make(size_t initial, size_t max)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.initial_bytes = initial;
	o.max_bytes = max;
	expect(pcpa_heap_create(&o, &heap) == 0, "a heap");
	return heap;
}

/* Bytes that EAL knows of, all of which are the test's heaps'. */
static int list_add(const struct rte_memseg_list *list, void *bytes)
{
	if (list->external)
		*(uint64_t *)bytes += list->len;
	return 0;
}

static uint64_t known_bytes(void)
{
	uint64_t bytes = 0;

	rte_memseg_list_walk(list_add, &bytes);
	return bytes;
}

/* The test's addresses for devices are the virtual ones, also where they are said to
 * be physical. */
static void where_is(char *at, const struct rte_memseg_list *list)
{
	const struct rte_memseg *page = rte_mem_virt2memseg(at, list);

	expect(page && page->iova == (uintptr_t)page->addr && at >= (char *)page->addr &&
	       at < (char *)page->addr + page->len, "its page");
	expect(pcpa_dpdk_iova(at) == (uintptr_t)at, "where it is");
	replaced.physical = true;
	expect(pcpa_dpdk_iova(at) == (uintptr_t)at, "where its page is");
	replaced.physical = false;
}

/* Each arena is one of EAL's lists, in pages with addresses. */
static int arena_known(const struct pcpa_arena_info *arena, void *bytes)
{
	const struct rte_memseg_list *list = rte_mem_virt2memseg_list(arena->base);

	expect(list && list->external && list->base_va == arena->base &&
	       list->len == arena->bytes, "EAL knows the arena");
	for (size_t at = 0; at < arena->bytes; at += 100000)
		where_is((char *)arena->base + at, list);
	*(uint64_t *)bytes += arena->bytes;
	return 0;
}

/* EAL knows this, and nothing else. */
static uint64_t known_of(struct pcpa_heap *heap)
{
	uint64_t bytes = 0;

	pcpa_for_each_arena(heap, arena_known, &bytes);
	expect(known_bytes() == bytes, "EAL knows of what there is only");
	return bytes;
}

static struct pcpa_stats stats_of(struct pcpa_heap *heap)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	expect(pcpa_stats_read(heap, -1, &s) == 0, "statistics");
	return s;
}

/* A trim has whole arenas go, and parts stay. */
static void case_grow(void)
{
	struct pcpa_heap *heap;
	uint64_t before, after;
	size_t n;

	replaced.vfio = true;
	eal_begin(NULL);
	heap = heap_make(4 * MIB, 64 * MIB);
	expect(pcpa_dpdk_register(heap) == 0, "registered");
	expect(pcpa_dpdk_register(heap) == -EBUSY, "once");
	before = known_of(heap);
	expect(before >= 4 * MIB, "what there was");
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, MANY);
	expect(n == MANY, "it grows");
	expect(known_of(heap) == 64 * MIB, "what came");
	expect(replaced.mapped_bytes == 64 * MIB && !replaced.unmapped_bytes,
	       "VFIO, too");
	pcpa_free_bulk(heap, blocks, n);
	replaced.attached = true;
	expect(pcpa_heap_trim(heap, 6 * MIB) == 0, "EAL forgets nothing");
	expect(replaced.unmapped_bytes == 0, "so VFIO doesn't");
	replaced.attached = false;
	pcpa_heap_trim(heap, 6 * MIB);
	after = known_of(heap);
	expect(after < 64 * MIB, "some went");
	expect(replaced.mapped_bytes - replaced.unmapped_bytes == after, "of VFIO's");
	pcpa_heap_trim(heap, 1 * MIB);
	known_of(heap);
	expect(stats_of(heap).trim_vetoed > 0, "a part of an arena stays");
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, MANY);
	expect(n == MANY, "it grows again");
	expect(known_of(heap) == 64 * MIB, "what came again");
	pcpa_free_bulk(heap, blocks, n);
	expect(pcpa_heap_destroy(heap) == 0, "the end");
	expect(known_bytes() == 0, "EAL has forgotten");
	expect(replaced.mapped_bytes == replaced.unmapped_bytes, "VFIO, too");
	replaced.physical = true;
	expect(pcpa_dpdk_iova(blocks[0]) == RTE_BAD_IOVA, "no address");
}

/* A heap that EAL has no place for doesn't grow, and one more isn't registered. */
static void case_table(void)
{
	struct pcpa_heap *heaps[RTE_MAX_MEMSEG_LISTS], *last;
	unsigned n = 0;

	eal_begin(NULL);
	last = heap_make(2 * MIB, 4 * MIB);
	expect(pcpa_dpdk_register(last) == 0, "registered");
	do
		heaps[n] = heap_make(2 * MIB, 2 * MIB);
	while (pcpa_dpdk_register(heaps[n]) == 0 && ++n < RTE_DIM(heaps));
	expect(n > 50 && n < RTE_DIM(heaps), "EAL has some places");
	said_has("EAL takes no 2048 KiB more memory: No space left on device");
	expect(pcpa_alloc_bulk(last, 0, 0, blocks, 1024) == 512 && errno == ENOMEM,
	       "it doesn't grow");
	expect(stats_of(last).grow_vetoed > 0, "which is counted");
	pcpa_free_bulk(last, blocks, 512);
	expect(pcpa_heap_destroy(heaps[0]) == 0, "a place");
	usleep(20000); /* growth that was refused twice is tried after 10 ms */
	expect(pcpa_alloc_bulk(last, 0, 0, blocks, 1024) == 1024, "it grows");
	pcpa_free_bulk(last, blocks, 1024);
	expect(pcpa_heap_destroy(last) == 0, "the end");
	for (unsigned i = 1; i <= n; i++)
		expect(pcpa_heap_destroy(heaps[i]) == 0, "the end");
	expect(known_bytes() == 0, "EAL has forgotten");
}

/* What is no hugetlb page has no physical address; VFIO may refuse. */
static void case_refused(void)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	eal_begin(NULL);
	replaced.physical = true;
	o.initial_bytes = 2 * MIB;
	o.hugepage_bytes = 4096;
	expect(pcpa_heap_create(&o, &heap) == 0, "a heap of base pages");
	expect(pcpa_dpdk_register(heap) == -ENOTSUP, "not registered");
	said_has("2048 KiB have no physical addresses, which are known of hugetlb "
		 "pages only: reserve more of these, or add --iova-mode=va");
	expect(known_bytes() == 0, "EAL knows nothing");
	replaced.physical = false;
	replaced.vfio = replaced.noiommu = true;
	expect(pcpa_dpdk_register(heap) == 0, "registered");
	expect(replaced.mapped_bytes == 0, "there is no IOMMU");
	pcpa_heap_notify(heap, NULL, NULL);
	replaced.noiommu = false;
	replaced.unmappable = true;
	expect(pcpa_dpdk_register(heap) == 0, "registered");
	said_has("2048 KiB not mapped for VFIO: No space left on device");
	known_of(heap);
	expect(pcpa_heap_destroy(heap) == 0, "the end");
	expect(known_bytes() == 0, "EAL has forgotten");
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "grow") == 0)
		case_grow();
	else if (argc == 2 && strcmp(argv[1], "table") == 0)
		case_table();
	else if (argc == 2 && strcmp(argv[1], "refused") == 0)
		case_refused();
	else
		return 2;
	return 0;
}
