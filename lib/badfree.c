/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * badfree.c - frees that can't be.  Layer 5, part of heap.h.
 *
 * Owns: which pointers are refused and why; what is counted and said of them.
 *
 * BF1  A free that is refused changes nothing but a counter.
 *
 * Without PCPA_HEAP_CHECKS the first of a heap is said in one line, at
 * verbosity 1.  With it each is, together with whose block it was, and the
 * process aborts.
 *
 * Concurrency: any thread; the list of heaps is walked under its lock, with
 * PCPA_HEAP_CHECKS only.  Cost: a system call a line.
 * Proved by tests/unit/test_api.c, tests/unit/test_checks.c.
 */
#include <stdlib.h>

#include "heap.h"
#include "list.h"

const char *pcpi_page_fault(const struct pcpa_heap *heap, const void *block,
			    uint32_t *pfn)
{
	size_t page = (size_t)1 << heap->hot.page_shift;
	uint64_t off = (uint64_t)((uintptr_t)block - (uintptr_t)heap->hot.base);

	if (off >= heap->space.bytes)
		return "not of this heap";
	if (off & (page - 1))
		return "not the start of a page";
	*pfn = (uint32_t)(off >> heap->hot.page_shift);
	return NULL;
}

const char *pcpi_free_fault(const struct pcpa_heap *heap, const void *block,
			    uint32_t *pfn, unsigned *order)
{
	const char *why = pcpi_page_fault(heap, block, pfn);
	unsigned byte;

	if (why)
		return why;
	byte = pcpi_page_read(heap->hot.orders, *pfn);
	if (byte == PCPI_PAGE_NONE || byte == PCPI_PAGE_ISOLATED ||
	    byte == PCPI_PAGE_GOING)
		return "free already, or never allocated";
	if (byte == PCPI_PAGE_CONTIG)
		return "a contiguous range, for pcpa_free_contig()";
	if (byte & PCPI_PAGE_TAIL)
		return "inside a block, not its start";
	if (byte & PCPI_PAGE_HELD)
		return "free already";
	*order = byte - 1;
	return NULL;
}

static bool has_address(const struct pcpa_heap *heap, const void *block)
{
	return (uintptr_t)block - (uintptr_t)heap->hot.base < heap->space.bytes;
}

static void block_say(const struct pcpa_heap *heap, const void *block,
		      const char *now)
{
	uintptr_t off = (uintptr_t)block - (uintptr_t)heap->hot.base;
	uint32_t pfn = (uint32_t)(off >> heap->hot.page_shift);

	if (heap->checks.notes)
		pcpi_checks_say(&heap->checks, pfn,
				pcpi_zone_of(&heap->env, pfn)->config.os_node, now);
	else
		pcpi_checks_say_here(&heap->checks, now);
}

/* Says whose the address is: of this heap, another, or none. */
static void owner_say(const struct pcpa_heap *heap, const void *block)
{
	static const char now[] = "freed now";
	const struct pcpa_heap *h, *owner = NULL;

	if (has_address(heap, block)) {
		block_say(heap, block, now);
		return;
	}
	/* A handler may have interrupted the lock's holder. */
	if (!pcpi_lock_try(&pcpi_heaps_lock)) {
		pcpi_checks_say_here(&heap->checks, now);
		return;
	}
	pcpi_list_each(h, &pcpi_heaps, link)
		if (has_address(h, block))
			owner = h;
	if (owner) {
		pcpi_sys_say("  it belongs to heap %p", (const void *)owner);
		block_say(owner, block, now);
	} else {
		pcpi_sys_say("  it belongs to no heap");
		pcpi_checks_say_here(&heap->checks, now);
	}
	pcpi_lock_drop(&pcpi_heaps_lock);
}

void pcpi_free_refuse(struct pcpa_heap *heap, const void *block,
		      const char *why, int said)
{
	bool aborts = heap->options_flags & PCPA_HEAP_CHECKS;

	/* relaxed: a counter, and a message that may come twice. */
	pcpi_fetch_add_relaxed(&heap->bad_frees, 1);
	if (aborts ||
	    (heap->verbosity > 0 && !pcpi_load_relaxed(&heap->bad_free_said))) {
		pcpi_store_relaxed(&heap->bad_free_said, true);
		if (said < 0)
			pcpi_sys_say("heap %p: refused to free %p: %s",
				     (void *)heap, block, why);
		else
			pcpi_sys_say("heap %p: refused to free %p as of order %d: "
				     "%s", (void *)heap, block, said, why);
	}
	if (aborts) {
		owner_say(heap, block);
		abort();
	}
}
