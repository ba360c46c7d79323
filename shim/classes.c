/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * classes.c - is a size class warm or cold?  How: classes.h.
 *
 * relaxed (all of this file): a decision that is one call late is as good.
 */
#include "classes.h"

bool shim_class_measures(struct shim_class *c, unsigned order)
{
	if (order <= SHIM_ALWAYS_WARM)
		return false;
	if (pcpi_load_relaxed(&c->heat) != SHIM_CLASS_COLD)
		return true;
	pcpi_counter_add(&c->frees, 1);
	return pcpi_load_relaxed(&c->frees) % SHIM_COLD_PROBE == 0;
}

void shim_class_learn(struct shim_class *c, unsigned order, uint32_t touched,
		      uint32_t pages)
{
	uint32_t interval = pcpi_load_relaxed(&c->interval);
	uint32_t most = order < SHIM_UNIT_ORDER ? SHIM_WARM_PROBE_MAX
						: SHIM_WARM_PROBE_MAX_LARGE;

	if ((uint64_t)touched * SHIM_TOUCHED_SHARE < pages) {
		pcpi_store_relaxed(&c->heat, SHIM_CLASS_COLD);
		pcpi_store_relaxed(&c->interval, 0u);
		return;
	}
	pcpi_store_relaxed(&c->heat, SHIM_WARM);
	interval = interval == 0 ? SHIM_WARM_PROBE_MIN : interval * 2;
	pcpi_store_relaxed(&c->interval, pcpi_min(interval, most));
}

uint32_t shim_class_interval(const struct shim_class *c, unsigned order)
{
	if (order <= SHIM_ALWAYS_WARM ||
	    pcpi_load_relaxed(&c->heat) == SHIM_CLASS_COLD)
		return SHIM_NEVER;
	return pcpi_max(pcpi_load_relaxed(&c->interval),
			(uint32_t)SHIM_WARM_PROBE_MIN);
}
