/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bugs.c - a user's program with the mistake that its argument names; compiled
 * and run by tests/tools/found.  Exits 0 where nobody minds.
 */
#include <pcpalloc/pcpalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pcpa_heap *heap, *other;
static volatile char sink;

static void *make(unsigned order)
{
	char *block = pcpa_alloc(heap, order, 0);

	if (!block)
		exit(3);
	memset(block, 1, pcpa_heap_page_bytes(heap) << order);
	return block;
}

static void drop(void *block)
{
	pcpa_free(heap, block);
}

static void read_late(void)
{
	char *block = make(0);

	drop(block);
	sink = block[100];
}

static void write_late(void)
{
	char *block = make(2);

	drop(block);
	block[5000] = 1;
}

/* Another holder of other memory must not hide it. */
static void write_later(void)
{
	char *block = make(0);

	drop(block);
	for (int i = 0; i < 100; i++)
		make(0);
	block[8] = 1;
}

static void write_in_bulk(void)
{
	void *blocks[32];

	if (pcpa_alloc_bulk(heap, 1, 0, blocks, 32) != 32)
		exit(3);
	pcpa_free_bulk(heap, blocks, 32);
	((char *)blocks[17])[100] = 1;
}

/* Nobody has had this page. */
static void overflow(void)
{
	char *block = make(0);
	size_t page = pcpa_heap_page_bytes(heap), i = 1;

	while (pcpa_block_order(heap, block + i * page) >= 0)
		i++;
	block[i * page] = 1;
}

static void read_unset(void)
{
	char *block = pcpa_alloc(heap, 0, 0);

	if (block && block[7] == 3)
		puts("three");
}

static void free_twice(void)
{
	char *block = make(1);

	drop(block);
	drop(block);
}

static void wrong_heap(void)
{
	pcpa_free(other, make(3));
}

static void late_write_found(void)
{
	char *block = make(0);

	drop(block);
	block[24] = 'Z';
	pcpa_heap_drain(heap);
	while (pcpa_alloc(heap, 0, 0))
		;
}

static void *write_beside(void *block)
{
	*(char *)block = 2;
	return NULL;
}

/* Two threads write one block; that it came from the heap excuses nothing. */
static void race(void)
{
	pthread_t other_thread;
	char *block = make(0);

	if (pthread_create(&other_thread, NULL, write_beside, block))
		exit(3);
	block[0] = 3;
	pthread_join(other_thread, NULL);
	drop(block);
}

/* The thread that has the block now, and one that had it. */
static void *write_stale(void *block)
{
	*(char *)block = 2;
	return NULL;
}

static void race_after_free(void)
{
	pthread_t other_thread;
	char *block = make(0), *next;

	if (pthread_create(&other_thread, NULL, write_stale, block))
		exit(3);
	drop(block);
	pcpa_heap_drain(heap);
	while ((next = pcpa_alloc(heap, 0, 0)) && next != block)
		;
	if (next)
		memset(next, 1, 8);
	pthread_join(other_thread, NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} bugs[] = {
	{"read_late", read_late},
	{"write_late", write_late},
	{"write_later", write_later},
	{"write_in_bulk", write_in_bulk},
	{"overflow", overflow},
	{"read_unset", read_unset},
	{"free_twice", free_twice},
	{"wrong_heap", wrong_heap},
	{"late_write_found", late_write_found},
	{"race", race},
	{"race_after_free", race_after_free},
};

int main(int argc, char **argv)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.initial_bytes = 4u << 20;
	o.max_bytes = 16u << 20;
	o.verbosity = 0;
	if (pcpa_heap_create(&o, &heap) || pcpa_heap_create(&o, &other))
		return 3;
	for (size_t i = 0; argc == 2 && i < sizeof(bugs) / sizeof(bugs[0]); i++)
		if (strcmp(argv[1], bugs[i].name) == 0) {
			bugs[i].run();
			return 0;
		}
	return 2;
}
