/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena.h - a heap's address space, and the arenas that back parts of it.
 * Layer 2.
 *
 * Owns: one contiguous reservation for each heap, cut into windows of equal
 * size, and the backing of arenas in them.  Does not own: the descriptors of
 * pages, who uses an arena, or when to grow (zone.c).
 *
 *   space->base
 *   |                            window_bytes = 1 << window_shift
 *   v<----------------------->
 *   [node 0, hugetlb 1 GiB   ][node 0, hugetlb 2 MiB   ][node 0, anon       ]
 *   [node 1, ...
 *    arena|hole|arena|.next ...
 *
 *   pfn    = (addr - base) >> page_shift
 *   window = (addr - base) >> window_shift
 *
 * Concurrency: a space is fixed after creation but for its windows' and nodes'
 * fill, which belong to whoever grows the node: the caller lets one thread at
 * a time grow or release arenas of a node.
 */
#ifndef PCPI_ARENA_H
#define PCPI_ARENA_H

#include <pcpalloc/pcpalloc.h>
#include <urcu/list.h>

#include "base.h"
#include "sys/hugepages.h"

/* What a heap did without, each said once. */
enum pcpi_fall {
	PCPI_FALL_HUGETLB_NONE,    /* the kernel has no pool                */
	PCPI_FALL_HUGETLB_POOL,    /* too few pages in the pool             */
	PCPI_FALL_HUGETLB_CGROUP,  /* hugetlb group's limit                 */
	PCPI_FALL_HUGETLB_REFUSED, /* mmap(MAP_HUGETLB) or its like failed  */
	PCPI_FALL_POPULATE,        /* no MADV_POPULATE_WRITE                */
	PCPI_FALL_THP,             /* no transparent huge pages             */
	PCPI_FALL_BIND,            /* no binding to the node                */
	PCPI_FALL_NODE,            /* the node's memory                     */
	PCPI_FALL_CGROUP,          /* memory group's limit                  */
	PCPI_FALL_MACHINE,         /* the machine's memory                  */
	PCPI_FALL_COMMIT,          /* overcommit or RLIMIT_DATA             */
	PCPI_FALL_SPACE,           /* maximum lowered: RLIMIT_AS and others */
	PCPI_NR_FALLS
};

/* One node and one kind of page.
 * c: fixed after creation; g: whoever grows the node. */
struct pcpi_window {
	char *base;                /* c */
	uint64_t bytes;            /* c: that arenas may use; 0: refused    */
	uint64_t next;             /* g: end of the last arena              */
	uint64_t *granules;        /* g: a bit each, set: in an arena (A10) */
	uint64_t hole_bytes;       /* g: below next, in no arena            */
	size_t page_bytes;         /* c: of the pages asked for             */
	size_t granule_bytes;      /* c: arenas are multiples of it         */
	enum pcpa_backing backing; /* c */
	enum pcpi_fall lack;       /* g: why hugetlb gave nothing last      */
	unsigned node;             /* c: position                           */
	unsigned os_node;          /* c */
	int fd;                    /* c: a shared heap's file, or -1: A11   */
};

struct pcpi_space_node {
	unsigned os_node;
	unsigned first_window; /* its windows, the preferred first       */
	unsigned nr_windows;
	unsigned sizes;      /* bit i: has pages of space->sizes[i]     */
	uint64_t max_bytes;  /* bound of used_bytes, as it turned out    */
	uint64_t used_bytes; /* g: in arenas                             */
	uint64_t misplaced_bytes; /* g, read by anyone: of other nodes, so far */
};

struct pcpi_space {
	char *base;
	uint64_t bytes;
	unsigned page_shift;
	unsigned window_shift;
	unsigned top_order; /* of blocks: never crosses a huge page      */
	unsigned nr_windows;
	unsigned nr_nodes;
	struct pcpi_window *windows;   /* windows[nr_windows] */
	struct pcpi_space_node *nodes; /* nodes[nr_nodes]     */

	size_t hugepage_bytes; /* as asked for                           */
	size_t granule_bytes;  /* a huge page, also where none is used   */
	size_t sizes[PCPI_HUGETLB_SIZES]; /* hugetlb, largest first      */
	unsigned nr_sizes;
	unsigned cpus; /* populate on at most so many threads            */
	enum pcpi_thp_mode thp;
	bool cow, dump, shared, contents;
	bool one_node, alone, bound, near; /* see arena_node.c           */
	unsigned verbosity;
	uint64_t pending_bytes;   /* atomic: being populated, not hugetlb */
	bool touch;               /* atomic: populate by touching       */
	bool said[PCPI_NR_FALLS]; /* atomic                             */
	void *meta;               /* holds windows and nodes            */
	size_t meta_bytes;
	void *granules; /* the windows' maps                    */
	size_t granules_bytes;
};

struct pcpi_space_node_spec {
	unsigned os_node;
	uint64_t max_bytes; /* > 0; rounded up to the granule            */
};

struct pcpi_space_spec {
	const struct pcpi_space_node_spec *nodes;
	unsigned nr_nodes;
	/* The maximum is nobody's wish: lower it to what can be had. */
	bool max_is_default;
	/* 0: the largest that fits; the base page: none; else a hugetlb or
	 * transparent size. */
	size_t hugepage_bytes;
	bool cow;  /* inherited by fork, so never hugetlb                */
	bool dump; /* part of core dumps                                 */
	bool shared; /* of memory files, not with cow                    */
	bool contents; /* tools let free blocks be accessed              */
	bool one_node; /* the process may use no other                   */
	bool alone;    /* nobody needs to be asked where memory is       */
	bool bound;    /* on the node or not at all                      */
	unsigned verbosity;
};

struct pcpi_arena {
	struct cds_list_head link; /* the zone's */
	char *base;
	uint64_t bytes;
	uint32_t first_pfn;
	uint32_t pages;
	unsigned node; /* position */
	unsigned os_node;
	enum pcpa_backing backing;
	bool told; /* the subscriber has agreed to it (notify.h) */
	size_t page_bytes;
};

/*
 * Reserves the address space of a heap; backs nothing.
 * Returns 0, or with nothing mapped and *space undefined: -EINVAL for a page
 * size that there isn't or a maximum beyond 2^32 pages, -ENOMEM where the
 * reservation is refused, the kernel's error where it can't be bound and has to
 * be; all are said at verbosity 1, with the limit's name.
 * Cost: some 30 small files read and a few system calls for each window.
 */
int pcpi_space_create(struct pcpi_space *space,
		      const struct pcpi_space_spec *spec);

/* In a forked child, which has the files but no mapping of them. */
void pcpi_space_forked(struct pcpi_space *space);

/* Unmaps everything and closes the files.  Returns 0, or the kernel's refusal: the call may then be
 * repeated. */
int pcpi_space_destroy(struct pcpi_space *space);

/*
 * Whether `bytes` more could be backed now on all nodes together, as far as
 * pools, control groups and the machine tell: asked before much is populated,
 * since populating until it fails takes the memory from everybody else first.
 * Returns 0, or -ENOMEM after saying what there is.
 */
int pcpi_space_can_back(struct pcpi_space *space, uint64_t bytes);

/*
 * Backs an arena for the node at the position and describes it in *out (the
 * link is untouched).  It has at most want_bytes, rounded up to the granule of
 * the window that serves it, and less where less can be had, unless exact.
 * Returns 0, or -ENOMEM with everything as it was.
 * Locks: the caller is the only one that grows the node.
 */
int pcpi_arena_grow(struct pcpi_space *space, unsigned node,
		    uint64_t want_bytes, bool exact, struct pcpi_arena *out);

/*
 * Gives an arena's pages back, or those of a part of one that is a whole number
 * of its window's granules.  Their addresses are used again by later arenas.
 * Returns 0, or the kernel's refusal with the memory as it was.
 * Locks: as pcpi_arena_grow().
 */
int pcpi_arena_give_back(struct pcpi_space *space,
			 const struct pcpi_arena *arena);

/* The same for an arena that nobody has used.  What the kernel refuses to take is
 * left to the next arena there. */
void pcpi_arena_cancel(struct pcpi_space *space, const struct pcpi_arena *arena);

/* Tells of an arena, or of a part of one. */
void pcpi_arena_info(const struct pcpi_space *space,
		     const struct pcpi_arena *arena,
		     struct pcpa_arena_info *out);

/* ---- arena_place.c ---- */

/* Where an arena of that many bytes, a whole number of granules, goes: *at, and
 * how much of it fits there; 0: nothing, or with exact not all. */
uint64_t pcpi_window_place(const struct pcpi_window *w, uint64_t bytes,
			   bool exact, uint64_t *at);

/* An arena is there now; and no more, or a part of one.  Returns by how much
 * next fell. */
void pcpi_window_fill(struct pcpi_window *w, uint64_t at, uint64_t bytes);
uint64_t pcpi_window_clear(struct pcpi_window *w, uint64_t at, uint64_t bytes);

void pcpi_window_check(const struct pcpi_window *w);

/* ---- arena_node.c ---- */

/* Binds a new window to its node.  Returns 0, or the kernel's refusal where the
 * space has to be bound. */
int pcpi_window_bind(struct pcpi_space *space, struct pcpi_window *w,
		     uint64_t window_bytes);

/* Returns 0, or the kernel's refusal to say where pages are, where the space has
 * to know. */
int pcpi_space_can_look(struct pcpi_space *space);

/* Looks where populated memory of a window is, says and counts what is elsewhere.
 * Returns 0, or where the space is bound or near -ENOMEM for memory that isn't all of
 * the node, or where it is bound the kernel's refusal to say. */
int pcpi_window_look(struct pcpi_space *space, const struct pcpi_window *w,
		     const char *base, uint64_t bytes);

/* Traps unless the invariants of all files hold.  Callers rest. */
void pcpi_space_check(const struct pcpi_space *space);

/* Whether this is the heap's first fall of the kind and shall be said. */
bool pcpi_space_fall(struct pcpi_space *space, enum pcpi_fall fall);

#define pcpi_space_say_once(space, fall, ...)                                  \
	do {                                                                   \
		if (pcpi_space_fall((space), (fall)))                          \
			pcpi_sys_say(__VA_ARGS__);                             \
	} while (0)

static inline uint32_t pcpi_space_pfn(const struct pcpi_space *space,
				      const void *addr)
{
	return (uint32_t)(((uintptr_t)addr - (uintptr_t)space->base) >>
			  space->page_shift);
}

static inline void *pcpi_space_addr(const struct pcpi_space *space, uint32_t pfn)
{
	return space->base + ((uint64_t)pfn << space->page_shift);
}

/* Requires a pfn of the space. */
static inline struct pcpi_window *
pcpi_space_window(const struct pcpi_space *space, uint32_t pfn)
{
	return &space->windows[(uint64_t)pfn >>
			       (space->window_shift - space->page_shift)];
}

#endif
