/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_notify.c - what the subscriber of a heap's arenas is told and may refuse, on
 * the invented machine.
 *
 * The subscriber here keeps a map of granules and checks each change against it: what
 * is added wasn't there, what is removed was.  After each step the map is what the
 * heap lists.
 */
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"
#include "heap.h"

#define GRANULE (2 * MIB)
#define GRANULES 512u
#define MANY 65536u

static void *blocks[MANY];

static struct map {
	char *base; /* of the heap's address space */
	bool has[GRANULES];
	unsigned adds, removes;
	int veto_add, veto_remove; /* what the next ones return */
	unsigned only_add;	   /* that many adds agree first */
	uint64_t populated;	   /* at the last change */
	size_t largest;
} map;

static int change(enum pcpa_arena_change what, const struct pcpa_arena_info *a,
		  void *arg)
{
	struct map *m = arg;
	size_t g = (size_t)((char *)a->base - m->base) / GRANULE, i;
	bool add = what == PCPA_ARENA_ADD;
	int veto = add ? m->veto_add : m->veto_remove;

	cr_expect_eq(a->struct_size, sizeof(*a));
	cr_expect_eq(a->granule_bytes, GRANULE);
	cr_expect_eq((uintptr_t)a->base % GRANULE, 0);
	cr_expect_eq(a->bytes % GRANULE, 0);
	cr_expect_gt(a->bytes, 0);
	cr_assert_lt(g + a->bytes / GRANULE, GRANULES);
	m->populated = fake.populated_bytes;
	if (a->bytes > m->largest)
		m->largest = a->bytes;
	if (add && m->only_add > 0 && m->only_add-- > 0)
		veto = 0;
	m->adds += add;
	m->removes += !add;
	for (i = g; i < g + a->bytes / GRANULE; i++) {
		cr_expect_eq(m->has[i], !add, "granule %zu", i);
		m->has[i] = veto ? m->has[i] : add;
	}
	return veto;
}

static unsigned map_granules(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < GRANULES; i++)
		n += map.has[i];
	return n;
}

static int listed_check(const struct pcpa_arena_info *a, void *arg)
{
	size_t g = (size_t)((char *)a->base - map.base) / GRANULE;

	for (size_t i = 0; i < a->bytes / GRANULE; i++)
		cr_expect(map.has[g + i], "granule %zu", g + i);
	*(uint64_t *)arg += a->bytes;
	return 0;
}

/* The map, the list, what is managed and what is populated are the same. */
static void expect_map(struct pcpa_heap *heap, uint64_t bytes)
{
	uint64_t listed = 0;
	unsigned z;

	cr_expect_eq(pcpa_for_each_arena(heap, listed_check, &listed), 0);
	cr_expect_eq(listed, bytes);
	cr_expect_eq(map_granules() * GRANULE, bytes);
	cr_expect_eq(fake.populated_bytes, bytes);
	cr_expect_eq(stats_summed(heap).managed_pages * fake.page_bytes, bytes);
	pcpi_space_check(&heap->space);
	for (z = 0; z < heap->nr_zones; z++)
		cr_expect(pcpi_zone_check(&heap->env.zones[z]));
}

static void setup(void)
{
	fake_sys_install();
	memset(&map, 0, sizeof(map));
}

TestSuite(notify, .init = setup);

static struct pcpa_heap *heap_told(size_t initial, size_t max)
{
	struct pcpa_heap *heap = heap_make(initial, max, 0);

	map.base = heap->space.base;
	KEEPS_ERRNO(cr_assert_eq(pcpa_heap_notify(heap, change, &map), 0));
	return heap;
}

/* ---- What is told ---------------------------------------------------------------- */

Test(notify, arenas_that_are_there_are_added_and_removed)
{
	struct pcpa_heap *heap = heap_told(8 * MIB, 64 * MIB);

	expect_map(heap, 8 * MIB);
	cr_expect_eq(map.adds, 1);
	KEEPS_ERRNO(cr_expect_eq(pcpa_heap_notify(heap, NULL, NULL), 0));
	cr_expect_eq(map.removes, 1);
	cr_expect_eq(map_granules(), 0);
	cr_expect_eq(pcpa_heap_notify(heap, NULL, NULL), 0, "nobody is there");
	cr_expect_eq(map.removes, 1);
	cr_expect_eq(pcpa_heap_notify(heap, change, &map), 0, "once more");
	expect_map(heap, 8 * MIB);
	heap_end(heap);
}

Test(notify, growth_adds_before_and_trim_removes_before)
{
	struct pcpa_heap *heap = heap_told(0, 256 * MIB);
	size_t n;

	cr_expect_eq(map.adds, 0);
	n = alloc_all(heap, 9, 0, blocks, 64);
	cr_assert_eq(n, 64);
	expect_map(heap, 128 * MIB);
	cr_expect_gt(map.adds, 1);
	cr_expect_eq(map.populated, 128 * MIB, "added when it can be mapped");
	free_all(heap, blocks, n);
	cr_expect_eq(pcpa_heap_trim(heap, 64 * MIB), 64 * MIB);
	expect_map(heap, 64 * MIB);
	cr_expect_geq(map.populated, 64 * MIB + GRANULE,
		      "removed when it is still there");
	cr_expect_eq(pcpa_heap_trim(heap, 0), 64 * MIB);
	expect_map(heap, 0);
	cr_expect_eq(stats_of(heap, -1).trim_vetoed, 0);
	cr_expect_eq(stats_of(heap, -1).grow_vetoed, 0);
	heap_end(heap);
}

Test(notify, contiguous_ranges_grow_with_it)
{
	struct pcpa_heap *heap = heap_told(0, 256 * MIB);
	size_t pages = 24 * MIB / fake.page_bytes;
	void *range = pcpa_alloc_contig(heap, pages, 1, 0);

	cr_assert(range);
	expect_map(heap, map_granules() * GRANULE);
	cr_expect_geq(map_granules() * GRANULE, 24 * MIB);
	pcpa_free_contig(heap, range, pages);
	map.veto_add = -EIO;
	cr_expect_eq(pcpa_alloc_contig(heap, 200 * MIB / fake.page_bytes, 1, 0),
		     NULL);
	cr_expect_eq(errno, ENOMEM);
	heap_end(heap);
}

/* Parts: huge pages, each once, however the blocks in use cut the arena. */
Test(notify, parts_of_an_arena_are_removed)
{
	struct pcpa_heap *heap = heap_told(64 * MIB, 64 * MIB);
	size_t n = alloc_all(heap, 9, 0, blocks, 32), i;

	for (i = 0; i < n; i++)
		if (i % 3 != 0)
			pcpa_free(heap, blocks[i]);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 21 * GRANULE);
	expect_map(heap, 11 * GRANULE);
	cr_expect_eq(map.removes, 11, "%u: a run each", map.removes);
	for (i = 0; i < n; i += 3)
		pcpa_free(heap, blocks[i]);
	map.removes = 0;
	cr_expect_eq(pcpa_heap_notify(heap, NULL, NULL), 0);
	cr_expect_eq(map.removes, 11, "what is left of it");
	cr_expect_eq(map_granules(), 0);
	heap_end(heap);
}

Test(notify, parts_have_64_mib_at_most)
{
	struct pcpa_heap *heap = heap_told(256 * MIB, 256 * MIB);

	map.largest = 0;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 256 * MIB);
	cr_expect_eq(map.largest, 64 * MIB);
	heap_end(heap);
}

Test(notify, end_of_the_heap_removes)
{
	struct pcpa_heap *heap = heap_told(8 * MIB, 64 * MIB);
	void *block = pcpa_alloc(heap, 0, 0);

	cr_expect_eq(pcpa_heap_destroy(heap), -EBUSY);
	cr_expect_eq(map.removes, 0, "it lives on");
	expect_map(heap, 8 * MIB);
	pcpa_free(heap, block);
	map.veto_remove = -EBUSY; /* too late */
	cr_expect_eq(pcpa_heap_destroy(heap), 0);
	cr_expect_eq(map.removes, 1);
	cr_expect_eq(fake.populated_bytes, 0);
}

/* ---- Refusals ----------------------------------------------------------------------- */

Test(notify, refused_growth_is_undone)
{
	struct pcpa_heap *heap = heap_told(8 * MIB, 256 * MIB);
	size_t n;

	map.veto_add = -ENOSPC;
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(n, 8 * MIB / fake.page_bytes);
	expect_map(heap, 8 * MIB);
	cr_expect_gt(stats_of(heap, -1).grow_vetoed, 0);
	map.veto_add = 0;
	pcpi_store_relaxed(&heap->env.zones[0].grow_failures, 0); /* relaxed: one thread */
	blocks[n] = pcpa_alloc(heap, 0, 0);
	cr_assert(blocks[n], "and grows once it is agreed to");
	expect_map(heap, map_granules() * GRANULE);
	free_all(heap, blocks, n + 1);
	heap_end(heap);
}

/* What a refused arena had is the next one's, also where it isn't taken back. */
Test(notify, refused_growth_that_the_kernel_keeps)
{
	struct pcpa_heap *heap = heap_told(0, 64 * MIB);
	void *block;

	map.veto_add = 1;
	fake.dontneed_rc = -ENOMEM;
	cr_expect_eq(pcpa_alloc(heap, 0, 0), NULL);
	cr_expect_eq(errno, ENOMEM);
	pcpi_space_check(&heap->space);
	cr_expect_eq(stats_of(heap, -1).managed_pages, 0);
	fake.dontneed_rc = 0;
	map.veto_add = 0;
	pcpi_store_relaxed(&heap->env.zones[0].grow_failures, 0); /* relaxed: one thread */
	block = pcpa_alloc(heap, 0, 0);
	cr_assert(block);
	expect_map(heap, map_granules() * GRANULE);
	pcpa_free(heap, block);
	heap_end(heap);
	cr_expect_eq(fake.populated_bytes, 0);
}

Test(notify, refused_removal_stays_in_use_and_is_counted)
{
	struct pcpa_heap *heap = heap_told(32 * MIB, 64 * MIB);
	size_t n;

	map.veto_remove = -EBUSY;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_expect_eq(stats_of(heap, -1).trim_vetoed, 1);
	cr_expect_eq(stats_of(heap, -1).trim_failed, 0);
	expect_map(heap, 32 * MIB);
	n = alloc_all(heap, 0, PCPA_NOGROW, blocks, MANY);
	cr_expect_eq(n, 32 * MIB / fake.page_bytes, "all of it is of use");
	free_all(heap, blocks, n);
	map.veto_remove = 0;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 32 * MIB);
	expect_map(heap, 0);
	heap_end(heap);
}

/* Of several runs one is refused. */
static int refuse_first(enum pcpa_arena_change what,
			const struct pcpa_arena_info *a, void *arg)
{
	struct map *m = arg;

	m->veto_remove = m->removes == 0 ? -EBUSY : 0;
	return change(what, a, arg);
}

Test(notify, refusal_of_one_part_leaves_the_others)
{
	struct pcpa_heap *heap = heap_make(192 * MIB, 192 * MIB, 0);

	map.base = heap->space.base;
	cr_assert_eq(pcpa_heap_notify(heap, refuse_first, &map), 0);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 128 * MIB);
	expect_map(heap, 64 * MIB);
	cr_expect_eq(stats_of(heap, -1).trim_vetoed, 1);
	heap_end(heap);
}

Test(notify, refused_subscription_leaves_none)
{
	struct pcpa_heap *heap = heap_make(0, 256 * MIB, 0);
	size_t n = alloc_all(heap, 9, 0, blocks, 32);
	uint64_t arenas = stats_of(heap, -1).arenas;

	cr_assert_gt(arenas, 2);
	map.base = heap->space.base;
	map.only_add = 2;
	map.veto_add = -EIO;
	cr_expect_eq(pcpa_heap_notify(heap, change, &map), -EIO);
	cr_expect_eq(map.adds, 3);
	cr_expect_eq(map.removes, 2);
	cr_expect_eq(map_granules(), 0);
	map.veto_add = 7;
	cr_expect_eq(pcpa_heap_notify(heap, change, &map), -ECANCELED);
	map.veto_add = 0;
	cr_expect_eq(pcpa_heap_notify(heap, change, &map), 0);
	expect_map(heap, 64 * MIB);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* The kernel doesn't take what the subscriber has let go. */
Test(notify, refused_by_the_kernel_is_added_again)
{
	struct pcpa_heap *heap = heap_told(32 * MIB, 64 * MIB);

	fake.dontneed_rc = -ENOMEM;
	map.adds = 0;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_expect_eq(map.removes, 1);
	cr_expect_eq(map.adds, 1);
	cr_expect_eq(stats_of(heap, -1).trim_failed, 1);
	expect_map(heap, 32 * MIB);
	fake.dontneed_rc = 0;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 32 * MIB);
	expect_map(heap, 0);
	heap_end(heap);
}

Test(notify, refused_by_both_leaves_the_heap)
{
	struct pcpa_heap *heap = heap_told(32 * MIB, 64 * MIB);
	void *block;

	fake.dontneed_rc = -ENOMEM;
	map.veto_add = -EIO;
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_expect_eq(stats_of(heap, -1).managed_pages, 0);
	cr_expect_eq(stats_of(heap, -1).arenas, 0);
	cr_expect_eq(map_granules(), 0);
	pcpi_space_check(&heap->space);
	fake.dontneed_rc = 0;
	map.veto_add = 0;
	block = pcpa_alloc(heap, 9, 0);
	cr_assert(block, "the addresses serve again");
	pcpa_free(heap, block);
	heap_end(heap);
	cr_expect_eq(fake.populated_bytes, 0);
}

/* ---- Arguments ----------------------------------------------------------------------- */

Test(notify, bad_arguments)
{
	struct pcpa_heap *cow = heap_make(4 * MIB, 64 * MIB, PCPA_HEAP_COW);
	struct pcpa_heap *heap;

	cr_expect_eq(pcpa_heap_notify(NULL, change, &map), -EINVAL);
	cr_expect_eq(pcpa_heap_notify(cow, change, &map), -EINVAL);
	heap_end(cow);
	heap = heap_told(4 * MIB, 64 * MIB);
	cr_expect_eq(pcpa_heap_notify(heap, change, &map), -EBUSY);
	expect_map(heap, 4 * MIB);
	heap_end(heap);
}

/* ---- Without locks ------------------------------------------------------------------- */

static pthread_mutex_t program = PTHREAD_MUTEX_INITIALIZER;
static sem_t inside;
static __thread bool has_program;

/* Waits for a lock of the program's, which the test's thread has. */
static int change_locked(enum pcpa_arena_change what,
			 const struct pcpa_arena_info *a, void *arg)
{
	enum pcpa_arena_change waits = *(const enum pcpa_arena_change *)arg;

	(void)a;
	if (has_program || what != waits)
		return 0;
	sem_post(&inside);
	pthread_mutex_lock(&program);
	pthread_mutex_unlock(&program);
	return 0;
}

static void *grow_there(void *heap)
{
	pcpa_free(heap, pcpa_alloc(heap, 9, 0));
	return NULL;
}

static void *trim_there(void *heap)
{
	cr_expect_geq(pcpa_heap_trim(heap, 0), GRANULE);
	return NULL;
}

/* The heap with another thread inside the subscriber, for as long as this one has
 * the lock. */
static struct pcpa_heap *heap_held(size_t initial, enum pcpa_arena_change *waits,
				   void *(*there)(void *), pthread_t *other)
{
	struct pcpa_heap *heap = heap_make(initial, 256 * MIB, 0);

	sem_init(&inside, 0, 0);
	has_program = true;
	cr_assert_eq(pcpa_heap_notify(heap, change_locked, waits), 0);
	pthread_mutex_lock(&program);
	cr_assert_eq(pthread_create(other, NULL, there, heap), 0);
	while (sem_wait(&inside) != 0)
		;
	return heap;
}

static void heap_let_go(struct pcpa_heap *heap, pthread_t other)
{
	pthread_mutex_unlock(&program);
	pthread_join(other, NULL);
	cr_expect_eq(pcpa_heap_notify(heap, NULL, NULL), 0);
	heap_end(heap);
}

static void fork_here(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(0);
	cr_expect_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(notify, growth_and_forks_wait_for_no_addition, .timeout = 60)
{
	enum pcpa_arena_change waits = PCPA_ARENA_ADD;
	pthread_t other;
	struct pcpa_heap *heap = heap_held(0, &waits, grow_there, &other);
	void *block = pcpa_alloc(heap, 9, 0);

	cr_expect(block, "grown beside");
	fork_here();
	pcpa_free(heap, block);
	heap_let_go(heap, other);
}

Test(notify, growth_and_forks_wait_for_no_removal, .timeout = 60)
{
	enum pcpa_arena_change waits = PCPA_ARENA_REMOVE;
	pthread_t other;
	struct pcpa_heap *heap = heap_held(4 * MIB, &waits, trim_there, &other);
	void *block = pcpa_alloc(heap, 9, 0);

	cr_expect(block, "grown beside");
	fork_here();
	pcpa_free(heap, block);
	heap_let_go(heap, other);
}

static struct pcpi_sys table;

/* No 10 ms pass. */
static uint64_t clock_stands(void)
{
	return 1;
}

/* Whoever waits lets the subscriber go on. */
static void yield_lets_go(void)
{
	if (has_program) {
		has_program = false;
		pthread_mutex_unlock(&program);
	}
	sched_yield();
}

Test(notify, growth_at_the_maximum_waits_for_a_removal, .timeout = 60)
{
	enum pcpa_arena_change waits = PCPA_ARENA_REMOVE;
	pthread_t other;
	struct pcpa_heap *heap = heap_make(4 * MIB, 4 * MIB, 0);
	void *block;

	sem_init(&inside, 0, 0);
	cr_assert_eq(pcpa_heap_notify(heap, change_locked, &waits), 0);
	pthread_mutex_lock(&program);
	cr_assert_eq(pthread_create(&other, NULL, trim_there, heap), 0);
	while (sem_wait(&inside) != 0)
		;
	table = *pcpi_sys;
	table.clock_ns = clock_stands;
	table.yield = yield_lets_go;
	pcpi_sys = &table;
	has_program = true;
	block = pcpa_alloc(heap, 0, 0);
	cr_expect(block, "all of the heap was free");
	cr_expect_not(has_program, "it has waited");
	pcpa_free(heap, block);
	pthread_join(other, NULL);
	cr_expect_eq(pcpa_heap_notify(heap, NULL, NULL), 0);
	heap_end(heap);
}

/* All that is managed, on its way to it, or on its way back is within the bound. */
Test(notify, growth_beside_an_addition_keeps_to_the_maximum, .timeout = 60)
{
	enum pcpa_arena_change waits = PCPA_ARENA_ADD;
	pthread_t other;
	struct pcpa_heap *heap = heap_held(0, &waits, grow_there, &other);
	size_t n = alloc_all(heap, 9, 0, blocks, MANY);

	cr_expect_leq(fake.populated_bytes, 256 * MIB);
	cr_expect_gt(n, 64);
	cr_expect_lt(n, 128, "the other has some");
	cr_expect_eq(errno, ENOMEM);
	free_all(heap, blocks, n);
	heap_let_go(heap, other);
}
