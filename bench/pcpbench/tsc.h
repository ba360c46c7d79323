/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tsc.h - the clock of the benchmarks: the processor's time-stamp counter.
 *
 * Owns: reading the counter and its rate.  A system call's clock costs too
 * much between chunks of a few microseconds; the counter costs some 10 ns and
 * goes on counting while the thread has lost its CPU, which is how the loss is
 * found.
 *
 * Failure: none; machines without a readable counter use CLOCK_MONOTONIC_RAW.
 */
#ifndef BENCH_TSC_H
#define BENCH_TSC_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t bench_ns_read(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Ticks.  rdtscp waits for earlier instructions, so that a chunk's work is
 * counted in its own chunk. */
static inline uint64_t bench_tsc_read(void)
{
#if defined(__x86_64__)
	unsigned aux;

	return __rdtscp(&aux);
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return bench_ns_read();
#endif
}

/* Lets the sibling and the memory bus breathe in a spin loop. */
static inline void bench_pause(void)
{
#if defined(__x86_64__)
	_mm_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Ticks per ns, against CLOCK_MONOTONIC_RAW.  Cost: 60 ms. */
double bench_tsc_calibrate(void);

#endif
