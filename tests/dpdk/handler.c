/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handler.c - the mempool handler from inside a program of DPDK's: one case a
 * process, as EAL begins once in each.
 *
 *     handler CASE PLUGIN
 *
 * Needs neither huge pages nor privileges (--no-huge).  Some functions of EAL's and
 * the library's are replaced (replaced.h).  refused.c has what is refused.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "eal.h"
#include "pools.h"
#include "refused.h"
#include "replaced.h"

#define MANY 700u
#define FLOW 1000000u

/* ---- Cases --------------------------------------------------------------------- */

/* The chunk of a pool's memory that an address is in. */
struct look {
	const char *at;
	const struct rte_mempool_memhdr *found;
};

static void chunk_look(struct rte_mempool *mp, void *arg,
		       struct rte_mempool_memhdr *chunk, unsigned i)
{
	struct look *look = arg;

	(void)i;
	expect(chunk->mp == mp && chunk->iova == (uintptr_t)chunk->addr,
	       "a chunk's pool and iova");
	if (look->at >= (char *)chunk->addr &&
	    look->at < (char *)chunk->addr + chunk->len)
		look->found = chunk;
}

static void listed(struct rte_mempool *mp, void **objects, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct rte_memseg_list *list =
			rte_mem_virt2memseg_list(objects[i]);
		struct look look = {.at = objects[i]};

		expect(list && list->external, "EAL knows the memory");
		expect(rte_mempool_virt2iova(objects[i]) == (uintptr_t)objects[i],
		       "iova of an object");
		expect(rte_mempool_mem_iter(mp, chunk_look, &look) >= 2 &&
		       look.found, "the arena is in mem_list");
		expect(mp->nb_mem_chunks >= 2, "and counted");
		expect(look.at + mp->elt_size <=
			       (char *)look.found->addr + look.found->len,
		       "whole in the chunk");
		expect((uintptr_t)objects[i] % RTE_CACHE_LINE_SIZE == 0,
		       "aligned to a line");
	}
}

/* Of an empty pool, and of one with fewer than a call of several parts asks for. */
static void no_more(struct rte_mempool *mp, void **objects, unsigned n)
{
	unsigned some = RTE_MIN(n, 300u), i;
	void *more[MANY];

	for (i = 0; i < 10000; i++)
		expect(rte_mempool_get_bulk(mp, more, BURST) == -ENOBUFS,
		       "an empty pool says so");
	rte_mempool_put_bulk(mp, objects, some);
	expect(rte_mempool_get_bulk(mp, more, MANY) == -ENOBUFS, "too many");
	for (i = 0; i < some; i++)
		expect(rte_mempool_get(mp, objects + i) == 0, "all still there");
}

static void objects_of(unsigned n, unsigned bytes, unsigned cache)
{
	struct rte_mempool *mp = pool_make("objects", n, bytes, cache);
	unsigned at_once[] = {1, 7, BURST, 250, MANY}, i;
	void **objects;
	void *first;

	for (i = 0; i < RTE_DIM(at_once); i++) {
		objects = all_take(mp, n, at_once[i]);
		expect(rte_mempool_avail_count(mp) == 0, "none is free");
		listed(mp, objects, n);
		no_more(mp, objects, n);
		all_put(mp, objects, n, at_once[RTE_DIM(at_once) - 1 - i]);
		expect(rte_mempool_avail_count(mp) == n, "all are free again");
	}
	expect(rte_mempool_get(mp, &first) == 0, "one");
	rte_mempool_put(mp, first);
	rte_mempool_free(mp);
	expect(rte_mem_virt2memseg_list(first) == NULL, "EAL has forgotten");
}

static void case_objects(void)
{
	eal_begin(plugin);
	objects_of(COUNT, 2176, 0);
	objects_of(COUNT, 2176, 250);
	objects_of(COUNT, 64, 0);
	objects_of(1, 128, 0);
	objects_of(511, PAGE - RTE_CACHE_LINE_SIZE, 0);
	objects_of(300, 9728, 0);			/* order 2 */
	objects_of(20, 100000, 0);			/* order 5, uncached */
}

/* Of a few that are used in turn the headers are not in one set. */
static void case_colours(void)
{
	struct rte_mempool *mp;
	unsigned count[64] = {0}, used = 0, i;
	void **objects;

	eal_begin(plugin);
	mp = pool_make("colours", COUNT, 2176, 0);
	objects = all_take(mp, COUNT, BURST);
	for (i = 0; i < COUNT; i++)
		count[(uintptr_t)objects[i] / RTE_CACHE_LINE_SIZE % 64]++;
	for (i = 0; i < 64; i++) {
		used += count[i] > 0;
		expect(count[i] <= COUNT / 16 + 1, "colours are used evenly");
	}
	expect(used == 16, "16 colours fit");
	all_put(mp, objects, COUNT, BURST);
	rte_mempool_free(mp);
}

/* What fills a page with its header has one, and no colours. */
static void case_whole(void)
{
	struct rte_mempool *mp;
	void **objects;

	eal_begin(plugin);
	mp = pool_make("whole", COUNT, PAGE - RTE_CACHE_LINE_SIZE, 0);
	said_has("pcpalloc: whole: 5000 objects, node (any)");
	objects = all_take(mp, COUNT, BURST);
	for (unsigned i = 0; i < COUNT; i++)
		expect((uintptr_t)objects[i] % PAGE == mp->header_size,
		       "a page for each");
	all_put(mp, objects, COUNT, BURST);
	rte_mempool_free(mp);
}

static struct rte_ring *ring;
static struct rte_mempool *flow_pool;

static int flow_send(void *arg)
{
	void *objects[BURST];
	unsigned sent = 0;

	(void)arg;
	while (sent < FLOW) {
		if (rte_mempool_get_bulk(flow_pool, objects, BURST))
			continue;
		while (!rte_ring_enqueue_bulk(ring, objects, BURST, NULL))
			rte_pause();
		sent += BURST;
	}
	return 0;
}

/* Takes from one lcore, frees on another; at the end one has all. */
static void flow(unsigned cache, unsigned at_once)
{
	void *objects[BURST];
	unsigned got = 0, i, n;

	flow_pool = pool_make("flow", COUNT, 2176, cache);
	ring = rte_ring_create("flow", 1024, SOCKET_ID_ANY,
			       RING_F_SP_ENQ | RING_F_SC_DEQ);
	expect(ring != NULL, "a ring");
	expect(rte_eal_remote_launch(flow_send, NULL, 1) == 0, "launch");
	while (got < FLOW) {
		n = rte_ring_dequeue_burst(ring, objects, BURST, NULL);
		for (i = 0; i < n; i += at_once)
			rte_mempool_put_bulk(flow_pool, objects + i,
					     RTE_MIN(at_once, n - i));
		got += n;
	}
	rte_eal_wait_lcore(1);
	expect(rte_mempool_avail_count(flow_pool) == COUNT, "all came back");
	if (cache == 0)
		all_put(flow_pool, all_take(flow_pool, COUNT, BURST), COUNT, 1);
	rte_ring_free(ring);
	rte_mempool_free(flow_pool);
}

static void case_flow(void)
{
	eal_begin(plugin);
	flow(0, BURST);
	flow(0, 1);
	flow(250, BURST);
}

static int fill_and_empty(void *arg)
{
	void **objects = all_take(arg, COUNT, BURST);

	all_put(arg, objects, COUNT, 1);
	return 0;
}

static void *fill_and_empty_outside(void *arg)
{
	expect(rte_lcore_id() == LCORE_ID_ANY, "a thread that EAL doesn't know");
	fill_and_empty(arg);
	return NULL;
}

/* What one thread's cache of the library holds another gets. */
static void case_turns(void)
{
	struct rte_mempool *mp;
	pthread_t thread;
	unsigned i;

	eal_begin(plugin);
	mp = pool_make("turns", COUNT, 2176, 0);
	for (i = 0; i < 20; i++) {
		fill_and_empty(mp);
		expect(rte_eal_remote_launch(fill_and_empty, mp, 1) == 0, "launch");
		rte_eal_wait_lcore(1);
		expect(pthread_create(&thread, NULL, fill_and_empty_outside, mp) == 0,
		       "a thread");
		pthread_join(thread, NULL);
	}
	rte_mempool_free(mp);
}

/* Two pools in turn, and one at the address of one that is gone. */
static void case_pools(void)
{
	struct rte_mempool *a, *b;
	void *x, *y;
	unsigned i, j;

	eal_begin(plugin);
	for (i = 0; i < 10; i++) {
		a = pool_make("a", 600, 2176, 0);
		b = pool_make("b", 700, 9728, 0);
		for (j = 0; j < 1000; j++) {
			expect(rte_mempool_get(a, &x) == 0 &&
			       rte_mempool_get(b, &y) == 0, "one of each");
			expect(rte_mempool_from_obj(x) == a &&
			       rte_mempool_from_obj(y) == b, "of its pool");
			rte_mempool_put(a, x);
			rte_mempool_put(b, y);
		}
		all_put(b, all_take(b, 700, BURST), 700, BURST);
		rte_mempool_free(a);
		all_put(b, all_take(b, 700, BURST), 700, 1);
		rte_mempool_free(b);
	}
}

static void *pools_make(void *name)
{
	void **objects;

	for (unsigned i = 0; i < 50; i++) {
		struct rte_mempool *mp = pool_make(name, 100, 64, 0);

		objects = all_take(mp, 100, BURST);
		all_put(mp, objects, 100, 1);
		rte_mempool_free(mp);
	}
	return NULL;
}

/* Threads make pools at the same time. */
static void case_makers(void)
{
	char names[2][8] = {"left", "right"};
	pthread_t threads[2];
	unsigned i;

	eal_begin(plugin);
	for (i = 0; i < 2; i++)
		expect(pthread_create(&threads[i], NULL, pools_make, names[i]) == 0,
		       "a thread");
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* A pool goes with objects in lcores' caches and in the program's hands. */
static void case_caches(void)
{
	unsigned long before = 0;
	struct rte_mempool *mp;
	void *objects[100];
	unsigned i, areas = 0;

	eal_begin(plugin);
	for (i = 0; i < 20; i++) {
		mp = pool_make("caches", COUNT, 2176, 250);
		expect(rte_mempool_get_bulk(mp, objects, 100) == 0, "some");
		rte_mempool_put_bulk(mp, objects, 60);
		expect(rte_mempool_avail_count(mp) == COUNT - 40, "those out are not");
		rte_mempool_free(mp);
		if (i == 1) {
			before = rss_pages();
			areas = lines_count("pcpalloc");
		}
	}
	expect(rss_pages() < before + COUNT, "the memory went");
	expect(lines_count("pcpalloc") <= areas, "its areas went");
}

/* A lcore's cache has what it had where the pool has too few to fill it. */
static void case_left(void)
{
	struct rte_mempool *mp;
	void *objects[600];

	eal_begin(plugin);
	for (unsigned cache = 100; cache <= 300; cache += 200) {
		mp = pool_make("left", 600, 2176, cache);
		for (unsigned i = 0; i < 600; i++)
			expect(rte_mempool_get(mp, objects + i) == 0, "all");
		for (unsigned i = 0; i < cache / 2 * 3 + 1; i++)
			rte_mempool_put(mp, objects[i]);
		expect(rte_mempool_default_cache(mp, rte_lcore_id())->len == 1,
		       "one is in the cache");
		expect(rte_mempool_get_bulk(mp, objects, cache / 2 * 3 + 2) ==
			       -ENOBUFS, "too few");
		for (unsigned i = 0; i < cache / 2 * 3 + 1; i++) {
			expect(rte_mempool_get(mp, objects + i) == 0, "all again");
			expect(rte_mempool_from_obj(objects[i]) == mp, "its pool");
		}
		rte_mempool_free(mp);
	}
}

static void case_vfio(void)
{
	struct rte_mempool *mp;

	replaced.vfio = true;
	eal_begin(plugin);
	mp = pool_make("vfio", COUNT, 2176, 0);
	expect(replaced.mapped_bytes >= COUNT * 4096 &&
	       replaced.unmapped_bytes == 0, "mapped");
	rte_mempool_free(mp);
	expect(replaced.unmapped_bytes == replaced.mapped_bytes, "unmapped");
	replaced.unmappable = true;
	rte_mempool_free(pool_make("unmapped", COUNT, 2176, 0));
	said_has("KiB not mapped for VFIO: No space left on device");
}

/* Two nodes that are made up; EAL knows of one. */
static void case_nodes(void)
{
	struct rte_mempool *mp;

	setenv("HWLOC_SYNTHETIC", "numa:2(memory=4294967296) pu:1", 1);
	eal_begin(plugin);
	mp = pool_try("nodes", 100, 64, 0, "1");
	expect(mp != NULL, "a pool on node 1");
	said_has("pcpalloc: nodes: 100 objects, node 1");
	rte_mempool_free(mp);
	mp = rte_mempool_create_empty("socket", 100, 64, 0, 0, 0, 0);
	expect(mp && rte_mempool_set_ops_byname(mp, "pcpalloc", NULL) == 0 &&
	       rte_mempool_populate_default(mp) == 100, "a pool on socket 0");
	said_has("pcpalloc: socket: 100 objects, node 0");
	rte_mempool_free(mp);
	expect(pool_try("none", 100, 64, 0, "7") == NULL, "no node 7");
	said_has("pcpalloc: none: no objects on its node: No such device");
}

/* PCPA_CHECKS finds an object that is put back twice, and disturbs none. */
static void case_checks(void)
{
	struct rte_mempool *mp;
	void *object;
	int status;
	pid_t child = fork();

	setenv("PCPA_CHECKS", "1", 1);
	if (child == 0) {
		eal_begin(plugin);
		mp = pool_make("twice", COUNT, 2176, 0);
		expect(rte_mempool_get(mp, &object) == 0, "one");
		rte_mempool_put(mp, object);
		rte_mempool_put(mp, object);
		_exit(0);
	}
	expect(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT, "a double put ends the program");
	eal_begin(plugin);
	objects_of(COUNT, 2176, 0);
	objects_of(300, 9728, 100);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"objects", case_objects}, {"colours", case_colours},
	{"flow", case_flow},	   {"turns", case_turns},
	{"pools", case_pools},	   {"caches", case_caches},
	{"full", case_full},	   {"secondary", case_secondary},
	{"vfio", case_vfio},	   {"nodes", case_nodes},
	{"large", case_large},	   {"checks", case_checks},
	{"table", case_table},	   {"physical", case_physical},
	{"whole", case_whole},	   {"short", case_short},
	{"stays", case_stays},	   {"makers", case_makers},
	{"left", case_left},
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	plugin = argv[2];
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run();
		return 0;
	}
	return 2;
}
