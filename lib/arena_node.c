/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_node.c - whether a window's memory is that of its node.
 *
 * Owns: binding of windows, the look at where an arena's pages came from, and
 * what is done about those of other nodes.  Does not own: which nodes there
 * are (topo.c), backing (arena.c), where a request goes whose node is full
 * (route.c).
 *
 * The kernel may put pages on another node than asked: it refuses the binding
 * (a sandbox), the node has no memory left, or the nodes that a control group
 * allows were changed.  None of that is an error of the calls that take memory, so
 * after an arena was populated the kernel is asked where the pages are:
 *
 *                        any heap                       PCPA_HEAP_BOUND
 *   binding refused      said once                      no heap
 *   pages elsewhere      said once, misplaced_pages     given back, less or none
 *   place not told       as it is                       no heap
 *
 * Of a heap on several nodes, what comes from elsewhere after its creation is given
 * back, too (`near`): the heap asks the other nodes in its own order then, and
 * counts.  What its initial_bytes are short of there has to lie somewhere.
 *
 * Where the process may use one node only (`one_node`), a refused binding is no
 * matter, nor that a place isn't told; where the machine has no other, or is only
 * described (`alone`), nobody is asked.
 *
 * A12 no arena of a bound space, and none by which a near one has grown, has a page
 *     that was seen on another node.
 *
 * Concurrency: whoever grows the node.
 * Cost: a 16th of the pages is looked at (each hugetlb page): 2 to 4 ms a GiB.
 * Failure: see each function.
 * Proved by tests/unit/test_arena_node.c; on real nodes by tests/vm.
 */
#include "arena.h"

#include <errno.h>

#include "atomics.h"

/* The kernel takes pages of a node by the dozen, so that a run of fewer on
 * another is rare; it may be missed.  A look at each would take a fifth of the time of
 * populating them (docs/restricted-sets.md). */
#define LOOK_PAGES 16u

static void say_refused(struct pcpi_space *space, const struct pcpi_window *w,
			const char *call, int rc)
{
	pcpi_space_say_once(space, PCPI_FALL_BIND,
			    "memory can't be bound to node %u (error %d)%s: in "
			    "a container allow %s, e.g. `docker run --cap-add "
			    "SYS_NICE`",
			    w->os_node, -rc,
			    space->bound ? ", which the heap's flags demand"
					 : "",
			    call);
}

int pcpi_window_bind(struct pcpi_space *space, struct pcpi_window *w,
		     uint64_t window_bytes)
{
	enum pcpi_binding how = w->backing == PCPA_BACKING_HUGETLB
					? PCPI_BIND_ONLY
					: PCPI_BIND_PREFER;
	int rc = pcpi_sys->bind(w->base, (size_t)window_bytes, w->os_node, how);

	if (rc == 0 || space->one_node)
		return 0;
	say_refused(space, w, "mbind", rc);
	return space->bound ? rc : 0;
}

int pcpi_space_can_look(struct pcpi_space *space)
{
	ssize_t n;

	if (space->one_node || !space->bound)
		return 0;
	/* Any memory that is there will do. */
	n = pcpi_sys->elsewhere(space->meta, (size_t)1 << space->page_shift,
				(size_t)1 << space->page_shift, 0);
	if (n >= 0)
		return 0;
	say_refused(space, &space->windows[0], "move_pages", (int)n);
	return (int)n;
}

static void misplaced(struct pcpi_space *space, const struct pcpi_window *w,
		      uint64_t bytes)
{
	struct pcpi_space_node *node = &space->nodes[w->node];

	/* relaxed: a statistic, by one writer. */
	pcpi_store_relaxed(&node->misplaced_bytes,
			   node->misplaced_bytes + bytes);
	pcpi_space_say_once(space, PCPI_FALL_NODE,
			    "node %u: %llu KiB came from other nodes",
			    w->os_node, (unsigned long long)(bytes >> 10));
}

int pcpi_window_look(struct pcpi_space *space, const struct pcpi_window *w,
		     const char *base, uint64_t bytes)
{
	size_t step = w->backing == PCPA_BACKING_HUGETLB
			      ? w->page_bytes
			      : (size_t)LOOK_PAGES << space->page_shift;
	ssize_t n;

	if (space->alone)
		return 0;
	n = pcpi_sys->elsewhere(base, (size_t)bytes, step, w->os_node);
	if (n < 0)
		return space->bound && !space->one_node ? (int)n : 0;
	if (n > 0 && (space->bound || space->near))
		return -ENOMEM;
	if (n > 0)
		misplaced(space, w, pcpi_min((uint64_t)n * step, bytes));
	return 0;
}
