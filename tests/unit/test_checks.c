/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_checks.c - PCPA_HEAP_CHECKS: each kind of bad free, and a write to a free
 * block, ends the process with a message that names the block and both sites;
 * PCPA_CHECKS; what is refused without checks.  CK1 of checks.h, BF1 of
 * badfree.c, and what quarantine.h promises.
 *
 * What is said under a name of a symbol is seen from outside, by tests/tools/.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap.h"
#include "heap_fixture.h"

static size_t page;
static char said[1 << 14]; /* by the last child */

/* Runs fn in a child, which must abort; what it says is in `said`. */
static void expect_abort(void (*fn)(void))
{
	int fds[2], status = 0;
	size_t len = 0;
	ssize_t got;
	pid_t child;

	cr_assert_eq(pipe(fds), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(fds[1]);
	while ((got = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)got;
	said[len] = '\0';
	close(fds[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
		  "status 0x%x, said: %s", status, said);
}

static void expect_said(const char *text)
{
	cr_expect(strstr(said, text), "no \"%s\" in:\n%s", text, said);
}

static unsigned said_count(const char *text)
{
	const char *at = said;
	unsigned n = 0;

	while ((at = strstr(at, text)) != NULL) {
		at++;
		n++;
	}
	return n;
}

/* The block, its heap, node and order, and three sites with frames in them. */
static void expect_block_named(unsigned order)
{
	char text[96];

	snprintf(text, sizeof(text), ", order %u (%zu bytes), node ", order,
		 page << order);
	expect_said("  block 0x");
	expect_said(text);
	expect_said(", heap 0x");
	expect_said("freed now by thread ");
	expect_said("last allocated by thread ");
	cr_expect_geq(said_count("(+0x"), 2, "%s", said);
}

static void expect_double_free(unsigned order)
{
	expect_said("refused to free 0x");
	expect_said("free already");
	expect_said("last freed by thread ");
	cr_expect_geq(said_count("(+0x"), 3, "%s", said);
	expect_block_named(order);
}

static struct pcpa_heap *checked(size_t bytes)
{
	struct pcpa_heap *heap = heap_fixed(bytes, PCPA_HEAP_CHECKS);

	page = pcpa_heap_page_bytes(heap);
	return heap;
}

static void contents_free_twice(void)
{
	struct pcpa_heap *heap =
		heap_fixed(4 * MIB, PCPA_HEAP_CHECKS | PCPA_HEAP_CONTENTS);
	char *block = pcpa_alloc(heap, 0, 0);

	page = pcpa_heap_page_bytes(heap);
	pcpa_free(heap, block);
	pcpa_free(heap, block);
}

static void page_set(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
}

TestSuite(checks, .init = page_set);

/* ---- Double frees ------------------------------------------------------------ */

static unsigned between, block_order;

static void free_twice(void)
{
	struct pcpa_heap *heap = checked(64 * MIB);
	char *block = pcpa_alloc(heap, block_order, 0);
	unsigned i;

	pcpa_free(heap, block);
	for (i = 0; i < between; i++)
		if (pcpa_alloc(heap, block_order, 0) == block)
			_exit(1); /* the second free would be a right one */
	pcpa_free(heap, block);
}

Test(checks, double_free_is_found_at_once)
{
	for (block_order = 0; block_order <= 9; block_order++) {
		expect_abort(free_twice);
		expect_double_free(block_order);
	}
}

Test(checks, double_free_is_found_after_one_allocation)
{
	between = 1;
	for (block_order = 0; block_order <= 5; block_order++) {
		expect_abort(free_twice);
		expect_double_free(block_order);
	}
}

Test(checks, double_free_is_found_after_a_thousand_allocations)
{
	between = 1000;
	for (block_order = 0; block_order <= 3; block_order++) {
		expect_abort(free_twice);
		expect_double_free(block_order);
	}
}

struct hand {
	struct pcpa_heap *heap;
	void *block;
};

static void *free_given(void *arg)
{
	struct hand *h = arg;

	pcpa_free(h->heap, h->block);
	return NULL;
}

static void free_in_two_threads(void)
{
	struct hand h = {.heap = checked(4 * MIB)};

	h.block = pcpa_alloc(h.heap, 1, 0);
	pcpa_free(h.heap, h.block);
	thread_run(free_given, &h);
}

Test(checks, double_free_by_another_thread_names_both)
{
	char first[64], second[64];
	const char *at;

	expect_abort(free_in_two_threads);
	expect_double_free(1);
	at = strstr(said, "freed now by thread ");
	cr_assert(at);
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(at + 20, ":"), at + 20);
	at = strstr(said, "last freed by thread ");
	cr_assert(at);
	snprintf(second, sizeof(second), "%.*s", (int)strcspn(at + 21, ":"), at + 21);
	cr_expect_str_neq(first, second);
}

static pthread_barrier_t both;

static void *free_at_once(void *arg)
{
	pthread_barrier_wait(&both);
	return free_given(arg);
}

/* Of two frees at the same moment one is refused, every time. */
static void free_at_the_same_time(void)
{
	struct hand h = {.heap = checked(4 * MIB)};
	pthread_t t;

	h.block = pcpa_alloc(h.heap, 0, 0);
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&t, NULL, free_at_once, &h);
	free_at_once(&h);
	pthread_join(t, NULL);
}

Test(checks, one_of_two_frees_at_once_is_refused)
{
	for (unsigned i = 0; i < 50; i++) {
		expect_abort(free_at_the_same_time);
		expect_said("free already");
	}
}

static void free_twice_after_drain(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);
	void *block = pcpa_alloc(heap, 2, 0);

	pcpa_free(heap, block);
	pcpa_heap_drain(heap);
	pcpa_free(heap, block);
}

Test(checks, double_free_of_a_block_that_has_merged_still_names_it)
{
	expect_abort(free_twice_after_drain);
	expect_double_free(2);
}

/* ---- Other bad frees ------------------------------------------------------------ */

static void free_interior(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);
	char *block = pcpa_alloc(heap, 3, 0);

	pcpa_free(heap, block + 5 * page);
}

static void free_misaligned(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);
	char *block = pcpa_alloc(heap, 3, 0);

	pcpa_free(heap, block + 5 * page + 8);
}

Test(checks, interior_pointer_names_the_block)
{
	expect_abort(free_interior);
	expect_said("inside a block, not its start");
	expect_block_named(3);
	cr_expect_eq(said_count("last freed"), 0);
	expect_abort(free_misaligned);
	expect_said("not the start of a page");
	expect_block_named(3);
}

static void free_to_the_wrong_heap(void)
{
	struct pcpa_heap *a = checked(4 * MIB), *b = checked(4 * MIB);

	fprintf(stderr, "<belongs to heap %p\n", (void *)a);
	pcpa_free(b, pcpa_alloc(a, 4, 0));
}

Test(checks, wrong_heap_is_told_the_right_one)
{
	char owner[64];

	expect_abort(free_to_the_wrong_heap);
	cr_assert_eq(sscanf(said, "<%63[^\n]", owner), 1, "%s", said);
	expect_said("not of this heap");
	cr_expect_eq(said_count(owner), 2, "%s", said);
	expect_block_named(4);
}

static void free_unchecked_block_to_checked_heap(void)
{
	struct pcpa_heap *a = heap_fixed(4 * MIB, 0);

	pcpa_free(checked(4 * MIB), pcpa_alloc(a, 0, 0));
}

Test(checks, wrong_heap_without_checks_is_named_too)
{
	expect_abort(free_unchecked_block_to_checked_heap);
	expect_said("it belongs to heap 0x");
	expect_said("freed now by thread ");
}

static void free_foreign(void)
{
	int local = 0;

	pcpa_free(checked(4 * MIB), &local);
}

Test(checks, foreign_pointer_is_of_no_heap)
{
	expect_abort(free_foreign);
	expect_said("it belongs to no heap");
	expect_said("freed now by thread ");
	cr_expect_geq(said_count("(+0x"), 1);
}

static void *heaps_lock_hold(void *arg)
{
	pcpi_lock_take(&pcpi_heaps_lock);
	pthread_barrier_wait(arg);
	pause();
	return NULL;
}

/* By another, or, as when a handler interrupted it, by the thread itself. */
static bool held_by_another;

static void free_foreign_while_heaps_are_locked(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);
	pthread_barrier_t held;
	pthread_t t;

	alarm(10); /* rather than waiting for ever */
	pthread_barrier_init(&held, NULL, 2);
	if (held_by_another) {
		pthread_create(&t, NULL, heaps_lock_hold, &held);
		pthread_barrier_wait(&held);
	} else {
		pcpi_lock_take(&pcpi_heaps_lock);
	}
	pcpa_free(heap, &held);
}

Test(checks, report_waits_for_no_lock, .timeout = 60)
{
	for (unsigned i = 0; i < 2; i++) {
		held_by_another = i > 0;
		expect_abort(free_foreign_while_heaps_are_locked);
		expect_said("refused to free 0x");
		expect_said("not of this heap");
		expect_said("freed now by thread ");
		cr_expect_eq(said_count("it belongs to"), 0, "%s", said);
	}
}

static void free_never_allocated(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);
	char *block = pcpa_alloc(heap, 9, 0), *other = pcpa_alloc(heap, 9, 0);

	pcpa_free(heap, block < other ? other : block);
	pcpa_heap_drain(heap);
	pcpa_free(heap, (block < other ? other : block) + page);
}

Test(checks, page_inside_a_free_block_names_it)
{
	expect_abort(free_never_allocated);
	expect_said("free already, or never allocated");
	expect_block_named(9);
}

static void free_as_of_another_order(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);

	pcpa_free_sized(heap, pcpa_alloc(heap, 2, 0), 1);
}

static void free_bulk_as_of_another_order(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);
	void *blocks[40];

	if (pcpa_alloc_bulk(heap, 2, 0, blocks, 40) == 40)
		pcpa_free_bulk_sized(heap, 0, blocks, 40);
}

Test(checks, wrong_order_names_both)
{
	expect_abort(free_as_of_another_order);
	expect_said("as of order 1: of another order than said");
	expect_block_named(2);
	expect_abort(free_bulk_as_of_another_order);
	expect_said("as of order 0: of another order than said");
	expect_block_named(2);
}

/* ---- Use after free --------------------------------------------------------------- */

static size_t written_at;

static void write_after_free(void)
{
	struct pcpa_heap *heap = checked(8 * MIB);
	char *block = pcpa_alloc(heap, block_order, 0);
	volatile char *late = block;

	pcpa_free(heap, block);
	late[written_at] = 'Z';
	while (pcpa_alloc(heap, 1, 0) || pcpa_alloc(heap, 0, 0))
		;
}

static void expect_late_write(void)
{
	char text[64];

	expect_abort(write_after_free);
	snprintf(text, sizeof(text), "at byte %zu of its block is 5a", written_at);
	expect_said(" was written after it was freed");
	expect_said(text);
	expect_said("found when allocated by thread ");
	expect_said("last freed by thread ");
	expect_said(block_order ? "a part of it has been handed out again"
				: "last allocated by thread ");
}

Test(checks, write_to_a_free_block_is_found_when_it_is_handed_out)
{
	block_order = 0;
	written_at = 0;
	expect_late_write();
	written_at = page - 1;
	expect_late_write();
	block_order = 4; /* comes back in smaller ones */
	written_at = 7 * page + 3;
	expect_late_write();
}

static void write_after_free_in_bulk(void)
{
	struct pcpa_heap *heap = checked(4 * MIB);
	void *blocks[64];
	size_t n = pcpa_alloc_bulk(heap, 0, 0, blocks, 64);

	pcpa_free_bulk(heap, blocks, n);
	((volatile char *)blocks[40])[100] = 1;
	pcpa_heap_drain(heap);
	while (pcpa_alloc_bulk(heap, 3, 0, blocks, 64) == 64)
		;
}

Test(checks, write_to_a_free_block_is_found_in_bulk)
{
	expect_abort(write_after_free_in_bulk);
	expect_said("at byte 100 of its block is 01 a5");
}

/* ---- Right use ---------------------------------------------------------------------- */

/* Whatever the holder wrote, and zeroed when asked for. */
Test(checks, right_use_passes_and_zero_zeroes)
{
	struct pcpa_heap *heap = checked(8 * MIB);
	static void *blocks[4096];
	char *zeros = calloc(4, page);
	size_t n;

	for (unsigned round = 0; round < 4; round++)
		for (unsigned o = 0; o < 3; o++) {
			n = alloc_all(heap, o, PCPA_ZERO, blocks, 4096);
			cr_expect_geq(n << o, 1024, "round %u: %zu", round, n);
			for (size_t i = 0; i < n; i++) {
				cr_assert_eq(memcmp(blocks[i], zeros, page << o), 0);
				memset(blocks[i], (int)i, page << o);
			}
			free_all(heap, blocks, n);
		}
	free(zeros);
	cr_expect_eq(stats_summed(heap).bad_frees, 0);
	expect_all_free(heap);
	heap_end(heap);
}

Test(checks, freed_memory_serves_other_orders_when_it_is_needed)
{
	struct pcpa_heap *heap = checked(8 * MIB);
	static void *blocks[4096];
	size_t n;

	for (unsigned round = 0; round < 3; round++)
		for (unsigned o = 0; o <= 9; o++) {
			n = alloc_all(heap, o, 0, blocks, 4096);
			cr_expect_eq(n, 2048u >> o, "order %u: %zu", o, n);
			free_all(heap, blocks, n);
		}
	expect_all_free(heap);
	heap_end(heap);
}

static void *free_all_given(void *arg)
{
	void **blocks = arg;

	for (unsigned i = 1; blocks[i]; i++)
		pcpa_free(blocks[0], blocks[i]);
	return NULL;
}

Test(checks, blocks_at_rest_are_counted_and_don_t_keep_the_heap)
{
	struct pcpa_heap *heap = checked(64 * MIB);
	void *blocks[102] = {heap};
	struct pcpa_stats s;

	cr_assert_eq(pcpa_alloc_bulk(heap, 1, 0, blocks + 1, 100), 100);
	thread_run(free_all_given, blocks);
	s = stats_summed(heap);
	cr_expect_eq(s.used_pages, 0);
	cr_expect_eq(s.free_total, 100);
	heap_end(heap); /* without a drain */
}

Test(checks, copy_on_write_heap_is_checked_in_the_child)
{
	struct pcpa_heap *heap = heap_make(0, 8 * MIB,
					   PCPA_HEAP_COW | PCPA_HEAP_CHECKS);
	void *blocks[64];
	int status = 0;
	pid_t child;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 64), 64);
	pcpa_free_bulk(heap, blocks, 32);
	child = fork();
	if (child == 0) {
		pcpa_free_bulk(heap, blocks + 32, 32);
		if (pcpa_alloc_bulk(heap, 0, 0, blocks, 64) != 64)
			_exit(1);
		signal(SIGABRT, SIG_DFL);
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		pcpa_free(heap, blocks[0]);
		pcpa_free(heap, blocks[0]);
		_exit(2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "0x%x",
		  status);
	pcpa_free_bulk(heap, blocks + 32, 32);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- PCPA_CHECKS ------------------------------------------------------------------------ */

static void free_twice_on_a_plain_heap(void)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	void *block = pcpa_alloc(heap, 0, 0);

	pcpa_free(heap, block);
	pcpa_free(heap, block);
}

static void free_twice_on_the_default_heap(void)
{
	struct pcpa_heap *heap = pcpa_default_heap();
	void *block = pcpa_alloc(heap, 0, 0);

	pcpa_free(heap, block);
	pcpa_free(heap, block);
}

Test(checks, variable_is_for_every_heap)
{
	setenv("PCPA_MAX_BYTES", "16M", 1);
	setenv("PCPA_CHECKS", "1", 1);
	expect_abort(free_twice_on_a_plain_heap);
	expect_double_free(0);
	expect_abort(free_twice_on_the_default_heap);
	expect_double_free(0);
}

Test(checks, variable_that_is_0_changes_nothing)
{
	struct pcpa_heap *heap;
	void *block;

	setenv("PCPA_CHECKS", "0", 1);
	heap = heap_fixed(4 * MIB, 0);
	block = pcpa_alloc(heap, 0, 0);
	pcpa_free(heap, block);
	cr_expect_eq(pcpa_alloc(heap, 0, 0), block); /* no quarantine */
	cr_expect_not_null(pcpa_default_heap());
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(checks, bad_variable_is_refused)
{
	static const char *const bad[] = {"", "2", "yes", "01", "1 "};
	struct pcpa_heap *heap = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("PCPA_CHECKS", bad[i], 1);
		cr_expect_eq(pcpa_heap_create(NULL, &heap), -EINVAL, "%s", bad[i]);
		cr_expect_null(heap);
	}
	errno = 0;
	cr_expect_null(pcpa_default_heap());
	cr_expect_eq(errno, EINVAL);
}

/* ---- Without checks ----------------------------------------------------------------------- */

/* Each kind that can be told without: counted, said once, nothing changed. */
static void refuse_all_kinds(void)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL, *other = heap_fixed(2 * MIB, 0);
	struct pcpa_stats before, after;
	char *block, *gone, *foreign = pcpa_alloc(other, 0, 0);
	int local = 0;

	opts.initial_bytes = 2 * MIB;
	opts.max_bytes = 16 * MIB;
	if (pcpa_heap_create(&opts, &heap))
		_exit(1);
	block = pcpa_alloc(heap, 3, 0);
	gone = pcpa_alloc(heap, 8, 0);
	pcpa_free(heap, gone); /* not cached: in the buddy at once */
	before = stats_of(heap, -1);
	fprintf(stderr, "<");
	void *bad[] = {&local, foreign, block + page, block + 7 * page, block + 1,
		       gone, gone + page, (void *)page};
	for (unsigned i = 0; i < 8; i++) {
		pcpa_free(heap, bad[i]);
		pcpa_free_bulk(heap, &bad[i], 1);
		pcpa_free_sized(heap, bad[i], 9);
		pcpa_free_bulk_sized(heap, 9, &bad[i], 1);
	}
	pcpa_free_sized(heap, block, 7); /* an order that is looked at */
	fprintf(stderr, ">");
	after = stats_of(heap, -1);
	before.bad_frees += 8 * 4 + 1;
	if (memcmp(&before, &after, sizeof(before)) != 0)
		fprintf(stderr, "CHANGED");
	if (pcpa_block_order(heap, block) == 3)
		abort();
}

Test(checks, without_them_a_bad_free_is_counted_said_once_and_changes_nothing)
{
	expect_abort(refuse_all_kinds);
	cr_expect_eq(said_count("refused to free"), 1, "%s", said);
	cr_expect_eq(said_count("CHANGED"), 0);
	cr_expect(strchr(said, '<') && strchr(said, '>'));
}

/* ---- PCPA_HEAP_CONTENTS ------------------------------------------------------ */

Test(checks, contents_of_free_blocks_are_the_programs)
{
	struct pcpa_heap *heap =
		heap_fixed(4 * MIB, PCPA_HEAP_CHECKS | PCPA_HEAP_CONTENTS);
	size_t n = (4 * MIB) / pcpa_heap_page_bytes(heap), i;
	unsigned *blocks[4 * MIB / 4096], *again[4 * MIB / 4096];

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, (void **)blocks, n), n);
	for (i = 0; i < n; i++)
		*blocks[i] = (unsigned)i;
	pcpa_free_bulk(heap, (void **)blocks, n);
	for (i = 0; i < n; i++)
		cr_expect_eq((*blocks[i])++, (unsigned)i);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, (void **)again, n), n);
	for (i = 0; i < n; i++)
		cr_expect_eq(*blocks[i], (unsigned)i + 1);
	pcpa_free_bulk(heap, (void **)again, n);
	cr_expect_eq(pcpa_heap_destroy(heap), 0);
}

Test(checks, contents_heap_finds_double_frees_all_the_same)
{
	expect_abort(contents_free_twice);
	expect_double_free(0);
}
