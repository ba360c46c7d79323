/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.c - loads a capture file and prepares it for replay.
 *
 * Owns the frames in memory.  Does not know who allocates blocks for them.
 *
 *   file -> memory --libpcap--> data:   |frame 0|frame 1|frame 2| ...
 *                               frames: {data, bytes, order, digest_before} ...
 *
 * Frames are appended to one growing area, so their addresses are settled only
 * when all are read.  The expected digest is a sum of one value a frame, so a
 * replay may end after any frame: whole passes times the sum, and the prefix.
 *
 * Invariants:
 *   C1  nr_frames + nr_empty + nr_large == nr_read
 *   C2  each frame's block holds headroom + bytes
 *
 * Concurrency: read-only after capture_digest().  Cost: linear in the file.
 * Failure: a message that names the file; a cut file is no failure.
 */
#define _GNU_SOURCE
#include "capture.h"

#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet.h"
#include "pcapng.h"

/* The file as it is on disk. */
struct image {
	uint8_t *data;
	size_t bytes;
};

struct loader {
	struct capture *c;
	struct pcapng_links links;
	uint16_t link_type; /* of packets beyond links */
	size_t frames_room;
	size_t data_room;
};

static int room_grow(void **area, size_t *room, size_t wanted, size_t size)
{
	size_t bigger = *room ? *room : 1024;
	void *moved;

	if (wanted <= *room)
		return 0;
	while (bigger < wanted)
		bigger *= 2;
	if (bigger > SIZE_MAX / size)
		return -1;
	moved = realloc(*area, bigger * size);
	if (!moved)
		return -1;
	*area = moved;
	*room = bigger;
	return 0;
}

static int frame_add(struct loader *l, const struct pcap_pkthdr *h,
		     const uint8_t *bytes)
{
	struct capture *c = l->c;
	void *frames = c->frames;
	void *data = c->data;
	uint16_t link_type = c->nr_read < l->links.n ? l->links.types[c->nr_read]
						     : l->link_type;

	c->nr_read++;
	if (h->caplen == 0) {
		c->nr_empty++;
		return 0;
	}
	if (room_grow(&frames, &l->frames_room, c->nr_frames + 1,
		      sizeof(struct frame)))
		return -1;
	c->frames = frames;
	if (room_grow(&data, &l->data_room, c->data_bytes + h->caplen, 1))
		return -1;
	c->data = data;
	memcpy(c->data + c->data_bytes, bytes, h->caplen);
	c->data_bytes += h->caplen;
	c->frames[c->nr_frames++] =
		(struct frame){.bytes = h->caplen, .link_type = link_type};
	c->nr_short += h->caplen < h->len;
	if (h->caplen > c->largest_bytes)
		c->largest_bytes = h->caplen;
	return 0;
}

static void frames_settle(struct capture *c)
{
	const uint8_t *p = c->data;

	for (size_t i = 0; i < c->nr_frames; i++) {
		c->frames[i].data = p;
		p += c->frames[i].bytes;
	}
}

/* Reads to the end or to where the file breaks; -1 only without memory. */
static int frames_read(pcap_t *pcap, struct loader *l)
{
	struct capture *c = l->c;
	struct pcap_pkthdr *header;
	const u_char *bytes;
	int rc;

	while ((rc = pcap_next_ex(pcap, &header, &bytes)) == 1)
		if (frame_add(l, header, bytes))
			return -1;
	if (rc == PCAP_ERROR)
		snprintf(c->cut, sizeof(c->cut), "%s", pcap_geterr(pcap));
	frames_settle(c);
	return 0;
}

static int capture_check(const char *path, const struct capture *c,
			 char error[REPLAY_ERROR_BYTES])
{
	if (c->nr_frames)
		return 0;
	if (c->cut[0])
		snprintf(error, REPLAY_ERROR_BYTES,
			 "%s: no whole frame could be read: %.300s", path,
			 c->cut);
	else
		snprintf(error, REPLAY_ERROR_BYTES,
			 "%s: the capture is empty (%zu frames without bytes)",
			 path, c->nr_empty);
	return -1;
}

/* Returns 0 or an errno; image->data is the caller's to free in any case. */
/* The first bytes of a pcap file of either byte order and clock, or of a pcapng
 * file; a stream that begins otherwise may have no end. */
static bool magic_known(const void *data, size_t bytes)
{
	static const uint32_t known[] = {0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d,
					 0x4d3cb2a1, 0x0a0d0d0a};
	uint32_t magic;

	if (bytes < sizeof(magic))
		return true;
	memcpy(&magic, data, sizeof(magic));
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (magic == known[i])
			return true;
	return false;
}

static int image_read(const char *path, struct image *image)
{
	FILE *file = fopen(path, "rb");
	size_t room = 0;
	void *data = NULL;
	int rc = 0;

	if (!file)
		return errno;
	while (!rc && !feof(file)) {
		if (room_grow(&data, &room, image->bytes + 1, 1)) {
			rc = ENOMEM;
			break;
		}
		image->bytes += fread((uint8_t *)data + image->bytes, 1,
				      room - image->bytes, file);
		if (ferror(file))
			rc = errno;
		if (!rc && !magic_known(data, image->bytes))
			break; /* libpcap says what is wrong with it */
	}
	image->data = data;
	fclose(file);
	return rc;
}

static int image_parse(const char *path, struct image *image, struct capture *c,
		       char error[REPLAY_ERROR_BYTES])
{
	char pcap_error[PCAP_ERRBUF_SIZE] = "the file is empty";
	struct loader l = {.c = c};
	FILE *file = NULL;
	pcap_t *pcap = NULL;
	int rc = pcapng_unify(image->data, image->bytes, &l.links);

	if (!rc && image->bytes)
		file = fmemopen(image->data, image->bytes, "rb");
	if (file)
		pcap = pcap_fopen_offline(file, pcap_error);
	if (pcap) {
		l.link_type = (uint16_t)pcap_datalink(pcap);
		rc = frames_read(pcap, &l);
		pcap_close(pcap);
	} else if (file) {
		fclose(file);
	}
	free(l.links.types);
	if (rc)
		snprintf(error, REPLAY_ERROR_BYTES,
			 "%s: out of memory after %zu frames", path, c->nr_read);
	else if (!pcap)
		snprintf(error, REPLAY_ERROR_BYTES,
			 "%s: not a capture that libpcap can read: %.300s",
			 path, pcap_error);
	return rc || !pcap ? -1 : capture_check(path, c, error);
}

int capture_load(const char *path, struct capture *c,
		 char error[REPLAY_ERROR_BYTES])
{
	struct capture fresh = {0};
	struct image image = {0};
	int rc = image_read(path, &image);

	if (rc)
		snprintf(error, REPLAY_ERROR_BYTES, "%s: %s", path,
			 strerror(rc));
	else
		rc = image_parse(path, &image, &fresh, error);
	free(image.data);
	if (rc) {
		capture_free(&fresh);
		return -1;
	}
	*c = fresh;
	return 0;
}

/* Smallest order whose block holds `bytes`; above max_order if none does. */
static unsigned order_for(size_t bytes, size_t page_bytes, unsigned max_order)
{
	unsigned order = 0;

	while (order <= max_order && page_bytes << order < bytes)
		order++;
	return order;
}

size_t capture_fit(struct capture *c, size_t page_bytes, size_t headroom,
		   unsigned max_order)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->nr_frames; i++) {
		struct frame f = c->frames[i];
		unsigned order =
			order_for(f.bytes + headroom, page_bytes, max_order);

		if (order > max_order) {
			c->nr_large++;
			continue;
		}
		f.order = (uint8_t)order;
		c->frames[kept++] = f;
	}
	c->nr_frames = kept;
	return kept;
}

int capture_digest(struct capture *c)
{
	uint8_t *copy = malloc(c->largest_bytes);

	if (!copy)
		return -1;
	c->digest = 0;
	for (size_t i = 0; i < c->nr_frames; i++) {
		struct frame *f = &c->frames[i];

		memcpy(copy, f->data, f->bytes);
		packet_forward(copy, f->bytes, f->link_type);
		f->digest_before = c->digest;
		c->digest += packet_digest(copy, f->bytes);
	}
	free(copy);
	return 0;
}

uint64_t capture_digest_expect(const struct capture *c, uint64_t n)
{
	return n / c->nr_frames * c->digest +
	       c->frames[n % c->nr_frames].digest_before;
}

void capture_free(struct capture *c)
{
	free(c->frames);
	free(c->data);
	*c = (struct capture){0};
}
