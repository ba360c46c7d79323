/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipeline.h - receive -> worker -> transmit, three threads.
 */
#ifndef PCPREPLAY_PIPELINE_H
#define PCPREPLAY_PIPELINE_H

#include <stdint.h>

#include "backend.h"
#include "capture.h"
#include "packet.h"

/* Bytes before the frame in its block, as packet buffers keep for headers. */
#define HEADROOM_BYTES 128

struct pipeline_setup {
	const struct capture *capture;
	struct backend *backend;
	size_t depth;     /* batches a queue holds */
	uint64_t warm_ns; /* not measured, at the start */
	uint64_t run_ns;  /* measured */
};

struct pipeline_result {
	uint64_t packets; /* measured */
	uint64_t bytes;   /* of frames */
	uint64_t wall_ns;
	uint64_t cpu_ns; /* of all threads of the process */
	uint64_t blocks[PCPA_MAX_ORDER + 1];
	uint64_t kinds[PACKET_NR_KINDS]; /* warm-up included */
	uint64_t stalls;    /* waits for memory that others had still to free */
	uint64_t rss_bytes; /* resident at the end less at the start */
	/* pcpalloc: counters' growth, and states at the end */
	struct pcpa_stats counters;
	char error[REPLAY_ERROR_BYTES]; /* "" unless it failed */
};

/* Batches that are in flight at most. */
size_t pipeline_nr_batches(size_t depth);

/*
 * Replays the capture over and over for warm_ns + run_ns, and verifies that
 * transmit saw exactly the bytes that receive was to deliver.  Returns 0, or
 * -1 with result->error set.
 */
int pipeline_run(const struct pipeline_setup *setup,
		 struct pipeline_result *result);

#endif
