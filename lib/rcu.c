/* SPDX-License-Identifier: BSD-2-Clause */
/* rcu.c - grace periods: see rcu.h. */
#include <pthread.h>

#include "rcu.h"
#include "sys/sys.h"

static struct {
	_Alignas(64) uint64_t in; /* a */
} sides[2];
static unsigned side; /* a */
static unsigned forks; /* c, but for a child that has one thread */

struct pcpi_section pcpi_rcu_read_lock(void)
{
	struct pcpi_section section;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &section.cancel_state); /* R3 */
	/* relaxed: an old one makes somebody wait longer. */
	section.side = pcpi_load_relaxed(&side);
	section.forks = forks;
	/* acquire/release: R2, pairs with side_await(). */
	pcpi_fetch_add_acq_rel(&sides[section.side].in, 1);
	return section;
}

void pcpi_rcu_read_unlock(struct pcpi_section section)
{
	if (pcpi_likely(section.forks == forks)) /* R4 */
		/* release: R2, pairs with side_await(). */
		pcpi_fetch_add_release(&sides[section.side].in, UINT64_MAX);
	pthread_setcancelstate(section.cancel_state, NULL);
}

static void side_await(unsigned s)
{
	/* relaxed: the addition decides, pairs with pcpi_rcu_read_lock() and
	 * pcpi_rcu_read_unlock(). */
	while (pcpi_load_relaxed(&sides[s].in) != 0 ||
	       pcpi_fetch_add_acq_rel(&sides[s].in, 0) != 0)
		pcpi_sys->yield();
}

void pcpi_rcu_synchronize(void)
{
	unsigned s;

	for (s = 0; s < 2; s++) {
		/* relaxed: as in pcpi_rcu_read_lock(). */
		pcpi_store_relaxed(&side, !s);
		side_await(s);
	}
}

void pcpi_rcu_forked(void)
{
	/* relaxed: there is no other thread. */
	pcpi_store_relaxed(&sides[0].in, 0);
	pcpi_store_relaxed(&sides[1].in, 0);
	forks++;
}
