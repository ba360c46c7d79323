/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_queue.c - see sim_queue.h. */
#include "sim_queue.h"

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->turn < b->turn;
}

static void swap(struct sim_event *a, struct sim_event *b)
{
	struct sim_event e = *a;

	*a = *b;
	*b = e;
}

void sim_queue_put(struct sim_queue *q, uint64_t at, uint32_t core)
{
	uint32_t i = q->n++;

	q->heap[i] = (struct sim_event){at, q->turns++, core};
	for (; i > 0 && is_before(&q->heap[i], &q->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&q->heap[i], &q->heap[(i - 1) / 2]);
}

bool sim_queue_take(struct sim_queue *q, struct sim_event *e)
{
	uint32_t i = 0, child;

	if (q->n == 0)
		return false;
	*e = q->heap[0];
	q->heap[0] = q->heap[--q->n];
	while ((child = 2 * i + 1) < q->n) {
		if (child + 1 < q->n &&
		    is_before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!is_before(&q->heap[child], &q->heap[i]))
			break;
		swap(&q->heap[child], &q->heap[i]);
		i = child;
	}
	return true;
}
