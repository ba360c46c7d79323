/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.h - a look after every single instruction of what a test calls (the
 * processor's trap flag, and a signal handler).  Where STEPS is 0 there is none.
 */
#ifndef STEPS_H
#define STEPS_H

#include "conc.h"

#include <signal.h>
#include <ucontext.h>

#if defined(__x86_64__) && !CONC_TSAN
#define STEPS 1

#define STEPS_FLAG 0x100

static void (*steps_look)(void);
static bool steps_over; /* set by a look that is the last */
static uint64_t steps_taken;

static inline void steps_handler(int signo, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)signo;
	(void)info;
	steps_taken++;
	steps_look();
	if (steps_over)
		at->uc_mcontext.gregs[REG_EFL] &= ~STEPS_FLAG;
	steps_over = false;
}

static inline void steps_setup(void (*look)(void))
{
	struct sigaction act = { .sa_sigaction = steps_handler,
				 .sa_flags = SA_SIGINFO };

	steps_look = look;
	CHECK(sigaction(SIGTRAP, &act, NULL) == 0);
}

/* Ors or ands the flags.  Below the red zone. */
#define STEPS_FLAGS(change, with)                                              \
	__asm__ __volatile__("leaq -128(%%rsp), %%rsp\n\t"                     \
			     "pushfq\n\t" change " %0, (%%rsp)\n\tpopfq\n\t"   \
			     "leaq 128(%%rsp), %%rsp"                          \
			     ::"i"(with) : "memory", "cc")

#define steps_begin() STEPS_FLAGS("orq", STEPS_FLAG)
#define steps_end() STEPS_FLAGS("andq", ~STEPS_FLAG)

#else
#define STEPS 0
#endif

#endif
