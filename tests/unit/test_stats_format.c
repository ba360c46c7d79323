/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stats_format.c - the four texts, Q1 and Q2 of stats_format.c, and that
 * nothing is written past the buffer.  JSON is read back by json-c.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats_format.h"

#define PAGE 4096u

static char text[65536];

/* ---- Samples: every number is different ---------------------------------- */

static struct pcpa_stats sample_stats(uint64_t base)
{
	struct pcpa_stats s;

	memset(&s, 0, sizeof(s));
	s.struct_size = sizeof(s);
	for (size_t i = 0; i < pcpi_stats_fields_count; i++) {
		uint64_t value = base + i;

		memcpy((char *)&s + pcpi_stats_fields[i].offset, &value,
		       sizeof(value));
	}
	return s;
}

static struct pcpi_stats_node sample_node(int node, uint64_t base)
{
	struct pcpi_stats_node n;

	memset(&n, 0, sizeof(n));
	n.node = node;
	n.s = sample_stats(base);
	for (unsigned k = 0; k <= PCPI_MAX_ORDER; k++)
		n.free_blocks[k] = base + 100 + k;
	for (unsigned k = 0; k < PCPI_PCP_ORDERS; k++)
		n.depot_blocks[k] = base + 200 + k;
	n.backing_bytes[PCPA_BACKING_THP] = UINT64_C(64) << 20;
	n.backing_page_bytes[PCPA_BACKING_THP] = 2u << 20;
	n.flags = PCPI_STATS_BELOW_HIGH;
	return n;
}

static struct pcpi_stats_cache sample_cache(int tid, int node)
{
	struct pcpi_stats_cache c = {
		.tid = tid,
		.node = node,
		.count = 11,
		.high = 814,
		.high_min = 252,
		.high_max = 20000,
		.batch = 63,
		.depot_batch = 64,
		.len = {1, 1, 0, 1},
		.alloc_total = UINT64_MAX,
		.free_total = 41,
		.live = true,
	};

	return c;
}

static struct pcpi_stats_arena sample_arena(int node, enum pcpa_backing backing)
{
	struct pcpi_stats_arena a = {node, UINT64_C(8) << 30, 2u << 20, backing};

	return a;
}

/* Two nodes: one with two caches and two arenas, one with nothing. */
static size_t sample_write(char *buf, size_t size, enum pcpa_stats_format format)
{
	const struct pcpa_stats total = sample_stats(5000);
	const struct pcpi_stats_node near = sample_node(0, 1000),
				     far = sample_node(7, 2000);
	struct pcpi_stats_cache c = sample_cache(4711, 0);
	struct pcpi_stats_arena a = sample_arena(0, PCPA_BACKING_HUGETLB);
	struct pcpi_stats_writer w;

	cr_assert_eq(pcpi_stats_begin(&w, buf, size, format, PAGE, &total), 0);
	pcpi_stats_put_node(&w, &near);
	pcpi_stats_put_cache(&w, &c);
	c.tid = 4712;
	c.live = false;
	pcpi_stats_put_cache(&w, &c);
	pcpi_stats_put_arena(&w, &a);
	a = sample_arena(0, PCPA_BACKING_BASE);
	pcpi_stats_put_arena(&w, &a);
	pcpi_stats_put_node(&w, &far);
	return pcpi_stats_end(&w);
}

static void expect_line(const char *line)
{
	const char *at = strstr(text, line);
	size_t len = strlen(line);

	while (at && !((at == text || at[-1] == '\n') && at[len] == '\n'))
		at = strstr(at + 1, line);
	cr_expect_not_null(at, "no line \"%s\" in:\n%s", line, text);
}

static unsigned lines_count(void)
{
	unsigned n = 0;

	for (const char *p = text; *p; p++)
		n += *p == '\n';
	return n;
}

/* ---- Table and text ------------------------------------------------------ */

Test(stats_format, table_covers_every_field_once_in_order)
{
	size_t end = offsetof(struct pcpa_stats, managed_pages);

	for (size_t i = 0; i < pcpi_stats_fields_count; i++) {
		cr_expect_eq(pcpi_stats_fields[i].offset, end, "%s",
			     pcpi_stats_fields[i].name);
		end += sizeof(uint64_t);
	}
	cr_expect_eq(end, sizeof(struct pcpa_stats));
}

Test(stats_format, table_names_are_unique)
{
	for (size_t i = 0; i < pcpi_stats_fields_count; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct pcpi_stats_field *a, *b;

			a = &pcpi_stats_fields[i];
			b = &pcpi_stats_fields[j];
			cr_expect_str_neq(a->name, b->name);
			cr_expect_str_neq(a->vmstat, b->vmstat);
		}
	}
}

Test(stats_format, add_sums_every_field_and_no_size)
{
	struct pcpa_stats sum = sample_stats(10);
	const struct pcpa_stats s = sample_stats(1000);

	pcpi_stats_add(&sum, &s);
	cr_expect_eq(sum.struct_size, sizeof(sum));
	for (size_t i = 0; i < pcpi_stats_fields_count; i++)
		cr_expect_eq(pcpi_stats_field_get(&sum, &pcpi_stats_fields[i]),
			     1010 + 2 * i);
	cr_expect_eq(sum.managed_pages, 1010);
	cr_expect_eq(sum.caches, 1010 + 2 * 29);
}

Test(stats_format, text_counts_on_past_its_buffer)
{
	char buf[8];
	struct pcpi_text t;

	memset(buf, 'x', sizeof(buf));
	pcpi_text_init(&t, buf, 6);
	cr_expect_str_eq(buf, "");
	pcpi_text_add(&t, "%s", "abc");
	pcpi_text_add(&t, "%d", 12345);
	pcpi_text_add(&t, "tail");
	cr_expect_eq(t.len, 12);
	cr_expect_str_eq(buf, "abc12");
	cr_expect_eq(buf[6], 'x');
	pcpi_text_init(&t, NULL, 0);
	pcpi_text_add(&t, "abc");
	cr_expect_eq(t.len, 3);
}

Test(stats_format, every_size_gives_the_same_length_and_a_prefix)
{
	static char whole[65536], part[65536];

	for (unsigned f = 0; f <= PCPA_STATS_JSON; f++) {
		enum pcpa_stats_format format = (enum pcpa_stats_format)f;
		size_t len = sample_write(whole, sizeof(whole), format);

		cr_assert_lt(len, sizeof(whole));
		cr_expect_eq(strlen(whole), len);
		cr_expect_eq(sample_write(NULL, 0, format), len);
		for (size_t size = 1; size <= len + 2; size++) {
			size_t kept = size <= len ? size - 1 : len;

			memset(part, 'x', len + 8);
			cr_assert_eq(sample_write(part, size, format), len);
			cr_assert_eq(strlen(part), kept);
			cr_assert_eq(memcmp(part, whole, kept), 0);
			cr_assert_eq(part[size], 'x');
		}
	}
}

Test(stats_format, unknown_format_is_refused_and_nothing_written)
{
	const struct pcpa_stats total = sample_stats(0);
	struct pcpi_stats_writer w;

	memset(text, 'x', 4);
	cr_expect_eq(pcpi_stats_begin(&w, text, sizeof(text),
				      (enum pcpa_stats_format)4, PAGE, &total),
		     -EINVAL);
	cr_expect_eq(pcpi_stats_begin(&w, text, sizeof(text),
				      (enum pcpa_stats_format) - 1, PAGE, &total),
		     -EINVAL);
	cr_expect_eq(text[0], 'x');
}

/* ---- Kernel-shaped ------------------------------------------------------- */

Test(stats_format, zoneinfo_has_states_pagesets_and_arenas)
{
	sample_write(text, sizeof(text), PCPA_STATS_ZONEINFO);
	expect_line("Node 0, zone     Pcpa");
	expect_line("Node 7, zone     Pcpa");
	expect_line("  pages free     1001");
	expect_line("        min      1007");
	expect_line("        low      1008");
	expect_line("        high     1009");
	expect_line("        spanned  2006"); /* 1000 + 1006 */
	expect_line("        managed  1000");
	expect_line("      nr_free_pages 1001");
	expect_line("      nr_pcp_caches 2029");
	expect_line("  below_high:      1");
	expect_line("  reclaim_active:  0");
	expect_line("  pagesets");
	expect_line("    thread: 4711");
	expect_line("    thread: 4712 (ended)");
	expect_line("              count:    11");
	expect_line("              high:     814");
	expect_line("              high_min: 252");
	expect_line("              high_max: 20000");
	expect_line("              batch:    63");
	expect_line("              depot_batch: 64");
	expect_line("              blocks:   1 1 0 1");
	expect_line("              pgalloc:  18446744073709551615");
	expect_line("    arena: hugetlb page_bytes 2097152 bytes 8589934592");
	expect_line("    arena: base    page_bytes 2097152 bytes 8589934592");
	cr_expect(strstr(text, "4712") < strstr(text, "  arenas\n"));
	cr_expect(strstr(text, "  arenas\n") < strstr(text, "Node 7"));
}

Test(stats_format, buddyinfo_is_one_line_a_node)
{
	sample_write(text, sizeof(text), PCPA_STATS_BUDDYINFO);
	cr_expect_eq(lines_count(), 2);
	expect_line("Node 0, zone     Pcpa   1100   1101   1102   1103   1104 "
		    "  1105   1106   1107   1108   1109   1110 ");
	cr_expect(strstr(text, "\nNode 7, zone     Pcpa   2100   2101 "));
}

Test(stats_format, vmstat_is_the_total_one_line_a_field)
{
	sample_write(text, sizeof(text), PCPA_STATS_VMSTAT);
	cr_expect_eq(lines_count(), pcpi_stats_fields_count);
	expect_line("nr_free_pages 5001");
	expect_line("nr_pcp_pages 5002");
	expect_line("nr_depot_pages 5003");
	expect_line("nr_used_pages 5004");
	expect_line("pgalloc 5010");
	expect_line("pgfree 5011");
	expect_line("pcp_drain_high 5017");
	expect_line("numa_hit 5025");
	expect_line("numa_miss 5026");
	expect_line("numa_foreign 5027");
}

/* ---- JSON ---------------------------------------------------------------- */

static struct json_object *get(struct json_object *o, const char *name)
{
	struct json_object *out = NULL;

	cr_assert(json_object_object_get_ex(o, name, &out), "no %s", name);
	return out;
}

static uint64_t number(struct json_object *o, const char *name)
{
	struct json_object *value = get(o, name);

	cr_assert_eq(json_object_get_type(value), json_type_int, "%s", name);
	return json_object_get_uint64(value);
}

static struct json_object *item(struct json_object *o, const char *list,
				size_t i)
{
	struct json_object *array = get(o, list);

	cr_assert_eq(json_object_get_type(array), json_type_array);
	cr_assert_lt(i, json_object_array_length(array));
	return json_object_array_get_idx(array, i);
}

static size_t length(struct json_object *o, const char *list)
{
	return json_object_array_length(get(o, list));
}

/* Parses the whole of `text`, strictly: no trailing comma, nothing behind. */
static struct json_object *parse(void)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *root;

	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	root = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
	cr_assert_eq(json_tokener_get_error(tok), json_tokener_success, "%s",
		     text);
	json_tokener_free(tok);
	return root;
}

static void expect_fields(struct json_object *o, uint64_t base)
{
	for (size_t i = 0; i < pcpi_stats_fields_count; i++)
		cr_expect_eq(number(o, pcpi_stats_fields[i].name), base + i,
			     "%s", pcpi_stats_fields[i].name);
}

Test(stats_format, json_has_every_field_of_total_and_nodes)
{
	struct json_object *root, *far;

	sample_write(text, sizeof(text), PCPA_STATS_JSON);
	root = parse();
	cr_expect_eq(number(root, "page_bytes"), PAGE);
	expect_fields(get(root, "total"), 5000);
	cr_assert_eq(length(root, "nodes"), 2);
	expect_fields(item(root, "nodes", 0), 1000);
	far = item(root, "nodes", 1);
	expect_fields(far, 2000);
	cr_expect_eq(number(far, "node"), 7);
	cr_expect_eq(length(far, "cache_list"), 0);
	cr_expect_eq(length(far, "arena_list"), 0);
	json_object_put(root);
}

Test(stats_format, json_node_has_lists_and_backing)
{
	struct json_object *root, *node, *thp;

	sample_write(text, sizeof(text), PCPA_STATS_JSON);
	root = parse();
	node = item(root, "nodes", 0);
	cr_assert_eq(length(node, "free_blocks"), PCPI_MAX_ORDER + 1);
	for (unsigned k = 0; k <= PCPI_MAX_ORDER; k++)
		cr_expect_eq(json_object_get_int(item(node, "free_blocks", k)),
			     1100 + (int)k);
	cr_assert_eq(length(node, "depot_blocks"), PCPI_PCP_ORDERS);
	cr_expect_eq(json_object_get_int(item(node, "depot_blocks", 3)), 1203);
	cr_expect_eq(json_object_get_boolean(get(node, "below_high")), 1);
	cr_expect_eq(json_object_get_boolean(get(node, "reclaim_active")), 0);
	cr_assert_eq(length(node, "backing"), PCPI_BACKINGS);
	thp = item(node, "backing", PCPA_BACKING_THP);
	cr_expect_str_eq(json_object_get_string(get(thp, "backing")), "thp");
	cr_expect_eq(number(thp, "page_bytes"), 2u << 20);
	cr_expect_eq(number(thp, "bytes"), 64u << 20);
	json_object_put(root);
}

Test(stats_format, json_node_has_its_caches_and_arenas)
{
	struct json_object *root, *node, *cache, *arena;

	sample_write(text, sizeof(text), PCPA_STATS_JSON);
	root = parse();
	node = item(root, "nodes", 0);
	cr_assert_eq(length(node, "cache_list"), 2);
	cache = item(node, "cache_list", 0);
	cr_expect_eq(number(cache, "tid"), 4711);
	cr_expect_eq(number(cache, "count"), 11);
	cr_expect_eq(number(cache, "high"), 814);
	cr_expect_eq(number(cache, "high_min"), 252);
	cr_expect_eq(number(cache, "high_max"), 20000);
	cr_expect_eq(number(cache, "batch"), 63);
	cr_expect_eq(number(cache, "depot_batch"), 64);
	cr_expect_eq(json_object_get_int(item(cache, "blocks", 1)), 1);
	cr_expect_eq(number(cache, "alloc_total"), UINT64_MAX);
	cr_expect_eq(number(cache, "free_total"), 41);
	cr_expect_eq(json_object_get_boolean(get(cache, "live")), 1);
	cache = item(node, "cache_list", 1);
	cr_expect_eq(json_object_get_boolean(get(cache, "live")), 0);
	cr_assert_eq(length(node, "arena_list"), 2);
	arena = item(node, "arena_list", 1);
	cr_expect_str_eq(json_object_get_string(get(arena, "backing")), "base");
	cr_expect_eq(number(arena, "bytes"), UINT64_C(8) << 30);
	json_object_put(root);
}

Test(stats_format, json_is_valid_for_every_shape)
{
	const struct pcpa_stats total = sample_stats(0);
	const struct pcpi_stats_node n = sample_node(0, 0);
	const struct pcpi_stats_cache c = sample_cache(1, 0);
	const struct pcpi_stats_arena a = sample_arena(0, PCPA_BACKING_THP);

	/* 0 to 2 each of nodes, and of caches and arenas of a node */
	for (unsigned shape = 0; shape < 27; shape++) {
		unsigned nodes = shape % 3, caches = shape / 3 % 3,
			 arenas = shape / 9;
		struct pcpi_stats_writer w;
		struct json_object *root;

		pcpi_stats_begin(&w, text, sizeof(text), PCPA_STATS_JSON, PAGE,
				 &total);
		for (unsigned i = 0; i < nodes; i++) {
			pcpi_stats_put_node(&w, &n);
			for (unsigned j = 0; j < caches; j++)
				pcpi_stats_put_cache(&w, &c);
			for (unsigned j = 0; j < arenas; j++)
				pcpi_stats_put_arena(&w, &a);
		}
		pcpi_stats_end(&w);
		root = parse();
		cr_assert_eq(length(root, "nodes"), nodes);
		for (unsigned i = 0; i < nodes; i++) {
			cr_expect_eq(length(item(root, "nodes", i), "cache_list"),
				     caches);
			cr_expect_eq(length(item(root, "nodes", i), "arena_list"),
				     arenas);
		}
		json_object_put(root);
	}
}
