/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * right.c - a user's program without a mistake: threads hand blocks to each
 * other and free them in all ways while heaps come and go, caches are drained
 * and the process forks.  No tool may find anything.
 */
#include <pcpalloc/pcpalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define SLOTS 64
#define BULK 40

static unsigned rounds = 300;

/* What one thread leaves for whoever comes. */
static struct {
	pthread_mutex_t lock;
	unsigned char *blocks[SLOTS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct churn {
	struct pcpa_heap *heap;
	unsigned random;
};

static void fail(const char *what)
{
	fprintf(stderr, "right.c: %s\n", what);
	_Exit(4);
}

static unsigned random_below(struct churn *c, unsigned n)
{
	c->random = c->random * 1103515245u + 12345u;
	return (c->random >> 16) % n;
}

static size_t bytes_of(struct churn *c, unsigned order)
{
	return pcpa_heap_page_bytes(c->heap) << order;
}

static void block_drop(struct churn *c, unsigned char *block)
{
	int order;

	if (!block)
		return;
	order = block[0];
	if (pcpa_block_order(c->heap, block) != order ||
	    block[bytes_of(c, (unsigned)order) - 1] != order)
		fail("not what was written");
	if (random_below(c, 2))
		pcpa_free(c->heap, block);
	else
		pcpa_free_sized(c->heap, block, (unsigned)order);
}

/* Puts a block into the table and frees what was there. */
static void exchange(struct churn *c)
{
	unsigned order = random_below(c, 6), slot = random_below(c, SLOTS);
	unsigned flags = random_below(c, 4) ? 0 : PCPA_ZERO;
	unsigned char *block = pcpa_alloc(c->heap, order, flags), *before;

	if (!block)
		fail("no memory");
	if (flags && (block[0] || block[bytes_of(c, order) - 1]))
		fail("not zero");
	memset(block, (int)order, bytes_of(c, order));
	pthread_mutex_lock(&table.lock);
	before = table.blocks[slot];
	table.blocks[slot] = block;
	pthread_mutex_unlock(&table.lock);
	block_drop(c, before);
}

static void burst(struct churn *c)
{
	unsigned order = random_below(c, 3);
	void *blocks[BULK] = {NULL};
	size_t n = pcpa_refill(c->heap, order, 0, blocks, BULK), i;

	for (i = 0; i < n; i++)
		memset(blocks[i], 7, bytes_of(c, order));
	if (random_below(c, 2))
		pcpa_free_bulk(c->heap, blocks, n);
	else
		pcpa_free_bulk_sized(c->heap, order, blocks, n);
}

static void *churn(void *arg)
{
	struct churn *c = arg;
	unsigned i;

	for (i = 0; i < rounds; i++) {
		exchange(c);
		if (random_below(c, 8) == 0)
			burst(c);
		if (random_below(c, 8) == 0)
			pcpa_heap_drain(c->heap);
		if (random_below(c, 32) == 0)
			pcpa_thread_flush(c->heap);
	}
	return NULL;
}

static struct pcpa_heap *heap_make(unsigned flags)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.max_bytes = 32u << 20;
	o.flags = flags;
	o.verbosity = 0;
	if (pcpa_heap_create(&o, &heap))
		fail("no heap");
	return heap;
}

static void threads_run(struct pcpa_heap *heap)
{
	struct churn each[THREADS], own = {heap, 5};
	pthread_t threads[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		each[i] = (struct churn){heap, i + 1};
		if (pthread_create(&threads[i], NULL, churn, &each[i]))
			fail("no thread");
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < SLOTS; i++) {
		block_drop(&own, table.blocks[i]);
		table.blocks[i] = NULL;
	}
}

/* What the heap had is somebody else's now. */
static void addresses_use(void)
{
	size_t bytes = (size_t)32 << 20;
	unsigned i;

	for (i = 0; i < 3; i++) {
		char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			fail("no mapping");
		for (size_t at = 0; at < bytes; at += 4096)
			p[at] = 1;
		if (i % 2)
			munmap(p, bytes);
	}
}

static void child_run(struct pcpa_heap *heap, unsigned char *block)
{
	struct churn own = {heap, 9};
	int status;
	pid_t child = fork();

	if (child == 0) {
		block_drop(&own, block);
		exchange(&own);
		_Exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the child");
	block_drop(&own, block);
}

/* A program's objects stay what they are while their blocks are free. */
static void contents_run(void)
{
	struct pcpa_heap *heap = heap_make(PCPA_HEAP_CONTENTS);
	unsigned *blocks[BULK];
	size_t n = pcpa_alloc_bulk(heap, 0, 0, (void **)blocks, BULK), i;

	for (i = 0; i < n; i++)
		*blocks[i] = 1;
	pcpa_free_bulk(heap, (void **)blocks, n);
	for (i = 0; i < n; i++)
		if ((*blocks[i])++ != 1)
			fail("not as it was");
	if (pcpa_heap_drain(heap))
		fail("drain");
	n = pcpa_alloc_bulk(heap, 0, 0, (void **)blocks, n);
	for (i = 0; i < n; i++)
		if (*blocks[i] != 2)
			fail("not as it was, after a drain");
	pcpa_free_bulk(heap, (void **)blocks, n);
	if (pcpa_heap_destroy(heap))
		fail("blocks are out");
}

int main(int argc, char **argv)
{
	static const unsigned flags[] = {0, PCPA_HEAP_COW, PCPA_HEAP_CHECKS,
					 PCPA_HEAP_NO_IPI};
	struct pcpa_heap *heap;
	char **pointer;
	unsigned i;

	if (argc == 2)
		rounds = (unsigned)atoi(argv[1]);
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		heap = heap_make(flags[i]);
		threads_run(heap);
		if (flags[i] == PCPA_HEAP_COW) {
			unsigned char *block = pcpa_alloc(heap, 0, 0);

			memset(block, 0, pcpa_heap_page_bytes(heap));
			child_run(heap, block);
		}
		if (pcpa_heap_destroy(heap))
			fail("blocks are out");
		addresses_use();
	}
	contents_run();
	/* The only pointer to it lies in a block: it is no leak. */
	pointer = pcpa_alloc(pcpa_default_heap(), 0, 0);
	if (!pointer)
		fail("no default heap");
	pointer[0] = malloc(1000);
	return 0;
}
