/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapping.c - the process that times mmap() and its kin.
 *
 * Answers what pcpbench asks as worker.c does, for the workloads of mappings only.  A
 * program is built of it twice: with the kernel's calls, and with the preload
 * library's in their place.  PCPBENCH_HUGE=1 asks for huge pages after each mmap() of
 * 2 MiB and more, as THP=always would give them.
 *
 *   fault*     mmap, one byte of each page written, munmap
 *   map*       mmap, munmap
 *   dontneed   a byte written to the next page of 4 MiB that stay mapped, then
 *              MADV_DONTNEED for that page
 *
 * A repetition is as many rounds as take a millisecond, one at least; before the first
 * the loop runs for WARM_NS, so that what can be warm is.
 *
 * Failure: a call that fails ends the process, which pcpbench reports.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "catalog.h"
#include "peer.h"
#include "tsc.h"
#include "wire.h"

enum { PAGE = 4096, REPETITION_NS = 1000000, WARM_NS = 300000000 };

static const size_t stay_bytes = (size_t)4 << 20;
static const size_t huge_bytes = (size_t)2 << 20;

static double ticks_per_ns;
static uint64_t rounds;
static bool huge;
static char *stay;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "pcpbench: %s: %s: %s\n", BENCH_NAME, what,
		strerror(errno));
	exit(1);
}

static char *map(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	if (huge && bytes >= huge_bytes)
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static void unmap(char *p, size_t bytes)
{
	if (munmap(p, bytes))
		die("munmap");
}

static void fault_run(size_t bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		char *p = map(bytes);

		for (size_t at = 0; at < bytes; at += PAGE)
			*(volatile char *)(p + at) = 1;
		unmap(p, bytes);
	}
}

static void map_run(size_t bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		char *p = map(bytes);

		__asm__ volatile("" : : "r"(p) : "memory");
		unmap(p, bytes);
	}
}

static void dontneed_run(uint64_t n)
{
	static size_t at;

	for (uint64_t i = 0; i < n; i++) {
		*(volatile char *)(stay + at) = 1;
		if (madvise(stay + at, PAGE, MADV_DONTNEED))
			die("madvise");
		at = (at + PAGE) % stay_bytes;
	}
}

static void run(unsigned workload, uint64_t n)
{
	switch (workload) {
	case BENCH_FAULT4K:
		fault_run(PAGE, n);
		return;
	case BENCH_FAULT64K:
		fault_run((size_t)64 << 10, n);
		return;
	case BENCH_FAULT2M:
		fault_run((size_t)2 << 20, n);
		return;
	case BENCH_FAULT128M:
		fault_run((size_t)128 << 20, n);
		return;
	case BENCH_MAP4K:
		map_run(PAGE, n);
		return;
	case BENCH_MAP2M:
		map_run((size_t)2 << 20, n);
		return;
	case BENCH_MAP128M:
		map_run((size_t)128 << 20, n);
		return;
	default:
		dontneed_run(n);
	}
}

static double ns_of(unsigned workload, uint64_t n)
{
	uint64_t start = bench_tsc_read();

	run(workload, n);
	return (double)(bench_tsc_read() - start) / ticks_per_ns;
}

static void prepare(unsigned workload)
{
	double warm = 0;

	if (workload == BENCH_DONTNEED) {
		stay = map(stay_bytes);
		memset(stay, 1, stay_bytes);
	}
	for (rounds = 1; ns_of(workload, rounds) < REPETITION_NS; rounds *= 2)
		;
	while (warm < WARM_NS)
		warm += ns_of(workload, rounds);
}

static void repeat(const struct wire_request *q, struct wire_reply *r)
{
	long losses = bench_cpu_losses();

	run(q->workload, 1); /* others had the caches in between */
	r->value = ns_of(q->workload, rounds) / (double)rounds;
	r->pages = rounds;
	r->lost = bench_cpu_losses() > losses;
}

static void setup(const struct wire_request *q, struct wire_reply *r)
{
	int err = bench_pin(q->cpu[0]);

	huge = getenv("PCPBENCH_HUGE") != NULL;
	ticks_per_ns = q->ticks_per_ns;
	snprintf(r->text, sizeof(r->text), huge ? "thp" : "base");
	if (!err)
		return;
	r->status = WIRE_FAILED;
	snprintf(r->text, sizeof(r->text), "pinning to CPU %d: %s", q->cpu[0],
		 strerror(err));
}

static void answer(const struct wire_request *q, struct wire_reply *r)
{
	if (q->kind == WIRE_SETUP)
		setup(q, r);
	else if (!bench_is_mapping(q->workload))
		r->status = WIRE_NOT_APPLICABLE;
	else if (q->kind == WIRE_PREPARE)
		prepare(q->workload);
	else if (q->kind == WIRE_RUN)
		repeat(q, r);
	else if (q->workload == BENCH_DONTNEED)
		unmap(stay, stay_bytes);
}

int main(void)
{
	struct wire_request q;

	while (wire_receive(WIRE_FD, &q, sizeof(q))) {
		struct wire_reply r;

		memset(&r, 0, sizeof(r));
		answer(&q, &r);
		if (!wire_send(WIRE_FD, &r, sizeof(r)))
			return 1;
	}
	return 0;
}
