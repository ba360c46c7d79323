/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet.h - what the worker and the transmit stage do with a frame.
 */
#ifndef PCPREPLAY_PACKET_H
#define PCPREPLAY_PACKET_H

#include <stdint.h>

enum packet_kind {
	PACKET_IPV4,
	PACKET_IPV6,
	PACKET_OTHER, /* ARP, other link types, cut or malformed headers */
	PACKET_NR_KINDS,
};

/*
 * Forwards the frame as a router does: reads the link header, lowers TTL or
 * hop limit unless it is already 1 or 0, and updates the IPv4 header checksum.
 * link_type is a DLT_* of libpcap or a LINKTYPE_* of a file.  Cost: one or two cache lines.
 */
enum packet_kind packet_forward(uint8_t *frame, uint32_t bytes,
				unsigned link_type);

/*
 * A value of all bytes of the frame, their positions and the length; it stands
 * for the device's reading of the frame.  Cost: about a cycle per 8 bytes.
 */
uint64_t packet_digest(const uint8_t *frame, uint32_t bytes);

#endif
