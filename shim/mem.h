/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem.h - filling, copying and searching without the C library.
 *
 * Its functions may be a sanitizer's in this process, who would take what is done to
 * memory on its way between two owners for a race of theirs; and may be called before
 * they are there.
 */
#ifndef SHIM_MEM_H
#define SHIM_MEM_H

#include "base.h"

static inline void shim_fill(void *to, unsigned char value, size_t bytes)
{
#if defined(__x86_64__)
	__asm__ volatile("rep stosb"
			 : "+D"(to), "+c"(bytes)
			 : "a"(value)
			 : "memory");
#else
	for (unsigned char *p = to; bytes > 0; bytes--)
		*p++ = value;
#endif
}

static inline void shim_copy(void *to, const void *from, size_t bytes)
{
#if defined(__x86_64__)
	__asm__ volatile("rep movsb"
			 : "+D"(to), "+S"(from), "+c"(bytes)
			 :
			 : "memory");
#else
	const unsigned char *q = from;

	for (unsigned char *p = to; bytes > 0; bytes--)
		*p++ = *q++;
#endif
}

/* Index of the first byte without the value, or `bytes`. */
static inline uint32_t shim_find_other(const uint8_t *from, uint8_t value,
				       uint32_t bytes)
{
	uint32_t i = 0;

	while (i < bytes && from[i] == value)
		i++;
	return i;
}

/* Index of the first byte with the value, or `bytes`. */
static inline uint32_t shim_find(const uint8_t *from, uint8_t value,
				 uint32_t bytes)
{
	const uint64_t each = UINT64_C(0x0101010101010101) * value;
	const uint64_t low = UINT64_C(0x0101010101010101);
	uint32_t i = 0;

	for (; i < bytes && (uintptr_t)(from + i) % 8 != 0; i++)
		if (from[i] == value)
			return i;
	for (; i + 8 <= bytes; i += 8) {
		uint64_t x = *(const uint64_t *)(const void *)(from + i) ^ each;

		if ((x - low) & ~x & low << 7)
			break;
	}
	while (i < bytes && from[i] != value)
		i++;
	return i;
}

#endif
