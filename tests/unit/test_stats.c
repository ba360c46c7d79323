/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stats.c - what the statistics of a live heap say (lib/stats.c), from
 * outside: the sum of the states, exact totals, monotone counters, the rules of
 * struct_size, and that each text can be read by who knows its model.
 * (How texts look is tests/unit/test_stats_format.c's.)
 */
#include <json-c/json.h>

#include "../../lib/heap.h"
#include "../support/heap_fixture.h"

#define MAX_BLOCKS 2048u

static void *blocks[MAX_BLOCKS];

/* ---- States and totals ----------------------------------------------------------- */

Test(stats, states_sum_up_after_each_call)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);
	unsigned seed = 11, held = 0;
	uint64_t pages = 0;

	printf("seed %u\n", seed);
	for (unsigned i = 0; i < 3000; i++) {
		unsigned order = (unsigned)rand_r(&seed) % 6;
		struct pcpa_stats s;

		if (held < 40 && rand_r(&seed) % 2) {
			blocks[held] = pcpa_alloc(heap, order, 0);
			cr_assert(blocks[held++]);
			pages += 1u << order;
		} else if (held > 0) {
			order = (unsigned)pcpa_block_order(heap, blocks[--held]);
			pages -= 1u << order;
			pcpa_free(heap, blocks[held]);
		}
		if (rand_r(&seed) % 100 == 0)
			cr_assert_eq(pcpa_thread_flush(heap), 0);
		s = stats_summed(heap);
		cr_assert_eq(s.used_pages, pages);
		cr_assert_eq(s.used_blocks, held);
	}
	free_all(heap, blocks, held);
	expect_all_free(heap);
	heap_end(heap);
}

Test(stats, totals_count_blocks_of_every_call)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);
	struct pcpa_stats s;
	unsigned allocs = 0, o;

	for (o = 0; o < 7; o++) {
		cr_assert_eq(pcpa_alloc_bulk(heap, o, 0, blocks, 8), 8);
		pcpa_free_bulk(heap, blocks, 3);
		pcpa_free_bulk_sized(heap, o, blocks + 3, 3);
		pcpa_free_sized(heap, blocks[6], o);
		pcpa_free(heap, blocks[7]);
		blocks[0] = pcpa_alloc(heap, o, PCPA_ZERO);
		pcpa_free(heap, blocks[0]);
		allocs += 9;
		s = stats_summed(heap);
		cr_expect_eq(s.alloc_total, allocs, "order %u", o);
		cr_expect_eq(s.free_total, allocs, "order %u", o);
	}
	cr_assert_eq(pcpa_refill(heap, 0, 0, memset(blocks, 0, 80), 10), 10);
	cr_expect_eq(stats_summed(heap).alloc_total, allocs + 10);
	pcpa_free_bulk(heap, blocks, 10);
	cr_expect_eq(stats_summed(heap).free_total, allocs + 10);
	cr_expect_eq(stats_of(heap, -1).failed_total, 0);
	cr_expect_null(pcpa_alloc(heap, pcpa_heap_max_order(heap) + 1, 0));
	cr_expect_eq(stats_summed(heap).alloc_total, allocs + 10);
	heap_end(heap);
}

Test(stats, drains_and_flushes_are_counted_by_reason)
{
	struct pcpa_heap *heap = heap_fixed(32 * MIB, 0);
	struct pcpa_stats a, b;

	a = stats_of(heap, -1);
	blocks[0] = pcpa_alloc(heap, 0, 0);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks + 1, 999), 999);
	b = stats_of(heap, -1);
	cr_expect_gt(b.refills, a.refills);
	cr_expect_gt(b.zone_locks, a.zone_locks);
	for (unsigned i = 0; i < 1000; i++)
		pcpa_free(heap, blocks[i]);
	a = stats_of(heap, -1);
	cr_expect_gt(a.drains_high + a.drains_freer, 0);
	cr_expect_gt(a.depot_puts, 0);
	pcpa_thread_flush(heap);
	b = stats_of(heap, -1);
	cr_expect_eq(b.drains_flush, a.drains_flush + 1);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 10), 10);
	cr_expect_gt(stats_of(heap, -1).depot_gets, b.depot_gets);
	pcpa_free_bulk(heap, blocks, 10);
	pcpa_heap_drain(heap);
	a = stats_of(heap, -1);
	cr_expect_eq(a.drains_sweep, b.drains_sweep + 1);
	cr_expect_eq(a.drains, a.drains_high + a.drains_freer +
				       a.drains_flush + a.drains_sweep);
	heap_end(heap);
}

Test(stats, watermarks_are_ordered)
{
	struct pcpa_heap *heap = heap_fixed(32 * MIB, 0);
	struct pcpa_stats s = stats_of(heap, -1);

	cr_expect_gt(s.min_pages, 0);
	cr_expect_leq(s.min_pages, s.low_pages);
	cr_expect_leq(s.low_pages, s.high_pages);
	cr_expect_leq(s.high_pages, s.managed_pages);
	heap_end(heap);
}

/* ---- Monotone while threads work ---------------------------------------------------- */

struct churn {
	struct pcpa_heap *heap;
	int stop;
	unsigned seed;
};

static void *churn(void *arg)
{
	struct churn *c = arg;
	void *mine[64];
	unsigned order;
	size_t n;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		order = (unsigned)rand_r(&c->seed) % 5;
		n = pcpa_alloc_bulk(c->heap, order, 0, mine, 1 + order * 7);
		if (rand_r(&c->seed) % 50 == 0)
			pcpa_thread_flush(c->heap);
		for (size_t i = 0; i < n; i++)
			pcpa_free(c->heap, mine[i]);
	}
	return NULL;
}

static void expect_monotone(const struct pcpa_stats *a,
			    const struct pcpa_stats *b)
{
	cr_assert_geq(b->alloc_total, a->alloc_total);
	cr_assert_geq(b->free_total, a->free_total);
	cr_assert_geq(b->failed_total, a->failed_total);
	cr_assert_geq(b->zone_locks, a->zone_locks);
	cr_assert_geq(b->zone_contended, a->zone_contended);
	cr_assert_geq(b->drains, a->drains);
	cr_assert_geq(b->drains_flush, a->drains_flush);
	cr_assert_geq(b->drains_sweep, a->drains_sweep);
	cr_assert_geq(b->refills, a->refills);
	cr_assert_geq(b->depot_gets, a->depot_gets);
	cr_assert_geq(b->depot_puts, a->depot_puts);
	cr_assert_geq(b->busy_skipped, a->busy_skipped);
	cr_assert_geq(b->numa_hit + b->numa_miss, a->numa_hit + a->numa_miss);
}

Test(stats, counters_never_fall_while_threads_work)
{
	struct churn c[2] = {{heap_fixed(16 * MIB, 0), 0, 1}, {NULL, 0, 2}};
	struct pcpa_stats a = stats_of(c[0].heap, -1), b;
	pthread_t t[2];
	unsigned i;

	c[1].heap = c[0].heap;
	for (i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, churn, &c[i]), 0);
	for (i = 0; i < 20000; i++) {
		b = stats_of(c[0].heap, -1);
		expect_monotone(&a, &b);
		a = b;
		if (i % 1000 == 0)
			pcpa_heap_drain(c[0].heap);
	}
	for (i = 0; i < 2; i++)
		__atomic_store_n(&c[i].stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(t[i], NULL), 0);
	cr_expect_eq(stats_summed(c[0].heap).used_blocks, 0);
	expect_all_free(c[0].heap);
	heap_end(c[0].heap);
}

/* A reader may look between the two stores of a zone that grows. */
Test(stats, no_state_is_above_managed)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);
	struct pcpi_zone *zone = &heap->env.zones[0];
	uint64_t managed = zone->managed_pages;

	zone->managed_pages = zone->free_pages / 2;
	cr_expect_eq(stats_of(heap, -1).free_pages, zone->managed_pages);
	cr_expect_eq(stats_of(heap, -1).used_pages, 0);
	zone->managed_pages = managed;
	heap_end(heap);
}

/* ---- struct_size --------------------------------------------------------------------- */

Test(stats, only_the_size_given_is_written)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	struct pcpa_stats s;

	memset(&s, 0x5a, sizeof(s));
	s.struct_size = offsetof(struct pcpa_stats, free_pages);
	cr_expect_eq(pcpa_stats_read(heap, -1, &s), 0);
	cr_expect_eq(s.struct_size, offsetof(struct pcpa_stats, free_pages));
	cr_expect_eq(s.managed_pages, 2 * MIB / pcpa_heap_page_bytes(heap));
	cr_expect_eq(s.free_pages, UINT64_C(0x5a5a5a5a5a5a5a5a));
	cr_expect_eq(s.caches, UINT64_C(0x5a5a5a5a5a5a5a5a));
	s.struct_size = 0;
	cr_expect_eq(pcpa_stats_read(heap, -1, &s), -EINVAL);
	cr_expect_eq(pcpa_stats_read(heap, -1, NULL), -EINVAL);
	heap_end(heap);
}

/* A program built against a later header. */
Test(stats, longer_struct_is_told_what_was_written)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	struct {
		struct pcpa_stats s;
		uint64_t later;
	} x = {.s = {.struct_size = sizeof(x)}, .later = 77};

	cr_expect_eq(pcpa_stats_read(heap, -1, &x.s), 0);
	cr_expect_eq(x.s.struct_size, sizeof(struct pcpa_stats));
	cr_expect_eq(x.later, 77);
	heap_end(heap);
}

/* ---- Texts --------------------------------------------------------------------------- */

static struct pcpa_heap *busy_heap(void)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 300), 300);
	pcpa_free_bulk(heap, blocks + 50, 250);
	return heap;
}

static void busy_end(struct pcpa_heap *heap)
{
	pcpa_free_bulk(heap, blocks, 50);
	heap_end(heap);
}

static char *text_of(struct pcpa_heap *heap, enum pcpa_stats_format format)
{
	int len = pcpa_stats_format(heap, format, NULL, 0);
	/* Looking takes locks, which are counted: a number may grow a digit. */
	size_t size = (size_t)len + 100;
	char *text;

	cr_assert_gt(len, 0);
	text = malloc(size);
	cr_assert(text);
	len = pcpa_stats_format(heap, format, text, size);
	cr_assert_eq(strlen(text), (size_t)len);
	return text;
}

Test(stats, text_is_cut_like_that_of_snprintf)
{
	struct pcpa_heap *heap = busy_heap();
	char *whole = text_of(heap, PCPA_STATS_VMSTAT), part[40];

	memset(part, 'x', sizeof(part));
	cr_expect_geq(pcpa_stats_format(heap, PCPA_STATS_VMSTAT, part, 30),
		      (int)strlen(whole));
	cr_expect_eq(strlen(part), 29);
	cr_expect_eq(memcmp(part, whole, 29), 0);
	cr_expect_eq(part[30], 'x');
	cr_expect_eq(pcpa_stats_format(heap, (enum pcpa_stats_format)99, part, 30),
		     -EINVAL);
	cr_expect_eq(pcpa_stats_format(heap, PCPA_STATS_VMSTAT, NULL, 30),
		     -EINVAL);
	free(whole);
	busy_end(heap);
}

static uint64_t vmstat_value(const char *text, const char *name)
{
	char line[80];
	const char *at;
	unsigned long long value;

	snprintf(line, sizeof(line), "%s ", name);
	for (at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strncmp(at, line, strlen(line)) == 0 &&
		    sscanf(at + strlen(line), "%llu", &value) == 1)
			return value;
	cr_assert_fail("%s is missing in:\n%s", name, text);
	return 0;
}

Test(stats, vmstat_is_a_name_and_a_number_a_line)
{
	struct pcpa_heap *heap = busy_heap();
	struct pcpa_stats s = stats_summed(heap);
	char *text = text_of(heap, PCPA_STATS_VMSTAT);

	cr_expect_eq(vmstat_value(text, "nr_free_pages"), s.free_pages);
	cr_expect_eq(vmstat_value(text, "nr_pcp_pages"), s.cached_pages);
	cr_expect_eq(vmstat_value(text, "pgalloc"), s.alloc_total);
	cr_expect_eq(vmstat_value(text, "pgfree"), s.free_total);
	cr_expect_eq(vmstat_value(text, "nr_used_blocks"), 50);
	free(text);
	busy_end(heap);
}

Test(stats, buddyinfo_counts_the_free_pages)
{
	struct pcpa_heap *heap = busy_heap();
	char *text = text_of(heap, PCPA_STATS_BUDDYINFO), *at = text;
	uint64_t pages = 0;
	unsigned long long blocks_of;
	int node = -1, used = 0;
	unsigned order = 0;

	cr_assert_eq(sscanf(at, "Node %d, zone %*s%n", &node, &used), 1);
	cr_expect_eq(node, pcpa_block_node(heap, blocks[0]));
	for (at += used; sscanf(at, "%llu%n", &blocks_of, &used) == 1; at += used)
		pages += (uint64_t)blocks_of << order++;
	cr_expect_eq(order, PCPA_MAX_ORDER + 1);
	cr_expect_eq(pages, stats_of(heap, -1).free_pages);
	free(text);
	busy_end(heap);
}

Test(stats, zoneinfo_shows_nodes_and_pagesets)
{
	struct pcpa_heap *heap = busy_heap();
	struct pcpa_stats s = stats_summed(heap);
	char *text = text_of(heap, PCPA_STATS_ZONEINFO);
	const char *at = strstr(text, "pages free");
	unsigned long long value = 0;

	cr_expect_eq(strncmp(text, "Node ", 5), 0);
	cr_assert(at);
	cr_expect_eq(sscanf(at, "pages free %llu", &value), 1);
	cr_expect_eq(value, s.free_pages);
	at = strstr(text, "count:");
	cr_assert(at);
	cr_expect_eq(sscanf(at, "count: %llu", &value), 1);
	cr_expect_eq(value, s.cached_pages);
	cr_expect(strstr(text, "high_min:") && strstr(text, "batch:"));
	cr_expect(strstr(text, "arena:"));
	free(text);
	busy_end(heap);
}

static json_object *member(json_object *o, const char *name)
{
	json_object *value = NULL;

	cr_assert(json_object_object_get_ex(o, name, &value), "%s", name);
	return value;
}

static uint64_t number(json_object *o, const char *name)
{
	return (uint64_t)json_object_get_int64(member(o, name));
}

Test(stats, json_parses_and_agrees)
{
	struct pcpa_heap *heap = busy_heap();
	struct pcpa_stats s = stats_summed(heap);
	char *text = text_of(heap, PCPA_STATS_JSON);
	json_object *all = json_tokener_parse(text), *total, *nodes, *node;
	json_object *cache, *arenas;

	cr_assert(all, "%s", text);
	cr_expect_eq(number(all, "page_bytes"), pcpa_heap_page_bytes(heap));
	total = member(all, "total");
	nodes = member(all, "nodes");
	cr_expect_eq(number(total, "used_blocks"), 50);
	cr_expect_eq(number(total, "managed_pages"),
		     number(total, "free_pages") + number(total, "cached_pages") +
			     number(total, "depot_pages") +
			     number(total, "used_pages"));
	cr_assert_eq(json_object_array_length(nodes), 1);
	node = json_object_array_get_idx(nodes, 0);
	cr_expect_eq(number(node, "alloc_total"), s.alloc_total);
	cr_assert_eq(json_object_array_length(member(node, "cache_list")), 1);
	cache = json_object_array_get_idx(member(node, "cache_list"), 0);
	cr_expect_eq(number(cache, "count"), s.cached_pages);
	arenas = member(node, "arena_list");
	cr_assert_eq(json_object_array_length(arenas), s.arenas);
	cr_expect_gt(number(json_object_array_get_idx(arenas, 0), "page_bytes"), 0);
	json_object_put(all);
	free(text);
	busy_end(heap);
}

/* ---- Trace ---------------------------------------------------------------------------- */

struct seen {
	unsigned kinds[5];
	uint64_t refilled;
};

static void event_count(const struct pcpa_event *e, void *arg)
{
	struct seen *seen = arg;

	cr_expect_geq(e->struct_size, sizeof(*e));
	cr_assert_leq(e->kind, PCPA_EVENT_ARENA_GROW);
	seen->kinds[e->kind]++;
	if (e->kind == PCPA_EVENT_PCPU_REFILL)
		seen->refilled += e->pages;
}

Test(stats, trace_tells_refills_drains_and_growth)
{
	struct pcpa_heap *heap = heap_make(0, 32 * MIB, 0);
	struct seen seen = {{0}, 0};
	uint64_t refills;

	cr_assert_eq(pcpa_heap_trace(heap, event_count, &seen), 0);
	for (unsigned i = 0; i < 1000; i++)
		blocks[i] = pcpa_alloc(heap, 0, 0);
	for (unsigned i = 0; i < 1000; i++)
		pcpa_free(heap, blocks[i]);
	refills = stats_of(heap, -1).refills;
	cr_expect_eq(seen.kinds[PCPA_EVENT_PCPU_REFILL], refills);
	cr_expect_geq(seen.refilled, 1000);
	cr_expect_gt(seen.kinds[PCPA_EVENT_ZONE_LOCKED], 0);
	cr_expect_gt(seen.kinds[PCPA_EVENT_ARENA_GROW], 0);
	cr_expect_eq(seen.kinds[PCPA_EVENT_PCPU_DRAIN],
		     stats_of(heap, -1).drains);
	cr_assert_eq(pcpa_heap_trace(heap, NULL, NULL), 0);
	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 1000), 1000);
	pcpa_free_bulk(heap, blocks, 1000);
	cr_expect_eq(seen.kinds[PCPA_EVENT_PCPU_REFILL], 0);
	heap_end(heap);
}
