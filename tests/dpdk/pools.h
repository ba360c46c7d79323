/* SPDX-License-Identifier: BSD-2-Clause */
/* pools.h - pools of the handler's in its test. */
#ifndef TESTS_DPDK_POOLS_H
#define TESTS_DPDK_POOLS_H

#include <stdbool.h>

#include <rte_mempool.h>

#define COUNT 5000u
#define PAGE 4096u
#define BURST 32u

/* The handler's file. */
extern const char *plugin;

/* Of n objects that have their numbers in them; NULL: there is none.  nodes: what the
 * handler is told. */
struct rte_mempool *pool_try(const char *name, unsigned n, unsigned bytes,
			     unsigned cache, const char *nodes);

/* The same; there is one. */
struct rte_mempool *pool_make(const char *name, unsigned n, unsigned bytes,
			      unsigned cache);

/* Takes all, each once, which are what they were; then there is none. */
void **all_take(struct rte_mempool *mp, unsigned n, unsigned at_once);

void all_put(struct rte_mempool *mp, void **objects, unsigned n, unsigned at_once);

/* Of the process's mappings, those with the text; pages that it has. */
unsigned lines_count(const char *text);
unsigned long rss_pages(void);

#endif
