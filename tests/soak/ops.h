/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops.h - the operations of the soak, and how often each comes.
 *
 * A public function that isn't called yet is a function op_... here and a row of
 * the table `ops` at the end.  Each runs on any thread beside all others, on heaps
 * in any state; it keeps what it takes by block_keep(), and checks what must hold
 * even so: which errors there may be, and nothing of timing.
 */
#ifndef SOAK_OPS_H
#define SOAK_OPS_H

#include <sys/wait.h>

#include "soak.h"

#define CHILD_SECONDS 30u

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

#endif
