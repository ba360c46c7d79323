/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * early.c - a library whose constructor runs before most others': it maps, allocates
 * and starts a thread that does the same.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES ((size_t)256 << 10)

static void use_memory(void)
{
	for (unsigned i = 0; i < 10; i++) {
		unsigned char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned char *q = malloc(BYTES);

		if (p == MAP_FAILED || !q)
			abort();
		for (size_t at = 0; at < BYTES; at++)
			if (p[at] != 0)
				abort();
		memset(p, 0xa5, BYTES);
		memset(q, 0xa5, BYTES);
		free(q);
		if (munmap(p, BYTES) != 0)
			abort();
	}
}

static void *thread_main(void *arg)
{
	use_memory();
	return arg;
}

static pthread_t thread;

__attribute__((constructor(101))) static void begin(void)
{
	use_memory();
	if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
		abort();
	use_memory();
}

__attribute__((destructor(101))) static void end(void)
{
	pthread_join(thread, NULL);
	use_memory();
}
