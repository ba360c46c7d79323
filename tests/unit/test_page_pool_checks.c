/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_checks.c - pools of heaps with PCPA_HEAP_CHECKS: a buffer that is
 * put twice ends the process, wherever the first put has brought it.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/pool_fixture.h"

static struct pcpa_heap *heap;
static void *bufs[256];

static void setup(void)
{
	pool_sys_install();
	heap = heap_fixed(16 * MIB, PCPA_HEAP_CHECKS);
}

TestSuite(page_pool_checks, .init = setup);

static void twice_cached(void)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 1);
	pcpa_pool_put(pool, bufs[0]);
	pcpa_pool_put(pool, bufs[0]);
}

static void twice_in_the_ring(void)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 1);
	put_elsewhere(pool, bufs, 1);
	put_elsewhere(pool, bufs, 1);
}

static void twice_in_one_bulk(void)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 2);
	bufs[2] = bufs[0];
	pcpa_pool_put_bulk(heap, bufs, 3);
}

static void never_handed_out(void)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 1);
	/* 64 came, of which one is out: its neighbours are in the cache. */
	bufs[1] = (char *)bufs[0] - PAGE;
	pcpa_pool_put(pool, bufs[1]);
}

static void not_the_pools(void)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	pcpa_pool_put(pool, &pool);
}

static void expect_abort(void (*fn)(void), const char *text)
{
	int fds[2], status = 0;
	char said[4096];
	ssize_t got, len = 0;
	pid_t child;

	cr_assert_eq(pipe(fds), 0);
	child = fork();
	if (child == 0) {
		pool_sys.write_err = pcpi_sys_linux.write_err;
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		heap = heap_fixed(16 * MIB, PCPA_HEAP_CHECKS);
		fn();
		_exit(0);
	}
	close(fds[1]);
	while ((got = read(fds[0], said + len,
			   sizeof(said) - 1 - (size_t)len)) > 0)
		len += got;
	said[len] = '\0';
	close(fds[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
		  "status 0x%x, said: %s", status, said);
	cr_expect(strstr(said, text), "no \"%s\" in: %s", text, said);
}

Test(page_pool_checks, each_wrong_put_aborts)
{
	expect_abort(twice_cached, "put already");
	expect_abort(twice_in_the_ring, "put already");
	expect_abort(twice_in_one_bulk, "put already");
	expect_abort(never_handed_out, "put already");
	expect_abort(not_the_pools, "not of the pool's heap");
	heap_end(heap);
}

Test(page_pool_checks, right_puts_count_as_ever)
{
	struct pcpa_pool *pool = pool_with(heap, .ring_slots = 100);
	void *parts[3];

	get_all(pool, bufs, 192);
	for (unsigned i = 0; i < 130; i++)
		pcpa_pool_put(pool, bufs[i]);
	put_bulk_elsewhere(heap, bufs + 130, 62);
	expect_stats(pool, .alloc_empty = 3, .alloc_slow = 3, .alloc_fast = 189,
		     .recycle_cached = 128, .recycle_cache_full = 2,
		     .recycle_ring = 64, .hold = 192, .inflight = 192,
		     .cached = 128);
	get_all(pool, bufs, 192);
	for (unsigned i = 0; i < 3; i++)
		parts[i] = pcpa_pool_get_frag(pool, 2048, NULL);
	put_elsewhere(pool, parts, 3);
	pcpa_pool_ref(heap, bufs[0]);
	put_elsewhere(pool, bufs, 192);
	cr_expect_eq(pool_stats(pool).bad_puts, 0);
	pool_end(pool);
	cr_expect_eq(pcpa_pool_unref(heap, bufs[0]), 0);
	heap_end(heap);
}
