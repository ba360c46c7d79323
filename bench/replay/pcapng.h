/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcapng.h - lets libpcap read captures of several interfaces.
 */
#ifndef PCPREPLAY_PCAPNG_H
#define PCPREPLAY_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

/* Link types of the packets of a file, in its order. */
struct pcapng_links {
	uint16_t *types; /* LINKTYPE_* */
	size_t n;
};

/*
 * Changes a pcapng file in memory so that all interfaces have the link type of
 * the first and no snap length, and stores what each packet's link type was.
 * Any other file is left alone and gives no types; where the blocks break off
 * it stops, and libpcap will say so.  Returns 0, or -1 without memory.
 * links->types is the caller's to free.
 */
int pcapng_unify(uint8_t *data, size_t bytes, struct pcapng_links *links);

#endif
