/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c - the text that shows what the shim did.
 *
 * One line for each number, `name value`, after a line that names the process; for
 * each size class that was used a line with its takes, the share that came from a
 * slot, the pages that were cleared, and its heat.  Everything on the stack, one
 * write: processes that share a file don't mix their lines.
 *
 * Failure: a file that can't be opened is one line on standard error.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "hugetlb.h"
#include "pool.h"
#include "raw.h"
#include "serve.h"
#include "slots.h"

uint64_t shim_counters[SHIM_COUNTERS];

static const char *const counter_names[SHIM_COUNTERS] = {
	[SHIM_PASSED] = "passed",     [SHIM_ADVISED] = "advised",
	[SHIM_DISCARDS] = "discards", [SHIM_PURGES] = "purges_cleared",
	[SHIM_TAINTS] = "taints",     [SHIM_MOVES] = "moved_away",
	[SHIM_CLAIMS] = "claims",
};

struct text {
	size_t used;
	char bytes[4096];
};

static void put(struct text *t, const char *s)
{
	size_t n = strlen(s);

	n = pcpi_min(n, sizeof(t->bytes) - t->used);
	memcpy(t->bytes + t->used, s, n);
	t->used += n;
}

static void put_number(struct text *t, uint64_t n)
{
	char digits[24];
	char *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do
		*--at = (char)('0' + n % 10);
	while (n /= 10);
	put(t, at);
}

static void put_line(struct text *t, const char *name, uint64_t n)
{
	put(t, name);
	put(t, " ");
	put_number(t, n);
	put(t, "\n");
}

static void put_class(struct text *t, unsigned order)
{
	static const char *const heats[] = {" unknown", " warm", " cold"};
	uint64_t takes = 0, hits = 0, cleared = 0;

	for (unsigned i = 0; i < SHIM_SHARDS; i++) {
		/* relaxed: counts. */
		takes += pcpi_load_relaxed(&shim_slots[order][i].takes);
		hits += pcpi_load_relaxed(&shim_slots[order][i].hits);
		cleared +=
			pcpi_load_relaxed(&shim_slots[order][i].cleared_pages);
	}
	if (!takes)
		return;
	put(t, "class ");
	put_number(t, UINT64_C(4) << order);
	put(t, "K takes ");
	put_number(t, takes);
	put(t, " from_slots ");
	put_number(t, hits);
	put(t, " cleared_pages ");
	put_number(t, cleared);
	/* relaxed: a decision that may change meanwhile. */
	put(t, heats[pcpi_load_relaxed(&shim_classes[order].heat) % 3]);
	put(t, "\n");
}

static void put_hugetlb(struct text *t)
{
	static const char *const reasons[] = {
		[HUGETLB_OPEN] = "open",
		[HUGETLB_SHORT] = "the pool is too short",
		[HUGETLB_REFUSED] = "the kernel has no such pages",
		[HUGETLB_BOUND] = "a control group or cpuset has too few",
		[HUGETLB_UNSAFE] = "no userfaultfd for all writes",
		[HUGETLB_FORKED] = "the program has forked",
		[HUGETLB_OVER] = "nothing is served any more",
	};
	/* relaxed: counts, and a state that may change meanwhile. */
	uint32_t state = pcpi_load_relaxed(&shim_hugetlb.state);

	/* relaxed: the same. */
	put_line(t, "hugetlb_bytes",
		 (uint64_t)pcpi_load_relaxed(&shim_hugetlb.units)
			 << (SHIM_UNIT_ORDER + SHIM_PAGE_SHIFT));
	put_line(t, "hugetlb_left", pcpi_load_relaxed(&shim_hugetlb.left_units));
	put_line(t, "hugetlb_kept", pcpi_load_relaxed(&shim_hugetlb.lost_units));
	put(t, "hugetlb: ");
	put(t, reasons[state]);
	put(t, "\n");
}

static void text_make(struct text *t)
{
	struct shim_pool_numbers n;

	shim_pool_numbers(&n);
	put(t, "pcpalloc-preload process ");
	put_number(t, (uint64_t)raw6(SYS_getpid, 0, 0, 0, 0, 0, 0));
	put(t, n.dissolved ? " dissolved\n" : "\n");
	put_line(t, "reserved_bytes", n.reserved_bytes);
	put_line(t, "grown_bytes", n.grown_bytes);
	put_line(t, "kept_bytes", n.retained_bytes);
	put_line(t, "returned_bytes", n.returned_bytes);
	if (shim_control.hugetlb)
		put_hugetlb(t);
	for (int i = 0; i < SHIM_COUNTERS; i++)
		/* relaxed: a count. */
		put_line(t, counter_names[i],
			 pcpi_load_relaxed(&shim_counters[i]));
	for (unsigned order = 0; order < SHIM_ORDERS; order++)
		put_class(t, order);
}

/* The file's name with %p replaced. */
static void name_make(struct text *t, const char *pattern)
{
	for (; *pattern; pattern++) {
		char one[2] = {*pattern, '\0'};

		if (pattern[0] == '%' && pattern[1] == 'p') {
			put_number(t,
				   (uint64_t)raw6(SYS_getpid, 0, 0, 0, 0, 0, 0));
			pattern++;
		} else {
			put(t, one);
		}
	}
	t->bytes[pcpi_min(t->used, sizeof(t->bytes) - 1)] = '\0';
}

void shim_stats_write(void)
{
	struct text text = {.used = 0}, name = {.used = 0};
	long fd = STDERR_FILENO;

	text_make(&text);
	if (strcmp(shim_control.stats, "-") != 0) {
		name_make(&name, shim_control.stats);
		fd = raw6(SYS_openat, AT_FDCWD, (long)name.bytes,
			  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644, 0, 0);
	}
	if (raw_failed(fd)) {
		text.used = 0;
		put(&text, "pcpalloc-preload: PCPA_PRELOAD_STATS: cannot open ");
		put(&text, name.bytes);
		put(&text, "\n");
		raw6(SYS_write, STDERR_FILENO, (long)text.bytes,
		     (long)text.used, 0, 0, 0);
		return;
	}
	raw6(SYS_write, fd, (long)text.bytes, (long)text.used, 0, 0, 0);
	if (fd != STDERR_FILENO)
		raw6(SYS_close, fd, 0, 0, 0, 0, 0);
}
