/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.h - the knobs of a heap: what they are called, what they may be.
 * Layer 1, PURE.
 *
 * Every knob exists twice under one name, as a field of struct
 * pcpa_heap_options and as a PCPA_* variable of the default heap; the table
 * pcpi_knobs is the only place that lists them.  A value that can't be used is
 * an error that names it, never a silent default.
 *
 * Error texts have no prefix and no newline, are cut to the buffer and always
 * terminated; a buffer of size 0 may be NULL.
 */
#ifndef PCPI_CONFIG_H
#define PCPI_CONFIG_H

#include <pcpalloc/pcpalloc.h>

#include "base.h"

/* A buffer that holds every error text in full but for an absurd value. */
#define PCPI_CONFIG_ERROR_BYTES 256

/* Bounds that callers may rely on after pcpi_config_check(). */
#define PCPI_BATCH_PAGES_MAX 4096u /* moved in one hold of the zone lock */
#define PCPI_HIGH_PAGES_MAX 65536u /* what a cache's ring can hold */

enum pcpi_knob_type {
	PCPI_KNOB_BYTES,    /* decimal, then nothing, K, M, G or T (binary) */
	PCPI_KNOB_UNSIGNED, /* decimal                                      */
	PCPI_KNOB_NODES,    /* os numbers, "0,2-3"; its syntax is nodeset's */
	PCPI_KNOB_FLAGS,    /* names with commas between them               */
};

struct pcpi_knob {
	const char *name;     /* of the field    */
	const char *variable; /* the same, as PCPA_* */
	enum pcpi_knob_type type;
	size_t offset; /* of the field in struct pcpa_heap_options */
	/* Numbers: 0 is always allowed and means the default (but for
	 * verbosity, where it means silence), anything else is min..max. */
	uint64_t min, max;
	/* "stable": name and meaning last.  "tuning": the name lasts, what it
	 * is best set to changes with the policy. */
	const char *stability;
	const char *help;
};

extern const struct pcpi_knob pcpi_knobs[];
extern const size_t pcpi_knobs_count;

/* The knob of this field or variable name, or NULL. */
const struct pcpi_knob *pcpi_config_find(const char *name);

/*
 * Sets the field that `name` (of a field or a variable) stands for.  A node
 * list is kept by pointer.  Returns 0, or -EINVAL with *opts untouched and a
 * text that has the name and the value in it.
 */
int pcpi_config_parse(const char *name, const char *value,
		      struct pcpa_heap_options *opts, char *error,
		      size_t error_bytes);

/*
 * Checks *opts (NULL: all defaults) for a base page of page_bytes and stores a
 * copy of this library's size: fields that an older caller's struct lacks are
 * defaults, and max_bytes of a fixed heap is its initial_bytes.  Returns 0, or
 * -EINVAL with *normalized untouched and a text that names field and value.
 * Requires page_bytes to be a power of two.  Sizes are not rounded, and nodes is
 * not looked into.
 */
int pcpi_config_check(const struct pcpa_heap_options *opts, size_t page_bytes,
		      struct pcpa_heap_options *normalized, char *error,
		      size_t error_bytes);

/* Whether errors in these options, which weren't checked, are to be said. */
bool pcpi_config_is_loud(const struct pcpa_heap_options *opts);

#endif
