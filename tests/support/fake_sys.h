/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_sys.h - an operating system that refuses on demand, for tests.
 *
 * Address space is the real one, so that leaks show in /proc/self/maps; memory,
 * files, limits and huge page pools are invented: nothing of the machine shows
 * through, and "populated" memory is only written down, in units of
 * unit_bytes.
 *
 * Concurrency: none; `parallel` runs its pieces one after the other.
 */
#ifndef FAKE_SYS_H
#define FAKE_SYS_H

#include "../../lib/sys/sys.h"

#define FAKE_POOLS 4
#define FAKE_FILES 24
#define FAKE_RANGES 32

/* Of one hugetlb size on one node, in its pages. */
struct fake_pool {
	size_t page_bytes; /* 0: end of the pools */
	unsigned node;
	uint64_t total, free, overcommit, surplus, promised;
};

struct fake_file {
	const char *path;
	const char *text; /* NULL: can't be read */
};

struct fake_range {
	char *base;
	size_t bytes;
};

/* Not a real one: its number is made up, and mapping it changes nothing. */
struct fake_memory_file {
	int fd; /* 0: none */
	size_t bytes, page_bytes;
	char *base; /* where it is mapped */
};

struct fake_sys {
	/* What it refuses; 0: nothing. */
	unsigned fail_call; /* the Nth call that may fail, from 1       */
	int map_hugetlb_rc, populate_rc, bind_rc, elsewhere_rc, membarrier_rc;
	int advise_huge_rc, dontfork_rc, dontneed_rc, reserve_rc, unmap_rc;
	int memory_file_rc, memory_file_hugetlb_rc, punch_rc;
	int pagemap_rc;
	uint64_t pagemap; /* what it says of any page */
	size_t page_bytes;
	size_t unit_bytes; /* of populated memory, a divisor of huge pages */
	unsigned cpus;
	uint64_t address_space; /* RLIMIT_AS less what is mapped        */
	uint64_t commit_left;   /* overcommit 2                         */
	uint64_t memory_left;   /* -ENOMEM when populated beyond        */
	uint64_t near_left;     /* of a range, what is on its node      */
	bool own_maps_only; /* reserve: book-keeping, no mapping, at a made-up
			     * address; for layouts beyond this machine */
	struct fake_pool pools[FAKE_POOLS];
	struct fake_file files[FAKE_FILES];

	/* What happened. */
	unsigned calls;
	unsigned reserves, commits, decommits, populates, helpers;
	unsigned huges, nohuges, dontdumps, dontforks, dontneeds, binds, names;
	unsigned says, punches, looks;
	unsigned bound_nodes[8];
	enum pcpi_binding bound_how[8];
	uint64_t populated_bytes; /* now                                 */
	uint64_t committed_bytes; /* now, anonymous                      */
	struct fake_range ranges[FAKE_RANGES];  /* mapped now           */
	struct fake_range hugetlb[FAKE_RANGES]; /* hugetlb now           */
	size_t hugetlb_page[FAKE_RANGES];
	struct fake_memory_file memory_files[FAKE_RANGES]; /* open now */
	char said[8192];
};

extern struct fake_sys fake;

/* A machine with one node, THP=madvise of 2 MiB, no hugetlb pages, no limits;
 * becomes pcpi_sys. */
void fake_sys_install(void);

/* Adds or replaces a file. */
void fake_sys_file(const char *path, const char *text);

/* Adds a pool, all of it free. */
struct fake_pool *fake_sys_pool(size_t page_bytes, unsigned node,
				uint64_t pages);

/* Ranges that are still mapped. */
unsigned fake_sys_mapped(void);

/* Memory files that are still open. */
unsigned fake_sys_open_files(void);

/* How often the text was said. */
unsigned fake_sys_said(const char *text);

#endif
