/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb.h - mappings that may be huge pages of the kernel's pool, for the parts of
 * programs/hugetlb.c.
 */
#ifndef PROGRAMS_HUGETLB_H
#define PROGRAMS_HUGETLB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define UNIT ((size_t)2 << 20)
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "hugetlb: %d: not so: %s (%m)\n",      \
				__LINE__, #cond);                              \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static inline unsigned char *map(size_t bytes)
{
	unsigned char *p = mmap(NULL, bytes, RW, ANON, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static inline bool all(const unsigned char *p, unsigned char value, size_t bytes)
{
	return *p == value && (bytes == 1 || !memcmp(p, p + 1, bytes - 1));
}

/* Does the kernel say that the address is in huge pages of the pool? */
static inline bool pooled(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool inside = false, ht = false;
	unsigned long from, to;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			ht = strstr(line, " ht") != NULL;
	}
	fclose(f);
	return ht;
}

/* So often that the library knows the sizes to be used. */
static inline void warm(void)
{
	for (size_t bytes = UNIT; bytes <= 4 * UNIT; bytes *= 2)
		for (int i = 0; i < 4; i++) {
			unsigned char *p = map(bytes);

			CHECK(all(p, 0, bytes));
			memset(p, 0xa5, bytes);
			CHECK(munmap(p, bytes) == 0);
		}
}

static inline unsigned char *filled(void)
{
	unsigned char *p = map(UNIT);

	CHECK(all(p, 0, UNIT));
	memset(p, 7, UNIT);
	return p;
}

/* All that can be done to a part of one (hugetlb_parts.c). */
void parts(void);

#endif
