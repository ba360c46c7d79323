/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * full.c - a node of which others have nearly all ordinary memory, so that the
 * kernel would put what is populated for it on another one, without a word:
 *
 *   heap on all nodes     what the node lacks comes from its nearest, by the
 *                         library's order and counters
 *   heap on that node     comes from anywhere, and is counted as misplaced
 *   the same, bound       has what the node has, then ENOMEM
 *
 * Where blocks are is the kernel's word.
 */
#include "../vm.h"

#include <sys/mman.h>

#define LEFT_MIB 24u
#define BLOCKS 48u /* of 2 MiB */
#define ORDER 9u

static void *blocks[BLOCKS];

/* Takes the node's memory until the kernel takes others', and gives some back. */
static char *hog(unsigned node, size_t bytes)
{
	unsigned long mask = 1ul << node;
	size_t at = 0;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED && madvise(p, bytes, MADV_NOHUGEPAGE) == 0);
	CHECK(syscall(SYS_mbind, p, bytes, MPOL_PREFERRED, &mask, 64ul, 0) == 0);
	do {
		CHECK(at < bytes);
		memset(p + at, 1, MIB);
		at += MIB;
	} while (vm_node_of(p + at - 4096) == (int)node);
	CHECK(at > 2 * LEFT_MIB * MIB);
	at -= (LEFT_MIB + 1) * MIB;
	CHECK(madvise(p + at, (LEFT_MIB + 1) * MIB, MADV_DONTNEED) == 0);
	return p;
}

static struct pcpa_heap *grown_heap(const char *nodes, unsigned flags)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.nodes = nodes;
	o.max_bytes = 2 * BLOCKS * 2 * MIB;
	o.flags = flags;
	CHECK_EQ(pcpa_heap_create(&o, &heap), 0);
	return heap;
}

/* Blocks for node 0; how many there were. */
static unsigned take(struct pcpa_heap *heap)
{
	unsigned n = 0;

	while (n < BLOCKS && (blocks[n] = pcpa_alloc(heap, ORDER, PCPA_NODE(0))))
		memset(blocks[n++], 1, 2 * MIB);
	return n;
}

static void end(struct pcpa_heap *heap, unsigned n)
{
	pcpa_free_bulk(heap, blocks, n);
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
}

static void on_all_nodes(unsigned flags)
{
	struct pcpa_heap *heap = grown_heap(NULL, flags);
	struct pcpa_stats s;
	struct vm_where w;

	CHECK_EQ(take(heap), BLOCKS);
	w = vm_where(heap, blocks, BLOCKS);
	s = vm_stats(heap, 0);
	printf("%zu blocks of node 0, %zu of node 2\n", w.on[0], w.on[2]);
	CHECK(w.on[0] <= LEFT_MIB / 2);
	CHECK_EQ(w.on[0] + w.on[2], BLOCKS);
	CHECK_EQ(s.numa_hit, w.on[0]);
	CHECK_EQ(s.numa_foreign, w.on[2]);
	CHECK_EQ(vm_stats(heap, 2).numa_miss, w.on[2]);
	CHECK_EQ(vm_stats(heap, -1).misplaced_pages, 0);
	end(heap, BLOCKS);
}

/* Pages of an arena that are not on its node. */
static int elsewhere_note(const struct pcpa_arena_info *a, void *arg)
{
	for (size_t at = 0; at < a->bytes; at += 4096)
		*(uint64_t *)arg += vm_node_of((char *)a->base + at) != a->node;
	return 0;
}

static void on_that_node(void)
{
	struct pcpa_heap *heap = grown_heap("0", PCPA_HEAP_COW);
	uint64_t elsewhere = 0, counted;

	CHECK_EQ(take(heap), BLOCKS);
	CHECK_EQ(pcpa_for_each_arena(heap, elsewhere_note, &elsewhere), 0);
	counted = vm_stats(heap, 0).misplaced_pages;
	printf("%" PRIu64 " pages of other nodes, %" PRIu64 " counted\n",
	       elsewhere, counted);
	/* Every 16th page is looked at. */
	CHECK(elsewhere > 0 && counted > elsewhere - elsewhere / 8 &&
	      counted < elsewhere + elsewhere / 8);
	end(heap, BLOCKS);
}

static void on_that_node_bound(void)
{
	struct pcpa_heap *heap =
		grown_heap("0", PCPA_HEAP_COW | PCPA_HEAP_BOUND);
	unsigned n = take(heap);

	CHECK_EQ(errno, ENOMEM);
	printf("%u blocks of a bound heap\n", n);
	CHECK(n <= LEFT_MIB / 2);
	CHECK_EQ(vm_where(heap, blocks, n).on[0], n);
	CHECK_EQ(vm_stats(heap, -1).misplaced_pages, 0);
	end(heap, n);
}

int main(void)
{
	char *taken;

	vm_run_on(1, 0);
	taken = hog(0, 1024 * MIB);
	on_all_nodes(PCPA_HEAP_COW);
	on_that_node();
	on_that_node_bound();
	munmap(taken, 1024 * MIB);
	return 0;
}
