/* SPDX-License-Identifier: BSD-2-Clause */
/* notify.c - see notify.h. */
#include "notify.h"

#include <errno.h>

#include "list.h"
#include "nest.h"
#include "sys/sys.h"

void pcpi_notify_init(struct pcpi_notify *n, const struct pcpi_space *space)
{
	*n = (struct pcpi_notify){ .space = space };
	pcpi_lock_init(&n->turn, PCPI_RANK_TURN);
	pcpi_lock_init(&n->lock, PCPI_RANK_NOTIFY);
}

void pcpi_notify_fini(struct pcpi_notify *n)
{
	pcpi_lock_fini(&n->lock);
	pcpi_lock_fini(&n->turn);
}

int pcpi_notify_call(const struct pcpi_notify *n, struct pcpi_subscriber who,
		     enum pcpa_arena_change change, const struct pcpi_arena *a)
{
	struct pcpa_arena_info info;
	unsigned depth;
	int rc;

	pcpi_arena_info(n->space, a, &info);
	depth = pcpi_nest_suspend(); /* NE3 */
	rc = who.fn(change, &info, who.arg);
	pcpi_nest_resume(depth);
	return rc > 0 ? -ECANCELED : rc;
}

/* ---- Growth ---------------------------------------------------------------- */

bool pcpi_notify_list(struct pcpi_notify *n, struct pcpi_arena *a,
		      struct cds_list_head *arenas)
{
	bool told = a->told, due; /* once listed it is the turn's: SU2 */

	if (!n) {
		pcpi_list_add_tail(&a->link, arenas);
		return true;
	}
	pcpi_lock_take(&n->lock);
	due = n->now.fn && !told;
	if (!due) {
		pcpi_list_add_tail(&a->link, arenas);
		n->adding -= told;
	}
	pcpi_lock_drop(&n->lock);
	return !due;
}

int pcpi_notify_grown(struct pcpi_notify *n, struct pcpi_arena *a)
{
	struct pcpi_subscriber who;
	int rc;

	pcpi_lock_take(&n->lock);
	who = n->now;
	n->adding += who.fn != NULL;
	pcpi_lock_drop(&n->lock);
	if (!who.fn)
		return 0;
	rc = pcpi_notify_call(n, who, PCPA_ARENA_ADD, a);
	a->told = rc == 0;
	if (rc != 0) {
		pcpi_lock_take(&n->lock);
		n->adding--;
		pcpi_lock_drop(&n->lock);
	}
	return rc;
}

/* ---- With the turn ----------------------------------------------------------- */

int pcpi_notify_join(struct pcpi_notify *n, struct pcpi_subscriber who)
{
	int rc = -EBUSY;

	pcpi_lock_take(&n->lock);
	if (!n->now.fn) {
		n->now = who;
		rc = 0;
	}
	pcpi_lock_drop(&n->lock);
	return rc;
}

struct pcpi_subscriber pcpi_notify_leave(struct pcpi_notify *n)
{
	struct pcpi_subscriber who;

	pcpi_lock_take(&n->lock);
	who = n->now;
	n->now = (struct pcpi_subscriber){ .fn = NULL };
	while (n->adding > 0) { /* NO4 */
		pcpi_lock_drop(&n->lock);
		pcpi_sys->yield();
		pcpi_lock_take(&n->lock);
	}
	pcpi_lock_drop(&n->lock);
	return who;
}

int pcpi_notify_tell(struct pcpi_notify *n, enum pcpa_arena_change change,
		     const struct pcpi_arena *a)
{
	struct pcpi_subscriber who;

	if (!a->told)
		return 0;
	pcpi_lock_take(&n->lock);
	who = n->now;
	pcpi_lock_drop(&n->lock);
	return pcpi_notify_call(n, who, change, a);
}
