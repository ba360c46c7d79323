/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * advise.c - huge pages for mappings that the kernel serves.
 *
 *   reservations without access, from 2 MiB    the advice stays when parts become
 *                                              accessible later (V8)
 *   MAP_FIXED, readable and writable           parts of a reservation (JVM); always
 *                                              or never, as neighbours only merge
 *                                              when they are alike
 *   too large to be served                     by a class of its own for each power
 *                                              of two: of a class whose mappings
 *                                              come back untouched no more is advised,
 *                                              as the call would be all the cost
 *
 * Large mappings are remembered in a few places, so that they can be looked at when
 * they are unmapped.  A place that is lost costs a measurement.
 *
 * Not advised: shared or file mappings, and MAP_NORESERVE from 1 GiB that can be
 * written to, which are shadows and arenas of which little is touched.
 *
 * relaxed (all of this file): what is late or lost costs a look.
 *
 * Failure: advice that the kernel doesn't take changes nothing.
 */
#include "advise.h"

#include "classes.h"
#include "raw.h"
#include "serve.h"
#include "stats.h"

enum { PLACES = 64, LARGE_ORDERS = 32, LARGE_PROBE = 16 };

static const size_t huge_bytes = (size_t)2 << 20;
static const size_t sparse_bytes = (size_t)1 << 30;

static uintptr_t places[PLACES];
static struct shim_class large[LARGE_ORDERS];

static uintptr_t *place_of(uintptr_t at)
{
	return &places[(at >> 21 ^ at >> 27) % PLACES];
}

static struct shim_class *class_of(size_t bytes)
{
	return &large[shim_order_for(shim_pages(bytes)) % LARGE_ORDERS];
}

static void advise(uintptr_t at, size_t bytes)
{
	shim_count(SHIM_ADVISED);
	raw_madvise(at, bytes, MADV_HUGEPAGE);
}

static void large_mapped(uintptr_t at, size_t bytes)
{
	struct shim_class *c = class_of(bytes);
	bool cold = pcpi_load_relaxed(&c->heat) == SHIM_CLASS_COLD;

	pcpi_counter_add(&c->frees, 1);
	if (!cold)
		advise(at, bytes);
	if (pcpi_load_relaxed(&c->heat) == SHIM_UNKNOWN ||
	    pcpi_load_relaxed(&c->frees) % LARGE_PROBE == 0)
		pcpi_store_relaxed(place_of(at), at);
}

void shim_advise_unmapping(uintptr_t at, size_t bytes)
{
	uint32_t seen, resident;

	if (bytes < huge_bytes || pcpi_load_relaxed(place_of(at)) != at)
		return;
	pcpi_store_relaxed(place_of(at), (uintptr_t)0);
	resident = shim_resident(at, shim_pages(bytes), &seen);
	if (seen)
		shim_class_learn(class_of(bytes), SHIM_MAX_ORDER, resident,
				 seen);
}

void shim_advise_mapped(uintptr_t at, size_t bytes, int prot, int flags)
{
	int kind = MAP_PRIVATE | MAP_ANONYMOUS;
	bool writable = prot == (PROT_READ | PROT_WRITE);

	if ((flags & (MAP_TYPE | MAP_ANONYMOUS)) != kind)
		return;
	shim_count(SHIM_PASSED);
	if (flags & (MAP_HUGETLB | MAP_GROWSDOWN | MAP_STACK) ||
	    (writable && (flags & MAP_NORESERVE) && bytes >= sparse_bytes))
		return;
	if (writable && (flags & MAP_FIXED))
		advise(at, bytes);
	else if (prot == PROT_NONE && bytes >= huge_bytes)
		advise(at, bytes);
	else if (writable && bytes >= huge_bytes)
		large_mapped(at, bytes);
}
