/* SPDX-License-Identifier: BSD-2-Clause */
/* pools.c - see pools.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eal.h"
#include "pools.h"

const char *plugin;

/* Each object that is made says who it is. */
static void object_number(struct rte_mempool *mp, void *arg, void *object,
			  unsigned i)
{
	(void)mp, (void)arg;
	*(unsigned *)object = i;
}

struct rte_mempool *pool_try(const char *name, unsigned n, unsigned bytes,
			     unsigned cache, const char *nodes)
{
	struct rte_mempool *mp = rte_mempool_create_empty(
		name, n, bytes, cache, 0, SOCKET_ID_ANY, 0);

	expect(mp != NULL, "rte_mempool_create_empty");
	expect(rte_mempool_set_ops_byname(mp, "pcpalloc", (void *)(uintptr_t)nodes)
		       == 0, "the handler is there");
	if (rte_mempool_populate_default(mp) < 0) {
		rte_mempool_free(mp);
		not_said("its memory stays");
		return NULL;
	}
	rte_mempool_obj_iter(mp, object_number, NULL);
	return mp;
}

struct rte_mempool *pool_make(const char *name, unsigned n, unsigned bytes,
			      unsigned cache)
{
	struct rte_mempool *mp = pool_try(name, n, bytes, cache, NULL);

	expect(mp != NULL, "a pool");
	expect(mp->populated_size == n, "all objects are there");
	expect(rte_mempool_avail_count(mp) == n, "and free");
	return mp;
}

/* Takes all, each once, which are what they were; then there is none. */
void **all_take(struct rte_mempool *mp, unsigned n, unsigned at_once)
{
	void **objects = calloc(n + at_once, sizeof(*objects));
	bool *seen = calloc(n, sizeof(*seen));
	unsigned got = 0, i;

	while (got + at_once <= n &&
	       rte_mempool_get_bulk(mp, objects + got, at_once) == 0)
		got += at_once;
	while (rte_mempool_get(mp, objects + got) == 0)
		expect(++got <= n, "no more than there are");
	expect(got == n, "as many as there are");
	for (i = 0; i < n; i++) {
		unsigned number = *(unsigned *)objects[i];

		expect(number < n && !seen[number], "each object once");
		seen[number] = true;
		expect(rte_mempool_from_obj(objects[i]) == mp, "its pool is known");
	}
	free(seen);
	return objects;
}

void all_put(struct rte_mempool *mp, void **objects, unsigned n, unsigned at_once)
{
	unsigned i;

	for (i = 0; i + at_once <= n; i += at_once)
		rte_mempool_put_bulk(mp, objects + i, at_once);
	for (; i < n; i++)
		rte_mempool_put(mp, objects[i]);
	free(objects);
}

unsigned lines_count(const char *text)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	expect(maps != NULL, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, text) != NULL;
	fclose(maps);
	return n;
}

unsigned long rss_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long size = 0, rss = 0;

	expect(f && fscanf(f, "%lu %lu", &size, &rss) == 2, "/proc/self/statm");
	fclose(f);
	return rss;
}
