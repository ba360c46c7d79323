/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings_packet.h - what is done with a packet where there is no network: the
 * receiver writes its header, the application copies 1500 bytes of it and checks
 * the header, which nobody else may have written.
 */
#ifndef BENCH_RINGS_PACKET_H
#define BENCH_RINGS_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { RINGS_PACKET_BYTES = 1500, RINGS_HEADER_WORDS = 8 };

/* One application's. */
struct rings_buffer {
	_Alignas(64) uint64_t word[(RINGS_PACKET_BYTES + 63) / 64 * 8];
};

static inline void rings_packet_write(void *packet, uint64_t mark)
{
	uint64_t *header = packet;

	for (int i = 0; i < RINGS_HEADER_WORDS; i++)
		header[i] = mark;
}

/* False: it isn't the packet with that mark. */
static inline bool rings_packet_read(const void *packet, uint64_t mark,
				     struct rings_buffer *b)
{
	memcpy(b->word, packet, RINGS_PACKET_BYTES);
	/* All of it is read by somebody. */
	__asm__ volatile("" : : "r"(b->word) : "memory");
	return b->word[0] == mark && b->word[RINGS_HEADER_WORDS - 1] == mark;
}

#endif
