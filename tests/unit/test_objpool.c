/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_objpool.c - pools of objects: how many there are, where they lie, that they
 * stay as they are, and what becomes of a pool in the wrong hands.
 */
#include <pcpalloc/objpool.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/machine.h"
#include "../support/pool_fixture.h"

#define MANY 5000u

static void *objects[MANY + 1];

static int pool_try(struct pcpa_objpool *pool, size_t n, size_t head, size_t bytes,
		    const char *nodes, unsigned flags)
{
	struct pcpa_objpool_options o = PCPA_OBJPOOL_OPTIONS_INIT;
	struct pcpa_heap_options heap = PCPA_HEAP_OPTIONS_INIT;

	heap.nodes = nodes;
	heap.flags = flags;
	heap.hugepage_bytes = 2 * MIB; /* else a fall may be said */
	o.nr_objects = n;
	o.head_bytes = head;
	o.object_bytes = bytes;
	o.heap = &heap;
	return pcpa_objpool_create(&o, pool);
}

static struct pcpa_objpool pool_of_flags(size_t n, size_t head, size_t bytes,
					 unsigned flags)
{
	struct pcpa_objpool pool;
	int err = 0;

	KEEPS_ERRNO(err = pool_try(&pool, n, head, bytes, NULL, flags));
	cr_assert_eq(err, 0, "create: %d", err);
	cr_expect_eq(pcpa_objpool_count(&pool), n);
	return pool;
}

static struct pcpa_objpool pool_of_objects(size_t n, size_t head, size_t bytes)
{
	return pool_of_flags(n, head, bytes, 0);
}

static void pool_gone(struct pcpa_objpool *pool)
{
	int err = 0;

	KEEPS_ERRNO(err = pcpa_objpool_destroy(pool));
	cr_assert_eq(err, 0, "destroy: %d", err);
	cr_expect_eq(pcpa_objpool_check(pool), -ENODEV);
	cr_expect_eq(pcpa_objpool_destroy(pool), -ENODEV, "once");
}

/* All n, at_once while there are so many, and then no other. */
static void take_all(struct pcpa_objpool *pool, size_t n, size_t at_once)
{
	size_t got = 0;

	for (; got + at_once <= n; got += at_once)
		cr_assert(pcpa_objpool_get_bulk(pool, objects + got, at_once));
	while ((objects[got] = pcpa_objpool_get(pool)))
		cr_assert_leq(++got, n);
	cr_assert_eq(got, n);
	errno = 0;
	cr_expect_not(pcpa_objpool_get_bulk(pool, objects + n, 1));
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(pcpa_objpool_count(pool), 0);
}

static void put_all(struct pcpa_objpool *pool, size_t n, size_t at_once)
{
	size_t i = 0;

	for (; i + at_once <= n; i += at_once)
		KEEPS_ERRNO(cr_assert_eq(pcpa_objpool_put_bulk(
			pool, objects + i, at_once), 0));
	for (; i < n; i++)
		cr_assert_eq(pcpa_objpool_put(pool, objects[i]), 0);
	cr_expect_eq(pcpa_objpool_count(pool), n);
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

/* ---- Objects ---------------------------------------------------------------------- */

/* In each number at once, of pages and of larger blocks: each object once, and apart. */
Test(objpool, objects_are_as_many_as_were_asked_for)
{
	static const struct { size_t n, bytes; } pools[] = {
		{1, 100}, {1000, 2176}, {MANY, 2176}, {512, 4032}, {300, 9728},
		{20, 100000}};
	static const size_t at_once[] = {1, 7, 32, 250, 700};

	for (size_t p = 0; p < sizeof(pools) / sizeof(*pools); p++) {
		size_t n = pools[p].n, bytes = pools[p].bytes;
		struct pcpa_objpool pool = pool_of_objects(n, 64, bytes);

		for (size_t i = 0; i < 5; i++) {
			take_all(&pool, n, at_once[i]);
			qsort(objects, n, sizeof(*objects), by_address);
			for (size_t o = 1; o < n; o++)
				cr_assert_geq((char *)objects[o] -
					      (char *)objects[o - 1],
					      (ptrdiff_t)(bytes + 64));
			put_all(&pool, n, at_once[4 - i]);
		}
		pool_gone(&pool);
	}
}

/* What was in the array stays there. */
static void too_many(struct pcpa_objpool *pool, size_t n, size_t free)
{
	static void *array[MANY];

	memset(array, 0x5a, sizeof(array));
	errno = 0;
	cr_expect_not(pcpa_objpool_get_bulk(pool, array, n));
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(pcpa_objpool_count(pool), free);
	for (size_t i = 0; i < sizeof(array); i++)
		cr_assert_eq(((unsigned char *)array)[i], 0x5a, "%zu of %zu", i / 8,
			     n);
}

Test(objpool, more_than_are_free_are_none)
{
	static const size_t pools[] = {1, 20, 300, 600, 1024, 3000};

	for (size_t p = 0; p < sizeof(pools) / sizeof(*pools); p++) {
		size_t n = pools[p];
		struct pcpa_objpool pool = pool_of_objects(n, 0, 64);

		too_many(&pool, n + 1, n);
		too_many(&pool, ((size_t)1 << 61) + 1, n);
		KEEPS_ERRNO(cr_expect(pcpa_objpool_get_bulk(&pool, objects, n)));
		put_all(&pool, n - n / 3 - 1, 32);
		too_many(&pool, n, n - n / 3 - 1);
		pool_gone(&pool);
	}
}

Test(objpool, none_can_be_had)
{
	struct pcpa_objpool pool = pool_of_objects(600, 0, 64);

	cr_expect(pcpa_objpool_get_bulk(&pool, objects, 0), "of none all are there");
	cr_expect_eq(pcpa_objpool_put_bulk(&pool, objects, 0), 0);
	cr_expect_eq(pcpa_objpool_count(&pool), 600);
	pool_gone(&pool);
}

Test(objpool, free_objects_stay_as_they_are)
{
	struct pcpa_objpool pool = pool_of_objects(MANY, 128, 2000);

	take_all(&pool, MANY, 32);
	for (size_t i = 0; i < MANY; i++) {
		memset((char *)objects[i] - 128, (int)i, 2128);
		memcpy(objects[i], &i, sizeof(i));
	}
	put_all(&pool, MANY, 1);
	cr_assert_eq(pcpa_heap_drain(pool.heap), 0);
	take_all(&pool, MANY, 250);
	for (size_t i = 0; i < MANY; i++) {
		size_t was;

		memcpy(&was, objects[i], sizeof(was));
		cr_assert_lt(was, MANY);
		for (ptrdiff_t at = -128; at < 2000; at++)
			cr_assert((at >= 0 && at < (ptrdiff_t)sizeof(was)) ||
				  ((unsigned char *)objects[i])[at] ==
					  (unsigned char)was);
	}
	put_all(&pool, MANY, 7);
	pool_gone(&pool);
}

/* ---- Layout ------------------------------------------------------------------------- */

Test(objpool, colours_are_as_many_as_there_is_room_for)
{
	static const struct { size_t head, bytes, block, colours; } cases[] = {
		{64, 2176, 4096, 16},  {64, 64, 4096, 32},   {0, 1, 4096, 64},
		{64, 4032, 4096, 1},   {64, 3969, 4096, 1},  {64, 3968, 4096, 2},
		{0, 4096, 4096, 1},    {0, 4097, 8192, 64},  {64, 9728, 16384, 64},
		{128, 16000, 16384, 4}, {0, 8193, 16384, 64},
		{0, 2 * MIB, 2 * MIB, 1}};

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		size_t block = cases[c].block, n = block > 65536 ? 2 : 256;
		struct pcpa_objpool pool = pool_of_objects(n, cases[c].head,
							   cases[c].bytes);
		size_t seen[64] = {0}, used = 0;

		take_all(&pool, n, 32);
		for (size_t i = 0; i < n; i++) {
			size_t at = (uintptr_t)objects[i] % block - cases[c].head;

			cr_assert_eq(at % 64, 0, "case %zu", c);
			cr_assert_lt(at / 64, cases[c].colours, "case %zu", c);
			cr_assert_leq(at + cases[c].head + cases[c].bytes, block);
			seen[at / 64]++;
		}
		for (size_t i = 0; i < 64; i++)
			used += seen[i] > 0;
		cr_expect_eq(used, cases[c].colours, "case %zu: %zu", c, used);
		cr_expect_eq(pcpa_block_order(pool.heap, (char *)objects[0] -
					      (uintptr_t)objects[0] % block),
			     __builtin_ctzl(block / PAGE));
		put_all(&pool, n, 1);
		pool_gone(&pool);
	}
}

/* ---- Options ------------------------------------------------------------------------- */

static int with_heap(struct pcpa_objpool *pool, const struct pcpa_heap_options *heap)
{
	struct pcpa_objpool_options o = PCPA_OBJPOOL_OPTIONS_INIT;

	o.nr_objects = 10;
	o.object_bytes = 64;
	o.heap = heap;
	return pcpa_objpool_create(&o, pool);
}

static void expect_said(int err, int is, const char *text)
{
	cr_expect_eq(err, is, "%d", err);
	cr_expect_eq(pool_said_count(text), 1, "no \"%s\" in: %s", text, pool_said);
}

Test(objpool, bad_options_are_named)
{
	struct pcpa_objpool_options small = {.struct_size = 4};
	struct pcpa_heap_options heap = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_objpool pool, mark;

	memset(&mark, 0x5a, sizeof(mark));
	pool = mark;
	pool_sys_install();
	expect_said(pool_try(&pool, 0, 0, 64, NULL, 0), -EINVAL, "nr_objects 0 of");
	expect_said(pool_try(&pool, 10, 64, 0, NULL, 0), -EINVAL, "object_bytes 0");
	expect_said(pool_try(&pool, 1, 64, 5 * MIB, NULL, 0), -EINVAL,
		    "object_bytes 5242880 and head_bytes 64 are more than a block can "
		    "have, 4194304");
	expect_said(pool_try(&pool, 1, 64, 3 * MIB, NULL, 0), -EINVAL,
		    "object_bytes 3145728 and head_bytes 64 are more than a block can "
		    "have, 2097152");
	expect_said(pool_try(&pool, 1, SIZE_MAX, 2, NULL, 0), -EINVAL,
		    "head_bytes 18446744073709551615 are");
	expect_said(pool_try(&pool, 1, 2, SIZE_MAX, NULL, 0), -EINVAL,
		    "object_bytes 18446744073709551615 and");
	expect_said(pool_try(&pool, 1, 64, 64, "999", 0), -ENODEV,
		    "nodes \"999\"");
	expect_said(pcpa_objpool_create(&small, &pool), -EINVAL, "struct_size 4");
	expect_said(pcpa_objpool_create(NULL, &pool), -EINVAL, "struct_size 0");
	heap.initial_bytes = 12 * MIB;
	expect_said(with_heap(&pool, &heap), -EINVAL, "initial_bytes 12582912");
	heap.initial_bytes = 0;
	heap.max_bytes = 13 * MIB;
	expect_said(with_heap(&pool, &heap), -EINVAL, "max_bytes 13631488");
	heap.max_bytes = 0;
	heap.reserve_pages = 7;
	expect_said(with_heap(&pool, &heap), -EINVAL, "reserve_pages 7");
	heap.reserve_pages = 0;
	heap.flags = PCPA_HEAP_COW;
	expect_said(with_heap(&pool, &heap), -EINVAL, "the heap can't be cow");
	heap.flags = PCPA_HEAP_FIXED;
	expect_said(with_heap(&pool, &heap), -EINVAL, "flag fixed of the heap");
	heap.flags = 0x8000;
	expect_said(with_heap(&pool, &heap), -EINVAL, "flags 0x8000");
	heap.verbosity = 0;
	cr_expect_eq(with_heap(&pool, &heap), -EINVAL);
	heap.flags = 0;
	heap.reserve_pages = 8;
	cr_expect_eq(with_heap(&pool, &heap), -EINVAL);
	cr_expect_eq(pool_said_count("flags 0x8000"), 1, "silent: %s", pool_said);
	cr_expect_eq(pool_said_count("reserve_pages 8"), 0);
	heap.reserve_pages = 0;
	heap.verbosity = 1;
	heap.struct_size = 5;
	expect_said(with_heap(&pool, &heap), -EINVAL, "struct_size 5");
	heap.struct_size = SIZE_MAX;
	expect_said(with_heap(&pool, &heap), -EINVAL, "struct_size 1844");
	expect_said(pool_try(&pool, SIZE_MAX / 2, 0, 4096, NULL, 0), -EINVAL,
		    "nr_objects 9223372036854775807 of 4096 bytes");
	cr_expect_lt(pool_try(&pool, SIZE_MAX / 8192, 0, 4096, NULL, 0), 0);
	cr_expect_eq(pool_try(NULL, 10, 0, 64, NULL, 0), -EINVAL);
	cr_expect_eq(memcmp(&pool, &mark, sizeof(pool)), 0, "nothing was written");
	cr_expect_eq(with_heap(&pool, NULL), 0, "defaults do");
	pool_gone(&pool);
	cr_expect_eq(pcpa_objpool_destroy(NULL), 0);
	cr_expect_eq(pcpa_objpool_count(NULL), 0);
	cr_expect_eq(pcpa_objpool_check(NULL), -EINVAL);
}

static const char two_nodes[] = "Package:2 [NUMANode(memory=1GiB)] PU:4";

Test(objpool, pool_is_on_one_node)
{
	struct pcpa_objpool pool;

	machine("HWLOC_SYNTHETIC", two_nodes);
	for (int cpu = 0; cpu < 8; cpu += 4) {
		my_cpu = cpu;
		pool = pool_of_objects(100, 0, 64);
		take_all(&pool, 100, 1);
		for (unsigned i = 0; i < 100; i++)
			cr_assert_eq(pcpa_block_node(pool.heap, (char *)objects[i] -
						     (uintptr_t)objects[i] % PAGE),
				     cpu / 4, "the caller's node");
		pool_gone(&pool);
	}
	cr_assert_eq(pool_try(&pool, 100, 0, 64, "0", 0), 0);
	cr_expect_eq(stats_of(pool.heap, 0).used_pages, 512 - 100);
	pool_gone(&pool);
	table.write_err = pool_write;
	expect_said(pool_try(&pool, 100, 0, 64, "0-1", 0), -EINVAL,
		    "a pool is on one node, and nodes 0-1 are 2");
}

/* ---- Ends --------------------------------------------------------------------------- */

/* At one address, with what was out of the last: no handle of that one is used. */
Test(objpool, pool_ends_with_what_is_out)
{
	struct pcpa_objpool pool, other = pool_of_objects(10, 0, 64);

	for (unsigned i = 0; i < 20; i++) {
		pool = pool_of_objects(600, 64, i % 2 ? 2176 : 9728);
		take_all(&pool, 600, 32);
		cr_assert_eq(pcpa_objpool_put_bulk(&pool, objects, i * 30), 0);
		cr_assert_eq(pcpa_objpool_count(&pool), i * 30);
		pool_gone(&pool);
	}
	take_all(&other, 10, 1);
	put_all(&other, 10, 1);
	pool_gone(&other);
}

static unsigned long rss_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long size = 0, rss = 0;

	cr_assert(f && fscanf(f, "%lu %lu", &size, &rss) == 2);
	fclose(f);
	return rss;
}

Test(objpool, memory_goes_with_the_pool)
{
	unsigned long before = 0;

	for (unsigned i = 0; i < 20; i++) {
		struct pcpa_objpool pool = pool_of_objects(MANY, 0, 4096);

		take_all(&pool, MANY, 32);
		pool_gone(&pool);
		if (i == 1)
			before = rss_pages();
	}
	cr_expect_lt(rss_pages(), before + MANY);
}

/* So does what is refused after its memory was there. */
Test(objpool, memory_goes_with_a_refusal)
{
	struct pcpa_objpool pool;
	unsigned long before = 0;

	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(pool_try(&pool, 1, 64, 3 * MIB, NULL, 0), -EINVAL);
		if (i == 1)
			before = rss_pages();
	}
	cr_expect_lt(rss_pages(), before + 4 * MIB / PAGE);
}

Test(objpool, pool_stays_while_it_has_a_packet_pool)
{
	struct pcpa_objpool pool = pool_of_objects(600, 0, 64);
	struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;
	struct pcpa_pool *packets;

	cr_assert_eq(pcpa_pool_create(pool.heap, &o, &packets), 0);
	cr_expect_eq(pcpa_objpool_destroy(&pool), -EBUSY);
	take_all(&pool, 600, 32);
	put_all(&pool, 600, 1);
	cr_assert_eq(pcpa_pool_destroy(packets), 0);
	pool_gone(&pool);
}

/* The handle's mark says that its thread is inside. */
Test(objpool, pool_stays_while_a_thread_is_inside)
{
	struct pcpa_objpool pool = pool_of_objects(600, 0, 64);
	struct pcpa_cache cache = pcpa_cache_self(pool.heap);

	take_all(&pool, 600, 1);
	put_all(&pool, 600, 1);
	cr_assert(pcpa_cache_is_inline(&cache));
	cache.inside->busy = 1;
	cr_expect_eq(pcpa_objpool_destroy(&pool), -ETIMEDOUT);
	cache.inside->busy = 0;
	take_all(&pool, 600, 1);
	put_all(&pool, 600, 1);
	pool_gone(&pool);
}

/* ---- Threads and processes -------------------------------------------------------------- */

static void *thread_turn(void *arg)
{
	struct pcpa_objpool *pool = arg;
	size_t n = pcpa_objpool_count(pool);

	take_all(pool, n, 32);
	put_all(pool, n, 1);
	return NULL;
}

/* What one thread's cache has another gets, while the first lives. */
Test(objpool, last_object_is_found_in_other_threads)
{
	struct pcpa_objpool pool = pool_of_objects(600, 64, 2176);
	pthread_t thread;

	for (unsigned i = 0; i < 20; i++) {
		thread_turn(&pool);
		cr_assert_eq(pthread_create(&thread, NULL, thread_turn, &pool), 0);
		pthread_join(thread, NULL);
	}
	pool_gone(&pool);
}

/* Of the pool that the thread has used, of pages, where there is room. */
Test(objpool, put_that_hits_says_so)
{
	struct pcpa_objpool pages = pool_of_objects(100, 64, 64);
	struct pcpa_objpool larger = pool_of_objects(100, 64, 9000);
	void *a = pcpa_objpool_get(&pages), *b = pcpa_objpool_get(&larger);

	cr_expect_not(pcpa_objpool_put_hit(&larger, b), "no pages");
	cr_expect_not(pcpa_objpool_put_hit(&pages, a), "not the last pool");
	cr_expect_eq(pcpa_objpool_put(&larger, b), 0);
	cr_expect_eq(pcpa_objpool_put(&pages, a), 0);
	a = pcpa_objpool_get(&pages);
	pcpa_objpool_bound_.cache.inside->busy = 1;
	cr_expect_not(pcpa_objpool_put_hit(&pages, a), "somebody is inside");
	pcpa_objpool_bound_.cache.inside->busy = 0;
	cr_expect_eq(pcpa_objpool_count(&pages), 99);
	KEEPS_ERRNO(cr_expect(pcpa_objpool_put_hit(&pages, a)));
	cr_expect_eq(pcpa_objpool_count(&pages), 100);
	pool_gone(&pages);
	pool_gone(&larger);
}

Test(objpool, pools_in_turn_have_their_own)
{
	struct pcpa_objpool a = pool_of_objects(100, 0, 64);
	struct pcpa_objpool b = pool_of_objects(200, 0, 9000);

	for (unsigned i = 0; i < 1000; i++) {
		void *x = pcpa_objpool_get(&a), *y = pcpa_objpool_get(&b);

		cr_assert(x && y);
		cr_assert_eq(pcpa_block_order(a.heap, (char *)x - (uintptr_t)x % PAGE),
			     0);
		cr_assert_eq(pcpa_objpool_put(&a, x), 0);
		cr_assert_eq(pcpa_objpool_put(&b, y), 0);
	}
	take_all(&b, 200, 7);
	pool_gone(&a);
	put_all(&b, 200, 7);
	pool_gone(&b);
}

static void expect_elsewhere(struct pcpa_objpool *pool, void *object)
{
	errno = 0;
	cr_expect_null(pcpa_objpool_get(pool));
	cr_expect_eq(errno, ENODEV);
	cr_expect_eq(pcpa_objpool_put(pool, object), -ENODEV);
	cr_expect_eq(pcpa_objpool_put_bulk(pool, &object, 1), -ENODEV);
	cr_expect_eq(pcpa_objpool_count(pool), 0);
	cr_expect_eq(pcpa_objpool_check(pool), -ENODEV);
	cr_expect_eq(pcpa_objpool_destroy(pool), -ENODEV);
}

/* As it is seen in memory that processes share: nothing in it is followed. */
Test(objpool, another_processs_pool_is_left_alone)
{
	struct pcpa_objpool theirs;

	memset(&theirs, 0xff, sizeof(theirs));
	expect_elsewhere(&theirs, &theirs);
	memset(&theirs, 0, sizeof(theirs));
	expect_elsewhere(&theirs, &theirs);
	theirs = pool_of_objects(10, 0, 9000);
	cr_expect_eq(pcpa_objpool_check(&theirs), 0);
	cr_expect_eq(pcpa_objpool_put(&theirs, pcpa_objpool_get(&theirs)), 0);
	theirs.process++;
	theirs.id++;
	expect_elsewhere(&theirs, &theirs);
	memset(&theirs, 0, sizeof(theirs));
	expect_elsewhere(&theirs, &theirs);
}

static void child_of(void (*fn)(struct pcpa_objpool *), struct pcpa_objpool *pool)
{
	pid_t child = fork();
	int status;

	cr_assert_geq(child, 0);
	if (child == 0) {
		fn(pool);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
}

#define CHILD(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			_exit(__LINE__ & 0x7f);                                \
	} while (0)

static void make_in_child(struct pcpa_objpool *shared)
{
	struct pcpa_objpool pool;

	CHILD(pool_try(&pool, 10, 0, 64, NULL, 0) == 0);
	*shared = pool;
}

/* Whose heaps were made in the same order, before and after one forked. */
Test(objpool, pools_of_two_processes_are_apart)
{
	struct pcpa_objpool own, *theirs;

	theirs = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	cr_assert(theirs != MAP_FAILED);
	for (unsigned i = 0; i < 2; i++) {
		child_of(make_in_child, theirs);
		own = pool_of_objects(10, 0, 64);
		cr_assert_eq(pcpa_objpool_put(&own, pcpa_objpool_get(&own)), 0);
		expect_elsewhere(theirs, theirs);
		cr_expect_eq(pcpa_objpool_count(&own), 10);
	}
}

static void *new_thread_in_child(void *arg)
{
	struct pcpa_objpool *pool = arg;

	CHILD(!pcpa_objpool_get(pool) && errno == ENODEV);
	CHILD(pcpa_objpool_put(pool, objects[0]) == -ENODEV);
	return NULL;
}

static void in_child(struct pcpa_objpool *pool)
{
	pthread_t thread;

	CHILD(!pcpa_objpool_get(pool) && errno == ENODEV);
	pcpa_objpool_put(pool, objects[0]);
	CHILD(pcpa_objpool_count(pool) == 0);
	CHILD(pcpa_objpool_destroy(pool) == -ENODEV);
	CHILD(pthread_create(&thread, NULL, new_thread_in_child, pool) == 0);
	CHILD(pthread_join(thread, NULL) == 0);
}

Test(objpool, forked_child_has_nothing)
{
	struct pcpa_objpool pool = pool_of_objects(100, 0, 64);

	take_all(&pool, 100, 1);
	child_of(in_child, &pool);
	put_all(&pool, 100, 1);
	pool_gone(&pool);
}

static void put_twice(struct pcpa_objpool *pool)
{
	void *object = pcpa_objpool_get(pool);

	pcpa_objpool_put(pool, object);
	pcpa_objpool_put(pool, object);
}

Test(objpool, object_put_twice_is_found_with_checks, .signal = SIGABRT)
{
	struct pcpa_objpool pool = pool_of_flags(100, 64, 64, PCPA_HEAP_CHECKS);
	unsigned written = 0;

	take_all(&pool, 100, 7);
	memset(objects[0], 1, 64);
	put_all(&pool, 100, 32);
	take_all(&pool, 100, 1);
	for (unsigned i = 0; i < 100; i++)
		written += *(char *)objects[i] == 1;
	cr_assert_eq(written, 1, "what is free is neither filled nor lost");
	put_all(&pool, 100, 1);
	put_twice(&pool);
}
