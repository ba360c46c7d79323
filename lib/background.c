/* SPDX-License-Identifier: BSD-2-Clause */
/* background.c - see background.h. */
#include "background.h"

#include <time.h>

#include "sys/sys.h"

#define SECOND_NS UINT64_C(1000000000)

/* False: to stop. */
static bool sleep_for(struct pcpi_background *b, uint64_t ns)
{
	uint64_t at = pcpi_sys->clock_ns() + ns;
	struct timespec until = {
		.tv_sec = (time_t)(at / SECOND_NS),
		.tv_nsec = (long)(at % SECOND_NS),
	};
	bool stop;

	pthread_mutex_lock(&b->mutex);
	if (!b->stop)
		pthread_cond_timedwait(&b->wake, &b->mutex, &until);
	stop = b->stop;
	pthread_mutex_unlock(&b->mutex);
	return !stop;
}

static void *background_main(void *arg)
{
	struct pcpi_background *b = arg;

	while (sleep_for(b, b->work(b->arg)))
		;
	return NULL;
}

static void fini(struct pcpi_background *b)
{
	pthread_cond_destroy(&b->wake);
	pthread_mutex_destroy(&b->mutex);
}

int pcpi_background_start(struct pcpi_background *b, uint64_t (*work)(void *arg),
			  void *arg)
{
	pthread_condattr_t attr;
	int err;

	b->work = work;
	b->arg = arg;
	b->stop = false;
	pthread_mutex_init(&b->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->wake, &attr);
	pthread_condattr_destroy(&attr);
	err = pcpi_sys->thread_start("pcpalloc", background_main, b, &b->thread);
	b->running = err == 0;
	if (err)
		fini(b);
	return err;
}

void pcpi_background_stop(struct pcpi_background *b)
{
	if (!b->running)
		return;
	pthread_mutex_lock(&b->mutex);
	b->stop = true;
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->mutex);
	pcpi_sys->thread_join(b->thread); /* BG1 */
	fini(b);
	b->running = false;
}

void pcpi_background_forked(struct pcpi_background *b)
{
	b->running = false;
}
