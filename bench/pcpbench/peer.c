/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer.c - the second thread: asleep between jobs, pinned, met at a gate.
 *
 * The peer sleeps on a condition variable, not in a spin loop: while another
 * allocator has its turn nothing of this process may run.
 *
 * Gate: `come` counts arrivals.  Arrivals 2k and 2k+1 belong to round k; the
 * first waits until the count has left its round.  The count never goes back,
 * so a fast party that is already at the next gate disturbs nobody.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tsc.h"

void bench_gate_pass(struct bench_gate *g)
{
	/* pairs with itself in the other thread: what was written before the
	 * gate is seen behind it. */
	unsigned mine =
		atomic_fetch_add_explicit(&g->come, 1, memory_order_acq_rel);

	if (mine % 2)
		return;
	/* pairs with the addition above. */
	while (atomic_load_explicit(&g->come, memory_order_acquire) == mine + 1)
		bench_pause();
}

int bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? errno : 0;
}

long bench_cpu_losses(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

static void *peer_main(void *arg)
{
	struct bench_peer *p = arg;

	pthread_mutex_lock(&p->mutex);
	for (;;) {
		while (!p->job && !p->leave)
			pthread_cond_wait(&p->changed, &p->mutex);
		if (p->leave)
			break;
		void (*job)(void *) = p->job;
		void *job_arg = p->arg;

		pthread_mutex_unlock(&p->mutex);
		job(job_arg);
		pthread_mutex_lock(&p->mutex);
		p->job = NULL;
		p->busy = false;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

int bench_peer_start(struct bench_peer *p, int cpu)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	*p = (struct bench_peer){.job = NULL};
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->changed, NULL);
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	pthread_attr_init(&attr);
	err = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	if (!err)
		err = pthread_create(&p->thread, &attr, peer_main, p);
	pthread_attr_destroy(&attr);
	return err;
}

void bench_peer_run(struct bench_peer *p, void (*job)(void *), void *arg)
{
	pthread_mutex_lock(&p->mutex);
	p->job = job;
	p->arg = arg;
	p->busy = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->mutex);
}

void bench_peer_wait(struct bench_peer *p)
{
	pthread_mutex_lock(&p->mutex);
	while (p->busy)
		pthread_cond_wait(&p->changed, &p->mutex);
	pthread_mutex_unlock(&p->mutex);
}

void bench_peer_stop(struct bench_peer *p)
{
	pthread_mutex_lock(&p->mutex);
	p->leave = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->mutex);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->mutex);
}
