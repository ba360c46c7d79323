/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.h - which part of a block is the object.
 *
 *     block: 2^order pages, aligned to its size
 *     | colour | header | element | trailer | rest |
 *                        ^ object
 *
 * Blocks begin at pages, and without a colour all headers would share one set of
 * the first cache.  The colour is a number of lines that the block's address gives,
 * so that both ways between object and block are arithmetic.
 *
 * Cost: some instructions an object, with AVX2 four objects at once.
 * Proved by tests/dpdk/.
 */
#ifndef PCPALLOC_DPDK_LAYOUT_H
#define PCPALLOC_DPDK_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

struct layout {
	uintptr_t offset_mask; /* layout_object() */
	unsigned offset_shift, header_bytes;
	size_t block_bytes;
	unsigned order;
	bool wide; /* the processor has AVX2 */
};

/* For the pool's objects, in blocks of the least order; perhaps one that no heap
 * serves. */
void layout_fill(struct layout *l, const struct rte_mempool *mp);

static inline void *layout_object(const struct layout *l, void *block)
{
	uintptr_t colour = ((uintptr_t)block >> l->offset_shift) & l->offset_mask;

	return (char *)block + l->header_bytes + colour;
}

/* Blocks become their objects, where `wide`. */
void layout_objects_wide(const struct layout *l, void **blocks, unsigned n);

/* Blocks become their objects. */
static __rte_always_inline void layout_objects(const struct layout *l, void **blocks,
					       unsigned n)
{
	if (likely(l->wide)) {
		layout_objects_wide(l, blocks, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		blocks[i] = layout_object(l, blocks[i]);
}

static inline void layout_blocks(const struct layout *l, void *const *objects,
				 void **blocks, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blocks[i] = (char *)objects[i] -
			    ((uintptr_t)objects[i] & (l->block_bytes - 1));
}

#endif
