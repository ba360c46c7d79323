/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objpool.c - threads that get objects, hand them on and put what they were handed:
 * each object is in one hand, stays constructed, and in the end all are there.
 *
 *   lanes     each thread puts what the one before it got
 *   orders    pages, and blocks of four
 *   scarce    fewer objects than the threads want
 */
#include <pcpalloc/objpool.h>

#include "conc.h"

#define THREADS 4u
#define BURST 32u
#define SLOTS 64u
#define MS 400u

struct object {
	uint64_t holder; /* 0: free */
	uint64_t self;	 /* since it was constructed */
};

struct objects_case {
	struct pcpa_objpool pool;
	void *slots[THREADS][SLOTS]; /* a: from a thread to the next */
	uint64_t moved;		     /* a */
	unsigned at_once;
	bool stop;
};

static void hold(struct object *o, uint64_t was, uint64_t is)
{
	CHECK(o->self == (uintptr_t)o);
	CHECK(o->holder == was);
	o->holder = is;
}

static void give(struct objects_case *the, unsigned to, unsigned i, void *object)
{
	void *old;

	/* acquire/release: pairs with itself. */
	old = __atomic_exchange_n(&the->slots[to][i], object, __ATOMIC_ACQ_REL);
	if (!old)
		return;
	hold(old, 1, 0);
	CHECK(pcpa_objpool_put(&the->pool, old) == 0);
}

static void take_and_put(struct objects_case *the, unsigned index)
{
	void *mine[SLOTS];
	unsigned i, n = 0;

	for (i = 0; i < SLOTS; i++) {
		/* acquire/release: pairs with give(). */
		mine[n] = __atomic_exchange_n(&the->slots[index][i], NULL,
					      __ATOMIC_ACQ_REL);
		n += mine[n] != NULL;
	}
	for (i = 0; i < n; i++)
		hold(mine[i], 1, 0);
	CHECK(pcpa_objpool_put_bulk(&the->pool, mine, n) == 0);
}

static void hand_on(unsigned index, void *arg)
{
	struct objects_case *the = arg;
	void *got[BURST];
	unsigned i, at = 0;

	while (!conc_flag(&the->stop)) {
		if (pcpa_objpool_get_bulk(&the->pool, got, the->at_once)) {
			for (i = 0; i < the->at_once; i++) {
				hold(got[i], 0, 1);
				give(the, (index + 1) % THREADS, at++ % SLOTS,
				     got[i]);
			}
			pcpi_fetch_add_relaxed(&the->moved, the->at_once);
		} else {
			CHECK(errno == ENOMEM);
		}
		take_and_put(the, index);
	}
	take_and_put(the, index);
}

/* All objects, which nobody else has. */
static void construct(struct objects_case *the, uint32_t n)
{
	void **objects = calloc(n, sizeof(*objects));

	CHECK(objects && pcpa_objpool_get_bulk(&the->pool, objects, n));
	for (uint32_t i = 0; i < n; i++)
		*(struct object *)objects[i] =
			(struct object){ .self = (uintptr_t)objects[i] };
	CHECK(pcpa_objpool_put_bulk(&the->pool, objects, n) == 0);
	free(objects);
}

static void all_are_there(struct objects_case *the, uint32_t n)
{
	uint32_t got = 0;
	struct object *o;

	for (; (o = pcpa_objpool_get(&the->pool)); got++)
		hold(o, 0, 1);
	CHECK(errno == ENOMEM);
	CHECK(got == n);
}

static void objects_run(uint32_t n, size_t bytes, unsigned at_once)
{
	struct pcpa_objpool_options o = PCPA_OBJPOOL_OPTIONS_INIT;
	struct objects_case the = { .at_once = at_once };
	struct conc_thread threads[THREADS];

	o.nr_objects = n;
	o.object_bytes = bytes;
	o.head_bytes = 64;
	CHECK(pcpa_objpool_create(&o, &the.pool) == 0);
	construct(&the, n);
	conc_start(threads, THREADS, hand_on, &the);
	conc_drain_for(the.pool.heap, MS);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		take_and_put(&the, i);
	CHECK(the.moved > 0);
	CHECK(pcpa_objpool_count(&the.pool) == n);
	all_are_there(&the, n);
	CHECK(pcpa_objpool_destroy(&the.pool) == 0);
}

int main(void)
{
	objects_run(5000, 2176, BURST);
	objects_run(5000, 2176, 1);
	objects_run(1000, 9728, 7);
	objects_run(100, 64, BURST);
	return 0;
}
