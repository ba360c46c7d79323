/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_range.c - the reservation, made once, and the tables beside it.
 *
 * Address space only: what is never touched costs nothing.  Nothing is reserved in a
 * program whose address space or data is limited, nor with vm.overcommit_memory=2,
 * where it would count against the program, nor without a way to tell a child
 * (pool_fork.c).
 *
 * Cost: some twenty system calls at the first mapping that is served.
 * Failure: there is no range, and the kernel serves; once and for all.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool_core.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "bits.h"
#include "control.h"
#include "raw.h"

enum { RANGE_SHIFT_MAX = 36, RANGE_SHIFT_MIN = 30 };

static uint32_t never_copied = COPIED_NO;

struct shim_range shim_range PCPI_ALIGNED(64) = {.copied = &never_copied};

/* ---- Tables -------------------------------------------------------------- */

void *shim_table_map(size_t bytes)
{
	long at = raw_mmap(0, shim_round_page(bytes), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (raw_failed(at))
		return NULL;
	raw_madvise((uintptr_t)at, shim_round_page(bytes), MADV_NOHUGEPAGE);
	return (void *)at;
}

static bool zone_init(struct shim_zone *z, uint32_t units)
{
	uint32_t windows = units >> SHIM_BIG_TOP;

	z->table_bytes[0] = pcpi_buddy_meta_bytes(windows, SHIM_BIG_TOP);
	z->table_bytes[1] = pcpi_buddy_meta_bytes(units, SHIM_UNIT_ORDER);
	for (int i = 0; i < 2; i++) {
		z->tables[i] = shim_table_map(z->table_bytes[i]);
		if (!z->tables[i])
			return false;
	}
	pcpi_buddy_init(&z->big, z->tables[0], 0, windows, SHIM_BIG_TOP);
	pcpi_buddy_init(&z->small, z->tables[1], 0, units, SHIM_UNIT_ORDER);
	return true;
}

/* The word by which a child is told from its parent. */
static bool copied_init(void)
{
	uint32_t *copied = shim_table_map(SHIM_PAGE_BYTES);

	if (!copied || raw_failed(raw_madvise((uintptr_t)copied,
					      SHIM_PAGE_BYTES, MADV_WIPEONFORK)))
		return false;
	/* relaxed: published with the pointer. */
	pcpi_store_relaxed(copied, (uint32_t)COPIED_NO);
	/* pairs with shim_fork_check(). */
	pcpi_store_release(&shim_range.copied, copied);
	return true;
}

static bool tables_init(size_t bytes)
{
	uint32_t pages = (uint32_t)(bytes >> SHIM_PAGE_SHIFT);
	uint32_t units = pages >> SHIM_UNIT_ORDER;

	shim_range.heads = shim_table_map(pages * sizeof(*shim_range.heads));
	shim_range.pages = shim_table_map(pages);
	shim_pool.used = shim_table_map(units * sizeof(*shim_pool.used));
	shim_pool.unit_zone = shim_table_map(units);
	if (!shim_range.heads || !shim_range.pages || !shim_pool.used ||
	    !shim_pool.unit_zone)
		return false;
	for (int i = 0; i < SHIM_ZONES - !shim_control.hugetlb; i++)
		if (!zone_init(&shim_pool.zones[i], units))
			return false;
	return copied_init();
}

/* As much address space as is to be had, aligned to a window; 0: none. */
static uintptr_t range_reserve(size_t *bytes)
{
	size_t window = (size_t)SHIM_WINDOW_PAGES << SHIM_PAGE_SHIFT;

	for (unsigned shift = RANGE_SHIFT_MAX; shift >= RANGE_SHIFT_MIN;
	     shift -= 2) {
		size_t size = (size_t)1 << shift;
		long at = raw_mmap(0, size + window, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   -1, 0);
		uintptr_t base;

		if (raw_failed(at))
			continue;
		base = pcpi_round_up((uintptr_t)at, window);
		if (base > (uintptr_t)at)
			raw_munmap((uintptr_t)at, base - (uintptr_t)at);
		raw_munmap(base + size, (uintptr_t)at + window - base);
		*bytes = size;
		return base;
	}
	return 0;
}

static bool limited(int resource)
{
	struct rlimit limit;
	long r = raw6(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0);

	return !raw_failed(r) && limit.rlim_cur != RLIM_INFINITY;
}

/* Does the kernel count what is promised, not what is touched?  Then a promise of
 * twice what the machine has is refused. */
static bool promises_counted(void)
{
	struct sysinfo info;
	size_t bytes;
	long at;

	if (raw_failed(raw6(SYS_sysinfo, (long)&info, 0, 0, 0, 0, 0)))
		return true;
	bytes = shim_round_page(2 * (info.totalram + info.totalswap) *
				info.mem_unit);
	at = raw_mmap(0, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (raw_failed(at))
		return true;
	raw_munmap((uintptr_t)at, bytes);
	return false;
}

static uint64_t keep_pages(void)
{
	struct sysinfo info;
	uint64_t bytes = shim_control.retain;

	if (!raw_failed(raw6(SYS_sysinfo, (long)&info, 0, 0, 0, 0, 0)))
		bytes = pcpi_min(bytes,
				 (uint64_t)info.totalram * info.mem_unit / 16);
	return bytes >> SHIM_PAGE_SHIFT;
}

static bool pool_make(void)
{
	size_t bytes;

	/* What we keep would count against the program. */
	if (limited(RLIMIT_AS) || limited(RLIMIT_DATA) || promises_counted())
		return false;
	shim_range.base = range_reserve(&bytes);
	if (!shim_range.base)
		return false;
	if (!tables_init(bytes)) {
		raw_munmap(shim_range.base, bytes);
		return false;
	}
	shim_pool.limit_pages = keep_pages();
	shim_pool.max_bytes = bytes;
	/* pairs with shim_inside(). */
	pcpi_store_release(&shim_range.bytes, bytes);
	return true;
}

bool shim_pool_ready(void)
{
	/* pairs with the store below. */
	uint32_t state = pcpi_load_acquire(&shim_pool.state);

	if (pcpi_likely(state == POOL_READY))
		return true;
	if (state != POOL_NONE)
		return false;
	/* pairs with itself: one makes it, the others go to the kernel. */
	if (!pcpi_cas_acq_rel(&shim_pool.state, &state, (uint32_t)POOL_MAKING))
		return false;
	if (!pool_make()) {
		/* pairs with the load above. */
		pcpi_store_release(&shim_pool.state, (uint32_t)POOL_GONE);
		return false;
	}
	state = POOL_MAKING;
	/* pairs with the load above; a dissolve may have come in between. */
	if (!pcpi_cas_acq_rel(&shim_pool.state, &state, (uint32_t)POOL_READY)) {
		shim_range_forget();
		return false;
	}
	if (shim_control.populate)
		shim_pool_populate(shim_control.populate);
	return true;
}
