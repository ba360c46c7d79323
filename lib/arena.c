/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena.c - backs arenas with memory, from the best kind that can be had.
 *
 * Owns: the order of the steps that turn a part of a window into memory, the
 * clamps before them, and what is given back when one fails.  Does not own:
 * the layout of windows (arena_window.c), the place of an arena in its window
 * (arena_place.c), when to grow or by how much (zone.c).
 *
 *   for each window of the node: hugetlb, large pages first, then anonymous
 *      clamp     to what pool, control groups and machine leave: populating
 *                past a memory group's limit is a kill, not an error
 *      commit    anonymous memory: mprotect
 *      populate  side by side on short-lived threads, after the window was
 *                bound to its node
 *      failed?   give back what came; half of it if a part will do, else the
 *                next window, and say so
 *
 *   bytes of a window:   |arena|hole| arena |<- next   free ...       | bytes
 *
 * A hole, what was given back between arenas, stays readable and writable: taking
 * the access away would make areas of its neighbours, of which a process has a
 * bounded number.  Beyond next there is no access.
 *
 * Invariants:
 *   A6  an arena is a whole number of granules, lies below its window's next,
 *       and next never passes what the window may use;
 *   A7  the arenas of a node sum up to used_bytes, at most max_bytes;
 *   A8  outside of arenas nothing is populated (unless the kernel refused to
 *       take it back: it is then used by the next arena there);
 *   A9  hugetlb memory and that of files is never touched before the kernel has
 *       said that it is there: without MADV_POPULATE_WRITE it is not used.
 *
 * Concurrency: one grower for each node, by the caller's lock; growers of
 * different nodes share only pending_bytes, which keeps two of them from taking
 * the same last part below a memory limit.
 * Cost: some 20 files read and two system calls, and zeroing the memory.
 * Failure: -ENOMEM, everything as before.
 * Proved by tests/unit/test_arena.c and test_arena_fall.c,
 * tests/fault/test_arena_fault.c and, with real huge pages and limits,
 * tests/sys/arena_*.c.
 */
#include "arena.h"

#include <errno.h>

#include "annotate.h"
#include "atomics.h"
#include "bits.h"
#include "check.h"
#include "sys/cgroup.h"

/* Below this much a helper thread costs more than it saves: zeroing 64 MiB
 * takes some 10 ms, making a thread 0.1 ms. */
#define HELPER_MIN_BYTES (UINT64_C(64) << 20)
#define MAX_HELPERS 64u

/* Kept free below a memory limit: page tables and descriptors of what is being
 * populated (under 1 %) and whatever the program does meanwhile. */
#define MARGIN_SHARE 32u
#define MARGIN_MIN_BYTES (UINT64_C(4) << 20)
#define MARGIN_MAX_BYTES (UINT64_C(256) << 20)

struct populate_job {
	char *base;
	uint64_t bytes, chunk_bytes;
	size_t page_bytes;
	bool touch;
	int rc[MAX_HELPERS];
};

/* How much may come now, and what says so. */
struct clamp {
	uint64_t bytes;
	enum pcpi_fall by;
};

/* ---- Populating --------------------------------------------------------- */

/* Writing is what makes a page: reading would map the shared zero page. */
static void touch_pages(char *base, uint64_t bytes, size_t page_bytes)
{
	for (uint64_t at = 0; at < bytes; at += page_bytes)
		*(volatile char *)(base + at) = 0;
}

static void populate_chunk(void *arg, unsigned i)
{
	struct populate_job *job = arg;
	uint64_t at = i * job->chunk_bytes;
	uint64_t bytes;

	if (at >= job->bytes)
		return;
	bytes = pcpi_min(job->chunk_bytes, job->bytes - at);
	if (job->touch)
		touch_pages(job->base + at, bytes, job->page_bytes);
	else
		job->rc[i] = pcpi_sys->populate(job->base + at, (size_t)bytes);
}

static int run_job(struct populate_job *job, unsigned helpers)
{
	for (unsigned i = 0; i < helpers; i++)
		job->rc[i] = 0;
	if (helpers > 1)
		pcpi_sys->parallel(helpers, populate_chunk, job);
	else
		populate_chunk(job, 0);
	for (unsigned i = 0; i < helpers; i++) {
		if (job->rc[i] != 0)
			return job->rc[i];
	}
	return 0;
}

static bool is_missing(int rc)
{
	return rc == -EINVAL || rc == -ENOSYS || rc == -EPERM;
}

/* A9: where there is no memory a touch of it is a signal. */
static bool may_touch(const struct pcpi_window *w)
{
	return w->backing != PCPA_BACKING_HUGETLB && w->fd < 0;
}

static int populate(struct pcpi_space *space, const struct pcpi_window *w,
		    char *base, uint64_t bytes)
{
	uint64_t most = pcpi_min(space->cpus, MAX_HELPERS);
	unsigned n = (unsigned)pcpi_clamp(bytes / HELPER_MIN_BYTES, UINT64_C(1),
					  most);
	struct populate_job job = {
		.base = base,
		.bytes = bytes,
		.chunk_bytes = pcpi_round_up((bytes + n - 1) / n, w->page_bytes),
		.page_bytes = (size_t)1 << space->page_shift,
		/* relaxed: who misses it learns it from the kernel. */
		.touch = pcpi_load_relaxed(&space->touch) && may_touch(w),
	};
	int rc = run_job(&job, n);

	if (is_missing(rc) && may_touch(w)) {
		/* relaxed: as above. */
		pcpi_store_relaxed(&space->touch, true);
		job.touch = true;
		rc = run_job(&job, n);
	}
	return rc;
}

/* ---- One range ---------------------------------------------------------- */

/* Memory without access until it is part of an arena. */
static bool is_closed(const struct pcpi_window *w, uint64_t at)
{
	return w->backing != PCPA_BACKING_HUGETLB && at >= w->next;
}

/* Pages back to the kernel. */
static int release(const struct pcpi_window *w, uint64_t at, uint64_t bytes)
{
	if (w->fd >= 0)
		return pcpi_sys->punch(w->fd, at, (size_t)bytes);
	return pcpi_sys->advise(w->base + at, (size_t)bytes,
				PCPI_ADVISE_DONTNEED);
}

/* Refusals here leave memory that the next arena takes over (A8). */
static void unback(const struct pcpi_window *w, uint64_t at, uint64_t bytes)
{
	char *base = w->base + at;

	release(w, at, bytes);
	if (is_closed(w, at))
		pcpi_sys->decommit(base, (size_t)bytes);
}

/* A pool that has the pages, and doesn't give them: a control group whose files
 * can't be read. */
static enum pcpi_fall why_no_hugetlb(const struct pcpi_window *w,
				     uint64_t bytes)
{
	struct pcpi_hugetlb_pool pool;

	pcpi_hugepages_pool(w->page_bytes, w->os_node, &pool);
	return pool.usable >= bytes / w->page_bytes ? PCPI_FALL_HUGETLB_CGROUP
						    : PCPI_FALL_HUGETLB_POOL;
}

static enum pcpi_fall why_unpopulated(const struct pcpi_window *w, int rc,
				      uint64_t bytes)
{
	if (is_missing(rc) && !may_touch(w))
		return PCPI_FALL_POPULATE;
	return w->backing == PCPA_BACKING_HUGETLB ? why_no_hugetlb(w, bytes)
						  : PCPI_FALL_MACHINE;
}

static int look(struct pcpi_space *space, struct pcpi_window *w,
		const char *base, uint64_t bytes)
{
	int rc = pcpi_window_look(space, w, base, bytes);

	if (rc != 0)
		w->lack = w->backing == PCPA_BACKING_HUGETLB
				  ? PCPI_FALL_HUGETLB_POOL
				  : PCPI_FALL_NODE;
	return rc;
}

static int back(struct pcpi_space *space, struct pcpi_window *w, uint64_t at,
		uint64_t bytes)
{
	char *base = w->base + at;
	int rc;

	if (is_closed(w, at)) {
		rc = pcpi_sys->commit(base, (size_t)bytes);
		if (rc != 0) {
			w->lack = PCPI_FALL_COMMIT;
			return rc;
		}
	}
	rc = populate(space, w, base, bytes);
	if (rc != 0)
		w->lack = why_unpopulated(w, rc, bytes);
	else
		rc = look(space, w, base, bytes);
	if (rc != 0)
		unback(w, at, bytes);
	return rc;
}

/* A smaller arena may do where memory is short, not where the call is refused. */
static bool is_shortage(int rc)
{
	return rc == -ENOMEM || rc == -EFAULT || rc == -EAGAIN;
}

/* Backs as much as can be had of bytes; returns how much, 0 for nothing. */
static uint64_t back_some(struct pcpi_space *space, struct pcpi_window *w,
			  uint64_t at, uint64_t bytes, bool exact)
{
	while (bytes != 0) {
		int rc = back(space, w, at, bytes);

		if (rc == 0)
			break;
		if (exact || !is_shortage(rc))
			return 0;
		bytes = pcpi_round_down(bytes / 2, w->granule_bytes);
	}
	return bytes;
}

/* ---- Clamps ------------------------------------------------------------- */

static uint64_t less_margin(uint64_t left, uint64_t of)
{
	uint64_t margin = pcpi_clamp(of / MARGIN_SHARE, MARGIN_MIN_BYTES,
				     MARGIN_MAX_BYTES);

	return left > margin ? left - margin : 0;
}

static struct clamp clamp_hugetlb(const struct pcpi_window *w)
{
	struct pcpi_hugetlb_pool pool;
	struct clamp c = {pcpi_cgroup_hugetlb_left(w->page_bytes),
			  PCPI_FALL_HUGETLB_CGROUP};

	pcpi_hugepages_pool(w->page_bytes, w->os_node, &pool);
	if (pool.usable <= c.bytes / w->page_bytes)
		c = (struct clamp){pool.usable * w->page_bytes,
				   PCPI_FALL_HUGETLB_POOL};
	return c;
}

static void clamp_node(unsigned os_node, uint64_t want_bytes, struct clamp *c)
{
	uint64_t left = pcpi_node_memory_left(os_node, want_bytes);

	if (left == UINT64_MAX)
		return;
	left = less_margin(left, left);
	if (left < c->bytes)
		*c = (struct clamp){left, PCPI_FALL_NODE};
}

/* Of one node, of which so much is wanted, or with NULL of all. */
static struct clamp clamp_anon(const struct pcpi_window *w, uint64_t want_bytes,
			       uint64_t others_bytes)
{
	struct pcpi_memory_room room;
	struct clamp c;

	pcpi_cgroup_memory(&room);
	c.bytes = room.machine_left;
	c.by = PCPI_FALL_MACHINE;
	if (c.bytes != UINT64_MAX)
		c.bytes = less_margin(c.bytes, c.bytes);
	if (room.left != UINT64_MAX) {
		uint64_t left = less_margin(room.left, room.limit);

		if (left < c.bytes)
			c = (struct clamp){left, PCPI_FALL_CGROUP};
	}
	c.bytes = c.bytes > others_bytes ? c.bytes - others_bytes : 0;
	if (w)
		clamp_node(w->os_node, want_bytes, &c);
	return c;
}

/* ---- What is said ------------------------------------------------------- */

static const char *backing_name(const struct pcpi_window *w)
{
	return w->backing == PCPA_BACKING_THP ? "transparent huge" : "base";
}

/* The window of the size that the heap would rather have used; NULL: none. */
static const struct pcpi_window *wished_window(const struct pcpi_space *space,
					       const struct pcpi_space_node *n,
					       size_t size)
{
	for (unsigned i = 0; i < n->nr_windows; i++) {
		const struct pcpi_window *w =
			&space->windows[n->first_window + i];

		if (w->backing == PCPA_BACKING_HUGETLB && w->page_bytes == size)
			return w;
	}
	return NULL;
}

static void say_pool(struct pcpi_space *space, const struct pcpi_window *used,
		     size_t size, uint64_t want_bytes)
{
	struct pcpi_hugetlb_pool pool;
	uint64_t need = (want_bytes + size - 1) / size;
	char name[24], command[160];

	if (!pcpi_space_fall(space, PCPI_FALL_HUGETLB_POOL))
		return;
	pcpi_hugepages_pool(size, used->os_node, &pool);
	need = pool.total + need - pcpi_min(need, pool.usable);
	pcpi_hugepages_command(size, used->os_node, need, command,
			       sizeof(command));
	pcpi_cgroup_size_name(size, name, sizeof(name));
	pcpi_sys_say("node %u: too few free hugetlb pages of %s, using %s "
		     "pages: `%s`",
		     used->os_node, name, backing_name(used), command);
}

/* Anonymous memory serves a heap that may use hugetlb pages: why? */
static void say_no_hugetlb(struct pcpi_space *space,
			   const struct pcpi_space_node *node,
			   const struct pcpi_window *used, uint64_t want_bytes)
{
	size_t size = space->nr_sizes ? space->sizes[space->nr_sizes - 1] : 0;
	const struct pcpi_window *w = wished_window(space, node, size);
	enum pcpi_fall lack = w ? w->lack : PCPI_FALL_HUGETLB_POOL;
	const char *instead = backing_name(used);
	char name[24];

	pcpi_cgroup_size_name(size, name, sizeof(name));
	if (size == 0)
		pcpi_space_say_once(space, PCPI_FALL_HUGETLB_NONE,
				    "no hugetlb pages to be seen in /sys, "
				    "using %s pages",
				    instead);
	else if (!w && (node->sizes >> (space->nr_sizes - 1) & 1u) != 0)
		pcpi_space_say_once(space, PCPI_FALL_SPACE,
				    "hugetlb pages of %s don't fit max_bytes, "
				    "using %s pages",
				    name, instead);
	else if (lack == PCPI_FALL_HUGETLB_CGROUP)
		pcpi_space_say_once(space, lack,
				    "the control group limits hugetlb pages, "
				    "using %s pages: raise hugetlb.%s.max "
				    "and hugetlb.%s.rsvd.max",
				    instead, name, name);
	else if (lack == PCPI_FALL_HUGETLB_REFUSED)
		pcpi_space_say_once(space, lack,
				    "%s is refused, using %s pages: allow it in "
				    "the sandbox's filter",
				    space->shared ? "memfd_create(MFD_HUGETLB)"
						  : "mmap(MAP_HUGETLB)",
				    instead);
	else if (lack == PCPI_FALL_POPULATE)
		pcpi_space_say_once(space, lack,
				    "no MADV_POPULATE_WRITE, so hugetlb pages "
				    "aren't safe, using %s pages: use Linux "
				    "5.14 or allow it in the sandbox's filter",
				    instead);
	else
		say_pool(space, used, size, want_bytes);
}

static void say_backing(struct pcpi_space *space,
			const struct pcpi_space_node *node,
			const struct pcpi_window *used, uint64_t want_bytes)
{
	size_t page = (size_t)1 << space->page_shift;
	bool none_asked = space->hugepage_bytes == page;
	/* A transparent size that was asked for is no fall. */
	bool thp_asked = space->hugepage_bytes != 0 && space->nr_sizes == 0;

	if (used->backing == PCPA_BACKING_HUGETLB || none_asked)
		return;
	if (!space->cow && !thp_asked)
		say_no_hugetlb(space, node, used, want_bytes);
	if (used->backing == PCPA_BACKING_BASE)
		pcpi_space_say_once(space, PCPI_FALL_THP,
				    "no transparent huge pages%s, using base "
				    "pages of %zu KiB: `echo %s > "
				    "/sys/kernel/mm/transparent_hugepage/%s`",
				    space->shared ? " for shared memory" : "",
				    page >> 10,
				    space->shared ? "advise" : "madvise",
				    space->shared ? "shmem_enabled" : "enabled");
}

/* Anonymous memory gave less than was wanted. */
static void say_short_of(struct pcpi_space *space, enum pcpi_fall by,
			 uint64_t got_bytes)
{
	unsigned long long mib = got_bytes >> 20;

	if (by == PCPI_FALL_CGROUP)
		pcpi_space_say_once(space, by,
				    "the control group leaves %llu MiB: raise "
				    "memory.max (`docker run --memory`)",
				    mib);
	else if (by == PCPI_FALL_COMMIT)
		pcpi_space_say_once(space, by,
				    "the kernel commits only %llu MiB: `sysctl "
				    "vm.overcommit_memory=0`, or raise "
				    "RLIMIT_DATA (`ulimit -d`)",
				    mib);
	else if (by == PCPI_FALL_POPULATE)
		pcpi_space_say_once(space, by,
				    "no MADV_POPULATE_WRITE, so shared memory "
				    "isn't safe: use Linux 5.14 or allow it in "
				    "the sandbox's filter");
	else
		pcpi_space_say_once(space, PCPI_FALL_MACHINE,
				    "the machine's memory leaves %llu MiB", mib);
}

static void say_short(struct pcpi_space *space, const struct pcpi_window *w,
		      uint64_t got_bytes)
{
	if (w->lack == PCPI_FALL_NODE)
		pcpi_space_say_once(space, w->lack, "node %u has %llu MiB left",
				    w->os_node,
				    (unsigned long long)(got_bytes >> 20));
	else
		say_short_of(space, w->lack, got_bytes);
}

/* Of the pools of one size, which share a control group's limit. */
static uint64_t hugetlb_left(const struct pcpi_space *space, unsigned size)
{
	size_t page_bytes = space->sizes[size];
	uint64_t left = 0;

	for (unsigned i = 0; i < space->nr_windows; i++) {
		const struct pcpi_window *w = &space->windows[i];

		if (w->backing == PCPA_BACKING_HUGETLB &&
		    w->page_bytes == page_bytes)
			left += clamp_hugetlb(w).bytes;
	}
	return pcpi_min(left, pcpi_cgroup_hugetlb_left(page_bytes));
}

int pcpi_space_can_back(struct pcpi_space *space, uint64_t bytes)
{
	struct clamp anon = clamp_anon(NULL, bytes, 0);
	uint64_t had = anon.bytes;

	for (unsigned i = 0; i < space->nr_sizes; i++)
		had += pcpi_min(hugetlb_left(space, i), UINT64_MAX - had);
	if (bytes <= had)
		return 0;
	say_short_of(space, anon.by, had);
	return -ENOMEM;
}

/* ---- Growing ------------------------------------------------------------ */

/* What one window can give of want_bytes; 0 for nothing. */
static uint64_t grow_hugetlb(struct pcpi_space *space, struct pcpi_window *w,
			     uint64_t at, uint64_t bytes, bool exact)
{
	struct clamp c = clamp_hugetlb(w);

	if (c.bytes < bytes) {
		w->lack = c.by;
		bytes = exact ? 0 : pcpi_round_down(c.bytes, w->granule_bytes);
	}
	bytes = back_some(space, w, at, bytes, exact);
	if (bytes == 0 && w->lack == PCPI_FALL_POPULATE)
		w->bytes = w->next; /* A9: nor will it ever be */
	return bytes;
}

static uint64_t grow_anon(struct pcpi_space *space, struct pcpi_window *w,
			  uint64_t at, uint64_t want_bytes, bool exact)
{
	/* relaxed: a sum; the order of two growers doesn't matter. */
	uint64_t others =
		pcpi_fetch_add_relaxed(&space->pending_bytes, want_bytes);
	struct clamp c = clamp_anon(space->near ? w : NULL, want_bytes, others);
	uint64_t bytes = want_bytes, got;

	w->lack = c.by;
	if (c.bytes < bytes)
		bytes = exact ? 0 : pcpi_round_down(c.bytes, w->granule_bytes);
	got = back_some(space, w, at, bytes, exact);
	/* relaxed: as above. */
	pcpi_fetch_add_relaxed(&space->pending_bytes, -want_bytes);
	if (got < want_bytes)
		say_short(space, w, c.bytes < want_bytes ? c.bytes : got);
	return got;
}

/* Bytes to try in a window, and where: whole granules, within its room and the
 * node's. */
static uint64_t fit(const struct pcpi_space_node *node,
		    const struct pcpi_window *w, uint64_t want_bytes, bool exact,
		    uint64_t *at)
{
	uint64_t room = pcpi_round_down(node->max_bytes - node->used_bytes,
					w->granule_bytes);
	uint64_t bytes = pcpi_round_up(pcpi_min(want_bytes, room),
				       w->granule_bytes);

	if (exact && bytes < want_bytes)
		return 0;
	return pcpi_window_place(w, bytes, exact, at);
}

/* A page far larger than what is wanted is taken only if asked for. */
static bool is_eligible(const struct pcpi_space *space,
			const struct pcpi_window *w, uint64_t want_bytes)
{
	return w->backing != PCPA_BACKING_HUGETLB ||
	       w->page_bytes == space->hugepage_bytes ||
	       w->page_bytes <= pcpi_round_up(want_bytes, space->granule_bytes);
}

static void describe(const struct pcpi_space *space, const struct pcpi_window *w,
		     uint64_t at, uint64_t bytes, struct pcpi_arena *out)
{
	out->base = w->base + at;
	out->bytes = bytes;
	out->first_pfn = pcpi_space_pfn(space, out->base);
	out->pages = (uint32_t)(bytes >> space->page_shift);
	out->node = w->node;
	out->os_node = w->os_node;
	out->backing = w->backing;
	out->told = false;
	out->page_bytes = w->page_bytes;
}

int pcpi_arena_grow(struct pcpi_space *space, unsigned node_pos,
		    uint64_t want_bytes, bool exact, struct pcpi_arena *out)
{
	struct pcpi_space_node *node = &space->nodes[node_pos];

	PCPA_ASSERT(node_pos < space->nr_nodes);
	want_bytes = pcpi_clamp(want_bytes, UINT64_C(1), space->bytes);
	for (unsigned i = 0; i < node->nr_windows; i++) {
		struct pcpi_window *w = &space->windows[node->first_window + i];
		uint64_t at, bytes = fit(node, w, want_bytes, exact, &at);

		if (bytes == 0 || !is_eligible(space, w, want_bytes))
			continue;
		if (w->backing == PCPA_BACKING_HUGETLB)
			bytes = grow_hugetlb(space, w, at, bytes, exact);
		else
			bytes = grow_anon(space, w, at, bytes, exact);
		if (bytes == 0)
			continue;
		say_backing(space, node, w, want_bytes);
		describe(space, w, at, bytes, out);
		pcpi_window_fill(w, at, bytes);
		node->used_bytes += bytes;
		pcpi_annotate_add(out->base, (size_t)bytes, space->contents);
		return 0;
	}
	return -ENOMEM;
}

/* What is left when an arena's memory is gone. */
static void forget(struct pcpi_space *space, const struct pcpi_arena *arena)
{
	struct pcpi_window *w = pcpi_space_window(space, arena->first_pfn);
	uint64_t at = (uint64_t)(arena->base - w->base), closed;

	pcpi_annotate_remove(arena->base, (size_t)arena->bytes);
	space->nodes[w->node].used_bytes -= arena->bytes;
	closed = pcpi_window_clear(w, at, arena->bytes);
	if (closed > 0 && w->backing != PCPA_BACKING_HUGETLB)
		pcpi_sys->decommit(w->base + w->next, (size_t)closed);
}

int pcpi_arena_give_back(struct pcpi_space *space,
			 const struct pcpi_arena *arena)
{
	struct pcpi_window *w = pcpi_space_window(space, arena->first_pfn);
	int rc = release(w, (uint64_t)(arena->base - w->base), arena->bytes);

	/* A part may be gone.  What can't be had again counts as given, and what
	 * is left of it is the next arena's there: A8, A9. */
	if (rc != 0 && populate(space, w, arena->base, arena->bytes) == 0)
		return rc;
	forget(space, arena);
	return 0;
}

void pcpi_arena_cancel(struct pcpi_space *space, const struct pcpi_arena *arena)
{
	struct pcpi_window *w = pcpi_space_window(space, arena->first_pfn);

	release(w, (uint64_t)(arena->base - w->base), arena->bytes);
	forget(space, arena);
}

void pcpi_arena_info(const struct pcpi_space *space,
		     const struct pcpi_arena *arena, struct pcpa_arena_info *out)
{
	const struct pcpi_window *w = pcpi_space_window(space, arena->first_pfn);

	*out = (struct pcpa_arena_info){
		.struct_size = sizeof(*out),
		.base = arena->base,
		.bytes = arena->bytes,
		.node = (int)arena->os_node,
		.backing = arena->backing,
		.page_bytes = arena->page_bytes,
		.fd = w->fd,
		.offset = w->fd < 0 ? 0 : (uint64_t)(arena->base - w->base),
		.granule_bytes = w->granule_bytes,
	};
}
