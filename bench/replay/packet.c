/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet.c - headers and digests of frames.  Pure: only its arguments.
 *
 * Owns no memory.  The digest is two sums over the 8-byte words of the frame,
 * the second a sum of the first (as Fletcher's checksum), so that a changed,
 * moved or missing word shows:
 *
 *   a += word;  b += a;          at the end: b * odd + a + length * odd'
 *
 * Concurrency: reentrant.  Failure: none; what can't be parsed is
 * PACKET_OTHER and is left as it is.  Proved by bench/replay/test_replay.c.
 */
#include "packet.h"

#include <pcap/dlt.h>
#include <string.h>

enum {
	ETHERTYPE_V4 = 0x0800,
	ETHERTYPE_V6 = 0x86dd,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_QINQ = 0x88a8,
	/* Raw IP has another number in files than DLT_RAW. */
	LINKTYPE_RAW = 101,
	ETHER_BYTES = 14,
	SLL_BYTES = 16,
	SLL2_BYTES = 20,
	VLAN_BYTES = 4,
	V4_BYTES = 20,
	V6_BYTES = 40,
	V4_TTL = 8,
	V4_CHECKSUM = 10,
	V6_HOP_LIMIT = 7,
};

static unsigned be16_read(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/*
 * The checksum is the complement of a ones' complement sum (RFC 1624, equation
 * 3): HC' = ~(~HC + ~m + m'), where the 16-bit field m of TTL and protocol goes
 * down by 0x100.
 */
static enum packet_kind v4_forward(uint8_t *ip, uint32_t bytes)
{
	uint32_t before, sum;

	if (bytes < V4_BYTES || ip[0] >> 4 != 4 || (ip[0] & 15u) < 5)
		return PACKET_OTHER;
	if (ip[V4_TTL] <= 1)
		return PACKET_IPV4;
	before = be16_read(ip + V4_TTL);
	ip[V4_TTL]--;
	sum = (~be16_read(ip + V4_CHECKSUM) & 0xffffu) + (~before & 0xffffu) +
	      be16_read(ip + V4_TTL);
	sum = (sum & 0xffffu) + (sum >> 16);
	sum = (sum & 0xffffu) + (sum >> 16);
	sum = ~sum;
	ip[V4_CHECKSUM] = (uint8_t)(sum >> 8);
	ip[V4_CHECKSUM + 1] = (uint8_t)sum;
	return PACKET_IPV4;
}

static enum packet_kind v6_forward(uint8_t *ip, uint32_t bytes)
{
	if (bytes < V6_BYTES || ip[0] >> 4 != 6)
		return PACKET_OTHER;
	if (ip[V6_HOP_LIMIT] > 1)
		ip[V6_HOP_LIMIT]--;
	return PACKET_IPV6;
}

/* The 16-bit protocol number lies at type_at, the packet at `at` unless VLAN
 * tags come before it. */
static enum packet_kind ether_forward(uint8_t *frame, uint32_t bytes,
				      uint32_t type_at, uint32_t at)
{
	unsigned type;

	if (bytes < at)
		return PACKET_OTHER;
	type = be16_read(frame + type_at);
	while ((type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) &&
	       at + VLAN_BYTES <= bytes) {
		at += VLAN_BYTES;
		type = be16_read(frame + at - 2);
	}
	if (type == ETHERTYPE_V4)
		return v4_forward(frame + at, bytes - at);
	if (type == ETHERTYPE_V6)
		return v6_forward(frame + at, bytes - at);
	return PACKET_OTHER;
}

enum packet_kind packet_forward(uint8_t *frame, uint32_t bytes,
				unsigned link_type)
{
	switch (link_type) {
	case DLT_EN10MB:
		return ether_forward(frame, bytes, ETHER_BYTES - 2, ETHER_BYTES);
	case DLT_LINUX_SLL:
		return ether_forward(frame, bytes, SLL_BYTES - 2, SLL_BYTES);
	case DLT_LINUX_SLL2:
		return ether_forward(frame, bytes, 0, SLL2_BYTES);
	case DLT_RAW:
	case LINKTYPE_RAW:
	case DLT_IPV4:
	case DLT_IPV6:
		if (bytes && frame[0] >> 4 == 6)
			return v6_forward(frame, bytes);
		return v4_forward(frame, bytes);
	default:
		return PACKET_OTHER;
	}
}

uint64_t packet_digest(const uint8_t *frame, uint32_t bytes)
{
	uint64_t a = 0, b = 0, word;
	uint32_t at = 0;

	for (; at + sizeof(word) <= bytes; at += (uint32_t)sizeof(word)) {
		memcpy(&word, frame + at, sizeof(word));
		a += word;
		b += a;
	}
	word = 0;
	memcpy(&word, frame + at, bytes - at);
	a += word;
	b += a;
	return b * 0x9e3779b97f4a7c15u + a + bytes * 0xc2b2ae3d27d4eb4fu;
}
