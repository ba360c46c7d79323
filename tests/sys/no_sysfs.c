/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no_sysfs.c - a heap where neither /sys nor /proc is mounted, as in a bare
 * chroot: no topology, no huge page sizes and no control group can be read.
 * It must be made all the same, from one node with all memory.
 *
 * Empty file systems are mounted over both in a mount namespace of its own.
 * Exits 77 where that is not permitted.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <pcpalloc/pcpalloc.h>

#define MIB ((size_t)1 << 20)
#define SKIPPED 77

static bool hide(const char *path)
{
	return mount("none", path, "tmpfs", 0, "size=4k") == 0;
}

static bool hide_all(void)
{
	int flags = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);

	return unshare(flags) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       hide("/sys") && hide("/proc");
}

static int serve(void)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	void *blocks[64];
	size_t n;
	int err;

	opts.initial_bytes = 4 * MIB; /* max_bytes: what the node has */
	err = pcpa_heap_create(&opts, &heap);
	if (err) {
		fprintf(stderr, "no heap: %s\n", strerror(-err));
		return 1;
	}
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, 64);
	for (size_t i = 0; i < n; i++)
		memset(blocks[i], 1, pcpa_heap_page_bytes(heap));
	pcpa_free_bulk(heap, blocks, n);
	if (n != 64 || pcpa_heap_destroy(heap)) {
		fprintf(stderr, "%zu of 64 blocks\n", n);
		return 1;
	}
	return 0;
}

int main(void)
{
	if (!hide_all()) {
		printf("skipped: mounting is not permitted\n");
		return SKIPPED;
	}
	/* No handlers: LeakSanitizer's reads /proc, which is hidden now. */
	_exit(serve());
}
