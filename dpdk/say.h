/* SPDX-License-Identifier: BSD-2-Clause */
/* say.h - what the handler writes to EAL's log, as mempool.pcpalloc. */
#ifndef PCPALLOC_DPDK_SAY_H
#define PCPALLOC_DPDK_SAY_H

#include <stdint.h>

#include <rte_log.h>

extern int pcpa_mempool_log;

#define SAY(level, format, ...)                                                \
	rte_log(RTE_LOG_##level, (uint32_t)pcpa_mempool_log,                   \
		"pcpalloc: " format "\n", __VA_ARGS__)

#endif
