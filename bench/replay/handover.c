/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handover.c - a bounded blocking queue that wakes seldom.
 *
 * Owns the slots and who sleeps; not the items.
 *
 *   putter --put--> [ . . x x x x . . ] --take--> taker
 *                     ^ asleep: woken at wake_at items, by flush or by close
 *
 * Three threads on two processors would spend their time in the scheduler if
 * each item woke its taker.  So a taker that found nothing sleeps until half the
 * room is filled, and a putter that found no room until half of it is free.
 * A thread that goes to sleep calls handover_flush() on what it puts into, so
 * nothing waits for company that won't come.
 *
 * Invariants:
 *   H1  count <= room
 *   H2  a taker sleeps only while count < wake_at and not flushed or closed
 *   H3  a putter sleeps only while count > room / 2 was true since it found
 *       the queue full
 *
 * Concurrency: one mutex, held for a copy of pointers.
 * Cost: two uncontended lock operations a call.  Failure: only init.
 * Proved by bench/replay/test_replay.c.
 */
#include "handover.h"

#include <errno.h>
#include <stdlib.h>

int handover_init(struct handover *h, size_t room, bool newest)
{
	int rc;

	*h = (struct handover){.room = room,
			       .wake_at = room / 2 ? room / 2 : 1,
			       .newest = newest};
	h->slots = calloc(room, sizeof(*h->slots));
	if (!h->slots)
		return ENOMEM;
	rc = pthread_mutex_init(&h->lock, NULL);
	if (rc)
		goto free_slots;
	rc = pthread_cond_init(&h->filled, NULL);
	if (rc)
		goto destroy_lock;
	rc = pthread_cond_init(&h->emptied, NULL);
	if (rc)
		goto destroy_filled;
	return 0;

destroy_filled:
	pthread_cond_destroy(&h->filled);
destroy_lock:
	pthread_mutex_destroy(&h->lock);
free_slots:
	free(h->slots);
	return rc;
}

void handover_destroy(struct handover *h)
{
	pthread_cond_destroy(&h->emptied);
	pthread_cond_destroy(&h->filled);
	pthread_mutex_destroy(&h->lock);
	free(h->slots);
}

static void taker_wake_locked(struct handover *h)
{
	if (h->taker_sleeps && (h->count >= h->wake_at || h->flushed ||
				h->closed || h->taker_wants_any))
		pthread_cond_signal(&h->filled);
}

static void room_await_locked(struct handover *h)
{
	if (h->count < h->room || h->closed)
		return;
	h->putter_sleeps = true;
	while (h->count > h->room / 2 && !h->closed)
		pthread_cond_wait(&h->emptied, &h->lock);
	h->putter_sleeps = false;
}

bool handover_put(struct handover *h, void *const *items, size_t n)
{
	size_t done = 0;

	pthread_mutex_lock(&h->lock);
	while (done < n) {
		room_await_locked(h);
		if (h->closed)
			break;
		h->slots[(h->head + h->count) % h->room] = items[done++];
		h->count++;
		h->nr_put++;
		taker_wake_locked(h);
	}
	pthread_mutex_unlock(&h->lock);
	return done == n;
}

void handover_flush(struct handover *h)
{
	pthread_mutex_lock(&h->lock);
	if (h->count) {
		h->flushed = true;
		taker_wake_locked(h);
	}
	pthread_mutex_unlock(&h->lock);
}

static size_t items_take_locked(struct handover *h, void **items, size_t n)
{
	size_t taken = 0;

	for (; taken < n && h->count; taken++) {
		h->count--;
		if (h->newest) {
			items[taken] = h->slots[(h->head + h->count) % h->room];
		} else {
			items[taken] = h->slots[h->head];
			h->head = (h->head + 1) % h->room;
		}
	}
	if (!h->count)
		h->flushed = false;
	if (h->putter_sleeps && h->count <= h->room / 2)
		pthread_cond_signal(&h->emptied);
	return taken;
}

size_t handover_try_take(struct handover *h, void **items, size_t n)
{
	size_t taken;

	pthread_mutex_lock(&h->lock);
	taken = items_take_locked(h, items, n);
	pthread_mutex_unlock(&h->lock);
	return taken;
}

size_t handover_take(struct handover *h, void **items, size_t n)
{
	size_t taken;

	pthread_mutex_lock(&h->lock);
	if (!h->count) {
		h->taker_sleeps = true;
		while (h->count < h->wake_at && !h->flushed && !h->closed)
			pthread_cond_wait(&h->filled, &h->lock);
		h->taker_sleeps = false;
	}
	taken = items_take_locked(h, items, n);
	pthread_mutex_unlock(&h->lock);
	return taken;
}

uint64_t handover_puts(struct handover *h)
{
	uint64_t puts;

	pthread_mutex_lock(&h->lock);
	puts = h->nr_put;
	pthread_mutex_unlock(&h->lock);
	return puts;
}

void handover_await_put(struct handover *h, uint64_t seen)
{
	pthread_mutex_lock(&h->lock);
	h->taker_sleeps = true;
	h->taker_wants_any = true;
	while (h->nr_put <= seen && !h->closed)
		pthread_cond_wait(&h->filled, &h->lock);
	h->taker_wants_any = false;
	h->taker_sleeps = false;
	pthread_mutex_unlock(&h->lock);
}

void handover_close(struct handover *h)
{
	pthread_mutex_lock(&h->lock);
	h->closed = true;
	pthread_cond_broadcast(&h->filled);
	pthread_cond_broadcast(&h->emptied);
	pthread_mutex_unlock(&h->lock);
}
