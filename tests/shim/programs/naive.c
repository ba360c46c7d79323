/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * naive.c - a cache of mappings as one writes it first, to be preloaded: what is
 * freed is kept by its size and handed out again.  The contract must find its faults,
 * those that it always has, and one more that $NAIVE names:
 *
 *   dirty    hands it out as it is            length   takes a length of zero
 *   tail     zeroes what was asked for only   hint     goes elsewhere at once
 *   flags    knows no flags                   prot     knows no protection
 *   full     ENOMEM when its table is full    shared   its memory is shared
 *   heap     allocates on the way             errno    loses errno
 *   fd       keeps a descriptor               round    unmaps a page more
 *   split    refuses to free a part           dontneed MADV_DONTNEED does nothing
 *   protect  mprotect does nothing            moves    mremap loses what there was
 *   off      all calls go to the kernel
 *
 * One mutex around a table of a thousand blocks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define BLOCKS 1000u

struct block {
	unsigned char *p;
	size_t bytes;
	bool live;
};

static struct block blocks[BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is(const char *fault)
{
	const char *name = getenv("NAIVE");

	return name && strcmp(name, fault) == 0;
}

static void *kernel_mmap(void *at, size_t bytes, int prot, int flags, int fd,
			 off_t offset)
{
	return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);
}

static struct block *find(const unsigned char *p, size_t bytes, bool live)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		struct block *b = &blocks[i];

		if (b->bytes == bytes && b->live == live && (!p || b->p == p))
			return b;
	}
	return NULL;
}

static void *take(size_t bytes, size_t asked, int prot, int flags)
{
	struct block *b = find(NULL, bytes, false);
	void *p;

	if (b) {
		b->live = true;
		if (!is("dirty"))
			memset(b->p, 0, is("tail") ? asked : bytes);
		return b->p;
	}
	b = find(NULL, 0, false);
	if (!b && is("full")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	p = kernel_mmap(NULL, bytes, prot,
			is("shared") ? MAP_SHARED | MAP_ANONYMOUS : flags, -1,
			0);
	if (b && p != MAP_FAILED)
		*b = (struct block){p, bytes, true};
	return p;
}

static bool served(const void *at, size_t bytes, int prot, int flags)
{
	if (is("off") || (bytes == 0 && !is("length")) ||
	    bytes > (size_t)256 << 20 || !(flags & MAP_ANONYMOUS))
		return false;
	if (prot != (PROT_READ | PROT_WRITE) && !is("prot"))
		return false;
	if (is("flags"))
		return !(flags & MAP_FIXED);
	flags &= ~(MAP_NORESERVE | MAP_STACK);
	return flags == (MAP_PRIVATE | MAP_ANONYMOUS) && (!at || is("hint"));
}

static void odd_things(void)
{
	void *volatile p;

	if (is("heap")) {
		p = malloc(1);
		free(p);
	}
	if (is("errno"))
		errno = 0;
	if (is("fd"))
		(void)!open("/dev/null", O_RDONLY);
}

void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	size_t whole = bytes ? (bytes + PAGE - 1) & -PAGE : PAGE;
	void *p;

	if (!served(at, bytes, prot, flags))
		return kernel_mmap(at, bytes, prot, flags, fd, offset);
	pthread_mutex_lock(&lock);
	p = take(whole, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS);
	pthread_mutex_unlock(&lock);
	odd_things();
	return p;
}

static bool is_part(const unsigned char *p, size_t bytes)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		if (blocks[i].live && p >= blocks[i].p &&
		    p < blocks[i].p + blocks[i].bytes && bytes < blocks[i].bytes)
			return true;
	return false;
}

int munmap(void *p, size_t bytes)
{
	size_t whole = (bytes + PAGE - 1) & -PAGE;
	struct block *b;
	bool part;

	if (is("off") || bytes == 0)
		return (int)syscall(SYS_munmap, p, bytes);
	pthread_mutex_lock(&lock);
	b = find(p, whole, true);
	if (b)
		b->live = false;
	part = is_part(p, whole);
	pthread_mutex_unlock(&lock);
	if (b)
		return 0;
	if (part && is("split")) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_munmap, p, bytes + (is("round") ? PAGE : 0));
}

int madvise(void *p, size_t bytes, int advice)
{
	if (is("dontneed") && advice == MADV_DONTNEED)
		return 0;
	return (int)syscall(SYS_madvise, p, bytes, advice);
}

int mprotect(void *p, size_t bytes, int prot)
{
	if (is("protect"))
		return 0;
	return (int)syscall(SYS_mprotect, p, bytes, prot);
}

void *mremap(void *p, size_t bytes, size_t size, int flags, ...)
{
	va_list more;
	void *to, *q;

	va_start(more, flags);
	to = va_arg(more, void *);
	va_end(more);
	q = (void *)syscall(SYS_mremap, p, bytes, size, flags, to);
	if (is("moves") && q != MAP_FAILED && q != p)
		memset(q, 0, size);
	return q;
}
