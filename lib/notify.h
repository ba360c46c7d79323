/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify.h - telling the program of arenas, which may refuse.  Layer 3.
 *
 * Owns: the subscriber, and which arenas it was told of (arena->told).  Does not
 * own: what follows from a refusal (zone.c, zone_trim.c), the walk over arenas when a
 * subscription begins or ends (subscribe.c).
 *
 *   growth      populated --ADD--> listed, free     refused: given back
 *   trim        free --REMOVE--> given back         refused: free again
 *   subscribe   ADD for each arena listed           refused: no subscription
 *   end         REMOVE for each arena told          no refusal
 *
 * NO1  An arena that is listed was told to the subscriber, if told is set; while the
 *      turn is free, to the one that there is.  A part of one inherits it.
 * NO2  Growth lists an arena in the same hold of the lock in which it sees that
 *      nobody is to be told: so who subscribes finds it, or is asked.
 * NO3  Growth calls with no lock held at all, several threads at once: an
 *      allocation may come from under any lock of the program.  Everything else
 *      calls with the turn, which only trims, subscribing and destroying wait for;
 *      whoever does that holds no lock that the subscriber takes.
 * NO4  The subscriber that has left is not running, nor will it be called:
 *      pcpi_notify_leave() waits for growth that is at it.
 *
 * Concurrency: any thread.  Locks: TURN, and NOTIFY for the fields.
 * Cost: without a subscriber a lock operation an arena.  Failure: a refusal.
 * Proved by tests/unit/test_notify.c, tests/conc/notify.c.
 */
#ifndef PCPI_NOTIFY_H
#define PCPI_NOTIFY_H

#include <urcu/list.h>

#include "arena.h"
#include "lock.h"

typedef int pcpi_notify_fn(enum pcpa_arena_change change,
			   const struct pcpa_arena_info *arena, void *arg);

struct pcpi_subscriber {
	pcpi_notify_fn *fn; /* NULL: none */
	void *arg;
};

struct pcpi_notify {
	/* c: fixed after init, n: NOTIFY lock */
	const struct pcpi_space *space; /* c */
	struct pcpi_lock turn;		/* TURN: NO3 */
	struct pcpi_lock lock;		/* NOTIFY */
	struct pcpi_subscriber now;	/* n */
	unsigned adding; /* n: arenas of growth, told and not listed yet */
};

void pcpi_notify_init(struct pcpi_notify *n, const struct pcpi_space *space);
void pcpi_notify_fini(struct pcpi_notify *n);

/* ---- For growth ---- */

/* Lists the arena, or returns false: the subscriber is to be told before (NO2).
 * Locks: the zone's grow lock.  n may be NULL. */
bool pcpi_notify_list(struct pcpi_notify *n, struct pcpi_arena *a,
		      struct cds_list_head *arenas);

/* Tells the subscriber, if it is still there, of an arena that isn't listed yet.
 * Returns 0, or its refusal.  Locks: none. */
int pcpi_notify_grown(struct pcpi_notify *n, struct pcpi_arena *a);

/* ---- With the turn ---- */

/* A subscriber comes, from now on told by growth; -EBUSY: there is one. */
int pcpi_notify_join(struct pcpi_notify *n, struct pcpi_subscriber who);

/* It goes: NO4.  Returns who it was. */
struct pcpi_subscriber pcpi_notify_leave(struct pcpi_notify *n);

/* Calls it, of an arena or a part of one.  Returns 0, or its refusal, which is a
 * negative errno. */
int pcpi_notify_call(const struct pcpi_notify *n, struct pcpi_subscriber who,
		     enum pcpa_arena_change change, const struct pcpi_arena *a);

/* The same with who is there, for an arena that it was told of; 0 for others. */
int pcpi_notify_tell(struct pcpi_notify *n, enum pcpa_arena_change change,
		     const struct pcpi_arena *a);

#endif
