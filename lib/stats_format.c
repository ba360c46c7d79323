/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats_format.c - snapshots to text.
 *
 * Owns: the list of the fields of struct pcpa_stats with their names, and the
 * four formats.  Doesn't own: collecting (stats.c), or any live object of a
 * heap: it sees value structs only.
 *
 *              ZONEINFO            BUDDYINFO   VMSTAT      JSON
 *   begin      -                   -           all fields  {"total":{...},
 *   node       watermarks, states, one line    -             "nodes":[{...,
 *              all fields
 *   cache      one pageset         -           -              "cache_list":[...],
 *   arena      one line            -           -              "arena_list":[...]}
 *   end        -                   -           -           ]}
 *
 * The first three look like the kernel's files of these names, so that eyes
 * and scripts which know those find their way: the same layout, and the
 * kernel's name for a counter where it has one.  Two differences of meaning:
 * pgalloc and pgfree count blocks, and a pageset belongs to a thread.
 *
 *   {"page_bytes":4096,"total":{"managed_pages":1,...},
 *    "nodes":[{"node":0,"managed_pages":1,...,
 *      "free_blocks":[1,...],"depot_blocks":[1,...],
 *      "backing":[{"backing":"hugetlb","page_bytes":1,"bytes":1},...],
 *      "below_high":false,"reclaim_active":false,
 *      "cache_list":[{"tid":1,...}],"arena_list":[{"bytes":1,...}]}]}
 *
 * JSON members are only ever added.  Nothing printed needs escaping.
 *
 * Invariants
 *  Q1  Every field of struct pcpa_stats but struct_size is in the table once.
 *  Q2  An open JSON node has its list of caches or, later, of arenas open.
 *
 * Concurrency: pure; the writer belongs to its caller.
 * Cost: linear in the text.
 * Failure: text that doesn't fit is counted and not written.
 * Proved by tests/unit/test_stats_format.c.
 */
#include "stats_format.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum stage {
	STAGE_BEGUN = 0,
	STAGE_CACHES = 1, /* a node, perhaps caches of it */
	STAGE_ARENAS = 2, /* an arena of it               */
	STAGE_ENDED = 3,
};

/* clang-format off */
#define FIELD(field, vmstat)                                                   \
	{                                                                      \
		#field, vmstat, offsetof(struct pcpa_stats, field)             \
	}

const struct pcpi_stats_field pcpi_stats_fields[] = {
	FIELD(managed_pages, "nr_managed_pages"),
	FIELD(free_pages, "nr_free_pages"),
	FIELD(cached_pages, "nr_pcp_pages"),
	FIELD(depot_pages, "nr_depot_pages"),
	FIELD(used_pages, "nr_used_pages"),
	FIELD(used_blocks, "nr_used_blocks"),
	FIELD(reserved_pages, "nr_reserved_pages"),
	FIELD(min_pages, "nr_watermark_min"),
	FIELD(low_pages, "nr_watermark_low"),
	FIELD(high_pages, "nr_watermark_high"),
	FIELD(alloc_total, "pgalloc"),
	FIELD(free_total, "pgfree"),
	FIELD(failed_total, "pgalloc_fail"),
	FIELD(bad_frees, "pgfree_bad"),
	FIELD(zone_locks, "zone_lock"),
	FIELD(zone_contended, "zone_lock_contended"),
	FIELD(drains, "pcp_drain"),
	FIELD(drains_high, "pcp_drain_high"),
	FIELD(drains_freer, "pcp_drain_freer"),
	FIELD(drains_flush, "pcp_drain_flush"),
	FIELD(drains_sweep, "pcp_drain_sweep"),
	FIELD(refills, "pcp_refill"),
	FIELD(depot_gets, "depot_get"),
	FIELD(depot_puts, "depot_put"),
	FIELD(busy_skipped, "pcp_busy_skipped"),
	FIELD(numa_hit, "numa_hit"),
	FIELD(numa_miss, "numa_miss"),
	FIELD(numa_foreign, "numa_foreign"),
	FIELD(arenas, "nr_arenas"),
	FIELD(caches, "nr_pcp_caches"),
	FIELD(drains_decay, "pcp_drain_decay"),
	FIELD(trim_failed, "arena_trim_failed"),
	FIELD(grow_vetoed, "arena_grow_vetoed"),
	FIELD(trim_vetoed, "arena_trim_vetoed"),
	FIELD(misplaced_pages, "numa_misplaced"),
};
/* clang-format on */
const size_t pcpi_stats_fields_count =
	sizeof(pcpi_stats_fields) / sizeof(pcpi_stats_fields[0]);

/* Q1: one entry for each 64-bit word behind the size. */
_Static_assert(sizeof(pcpi_stats_fields) / sizeof(pcpi_stats_fields[0]) ==
		       (sizeof(struct pcpa_stats) -
			offsetof(struct pcpa_stats, managed_pages)) /
			       sizeof(uint64_t),
	       "a field of struct pcpa_stats has no entry");

/* ---- Text ---------------------------------------------------------------- */

void pcpi_text_init(struct pcpi_text *t, char *buf, size_t size)
{
	t->buf = buf;
	t->size = size;
	t->len = 0;
	if (size > 0)
		buf[0] = '\0';
}

void pcpi_text_add(struct pcpi_text *t, const char *fmt, ...)
{
	const size_t room = t->len < t->size ? t->size - t->len : 0;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(room > 0 ? t->buf + t->len : NULL, room, fmt, args);
	va_end(args);
	if (len > 0)
		t->len += (size_t)len;
}

static unsigned long long wide(uint64_t value)
{
	return value;
}

/* "[1,2,3]" */
static void list_add(struct pcpi_text *t, const char *name,
		     const uint64_t *values, size_t n)
{
	pcpi_text_add(t, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++)
		pcpi_text_add(t, "%s%llu", i ? "," : "", wide(values[i]));
	pcpi_text_add(t, "]");
}

/* ---- Fields -------------------------------------------------------------- */

static uint64_t *field_at(struct pcpa_stats *s,
			  const struct pcpi_stats_field *field)
{
	return (uint64_t *)(void *)((char *)s + field->offset);
}

uint64_t pcpi_stats_field_get(const struct pcpa_stats *s,
			      const struct pcpi_stats_field *field)
{
	uint64_t value;

	memcpy(&value, (const char *)s + field->offset, sizeof(value));
	return value;
}

void pcpi_stats_add(struct pcpa_stats *sum, const struct pcpa_stats *s)
{
	for (size_t i = 0; i < pcpi_stats_fields_count; i++)
		*field_at(sum, &pcpi_stats_fields[i]) +=
			pcpi_stats_field_get(s, &pcpi_stats_fields[i]);
}

static void fields_add_lines(struct pcpi_text *t, const struct pcpa_stats *s,
			     const char *indent)
{
	for (size_t i = 0; i < pcpi_stats_fields_count; i++) {
		const struct pcpi_stats_field *field = &pcpi_stats_fields[i];

		pcpi_text_add(t, "%s%s %llu\n", indent, field->vmstat,
			      wide(pcpi_stats_field_get(s, field)));
	}
}

static void fields_add_json(struct pcpi_text *t, const struct pcpa_stats *s)
{
	for (size_t i = 0; i < pcpi_stats_fields_count; i++) {
		const struct pcpi_stats_field *field = &pcpi_stats_fields[i];

		pcpi_text_add(t, "%s\"%s\":%llu", i ? "," : "", field->name,
			      wide(pcpi_stats_field_get(s, field)));
	}
}

static const char *backing_name(enum pcpa_backing backing)
{
	switch (backing) {
	case PCPA_BACKING_HUGETLB:
		return "hugetlb";
	case PCPA_BACKING_THP:
		return "thp";
	default:
		return "base";
	}
}

/* ---- Shaped like /proc/zoneinfo ------------------------------------------ */

static void zoneinfo_node(struct pcpi_text *t, const struct pcpi_stats_node *n)
{
	const struct pcpa_stats *s = &n->s;

	pcpi_text_add(t, "Node %d, zone %8s\n", n->node, "Pcpa");
	pcpi_text_add(t, "  pages free     %llu\n", wide(s->free_pages));
	pcpi_text_add(t, "        min      %llu\n", wide(s->min_pages));
	pcpi_text_add(t, "        low      %llu\n", wide(s->low_pages));
	pcpi_text_add(t, "        high     %llu\n", wide(s->high_pages));
	pcpi_text_add(t, "        spanned  %llu\n",
		      wide(s->managed_pages + s->reserved_pages));
	pcpi_text_add(t, "        present  %llu\n", wide(s->managed_pages));
	pcpi_text_add(t, "        managed  %llu\n", wide(s->managed_pages));
	fields_add_lines(t, s, "      ");
	pcpi_text_add(t, "  below_high:      %d\n",
		      !!(n->flags & PCPI_STATS_BELOW_HIGH));
	pcpi_text_add(t, "  reclaim_active:  %d\n",
		      !!(n->flags & PCPI_STATS_RECLAIM_ACTIVE));
	pcpi_text_add(t, "  pagesets\n");
}

static void zoneinfo_cache(struct pcpi_text *t, const struct pcpi_stats_cache *c)
{
	pcpi_text_add(t, "    thread: %d%s\n", c->tid,
		      c->live ? "" : " (ended)");
	pcpi_text_add(t, "              count:    %u\n", c->count);
	pcpi_text_add(t, "              high:     %u\n", c->high);
	pcpi_text_add(t, "              batch:    %u\n", c->batch);
	pcpi_text_add(t, "              high_min: %u\n", c->high_min);
	pcpi_text_add(t, "              high_max: %u\n", c->high_max);
	pcpi_text_add(t, "              depot_batch: %u\n", c->depot_batch);
	pcpi_text_add(t, "              blocks:  ");
	for (unsigned k = 0; k < PCPI_PCP_ORDERS; k++)
		pcpi_text_add(t, " %u", c->len[k]);
	pcpi_text_add(t, "\n              pgalloc:  %llu\n",
		      wide(c->alloc_total));
	pcpi_text_add(t, "              pgfree:   %llu\n", wide(c->free_total));
}

static void zoneinfo_arena(struct pcpi_text *t, const struct pcpi_stats_arena *a)
{
	pcpi_text_add(t, "    arena: %-7s page_bytes %zu bytes %llu\n",
		      backing_name(a->backing), a->page_bytes, wide(a->bytes));
}

/* ---- Shaped like /proc/buddyinfo ----------------------------------------- */

static void buddyinfo_node(struct pcpi_text *t, const struct pcpi_stats_node *n)
{
	pcpi_text_add(t, "Node %d, zone %8s ", n->node, "Pcpa");
	for (unsigned k = 0; k <= PCPI_MAX_ORDER; k++)
		pcpi_text_add(t, "%6llu ", wide(n->free_blocks[k]));
	pcpi_text_add(t, "\n");
}

/* ---- JSON ---------------------------------------------------------------- */

static void json_backings(struct pcpi_text *t, const struct pcpi_stats_node *n)
{
	pcpi_text_add(t, ",\"backing\":[");
	for (unsigned i = 0; i < PCPI_BACKINGS; i++)
		pcpi_text_add(t,
			      "%s{\"backing\":\"%s\",\"page_bytes\":%zu,"
			      "\"bytes\":%llu}",
			      i ? "," : "", backing_name((enum pcpa_backing)i),
			      n->backing_page_bytes[i],
			      wide(n->backing_bytes[i]));
	pcpi_text_add(t, "]");
}

static const char *json_bool(bool value)
{
	return value ? "true" : "false";
}

static void json_node(struct pcpi_text *t, const struct pcpi_stats_node *n)
{
	pcpi_text_add(t, "{\"node\":%d,", n->node);
	fields_add_json(t, &n->s);
	list_add(t, "free_blocks", n->free_blocks, PCPI_MAX_ORDER + 1);
	list_add(t, "depot_blocks", n->depot_blocks, PCPI_PCP_ORDERS);
	json_backings(t, n);
	pcpi_text_add(t, ",\"below_high\":%s,\"reclaim_active\":%s",
		      json_bool(n->flags & PCPI_STATS_BELOW_HIGH),
		      json_bool(n->flags & PCPI_STATS_RECLAIM_ACTIVE));
	pcpi_text_add(t, ",\"cache_list\":["); /* Q2 */
}

static void json_cache(struct pcpi_text *t, const struct pcpi_stats_cache *c)
{
	uint64_t len[PCPI_PCP_ORDERS];

	for (unsigned k = 0; k < PCPI_PCP_ORDERS; k++)
		len[k] = c->len[k];
	pcpi_text_add(t, "{\"tid\":%d,\"live\":%s,\"count\":%u,\"high\":%u",
		      c->tid, json_bool(c->live), c->count, c->high);
	pcpi_text_add(t, ",\"high_min\":%u,\"high_max\":%u,\"batch\":%u",
		      c->high_min, c->high_max, c->batch);
	pcpi_text_add(t, ",\"depot_batch\":%u", c->depot_batch);
	list_add(t, "blocks", len, PCPI_PCP_ORDERS);
	pcpi_text_add(t, ",\"alloc_total\":%llu,\"free_total\":%llu}",
		      wide(c->alloc_total), wide(c->free_total));
}

static void json_arena(struct pcpi_text *t, const struct pcpi_stats_arena *a)
{
	pcpi_text_add(t,
		      "{\"backing\":\"%s\",\"page_bytes\":%zu,\"bytes\":%llu}",
		      backing_name(a->backing), a->page_bytes, wide(a->bytes));
}

/* Ends the list of caches and begins that of arenas. */
static void json_arenas_open(struct pcpi_text *t)
{
	pcpi_text_add(t, "],\"arena_list\":[");
}

/* Ends the open node, if there is one. */
static void json_node_close(struct pcpi_stats_writer *w)
{
	if (w->stage == STAGE_BEGUN)
		return;
	if (w->stage == STAGE_CACHES)
		json_arenas_open(&w->text);
	pcpi_text_add(&w->text, "]}");
}

static void comma_add(struct pcpi_text *t, bool more)
{
	if (more)
		pcpi_text_add(t, ",");
}

/* ---- Writer -------------------------------------------------------------- */

int pcpi_stats_begin(struct pcpi_stats_writer *w, char *buf, size_t size,
		     enum pcpa_stats_format format, size_t page_bytes,
		     const struct pcpa_stats *total)
{
	if ((unsigned)format > PCPA_STATS_JSON)
		return -EINVAL;
	pcpi_text_init(&w->text, buf, size);
	w->format = format;
	w->stage = STAGE_BEGUN;
	w->more_nodes = false;
	w->more_items = false;
	if (format == PCPA_STATS_VMSTAT)
		fields_add_lines(&w->text, total, "");
	if (format == PCPA_STATS_JSON) {
		pcpi_text_add(&w->text, "{\"page_bytes\":%zu,\"total\":{",
			      page_bytes);
		fields_add_json(&w->text, total);
		pcpi_text_add(&w->text, "},\"nodes\":[");
	}
	return 0;
}

void pcpi_stats_put_node(struct pcpi_stats_writer *w,
			 const struct pcpi_stats_node *n)
{
	PCPA_ASSERT(w->stage != STAGE_ENDED);
	if (w->format == PCPA_STATS_ZONEINFO)
		zoneinfo_node(&w->text, n);
	if (w->format == PCPA_STATS_BUDDYINFO)
		buddyinfo_node(&w->text, n);
	if (w->format == PCPA_STATS_JSON) {
		json_node_close(w);
		comma_add(&w->text, w->more_nodes);
		json_node(&w->text, n);
	}
	w->stage = STAGE_CACHES;
	w->more_nodes = true;
	w->more_items = false;
}

void pcpi_stats_put_cache(struct pcpi_stats_writer *w,
			  const struct pcpi_stats_cache *c)
{
	PCPA_ASSERT(w->stage == STAGE_CACHES); /* Q2 */
	if (w->format == PCPA_STATS_ZONEINFO)
		zoneinfo_cache(&w->text, c);
	if (w->format == PCPA_STATS_JSON) {
		comma_add(&w->text, w->more_items);
		json_cache(&w->text, c);
	}
	w->more_items = true;
}

void pcpi_stats_put_arena(struct pcpi_stats_writer *w,
			  const struct pcpi_stats_arena *a)
{
	const bool first = w->stage == STAGE_CACHES;

	PCPA_ASSERT(first || w->stage == STAGE_ARENAS); /* Q2 */
	if (w->format == PCPA_STATS_ZONEINFO) {
		if (first)
			pcpi_text_add(&w->text, "  arenas\n");
		zoneinfo_arena(&w->text, a);
	}
	if (w->format == PCPA_STATS_JSON) {
		if (first)
			json_arenas_open(&w->text);
		comma_add(&w->text, !first);
		json_arena(&w->text, a);
	}
	w->stage = STAGE_ARENAS;
}

size_t pcpi_stats_end(struct pcpi_stats_writer *w)
{
	if (w->format == PCPA_STATS_JSON) {
		json_node_close(w);
		pcpi_text_add(&w->text, "]}\n");
	}
	w->stage = STAGE_ENDED;
	return w->text.len;
}
