/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jemalloc.c - threads that allocate, write, check and free; to be linked with jemalloc.
 *
 *   jemalloc OPERATIONS
 *
 * Each of THREADS workers has SLOTS blocks of random sizes, 16 bytes to 4 MiB, mostly
 * small; an operation checks one, frees it and makes another, of large ones half by
 * calloc(), which takes the kernel's word for zeros.  All is written, and both ends and
 * some of the middle are read before it is freed.  A worker ends after LIFE operations
 * and another goes on with its blocks, so they are freed by threads that didn't allocate
 * them.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS = 4,
	SLOTS = 192,
	LIFE = 5000,
	LOOK = 4096 - 64, /* bytes between two looks */
	CALLOC_FROM = 64 << 10,
};

int mallctl(const char *name, void *old, size_t *old_bytes, void *new,
	    size_t new_bytes);

struct block {
	unsigned char *at;
	size_t bytes;
	unsigned char tag;
};

struct worker {
	struct block blocks[SLOTS];
	uint64_t state, left, sum;
};

static struct worker workers[THREADS];

static uint64_t random_next(struct worker *w)
{
	w->state ^= w->state << 13;
	w->state ^= w->state >> 7;
	w->state ^= w->state << 17;
	return w->state;
}

static size_t size_next(struct worker *w)
{
	uint64_t kind = random_next(w) % 100;

	if (kind < 70)
		return 16 + random_next(w) % 4000;
	if (kind < 96)
		return 4096 + random_next(w) % (256 << 10);
	return (256 << 10) + random_next(w) % (4 << 20);
}

/* Is it all that byte, as far as is looked? */
static void block_check(const struct block *b, unsigned char byte)
{
	size_t at = 0;

	if (!b->at)
		return;
	while (at < b->bytes && b->at[at] == byte)
		at += LOOK;
	if (at >= b->bytes && b->at[b->bytes - 1] == byte)
		return;
	fprintf(stderr, "jemalloc: %zu bytes at %p aren't all %u\n", b->bytes,
		(void *)b->at, byte);
	exit(1);
}

static void block_renew(struct worker *w)
{
	struct block *b = &w->blocks[random_next(w) % SLOTS];

	bool zeros;

	block_check(b, b->tag);
	free(b->at);
	b->bytes = size_next(w);
	b->tag = (unsigned char)random_next(w);
	zeros = b->bytes >= CALLOC_FROM && b->tag % 2;
	b->at = zeros ? calloc(1, b->bytes) : malloc(b->bytes);
	if (!b->at) {
		fprintf(stderr, "jemalloc: no %zu bytes\n", b->bytes);
		exit(1);
	}
	if (zeros)
		block_check(b, 0);
	memset(b->at, b->tag, b->bytes);
	w->sum = w->sum * 31 + b->bytes + b->tag;
}

static void *life(void *worker)
{
	struct worker *w = worker;

	for (int i = 0; i < LIFE && w->left; i++, w->left--)
		block_renew(w);
	return NULL;
}

static void *lives(void *worker)
{
	struct worker *w = worker;
	pthread_t thread;

	while (w->left) {
		if (pthread_create(&thread, NULL, life, w))
			exit(1);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < SLOTS; i++) {
		block_check(&w->blocks[i], w->blocks[i].tag);
		free(w->blocks[i].at);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000,
		 sum = 0;
	pthread_t threads[THREADS];
	const char *version = "";
	size_t bytes = sizeof(version);

	if (mallctl("version", &version, &bytes, NULL, 0))
		return 1;
	for (int i = 0; i < THREADS; i++) {
		workers[i].state = 88172645463325252ull + (uint64_t)i;
		workers[i].left = operations / THREADS;
		if (pthread_create(&threads[i], NULL, lives, &workers[i]))
			return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum = sum * 31 + workers[i].sum;
	}
	printf("jemalloc %s: whole, %llu operations, %llu\n", version,
	       (unsigned long long)operations, (unsigned long long)sum);
	return 0;
}
