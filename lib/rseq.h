/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rseq.h - restartable sequences: a few instructions of which the last is a
 * store, that the kernel cuts short when the thread is preempted, gets a signal,
 * or another thread asks for it.  Layer 1.
 *
 * Owns: the frame of a sequence, where a thread announces one, and the question
 * whether all that works here.
 *
 *   announce:  the thread's rseq area points to {start, length, abort}
 *   start:     ...
 *              the store that commits
 *   end:
 *   abort:     where the kernel sends a thread that it finds between start and
 *              end: nothing of the sequence has happened but harmless stores
 *
 * Nothing is taken back at the end: the kernel sees that the thread is outside.
 *
 * RS1 A sequence is used only by threads for which pcpi_rseq_ready() is true, in
 *     heaps for which pcpi_rseq_setup() was.  It is asked when a cache gets an
 *     owner: a thread that unregisters its area while it owns one, and a child of
 *     vfork(), which the kernel doesn't register, make no calls after that.
 * RS2 pcpi_rseq_cs names eight writable bytes of every thread, also where
 *     sequences don't work.
 *
 * x86-64 only: elsewhere, and under ThreadSanitizer, which doesn't see what
 * assembly does, PCPI_RSEQ is 0.  Source: the kernel's rseq(2) and membarrier(2).
 * Cost: two instructions and a test; an abort some hundred nanoseconds; the setup
 * of a process a millisecond, up to some 0.1 s where other work keeps
 * all processors busy.
 * Proved by tests/unit/test_rseq.c, tests/conc/.
 */
#ifndef PCPI_RSEQ_H
#define PCPI_RSEQ_H

#include "atomics.h"
#include "base.h"

/* The first versions with outputs of an asm that may jump; clang says that it is
 * gcc 4. */
#if defined(__clang__)
#define PCPI_RSEQ_COMPILER (__clang_major__ >= 11)
#else
#define PCPI_RSEQ_COMPILER (__GNUC__ >= 11)
#endif

#if defined(__x86_64__) && defined(__LP64__) && !PCPI_TSAN && PCPI_RSEQ_COMPILER
#define PCPI_RSEQ 1
#else
#define PCPI_RSEQ 0
#endif

/*
 * Whether sequences of this process can be cut short by membarrier: registers
 * for it and tries it, once, beside a thread that has ended before the return.
 * False also where that could not be seen.  The registration and each try, mostly
 * one, interrupt the process's running threads, whatever heaps it makes.
 */
bool pcpi_rseq_setup(void);

/* Whether the kernel knows of the calling thread's sequences; requires
 * pcpi_rseq_setup(). */
bool pcpi_rseq_ready(void);

/* Where every thread announces its sequences, from its thread pointer: RS2. */
extern intptr_t pcpi_rseq_cs __attribute__((visibility("hidden")));

/*
 * The frame, for an asm goto with the operands `tmp` and `at` (registers that it may
 * use) and the label `out`, to which an abort goes, and to which the sequence may
 * jump itself.  Its first instructions depend on nothing: where the announcement's
 * address came from a field of a cache, a pair took 0.6 ns more.  The numbers before the abort's first
 * instruction are those that the C library registers with; the kernel compares
 * them.
 */
#define PCPI_RSEQ_BEGIN                                                        \
	".pushsection .data.rel.ro.pcpi_rseq, \"aw\"\n\t"                      \
	".balign 32\n"                                                         \
	"3:\t.long 0, 0\n\t"                                                   \
	".quad 1f, 2f - 1f, 4f\n\t"                                            \
	".popsection\n\t"                                                      \
	".pushsection .text.unlikely.pcpi_rseq, \"ax\"\n\t"                    \
	".byte 0x0f, 0xb9, 0x3d\n\t"                                           \
	".long 0x53053053\n"                                                   \
	"4:\tjmp %l[out]\n\t"                                                  \
	".popsection\n\t"                                                      \
	"movq %[cs], %q[at]\n\t"                                              \
	"leaq 3b(%%rip), %[tmp]\n\t"                                           \
	"movq %[tmp], %%fs:(%q[at])\n"                                         \
	"1:\t"

/* An input operand: an optimizer that sees the whole program knows of the use. */
#define PCPI_RSEQ_OPERAND [cs] "m"(pcpi_rseq_cs)

/* After the store that commits. */
#define PCPI_RSEQ_END "\n2:\n"

#endif
