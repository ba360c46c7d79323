/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * churn.c - eight threads that map, write and free all the time, and something else
 * meanwhile; for the scripts of tests/shim, which build it in several ways.
 *
 *   churn alone N     each thread does N rounds
 *   churn forks N     N children are forked meanwhile; each does some rounds, reads
 *                     and frees what it inherited, and ends
 *   churn spawns N    the threads start /bin/true N times in all, by posix_spawn and
 *                     vfork in turn
 *   churn loaded      is a library of the name given in $WANTED mapped here: yes, no
 *
 * A round is a mapping of 4 KiB to 4 MiB, of which some pages must be zero, and which
 * may be cut, grown, guarded or discarded before it is freed; or memory of the C
 * library's heap, but not in children, since the heaps of some sanitizers aren't ready
 * for a fork among threads.  Prints "churn: whole" and exits with 0, or says what was
 * wrong.  Processes that hang are ended by an alarm.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8u
#define PAGE ((size_t)4096)
#define SECONDS 100u

extern char **environ;

static bool ends; /* atomic */
static unsigned rounds, spawns;

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "churn: %d: not so: %s (%m)\n",        \
				__LINE__, #cond);                              \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static unsigned draw(unsigned *random, unsigned n)
{
	*random = *random * 1103515245u + 12345u;
	return (*random >> 16) % n;
}

struct area {
	unsigned char *p;
	size_t pages;
};

/* Finds some pages zeroed and writes them. */
static void pages_write(const struct area *a, unsigned *random)
{
	size_t step = a->pages > 32 ? a->pages / 32 : 1;

	for (size_t at = draw(random, (unsigned)step); at < a->pages;
	     at += step) {
		for (size_t i = 0; i < PAGE; i += 128)
			CHECK(a->p[at * PAGE + i] == 0);
		memset(a->p + at * PAGE, 0xa5, PAGE);
	}
}

/* From then on the second page is anybody's. */
static void part_free(struct area *a)
{
	CHECK(munmap(a->p + PAGE, PAGE) == 0);
	CHECK(madvise(a->p + 2 * PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(a->p[2 * PAGE] == 0);
	CHECK(munmap(a->p, PAGE) == 0);
	a->p += 2 * PAGE;
	a->pages -= 2;
}

#ifndef NO_MREMAP
static void grow(struct area *a)
{
	size_t bytes = a->pages * PAGE;
	unsigned char first = a->p[0], last = a->p[bytes - 1];

	a->p = mremap(a->p, bytes, 2 * bytes, MREMAP_MAYMOVE);
	CHECK(a->p != MAP_FAILED);
	CHECK(a->p[0] == first && a->p[bytes - 1] == last);
	CHECK(a->p[bytes] == 0 && a->p[2 * bytes - 1] == 0);
	a->p[2 * bytes - 1] = 0xa5;
	a->pages *= 2;
}

static void shrink(struct area *a)
{
	CHECK(mremap(a->p, a->pages * PAGE, 3 * PAGE, 0) == a->p);
	a->pages = 3;
}

#endif

static void replace(struct area *a)
{
	unsigned char *q = a->p + 2 * PAGE;

	CHECK(mmap(q, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == q);
	CHECK(q[0] == 0 && q[PAGE - 1] == 0);
	memset(q, 0xa5, PAGE);
}

static void guard(struct area *a)
{
	CHECK(mprotect(a->p + PAGE, PAGE, PROT_NONE) == 0);
	a->p[2 * PAGE] = 0xa5;
}

static void discard(struct area *a)
{
	CHECK(madvise(a->p, a->pages * PAGE, MADV_DONTNEED) == 0);
	CHECK(a->p[0] == 0 && a->p[a->pages * PAGE - 1] == 0);
	a->p[PAGE] = 0xa5;
}

/* ThreadSanitizer doesn't hear of mremap: sanitizers builds without the last two. */
static void (*const changes[])(struct area *) = {
	part_free, replace, guard, discard,
#ifndef NO_MREMAP
	grow,      shrink,
#endif
};
#define CHANGES (sizeof(changes) / sizeof(*changes))

static void map_some(unsigned *random)
{
	struct area a = {.pages = ((size_t)1 << draw(random, 11)) +
				  draw(random, 2)};

	a.p = mmap(NULL, a.pages * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(a.p != MAP_FAILED);
	pages_write(&a, random);
	if (a.pages > 4 && draw(random, 3) == 0)
		changes[draw(random, CHANGES)](&a);
	CHECK(munmap(a.p, a.pages * PAGE) == 0);
}

static void heap_some(unsigned *random)
{
	size_t bytes = (size_t)16 << draw(random, 17);
	unsigned char *p = malloc(bytes);

	CHECK(p);
	memset(p, 1, bytes);
	p = realloc(p, 2 * bytes);
	CHECK(p && p[0] == 1 && p[bytes - 1] == 1);
	free(p);
}

static void round_of(unsigned *random)
{
	if (draw(random, 4) == 0)
		heap_some(random);
	else
		map_some(random);
}

static void child_await(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void start_true(bool by_spawn)
{
	char path[] = "/bin/true", *argv[] = {path, NULL};
	pid_t pid;

	if (by_spawn) {
		CHECK(posix_spawn(&pid, path, NULL, NULL, argv, environ) == 0);
	} else {
		pid = vfork();
		if (pid == 0) {
			execve(path, argv, environ);
			_exit(1);
		}
	}
	child_await(pid);
}

static void *thread_main(void *arg)
{
	unsigned random = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < rounds; i++)
		round_of(&random);
	for (unsigned i = 0; i < spawns; i++) {
		for (unsigned k = 0; k < 20; k++)
			round_of(&random);
		start_true(i % 2);
	}
	while (rounds == 0 && spawns == 0 &&
	       !__atomic_load_n(&ends, __ATOMIC_RELAXED))
		round_of(&random);
	return NULL;
}

/* Children inherit these, and free them. */
static void fork_one(unsigned i)
{
	unsigned char *p = mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned random = i;
	pid_t pid;

	CHECK(p != MAP_FAILED);
	memset(p, 0x5a, 256 * PAGE);
	pid = fork();
	if (pid == 0) {
		alarm(SECONDS / 5);
		for (unsigned k = 0; k < 20; k++)
			map_some(&random);
		for (size_t at = 0; at < 256 * PAGE; at += 512)
			CHECK(p[at] == 0x5a);
		CHECK(munmap(p, 256 * PAGE) == 0);
		for (unsigned k = 0; k < 20; k++)
			map_some(&random);
		_exit(0);
	}
	CHECK(munmap(p, 256 * PAGE) == 0);
	child_await(pid);
}

static int loaded(void)
{
	const char *wanted = getenv("WANTED");
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[1024];

	CHECK(wanted && maps);
	while (fgets(line, sizeof(line), maps))
		found = found || strstr(line, wanted);
	fclose(maps);
	puts(found ? "yes" : "no");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	pthread_t threads[THREADS];

	if (strcmp(what, "loaded") == 0)
		return loaded();
	if (strcmp(what, "alone") == 0)
		rounds = n;
	else if (strcmp(what, "spawns") == 0)
		spawns = n / THREADS;
	CHECK(n > 0);
	alarm(SECONDS + n / 20);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main,
				     (void *)(i + 1)) == 0);
	for (unsigned i = 0; strcmp(what, "forks") == 0 && i < n; i++)
		fork_one(i);
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	puts("churn: whole");
	return 0;
}
