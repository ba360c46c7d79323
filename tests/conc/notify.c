/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify.c - a subscriber of arenas comes, refuses, and goes while threads make the
 * heap grow, others trim it, and processes fork.
 *
 * The subscriber keeps a map of granules, a byte each, changed by exchange: what is
 * added twice, removed twice, or told when nobody is there is found.  It takes a lock
 * that threads hold while they allocate or fork.  At the end of a subscription the map
 * is empty.
 */
#include <sys/wait.h>

#include "conc.h"

#define HELD 48u
#define GRANULES 256u
#define RUN_MS 1000u

static struct pcpa_heap *heap;
static bool stop;
static uint64_t first_seed, vetoes[2], turns, forks;

static uint8_t map[GRANULES]; /* a: granules that were added */
static bool subscribed;	      /* a: from before the begin to after the end */
static unsigned refusing;     /* a: one in so many; 0: none */
static pthread_mutex_t program = PTHREAD_MUTEX_INITIALIZER;
static __thread bool has_program, trims;

static size_t granule_of(const void *at, size_t granule_bytes)
{
	size_t g = (size_t)((const char *)at - heap->space.base) / granule_bytes;

	CHECK_U64(g, <, GRANULES);
	return g;
}

static bool refuses(void)
{
	static __thread uint64_t seed;
	unsigned one_in = pcpi_load_relaxed(&refusing); /* relaxed: a chance */

	if (seed == 0)
		seed = first_seed + (uintptr_t)&seed;
	return one_in > 0 && conc_random(&seed) % one_in == 0;
}

static void program_pass(void)
{
	if (has_program)
		return;
	pthread_mutex_lock(&program);
	pthread_mutex_unlock(&program);
}

static int change(enum pcpa_arena_change what, const struct pcpa_arena_info *a,
		  void *arg)
{
	size_t g = granule_of(a->base, a->granule_bytes), n, i;
	uint8_t from = what == PCPA_ARENA_REMOVE, to = !from;

	CHECK(arg == &refusing);
	CHECK(pcpi_load_relaxed(&subscribed)); /* relaxed: checked */
	CHECK_U64(a->bytes % a->granule_bytes, ==, 0);
	n = a->bytes / a->granule_bytes;
	program_pass();
	/* Removals at the end of a subscription can't be refused. */
	if ((what == PCPA_ARENA_ADD || trims) && refuses()) {
		for (i = g; i < g + n; i++)
			/* relaxed: checked */
			CHECK_U64(pcpi_load_relaxed(&map[i]), ==, from);
		/* relaxed: counters */
		pcpi_fetch_add_relaxed(&vetoes[what], 1);
		return -EIO;
	}
	for (i = g; i < g + n; i++)
		/* pairs with itself */
		CHECK_U64(pcpi_exchange_acq_rel(&map[i], to), ==, from);
	sched_yield();
	return 0;
}

static void *churn(void *arg)
{
	uint64_t seed = first_seed + (uintptr_t)arg;
	void *held[HELD] = { NULL };
	unsigned i;

	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		for (i = 0; i < HELD; i++) {
			unsigned order = conc_random(&seed) % 4 ? 9 : 0;

			if (held[i])
				continue;
			has_program = conc_random(&seed) % 16 == 0;
			if (has_program)
				pthread_mutex_lock(&program);
			held[i] = pcpa_alloc(heap, order, 0);
			if (has_program)
				pthread_mutex_unlock(&program);
			has_program = false;
			if (held[i])
				*(uint64_t *)held[i] = i;
		}
		for (i = 0; i < HELD; i++)
			if (held[i] && conc_random(&seed) % 8 != 0) {
				CHECK_U64(*(uint64_t *)held[i], ==, i);
				pcpa_free(heap, held[i]);
				held[i] = NULL;
			}
	}
	for (i = 0; i < HELD; i++)
		pcpa_free(heap, held[i]);
	return NULL;
}

static void *trim(void *arg)
{
	uint64_t seed = first_seed + (uintptr_t)arg;

	trims = true;
	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		pcpa_heap_trim(heap, conc_random(&seed) % 4 * 16 * MIB);
		conc_sleep_ms(1);
	}
	return NULL;
}

static unsigned map_granules(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < GRANULES; i++)
		n += pcpi_load_relaxed(&map[i]); /* relaxed: checked */
	return n;
}

static int added_check(const struct pcpa_arena_info *a, void *arg)
{
	size_t g = granule_of(a->base, a->granule_bytes);

	for (size_t i = 0; i < a->bytes / a->granule_bytes; i++)
		/* relaxed: checked */
		CHECK_U64(pcpi_load_relaxed(&map[g + i]), ==, 1);
	*(uint64_t *)arg += a->bytes;
	return 0;
}

static void *subscribe(void *arg)
{
	uint64_t seed = first_seed + (uintptr_t)arg;
	int err;

	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		/* relaxed (both): seen by the calls that follow. */
		pcpi_store_relaxed(&refusing, (unsigned)conc_random(&seed) % 2 * 8);
		pcpi_store_relaxed(&subscribed, true);
		err = pcpa_heap_notify(heap, change, &refusing);
		CHECK(err == 0 || err == -EIO);
		if (err == 0) {
			CHECK(pcpa_heap_notify(heap, change, NULL) == -EBUSY);
			conc_sleep_ms((unsigned)conc_random(&seed) % 8);
			CHECK(pcpa_heap_notify(heap, NULL, NULL) == 0);
			turns++;
		}
		CHECK_U64(map_granules(), ==, 0);
		/* relaxed: nobody is to be called now. */
		pcpi_store_relaxed(&subscribed, false);
	}
	return NULL;
}

/* Whatever the other threads are at, a child comes to its end. */
static void *fork_often(void *arg)
{
	int status;
	pid_t pid;

	(void)arg;
	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		pthread_mutex_lock(&program);
		pid = fork();
		if (pid == 0)
			_exit(pcpa_alloc(heap, 0, 0) || errno != ENODEV);
		pthread_mutex_unlock(&program);
		CHECK(pid > 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		forks++;
		conc_sleep_ms(5);
	}
	return NULL;
}

static void run(unsigned flags)
{
	void *(*const fns[])(void *) = { churn, churn, churn, trim,
					 trim,	subscribe, fork_often };
	/* ThreadSanitizer dislikes forks of many threads. */
	uintptr_t n = sizeof(fns) / sizeof(fns[0]) - CONC_TSAN, i;
	uint64_t bytes = 0;

	CHECK(heap_new("0", 16 * MIB, 256 * MIB, flags, &heap) == 0);
	conc_mix(fns, n, RUN_MS, &stop);
	/* relaxed (all): one thread is left. */
	pcpi_store_relaxed(&subscribed, true);
	pcpi_store_relaxed(&refusing, 1);
	pcpa_free(heap, pcpa_alloc(heap, 0, 0)); /* there is an arena */
	CHECK(pcpa_heap_notify(heap, change, &refusing) == -EIO);
	pcpi_store_relaxed(&refusing, 0);
	CHECK(pcpa_heap_notify(heap, change, &refusing) == 0);
	CHECK(pcpa_for_each_arena(heap, added_check, &bytes) == 0);
	for (i = 0; i < heap->nr_zones; i++)
		CHECK(pcpi_zone_check(&heap->env.zones[i]));
	pcpi_space_check(&heap->space);
	CHECK_U64(pcpa_heap_trim(heap, 0), ==, bytes);
	CHECK(pcpa_heap_destroy(heap) == 0);
	CHECK_U64(map_granules(), ==, 0);
}

int main(void)
{
	first_seed = conc_seed();
	run(0);
	run(PCPA_HEAP_SHARED | PCPA_HEAP_BACKGROUND);
	fprintf(stderr, "%" PRIu64 " subscriptions, %" PRIu64 " + %" PRIu64
		" refusals, %" PRIu64 " forks\n", turns, vetoes[0], vetoes[1], forks);
	return 0;
}
