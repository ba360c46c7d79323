/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objects.c - a fixed number of connections that are set up once and used again and
 * again: threads get one, work on it, and put it back as it is.  What was set up, here
 * a number and a buffer, is there at each get.
 */
#include <pcpalloc/objpool.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 2000u
#define THREADS 4
#define ROUNDS 50000u

struct connection {
	unsigned number; /* set up once */
	char *name;
	unsigned used; /* by who has it */
	char buffer[2048];
};

static struct pcpa_objpool pool;
static void *all[CONNECTIONS]; /* struct connection */

/* All are got first, by one thread. */
static int connections_set_up(void)
{
	if (!pcpa_objpool_get_bulk(&pool, all, CONNECTIONS))
		return -1;
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct connection *c = all[i];
		char name[32];

		snprintf(name, sizeof(name), "connection %u", i);
		*c = (struct connection){.number = i, .name = strdup(name)};
	}
	return pcpa_objpool_put_bulk(&pool, all, CONNECTIONS);
}

static void *work(void *number)
{
	unsigned short seed[3] = {*(unsigned short *)number, 2, 3};
	void *mine[8];

	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + (size_t)nrand48(seed) % 8;

		if (!pcpa_objpool_get_bulk(&pool, mine, n))
			return NULL; /* all are in others' hands now */
		for (size_t m = 0; m < n; m++) {
			struct connection *c = mine[m];

			c->used++;
			memset(c->buffer, (int)i, 64);
		}
		pcpa_objpool_put_bulk(&pool, mine, n);
	}
	return NULL;
}

int main(void)
{
	struct pcpa_objpool_options opts = PCPA_OBJPOOL_OPTIONS_INIT;
	unsigned short numbers[THREADS];
	pthread_t threads[THREADS];
	unsigned long used = 0;
	int err, i;

	opts.nr_objects = CONNECTIONS;
	opts.object_bytes = sizeof(struct connection);
	err = pcpa_objpool_create(&opts, &pool);
	if (err) {
		fprintf(stderr, "no pool: %s\n", strerror(-err));
		return 1;
	}
	if (connections_set_up()) {
		fprintf(stderr, "no connections\n");
		return 1;
	}
	for (i = 0; i < THREADS; i++) {
		numbers[i] = (unsigned short)i;
		if (pthread_create(&threads[i], NULL, work, &numbers[i]))
			return 1;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);

	printf("%zu of %u connections are free\n", pcpa_objpool_count(&pool),
	       CONNECTIONS);
	for (unsigned n = 0; n < CONNECTIONS; n++) {
		struct connection *c = all[n];

		if (c->number != n)
			return 1;
		used += c->used;
		free(c->name);
	}
	printf("they were used %lu times\n", used);
	return pcpa_objpool_destroy(&pool) ? 1 : 0;
}
