/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb_stack.c - a call that runs beside the memory of the thread that makes it.
 *
 * While pages leave, who writes to them waits for the thread that moves them.  If that
 * one's own stack is there it would wait for itself, so it goes to a stack of ours, of
 * which there is one, as one thread at a time does that.
 *
 * The kernel writes to a thread's memory, too, whenever the thread has been interrupted: to
 * the C library's area for restartable sequences (rseq), which is beside what the
 * thread pointer shows, often at the end of its stack.  If that is where pages leave,
 * the kernel is told to forget the area for so long.  No signals come, so no such
 * sequence is under way.
 *
 * Failure: an area that the C library doesn't name; then there is no call.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hugetlb.h"

#include "raw.h"

enum {
	STACK_BYTES = 1 << 14,
	/* The C library's own data of a thread are within so many. */
	NEAR_BYTES = 1 << 13,
	RSEQ_UNREGISTER = 1,
	/* Areas have a multiple of this size. */
	RSEQ_STEP = 32,
	RSEQ_MAX = 256,
};

#ifndef SYS_rseq
#if defined(__x86_64__)
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif

#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053
#define GET_FS 0x1003
#else
#define RSEQ_SIGNATURE 0xd428bc00
#endif

/* Of the C library; they may be absent. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static unsigned char stack[STACK_BYTES] PCPI_ALIGNED(64);

/* ---- The thread's area ---------------------------------------------------- */

/* 0: a thread without thread-local memory. */
static uintptr_t thread_pointer(void)
{
	uintptr_t at = 0;

#if defined(__x86_64__)
	/* Not by %fs, which may point nowhere. */
	if (raw_failed(raw6(SYS_arch_prctl, GET_FS, (long)&at, 0, 0, 0, 0)))
		return 0;
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(at));
#endif
	return at;
}

static bool near(uintptr_t what, uintptr_t at, size_t bytes)
{
	return what && what + NEAR_BYTES > at && what < at + bytes + NEAR_BYTES;
}

static long rseq_call(uintptr_t area, long bytes, long flags)
{
	return raw6(SYS_rseq, (long)area, bytes, flags, RSEQ_SIGNATURE, 0, 0);
}

/* How large the thread's area was, of which the kernel knows no more; 0: not known. */
static long rseq_forget(uintptr_t area)
{
	for (long bytes = RSEQ_STEP; bytes <= RSEQ_MAX; bytes += RSEQ_STEP)
		if (!raw_failed(rseq_call(area, bytes, RSEQ_UNREGISTER)))
			return bytes;
	return 0;
}

/* ---- The call ------------------------------------------------------------ */

/* The registers that a function may change, and one for what the stack was. */
static void stack_call(void (*call)(void), unsigned char *top)
{
#if defined(__x86_64__)
	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "movq %[top], %%rsp\n\t"
			 "callq *%[call]\n\t"
			 "movq %%rbx, %%rsp"
			 :
			 : [top] "r"(top), [call] "r"(call)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9",
			   "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
			   "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
			   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
			   "memory", "cc");
#else
	__asm__ volatile("mov x19, sp\n\t"
			 "mov sp, %[top]\n\t"
			 "blr %[call]\n\t"
			 "mov sp, x19"
			 :
			 : [top] "r"(top), [call] "r"(call)
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8",
			   "x9", "x10", "x11", "x12", "x13", "x14", "x15",
			   "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3",
			   "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19",
			   "v20", "v21", "v22", "v23", "v24", "v25", "v26",
			   "v27", "v28", "v29", "v30", "v31", "memory", "cc");
#endif
}

bool shim_hugetlb_call(void (*call)(void), uintptr_t at, size_t bytes)
{
	uintptr_t self = thread_pointer(), area;
	long size;

	if (!near(self, at, bytes)) {
		stack_call(call, stack + STACK_BYTES);
		return true;
	}
	if (!&__rseq_size || !&__rseq_offset)
		return false;
	area = self + (uintptr_t)__rseq_offset;
	size = rseq_forget(area);
	if (!size)
		return false;
	stack_call(call, stack + STACK_BYTES);
	rseq_call(area, size, 0);
	return true;
}
