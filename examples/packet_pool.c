/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet_pool.c - packet buffers: a receiving thread, the pool's owner, gets buffers
 * and writes packets behind their headroom; a worker puts a header of its own into
 * the headroom, and gives them back from its thread.  Small packets share pages, two
 * each.  In the end the pool is destroyed while packets are still on their way, and
 * is gone with the last of them.
 */
#include <pcpalloc/page_pool.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BURST 32
#define BURSTS 4000
#define QUEUE 16 /* bursts */
#define HEADROOM 128
#define SMALL 2048 /* a small packet's part of a page, headroom included */

struct packet {
	char *data;
	size_t bytes;
};

/* From the receiver to the worker; everything is under the lock. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct packet packets[QUEUE][BURST];
	unsigned head, tail; /* taken, put */
	int closed;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .changed = PTHREAD_COND_INITIALIZER };
static struct pcpa_heap *heap;
static struct pcpa_pool *pool;

static void queue_put(const struct packet *burst)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.tail - queue.head == QUEUE)
		pthread_cond_wait(&queue.changed, &queue.lock);
	memcpy(queue.packets[queue.tail++ % QUEUE], burst,
	       sizeof(queue.packets[0]));
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

/* 0: there will be none. */
static int queue_get(struct packet *burst)
{
	int some;

	pthread_mutex_lock(&queue.lock);
	while (queue.tail == queue.head && !queue.closed)
		pthread_cond_wait(&queue.changed, &queue.lock);
	some = queue.tail != queue.head;
	if (some)
		memcpy(burst, queue.packets[queue.head++ % QUEUE],
		       sizeof(queue.packets[0]));
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
	return some;
}

static void queue_close(void)
{
	pthread_mutex_lock(&queue.lock);
	queue.closed = 1;
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

/* Any address in a buffer names it, so that the data's will do for the put. */
static void *work(void *arg)
{
	struct packet burst[BURST];
	void *done[BURST];

	while (queue_get(burst)) {
		for (unsigned i = 0; i < BURST; i++) {
			memcpy(burst[i].data - 8, "outer:  ", 8);
			done[i] = burst[i].data;
		}
		pcpa_pool_put_bulk(heap, done, BURST);
	}
	return arg;
}

/* Each fourth one is large, and has a page for itself. */
static int packet_get(struct packet *p, unsigned number)
{
	char *buf;

	p->bytes = number % 4 ? 300 : 2500;
	buf = p->bytes <= SMALL - HEADROOM
		      ? pcpa_pool_get_frag(pool, SMALL, NULL)
		      : pcpa_pool_get(pool);
	if (!buf)
		return 0;
	p->data = buf + HEADROOM;
	memset(p->data, (int)number, p->bytes);
	return 1;
}

static unsigned receive(void)
{
	struct packet burst[BURST];
	unsigned number = 0;

	for (unsigned i = 0; i < BURSTS; i++) {
		for (unsigned j = 0; j < BURST; j++)
			if (!packet_get(&burst[j], number++))
				return 0;
		queue_put(burst);
	}
	return number;
}

static void stats_print(unsigned packets)
{
	struct pcpa_pool_stats s = PCPA_POOL_STATS_INIT;

	pcpa_pool_stats_read(pool, &s);
	printf("%u packets: %llu pages from the cache, %llu refills from the ring, "
	       "%llu bulk calls of the heap; %llu pages came back to the cache, "
	       "%llu to the ring\n", packets,
	       (unsigned long long)s.alloc_fast,
	       (unsigned long long)s.alloc_refill,
	       (unsigned long long)s.alloc_slow,
	       (unsigned long long)s.recycle_cached,
	       (unsigned long long)s.recycle_ring);
}

int main(void)
{
	struct pcpa_heap_options heap_options = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_pool_options options = PCPA_POOL_OPTIONS_INIT;
	pthread_t worker;
	unsigned packets;
	int err, out;

	heap_options.initial_bytes = 16u << 20;
	heap_options.max_bytes = 64u << 20;
	options.headroom_bytes = HEADROOM;
	options.data_bytes = 2500;
	err = pcpa_heap_create(&heap_options, &heap);
	if (!err)
		err = pcpa_pool_create(heap, &options, &pool);
	if (err) {
		fprintf(stderr, "no pool: %s\n", strerror(-err));
		return 1;
	}
	if (pthread_create(&worker, NULL, work, NULL)) {
		fprintf(stderr, "no thread\n");
		return 1;
	}
	packets = receive();
	stats_print(packets);
	out = pcpa_pool_destroy(pool);
	printf("destroyed with %d pages on their way\n", out);
	queue_close();
	pthread_join(worker, NULL);
	/* Refused while the pool is there, or anything is out. */
	err = pcpa_heap_destroy(heap);
	if (err)
		fprintf(stderr, "heap: %s\n", strerror(-err));
	return packets == 0 || out < 0 || err;
}
