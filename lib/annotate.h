/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * annotate.h - tells the tools that find a program's memory errors which blocks
 * are free.  Layer 1.
 *
 * Owns: the question which tools the process runs under, and every request to
 * them.  The library is built as ever and finds out at run time:
 *
 *   AddressSanitizer   its two functions are there (weak symbols): memory that
 *                      nobody has is poisoned
 *   LeakSanitizer      likewise: arenas are searched for pointers
 *   ThreadSanitizer    likewise: a free happens before the next hand-out of the
 *                      block, and what a drainer does is no race
 *   memcheck           client requests, where valgrind/memcheck.h was there at
 *                      build time: a block is allocated and freed as by malloc
 *
 * AN1  In an arena, what was handed out can be accessed, and nothing else, unless
 *      the heap was created with PCPA_HEAP_CONTENTS.
 * AN2  What is about to be unmapped is as before for the tools that don't see the
 *      unmapping: the next user of the address is none of ours.
 *
 * A library that is itself built with a sanitizer annotates nothing: that is for
 * tests of its own, which are about the fast way.
 *
 * Cost: without a tool some tests a call, on slow paths only; heaps of a process
 * with a tool have all calls go the slow way (pcp.h, C8).
 * Concurrency: a block's calls are made by the thread that holds it.
 * Failure: none.  Proved by tests/tools/.
 */
#ifndef PCPI_ANNOTATE_H
#define PCPI_ANNOTATE_H

#include "base.h"

/* Whether a tool wants to know of each block; never changes. */
bool pcpi_annotate_active(void);

/* Address space is there that could be accessed but has no memory: a search of all
 * that a program can read would take a fault for each page of it. */
void pcpi_annotate_reserve(void *base, size_t bytes);

/* An arena is there / is about to go, or a part of whole huge pages.  contents:
 * its blocks may be accessed also while they are free. */
void pcpi_annotate_add(void *base, size_t bytes, bool contents);
void pcpi_annotate_remove(void *base, size_t bytes);

/* A block is handed out / has come back. */
void pcpi_annotate_take(void *block, size_t bytes);
void pcpi_annotate_give(void *block, size_t bytes);

/* The same where that changes nothing about who may access it: the one happens
 * before the next other. */
void pcpi_annotate_take_order(void *block);
void pcpi_annotate_give_order(void *block);

/* The library itself is about to read a free block; pcpi_annotate_take()
 * follows. */
void pcpi_annotate_look(void *block, size_t bytes);

/* Around a drainer's access to other threads' caches: the tool sees where the
 * library calls memcpy, but not the claim, which keeps the owner out. */
void pcpi_annotate_claim_begin(void);
void pcpi_annotate_claim_end(void);

#endif
