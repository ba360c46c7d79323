/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak.c - random operations of sixteen threads on heaps of every kind, for as
 * long as one likes.
 *
 *   soak [SECONDS [two-nodes]]     20 unless told; CONC_SEED=N begins with a seed
 *                                  again
 *
 * A thread picks an operation by its weight from the table `ops`, does it on a
 * random heap, and goes on.  Threads end and are replaced, processes are forked,
 * heaps come and go, and in every other phase system calls fail at random: a
 * call may then say so, and nothing else may follow from it.
 *
 *   phase: run ... pause: all threads rest -> every page accounted for -> go on
 *   end:   threads joined, all freed, drained: one block of the highest order
 *          for each that the heap has
 *
 * Accounted for: what the program holds, counted by itself, is what the heap
 * says is used, in pages and in blocks; so with free, cached and depot pages it
 * makes what is managed.  Every block has its holder's stamp at both ends, which
 * is looked at when it is freed, by whichever thread.
 *
 * With two-nodes the library believes in a machine of so many, whose memory is
 * really this one's, and each thread says on which CPU it is and moves about.
 *
 * Files: ops.h (the table), faults.h (the system calls), soak.h (threads, heaps,
 * blocks).
 */
#include "faults.h"
#include "ops.h"

#define WATCHDOG_SECONDS 90u
#define BALANCE_TRIES 500u
#define OPS (sizeof(ops) / sizeof(ops[0]))

static uint64_t ops_done[OPS]; /* a */

static void op_run(struct soak_thread *t, unsigned weights)
{
	unsigned at = (unsigned)pick(t, weights);
	size_t i = 0;

	while (at >= ops[i].weight)
		at -= ops[i++].weight;
	ops[i].run(t);
	pcpi_fetch_add_relaxed(&ops_done[i], 1); /* relaxed: counter */
}

/* ---- Threads ----------------------------------------------------------------------- */

static void state_set(struct soak_thread *t, int state)
{
	pthread_mutex_lock(&soak.mutex);
	t->state = state;
	pthread_cond_broadcast(&soak.changed);
	while (t->state == RESTING && soak.pausing)
		pthread_cond_wait(&soak.changed, &soak.mutex);
	if (t->state == RESTING)
		t->state = RUNNING;
	pthread_mutex_unlock(&soak.mutex);
}

static void thread_live(unsigned index, void *arg)
{
	struct soak_thread *t = arg;
	unsigned weights = 0;
	size_t i;

	(void)index;
	soak_self = t;
	for (i = 0; i < OPS; i++)
		weights += ops[i].weight;
	while (!t->dying && !conc_flag(&soak.stop)) {
		if (pcpi_load_relaxed(&soak.pausing)) /* relaxed: soon enough */
			state_set(t, RESTING);
		op_run(t, weights);
	}
	state_set(t, ENDED);
}

static void thread_start(struct soak_thread *t)
{
	t->dying = false;
	t->state = RUNNING;
	conc_start(&t->thread, 1, thread_live, t);
}

/* Joins those that have ended, and replaces them or leaves it at that. */
static void ended_replace(bool replace)
{
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		struct soak_thread *t = &soak.threads[i];
		bool ended;

		pthread_mutex_lock(&soak.mutex);
		ended = t->state == ENDED;
		pthread_mutex_unlock(&soak.mutex);
		if (!ended)
			continue;
		if (t->thread.fn)
			conc_join(&t->thread, 1);
		t->thread.fn = NULL;
		if (replace)
			thread_start(t);
	}
}

static bool any_runs(void)
{
	unsigned i;

	for (i = 0; i < THREADS; i++)
		if (soak.threads[i].state == RUNNING)
			return true;
	return false;
}

static void all_rest(void)
{
	pthread_mutex_lock(&soak.mutex);
	pcpi_store_relaxed(&soak.pausing, true); /* relaxed: soon enough */
	while (any_runs())
		pthread_cond_wait(&soak.changed, &soak.mutex);
	pthread_mutex_unlock(&soak.mutex);
	ended_replace(false);
}

static void all_resume(void)
{
	ended_replace(true);
	pthread_mutex_lock(&soak.mutex);
	pcpi_store_relaxed(&soak.pausing, false); /* relaxed: under the lock */
	pthread_cond_broadcast(&soak.changed);
	pthread_mutex_unlock(&soak.mutex);
}

/* ---- Accounts ------------------------------------------------------------------------ */

struct account {
	uint64_t pages, blocks;
};

static void block_count(const struct block *b, struct account *accounts)
{
	if (!b->at)
		return;
	block_check(b);
	accounts[b->heap].pages += block_pages(b);
	accounts[b->heap].blocks++;
}

static bool is_balanced(const struct pcpa_stats *s, const struct account *a)
{
	return s->free_pages + s->cached_pages + s->depot_pages + a->pages ==
	       s->managed_pages;
}

/* A heap's own thread may be at it, for some moments each second. */
static struct pcpa_stats stats_balanced(const struct soak_heap *h,
					const struct account *a)
{
	struct pcpa_stats s = conc_stats(h->heap);
	unsigned tries = h->flags & PCPA_HEAP_BACKGROUND ? BALANCE_TRIES : 0;

	while (!is_balanced(&s, a) && tries-- > 0) {
		conc_sleep_ms(10);
		s = conc_stats(h->heap);
	}
	return s;
}

static void account_check(const struct soak_heap *h, const struct account *a)
{
	struct pcpa_stats s = stats_balanced(h, a);

	CHECK_U64(s.free_pages + s.cached_pages + s.depot_pages + a->pages, ==,
		  s.managed_pages);
	CHECK_U64(s.used_blocks, ==, a->blocks);
	CHECK_U64(s.alloc_total - s.free_total, ==, a->blocks);
	CHECK_U64(s.bad_frees, ==, 0);
	CHECK_U64(s.cached_pages, <=,
		  s.managed_pages / 8 + THREADS * 8 * soak.nodes);
}

/* All threads rest. */
static void accounts_check(void)
{
	struct account accounts[HEAPS] = { { 0, 0 } };
	unsigned i, k;

	for (i = 0; i < THREADS; i++)
		for (k = 0; k < soak.threads[i].n; k++)
			block_count(&soak.threads[i].held[k], accounts);
	for (i = 0; i < SHARED; i++)
		block_count(&soak.shared[i], accounts);
	for (i = 0; i < HEAPS; i++)
		account_check(&heaps[i], &accounts[i]);
}

/* Nobody else is there any more. */
static void all_free(void)
{
	struct soak_thread *t = &soak.threads[0];
	unsigned i;

	for (i = 0; i < THREADS; i++)
		while (soak.threads[i].n > 0) {
			struct block b = held_take(&soak.threads[i]);

			block_free(t, &b);
		}
	for (i = 0; i < SHARED; i++)
		if (soak.shared[i].at)
			block_free(t, &soak.shared[i]);
}

/* All is free and drained: whole huge pages. */
static void whole_check(const struct soak_heap *h)
{
	uint64_t counts[PCPA_MAX_ORDER + 1];
	unsigned z, top = pcpa_heap_max_order(h->heap);

	conc_heap_at_rest(h->heap);
	for (z = 0; z < h->heap->nr_zones; z++) {
		struct pcpi_zone *zone = &h->heap->env.zones[z];

		memset(counts, 0, sizeof(counts));
		pcpi_zone_count_free(zone, counts);
		CHECK_U64(counts[top] << top, ==, zone->managed_pages);
	}
	fprintf(stderr, "%s: %" PRIu64 " pages, all whole\n", h->name,
		conc_stats(h->heap).managed_pages);
}

/* ---- The run ------------------------------------------------------------------------- */

static void heaps_make(void)
{
	unsigned i;

	for (i = 0; i < HEAPS; i++) {
		struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;

		opts.flags = heaps[i].flags;
		opts.initial_bytes = heaps[i].initial_bytes;
		opts.max_bytes = heaps[i].max_bytes;
		opts.reserve_pages = heaps[i].reserve_pages;
		opts.verbosity = 0;
		CHECK(pcpa_heap_create(&opts, &heaps[i].heap) == 0);
	}
	soak.nodes = heaps[0].heap->nr_zones;
	CHECK(!soak.invented || soak.nodes == 2);
}

static void phase(unsigned ms, bool faults)
{
	uint64_t end = conc_now_ms() + ms;

	alarm(WATCHDOG_SECONDS);
	pcpi_store_relaxed(&soak.faults, faults); /* relaxed: a switch */
	while (conc_now_ms() < end) {
		conc_sleep_ms(2);
		ended_replace(true);
	}
	all_rest();
	accounts_check();
	all_resume();
}

static void threads_end(void)
{
	unsigned i;

	pcpi_store_relaxed(&soak.faults, false); /* relaxed: a switch */
	conc_raise(&soak.stop);
	for (i = 0; i < THREADS; i++)
		conc_join(&soak.threads[i].thread, 1);
	accounts_check();
}

static void done_print(bool all)
{
	size_t i;

	for (i = 0; i < OPS; i++) {
		fprintf(stderr, "%s%s %" PRIu64, i ? ", " : "", ops[i].name,
			ops_done[i]);
		CHECK(!all || ops_done[i] > 0);
	}
	fprintf(stderr, "; %" PRIu64 " system calls refused, %" PRIu64
		" events\n", soak.refused, events);
}

#if CONC_TSAN
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

/* A fork takes more locks at once than its search for deadlocks can follow. */
const char *__tsan_default_options(void)
{
	return "detect_deadlocks=0";
}
#endif

/* Before the library reads the machine.  A description with a mistake would be
 * passed over; heaps_make() looks. */
static void nodes_invent(void)
{
	soak.invented = true;
	CHECK(setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4",
		     1) == 0);
}

int main(int argc, char **argv)
{
	unsigned long seconds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20, i;
	uint64_t seed = conc_seed(), end;

	CHECK(seconds > 0);
	if (argc > 2) {
		CHECK(strcmp(argv[2], "two-nodes") == 0);
		nodes_invent();
	}
	faults_install();
	heaps_make();
	for (i = 0; i < THREADS; i++) {
		struct soak_thread *t = &soak.threads[i];

		t->index = (unsigned)i;
		t->random = (seed ^ (i + 1) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
		thread_start(t);
	}
	end = conc_now_ms() + seconds * 1000;
	for (i = 0; conc_now_ms() < end; i++)
		phase(500, i % 2);
	threads_end();
	all_free();
	for (i = 0; i < HEAPS; i++) {
		pcpa_heap_trace(heaps[i].heap, NULL, NULL);
		pcpa_heap_watch(heaps[i].heap, NULL, NULL);
		whole_check(&heaps[i]);
		CHECK(pcpa_heap_destroy(heaps[i].heap) == 0);
	}
	done_print(seconds >= 20);
	return 0;
}
