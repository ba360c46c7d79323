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

/*
 * The spinner runs sequences that go on until they are cut; the tester, once it
 * sees one move beside itself, calls membarrier.  That it was the call that cut it
 * is certain: the spinner has all signals blocked and was not switched meanwhile.
 * Where it goes on after the call the kernel has lied.
 *
 * Where the caller may use one CPU only the two are never seen beside each other,
 * and nothing but a switch needs to cut a sequence while that lasts.  There it is
 * proof enough that one did, and that the call says yes.
 */
#define TEST_TURNS (1u << 16) /* some milliseconds: ends beside a tester of a
				 real-time class, too */
#define TEST_LOOKS 10000u /* some hundred microseconds */
#define TEST_CALLS 4u /* a spinner */
#define TEST_SPINNERS 4u
#define TEST_WAIT_NS UINT64_C(30000000)

struct test {
	uint32_t stop;	   /* by the tester; by the spinner: it can't run */
	uint32_t starts;   /* sequences begun, by the spinner, as the next three */
	uint32_t turns;	   /* within sequences */
	uint32_t cut;	   /* the start that was cut without a switch */
	uint32_t switched; /* one was cut by a switch */
	uint32_t ended;	   /* where sequences commit */
	unsigned calls;	   /* by the tester */
};

enum verdict { UNSEEN, WORKS, FAILS };

/* True when it was cut short. */
static bool spin(struct test *t)
{
	void *tmp, *at;

	__asm__ __volatile__ goto(PCPI_RSEQ_BEGIN
				  "movl %[n], %k[at]\n"
				  "5:\tpause\n\t"
				  "addl $1, %[turns]\n\t"
				  "cmpl $0, %[stop]\n\t"
				  "jne 6f\n\t"
				  "subl $1, %k[at]\n\t"
				  "jnz 5b\n"
				  "6:\tmovl $1, %[ended]"
				  PCPI_RSEQ_END
				  : [tmp] "=&r"(tmp), [at] "=&r"(at)
				  : PCPI_RSEQ_OPERAND, [turns] "m"(t->turns),
				    [stop] "m"(t->stop), [ended] "m"(t->ended),
				    [n] "i"(TEST_TURNS)
				  : "memory", "cc"
				  : out);
	return false;
out:
	return true;
}

static void spin_once(struct test *t)
{
	uint64_t before = pcpi_sys->switches();

	if (!spin(t)) {
		pcpi_sys->yield();
		return;
	}
	/* relaxed: the next start tells. */
	if (pcpi_sys->switches() == before)
		pcpi_store_relaxed(&t->cut, t->starts);
	else
		pcpi_store_relaxed(&t->switched, 1);
}

static void *spinner(void *arg)
{
	struct test *t = arg;

	if (!pcpi_rseq_ready())
		pcpi_store_relaxed(&t->stop, 1); /* relaxed: nothing to see. */
	/* relaxed: it is all that is said. */
	while (!pcpi_load_relaxed(&t->stop)) {
		/* release: pairs with changes(), beside() and
		 * test_round(). */
		pcpi_store_release(&t->starts, t->starts + 1);
		spin_once(t);
	}
	return NULL;
}

/* Waits a moment for *word to change; a yield may take many times that. */
static bool changes(const uint32_t *word, uint32_t from)
{
	unsigned n;

	for (n = 0; n < TEST_LOOKS; n++) {
		/* acquire: pairs with spinner(), whose turns are stores in order. */
		if (pcpi_load_acquire(word) != from)
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/* Whether the sequence of that start is seen to move. */
static bool beside(const struct test *t, uint32_t start)
{
	/* relaxed: any will do. */
	return changes(&t->turns, pcpi_load_relaxed(&t->turns)) &&
	       /* acquire: pairs with spinner(). */
	       pcpi_load_acquire(&t->starts) == start;
}

/* At most one call. */
static enum verdict test_round(struct test *t)
{
	/* acquire (of this function): pairs with spinner(). */
	uint32_t start = pcpi_load_acquire(&t->starts), turns, seen;
	uint64_t deadline;

	if (!beside(t, start))
		return UNSEEN;
	t->calls++;
	if (pcpi_sys->membarrier_rseq() != 0)
		return FAILS;
	turns = pcpi_load_acquire(&t->turns); /* pairs with spinner() */
	deadline = pcpi_sys->clock_ns() + TEST_WAIT_NS;
	do {
		/* In this order: turns of the next start come after it. */
		seen = pcpi_load_acquire(&t->turns); /* pairs with spinner() */
		if (pcpi_load_acquire(&t->starts) != start)
			/* relaxed: told by the start. */
			return pcpi_load_relaxed(&t->cut) == start ? WORKS
								   : UNSEEN;
		if (seen != turns)
			return FAILS;
		if (!changes(&t->starts, start))
			pcpi_sys->yield();
	} while (pcpi_sys->clock_ns() < deadline);
	return UNSEEN;
}

static enum verdict test_rounds(struct test *t, bool one_cpu)
{
	uint64_t deadline = pcpi_sys->clock_ns() + TEST_WAIT_NS;
	enum verdict verdict = UNSEEN;

	while (verdict == UNSEEN && t->calls < TEST_CALLS &&
	       pcpi_sys->clock_ns() < deadline) {
		if (pcpi_load_relaxed(&t->stop)) /* relaxed: set once. */
			return FAILS;
		verdict = test_round(t);
		if (verdict == UNSEEN && one_cpu &&
		    pcpi_load_relaxed(&t->switched)) /* relaxed: set once. */
			verdict = pcpi_sys->membarrier_rseq() ? FAILS : WORKS;
		if (verdict == UNSEEN)
			pcpi_sys->yield();
	}
	return verdict;
}

static enum verdict test_spinner(bool one_cpu)
{
	struct test t = { 0 };
	enum verdict verdict;
	pthread_t thread;

	if (pcpi_sys->thread_start("pcpalloc", spinner, &t, &thread))
		return FAILS;
	verdict = test_rounds(&t, one_cpu);
	pcpi_store_relaxed(&t.stop, 1); /* relaxed: it is all that is said. */
	pcpi_sys->thread_join(thread);
	return verdict;
}

/* On a loaded machine two threads may share a processor for long, although there
 * are others; a new one is put where there is most room.  The last is believed as
 * with one CPU, so that load alone doesn't switch sequences off. */
static bool test(void)
{
	bool one_cpu = pcpi_sys->cpus() == 1;
	enum verdict verdict = UNSEEN;
	unsigned n;

	for (n = 0; n < TEST_SPINNERS && verdict == UNSEEN; n++)
		verdict = test_spinner(one_cpu || n == TEST_SPINNERS - 1);
	return verdict == WORKS;
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
