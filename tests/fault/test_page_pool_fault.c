/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_fault.c - each system call of a packet pool's life fails once.
 *
 * A life is two pools, buffers from a heap that grows for them, parts, a resize, the
 * end.  Whatever fails, each call succeeds or says so and changes nothing, and
 * afterwards every page is back and nothing is mapped.
 */
#include <pcpalloc/page_pool.h>

#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"

/* More calls than any life makes. */
#define MAX_CALLS 1000u
#define MOST 3000u

static void *bufs[MOST];

static struct pcpa_pool_stats stats_get(const struct pcpa_pool *pool)
{
	struct pcpa_pool_stats s = PCPA_POOL_STATS_INIT;

	cr_assert_eq(pcpa_pool_stats_read(pool, &s), 0);
	return s;
}

/* A failure costs the call its success, but not the next one's. */
static struct pcpa_pool *pool_get(struct pcpa_heap *heap, unsigned slots)
{
	struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;
	struct pcpa_pool *pool = NULL;
	unsigned mapped = fake_sys_mapped();
	int err;

	o.ring_slots = slots;
	err = pcpa_pool_create(heap, &o, &pool);
	if (err) {
		cr_expect_eq(err, -ENOMEM);
		cr_expect_null(pool);
		cr_expect_eq(fake_sys_mapped(), mapped);
		cr_assert_eq(pcpa_pool_create(heap, &o, &pool), 0);
	}
	return pool;
}

static size_t bufs_get(struct pcpa_pool *pool)
{
	size_t n = 0;

	while (n < MOST) {
		bufs[n] = pcpa_pool_get(pool);
		if (!bufs[n]) {
			cr_expect_eq(errno, ENOMEM);
			break;
		}
		n++;
	}
	cr_expect_eq((size_t)stats_get(pool).inflight,
		     n + stats_get(pool).cached);
	return n;
}

static void resize(struct pcpa_pool *pool, unsigned slots, unsigned before)
{
	struct pcpa_pool_info info = PCPA_POOL_INFO_INIT;
	int err = pcpa_pool_resize(pool, slots);

	cr_assert_eq(pcpa_pool_info_read(pool, &info), 0);
	cr_expect_eq(info.ring_slots, err ? before : slots);
	if (err) {
		cr_expect_eq(err, -ENOMEM);
		cr_expect_eq(pcpa_pool_resize(pool, slots), 0);
	}
}

static void pools_live(struct pcpa_heap *heap)
{
	struct pcpa_pool *a = pool_get(heap, 1000), *b = pool_get(heap, 10);
	void *parts[3];
	size_t n;

	n = bufs_get(a);
	pcpa_pool_put_bulk(heap, bufs, n);
	resize(a, 5000, 1000);
	for (unsigned i = 0; i < 3; i++)
		parts[i] = pcpa_pool_get_frag(b, 2048, NULL);
	cr_expect_eq(pcpa_pool_destroy(b), (parts[0] || parts[1]) + !!parts[2]);
	pcpa_pool_put_bulk(heap, parts, 3);
	cr_expect_eq(pcpa_pool_destroy(a), 0);
}

/* Whether the life came to its end before that call. */
static bool life(unsigned fail_call)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL;

	fake_sys_install();
	fake.fail_call = fail_call;
	o.max_bytes = 16 * MIB;
	if (pcpa_heap_create(&o, &heap) == 0) {
		pools_live(heap);
		cr_expect_eq(stats_summed(heap).used_blocks, 0, "call %u",
			     fail_call);
		cr_expect_eq(stats_summed(heap).bad_frees, 0);
		cr_assert_eq(pcpa_heap_destroy(heap), 0);
	}
	return fake.calls < fail_call;
}

Test(page_pool_fault, each_call_fails_once)
{
	unsigned call = 1;

	while (!life(call))
		cr_assert_lt(++call, MAX_CALLS);
	cr_expect_gt(call, 10);
}
