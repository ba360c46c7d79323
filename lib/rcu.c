/* SPDX-License-Identifier: BSD-2-Clause */
/* rcu.c - becoming a reader, and forks: see rcu.h. */
#include <urcu/tls-compat.h>

#include "lock.h"
#include "rcu.h"

/* liburcu's own, part of its interface for inlined sections: NULL where the
 * calling thread isn't registered, also once it is counted out. */
extern DECLARE_URCU_TLS(struct urcu_bp_reader *, urcu_bp_reader);

static struct pcpi_lock door = PCPI_LOCK_INIT(PCPI_RANK_READER);

PCPI_COLD static void enlist(void)
{
	pcpi_lock_take(&door);
	urcu_bp_register_thread();
	pcpi_lock_drop(&door);
}

void pcpi_rcu_read_lock(void)
{
	if (!URCU_TLS(urcu_bp_reader))
		enlist(); /* R1 */
	urcu_bp_read_lock();
}

void pcpi_rcu_freeze(void)
{
	pcpi_lock_freeze(&door);
	urcu_bp_before_fork();
}

void pcpi_rcu_thaw(bool child)
{
	if (child)
		urcu_bp_after_fork_child();
	else
		urcu_bp_after_fork_parent();
	pcpi_lock_thaw(&door);
}
