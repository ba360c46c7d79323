/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.h - a packet capture, whole in memory.
 */
#ifndef PCPREPLAY_CAPTURE_H
#define PCPREPLAY_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Error texts of this program fit in. */
#define REPLAY_ERROR_BYTES 512

struct frame {
	const uint8_t *data;
	uint32_t bytes;     /* captured, which is what is replayed */
	uint16_t link_type; /* DLT_* or LINKTYPE_* */
	uint8_t order; /* of the block that holds it; set by capture_fit() */
	uint64_t digest_before; /* sum over the frames before it, after
				 * forwarding; set by capture_digest() */
};

struct capture {
	struct frame *frames;
	size_t nr_frames;
	uint8_t *data; /* all frames, back to back */
	size_t data_bytes;
	size_t nr_read;  /* frames in the file, as far as it could be read */
	size_t nr_empty; /* of no bytes, left out */
	size_t nr_large; /* larger than the largest order, left out */
	uint32_t largest_bytes; /* largest frame read, also of those left out */
	size_t nr_short;        /* captured in part only (snap length) */
	uint64_t digest;        /* of all frames, after forwarding */
	/* Why reading stopped before the end of the file; "" if it didn't. */
	char cut[REPLAY_ERROR_BYTES];
};

/*
 * Reads a pcap or pcapng file.  A file that is cut is read as far as it goes
 * (c->cut says where it ended); one without any frame is an error.
 * Returns 0, or -1 with a message that names the file in error.
 */
int capture_load(const char *path, struct capture *c,
		 char error[REPLAY_ERROR_BYTES]);

/*
 * Sets each frame's order for blocks of page_bytes << order and `headroom`
 * bytes before the frame, and leaves out frames that no block holds up to
 * max_order (counted in nr_large).  Returns the number of frames left.
 */
size_t capture_fit(struct capture *c, size_t page_bytes, size_t headroom,
		   unsigned max_order);

/* Computes what the transmit stage must have seen: digest, digest_before.
 * Returns 0, or -1 without memory. */
int capture_digest(struct capture *c);

/* The sum that transmit must have after the first n frames of an endless
 * repetition of the capture. */
uint64_t capture_digest_expect(const struct capture *c, uint64_t n);

void capture_free(struct capture *c);

#endif
