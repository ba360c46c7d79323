/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover.h - hands pointers from one thread to another, blocking.
 */
#ifndef PCPREPLAY_HANDOVER_H
#define PCPREPLAY_HANDOVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One putter, one taker.  Fields are protected by lock; those marked c are
 * fixed after init.
 */
struct handover {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	pthread_cond_t emptied;
	void **slots;   /* c */
	size_t room;    /* c */
	size_t wake_at; /* c: a sleeping taker is woken at this count */
	bool newest;    /* c: take the newest first */
	size_t head;    /* oldest, when oldest first */
	size_t count;
	uint64_t nr_put; /* ever */
	bool taker_sleeps;
	bool taker_wants_any; /* ... for the next put, whatever the count */
	bool putter_sleeps;
	bool flushed; /* the taker shall not wait for wake_at */
	bool closed;
};

/* Returns 0 or an errno.  A closed or failed handover needs no destroy. */
int handover_init(struct handover *h, size_t room, bool newest);
void handover_destroy(struct handover *h);

/* Puts n items, waiting for room.  False when the handover is closed. */
bool handover_put(struct handover *h, void *const *items, size_t n);

/* Lets a sleeping taker have what is there although it is little.  To be
 * called before the putter itself goes to sleep elsewhere. */
void handover_flush(struct handover *h);

/* Takes up to n items that are there now. */
size_t handover_try_take(struct handover *h, void **items, size_t n);

/* Takes up to n items, waiting for the first; 0 when closed and empty. */
size_t handover_take(struct handover *h, void **items, size_t n);

/* Items ever put. */
uint64_t handover_puts(struct handover *h);

/* Waits until more than `seen` items were ever put, or it is closed. */
void handover_await_put(struct handover *h, uint64_t seen);

/* Takers get what is left, then 0; putters get false. */
void handover_close(struct handover *h);

#endif
