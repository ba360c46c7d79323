/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subscribe.c - the begin and the end of a subscription to a heap's arenas.
 * Layer 5, part of heap.h.
 *
 * Owns: who is told of the arenas that are there.  The subscriber, and what growth
 * and trims tell, are notify.h's.
 *
 *   begin   from now on growth tells; then ADD for each arena that it hasn't told
 *   end     growth tells no more; then REMOVE for each that was told
 *
 * SU1  With the turn no arena goes and no record changes, as trims wait for it; what
 *      growth lists comes behind, told already.  So the lists are walked with no lock
 *      that growth needs, nor a read-side section, and a subscriber may take its
 *      time.
 * SU2  arena->told is written by growth before it lists the arena, and after that
 *      with the turn.
 *
 * Cost: a call an arena.  Failure: of the begin, as the end: nothing remains.
 * Proved by tests/unit/test_notify.c, tests/conc/notify.c.
 */
#include "heap.h"
#include "list.h"

static void end(struct pcpa_heap *heap)
{
	struct pcpi_notify *n = &heap->notify;
	struct pcpi_subscriber who = pcpi_notify_leave(n);
	struct pcpi_arena *a;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		pcpi_list_each(a, &heap->env.zones[z].arenas, link) { /* SU1 */
			if (a->told)
				pcpi_notify_call(n, who, PCPA_ARENA_REMOVE, a);
			a->told = false;
		}
}

static int zone_tell(struct pcpi_notify *n, struct pcpi_subscriber who,
		     struct pcpi_zone *z)
{
	struct pcpi_arena *a;
	int rc;

	pcpi_list_each(a, &z->arenas, link) { /* SU1 */
		if (a->told)
			continue;
		rc = pcpi_notify_call(n, who, PCPA_ARENA_ADD, a);
		if (rc != 0)
			return rc;
		a->told = true;
	}
	return 0;
}

static int begin(struct pcpa_heap *heap, struct pcpi_subscriber who)
{
	int rc = pcpi_notify_join(&heap->notify, who);
	unsigned z;

	if (rc != 0)
		return rc;
	for (z = 0; z < heap->nr_zones && rc == 0; z++)
		rc = zone_tell(&heap->notify, who, &heap->env.zones[z]);
	if (rc != 0)
		end(heap);
	return rc;
}

int pcpi_heap_notify(struct pcpa_heap *heap, pcpi_notify_fn *fn, void *arg)
{
	int rc = 0;

	pcpi_lock_take(&heap->notify.turn);
	if (fn)
		rc = begin(heap, (struct pcpi_subscriber){ fn, arg });
	else
		end(heap);
	pcpi_lock_drop(&heap->notify.turn);
	return rc;
}
