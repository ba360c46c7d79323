/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_coalesce.c - does memory that went out page by page come back whole?
 *
 *   64 MiB heap of its own: take every page, free them in random order, drain,
 *   take all blocks of order 3, free, drain, take all blocks of order 9.
 *
 * Counts, no clock: 2,048 and 32 blocks are all there are.
 */
#include "lane.h"

#include <string.h>

enum { COALESCE_MIB = 64, COALESCE_PAGES = 16384 };

static void shuffle(void **blocks, size_t n, uint64_t seed)
{
	for (size_t i = n - 1; i > 0; i--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		size_t k = (size_t)(seed >> 33) % (i + 1);
		void *other = blocks[k];

		blocks[k] = blocks[i];
		blocks[i] = other;
	}
}

static size_t all_take(struct ops *o, unsigned order, void **blocks)
{
	size_t n = 0;

	while (n < COALESCE_PAGES && (blocks[n] = ops_take(o, order)))
		n++;
	return n;
}

static void all_give(struct ops *o, unsigned order, void **blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ops_give(o, blocks[i], order);
}

static void blocks_count(struct ops_shared *s, struct ops *o, void **blocks,
			 unsigned turn, struct wire_reply *reply)
{
	size_t n = all_take(o, 0, blocks);

	reply->pages = n;
	if (n)
		shuffle(blocks, n, turn + 1);
	all_give(o, 0, blocks, n);
	ops_drain(s);
	n = all_take(o, 3, blocks);
	reply->value = (double)n;
	all_give(o, 3, blocks, n);
	ops_drain(s);
	n = all_take(o, 9, blocks);
	reply->second = (double)n;
	all_give(o, 9, blocks, n);
	ops_drain(s);
}

void bench_coalesce_run(unsigned turn, struct wire_reply *reply)
{
	struct ops_shared shared;
	struct ops ops;
	void **blocks;

	if (!OPS_COALESCE) {
		reply->status = WIRE_NOT_APPLICABLE;
		return;
	}
	blocks = calloc(COALESCE_PAGES, sizeof(*blocks));
	if (!blocks)
		bench_die("no memory for the buffers");
	memset(&shared, 0, sizeof(shared));
	if (ops_open(&shared, COALESCE_MIB, reply->text, sizeof(reply->text))) {
		reply->status = WIRE_FAILED;
	} else {
		ops_attach(&ops, &shared);
		blocks_count(&shared, &ops, blocks, turn, reply);
		ops_detach(&ops);
		ops_close(&shared);
	}
	free(blocks);
}
