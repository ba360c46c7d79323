/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcu.c - grace periods beside sections: what a writer has replaced and waited for
 * is not looked at any more.  Two writers, which share nothing but the sides, replace
 * a word each and overwrite the old one; readers, some of them nested, must never see
 * an overwritten one, and ThreadSanitizer no race.
 */
#include "conc.h"

#define READERS 3u
#define WRITERS 2u

struct word {
	uint64_t live; /* plain: who looks is in a section */
};

static struct {
	struct word words[2];
	struct word *now; /* a */
	uint64_t periods;
} states[WRITERS];
static bool stop;

static void look(unsigned w)
{
	/* acquire: pairs with replace(). */
	CHECK(pcpi_load_acquire(&states[w].now)->live);
}

static void reader(unsigned index, void *arg)
{
	struct pcpi_section outer, inner;

	(void)arg;
	while (!conc_flag(&stop)) {
		outer = pcpi_rcu_read_lock();
		look(index % WRITERS);
		inner = pcpi_rcu_read_lock();
		look((index + 1) % WRITERS);
		pcpi_rcu_read_unlock(inner);
		look(index % WRITERS);
		pcpi_rcu_read_unlock(outer);
	}
}

static void replace(unsigned w)
{
	/* relaxed: its writer's own. */
	struct word *old = pcpi_load_relaxed(&states[w].now);
	struct word *next = &states[w].words[old == states[w].words];

	next->live = 1;
	/* release: pairs with look(). */
	pcpi_store_release(&states[w].now, next);
	pcpi_rcu_synchronize();
	old->live = 0;
	states[w].periods++;
}

static void writer(unsigned index, void *arg)
{
	uint64_t end = conc_now_ms() + conc_size(20000, 1000, 2000);

	(void)arg;
	while (conc_now_ms() < end)
		replace(index);
}

int main(void)
{
	struct conc_thread readers[READERS];
	unsigned w;

	for (w = 0; w < WRITERS; w++) {
		states[w].words[0].live = 1;
		/* relaxed: no other thread. */
		pcpi_store_relaxed(&states[w].now, &states[w].words[0]);
	}
	conc_start(readers, READERS, reader, NULL);
	conc_run(WRITERS, writer, NULL);
	conc_raise(&stop);
	conc_join(readers, READERS);
	for (w = 0; w < WRITERS; w++)
		CHECK_U64(states[w].periods, >, 1);
	fprintf(stderr, "%" PRIu64 " and %" PRIu64 " grace periods\n",
		states[0].periods, states[1].periods);
	return 0;
}
