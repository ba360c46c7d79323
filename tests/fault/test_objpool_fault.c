/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_objpool_fault.c - each system call of the life of a pool of objects fails once:
 * there is a pool with all objects or none, and afterwards nothing is mapped.
 */
#include <pcpalloc/objpool.h>

#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"

/* More calls than any life makes. */
#define MAX_CALLS 1000u
#define OBJECTS 700u

static void pool_live(struct pcpa_objpool *pool, unsigned fail_call)
{
	void *objects[OBJECTS];
	unsigned n = 0;

	for (; n < OBJECTS; n++) {
		objects[n] = pcpa_objpool_get(pool);
		cr_assert(objects[n], "call %u: object %u", fail_call, n);
	}
	cr_expect_null(pcpa_objpool_get(pool), "call %u", fail_call);
	cr_assert_eq(pcpa_objpool_put_bulk(pool, objects, n - 100), 0);
	cr_expect_eq(pcpa_objpool_count(pool), OBJECTS - 100);
}

/* Whether the life came to its end before that call.  Memory that the
 * kernel doesn't take back at the end stays, which is all that may. */
static bool life(unsigned fail_call, unsigned stays)
{
	struct pcpa_objpool_options o = PCPA_OBJPOOL_OPTIONS_INIT;
	struct pcpa_objpool pool;
	unsigned before_end = 0;
	int err;

	fake_sys_install();
	fake.fail_call = fail_call;
	o.nr_objects = OBJECTS;
	o.object_bytes = 2176;
	o.head_bytes = 64;
	err = pcpa_objpool_create(&o, &pool);
	if (err == 0) {
		pool_live(&pool, fail_call);
		before_end = fake.calls;
		cr_assert_eq(pcpa_objpool_destroy(&pool), 0);
	} else {
		cr_expect_eq(err, -ENOMEM, "call %u: %d", fail_call, err);
	}
	if (err || fail_call <= before_end || fail_call > fake.calls)
		cr_expect_eq(fake_sys_mapped(), stays, "call %u: %d", fail_call, err);
	return fake.calls < fail_call;
}

Test(objpool_fault, each_call_fails_once)
{
	unsigned call = 1;

	life(MAX_CALLS, 1); /* the thread's record */
	while (!life(call, 0))
		cr_assert_lt(++call, MAX_CALLS);
	cr_expect_gt(call, 10);
}
