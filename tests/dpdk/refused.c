/* SPDX-License-Identifier: BSD-2-Clause */
/* refused.c - the handler's test: what it can't do, and says; see refused.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_memory.h>

#include "eal.h"
#include "pools.h"
#include "refused.h"
#include "replaced.h"

static int dummy_alloc(struct rte_mempool *mp)
{
	(void)mp;
	return -ENOTSUP;
}

static int dummy_put(struct rte_mempool *mp, void *const *objects, unsigned n)
{
	(void)mp, (void)objects, (void)n;
	return -ENOTSUP;
}

static int dummy_get(struct rte_mempool *mp, void **objects, unsigned n)
{
	(void)mp, (void)objects, (void)n;
	return -ENOTSUP;
}

static unsigned dummy_count(const struct rte_mempool *mp)
{
	(void)mp;
	return 0;
}

void case_full(void)
{
	struct rte_mempool_ops ops = {.alloc = dummy_alloc, .enqueue = dummy_put,
				      .dequeue = dummy_get,
				      .get_count = dummy_count};
	struct rte_mempool *mp;
	unsigned i;

	eal_begin(NULL);
	for (i = 0; rte_mempool_ops_table.num_ops < RTE_MEMPOOL_MAX_OPS_IDX; i++) {
		snprintf(ops.name, sizeof(ops.name), "dummy%u", i);
		expect(rte_mempool_register_ops(&ops) >= 0, "a dummy");
	}
	expect(dlopen(plugin, RTLD_NOW) != NULL, "it is loaded all the same");
	said_has("pcpalloc: not registered: all of the program's 16 places for "
		 "mempool handlers are taken");
	mp = rte_mempool_create_empty("full", 100, 64, 0, 0, SOCKET_ID_ANY, 0);
	expect(mp && rte_mempool_set_ops_byname(mp, "pcpalloc", NULL) == -EINVAL,
	       "it isn't found");
	rte_mempool_free(mp);
}

void case_secondary(void)
{
	struct rte_mempool *mp;
	struct rte_mempool_ops *ops;
	void *object = NULL;

	eal_begin(plugin);
	replaced.secondary = true;
	expect(pool_try("second", 100, 64, 0, NULL) == NULL, "no pool");
	said_has("pcpalloc: second: only EAL's primary process makes and uses pools");
	/* One of the primary's: its pool_data is nothing of this process. */
	mp = rte_mempool_create_empty("primary", 100, 64, 0, 0, SOCKET_ID_ANY, 0);
	expect(mp && rte_mempool_set_ops_byname(mp, "pcpalloc", NULL) == 0, "empty");
	mp->pool_data = malloc(1 << 16);
	memset(mp->pool_data, 0xff, 1 << 16);
	ops = rte_mempool_get_ops(mp->ops_index);
	expect(ops->dequeue(mp, &object, 1) == -ENOTSUP && !object, "no get");
	said_has("pcpalloc: primary: only EAL's primary process makes and uses pools");
	expect(ops->enqueue(mp, &object, 1) == -ENOTSUP, "no put");
	expect(ops->get_count(mp) == 0, "no count");
	ops->free(mp);
}

static void in_hugetlb(struct rte_mempool *mp)
{
	void *object;

	expect(rte_mempool_get(mp, &object) == 0 &&
	       rte_mem_virt2memseg_list(object)->page_sz >
		       (uint64_t)sysconf(_SC_PAGESIZE), "it is in hugetlb pages");
	puts("skipped: pools are in hugetlb pages here");
	exit(77);
}

/* What is no hugetlb page has no physical address. */
void case_physical(void)
{
	struct rte_mempool *mp;
	unsigned long before;
	unsigned areas;

	eal_begin(plugin);
	rte_mempool_free(pool_make("virtual", 100, 64, 0));
	before = rss_pages();
	areas = lines_count("pcpalloc");
	replaced.physical = true;
	for (unsigned i = 0; i < 20; i++) {
		mp = pool_try("physical", 100, 64, 0, NULL);
		if (mp)
			in_hugetlb(mp);
	}
	said_has("KiB have no physical addresses, which are known of hugetlb pages "
		 "only: reserve more of these, or add --iova-mode=va");
	said_has("pcpalloc: physical: EAL doesn't take its memory: ");
	expect(rss_pages() < before + 10 * 100, "the memory went");
	expect(lines_count("pcpalloc") <= areas, "its areas went");
	replaced.physical = false;
	rte_mempool_free(pool_make("virtual", 100, 64, 0));
}

/* More pools than EAL has places for memory: one that goes makes room for one. */
void case_table(void)
{
	struct rte_mempool *mps[RTE_MAX_MEMSEG_LISTS];
	char name[16];
	unsigned n;

	eal_begin(plugin);
	for (n = 0; n < RTE_DIM(mps); n++) {
		snprintf(name, sizeof(name), "table%u", n);
		mps[n] = pool_try(name, 10, 64, 0, NULL);
		if (!mps[n])
			break;
	}
	expect(n > 50 && n < RTE_DIM(mps), "EAL has some places");
	said_has("KiB more memory: No space left on device");
	said_has(": EAL doesn't take its memory: No space left on device");
	rte_mempool_free(mps[--n]);
	mps[n] = pool_make("last", 10, 64, 0);
	expect(pool_try("beyond", 10, 64, 0, NULL) == NULL, "and no other");
	do
		rte_mempool_free(mps[n]);
	while (n-- > 0);
}

void case_large(void)
{
	eal_begin(plugin);
	expect(pool_try("large", 1, 5u << 20, 0, NULL) == NULL, "no pool");
	said_has("pcpalloc: large: no objects on its node: Invalid argument");
	expect(pool_try("order10", 4, 3u << 20, 0, NULL) == NULL, "no pool");
	said_has("pcpalloc: order10: no objects on its node: Invalid argument");
	rte_mempool_free(pool_make("order9", 4, (2u << 20) - 64, 0));
	expect(pool_try("huge", 2000000000u, 2176, 0, NULL) == NULL, "no pool");
	said_has("pcpalloc: huge: no objects on its node: Cannot allocate memory");
}

static void short_of(const char *name, const char *where)
{
	char text[100];

	expect(pool_try(name, 512, 64, 0, NULL) == NULL, "no pool");
	snprintf(text, sizeof(text), "pcpalloc: %s: no objects %s: Cannot allocate "
		 "memory", name, where);
	said_has(text);
}

/* Memory that isn't there leaves no pool, and the log says so. */
void case_short(void)
{
	eal_begin(plugin);
	replaced.zmalloc_fails = 1;
	short_of("pool", "on its node");
	replaced.zmalloc_fails = 2;
	short_of("list", "in its memory");
	expect(replaced.zmalloc_fails == 0, "both were asked for");
	replaced.bulk_short = true;
	short_of("objects", "in its memory");
	replaced.bulk_short = false;
	rte_mempool_free(pool_make("enough", 512, 64, 0));
}

/* A forked child leaves the memory alone: it isn't its own. */
void case_stays(void)
{
	struct rte_mempool *mp;
	int status;
	pid_t child;

	eal_begin(plugin);
	mp = pool_make("stays", COUNT, 2176, 0);
	child = fork();
	if (child == 0) {
		rte_mempool_get_ops(mp->ops_index)->free(mp);
		said_has("pcpalloc: stays: its memory stays: No such device\n");
		_exit(0);
	}
	expect(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0, "the child says why");
}
