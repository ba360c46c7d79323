/* SPDX-License-Identifier: BSD-2-Clause */
/* depot.c - see depot.h. */
#include "depot.h"

#define SURPLUS_PERIOD_NS UINT64_C(1000000000)

void pcpi_depot_init(struct pcpi_depot *d, uint32_t *slots, uint32_t capacity)
{
	pcpi_lock_init(&d->lock, PCPI_RANK_DEPOT);
	pcpi_ring_init(&d->ring, slots, capacity);
	d->low = 0;
	d->low_since_ns = 0;
	d->contended = 0;
	d->closed = false;
}

void pcpi_depot_fini(struct pcpi_depot *d)
{
	pcpi_lock_fini(&d->lock);
}

static void depot_lock(struct pcpi_depot *d)
{
	if (pcpi_lock_take(&d->lock))
		pcpi_counter_add(&d->contended, 1);
}

bool pcpi_depot_put(struct pcpi_depot *d, const uint32_t *pfns, uint32_t n)
{
	bool fits;

	depot_lock(d);
	fits = !d->closed && n <= pcpi_ring_room(&d->ring); /* D2, D4 */
	if (fits)
		pcpi_ring_push(&d->ring, pfns, n);
	pcpi_lock_drop(&d->lock);
	return fits;
}

void pcpi_depot_close(struct pcpi_depot *d, bool closed)
{
	depot_lock(d);
	d->closed = closed;
	pcpi_lock_drop(&d->lock);
}

/* D3.  Seldom a store: its line is not the lock's, and others read it. */
static void low_note(struct pcpi_depot *d)
{
	uint32_t len = pcpi_ring_len(&d->ring);

	if (len < d->low)
		d->low = len;
}

static uint32_t get_locked(struct pcpi_depot *d, uint32_t *pfns, uint32_t n)
{
	n = pcpi_min(n, pcpi_ring_len(&d->ring));
	pcpi_ring_pop(&d->ring, pfns, n);
	low_note(d);
	return n;
}

uint32_t pcpi_depot_get(struct pcpi_depot *d, uint32_t *pfns, uint32_t n)
{
	pcpi_depot_expect(d);
	if (pcpi_depot_len(d) == 0)
		return 0;
	depot_lock(d);
	n = get_locked(d, pfns, n);
	pcpi_lock_drop(&d->lock);
	return n;
}

uint32_t pcpi_depot_try_get(struct pcpi_depot *d, uint32_t *pfns, uint32_t n,
			    bool *busy)
{
	pcpi_depot_expect(d);
	if (pcpi_depot_len(d) == 0)
		return 0;
	if (!pcpi_lock_try(&d->lock)) {
		*busy = true;
		return 0;
	}
	n = get_locked(d, pfns, n);
	pcpi_lock_drop(&d->lock);
	return n;
}

static uint32_t shift_locked(struct pcpi_depot *d, uint32_t *pfns, uint32_t n)
{
	n = pcpi_min(n, pcpi_ring_len(&d->ring));
	pcpi_ring_shift(&d->ring, pfns, n);
	low_note(d);
	return n;
}

uint32_t pcpi_depot_shift(struct pcpi_depot *d, uint32_t *pfns, uint32_t n)
{
	if (pcpi_depot_len(d) == 0)
		return 0;
	depot_lock(d);
	n = shift_locked(d, pfns, n);
	pcpi_lock_drop(&d->lock);
	return n;
}

uint32_t pcpi_depot_surplus(struct pcpi_depot *d, uint64_t now_ns,
			    uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0, low;

	/* relaxed: a stale time only moves the trim by a call. */
	if ((int64_t)(now_ns - pcpi_load_relaxed(&d->low_since_ns)) <
	    (int64_t)SURPLUS_PERIOD_NS)
		return 0;
	depot_lock(d);
	if (d->low_since_ns != 0) {
		low = d->low;
		got = shift_locked(d, pfns, pcpi_min(n, low));
		d->low = low - got; /* D3; the rest is for the next call */
	}
	if (got < n) {
		/* relaxed: see above. */
		pcpi_store_relaxed(&d->low_since_ns, now_ns);
		d->low = pcpi_ring_len(&d->ring);
	}
	pcpi_lock_drop(&d->lock);
	return got;
}

uint32_t pcpi_depot_len(const struct pcpi_depot *d)
{
	return pcpi_ring_len_racy(&d->ring);
}

bool pcpi_depot_check(struct pcpi_depot *d)
{
	bool ok;

	depot_lock(d);
	ok = pcpi_ring_len(&d->ring) <= d->ring.mask + 1 &&
	     d->low <= pcpi_ring_len(&d->ring);
	pcpi_lock_drop(&d->lock);
	return ok;
}
