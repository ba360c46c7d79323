/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults.h - system calls of the soak that fail at random, one of FAULT_ONE_OF
 * while soak.faults is set.  Not unmap: what a heap can't give back at its end
 * stays for good.
 */
#ifndef SOAK_FAULTS_H
#define SOAK_FAULTS_H

#include "soak.h"

#define FAULT_ONE_OF 16u

static __thread uint64_t fault_random;

/* NULL: not a thread of the soak's, as main and a heap's own. */
static __thread struct soak_thread *soak_self;

static int cpu_said(void)
{
	return soak_self ? soak_self->cpu : 0;
}

static bool refuses(void)
{
	/* relaxed: sooner or later. */
	if (!pcpi_load_relaxed(&soak.faults))
		return false;
	if (fault_random == 0)
		fault_random = (uint64_t)soak.real->tid() * 2654435761u | 1;
	if ((conc_random(&fault_random) >> 16) % FAULT_ONE_OF != 0)
		return false;
	pcpi_fetch_add_relaxed(&soak.refused, 1); /* relaxed: counter */
	return true;
}

static int faulty_reserve(size_t bytes, size_t align, void **out)
{
	return refuses() ? -ENOMEM : soak.real->reserve(bytes, align, out);
}

static int faulty_map_meta(size_t bytes, void **out)
{
	return refuses() ? -ENOMEM : soak.real->map_meta(bytes, out);
}

static int faulty_map_hugetlb(void *addr, size_t bytes, size_t page_bytes)
{
	return refuses() ? -ENOMEM
			 : soak.real->map_hugetlb(addr, bytes, page_bytes);
}

static int faulty_commit(void *addr, size_t bytes)
{
	return refuses() ? -ENOMEM : soak.real->commit(addr, bytes);
}

static int faulty_decommit(void *addr, size_t bytes)
{
	return refuses() ? -ENOMEM : soak.real->decommit(addr, bytes);
}

static int faulty_populate(void *addr, size_t bytes)
{
	return refuses() ? -ENOMEM : soak.real->populate(addr, bytes);
}

static int faulty_advise(void *addr, size_t bytes, enum pcpi_advice advice)
{
	/* Without it a fork's child would have the blocks: not to be ignored. */
	return refuses() ? -ENOMEM : soak.real->advise(addr, bytes, advice);
}

static int faulty_bind(void *addr, size_t bytes, unsigned os_node,
		       enum pcpi_binding how)
{
	return refuses() ? -EPERM : soak.real->bind(addr, bytes, os_node, how);
}

static int faulty_memory_file(const char *name, size_t bytes, size_t page_bytes)
{
	return refuses() ? -EMFILE
			 : soak.real->memory_file(name, bytes, page_bytes);
}

static int faulty_map_file(void *addr, size_t bytes, int fd)
{
	return refuses() ? -ENOMEM : soak.real->map_file(addr, bytes, fd);
}

static int faulty_punch(int fd, uint64_t offset, size_t bytes)
{
	return refuses() ? -ENOMEM : soak.real->punch(fd, offset, bytes);
}

static int faulty_membarrier(void)
{
	return refuses() ? -EPERM : soak.real->membarrier();
}

static int faulty_thread_start(const char *name, void *(*fn)(void *arg), void *arg,
			       pthread_t *out)
{
	return refuses() ? -EAGAIN : soak.real->thread_start(name, fn, arg, out);
}

static int faulty_event_make(void)
{
	return refuses() ? -EMFILE : soak.real->event_make();
}

/* Before heaps have threads of their own, and after a first heap, which has put
 * its own table in place. */
static void faults_install(void)
{
	CHECK(pcpa_heap_destroy(conc_growing_heap(2 * MIB, 0)) == 0);
	soak.real = pcpi_sys;
	soak.sys = *pcpi_sys;
	soak.sys.reserve = faulty_reserve;
	soak.sys.map_meta = faulty_map_meta;
	soak.sys.map_hugetlb = faulty_map_hugetlb;
	soak.sys.memory_file = faulty_memory_file;
	soak.sys.map_file = faulty_map_file;
	soak.sys.punch = faulty_punch;
	soak.sys.commit = faulty_commit;
	soak.sys.decommit = faulty_decommit;
	soak.sys.populate = faulty_populate;
	soak.sys.advise = faulty_advise;
	soak.sys.bind = faulty_bind;
	soak.sys.membarrier = faulty_membarrier;
	soak.sys.thread_start = faulty_thread_start;
	soak.sys.event_make = faulty_event_make;
	if (soak.invented)
		soak.sys.cpu = cpu_said;
	pcpi_sys = &soak.sys;
}

#endif
