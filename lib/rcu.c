/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcu.c - becoming a reader, ceasing to be one, and forks: see rcu.h.
 *
 * liburcu counts a thread out in the destructor of its key, which nobody can hold
 * up.  So the key is emptied when a thread becomes a reader, and filled again by
 * the destructor of a key of ours, after which the C library goes round once more:
 *
 *   round n    leave(): one more is leaving, under the door; liburcu's key is
 *              filled
 *   round n+1  liburcu counts the thread out; leave(): one less is leaving
 *              (a round later where our key comes before liburcu's)
 *
 * Which key is liburcu's is seen at a registration: it is filled by it.
 */
#include <limits.h>
#include <pthread.h>

#include "lock.h"
#include "nest.h"
#include "rcu.h"

static struct pcpi_lock door = PCPI_LOCK_INIT(PCPI_RANK_READER);
static int leaving; /* a; it grows under the door */

static bool keys_known; /* a; set under the door, after the keys */
static pthread_key_t urcu_key;
/* What urcu_key had, of a thread that is registered; then &leaving. */
static pthread_key_t leave_key;

static void left(void)
{
	pcpi_fetch_add_release(&leaving, -1); /* pairs with pcpi_rcu_leaving() */
}

static void leave(void *stage)
{
	pcpi_nest_enter();
	if (stage != &leaving) {
		pcpi_lock_take(&door);
		/* relaxed: read under the door. */
		pcpi_fetch_add_relaxed(&leaving, 1);
		pcpi_lock_drop(&door);
		pthread_setspecific(urcu_key, stage);
	}
	if (pthread_getspecific(urcu_key))
		pthread_setspecific(leave_key, &leaving);
	else
		left();
	pcpi_nest_leave();
}

static void register_locked(void)
{
	bool filled[PTHREAD_KEYS_MAX], found = false;
	pthread_key_t key;

	for (key = 0; key < PTHREAD_KEYS_MAX; key++)
		filled[key] = pthread_getspecific(key) != NULL;
	urcu_bp_register_thread();
	for (key = 0; key < PTHREAD_KEYS_MAX; key++) {
		if (!filled[key] && pthread_getspecific(key)) {
			urcu_key = key;
			found = true;
		}
	}
	if (found && pthread_key_create(&leave_key, leave) == 0)
		/* release: pairs with registered(). */
		pcpi_store_release(&keys_known, true);
}

PCPI_COLD static void enlist(void)
{
	const void *reader;

	pcpi_lock_take(&door);
	/* relaxed: set under the door. */
	if (pcpi_load_relaxed(&keys_known))
		urcu_bp_register_thread();
	else
		register_locked();
	/* relaxed: as above. */
	if (pcpi_load_relaxed(&keys_known)) {
		/* Another destructor calls us between or after the two. */
		if (pthread_getspecific(leave_key) == &leaving)
			left();
		reader = pthread_getspecific(urcu_key);
		if (pthread_setspecific(leave_key, reader) == 0)
			pthread_setspecific(urcu_key, NULL);
	}
	pcpi_lock_drop(&door);
}

/* Whether the thread is, and can't have been counted out since. */
static bool registered(void)
{
	const void *stage;

	/* acquire: pairs with register_locked(). */
	if (!pcpi_load_acquire(&keys_known))
		return false;
	stage = pthread_getspecific(leave_key);
	return stage && stage != &leaving;
}

void pcpi_rcu_read_lock(void)
{
	if (!registered())
		enlist();
	urcu_bp_read_lock();
}

void pcpi_rcu_shut(void)
{
	pcpi_lock_freeze(&door);
}

bool pcpi_rcu_leaving(void)
{
	return pcpi_load_acquire(&leaving) > 0; /* pairs with left() */
}

void pcpi_rcu_open(bool child)
{
	if (child)
		/* relaxed: there is no other thread. */
		pcpi_store_relaxed(&leaving, 0);
	pcpi_lock_thaw(&door);
}
