/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c - summaries of the rounds and their presentation.
 *
 * Owns the words and the layout; measures nothing.  One row a figure, one
 * column a backend, so that the table fits 80 columns with all five:
 *
 *                          none  pcpalloc   glibc  glibc-tuned   mmap
 *   ns per packet          ...
 *
 * A terminal sees one progress line rewritten in place, a file plain lines.
 * JSON goes alone to standard output; all words go to standard error then.
 * Concurrency: the main thread.  Failure: none.
 */
#define _GNU_SOURCE
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1024.0 * 1024.0)

/* ---- summaries ---------------------------------------------------------- */

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), double_compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

static double per_packet(uint64_t amount, const struct pipeline_result *r)
{
	return r->packets ? (double)amount / (double)r->packets : 0.0;
}

static void counters_add(struct pcpa_stats *sum, const struct pcpa_stats *s)
{
	struct pcpa_stats next = *s; /* the states: as in the last round */

	next.alloc_total += sum->alloc_total;
	next.refills += sum->refills;
	next.zone_locks += sum->zone_locks;
	next.zone_contended += sum->zone_contended;
	next.drains += sum->drains;
	next.depot_gets += sum->depot_gets;
	next.depot_puts += sum->depot_puts;
	*sum = next;
}

struct summary summary_make(enum backend_kind kind,
			    const struct pipeline_result *rounds, size_t n)
{
	struct summary s = {.kind = kind};
	double wall[n], cpu[n];
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		const struct pipeline_result *r = &rounds[i];

		wall[i] = per_packet(r->wall_ns, r);
		cpu[i] = per_packet(r->cpu_ns, r);
		bytes += r->bytes;
		s.packets += r->packets;
		s.stalls += r->stalls;
		if (r->rss_bytes > s.rss_bytes)
			s.rss_bytes = r->rss_bytes;
		for (int k = 0; k <= PCPA_MAX_ORDER; k++)
			s.blocks[k] += r->blocks[k];
		counters_add(&s.counters, &r->counters);
	}
	s.ns_per_packet = median(wall, n);
	s.cpu_ns_per_packet = median(cpu, n);
	s.spread = s.ns_per_packet > 0.0
			   ? (wall[n - 1] - wall[0]) / s.ns_per_packet
			   : 0.0;
	s.bytes_per_packet = s.packets ? (double)bytes / (double)s.packets : 0.0;
	return s;
}

static double mpps(const struct summary *s)
{
	return s->ns_per_packet > 0.0 ? 1e3 / s->ns_per_packet : 0.0;
}

static double gbps(const struct summary *s)
{
	return mpps(s) * s->bytes_per_packet * 8.0 / 1e3;
}

static double per_million(uint64_t events, const struct summary *s)
{
	return s->packets ? 1e6 * (double)events / (double)s->packets : 0.0;
}

/* Share of the blocks that were handed out without a refill of the cache. */
static double hit_percent(const struct summary *s)
{
	double all = (double)s->counters.alloc_total;

	return all > 0.0 ? 100.0 * (1.0 - (double)s->counters.refills / all)
			 : 0.0;
}

static uint64_t memory_bytes(const struct report *r, const struct summary *s)
{
	return s->kind == BACKEND_PCPALLOC ? r->heap.managed_bytes
					   : s->rss_bytes;
}

static const struct summary *none_find(const struct report *r)
{
	for (size_t i = 0; i < r->nr_summaries; i++)
		if (r->summaries[i].kind == BACKEND_NONE)
			return &r->summaries[i];
	return NULL;
}

/* ---- words -------------------------------------------------------------- */

void report_capture(const struct options *o, const struct capture *c)
{
	FILE *out = o->json ? stderr : stdout;

	fprintf(out, "%s: %zu frames, %zu bytes, largest %" PRIu32 "\n",
		o->capture, c->nr_read, c->data_bytes, c->largest_bytes);
	if (c->cut[0])
		fprintf(out,
			"  the file breaks off after %zu frames (%s); these "
			"are replayed\n",
			c->nr_read, c->cut);
	if (c->nr_short)
		fprintf(out,
			"  %zu frames were captured in part (snap length); "
			"that part is replayed\n",
			c->nr_short);
	if (c->nr_empty)
		fprintf(out, "  %zu frames without bytes are left out\n",
			c->nr_empty);
	if (c->nr_large)
		fprintf(out,
			"  %zu frames are larger than the largest block and "
			"are left out\n",
			c->nr_large);
	fflush(out);
}

void report_progress(const char *backend, size_t done, size_t all,
		     double seconds_left, const struct pipeline_result *r)
{
	bool tty = isatty(STDERR_FILENO);
	double ns = per_packet(r->wall_ns, r);

	fprintf(stderr, "%srun %zu of %zu: %-11s %8.3f Mpps, %.0f s left%s",
		tty ? "\r" : "", done, all, backend, ns > 0.0 ? 1e3 / ns : 0.0,
		seconds_left, tty ? "   " : "\n");
	fflush(stderr);
}

void report_progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%60s\r", "");
}

static const char *backing_name(enum pcpa_backing backing)
{
	switch (backing) {
	case PCPA_BACKING_HUGETLB:
		return "hugetlb";
	case PCPA_BACKING_THP:
		return "thp";
	case PCPA_BACKING_BASE:
		break;
	}
	return "base";
}

static void page_size_print(char *text, size_t size, size_t bytes)
{
	if (bytes >= 1u << 30)
		snprintf(text, size, "%zu GiB", bytes >> 30);
	else if (bytes >= 1u << 20)
		snprintf(text, size, "%zu MiB", bytes >> 20);
	else
		snprintf(text, size, "%zu KiB", bytes >> 10);
}

/* ---- table -------------------------------------------------------------- */

#define CELL_BYTES 24
#define NAME_WIDTH 30
#define CELL_LEAST 9

enum row {
	ROW_MPPS,
	ROW_GBPS,
	ROW_NS,
	ROW_OVER,
	ROW_CPU,
	ROW_SPREAD,
	ROW_HITS,
	ROW_DEPOT,
	ROW_ZONE,
	ROW_STALLS,
	ROW_MEMORY,
	ROW_PAGES,
	NR_ROWS,
};

static const char *const row_names[NR_ROWS] = {
	[ROW_MPPS] = "Mpps",
	[ROW_GBPS] = "Gb/s",
	[ROW_NS] = "ns per packet",
	[ROW_OVER] = "  more than none",
	[ROW_CPU] = "CPU ns per packet, all threads",
	[ROW_SPREAD] = "spread of the rounds, %",
	[ROW_HITS] = "cache hits, %",
	[ROW_DEPOT] = "depot exchanges per million",
	[ROW_ZONE] = "zone-lock takings per million",
	[ROW_STALLS] = "waits for memory",
	[ROW_MEMORY] = "memory, MiB",
	[ROW_PAGES] = "page size",
};

__attribute__((format(printf, 2, 3))) static void
cell_set(char *cell, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(cell, CELL_BYTES, format, args);
	va_end(args);
}

static int cell_width(const struct summary *s)
{
	int needed = (int)strlen(backend_name(s->kind)) + 1;

	return needed > CELL_LEAST ? needed : CELL_LEAST;
}

/* Nanoseconds: a tenth matters below a thousand only. */
static void ns_cell(char *cell, double ns, bool sign)
{
	bool whole = ns >= 1e3 || ns <= -1e3;

	if (sign)
		cell_set(cell, whole ? "%+.0f" : "%+.1f", ns);
	else
		cell_set(cell, whole ? "%.0f" : "%.1f", ns);
}

/* Rows that only pcpalloc's statistics can fill. */
static void counter_cell(enum row row, const struct summary *s, char *cell)
{
	const struct pcpa_stats *c = &s->counters;

	if (s->kind != BACKEND_PCPALLOC)
		cell_set(cell, "-");
	else if (row == ROW_HITS)
		cell_set(cell, "%.3f", hit_percent(s));
	else if (row == ROW_DEPOT)
		cell_set(cell, "%.0f",
			 per_million(c->depot_gets + c->depot_puts, s));
	else
		cell_set(cell, "%.1f", per_million(c->zone_locks, s));
}

static void pages_cell(const struct report *r, const struct summary *s,
		       char *cell)
{
	char size[CELL_BYTES];

	page_size_print(size, sizeof(size),
			s->kind == BACKEND_PCPALLOC ? r->heap.page_bytes
						    : r->base_page_bytes);
	if (s->kind == BACKEND_NONE)
		cell_set(cell, "-");
	else
		cell_set(cell, "%.20s%s", size,
			 s->kind == BACKEND_PCPALLOC && r->heap.mixed ? "*"
								      : "");
}

static void cell_fill(const struct report *r, enum row row,
		      const struct summary *s, char *cell)
{
	const struct summary *none = none_find(r);

	switch (row) {
	case ROW_MPPS:
		cell_set(cell, "%.3f", mpps(s));
		break;
	case ROW_GBPS:
		cell_set(cell, "%.2f", gbps(s));
		break;
	case ROW_NS:
		ns_cell(cell, s->ns_per_packet, false);
		break;
	case ROW_OVER:
		if (none && s != none)
			ns_cell(cell, s->ns_per_packet - none->ns_per_packet,
				true);
		else
			cell_set(cell, "-");
		break;
	case ROW_CPU:
		ns_cell(cell, s->cpu_ns_per_packet, false);
		break;
	case ROW_SPREAD:
		cell_set(cell, "%.0f", 100.0 * s->spread);
		break;
	case ROW_STALLS:
		cell_set(cell, "%" PRIu64, s->stalls);
		break;
	case ROW_MEMORY:
		if (s->kind == BACKEND_NONE)
			cell_set(cell, "-");
		else
			cell_set(cell, "%.1f", (double)memory_bytes(r, s) / MIB);
		break;
	case ROW_PAGES:
		pages_cell(r, s, cell);
		break;
	case ROW_HITS:
	case ROW_DEPOT:
	case ROW_ZONE:
	case NR_ROWS:
		counter_cell(row, s, cell);
		break;
	}
}

static void blocks_print(const struct report *r)
{
	for (unsigned k = 0; k <= PCPA_MAX_ORDER; k++) {
		char name[64], size[CELL_BYTES];
		uint64_t any = 0;

		for (size_t i = 0; i < r->nr_summaries; i++)
			any |= r->summaries[i].blocks[k];
		if (!any)
			continue;
		page_size_print(size, sizeof(size), r->base_page_bytes << k);
		snprintf(name, sizeof(name), "1000s of blocks, order %u (%s)", k,
			 size);
		printf("%-*s", NAME_WIDTH, name);
		for (size_t i = 0; i < r->nr_summaries; i++)
			printf("%*.0f", cell_width(&r->summaries[i]),
			       (double)r->summaries[i].blocks[k] / 1e3);
		putchar('\n');
	}
}

static void notes_print(const struct report *r)
{
	printf("\nMedians of %u round%s in turns; %s.\n", r->options->rounds,
	       r->options->rounds == 1 ? "" : "s",
	       r->options->single
		       ? "pcpalloc by single calls, inlined (--single)"
		       : "pcpalloc by bulk calls, inlined, a batch of 32 at a time");
	printf("Memory: pcpalloc's is what its heap holds, %s pages; the "
	       "others' is what\nbecame resident while they ran.  "
	       "Every transmitted byte was verified.\n",
	       backing_name(r->heap.backing));
	if (r->options->backends[BACKEND_GLIBC_TUNED])
		printf("glibc-tuned keeps what was freed (mallopt: "
		       "M_TRIM_THRESHOLD, M_TOP_PAD).\n");
	if (r->heap.mixed)
		printf("* the largest; some arenas have smaller pages.\n");
}

void report_table(const struct report *r)
{
	char cell[CELL_BYTES];

	printf("\n%-*s", NAME_WIDTH, "");
	for (size_t i = 0; i < r->nr_summaries; i++)
		printf("%*s", cell_width(&r->summaries[i]),
		       backend_name(r->summaries[i].kind));
	putchar('\n');
	for (int row = 0; row < NR_ROWS; row++) {
		printf("%-*s", NAME_WIDTH, row_names[row]);
		for (size_t i = 0; i < r->nr_summaries; i++) {
			cell_fill(r, (enum row)row, &r->summaries[i], cell);
			printf("%*s", cell_width(&r->summaries[i]), cell);
		}
		putchar('\n');
		if (row == ROW_SPREAD)
			blocks_print(r);
	}
	notes_print(r);
}

/* ---- JSON --------------------------------------------------------------- */

static void json_string(const char *text)
{
	putchar('"');
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p < 0x20)
			printf("\\u%04x", *p);
		else
			putchar(*p);
	}
	putchar('"');
}

/* The file's name without its folder, which says nothing on another machine. */
static void json_capture(const struct capture *c, const char *path)
{
	const char *slash = strrchr(path, '/');

	printf("\"capture\":{\"file\":");
	json_string(slash ? slash + 1 : path);
	printf(",\"frames_read\":%zu,\"frames_replayed\":%zu,"
	       "\"bytes\":%zu,\"largest_bytes\":%" PRIu32
	       ",\"empty\":%zu,\"too_large\":%zu,\"short\":%zu,"
	       "\"cut\":",
	       c->nr_read, c->nr_frames, c->data_bytes, c->largest_bytes,
	       c->nr_empty, c->nr_large, c->nr_short);
	if (c->cut[0])
		json_string(c->cut);
	else
		printf("null");
	putchar('}');
}

static void json_counters(const struct report *r, const struct summary *s)
{
	const struct pcpa_stats *c = &s->counters;

	printf(",\"calls\":\"%s\",\"cache_hit_percent\":%.4f,"
	       "\"refills\":%" PRIu64 ",\"drains\":%" PRIu64
	       ",\"depot_gets\":%" PRIu64 ",\"depot_puts\":%" PRIu64
	       ",\"zone_locks\":%" PRIu64 ",\"zone_contended\":%" PRIu64
	       ",\"zone_locks_per_million\":%.2f,\"backing\":\"%s\","
	       "\"page_bytes\":%zu,\"pages_mixed\":%s",
	       r->options->single ? "single" : "bulk", hit_percent(s),
	       c->refills, c->drains, c->depot_gets, c->depot_puts,
	       c->zone_locks, c->zone_contended, per_million(c->zone_locks, s),
	       backing_name(r->heap.backing), r->heap.page_bytes,
	       r->heap.mixed ? "true" : "false");
}

static void json_summary(const struct report *r, const struct summary *s)
{
	printf("{\"backend\":\"%s\",\"mpps\":%.4f,\"gbps\":%.4f,"
	       "\"ns_per_packet\":%.2f,\"cpu_ns_per_packet\":%.2f,"
	       "\"spread\":%.4f,\"packets\":%" PRIu64 ",\"stalls\":%" PRIu64
	       ",\"memory_bytes\":%" PRIu64 ",\"blocks\":[",
	       backend_name(s->kind), mpps(s), gbps(s), s->ns_per_packet,
	       s->cpu_ns_per_packet, s->spread, s->packets, s->stalls,
	       memory_bytes(r, s));
	for (int k = 0; k <= PCPA_MAX_ORDER; k++)
		printf("%s%" PRIu64, k ? "," : "", s->blocks[k]);
	putchar(']');
	if (s->kind == BACKEND_PCPALLOC)
		json_counters(r, s);
	putchar('}');
}

void report_json(const struct report *r)
{
	printf("{\"version\":\"%s\",", pcpa_version());
	json_capture(r->capture, r->options->capture);
	printf(",\"rounds\":%u,\"seconds\":%g,\"depth\":%u,\"backends\":[",
	       r->options->rounds, r->options->seconds, r->options->depth);
	for (size_t i = 0; i < r->nr_summaries; i++) {
		if (i)
			putchar(',');
		json_summary(r, &r->summaries[i]);
	}
	puts("]}");
}
