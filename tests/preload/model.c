/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model.c - random calls of mmap() and its kin from several threads, against a model
 * of what each page holds.
 *
 *	model [SECONDS [SEED]]
 *
 * Runs on the bare kernel and under the preload library alike.  Each thread has
 * regions of its own; for each page of them the model knows whether it is mapped, its
 * protection, and the word that fills it.  Memory that is new must be zero in each
 * byte.  Now and then a child looks at all that its thread had when it was forked, and
 * maps something itself.
 *
 * Ends with 1 at the first difference, and says which.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, REGIONS = 24, MOST = 1024, PAGE = 4096, WORDS = PAGE / 8 };

struct page {
	bool mapped;
	int prot;
	uint64_t word;
};

struct region {
	char *at; /* NULL: none */
	unsigned pages;
	struct page page[MOST];
};

struct thread {
	pthread_t id;
	unsigned number;
	uint64_t random, words, steps;
	struct region region[REGIONS];
};

static struct thread threads[THREADS];
static unsigned seconds = 3;
static uint64_t seed = 1;
static bool stop;

static uint64_t random_below(struct thread *t, uint64_t n)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (t->random >> 11) % n;
}

__attribute__((noreturn, format(printf, 2, 3))) static void
differ(const struct thread *t, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "seed %lu, thread %u, step %lu: ", (unsigned long)seed,
		t->number, (unsigned long)t->steps);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

static void demand(const struct thread *t, bool right, const char *what)
{
	if (!right)
		differ(t, "%s: %s", what, strerror(errno));
}

static char *page_at(const struct region *r, unsigned i)
{
	return r->at + (size_t)i * PAGE;
}

/* ---- The model's side ------------------------------------------------------- */

static void page_check(struct thread *t, const struct region *r, unsigned i,
		       const char *after)
{
	const struct page *p = &r->page[i];
	const uint64_t *words = (const uint64_t *)page_at(r, i);

	if (!p->mapped || !(p->prot & PROT_READ))
		return;
	for (unsigned w = 0; w < WORDS; w++)
		if (words[w] != p->word)
			differ(t,
			       "after %s: %p: page %u of %u, word %u: %#lx, not %#lx",
			       after, (void *)r->at, i, r->pages, w,
			       (unsigned long)words[w], (unsigned long)p->word);
}

static void region_check(struct thread *t, const struct region *r,
			 const char *after)
{
	for (unsigned i = 0; i < r->pages; i++)
		page_check(t, r, i, after);
}

static void pages_set(struct region *r, unsigned first, unsigned n, int prot)
{
	for (unsigned i = first; i < first + n; i++)
		r->page[i] = (struct page){true, prot, 0};
}

/* Fills some pages, all of them at times. */
static void region_fill(struct thread *t, struct region *r)
{
	uint64_t every = 1 + random_below(t, 3);

	for (unsigned i = 0; i < r->pages; i++) {
		struct page *p = &r->page[i];
		uint64_t *words = (uint64_t *)page_at(r, i);

		if (!p->mapped || !(p->prot & PROT_WRITE) ||
		    random_below(t, every))
			continue;
		p->word = ++t->words << 8 | t->number | 0x80;
		for (unsigned w = 0; w < WORDS; w++)
			words[w] = p->word;
	}
}

/* A part of the region. */
static unsigned part(struct thread *t, const struct region *r, unsigned *first)
{
	*first = (unsigned)random_below(t, r->pages);
	if (random_below(t, 3) == 0)
		*first = 0;
	if (random_below(t, 3) == 0)
		return r->pages - *first;
	return 1 + (unsigned)random_below(t, r->pages - *first);
}

/* Is all of it mapped, with this protection unless it is -1? */
static bool all(const struct region *r, unsigned first, unsigned n, int prot)
{
	for (unsigned i = first; i < first + n; i++)
		if (!r->page[i].mapped ||
		    (prot != -1 && r->page[i].prot != prot))
			return false;
	return true;
}

/* ---- Calls ------------------------------------------------------------------ */

static unsigned pages_random(struct thread *t)
{
	unsigned most = 1u << random_below(t, 11);

	return 1 + (unsigned)random_below(t, most);
}

static void call_map(struct thread *t, struct region *r)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;

	r->pages = pages_random(t);
	if (random_below(t, 8) == 0)
		flags |= MAP_POPULATE;
	r->at = mmap(NULL, (size_t)r->pages * PAGE - random_below(t, PAGE),
		     PROT_READ | PROT_WRITE, flags, -1, 0);
	demand(t, r->at != MAP_FAILED, "mmap");
	pages_set(r, 0, r->pages, PROT_READ | PROT_WRITE);
	region_check(t, r, "mmap");
	region_fill(t, r);
}

static void call_unmap(struct thread *t, struct region *r)
{
	demand(t, munmap(r->at, (size_t)r->pages * PAGE) == 0, "munmap");
	r->at = NULL;
}

/* Afterwards nothing is asked of the part, as anybody may map there. */
static void call_unmap_part(struct thread *t, struct region *r)
{
	unsigned first, n = part(t, r, &first);

	if (n == r->pages || !all(r, 0, r->pages, -1))
		return;
	if (first > 0 && first + n < r->pages)
		n = r->pages - first;
	demand(t, munmap(page_at(r, first), (size_t)n * PAGE) == 0,
	       "munmap of a part");
	if (first == 0) {
		r->at = page_at(r, n);
		memmove(r->page, r->page + n, (r->pages - n) * sizeof(*r->page));
	}
	r->pages -= n;
	region_check(t, r, "munmap of a part");
}

static void call_protect(struct thread *t, struct region *r)
{
	static const int prots[] = {PROT_NONE, PROT_READ,
				    PROT_READ | PROT_WRITE};
	int prot = prots[random_below(t, 3)];
	unsigned first, n = part(t, r, &first);

	demand(t, mprotect(page_at(r, first), (size_t)n * PAGE, prot) == 0,
	       "mprotect");
	for (unsigned i = first; i < first + n; i++)
		r->page[i].prot = prot;
	region_check(t, r, "mprotect");
}

static void call_discard(struct thread *t, struct region *r)
{
	unsigned first, n = part(t, r, &first);

	munlock(r->at, (size_t)r->pages * PAGE); /* it refuses locked pages */
	demand(t,
	       madvise(page_at(r, first), (size_t)n * PAGE, MADV_DONTNEED) == 0,
	       "MADV_DONTNEED");
	for (unsigned i = first; i < first + n; i++)
		r->page[i].word = 0;
	region_check(t, r, "MADV_DONTNEED");
}

static void call_fixed(struct thread *t, struct region *r)
{
	unsigned first, n = part(t, r, &first);
	void *at = page_at(r, first);

	demand(t,
	       mmap(at, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
	       "MAP_FIXED");
	pages_set(r, first, n, PROT_READ | PROT_WRITE);
	region_check(t, r, "MAP_FIXED");
}

static void call_remap(struct thread *t, struct region *r)
{
	unsigned pages = pages_random(t), old = r->pages;
	char *at;

	/* The kernel moves and grows what is one area. */
	if (pages > old && !all(r, 0, old, PROT_READ | PROT_WRITE))
		return;
	at = mremap(r->at, (size_t)old * PAGE, (size_t)pages * PAGE,
		    MREMAP_MAYMOVE);
	if (at == MAP_FAILED && errno == EFAULT && pages > old)
		return; /* several areas, of the same protection */
	demand(t, at != MAP_FAILED, "mremap");
	r->at = at;
	r->pages = pages;
	if (pages > old)
		pages_set(r, old, pages - old, PROT_READ | PROT_WRITE);
	region_check(t, r, "mremap");
}

static void call_attribute(struct thread *t, struct region *r)
{
	static const int advices[] = {MADV_DONTDUMP, MADV_RANDOM,
				      MADV_NOHUGEPAGE, MADV_HUGEPAGE,
				      MADV_SEQUENTIAL};
	unsigned first, n = part(t, r, &first);
	int advice = advices[random_below(t, 5)];

	if (random_below(t, 4) == 0 && n < 16)
		mlock(page_at(r, first), (size_t)n * PAGE);
	else
		madvise(page_at(r, first), (size_t)n * PAGE, advice);
	region_check(t, r, "advice");
}

static void call_fork(struct thread *t)
{
	int status;
	pid_t pid = fork();

	demand(t, pid >= 0, "fork");
	if (pid == 0) {
		struct region *r = t->region;

		for (unsigned i = 0; i < REGIONS; i++)
			if (r[i].at)
				region_check(t, &r[i], "fork, in the child");
		for (unsigned i = 0; i < 4; i++) {
			if (r[i].at)
				call_unmap(t, &r[i]);
			call_map(t, &r[i]);
		}
		_exit(0);
	}
	demand(t, waitpid(pid, &status, 0) == pid, "waitpid");
	if (status != 0)
		differ(t, "a child ended with %#x", status);
}

/* ---- Threads ---------------------------------------------------------------- */

static void step(struct thread *t)
{
	struct region *r = &t->region[random_below(t, REGIONS)];

	if (!r->at) {
		call_map(t, r);
		return;
	}
	region_check(t, r, "others' calls");
	switch (random_below(t, 16)) {
	case 0:
		call_protect(t, r);
		break;
	case 1:
	case 2:
		call_discard(t, r);
		break;
	case 3:
		call_fixed(t, r);
		break;
	case 4:
	case 5:
		call_remap(t, r);
		break;
	case 6:
	case 7:
		call_unmap_part(t, r);
		break;
	case 8:
		call_attribute(t, r);
		break;
	case 9:
		region_fill(t, r);
		break;
	default:
		call_unmap(t, r);
	}
}

static void *run(void *arg)
{
	struct thread *t = arg;

	for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); t->steps++) {
		if (t->steps % 512 == 511)
			call_fork(t);
		step(t);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec time = {0};
	uint64_t steps = 0;

	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoul(argv[2], NULL, 10);
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i].number = i;
		threads[i].random =
			(seed * THREADS + i + 1) * 0x9e3779b97f4a7c15u;
		if (pthread_create(&threads[i].id, NULL, run, &threads[i]))
			return 2;
	}
	time.tv_sec = seconds;
	nanosleep(&time, NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i].id, NULL);
		steps += threads[i].steps;
	}
	printf("%lu steps, no difference\n", (unsigned long)steps);
	return 0;
}
