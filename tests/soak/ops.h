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
		CHECK(is_refusal(flags, errno));
		return;
	}
	if (flags & PCPA_ZERO) {
		CHECK_U64(*(uint64_t *)at, ==, 0);
		CHECK_U64(*conc_last_word(heaps[h].heap, at, order), ==, 0);
	}
	place_check(heaps[h].heap, flags, at);
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
	unsigned flags = flags_pick(t);
	size_t n = 1 + pick(t, BULK), got, i;
	void *at[BULK];

	errno = 0;
	got = pcpa_alloc_bulk(heaps[h].heap, order, flags, at, n);
	CHECK(got == n || is_refusal(flags, errno));
	for (i = 0; i < got; i++) {
		place_check(heaps[h].heap, flags, at[i]);
		block_keep(t, h, order, at[i]);
	}
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

		if (b->heap != h || b->pages || (sized && b->order != order)) {
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
	unsigned flags = flags_pick(t);
	void *slots[BULK] = { NULL };
	size_t filled, n = 1 + pick(t, BULK), i;

	for (i = 0; i < n; i += 1 + pick(t, 4))
		slots[i] = pcpa_alloc(heaps[h].heap, order, PCPA_NOGROW);
	errno = 0;
	filled = pcpa_refill(heaps[h].heap, order, flags, slots, n);
	CHECK(filled == n || is_refusal(flags, errno));
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
	if (b->pages) {
		CHECK(pcpa_block_order(heap, b->at) == -EINVAL);
		return;
	}
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

/* Small ranges are common.  What is larger than the heap is refused at once. */
static void op_contig(struct soak_thread *t)
{
	unsigned h = (unsigned)pick(t, HEAPS), flags = flags_pick(t) & ~PCPA_NOWAIT;
	struct pcpa_heap *heap = heaps[h].heap;
	size_t pages = 1 + pick(t, UINT64_C(1) << pick(t, 12));
	size_t align = (size_t)1 << pick(t, 11);
	uint64_t *at = pcpa_alloc_contig(heap, pages, align, flags);
	struct block b = { .at = at, .heap = h, .pages = pages };

	if (!at) {
		CHECK(is_refusal(flags, errno));
		return;
	}
	CHECK((uintptr_t)at % (align * pcpa_heap_page_bytes(heap)) == 0);
	if (flags & PCPA_ZERO) {
		CHECK_U64(*at, ==, 0);
		CHECK_U64(*last_word(&b), ==, 0);
	}
	keep(t, b);
}

/* Of a heap that others use, or of one that nobody has touched for a while. */
static void op_trim(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;
	size_t went = pcpa_heap_trim(heap, pick(t, 2) ? pick(t, 64) * MIB : 0);

	CHECK(went % pcpa_heap_page_bytes(heap) == 0);
	if (heap->options_flags & PCPA_HEAP_FIXED)
		CHECK_U64(went, ==, 0);
}

/* What a holder of a disable of the node, or of all (-1), sees, whatever others
 * do. */
static void disabled_look(struct soak_thread *t, struct pcpa_heap *heap, int node)
{
	unsigned flags = node < 0 ? 0 : PCPA_NODE(node);
	struct pcpa_stats s = PCPA_STATS_INIT;
	void *at[BULK];
	unsigned i;
	size_t n;

	for (i = 0; i < 4; i++) {
		n = pcpa_alloc_bulk(heap, order_pick(t, 3), flags, at,
				    1 + pick(t, BULK));
		pcpa_free_bulk(heap, at, n);
		CHECK(pcpa_stats_read(heap, node, &s) == 0);
		CHECK_U64(s.cached_pages, ==, 0);
		CHECK_U64(s.depot_pages, ==, 0);
	}
}

/* Disables as often as it enables: by a node's number, or all. */
static void op_disable(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;
	int node[3], err;
	unsigned n = 0, depth = 1 + (unsigned)pick(t, 3);

	while (n < depth) {
		node[n] = pick(t, 2) ? -1 : node_pick(t);
		err = pcpa_cache_disable(heap, node[n]);
		CHECK(err == 0 || err == -ETIMEDOUT);
		if (err)
			break;
		disabled_look(t, heap, node[n++]);
	}
	while (n > 0)
		CHECK(pcpa_cache_enable(heap, node[--n]) == 0);
}

static void op_tick(struct soak_thread *t)
{
	CHECK(pcpa_heap_tick(heaps[pick(t, HEAPS)].heap) == 0);
}

static int arena_look(const struct pcpa_arena_info *info, void *arg)
{
	const struct pcpa_heap *heap = arg;

	CHECK(info->bytes > 0 && info->bytes <= 96 * MIB);
	CHECK(info->bytes % info->page_bytes == 0);
	CHECK((uintptr_t)info->base % pcpa_heap_page_bytes(heap) == 0);
	return 0;
}

static void op_arenas(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;

	CHECK(pcpa_for_each_arena(heap, arena_look, heap) == 0);
}

static uint64_t arena_changes; /* a */

/* Refuses one of sixteen. */
static int arena_change(enum pcpa_arena_change change,
			const struct pcpa_arena_info *info, void *arg)
{
	(void)change;
	CHECK(arena_look(info, arg) == 0);
	/* relaxed: counter */
	return pcpi_fetch_add_relaxed(&arena_changes, 1) % 16 == 0 ? -EIO : 0;
}

/* Begins, or ends what anyone has begun. */
static void op_notify(struct soak_thread *t)
{
	unsigned h = (unsigned)pick(t, HEAPS);
	bool begin = pick(t, 2);
	int err = pcpa_heap_notify(heaps[h].heap, begin ? arena_change : NULL,
				   heaps[h].heap);

	if (h == COW_HEAP)
		CHECK(err == -EINVAL);
	else
		CHECK(err == 0 || (begin && (err == -EBUSY || err == -EIO)));
}

static void op_iova(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;
	void *at = pcpa_alloc(heap, 0, 0);
	uint64_t iova;
	int err;

	if (!at)
		return;
	err = pcpa_virt_to_iova(heap, at, &iova);
	CHECK(err == 0 || err == -ENOTSUP || err == -EPERM || err == -EAGAIN);
	pcpa_free(heap, at);
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

static void op_watch(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[pick(t, HEAPS)].heap;

	CHECK(pcpa_heap_watch(heap, pick(t, 2) ? event_count : NULL, NULL) == 0);
}

static void op_eventfd(struct soak_thread *t)
{
	int fd = pcpa_heap_eventfd(heaps[pick(t, HEAPS)].heap);
	uint64_t changes;

	CHECK(fd >= 0 || fd == -EMFILE);
	if (fd >= 0 && read(fd, &changes, sizeof(changes)) < 0)
		CHECK(errno == EAGAIN);
}

/* All of the small heap, which others use at the time. */
static void op_exhaust(struct soak_thread *t)
{
	struct pcpa_heap *heap = heaps[SMALL_HEAP].heap;
	unsigned order = (unsigned)pick(t, 4), n = 0, i;
	void *at[2 * 4096];

	while (n < 2 * 4096 && (at[n] = pcpa_alloc(heap, order, 0)))
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
	opts.flags = (pick(t, 2) ? PCPA_HEAP_BACKGROUND : 0) |
		     (pick(t, 2) ? PCPA_HEAP_SHARED : 0);
	err = pcpa_heap_create(&opts, &heap);
	if (err) {
		CHECK(err == -ENOMEM || err == -EAGAIN || err == -EMFILE);
		return;
	}
	n = pcpa_alloc_bulk(heap, order_pick(t, 3), 0, at, BULK);
	if (n > 0)
		CHECK(pcpa_heap_destroy(heap) == -EBUSY);
	pcpa_free_bulk(heap, at, n);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

static void child_refused(struct pcpa_heap *heap)
{
	errno = 0;
	CHECK(!pcpa_alloc(heap, 0, 0) && errno == ENODEV);
	errno = 0;
	CHECK(!pcpa_alloc_contig(heap, 4, 1, 0) && errno == ENODEV);
	CHECK(pcpa_heap_tick(heap) == -ENODEV);
	CHECK(pcpa_cache_disable(heap, -1) == -ENODEV);
	CHECK(pcpa_heap_watch(heap, NULL, NULL) == -ENODEV);
	CHECK(pcpa_heap_eventfd(heap) == -ENODEV);
	CHECK(pcpa_heap_notify(heap, NULL, NULL) == -ENODEV);
	CHECK(pcpa_heap_trim(heap, 0) == 0);
}

static _Noreturn void child_live(void)
{
	struct pcpa_heap *cow = heaps[COW_HEAP].heap;
	void *at[BULK];
	unsigned h, i, z;
	size_t n;

	alarm(CHILD_SECONDS);
	pcpi_store_relaxed(&soak.faults, false); /* relaxed: one thread */
	for (h = 0; h < HEAPS; h++) {
		if (h != COW_HEAP)
			child_refused(heaps[h].heap);
	}
	n = pcpa_alloc_bulk(cow, 1, 0, at, BULK);
	CHECK(n == BULK || errno == ENOMEM);
	for (i = 0; i < n; i++)
		*(uint64_t *)at[i] = i;
	pcpa_free_bulk(cow, at, n);
	CHECK(pcpa_heap_drain(cow) == 0);
	CHECK_U64(conc_stats(cow).cached_pages, ==, 0);
	for (z = 0; z < cow->nr_zones; z++)
		CHECK(pcpi_zone_check(&cow->env.zones[z]));
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

/* To a CPU of any node. */
static void op_move(struct soak_thread *t)
{
	t->cpu = (int)pick(t, CPUS);
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
	{ "contig", op_contig, 400 },
	{ "trim", op_trim, 30 },
	{ "disable", op_disable, 12 },
	{ "tick", op_tick, 200 },
	{ "trace", op_trace, 20 },
	{ "watch", op_watch, 20 },
	{ "notify", op_notify, 20 },
	{ "iova", op_iova, 20 },
	{ "eventfd", op_eventfd, 60 },
	{ "exhaust", op_exhaust, 6 },
	{ "heap", op_heap, 12 },
	{ "fork", op_fork, 6 },
	{ "move", op_move, 500 },
	{ "die", op_die, 20 },
};

#endif
