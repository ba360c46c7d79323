/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcapng.c - walks the blocks of a pcapng file.
 *
 * libpcap refuses a pcapng file whose interfaces differ in link type or snap
 * length, because its own interface has one of each.  Such files are common
 * (every capture on several interfaces), so they are made uniform in memory
 * first, and the true link types are kept beside:
 *
 *   | section | interface 0 | interface 1 | packet (1) | packet (0) | ...
 *                  |type         |type := that of 0
 *   links:                                   1's type     0's type
 *
 * A block is {type, length, body, length}, in the byte order of its section.
 * A section starts its own count of interfaces.
 *
 * Invariants:
 *   N1  nothing outside [data, data + bytes) is touched
 *   N2  one link type for each block that libpcap returns as a packet
 *
 * Concurrency: reentrant.  Cost: linear in the number of blocks.
 * Failure: only memory.  Proved by bench/replay/test_replay.c.
 */
#include "pcapng.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET_OLD = 2,    /* 16-bit interface number */
	BLOCK_PACKET_SIMPLE = 3, /* always of interface 0 */
	BLOCK_PACKET = 6,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	/* Type and length before the body, length after it. */
	HEAD_BYTES = 8,
	FRAMING_BYTES = 12,
	SNAP_OFFSET = 4, /* in an interface's body */
	INTERFACE_BODY_BYTES = 8,
	LINKS_AT_FIRST = 1024,
};

struct walk {
	bool swapped;        /* this section's byte order isn't ours */
	bool any_interface;  /* first_type is set */
	uint16_t first_type; /* of the file */
	uint16_t *types;     /* of this section's interfaces */
	size_t nr_types;
	struct pcapng_links *links;
};

static uint32_t word_read(const struct walk *w, const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return w->swapped ? __builtin_bswap32(v) : v;
}

static uint16_t half_read(const struct walk *w, const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return w->swapped ? __builtin_bswap16(v) : v;
}

/* Appends to an array whose room is the next power of two of its length. */
static int type_append(uint16_t **types, size_t *n, uint16_t type)
{
	if (*n == 0 || (*n >= LINKS_AT_FIRST && (*n & (*n - 1)) == 0)) {
		size_t room = *n ? 2 * *n : LINKS_AT_FIRST;
		uint16_t *moved = realloc(*types, room * sizeof(**types));

		if (!moved)
			return -1;
		*types = moved;
	}
	(*types)[(*n)++] = type;
	return 0;
}

static int interface_unify(struct walk *w, uint8_t *body, size_t bytes)
{
	uint16_t type, first;

	if (bytes < INTERFACE_BODY_BYTES)
		return 0;
	type = half_read(w, body);
	if (!w->any_interface)
		w->first_type = type;
	w->any_interface = true;
	first = w->swapped ? __builtin_bswap16(w->first_type) : w->first_type;
	memcpy(body, &first, sizeof(first));
	memset(body + SNAP_OFFSET, 0, sizeof(uint32_t));
	return type_append(&w->types, &w->nr_types, type);
}

static int packet_note(struct walk *w, uint32_t interface)
{
	uint16_t type =
		interface < w->nr_types ? w->types[interface] : w->first_type;

	return type_append(&w->links->types, &w->links->n, type);
}

static int block_visit(struct walk *w, uint32_t type, uint8_t *body,
		       size_t bytes)
{
	switch (type) {
	case BLOCK_SECTION:
		w->nr_types = 0;
		return 0;
	case BLOCK_INTERFACE:
		return interface_unify(w, body, bytes);
	case BLOCK_PACKET:
		return bytes < 4 ? 0 : packet_note(w, word_read(w, body));
	case BLOCK_PACKET_OLD:
		return bytes < 2 ? 0 : packet_note(w, half_read(w, body));
	case BLOCK_PACKET_SIMPLE:
		return packet_note(w, 0);
	default:
		return 0;
	}
}

/* The byte order of a section is that of the word after its length; false when
 * it is neither. */
static bool section_order(struct walk *w, const uint8_t *head)
{
	w->swapped = false;
	if (word_read(w, head + HEAD_BYTES) == BYTE_ORDER_MAGIC)
		return true;
	w->swapped = true;
	return word_read(w, head + HEAD_BYTES) == BYTE_ORDER_MAGIC;
}

int pcapng_unify(uint8_t *data, size_t bytes, struct pcapng_links *links)
{
	struct walk w = {.links = links};
	size_t at = 0;
	int rc = 0;

	*links = (struct pcapng_links){0};
	while (!rc && bytes - at > FRAMING_BYTES) {
		uint8_t *head = data + at;
		uint32_t type, length;

		memcpy(&type, head, sizeof(type));
		if (type == BLOCK_SECTION ? !section_order(&w, head) : at == 0)
			break;
		type = word_read(&w, head);
		length = word_read(&w, head + 4);
		if (length < FRAMING_BYTES || length % 4 || length > bytes - at)
			break;
		rc = block_visit(&w, type, head + HEAD_BYTES,
				 length - FRAMING_BYTES);
		at += length;
	}
	free(w.types);
	if (rc) {
		free(links->types);
		*links = (struct pcapng_links){0};
	}
	return rc;
}
