/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - the command line of pcpreplay.
 */
#ifndef PCPREPLAY_OPTIONS_H
#define PCPREPLAY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "backend.h"
#include "capture.h"

struct options {
	const char *capture;
	double seconds; /* measured, of all backends and rounds together */
	unsigned rounds;
	unsigned heap_mib; /* 0: by the memory in flight */
	unsigned depth;    /* batches a queue holds */
	unsigned max_order;
	bool backends[BACKEND_NR_KINDS];
	bool single;
	bool json;
	bool help;
};

/*
 * Parses the command line.  Returns 0, or -1 with a message in error that names
 * the option and the value.  A capture must be named unless help is asked for.
 */
int options_parse(int argc, char **argv, struct options *o,
		  char error[REPLAY_ERROR_BYTES]);

void options_print_help(void);

#endif
