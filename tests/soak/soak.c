/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak.c - random operations of sixteen threads on heaps of every kind, for as
 * long as one likes.
 *
 *   soak [SECONDS]      20 unless told; CONC_SEED=N begins with a seed again
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
 * A public function that this doesn't call yet is a function `op_...` and a row
 * of the table.
 */
#include "conc.h"

#include <sys/wait.h>

#include "sys/sys.h"

#define THREADS 16u
#define HOLD 256u
#define SHARED 512u
#define BULK 64u
#define CHILD_SECONDS 30u
#define WATCHDOG_SECONDS 90u
#define FAULT_ONE_OF 16u

struct block {
	void *at; /* NULL: none */
	uint64_t stamp;
	unsigned heap, order;
};

enum { RUNNING, RESTING, ENDED };

/* o: the thread, or main while it rests; m: soak.mutex. */
struct soak_thread {
	unsigned index;
	uint64_t random, serial; /* o */
	struct block held[HOLD]; /* o */
	unsigned n;		 /* o */
	bool dying;		 /* o */
	int state;		 /* m */
	struct conc_thread thread;
};

struct soak_heap {
	const char *name;
	unsigned flags;
	size_t initial_bytes, max_bytes;
	struct pcpa_heap *heap;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool pausing, stop; /* a */
	bool faults;	    /* a */
	struct pcpi_sys sys;
	const struct pcpi_sys *real;
	uint64_t refused; /* a: calls that were made to fail */
	pthread_mutex_t shared_lock;
	struct block shared[SHARED]; /* shared_lock */
	struct soak_thread threads[THREADS];
} soak = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.shared_lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct soak_heap heaps[] = {
	{ "growing", 0, 0, 96 * MIB, NULL },
	{ "cow", PCPA_HEAP_COW | PCPA_HEAP_FIXED, 32 * MIB, 0, NULL },
	{ "no-ipi", PCPA_HEAP_NO_IPI, 2 * MIB, 48 * MIB, NULL },
	{ "legacy", PCPA_HEAP_LEGACY | PCPA_HEAP_FIXED, 16 * MIB, 0, NULL },
	{ "checks", PCPA_HEAP_CHECKS, 4 * MIB, 16 * MIB, NULL },
};

#define HEAPS (unsigned)(sizeof(heaps) / sizeof(heaps[0]))
#define COW_HEAP 1u
#define SMALL_HEAP 3u

static uint64_t pick(struct soak_thread *t, uint64_t n)
{
	return (conc_random(&t->random) >> 16) % n;
}

/* ---- System calls that fail ------------------------------------------------- */

static __thread uint64_t fault_random;

static bool refuses(void)
{
	/* relaxed: sooner or later. */
	if (!pcpi_load_relaxed(&soak.faults))
		return false;
	if (fault_random == 0)
		fault_random = (uint64_t)soak.real->tid() * 2654435761u | 1;
	if ((conc_random(&fault_random) >> 16) % FAULT_ONE_OF != 0)
		return false;
	pcpi_fetch_add_relaxed(&soak.refused, 1); /* relaxed: counter */
	return true;
}

static int faulty_reserve(size_t bytes, size_t align, void **out)
{
	return refuses() ? -ENOMEM : soak.real->reserve(bytes, align, out);
}

static int faulty_map_meta(size_t bytes, void **out)
{
	return refuses() ? -ENOMEM : soak.real->map_meta(bytes, out);
}

static int faulty_map_hugetlb(void *addr, size_t bytes, size_t page_bytes)
{
	return refuses() ? -ENOMEM
			 : soak.real->map_hugetlb(addr, bytes, page_bytes);
}

static int faulty_commit(void *addr, size_t bytes)
{
	return refuses() ? -ENOMEM : soak.real->commit(addr, bytes);
}

static int faulty_decommit(void *addr, size_t bytes)
{
	return refuses() ? -ENOMEM : soak.real->decommit(addr, bytes);
}

static int faulty_populate(void *addr, size_t bytes)
{
	return refuses() ? -ENOMEM : soak.real->populate(addr, bytes);
}

static int faulty_advise(void *addr, size_t bytes, enum pcpi_advice advice)
{
	/* Without it a fork's child would have the blocks: not to be ignored. */
	return refuses() ? -ENOMEM : soak.real->advise(addr, bytes, advice);
}

static int faulty_bind(void *addr, size_t bytes, unsigned os_node)
{
	return refuses() ? -EPERM : soak.real->bind(addr, bytes, os_node);
}

static int faulty_membarrier(void)
{
	return refuses() ? -EPERM : soak.real->membarrier();
}

/* After the first heap, which has put its own table in place. */
static void faults_install(void)
{
	soak.real = pcpi_sys;
	soak.sys = *pcpi_sys;
	soak.sys.reserve = faulty_reserve;
	soak.sys.map_meta = faulty_map_meta;
	soak.sys.map_hugetlb = faulty_map_hugetlb;
	soak.sys.commit = faulty_commit;
	soak.sys.decommit = faulty_decommit;
	soak.sys.populate = faulty_populate;
	soak.sys.advise = faulty_advise;
	soak.sys.bind = faulty_bind;
	soak.sys.membarrier = faulty_membarrier;
	pcpi_sys = &soak.sys;
}

/* ---- Blocks ------------------------------------------------------------------- */

static void block_stamp(struct soak_thread *t, struct block *b)
{
	b->stamp = (uint64_t)(t->index + 1) << 48 | ++t->serial;
	*(uint64_t *)b->at = b->stamp;
	*conc_last_word(heaps[b->heap].heap, b->at, b->order) = b->stamp;
}

static void block_check(const struct block *b)
{
	CHECK_U64(*(uint64_t *)b->at, ==, b->stamp);
	CHECK_U64(*conc_last_word(heaps[b->heap].heap, b->at, b->order), ==,
		  b->stamp);
}

static void block_free(struct soak_thread *t, const struct block *b)
{
	block_check(b);
	if (pick(t, 2))
		pcpa_free(heaps[b->heap].heap, b->at);
	else
		pcpa_free_sized(heaps[b->heap].heap, b->at, b->order);
}

/* A fresh block is the thread's; where it has no room the block goes back. */
static void block_keep(struct soak_thread *t, unsigned heap, unsigned order,
		       void *at)
{
	struct block b = { .at = at, .heap = heap, .order = order };

	block_stamp(t, &b);
	if (t->n < HOLD)
		t->held[t->n++] = b;
	else
		block_free(t, &b);
}

static struct block held_take(struct soak_thread *t)
{
	unsigned i = (unsigned)pick(t, t->n);
	struct block b = t->held[i];

	t->held[i] = t->held[--t->n];
	return b;
}

/* Low orders are common. */
static unsigned order_pick(struct soak_thread *t, unsigned most)
{
	unsigned order = (unsigned)__builtin_ctzll(conc_random(&t->random) |
						   UINT64_C(1) << 20);

	return pcpi_min(order, most);
}

static unsigned flags_pick(struct soak_thread *t)
{
	static const unsigned flags[] = {
		0, 0, 0, 0, PCPA_ZERO, PCPA_NOGROW, PCPA_THISNODE,
	};

	return flags[pick(t, sizeof(flags) / sizeof(flags[0]))];
}

/* ---- Operations ------------------------------------------------------------------ */

static void op_alloc(struct soak_thread *t)
{
	unsigned h = (unsigned)pick(t, HEAPS), flags = flags_pick(t);
	unsigned order = order_pick(t, pcpa_heap_max_order(heaps[h].heap));
	void *at = pcpa_alloc(heaps[h].heap, order, flags);

	if (!at) {
		CHECK(errno == ENOMEM);
		return;
	}
	if (flags & PCPA_ZERO) {
		CHECK_U64(*(uint64_t *)at, ==, 0);
		CHECK_U64(*conc_last_word(heaps[h].heap, at, order), ==, 0);
	}
	block_keep(t, h, order, at);
}

static void op_free(struct soak_thread *t)
{
	struct block b;

	if (t->n == 0)
		return;
	b = held_take(t);
	block_free(t, &b);
}

static void op_alloc_bulk(struct soak_thread *t)
{
	unsigned h = (unsigned)pick(t, HEAPS), order = order_pick(t, 4);
	size_t n = 1 + pick(t, BULK), got, i;
	void *at[BULK];

	errno = 0;
	got = pcpa_alloc_bulk(heaps[h].heap, order, flags_pick(t), at, n);
	CHECK(got == n || errno == ENOMEM);
	for (i = 0; i < got; i++)
		block_keep(t, h, order, at[i]);
}

/* What the thread holds of one heap, up to BULK, of one order or of all. */
static void op_free_bulk(struct soak_thread *t)
{
	unsigned h = (unsigned)pick(t, HEAPS), order = order_pick(t, 3), i = 0;
	bool sized = pick(t, 2);
	void *at[BULK];
	size_t n = 0;

	while (i < t->n && n < BULK) {
		struct block *b = &t->held[i];

		if (b->heap != h || (sized && b->order != order)) {
			i++;
			continue;
		}
		block_check(b);
		at[n++] = b->at;
		*b = t->held[--t->n];
	}
	if (sized)
		pcpa_free_bulk_sized(heaps[h].heap, order, at, n);
	else
		pcpa_free_bulk(heaps[h].heap, at, n);
}

static void op_refill(struct soak_thread *t)
{
	unsigned h = (unsigned)pick(t, HEAPS), order = order_pick(t, 3);
	void *slots[BULK] = { NULL };
	size_t filled, n = 1 + pick(t, BULK), i;

	for (i = 0; i < n; i += 1 + pick(t, 4))
		slots[i] = pcpa_alloc(heaps[h].heap, order, PCPA_NOGROW);
	errno = 0;
	filled = pcpa_refill(heaps[h].heap, order, 0, slots, n);
	CHECK(filled == n || errno == ENOMEM);
	for (i = 0; i < n; i++) {
		CHECK(i >= filled || slots[i]);
		if (slots[i])
			block_keep(t, h, order, slots[i]);
	}
}

/* Puts a block where others find it, and takes theirs. */
static void op_share(struct soak_thread *t)
{
	struct block *slot = &soak.shared[pick(t, SHARED)];
	struct block b = { .at = NULL }, was;

	if (t->n > 0 && pick(t, 4))
		b = held_take(t);
	pthread_mutex_lock(&soak.shared_lock);
	was = *slot;
	*slot = b;
	b = was;
	pthread_mutex_unlock(&soak.shared_lock);
	if (!b.at)
		return;
	if (t->n < HOLD && pick(t, 2))
		t->held[t->n++] = b;
	else
		block_free(t, &b);
}

static void op_query(struct soak_thread *t)
{
	const struct block *b;
	struct pcpa_heap *heap;

	if (t->n == 0)
		return;
	b = &t->held[pick(t, t->n)];
	heap = heaps[b->heap].heap;
	CHECK(pcpa_block_order(heap, b->at) == (int)b->order);
	CHECK(pcpa_block_node(heap, b->at) >= 0);
	CHECK((uintptr_t)b->at % (pcpa_heap_page_bytes(heap) << b->order) == 0);
}

static void op_flush(struct soak_thread *t)
{
	CHECK(pcpa_thread_flush(heaps[pick(t, HEAPS)].heap) == 0);
}

static void op_drain(struct soak_thread *t)
{
	int err = pcpa_heap_drain(heaps[pick(t, HEAPS)].heap);

	CHECK(err == 0 || err == -ETIMEDOUT);
}

static void op_stats(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;
	struct pcpa_stats s = conc_stats(heap);
	char text[4096];

	CHECK_U64(s.free_pages, <=, s.managed_pages);
	CHECK_U64(s.cached_pages, <=, s.managed_pages);
	CHECK_U64(s.depot_pages, <=, s.managed_pages);
	CHECK_U64(s.used_pages, <=, s.managed_pages);
	CHECK(pcpa_stats_format(heap, (enum pcpa_stats_format)pick(t, 4), text,
				sizeof(text)) > 0);
}

static int arena_look(const struct pcpa_arena_info *info, void *arg)
{
	*(size_t *)arg += info->bytes;
	return 0;
}

static void op_arenas(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;
	uint64_t before = conc_stats(heap).managed_pages;
	size_t bytes = 0;

	CHECK(pcpa_for_each_arena(heap, arena_look, &bytes) == 0);
	/* The newest is managed a moment before it is in the list. */
	CHECK_U64(bytes / pcpa_heap_page_bytes(heap), <=,
		  before + 96 * MIB / pcpa_heap_page_bytes(heap));
}

static uint64_t events; /* a */

static void event_count(const struct pcpa_event *event, void *arg)
{
	(void)event;
	(void)arg;
	pcpi_fetch_add_relaxed(&events, 1); /* relaxed: counter */
}

static void op_trace(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;

	CHECK(pcpa_heap_trace(heap, pick(t, 2) ? event_count : NULL, NULL) == 0);
}

/* All of the small heap, which others use at the time. */
static void op_exhaust(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[SMALL_HEAP].heap;
	unsigned order = (unsigned)pick(t, 4), n = 0, i;
	void *at[4096];

	while (n < 4096 && (at[n] = pcpa_alloc(heap, order, 0)))
		n++;
	for (i = 0; i < n; i++)
		pcpa_free(heap, at[i]);
}

/* A heap of the thread's own, from nothing to nothing. */
static void op_heap(struct soak_thread *t)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	void *at[BULK];
	size_t n;
	int err;

	opts.max_bytes = 8 * MIB;
	opts.verbosity = 0;
	err = pcpa_heap_create(&opts, &heap);
	if (err) {
		CHECK(err == -ENOMEM);
		return;
	}
	n = pcpa_alloc_bulk(heap, order_pick(t, 3), 0, at, BULK);
	if (n > 0)
		CHECK(pcpa_heap_destroy(heap) == -EBUSY);
	pcpa_free_bulk(heap, at, n);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

static _Noreturn void child_live(void)
{
	struct pcpa_heap *cow = heaps[COW_HEAP].heap;
	void *at[BULK];
	unsigned h, i;
	size_t n;

	alarm(CHILD_SECONDS);
	pcpi_store_relaxed(&soak.faults, false); /* relaxed: one thread */
	for (h = 0; h < HEAPS; h++) {
		errno = 0;
		if (h != COW_HEAP)
			CHECK(!pcpa_alloc(heaps[h].heap, 0, 0) &&
			      errno == ENODEV);
	}
	n = pcpa_alloc_bulk(cow, 1, 0, at, BULK);
	CHECK(n == BULK || errno == ENOMEM);
	for (i = 0; i < n; i++)
		*(uint64_t *)at[i] = i;
	pcpa_free_bulk(cow, at, n);
	CHECK(pcpa_heap_drain(cow) == 0);
	CHECK_U64(conc_stats(cow).cached_pages, ==, 0);
	CHECK(pcpi_zone_check(&cow->env.zones[0]));
	_exit(0);
}

static void op_fork(struct soak_thread *t)
{
	pid_t pid = fork();
	int status;

	(void)t;
	CHECK(pid >= 0);
	if (pid == 0)
		child_live();
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		fprintf(stderr, "the child got signal %d\n", WTERMSIG(status));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Another takes over what it holds. */
static void op_die(struct soak_thread *t)
{
	t->dying = true;
}

static const struct soak_op {
	const char *name;
	void (*run)(struct soak_thread *t);
	unsigned weight; /* of the sum of all */
} ops[] = {
	{ "alloc", op_alloc, 30000 },
	{ "free", op_free, 30000 },
	{ "alloc_bulk", op_alloc_bulk, 3000 },
	{ "free_bulk", op_free_bulk, 6000 },
	{ "refill", op_refill, 2000 },
	{ "share", op_share, 20000 },
	{ "query", op_query, 5000 },
	{ "flush", op_flush, 300 },
	{ "drain", op_drain, 60 },
	{ "stats", op_stats, 200 },
	{ "arenas", op_arenas, 100 },
	{ "trace", op_trace, 20 },
	{ "exhaust", op_exhaust, 6 },
	{ "heap", op_heap, 12 },
	{ "fork", op_fork, 6 },
	{ "die", op_die, 20 },
};

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
	accounts[b->heap].pages += UINT64_C(1) << b->order;
	accounts[b->heap].blocks++;
}

/* All threads rest. */
static void accounts_check(void)
{
	struct account accounts[HEAPS] = { { 0, 0 } };
	struct pcpa_stats s;
	unsigned i, k;

	for (i = 0; i < THREADS; i++)
		for (k = 0; k < soak.threads[i].n; k++)
			block_count(&soak.threads[i].held[k], accounts);
	for (i = 0; i < SHARED; i++)
		block_count(&soak.shared[i], accounts);
	for (i = 0; i < HEAPS; i++) {
		s = conc_stats(heaps[i].heap);
		CHECK_U64(s.free_pages + s.cached_pages + s.depot_pages +
				  accounts[i].pages, ==, s.managed_pages);
		CHECK_U64(s.used_blocks, ==, accounts[i].blocks);
		CHECK_U64(s.alloc_total - s.free_total, ==, accounts[i].blocks);
		CHECK_U64(s.bad_frees, ==, 0);
		CHECK_U64(s.cached_pages, <=,
			  s.managed_pages / 8 + THREADS * 8);
	}
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
		opts.verbosity = 0;
		CHECK(pcpa_heap_create(&opts, &heaps[i].heap) == 0);
	}
	faults_install();
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

int main(int argc, char **argv)
{
	unsigned long seconds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20, i;
	uint64_t seed = conc_seed(), end;

	CHECK(seconds > 0);
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
		whole_check(&heaps[i]);
		CHECK(pcpa_heap_destroy(heaps[i].heap) == 0);
	}
	done_print(seconds >= 20);
	return 0;
}
