/* SPDX-License-Identifier: BSD-2-Clause */
/* layout.c - see layout.h. */
#include <unistd.h>

#include <rte_common.h>

#include "layout.h"

/* More colours than a page has lines would repeat its sets. */
#define COLOURS_MAX 64u

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#define HAS_WIDE __builtin_cpu_supports("avx2")
#else
#define WIDE
#define HAS_WIDE false
#endif

WIDE void layout_objects_wide(const struct layout *l, void **blocks, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks[i] = layout_object(l, blocks[i]);
}

void layout_fill(struct layout *l, const struct rte_mempool *mp)
{
	struct rte_mempool_objsz size;
	size_t bytes, colours;

	/* mp->trailer_size also has what spreads neighbours over memory channels. */
	rte_mempool_calc_obj_size(mp->elt_size, mp->flags | RTE_MEMPOOL_F_NO_SPREAD,
				  &size);
	bytes = (size_t)size.header_size + size.elt_size + size.trailer_size;
	l->wide = HAS_WIDE;
	l->order = 0;
	l->block_bytes = (size_t)sysconf(_SC_PAGESIZE);
	while (l->block_bytes < bytes) {
		l->block_bytes <<= 1;
		l->order++;
	}
	colours = (l->block_bytes - bytes) / RTE_CACHE_LINE_SIZE + 1;
	colours = rte_align64prevpow2(RTE_MIN(colours, COLOURS_MAX));
	l->header_bytes = mp->header_size;
	/* The block's number, times the bytes of a line. */
	l->offset_shift = rte_log2_u64(l->block_bytes / RTE_CACHE_LINE_SIZE);
	l->offset_mask = (colours - 1) * RTE_CACHE_LINE_SIZE;
}
