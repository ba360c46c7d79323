/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * map.c - what becomes of each interposed call.
 *
 *   mmap     no address, private, anonymous, RW, of a size that is served: a served
 *            extent, else the kernel
 *            an address in the range, fixed or free: the pages are claimed, and the
 *            kernel maps there what was asked for
 *            all others: the kernel, with advice (advise.h)
 *   munmap   in the range: range.c; outside: the kernel; across: both
 *   mremap   remap.c
 *   others   all pages of the range mapped, as the program sees it?  Then the
 *            kernel, and the extents are tainted where a trace stays
 *
 * Failure: the kernel's errno, for all that the kernel would refuse.
 * Proved by tests/preload/ and tests/shim/.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "map.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "advise.h"
#include "bits.h"
#include "control.h"
#include "hugetlb.h"
#include "range.h"
#include "mem.h"
#include "raw.h"
#include "serve.h"
#include "stats.h"
#include "table.h"

/* A range of addresses, cut at the borders of ours. */
struct cut {
	uintptr_t first, from, to,
		end; /* first <= from <= to <= end; from..to ours */
};

static bool cut_make(struct cut *c, uintptr_t at, size_t bytes)
{
	uintptr_t low, high;
	size_t size;

	shim_fork_check();
	/* pairs with pool_make(). */
	size = pcpi_load_acquire(&shim_range.bytes);
	low = shim_range.base;
	high = low + size;
	c->first = at;
	c->end = at + pcpi_round_up(bytes, SHIM_PAGE_BYTES);
	if (size == 0 || c->end <= at || c->end <= low || at >= high)
		return false;
	c->from = pcpi_max(at, low);
	c->to = pcpi_min(c->end, high);
	return true;
}

static bool aligned(uintptr_t at)
{
	return at % SHIM_PAGE_BYTES == 0;
}

/* ---- mmap ---------------------------------------------------------------- */

#define FIXED_FLAGS (MAP_FIXED | MAP_FIXED_NOREPLACE)
#define PLAIN_FLAGS (MAP_STACK | MAP_NORESERVE | MAP_POPULATE)

static bool servable(int prot, int flags, long offset)
{
	return prot == (PROT_READ | PROT_WRITE) &&
	       (flags & ~PLAIN_FLAGS) == (MAP_PRIVATE | MAP_ANONYMOUS) &&
	       aligned((uintptr_t)offset);
}

/* From the kernel.  When it has no more, what is kept may be what is missing. */
static long kernel_mmap(uintptr_t at, size_t bytes, int prot, int flags, int fd,
			long offset)
{
	long r = raw_mmap(at, bytes, prot, flags, fd, offset);

	if (pcpi_unlikely(r == -ENOMEM) && shim_range.bytes) {
		shim_pool_trim(0);
		r = raw_mmap(at, bytes, prot, flags, fd, offset);
	}
	if (raw_failed(r))
		return r;
	/* A hole that a system call made behind our back. */
	if (pcpi_unlikely(shim_inside((uintptr_t)r)))
		shim_pool_claim(shim_pfn((uintptr_t)r),
				shim_pfn((uintptr_t)r) +
					(uint32_t)shim_pages(bytes));
	shim_advise_mapped((uintptr_t)r, bytes, prot, flags);
	return r;
}

/* At an address of the range: fixed, or free as far as the program knows. */
static long claimed_mmap(const struct cut *c, int prot, int flags, int fd,
			 long offset)
{
	uint32_t first = shim_pfn(c->from),
		 end = first + (uint32_t)((c->to - c->from) >> SHIM_PAGE_SHIFT);
	bool fresh = !shim_range_any_mapped(first, end);
	long r = -ENOMEM;

	shim_count(SHIM_CLAIMS);
	if (shim_pool_claim(first, end))
		r = raw_mmap(c->first, c->end - c->first, prot,
			     (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED, fd,
			     offset);
	if (raw_failed(r) && fresh)
		shim_range_unmap(first, end);
	return r;
}

static long fixed_mmap(const struct cut *c, int prot, int flags, int fd,
		       long offset)
{
	uint32_t first = shim_pfn(c->from);
	uint32_t end = first + (uint32_t)((c->to - c->from) >> SHIM_PAGE_SHIFT);
	long r;

	if (!(flags & MAP_FIXED_NOREPLACE))
		return claimed_mmap(c, prot, flags, fd, offset);
	if (c->from == c->first && c->to == c->end &&
	    !shim_range_any_mapped(first, end))
		return claimed_mmap(c, prot, flags, fd, offset);
	/* Fails, unless a system call behind our back has made a hole. */
	r = raw_mmap(c->first, c->end - c->first, prot, flags, fd, offset);
	if (!raw_failed(r))
		shim_pool_claim(first, end);
	return r;
}

/* A hint at free pages of the range: the kernel would grant it. */
static bool hint_grantable(const struct cut *c)
{
	uint32_t first = shim_pfn(c->from);

	return c->from == c->first && c->to == c->end &&
	       !shim_range_any_mapped(first,
				      first + (uint32_t)((c->to - c->from) >>
							 SHIM_PAGE_SHIFT));
}

static long hinted_mmap(uintptr_t at, size_t bytes, int prot, int flags, int fd,
			long offset)
{
	struct cut c;

	if (flags & FIXED_FLAGS) {
		if (aligned(at) && bytes && cut_make(&c, at, bytes))
			return fixed_mmap(&c, prot, flags, fd, offset);
		return kernel_mmap(at, bytes, prot, flags, fd, offset);
	}
	at = pcpi_round_down(at, SHIM_PAGE_BYTES);
	if (!bytes || !cut_make(&c, at, bytes))
		return kernel_mmap(at, bytes, prot, flags, fd, offset);
	if (hint_grantable(&c)) {
		long r = claimed_mmap(&c, prot, flags, fd, offset);

		if (!raw_failed(r) || r != -ENOMEM)
			return r;
	}
	return shim_mmap(0, bytes, prot, flags, fd, offset);
}

long shim_mmap(uintptr_t at, size_t bytes, int prot, int flags, int fd,
	       long offset)
{
	enum shim_mode mode = shim_mode();

	if (pcpi_unlikely(mode <= SHIM_OFF))
		return raw_mmap(at, bytes, prot, flags, fd, offset);
	shim_fork_check();
	if (pcpi_unlikely(at != 0 || (flags & FIXED_FLAGS)))
		return hinted_mmap(at, bytes, prot, flags, fd, offset);
	if (servable(prot, flags, offset) && mode == SHIM_ON &&
	    bytes - shim_control.min_bytes <=
		    shim_control.max_bytes - shim_control.min_bytes &&
	    (pcpi_likely(shim_range_there()) || shim_pool_ready())) {
		uintptr_t served = shim_serve(bytes, flags & MAP_POPULATE);

		if (pcpi_likely(served != 0))
			return (long)served;
	}
	return kernel_mmap(at, bytes, prot, flags, fd, offset);
}

/* ---- munmap -------------------------------------------------------------- */

static long cut_unmap(const struct cut *c)
{
	uint32_t first = shim_pfn(c->from);
	long r = 0;

	if (c->first < c->from)
		r = raw_munmap(c->first, c->from - c->first);
	if (r == 0)
		r = shim_range_unmap(first,
				     first + (uint32_t)((c->to - c->from) >>
							SHIM_PAGE_SHIFT));
	if (r == 0 && c->to < c->end)
		r = raw_munmap(c->to, c->end - c->to);
	return r;
}

long shim_munmap(uintptr_t at, size_t bytes)
{
	struct cut c;

	shim_fork_check();
	if (pcpi_likely(shim_inside(at)) && aligned(at) &&
	    pcpi_likely(shim_take_back(shim_pfn(at), shim_pages(bytes))))
		return 0;
	if (bytes == 0 || !aligned(at) || !cut_make(&c, at, bytes)) {
		shim_advise_unmapping(at, bytes);
		return raw_munmap(at, bytes);
	}
	return cut_unmap(&c);
}

/* ---- madvise ------------------------------------------------------------- */

/* Keeps the first error that isn't ENOMEM, which the kernel reports at the end. */
static long worse(long a, long b)
{
	return a < 0 && a != -ENOMEM ? a : b < 0 ? b : a;
}

long shim_madvise(uintptr_t at, size_t bytes, int advice)
{
	struct cut c;
	uint32_t first;
	long r = 0;

	if (!aligned(at) || bytes == 0 || !cut_make(&c, at, bytes))
		return raw_madvise(at, bytes, advice);
	first = shim_pfn(c.from);
	if (c.first < c.from)
		r = raw_madvise(c.first, c.from - c.first, advice);
	if (r == 0 || r == -ENOMEM)
		r = worse(r,
			  shim_range_advise(first,
					    first + (uint32_t)((c.to - c.from) >>
							       SHIM_PAGE_SHIFT),
					    advice));
	if ((r == 0 || r == -ENOMEM) && c.to < c.end)
		r = worse(r, raw_madvise(c.to, c.end - c.to, advice));
	return r;
}

/* ---- All others ---------------------------------------------------------- */

static long raw_call(long number, const long a[6])
{
	return raw6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* mprotect() to what it is anyway. */
static bool protects_nothing(const long args[6], enum shim_effect effect,
			     uint32_t first, uint32_t end)
{
	return effect == SHIM_PROTECTS && args[2] == (PROT_READ | PROT_WRITE) &&
	       shim_range_plain(first, end);
}

long shim_ranged(long number, const long args[6], enum shim_effect effect,
		 int hole_errno)
{
	uintptr_t at = (uintptr_t)args[0];
	long cutted[6];
	uint32_t first, end, mapped;
	struct cut c;

	if (!aligned(at) || !cut_make(&c, at, (size_t)args[1]))
		return raw_call(number, args);
	first = shim_pfn(c.from);
	end = first + (uint32_t)((c.to - c.from) >> SHIM_PAGE_SHIFT);
	mapped = shim_mapped_run(first, end);
	if (mapped == end - first) {
		if (c.from == c.first && c.to == c.end &&
		    protects_nothing(args, effect, first, end))
			return 0;
		if (effect != SHIM_LOOKS)
			shim_range_taint(first, end);
		return raw_call(number, args);
	}
	/* As far as the hole, as the kernel does. */
	if (effect == SHIM_PROTECTS && c.from + mapped > c.first && mapped) {
		shim_range_taint(first, first + mapped);
		shim_copy(cutted, args, sizeof(cutted));
		cutted[1] = (long)(shim_at(first + mapped) - c.first);
		raw_call(number, cutted);
	}
	return -hole_errno;
}

/* Address space in use, as the kernel counts it; 0 when it can't be told. */
static uint64_t space_bytes(void)
{
	char text[64];
	uint64_t pages = 0;
	long fd = raw6(SYS_openat, AT_FDCWD, (long)"/proc/self/statm",
		       O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long n;

	if (raw_failed(fd))
		return 0;
	n = raw6(SYS_read, fd, (long)text, sizeof(text), 0, 0, 0);
	raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	for (long i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		pages = pages * 10 + (uint64_t)(text[i] - '0');
	return pages << SHIM_PAGE_SHIFT;
}

void shim_limit_set(int resource, uint64_t soft)
{
	if (soft == RLIM_INFINITY || !shim_range.bytes)
		return;
	/* A limit below what is in use was meant without our reservation; one above it
	 * was perhaps computed with it. */
	if (resource == RLIMIT_AS)
		shim_pool_dissolve(soft < space_bytes());
	else if (resource == RLIMIT_DATA)
		shim_pool_dissolve(true);
}

long shim_name(const long a[6])
{
	long r = raw_call(SYS_prctl, a);
	uint32_t first, end;
	struct cut c;

	/* Refused as a whole: many kernels are built without names. */
	if (r == -EINVAL || !cut_make(&c, (uintptr_t)a[2], (size_t)a[3]))
		return r;
	first = shim_pfn(c.from);
	end = first + (uint32_t)((c.to - c.from) >> SHIM_PAGE_SHIFT);
	/* Memory from the pool of huge pages has one, and gets no other. */
	if (r == -EBADF && shim_hugetlb_any(first, end))
		return 0;
	shim_range_name(first, end);
	return r;
}

void shim_trace_left(uintptr_t at, size_t bytes)
{
	uintptr_t from = pcpi_round_down(at, SHIM_PAGE_BYTES);
	struct cut c;

	if (cut_make(&c, from, bytes + (at - from)))
		shim_range_taint(shim_pfn(c.from),
				 shim_pfn(c.from) + (uint32_t)((c.to - c.from) >>
							       SHIM_PAGE_SHIFT));
}
