/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_window.c - lays out, reserves and unmaps a heap's address space.
 *
 * Owns: which windows a heap has, how large they are, and what is done once
 * for each.  Does not own: backing (arena.c), where arenas lie
 * (arena_place.c).
 *
 * Layout.  Each node has a window for every hugetlb size of which it had pages
 * at creation, the largest first, and one for anonymous memory (transparent
 * huge pages or base pages).  All are of one size, a power of two of at least
 * the largest node's maximum, so that an address tells its window by a shift.
 * Address space is cheap, but not free: where it is refused, or would pass 2^32
 * pages, the layout shrinks.
 *
 *   a default maximum    halve the maximum until it fits
 *   a maximum asked for  leave out hugetlb windows, the smallest pages first;
 *                        then fail and name the limit
 *
 * Invariants:
 *   A1  the base is aligned to the largest huge page in use, and to the granule;
 *   A2  windows are contiguous, of equal size, and cover the reservation;
 *   A3  every page number of the space, and of the end of an arena's last page,
 *       is below 2^32 - 1, so that PCPI_NO_PFN is no page of an arena;
 *   A4  a block of top_order never crosses a huge page of any window;
 *   A5  advice is given once for each window, never for an arena;
 *   A11 each window of a shared space that may be used has a file of its own,
 *       of the window's size and mapped from its beginning: an address's offset
 *       is what it is in the window.  (One file can't have two sizes of pages.)
 *
 * Concurrency: creation and destruction belong to one thread.
 * Failure: nothing stays mapped (destroy: what the kernel refuses to unmap).
 * Proved by tests/unit/test_arena.c and test_arena_fall.c, and by
 * tests/fault/test_arena_fault.c.
 */
#include "annotate.h"
#include "arena.h"

#include <errno.h>
#include <stdio.h>

#include "atomics.h"
#include "bits.h"
#include "check.h"
#include "sys/cgroup.h"

/* Where the kernel names no huge page size: that of one page of page table
 * entries (8 bytes each) at 4 KiB. */
#define FALLBACK_GRANULE_PAGES 512u

#define MAX_PAGES (UINT64_C(1) << 32)

/* Of the address space that RLIMIT_AS leaves, a default heap takes half. */
#define DEFAULT_SPACE_SHARE 2u

/* One try at a layout. */
struct layout {
	uint64_t cap_bytes; /* bound of every node's maximum           */
	unsigned nr_sizes;  /* of space->sizes, those not left out     */
	uint64_t window_bytes;
	uint64_t bytes;
	size_t align;
	unsigned nr_windows;
};

bool pcpi_space_fall(struct pcpi_space *space, enum pcpi_fall fall)
{
	/* pairs with pcpi_space_fall: only one caller sees false. */
	bool again = pcpi_exchange_acq_rel(&space->said[fall], true);

	return !again && space->verbosity > 0;
}

/* ---- What there is ------------------------------------------------------ */

static bool is_hugetlb_size(const struct pcpi_space *space, size_t bytes)
{
	for (unsigned i = 0; i < space->nr_sizes; i++) {
		if (space->sizes[i] == bytes)
			return true;
	}
	return false;
}

/* Only sizes that serve the heap; the granule needs all of them. */
static void keep_sizes(struct pcpi_space *space)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < space->nr_sizes; i++) {
		size_t size = space->sizes[i];
		bool fits = space->hugepage_bytes == 0 &&
			    size >= space->granule_bytes;

		if (!space->cow && (fits || size == space->hugepage_bytes))
			space->sizes[kept++] = size;
	}
	space->nr_sizes = kept;
}

static int refuse_size(const struct pcpi_space *space, const char *why)
{
	if (space->verbosity > 0)
		pcpi_sys_say("hugepage_bytes=%zu: %s", space->hugepage_bytes,
			     why);
	return -EINVAL;
}

static int read_sizes(struct pcpi_space *space)
{
	size_t page = pcpi_sys_page_bytes();
	size_t thp = pcpi_hugepages_thp_bytes();
	size_t asked = space->hugepage_bytes;

	space->page_shift = pcpi_log2(page);
	space->cpus = pcpi_sys->cpus();
	space->nr_sizes = pcpi_hugepages_sizes(space->sizes);
	space->granule_bytes = page * FALLBACK_GRANULE_PAGES;
	if (space->nr_sizes > 0)
		space->granule_bytes = space->sizes[space->nr_sizes - 1];
	if (thp != 0)
		space->granule_bytes = thp;
	if (asked != 0 && asked != page) {
		if (space->cow)
			return refuse_size(space, "a copy-on-write heap has no "
						  "huge page size of its own");
		if (asked != thp && !is_hugetlb_size(space, asked))
			return refuse_size(space, "no such page size here");
	}
	space->thp = asked == page ? PCPI_THP_NEVER
				   : pcpi_hugepages_thp(space->shared);
	keep_sizes(space);
	return 0;
}

/* A4: blocks fit the smallest page that may back them. */
static void choose_top_order(struct pcpi_space *space)
{
	size_t least = space->granule_bytes;

	if (space->nr_sizes > 0)
		least = pcpi_min(least, space->sizes[space->nr_sizes - 1]);
	space->top_order = pcpi_min((unsigned)PCPI_MAX_ORDER,
				    pcpi_log2(least) - space->page_shift);
}

/* Which sizes the node has pages of.  One that was asked for is given its
 * window also while the pool is empty. */
static unsigned node_sizes(const struct pcpi_space *space, unsigned os_node)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < space->nr_sizes; i++) {
		struct pcpi_hugetlb_pool pool;

		pcpi_hugepages_pool(space->sizes[i], os_node, &pool);
		if (pool.usable > 0 || space->sizes[i] == space->hugepage_bytes)
			bits |= 1u << i;
	}
	return bits;
}

static uint64_t node_max(const struct pcpi_space *space,
			 const struct pcpi_space_node_spec *spec,
			 uint64_t cap_bytes)
{
	uint64_t max = pcpi_min(spec->max_bytes, cap_bytes);

	max = pcpi_max(max, (uint64_t)space->granule_bytes);
	return pcpi_round_up(max, space->granule_bytes);
}

/* ---- Layout ------------------------------------------------------------- */

static bool has_window(const struct pcpi_space *space, const struct layout *l,
		       const struct pcpi_space_node *node, unsigned size)
{
	return size < l->nr_sizes && (node->sizes >> size & 1u) != 0 &&
	       space->sizes[size] <= node->max_bytes;
}

/* Sizes of the layout for its cap and sizes; sets the nodes' maxima. */
static void compute_layout(struct pcpi_space *space,
			   const struct pcpi_space_spec *spec, struct layout *l)
{
	uint64_t largest = 0;

	l->nr_windows = space->nr_nodes;
	l->align = space->granule_bytes;
	for (unsigned n = 0; n < space->nr_nodes; n++) {
		struct pcpi_space_node *node = &space->nodes[n];

		node->max_bytes = node_max(space, &spec->nodes[n], l->cap_bytes);
		largest = pcpi_max(largest, node->max_bytes);
		for (unsigned i = 0; i < l->nr_sizes; i++) {
			if (!has_window(space, l, node, i))
				continue;
			l->nr_windows++;
			l->align = pcpi_max(l->align, space->sizes[i]);
		}
	}
	l->window_bytes = pcpi_pow2_ceil(largest);
	l->bytes = l->window_bytes * l->nr_windows;
}

/* Whether the page numbers suffice, without overflow: both factors are small
 * enough once the window is. */
static bool is_countable(const struct pcpi_space *space, const struct layout *l)
{
	uint64_t window_pages = l->window_bytes >> space->page_shift;

	return window_pages <= MAX_PAGES &&
	       window_pages * l->nr_windows <= MAX_PAGES && l->bytes <= SIZE_MAX;
}

static int try_layout(struct pcpi_space *space, const struct layout *l,
		      uint64_t budget_bytes)
{
	void *base;
	int rc;

	if (!is_countable(space, l))
		return -EINVAL;
	if (l->bytes > budget_bytes)
		return -ENOMEM;
	rc = pcpi_sys->reserve((size_t)l->bytes, l->align, &base);
	if (rc == 0)
		space->base = base;
	return rc;
}

/* What refused a reservation. */
static const char *limit_name(int rc)
{
	if (rc == -EINVAL)
		return "a heap has at most 2^32 pages, all windows together";
	if (rc == -EAGAIN)
		return "RLIMIT_MEMLOCK (ulimit -l) with mlockall(MCL_FUTURE)";
	if (pcpi_sys->address_space_left() != UINT64_MAX)
		return "RLIMIT_AS (ulimit -v)";
	return "the kernel has no address space of that size";
}

static int reserve_default(struct pcpi_space *space,
			   const struct pcpi_space_spec *spec, struct layout *l)
{
	uint64_t left = pcpi_sys->address_space_left();
	uint64_t budget = left == UINT64_MAX ? left : left / DEFAULT_SPACE_SHARE;
	int rc, first_rc = 0;

	for (;;) {
		uint64_t cap;

		compute_layout(space, spec, l);
		rc = try_layout(space, l, budget);
		cap = pcpi_round_down(l->window_bytes / 2, space->granule_bytes);
		if (rc == 0 || cap < space->granule_bytes)
			break;
		first_rc = first_rc ? first_rc : rc;
		l->cap_bytes = cap;
	}
	if (rc == 0 && first_rc != 0)
		pcpi_space_say_once(space, PCPI_FALL_SPACE,
				    "maximum lowered to %llu MiB a node: %s",
				    (unsigned long long)(l->cap_bytes >> 20),
				    limit_name(first_rc));
	return rc;
}

static int reserve_asked(struct pcpi_space *space,
			 const struct pcpi_space_spec *spec, struct layout *l)
{
	unsigned all = l->nr_sizes;
	int rc;

	for (;;) {
		compute_layout(space, spec, l);
		rc = try_layout(space, l, UINT64_MAX);
		if (rc == 0 || l->nr_sizes == 0)
			break;
		l->nr_sizes--;
	}
	if (rc == 0 && l->nr_sizes < all)
		pcpi_space_say_once(space, PCPI_FALL_SPACE,
				    "no address space for %u of %u hugetlb "
				    "sizes: lower max_bytes, or raise RLIMIT_AS "
				    "(ulimit -v)",
				    all - l->nr_sizes, all);
	return rc;
}

static int reserve_space(struct pcpi_space *space,
			 const struct pcpi_space_spec *spec, struct layout *l)
{
	struct pcpi_memory_room room;
	int rc;

	*l = (struct layout){.cap_bytes = UINT64_MAX >> 1,
			     .nr_sizes = space->nr_sizes};
	if (spec->max_is_default) {
		pcpi_cgroup_memory(&room);
		l->cap_bytes = pcpi_min(l->cap_bytes, room.limit);
		rc = reserve_default(space, spec, l);
	} else {
		rc = reserve_asked(space, spec, l);
	}
	if (rc != 0) {
		if (space->verbosity > 0)
			pcpi_sys_say("max_bytes=%llu can't be reserved: %s",
				     (unsigned long long)spec->nodes[0].max_bytes,
				     limit_name(rc));
		return rc == -EINVAL ? rc : -ENOMEM;
	}
	space->bytes = l->bytes;
	space->window_shift = pcpi_log2(l->window_bytes);
	return 0;
}

/* ---- Windows ------------------------------------------------------------ */

/* A node's maximum, but never the page number that means none (A3). */
static uint64_t usable_bytes(const struct pcpi_space *space,
			     const struct pcpi_space_node *node,
			     const struct pcpi_window *w, uint64_t window_bytes)
{
	uint64_t bytes = pcpi_round_down(node->max_bytes, w->granule_bytes);
	uint64_t end = (uint64_t)(w->base - space->base) + window_bytes;

	if (end >> space->page_shift == MAX_PAGES && bytes == window_bytes)
		bytes -= w->granule_bytes;
	return bytes;
}

#define NAME_BYTES 40

static void window_name(const struct pcpi_window *w,
			char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "pcpalloc:arena:%u", w->os_node);
}

/* Advice and a name, once; refusals cost nothing but comfort, except that
 * inherited hugetlb pages may kill a child. */
static int dress_window(struct pcpi_space *space, struct pcpi_window *w,
			uint64_t window_bytes)
{
	char name[NAME_BYTES];

	window_name(w, name);
	pcpi_sys->name(w->base, window_bytes, name);
	if (!space->dump)
		pcpi_sys->advise(w->base, window_bytes, PCPI_ADVISE_DONTDUMP);
	if (!space->cow &&
	    pcpi_sys->advise(w->base, window_bytes, PCPI_ADVISE_DONTFORK) != 0 &&
	    w->backing == PCPA_BACKING_HUGETLB) {
		w->bytes = 0;
		w->lack = PCPI_FALL_HUGETLB_REFUSED;
	}
	return pcpi_window_bind(space, w, window_bytes);
}

static void close_file(struct pcpi_window *w)
{
	if (w->fd >= 0)
		pcpi_sys->fd_close(w->fd);
	w->fd = -1;
}

/* A11 */
static int open_file(struct pcpi_window *w, uint64_t window_bytes)
{
	char name[NAME_BYTES];
	int rc;

	window_name(w, name);
	rc = pcpi_sys->memory_file(name, window_bytes, w->page_bytes);
	if (rc < 0)
		return rc;
	w->fd = rc;
	rc = pcpi_sys->map_file(w->base, window_bytes, w->fd);
	if (rc != 0)
		close_file(w);
	return rc;
}

static int open_shared_hugetlb(struct pcpi_window *w, uint64_t window_bytes)
{
	int rc = open_file(w, window_bytes);

	return rc ? rc : pcpi_sys->commit(w->base, window_bytes);
}

static void open_hugetlb(struct pcpi_space *space, struct pcpi_window *w,
			 uint64_t window_bytes)
{
	int rc = space->shared ? open_shared_hugetlb(w, window_bytes)
			       : pcpi_sys->map_hugetlb(w->base, window_bytes,
						       w->page_bytes);

	if (rc != 0) {
		w->bytes = 0;
		w->lack = PCPI_FALL_HUGETLB_REFUSED;
		return;
	}
	pcpi_annotate_reserve(w->base, window_bytes);
}

static int open_shared(struct pcpi_space *space, struct pcpi_window *w,
		       uint64_t window_bytes)
{
	int rc = open_file(w, window_bytes);

	if (rc != 0 && space->verbosity > 0)
		pcpi_sys_say("no memory file of %llu MiB for node %u (error %d)%s",
			     (unsigned long long)(window_bytes >> 20),
			     w->os_node, -rc,
			     rc == -EFBIG ? ": raise RLIMIT_FSIZE (ulimit -f)"
			     : rc == -EMFILE
				     ? ": raise RLIMIT_NOFILE (ulimit -n)"
				     : "");
	return rc;
}

static void advise_anon(struct pcpi_space *space, struct pcpi_window *w,
			uint64_t window_bytes)
{
	bool huge =
		space->thp != PCPI_THP_NEVER &&
		pcpi_sys->advise(w->base, window_bytes, PCPI_ADVISE_HUGE) == 0;

	if (huge) {
		w->backing = PCPA_BACKING_THP;
		w->page_bytes = space->granule_bytes;
		return;
	}
	if (space->hugepage_bytes == w->page_bytes)
		pcpi_sys->advise(w->base, window_bytes, PCPI_ADVISE_NOHUGE);
}

/* Words of a window's map, whatever its granule. */
static size_t granule_words(const struct pcpi_space *space)
{
	uint64_t granules = (UINT64_C(1) << space->window_shift) /
			    space->granule_bytes;

	return (size_t)((granules + 63) / 64);
}

static int open_window(struct pcpi_space *space, unsigned n, size_t page_bytes)
{
	struct pcpi_space_node *node = &space->nodes[n];
	unsigned i = node->first_window + node->nr_windows++;
	uint64_t window_bytes = UINT64_C(1) << space->window_shift;
	struct pcpi_window *w = &space->windows[i];
	size_t base_page = (size_t)1 << space->page_shift;
	bool hugetlb = page_bytes != base_page;
	int rc = 0;

	*w = (struct pcpi_window){
		.base = space->base + i * window_bytes,
		.page_bytes = page_bytes,
		.granule_bytes = hugetlb ? page_bytes : space->granule_bytes,
		.backing = hugetlb ? PCPA_BACKING_HUGETLB : PCPA_BACKING_BASE,
		.lack = PCPI_FALL_HUGETLB_POOL,
		.node = n,
		.os_node = node->os_node,
		.fd = -1,
	};
	w->granules = (uint64_t *)space->granules + i * granule_words(space);
	w->bytes = usable_bytes(space, node, w, window_bytes);
	if (hugetlb)
		open_hugetlb(space, w, window_bytes);
	else if (space->shared)
		rc = open_shared(space, w, window_bytes);
	if (rc != 0)
		return rc;
	if (!hugetlb)
		advise_anon(space, w, window_bytes);
	return dress_window(space, w, window_bytes);
}

static void close_files(struct pcpi_space *space)
{
	for (unsigned i = 0; i < space->nr_windows; i++)
		close_file(&space->windows[i]);
}

static int open_windows(struct pcpi_space *space, const struct layout *l)
{
	int rc = 0;

	for (unsigned n = 0; n < space->nr_nodes; n++) {
		struct pcpi_space_node *node = &space->nodes[n];

		node->first_window = space->nr_windows;
		for (unsigned i = 0; i < l->nr_sizes && rc == 0; i++) {
			if (has_window(space, l, node, i))
				rc = open_window(space, n, space->sizes[i]);
		}
		if (rc == 0)
			rc = open_window(space, n,
					 (size_t)1 << space->page_shift);
		space->nr_windows += node->nr_windows;
		if (rc != 0)
			return rc;
	}
	PCPA_ASSERT(space->nr_windows == l->nr_windows);
	PCPA_ASSERT(((uintptr_t)space->base & (l->align - 1)) == 0); /* A1 */
	return 0;
}

/* ---- Life --------------------------------------------------------------- */

/* Room for the nodes, and for as many windows as they could have. */
static int map_tables(struct pcpi_space *space,
		      const struct pcpi_space_spec *spec)
{
	size_t node_bytes = sizeof(struct pcpi_space_node) * spec->nr_nodes;
	size_t window_bytes = sizeof(struct pcpi_window) * spec->nr_nodes *
			      (space->nr_sizes + 1u);
	int rc;

	space->meta_bytes = pcpi_round_up(node_bytes + window_bytes,
					  (size_t)1 << space->page_shift);
	rc = pcpi_sys->map_meta(space->meta_bytes, &space->meta);
	if (rc != 0)
		return rc;
	pcpi_sys->name(space->meta, space->meta_bytes, "pcpalloc:windows");
	space->windows = space->meta;
	space->nodes = (void *)((char *)space->meta + window_bytes);
	space->nr_nodes = spec->nr_nodes;
	for (unsigned n = 0; n < spec->nr_nodes; n++) {
		unsigned os_node = spec->nodes[n].os_node;

		space->nodes[n].os_node = os_node;
		space->nodes[n].sizes = node_sizes(space, os_node);
	}
	return 0;
}

static int map_granules(struct pcpi_space *space, unsigned nr_windows)
{
	size_t bytes = granule_words(space) * sizeof(uint64_t) * nr_windows;
	int rc;

	space->granules_bytes = pcpi_round_up(bytes,
					      (size_t)1 << space->page_shift);
	rc = pcpi_sys->map_meta(space->granules_bytes, &space->granules);
	if (rc == 0)
		pcpi_sys->name(space->granules, space->granules_bytes,
			       "pcpalloc:granules");
	return rc;
}

int pcpi_space_create(struct pcpi_space *space,
		      const struct pcpi_space_spec *spec)
{
	struct layout layout;
	int rc;

	*space = (struct pcpi_space){.hugepage_bytes = spec->hugepage_bytes,
				     .cow = spec->cow,
				     .dump = spec->dump,
				     .shared = spec->shared,
				     .contents = spec->contents,
				     .one_node = spec->one_node,
				     .alone = spec->alone,
				     .bound = spec->bound,
				     .near = spec->bound,
				     .verbosity = spec->verbosity};
	rc = read_sizes(space);
	if (rc != 0)
		return rc;
	choose_top_order(space);
	rc = map_tables(space, spec);
	if (rc != 0)
		return rc;
	rc = reserve_space(space, spec, &layout);
	if (rc != 0)
		goto unmap_tables;
	rc = map_granules(space, layout.nr_windows);
	if (rc != 0)
		goto unreserve;
	rc = open_windows(space, &layout);
	if (rc == 0)
		rc = pcpi_space_can_look(space);
	if (rc != 0)
		goto unmap_granules;
	return 0;

unmap_granules:
	close_files(space);
	pcpi_sys->unmap(space->granules, space->granules_bytes);
unreserve:
	pcpi_sys->unmap(space->base, (size_t)space->bytes);
unmap_tables:
	pcpi_sys->unmap(space->meta, space->meta_bytes);
	return rc;
}

int pcpi_space_destroy(struct pcpi_space *space)
{
	int rc = 0;

	if (space->bytes != 0)
		rc = pcpi_sys->unmap(space->base, (size_t)space->bytes);
	if (rc != 0)
		return rc;
	if (space->bytes != 0)
		close_files(space);
	space->bytes = 0;
	if (space->granules)
		rc = pcpi_sys->unmap(space->granules, space->granules_bytes);
	if (rc != 0)
		return rc;
	space->granules = NULL;
	if (space->meta)
		rc = pcpi_sys->unmap(space->meta, space->meta_bytes);
	if (rc == 0)
		space->meta = NULL;
	return rc;
}

void pcpi_space_forked(struct pcpi_space *space)
{
	close_files(space);
}

void pcpi_space_check(const struct pcpi_space *space)
{
	uint64_t window_bytes = UINT64_C(1) << space->window_shift;
	unsigned i = 0;

	PCPA_TRAP(space->bytes == space->nr_windows * window_bytes); /* A2 */
	for (unsigned n = 0; n < space->nr_nodes; n++) {
		const struct pcpi_space_node *node = &space->nodes[n];
		uint64_t placed = 0;

		PCPA_TRAP(node->first_window == i);
		for (; i < node->first_window + node->nr_windows; i++) {
			const struct pcpi_window *w = &space->windows[i];
			size_t block = (size_t)1 << space->page_shift
						 << space->top_order;

			PCPA_TRAP(w->base == space->base + i * window_bytes);
			PCPA_TRAP(w->next <= w->bytes &&
				  w->bytes <= window_bytes);      /* A6 */
			PCPA_TRAP(w->granule_bytes % block == 0); /* A4 */
			pcpi_window_check(w);
			PCPA_TRAP(w->fd >= 0 ? space->shared
					     : !space->shared || w->bytes == 0); /* A11 */
			placed += w->next - w->hole_bytes;
		}
		PCPA_TRAP(node->used_bytes == placed &&
			  node->used_bytes <= node->max_bytes); /* A7 */
	}
	PCPA_TRAP(i == space->nr_windows);
}
