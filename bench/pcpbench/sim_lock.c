/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_lock.c - see sim_lock.h. */
#include "sim_lock.h"

void sim_lock_init(struct sim_lock *l)
{
	*l = (struct sim_lock){.holder = -1, .last = -1};
}

bool sim_lock_ask(struct sim_lock *l, const struct sim_costs *costs,
		  uint32_t core, uint64_t now, uint64_t *at)
{
	l->takes++;
	if (l->holder >= 0) {
		l->queue[(l->head + l->waiting++) % SIM_CORES] = core;
		l->waits++;
		if (l->waiting > l->most)
			l->most = l->waiting;
		return false;
	}
	l->holder = (int)core;
	*at = now + sim_ps(costs->lock.take);
	if (sim_lock_is_far(l))
		*at += sim_ps(costs->line);
	return true;
}

int sim_lock_drop(struct sim_lock *l, const struct sim_costs *costs,
		  uint64_t now, uint64_t *at)
{
	l->last = l->holder;
	l->holder = -1;
	if (l->waiting == 0)
		return -1;
	l->holder = (int)l->queue[l->head];
	l->head = (l->head + 1) % SIM_CORES;
	l->waiting--;
	*at = now + sim_ps(costs->lock.hand_over +
			   l->waiting * costs->lock.per_waiter);
	return l->holder;
}
