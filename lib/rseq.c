/* SPDX-License-Identifier: BSD-2-Clause */
/* rseq.c - see rseq.h. */
#include "rseq.h"

#include <pthread.h>

#include "atomics.h"
#include "sys/sys.h"

#if PCPI_RSEQ

#include <linux/rseq.h>

/* Where threads announce in vain: RS2. */
static __thread uint64_t nowhere __attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool works;
static intptr_t area; /* of struct rseq, from the thread pointer; 0: none */

intptr_t pcpi_rseq_cs;

/* ---- Self-test: a sequence that doesn't end is cut short ------------------- */

#define TEST_ROUNDS (1u << 20) /* some ten milliseconds */
#define TEST_WAIT_NS UINT64_C(50000000)

struct test {
	uint32_t inside, done, aborted;
};

/* True when it was cut short. */
static bool test_spin(struct test *t)
{
	void *tmp, *at;

	__asm__ __volatile__ goto(PCPI_RSEQ_BEGIN
				  "movl $1, %[inside]\n\t"
				  "movl %[n], %k[at]\n"
				  "5:\tpause\n\t"
				  "subl $1, %k[at]\n\t"
				  "jnz 5b\n\t"
				  "movl $0, %[inside]"
				  PCPI_RSEQ_END
				  : [tmp] "=&r"(tmp), [at] "=&r"(at)
				  : [inside] "m"(t->inside),
				    [n] "i"(TEST_ROUNDS)
				  : "memory", "cc"
				  : out);
	return false;
out:
	return true;
}

static void test_run(void *arg, unsigned i)
{
	struct test *t = arg;
	uint64_t deadline = pcpi_sys->clock_ns() + TEST_WAIT_NS;

	if (i == 0) {
		t->aborted = pcpi_rseq_ready() && test_spin(t);
		/* release: pairs with itself, in the other thread. */
		pcpi_store_release(&t->done, 1);
		return;
	}
	/* acquire: as above. */
	while (!pcpi_load_acquire(&t->done) && pcpi_sys->clock_ns() < deadline) {
		/* relaxed: a hint. */
		if (!pcpi_load_relaxed(&t->inside))
			pcpi_sys->yield();
		else if (pcpi_sys->membarrier_rseq() != 0)
			break;
	}
}

static bool test(void)
{
	struct test t = { 0 };

	pcpi_sys->parallel(2, test_run, &t);
	return t.aborted;
}

static void setup(void)
{
	ptrdiff_t offset;

	pcpi_rseq_cs = (intptr_t)&nowhere - (intptr_t)__builtin_thread_pointer();
	if (pcpi_sys->rseq_offset(&offset) ||
	    pcpi_sys->membarrier_rseq_register())
		return;
	area = offset;
	pcpi_rseq_cs = area + (intptr_t)offsetof(struct rseq, rseq_cs);
	works = test();
}

bool pcpi_rseq_setup(void)
{
	pthread_once(&once, setup);
	return works;
}

bool pcpi_rseq_ready(void)
{
	intptr_t self = (intptr_t)__builtin_thread_pointer();
	const struct rseq *r = (const struct rseq *)(self + area);

	/* relaxed: only its sign counts, which stays as it is. */
	return area != 0 && (int32_t)pcpi_load_relaxed(&r->cpu_id) >= 0;
}

#else

bool pcpi_rseq_setup(void)
{
	return false;
}

bool pcpi_rseq_ready(void)
{
	return false;
}

#endif
