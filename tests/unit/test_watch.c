/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_watch.c - being told of low and available nodes (lib/watch.c), from
 * outside.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "../support/heap_fixture.h"
#include "../support/helper.h"

#define MANY 4096u

static void *blocks[MANY];

struct news {
	unsigned low, available, nr;
	struct pcpa_event last;
	unsigned char order[MANY]; /* 1: low, 2: available */
};

static struct news news;

static void note(const struct pcpa_event *e, void *arg)
{
	struct news *n = arg;

	cr_expect(e->kind == PCPA_EVENT_LOW || e->kind == PCPA_EVENT_AVAILABLE);
	n->low += e->kind == PCPA_EVENT_LOW;
	n->available += e->kind == PCPA_EVENT_AVAILABLE;
	if (n->nr < MANY)
		n->order[n->nr++] = e->kind == PCPA_EVENT_LOW ? 1 : 2;
	n->last = *e;
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static uint64_t value_of(int fd)
{
	uint64_t value = 0;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		return 0;
	return value;
}

static uint64_t free_of(struct pcpa_heap *heap)
{
	struct pcpa_stats s = stats_of(heap, -1);

	return s.free_pages + s.depot_pages;
}

/* Frees the rest one by one, past the cache, as far as n. */
static void free_to(struct pcpa_heap *heap, size_t *n, uint64_t pages)
{
	while (*n > 0 && free_of(heap) < pages) {
		pcpa_free(heap, blocks[--*n]);
		cr_assert_eq(pcpa_thread_flush(heap), 0);
	}
}

Test(watch, low_and_available_are_told_once_each_with_hysteresis)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);
	struct pcpa_stats s = stats_of(heap, -1);
	size_t n = 0;

	cr_assert_lt(s.low_pages, s.high_pages);
	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	cr_expect_eq(news.nr, 0);
	while (!news.low && n < MANY)
		cr_assert(blocks[n++] = pcpa_alloc(heap, 4, 0));
	cr_expect_lt(free_of(heap), s.low_pages);
	cr_expect_geq(free_of(heap) + 16, s.low_pages);
	cr_expect_eq(news.last.pages, free_of(heap));
	cr_expect_eq(news.last.count, s.low_pages);
	cr_expect_eq(news.last.high, s.high_pages);
	cr_expect_eq(news.last.node, 0);
	cr_expect_eq(news.last.struct_size, sizeof(news.last));
	n += alloc_all(heap, 4, 0, blocks + n, MANY - n);
	cr_expect_eq(news.nr, 1);
	free_to(heap, &n, s.high_pages - 16);
	cr_expect_eq(news.nr, 1, "above low is not enough");
	pcpa_free(heap, blocks[--n]);
	cr_expect_eq(news.available, 1);
	cr_expect_geq(news.last.pages, s.high_pages);
	free_all(heap, blocks, n);
	cr_expect_eq(news.nr, 2);
	heap_end(heap);
}

static void spoil(const struct pcpa_event *e, void *arg)
{
	if (e->kind == PCPA_EVENT_LOW || e->kind == PCPA_EVENT_AVAILABLE)
		note(e, arg);
	errno = EDOM;
}

Test(watch, subscriber_leaves_errno)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);
	size_t n = 0;

	cr_assert_eq(pcpa_heap_watch(heap, spoil, &news), 0);
	cr_assert_eq(pcpa_heap_trace(heap, spoil, &news), 0);
	errno = ENOTTY;
	while (!news.low && n < MANY)
		cr_assert(blocks[n++] = pcpa_alloc(heap, 0, 0));
	while (!news.available && n > 0)
		pcpa_free(heap, blocks[--n]);
	cr_assert(news.available);
	cr_expect_eq(errno, ENOTTY);
	cr_assert_eq(pcpa_heap_trace(heap, NULL, NULL), 0);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* Pages that go through the depot only, which knows of no zone. */
Test(watch, depot_alone_makes_news)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);

	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	cr_expect_eq(news.low, 1, "low already");
	for (unsigned i = 0; i < 5; i++) {
		size_t all = n;

		free_to(heap, &n, stats_of(heap, -1).high_pages);
		cr_expect_eq(news.available, i + 1);
		cr_expect_eq(stats_of(heap, -1).free_pages, 0);
		n += alloc_all(heap, 0, 0, blocks + n, MANY - n);
		cr_assert_eq(n, all);
		cr_expect_eq(news.low, i + 2);
	}
	for (unsigned i = 1; i < news.nr; i++)
		cr_expect_neq(news.order[i], news.order[i - 1]);
	pcpa_free_bulk(heap, blocks, n);
	heap_end(heap);
}

/* A freer that never takes a slow path on purpose. */
static void free_many(void *arg)
{
	for (size_t i = 0; i < 500; i++)
		pcpa_free(arg, blocks[i]);
}

Test(watch, hand_over_of_another_thread_makes_news)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	struct helper other;
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);

	helper_start(&other);
	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	helper_call(&other, free_many, heap);
	cr_expect_eq(news.available, 1);
	helper_end(&other);
	free_all(heap, blocks + 500, n - 500);
	heap_end(heap);
}

static void *free_few(void *arg)
{
	size_t high = stats_of(arg, -1).high_pages, i;

	/* In a cache that holds as much: nothing is handed over. */
	blocks[0] = pcpa_alloc(arg, 0, 0);
	for (i = 0; i < high; i++)
		pcpa_free(arg, blocks[i]);
	return NULL;
}

Test(watch, end_of_a_thread_makes_news)
{
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY), high;
	int fd;

	high = stats_of(heap, -1).high_pages;
	pcpa_free(heap, blocks[0]);
	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	fd = pcpa_heap_eventfd(heap);
	cr_expect_gt(value_of(fd), 0, "low already");
	thread_run(free_few, heap);
	cr_expect_eq(news.available, 1);
	cr_expect_eq(news.last.kind, PCPA_EVENT_AVAILABLE);
	cr_expect(readable(fd));
	free_all(heap, blocks + high, n - high);
	heap_end(heap);
}

Test(watch, unwatched_is_not_called)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	size_t n;

	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	cr_assert_eq(pcpa_heap_watch(heap, NULL, NULL), 0);
	n = alloc_all(heap, 0, 0, blocks, MANY);
	pcpa_free_bulk(heap, blocks, n);
	cr_expect_eq(news.nr, 0);
	heap_end(heap);
}

Test(watch, bad_heap_is_refused)
{
	KEEPS_ERRNO(cr_expect_eq(pcpa_heap_watch(NULL, note, NULL), -EINVAL));
	KEEPS_ERRNO(cr_expect_eq(pcpa_heap_eventfd(NULL), -EINVAL));
}

/* ---- The event descriptor --------------------------------------------------------- */

Test(watch, eventfd_is_readable_after_each_change)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	int fd = pcpa_heap_eventfd(heap);
	size_t n;

	cr_assert_geq(fd, 0);
	cr_expect_eq(pcpa_heap_eventfd(heap), fd);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_expect_not(readable(fd));
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_expect_eq(value_of(fd), 1);
	cr_expect_not(readable(fd));
	pcpa_free_bulk(heap, blocks, n);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	cr_expect_eq(value_of(fd), 1);
	heap_end(heap);
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "closed with the heap");
}

Test(watch, eventfd_of_a_low_heap_is_readable_at_once)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);
	int fd = pcpa_heap_eventfd(heap);

	cr_expect_gt(value_of(fd), 0);
	pcpa_free_bulk(heap, blocks, n);
	heap_end(heap);
	/* And if somebody was told already. */
	heap = heap_fixed(4 * MIB, 0);
	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_expect_eq(news.low, 1);
	cr_expect_gt(value_of(pcpa_heap_eventfd(heap)), 0);
	cr_expect_eq(news.low, 1);
	pcpa_free_bulk(heap, blocks, n);
	heap_end(heap);
}

static void expect_not_the_childs(unsigned flags)
{
	struct pcpa_heap *heap = heap_make(4 * MIB, 4 * MIB, flags);
	int fd = pcpa_heap_eventfd(heap), status = -1;
	pid_t child;

	child = fork();
	if (child == 0) {
		size_t n = alloc_all(heap, 0, 0, blocks, MANY);

		if (n != (flags & PCPA_HEAP_COW ? 1024 : 0))
			_exit(1);
		if (!(flags & PCPA_HEAP_COW) &&
		    (pcpa_heap_eventfd(heap) != -ENODEV ||
		     pcpa_heap_watch(heap, note, &news) != -ENODEV))
			_exit(2);
		_exit(fcntl(fd, F_GETFD) != -1 ? 3 : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	cr_expect_not(readable(fd));
	heap_end(heap);
}

Test(watch, eventfd_is_not_the_childs)
{
	expect_not_the_childs(PCPA_HEAP_COW);
	expect_not_the_childs(0);
}

/* ---- A forked child's ----------------------------------------------------------- */

/* In a child of a heap that is low, and whose parent was told so: 0, or the place
 * where it went wrong. */
static int child_of_low(struct pcpa_heap *heap, int parents, size_t n)
{
	unsigned told = news.nr;
	int fd = pcpa_heap_eventfd(heap);

	if (fd < 0 || (fd != parents && fcntl(parents, F_GETFD) != -1))
		return 1;
	if (value_of(fd) != 1) /* low already: nobody was told here */
		return 2;
	if (pcpa_heap_eventfd(heap) != fd || readable(fd))
		return 3;
	if (news.nr != told + 1 || news.last.kind != PCPA_EVENT_LOW)
		return 4; /* the subscriber neither */
	pcpa_free_bulk(heap, blocks, n);
	if (pcpa_thread_flush(heap) != 0)
		return 5;
	/* Left there: the parent's must not be readable. */
	if (!readable(fd) || news.nr != told + 2 ||
	    news.last.kind != PCPA_EVENT_AVAILABLE)
		return 6;
	return 0;
}

Test(watch, forked_child_has_a_descriptor_and_news_of_its_own)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, PCPA_HEAP_COW);
	int fd = pcpa_heap_eventfd(heap), status = -1;
	unsigned told;
	size_t n;
	pid_t child;

	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_expect_eq(value_of(fd), 1);
	told = news.nr;
	child = fork();
	if (child == 0)
		_exit(child_of_low(heap, fd, n));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "0x%x", status);
	cr_expect_not(readable(fd));
	cr_expect_eq(news.nr, told);
	pcpa_free_bulk(heap, blocks, n);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	cr_expect_eq(value_of(fd), 1);
	heap_end(heap);
}

/* Somebody is just telling the parent's subscriber when the child is made. */
static int told[2], go_on[2];

static void note_and_stay(const struct pcpa_event *e, void *arg)
{
	char byte;

	note(e, arg);
	if (news.nr == 1) {
		cr_assert_eq(write(told[1], "", 1), 1);
		cr_assert_eq(read(go_on[0], &byte, 1), 1);
	}
}

static void *take_all(void *arg)
{
	alloc_all(arg, 4, 0, blocks, MANY);
	return NULL;
}

Test(watch, child_that_is_made_while_its_parent_is_told_hears_all)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, PCPA_HEAP_COW);
	int status = -1;
	pthread_t t;
	pid_t child;
	char byte;

	cr_assert_eq(pipe(told) + pipe(go_on), 0);
	cr_assert_eq(pcpa_heap_watch(heap, note_and_stay, &news), 0);
	pthread_create(&t, NULL, take_all, heap);
	cr_assert_eq(read(told[0], &byte, 1), 1);
	child = fork();
	if (child == 0) {
		static void *more[MANY];

		alloc_all(heap, 0, 0, more, MANY);
		_exit(news.nr == 2 && news.last.kind == PCPA_EVENT_LOW ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "0x%x", status);
	cr_assert_eq(write(go_on[1], "", 1), 1);
	pthread_join(t, NULL);
	for (size_t i = 0; i < MANY && blocks[i]; i++)
		pcpa_free(heap, blocks[i]);
	heap_end(heap);
}

Test(watch, calls_that_must_not_wait_leave_the_news_to_others)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	size_t n;

	cr_assert_eq(pcpa_heap_watch(heap, note, &news), 0);
	n = alloc_all(heap, 0, PCPA_NOWAIT, blocks, MANY);
	cr_expect_eq(n, 512);
	cr_expect_eq(news.nr, 0);
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	cr_expect_eq(news.low, 1);
	pcpa_free_bulk(heap, blocks, n);
	heap_end(heap);
}
