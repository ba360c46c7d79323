/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats_format.h - snapshots of a heap as text.  Layer 2, PURE.
 *
 * The collector (stats.c) fills the value structs below one at a time and hands
 * each to the writer, so that it needs no memory for all of them:
 *
 *     begin (node (cache)* (arena)*)* end
 *
 * with the caches and arenas of a node right behind it.  The order is the same
 * for every format; a format leaves out what it doesn't show.
 *
 * Units: as in struct pcpa_stats: *_pages, count, high and batch are base pages,
 * *_blocks and lengths of lists are blocks of their order.
 */
#ifndef PCPI_STATS_FORMAT_H
#define PCPI_STATS_FORMAT_H

#include <pcpalloc/stats.h>

#include "base.h"

/* ---- Text ---------------------------------------------------------------- */

/* As snprintf(): at most size bytes are written, len counts what the whole
 * text has. */
struct pcpi_text {
	char *buf;
	size_t size, len;
};

/* buf may be NULL when size is 0. */
void pcpi_text_init(struct pcpi_text *t, char *buf, size_t size);

void pcpi_text_add(struct pcpi_text *t, const char *fmt, ...) PCPI_PRINTF(2, 3);

/* ---- The fields of struct pcpa_stats ------------------------------------- */

struct pcpi_stats_field {
	const char *name;   /* in the struct and in JSON */
	const char *vmstat; /* in the kernel's spelling  */
	size_t offset;
};

extern const struct pcpi_stats_field pcpi_stats_fields[];
extern const size_t pcpi_stats_fields_count;

uint64_t pcpi_stats_field_get(const struct pcpa_stats *s,
			      const struct pcpi_stats_field *field);

/* Adds every field of *s to *sum; sizes are left alone. */
void pcpi_stats_add(struct pcpa_stats *sum, const struct pcpa_stats *s);

/* ---- Snapshots ----------------------------------------------------------- */

#define PCPI_BACKINGS 3 /* members of enum pcpa_backing */

enum pcpi_stats_node_flags {
	PCPI_STATS_BELOW_HIGH = 1u,     /* free pages fail the high watermark */
	PCPI_STATS_RECLAIM_ACTIVE = 2u, /* arenas are being given back        */
};

struct pcpi_stats_node {
	int node; /* os number */
	struct pcpa_stats s;
	uint64_t free_blocks[PCPI_MAX_ORDER + 1]; /* in the buddy, by order */
	uint64_t depot_blocks[PCPI_PCP_ORDERS];   /* in the depot, by order */
	/* By enum pcpa_backing: bytes backed so, and the page size asked for
	 * there, 0 where bytes is 0. */
	uint64_t backing_bytes[PCPI_BACKINGS];
	size_t backing_page_bytes[PCPI_BACKINGS];
	unsigned flags; /* enum pcpi_stats_node_flags */
};

struct pcpi_stats_cache {
	int tid; /* of the owner */
	int node;
	uint32_t count, high, high_min, high_max, batch, depot_batch;
	uint32_t len[PCPI_PCP_ORDERS]; /* blocks, by order */
	uint64_t alloc_total, free_total;
	bool live; /* false: the owner has ended, and tid was its */
};

struct pcpi_stats_arena {
	int node;
	uint64_t bytes;
	size_t page_bytes;
	enum pcpa_backing backing;
};

/* ---- Writer -------------------------------------------------------------- */

struct pcpi_stats_writer {
	struct pcpi_text text;
	enum pcpa_stats_format format;
	unsigned stage;  /* what was put last */
	bool more_nodes; /* a node was put before */
	bool more_items; /* of the open list */
};

/*
 * Starts a text.  *total has the sums over all nodes, the only thing that
 * VMSTAT shows.  Returns 0, or -EINVAL for an unknown format.
 */
int pcpi_stats_begin(struct pcpi_stats_writer *w, char *buf, size_t size,
		     enum pcpa_stats_format format, size_t page_bytes,
		     const struct pcpa_stats *total);

void pcpi_stats_put_node(struct pcpi_stats_writer *w,
			 const struct pcpi_stats_node *n);

/* Requires: the last node put is c->node, and no arena of it yet. */
void pcpi_stats_put_cache(struct pcpi_stats_writer *w,
			  const struct pcpi_stats_cache *c);

/* Requires: the last node put is a->node. */
void pcpi_stats_put_arena(struct pcpi_stats_writer *w,
			  const struct pcpi_stats_arena *a);

/* Returns the length that the whole text has. */
size_t pcpi_stats_end(struct pcpi_stats_writer *w);

#endif
