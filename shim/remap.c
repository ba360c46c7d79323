/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remap.c - mremap() of memory in the range, or onto it.
 *
 *   smaller            the rest is unmapped
 *   larger, in place   as far as the extent goes beyond its mapping
 *   larger, moved      below 2 MiB: new memory, copied
 *                      else the kernel moves the pages away: first as they are, with
 *                      MREMAP_DONTUNMAP, so that the range never has a hole into
 *                      which another thread's mapping could fall; then it grows them
 *                      outside; several areas are copied
 *   fixed              the same, onto the target, which is claimed if it is ours
 *
 * Failure: the kernel's errno, and both ranges as before, but that a target of
 * MREMAP_FIXED may be gone, as it may be without us.
 * Proved by tests/preload/model.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "map.h"

#include <errno.h>

#include "bits.h"
#include "hugetlb.h"
#include "range.h"
#include "mem.h"
#include "raw.h"
#include "serve.h"
#include "stats.h"
#include "table.h"

enum { COPY_MAX_PAGES = SHIM_UNIT_PAGES };

struct remap {
	uintptr_t at, target;
	uint64_t pages, want; /* old and new size */
	uint32_t first, end;  /* old, as pages of the range */
	int flags;
};

static size_t bytes_of(uint64_t pages)
{
	return (size_t)pages << SHIM_PAGE_SHIFT;
}

/* New memory with a copy; only for what is plain, which memory from mmap() is, too. */
static long move_copy(const struct remap *m)
{
	long to = shim_mmap(0, bytes_of(m->want), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (raw_failed(to))
		return to;
	shim_copy((void *)to, (void *)m->at, bytes_of(m->pages));
	shim_range_unmap(m->first, m->end);
	return to;
}

/* What is one mapping to the program may be several areas to the kernel, which then
 * moves none: neighbours that were replaced at different times, after a fork, don't
 * merge.  Plain memory is copied; of other memory the program may have made several
 * areas itself.  No more goes than the target has: what is behind it isn't ours. */
static long move_areas(const struct remap *m)
{
	bool fixed = m->flags & MREMAP_FIXED;
	long to;

	if (!shim_range_plain(m->first, m->end))
		return -EFAULT;
	to = raw_mmap(fixed ? m->target : 0, bytes_of(m->want),
		      PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0), -1,
		      0);

	if (raw_failed(to))
		return to;
	shim_copy((void *)to, (void *)m->at,
		  bytes_of(pcpi_min(m->pages, m->want)));
	shim_count(SHIM_MOVES);
	if (m->flags & MREMAP_DONTUNMAP)
		raw_madvise(m->at, bytes_of(m->pages), MADV_DONTNEED);
	else
		shim_range_unmap(m->first, m->end);
	return to;
}

/* The kernel moves the pages away and leaves a mapping without memory in their
 * place. */
static long move_away(const struct remap *m)
{
	size_t bytes = bytes_of(m->pages);
	long away = raw_mremap(m->at, bytes, bytes,
			       MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	long to;

	if (raw_failed(away))
		return away;
	shim_count(SHIM_MOVES);
	to = raw_mremap((uintptr_t)away, bytes, bytes_of(m->want), m->flags,
			m->target);
	if (raw_failed(to)) {
		raw_mremap((uintptr_t)away, bytes, bytes,
			   MREMAP_MAYMOVE | MREMAP_FIXED, m->at);
		return to;
	}
	shim_range_unmap(m->first, m->end);
	return to;
}

/* What can't be left behind empty (shared memory, files): the kernel moves it, and the
 * hole is closed. */
static long move_direct(const struct remap *m)
{
	long to = raw_mremap(m->at, bytes_of(m->pages), bytes_of(m->want),
			     m->flags, m->target);

	if (raw_failed(to))
		return to;
	shim_range_taint(m->first, m->end);
	if (raw_failed(raw_mmap(m->at, bytes_of(m->pages), PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
					MAP_FIXED_NOREPLACE,
				-1, 0)))
		return to; /* another thread's mapping has it now */
	shim_range_unmap(m->first, m->end);
	return to;
}

static long move(const struct remap *m)
{
	long r;

	if (!(m->flags & MREMAP_FIXED) && m->pages < COPY_MAX_PAGES &&
	    shim_range_plain(m->first, m->end) &&
	    !shim_range_named(m->first, m->end))
		return move_copy(m);
	shim_hugetlb_leave(m->first, m->end);
	r = move_away(m);
	if (r == -EFAULT)
		return move_areas(m);
	return r == -EINVAL ? move_direct(m) : r;
}

/* The whole of [at, at + pages) that is in the range becomes the program's. */
static bool target_claim(const struct remap *m)
{
	uintptr_t at = m->target, end = at + bytes_of(m->want);

	for (; at < end; at += SHIM_PAGE_BYTES)
		if (shim_inside(at))
			break;
	if (at >= end)
		return true;
	end = pcpi_min(end, shim_range.base + shim_range.bytes);
	return shim_pool_claim(shim_pfn(at),
			       shim_pfn(at) + (uint32_t)((end - at) >>
							 SHIM_PAGE_SHIFT));
}

static bool overlaps(const struct remap *m)
{
	return m->target < m->at + bytes_of(m->pages) &&
	       m->at < m->target + bytes_of(m->want);
}

/* What the kernel refuses before it looks at any mapping. */
static bool refused(const struct remap *m, size_t bytes, size_t size)
{
	int flags = m->flags;
	int known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;

	if ((flags & ~known) || m->at % SHIM_PAGE_BYTES || size == 0 ||
	    bytes == 0 || bytes_of(m->want) < size)
		return true;
	if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) &&
	    !(flags & MREMAP_MAYMOVE))
		return true;
	if ((flags & MREMAP_DONTUNMAP) && m->pages != m->want)
		return true;
	return (flags & MREMAP_FIXED) &&
	       (m->target % SHIM_PAGE_BYTES ||
		m->target + bytes_of(m->want) < m->target || overlaps(m));
}

static long remap_inside(struct remap *m)
{
	if (m->first + m->pages > shim_range.bytes >> SHIM_PAGE_SHIFT ||
	    !shim_range_mapped(m->first, m->end))
		return -EFAULT;
	if ((m->flags & MREMAP_FIXED) && !target_claim(m))
		return -ENOMEM;
	if (m->flags & MREMAP_DONTUNMAP) {
		long r;

		shim_hugetlb_leave(m->first, m->end);
		r = raw_mremap(m->at, bytes_of(m->pages), bytes_of(m->want),
			       m->flags, m->target);

		return r == -EFAULT ? move_areas(m) : r;
	}
	if (m->flags & MREMAP_FIXED)
		return move(m);
	if (m->want == m->pages)
		return (long)m->at;
	if (m->want < m->pages) {
		long r = shim_range_unmap(m->first + (uint32_t)m->want, m->end);

		return r < 0 ? r : (long)m->at;
	}
	if (shim_range_resize(m->first, m->end, m->want))
		return (long)m->at;
	return m->flags & MREMAP_MAYMOVE ? move(m) : -ENOMEM;
}

long shim_mremap(uintptr_t at, size_t bytes, size_t size, int flags,
		 uintptr_t target)
{
	struct remap m = {
		.at = at,
		.target = target,
		.pages = shim_pages(bytes),
		.want = shim_pages(size),
		.flags = flags,
	};
	bool onto;

	shim_fork_check();
	onto = (flags & MREMAP_FIXED) && shim_range.bytes;
	if (!shim_inside(at) && !onto)
		return raw_mremap(at, bytes, size, flags, target);
	if (!shim_inside(at)) {
		if (!refused(&m, bytes, size) && !target_claim(&m))
			return -ENOMEM;
		return raw_mremap(at, bytes, size, flags, target);
	}
	if (refused(&m, bytes, size))
		return -EINVAL;
	m.first = shim_pfn(at);
	m.end = m.first + (uint32_t)pcpi_min(m.pages, (uint64_t)UINT32_MAX / 2);
	return remap_inside(&m);
}
