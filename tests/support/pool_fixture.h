/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_fixture.h - packet pools for suites: a system that writes down what is said
 * and whose clock the test turns, puts by another thread, statistics to the number.
 */
#ifndef POOL_FIXTURE_H
#define POOL_FIXTURE_H

#include <pcpalloc/page_pool.h>

#include "../../lib/atomics.h"
#include "heap_fixture.h"
#include "sys/sys.h"

#define SECOND UINT64_C(1000000000)
#define PAGE ((size_t)4096)

static struct pcpi_sys pool_sys;
static uint64_t pool_now_ns = 1000 * SECOND;
static char pool_said[8192];
static size_t pool_said_len;

static uint64_t pool_clock(void)
{
	return pcpi_load_relaxed(&pool_now_ns);
}

static void pool_write(const char *text, size_t len)
{
	if (pool_said_len + len < sizeof(pool_said))
		memcpy(pool_said + pool_said_len, text, len);
	pool_said_len += len;
}

static void pool_sys_install(void)
{
	pool_sys = pcpi_sys_linux;
	pool_sys.coarse_ns = pool_clock;
	pool_sys.write_err = pool_write;
	pcpi_sys = &pool_sys;
}

static inline unsigned pool_said_count(const char *text)
{
	const char *at = pool_said;
	unsigned n = 0;

	for (; (at = strstr(at, text)); n++)
		at++;
	return n;
}

/* A heap that says things. */
static inline struct pcpa_heap *pool_heap(size_t bytes, unsigned flags,
					  unsigned reserve_pages)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL;

	o.flags = flags | PCPA_HEAP_FIXED;
	o.initial_bytes = bytes;
	o.reserve_pages = reserve_pages;
	o.hugepage_bytes = 2 * MIB; /* else a fall may be said */
	cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
	memset(pool_said, 0, sizeof(pool_said));
	pool_said_len = 0;
	return heap;
}

static inline struct pcpa_pool *pool_of(struct pcpa_heap *heap,
					struct pcpa_pool_options o)
{
	struct pcpa_pool *pool = NULL;
	int err;

	o.struct_size = sizeof(o);
	err = pcpa_pool_create(heap, &o, &pool);
	cr_assert_eq(err, 0, "create: %d", err);
	return pool;
}

/* pool_with(heap, .order = 1, ...) */
#define pool_with(heap, ...)                                                   \
	pool_of((heap), (struct pcpa_pool_options){ __VA_ARGS__ })

static inline struct pcpa_pool_stats pool_stats(const struct pcpa_pool *pool)
{
	struct pcpa_pool_stats s = PCPA_POOL_STATS_INIT;

	cr_assert_eq(pcpa_pool_stats_read(pool, &s), 0);
	return s;
}

static inline struct pcpa_pool_info info_of(const struct pcpa_pool *pool)
{
	struct pcpa_pool_info info = PCPA_POOL_INFO_INIT;

	cr_assert_eq(pcpa_pool_info_read(pool, &info), 0);
	return info;
}

/* expect_stats(pool, .alloc_fast = 3, ...): all others are 0 but for the counts
 * of pages, which are looked at where hold is given. */
#define expect_stats(pool, ...)                                                \
	pool_stats_compare(pool_stats(pool),                                   \
			   (struct pcpa_pool_stats){ __VA_ARGS__ }, __LINE__)

static inline void pool_stats_compare(struct pcpa_pool_stats is,
				      struct pcpa_pool_stats want, int line)
{
#define SAME(name)                                                             \
	cr_expect_eq(is.name, want.name, "line %d: " #name " %llu, not %llu",  \
		     line, (unsigned long long)is.name,                        \
		     (unsigned long long)want.name)
	SAME(alloc_fast);
	SAME(alloc_slow);
	SAME(alloc_slow_ho);
	SAME(alloc_empty);
	SAME(alloc_refill);
	SAME(alloc_waive);
	SAME(recycle_cached);
	SAME(recycle_cache_full);
	SAME(recycle_ring);
	SAME(recycle_ring_full);
	SAME(recycle_released_ref);
	SAME(bad_puts);
	if (want.hold) {
		SAME(hold);
		SAME(release);
		SAME(inflight);
		SAME(cached);
	}
#undef SAME
}

/* ---- Another thread ----------------------------------------------------------- */

struct pool_job {
	struct pcpa_pool *pool;
	struct pcpa_heap *heap; /* a bulk put */
	void **bufs;
	size_t n;
};

static inline void *pool_job_run(void *arg)
{
	struct pool_job *job = arg;

	if (job->heap)
		pcpa_pool_put_bulk(job->heap, job->bufs, job->n);
	else
		for (size_t i = 0; i < job->n; i++)
			pcpa_pool_put(job->pool, job->bufs[i]);
	return NULL;
}

static inline void put_elsewhere(struct pcpa_pool *pool, void **bufs, size_t n)
{
	struct pool_job job = { pool, NULL, bufs, n };

	thread_run(pool_job_run, &job);
}

static inline void put_bulk_elsewhere(struct pcpa_heap *heap, void **bufs,
				      size_t n)
{
	struct pool_job job = { NULL, heap, bufs, n };

	thread_run(pool_job_run, &job);
}

/* Gets n, one by one. */
static inline void get_all(struct pcpa_pool *pool, void **bufs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bufs[i] = pcpa_pool_get(pool);
		cr_assert(bufs[i], "%zu of %zu: errno %d", i, n, errno);
	}
}

/* The pool ends at once, and with it everything. */
static inline void pool_end(struct pcpa_pool *pool)
{
	cr_assert_eq(pcpa_pool_destroy(pool), 0);
}

static inline void pool_and_heap_end(struct pcpa_pool *pool,
				     struct pcpa_heap *heap)
{
	pool_end(pool);
	heap_end(heap);
}

#endif
