/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * program.c - the smallest program that uses the installed library: one block,
 * written, freed, another one by a handle to the thread's cache, and its heap
 * destroyed; the versions of headers and library agree.  Built and run by
 * tests/install/installed.
 */
#include <pcpalloc/inline.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	return 1;
}

int main(void)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_stats stats = PCPA_STATS_INIT;
	struct pcpa_cache cache;
	struct pcpa_heap *heap;
	void *block;
	int err;

	if (strcmp(pcpa_version(), PCPA_VERSION) != 0)
		return fail("version", 0);

	opts.max_bytes = 16u << 20;
	opts.verbosity = 0;
	err = pcpa_heap_create(&opts, &heap);
	if (err)
		return fail("pcpa_heap_create", -err);
	block = pcpa_alloc(heap, 1, PCPA_ZERO);
	if (!block)
		return fail("pcpa_alloc", errno);
	memset(block, 1, 2 * pcpa_heap_page_bytes(heap));
	err = pcpa_stats_read(heap, -1, &stats);
	if (err || stats.used_blocks != 1)
		return fail("pcpa_stats_read", -err);
	pcpa_free(heap, block);
	cache = pcpa_cache_self(heap);
	if (!pcpa_cache_is_inline(&cache))
		return fail("pcpa_cache_self", 0);
	pcpa_cache_free(&cache, pcpa_cache_alloc(&cache, 0, 0));
	err = pcpa_heap_destroy(heap);
	return err ? fail("pcpa_heap_destroy", -err) : 0;
}
