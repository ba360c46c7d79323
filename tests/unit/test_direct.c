/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_direct.c - which of depot and zone a block goes to and comes from.
 * 2 MiB are 512 pages, and the depots may hold 128 of them.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <unistd.h>

#include "../support/core_fixture.h"
#include "direct.h"

static struct pcpi_zone *const zone = &parts.zones[0];
static uint32_t pfns[512];

static void setup(void)
{
	parts_make((struct parts_spec){.max_mib = 2});
}

static void teardown(void)
{
	cr_expect(pcpi_zone_check(zone));
	parts_unmake();
}

TestSuite(direct, .init = setup, .fini = teardown);

static uint32_t depot_len(unsigned order)
{
	return pcpi_depot_len(&zone->depots[order]);
}

Test(direct, return_fills_the_depots_up_to_their_limit)
{
	cr_assert_eq(zone->depot_limit, 128);
	parts_take(0, 0, pfns, 129);
	cr_expect(pcpi_blocks_return(zone, 0, pfns, 64));
	cr_expect(pcpi_blocks_return(zone, 0, pfns + 64, 64));
	cr_expect_not(pcpi_blocks_return(zone, 0, pfns + 128, 1));
	cr_expect_eq(depot_len(0), 128);
	cr_expect_eq(zone->free_pages, 512 - 128);
}

Test(direct, limit_counts_the_pages_of_all_orders)
{
	parts_take(0, 3, pfns, 12);
	parts_take(0, 0, pfns + 12, 64);
	cr_expect(pcpi_blocks_return(zone, 3, pfns, 12));
	cr_expect_not(pcpi_blocks_return(zone, 0, pfns + 12, 64));
	cr_expect_eq(pcpi_zone_depot_pages(zone), 96);
	cr_expect_eq(zone->free_pages, 512 - 96);
}

Test(direct, take_asks_the_depot_first)
{
	uint32_t out[80];

	parts_take(0, 1, pfns, 20);
	pcpi_direct_give(zone, 1, pfns, 20);
	cr_expect_eq(zone->depot_puts, 1);
	cr_assert_eq(pcpi_direct_take(zone, 1, out, 30), 30);
	cr_expect_arr_eq(out, pfns, 20 * sizeof(*out));
	cr_expect_eq(zone->depot_gets, 1);
	cr_expect_eq(depot_len(1), 0);
	cr_expect_eq(zone->free_pages, 512 - 60);
}

Test(direct, take_beyond_what_there_is_gives_less)
{
	uint32_t out[512];

	parts_take(0, 0, pfns, 10);
	pcpi_direct_give(zone, 0, pfns, 10);
	cr_expect_eq(pcpi_direct_take(zone, 0, out, 512), 512);
	cr_expect_eq(pcpi_direct_take(zone, 0, out, 1), 0);
	cr_expect_eq(zone->depot_gets, 1, "an empty depot gives no batch");
}

Test(direct, orders_without_a_depot_know_only_the_zone)
{
	uint32_t locks;

	cr_assert_eq(pcpi_direct_take(zone, 4, pfns, 2), 2);
	locks = (uint32_t)zone->locks;
	pcpi_direct_give(zone, 4, pfns, 2);
	cr_expect_eq(zone->locks, locks + 1);
	cr_expect_eq(zone->free_pages, 512);
	cr_expect_eq(zone->depot_puts + zone->depot_gets, 0);
	cr_assert_eq(pcpi_direct_take(zone, 9, pfns, 1), 1);
	cr_expect_eq(zone->free_pages, 0);
	pcpi_direct_give(zone, 9, pfns, 1);
}

Test(direct, emptied_depots_merge_in_the_zone)
{
	uint32_t block;

	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++) {
		parts_take(0, o, pfns, 2);
		cr_assert(pcpi_blocks_return(zone, o, pfns, 2));
	}
	cr_expect_eq(pcpi_zone_take_bulk(zone, 9, &block, 1, NULL), 0);
	cr_expect_eq(pcpi_depots_empty(zone), 2 + 4 + 8 + 16);
	cr_expect_eq(pcpi_zone_depot_pages(zone), 0);
	cr_expect_eq(zone->free_pages, 512);
	parts_take(0, 9, &block, 1);
	cr_expect_eq(pcpi_depots_empty(zone), 0);
}

Test(direct, surplus_goes_to_the_zone_after_a_second_of_rest)
{
	parts_take(0, 0, pfns, 100);
	cr_assert(pcpi_blocks_return(zone, 0, pfns, 100));
	pcpi_surplus_return(zone, 0); /* begins to watch */
	cr_expect_eq(depot_len(0), 100);
	pcpi_depot_get(&zone->depots[0], pfns, 70);
	cr_assert(pcpi_blocks_return(zone, 0, pfns, 70));
	parts.now_ns += PARTS_SECOND - 1;
	pcpi_surplus_return(zone, 0);
	cr_expect_eq(depot_len(0), 100);
	parts.now_ns += 1;
	pcpi_surplus_return(zone, 0);
	cr_expect_eq(depot_len(0), 70, "30 were never needed");
	cr_expect_eq(zone->free_pages, 512 - 70);
}

/* ---- X1 ------------------------------------------------------------------ */

static void *take_past_the_depot(void *arg)
{
	uint32_t *out = arg;

	pcpi_direct_take(zone, 0, out, 20);
	return NULL;
}

/* While the taker is stopped at the zone's lock, the depot's must be free. */
Test(direct, depots_lock_is_not_held_at_the_zones)
{
	static uint32_t out[20];
	pthread_t thread;

	parts_take(0, 0, pfns, 10);
	cr_assert(pcpi_blocks_return(zone, 0, pfns, 10));
	pthread_mutex_lock(&zone->lock.mutex);
	cr_assert_eq(pthread_create(&thread, NULL, take_past_the_depot, out), 0);
	while (pcpi_load_relaxed(&zone->depot_gets) == 0)
		usleep(100);
	cr_expect_eq(pthread_mutex_trylock(&zone->depots[0].lock.mutex), 0);
	pthread_mutex_unlock(&zone->depots[0].lock.mutex);
	pthread_mutex_unlock(&zone->lock.mutex);
	pthread_join(thread, NULL);
	cr_expect_arr_eq(out, pfns, 10 * sizeof(*out));
}

/* A depot that may hold no more, and a zone that takes a while. */
static void *give_to_full_depot(void *arg)
{
	pcpi_direct_give(zone, 0, arg, 64);
	return NULL;
}

Test(direct, give_past_a_full_depot_waits_for_the_zone_alone)
{
	pthread_t thread;

	parts_take(0, 0, pfns, 192);
	cr_assert(pcpi_blocks_return(zone, 0, pfns, 64));
	cr_assert(pcpi_blocks_return(zone, 0, pfns + 64, 64));
	pthread_mutex_lock(&zone->lock.mutex);
	cr_assert_eq(pthread_create(&thread, NULL, give_to_full_depot,
				    pfns + 128),
		     0);
	while (pcpi_load_relaxed(&parts.orders[pfns[191]]) !=
	       0) /* cleared just before the lock */
		usleep(100);
	cr_expect_eq(pthread_mutex_trylock(&zone->depots[0].lock.mutex), 0);
	pthread_mutex_unlock(&zone->depots[0].lock.mutex);
	pthread_mutex_unlock(&zone->lock.mutex);
	pthread_join(thread, NULL);
	cr_expect_eq(zone->free_pages, 512 - 128);
}
