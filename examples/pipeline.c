/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipeline.c - what the library is for: one thread allocates packets in bursts,
 * another one frees them.  Blocks come back to the allocating thread in whole
 * batches through the depot, so that in the end the zone's lock was hardly
 * ever taken; the program prints how often.  Both threads use a handle to their own
 * cache, which compiles what needs no other thread into the loops.
 */
#include <pcpalloc/inline.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BURST 64
#define BURSTS 20000
#define QUEUE 16 /* bursts between the threads at most */

/* A queue of bursts; everything is under the lock. */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void *blocks[QUEUE][BURST];
	size_t n[QUEUE];
	unsigned head, tail; /* taken, put */
};

static struct queue queue = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};
static struct pcpa_heap *heap;

static void put(void **blocks, size_t n)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.tail - queue.head == QUEUE)
		pthread_cond_wait(&queue.changed, &queue.lock);
	memcpy(queue.blocks[queue.tail % QUEUE], blocks, n * sizeof(*blocks));
	queue.n[queue.tail++ % QUEUE] = n;
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

static size_t get(void **blocks)
{
	size_t n;

	pthread_mutex_lock(&queue.lock);
	while (queue.tail == queue.head)
		pthread_cond_wait(&queue.changed, &queue.lock);
	n = queue.n[queue.head % QUEUE];
	memcpy(blocks, queue.blocks[queue.head++ % QUEUE], n * sizeof(*blocks));
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	return n;
}

/* Frees what comes until an empty burst comes. */
static void *transmit(void *arg)
{
	struct pcpa_cache cache = pcpa_cache_self(heap);
	void *blocks[BURST];
	size_t n;

	while ((n = get(blocks)) > 0)
		pcpa_cache_free_bulk(&cache, blocks, n);
	return arg;
}

static size_t receive(void)
{
	struct pcpa_cache cache = pcpa_cache_self(heap);
	void *blocks[BURST];
	size_t total = 0;

	for (unsigned i = 0; i < BURSTS; i++) {
		size_t n = pcpa_cache_alloc_bulk(&cache, 0, 0, blocks,
						 BURST);

		for (size_t j = 0; j < n; j++)
			memset(blocks[j], (int)j, 64);
		if (n > 0)
			put(blocks, n);
		total += n;
	}
	put(blocks, 0);
	return total;
}

int main(void)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_stats stats = PCPA_STATS_INIT;
	pthread_t thread;
	size_t total;
	int err;

	opts.initial_bytes = 16u << 20;
	opts.max_bytes = 64u << 20;
	err = pcpa_heap_create(&opts, &heap);
	if (err) {
		fprintf(stderr, "heap: %s\n", strerror(-err));
		return 1;
	}
	if (pthread_create(&thread, NULL, transmit, NULL)) {
		fprintf(stderr, "no thread\n");
		return 1;
	}
	total = receive();
	pthread_join(thread, NULL);

	pcpa_stats_read(heap, -1, &stats);
	printf("%zu packets, %llu batches through the depot, "
	       "zone lock taken %llu times\n",
	       total, (unsigned long long)stats.depot_gets,
	       (unsigned long long)stats.zone_locks);
	if (total < (size_t)BURST * BURSTS)
		fprintf(stderr, "some bursts were short\n");
	return pcpa_heap_destroy(heap) ? 1 : 0;
}
