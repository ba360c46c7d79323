/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * env.c - the only place that reads the environment.
 *
 * Owns: the walk over the PCPA_* variables; PCPA_CHECKS, which is no knob of one
 * heap but of the process.  Doesn't own: the knobs' names and their syntax
 * (config.c), nor when they are read (once, by the default heap; PCPA_CHECKS at
 * each creation).
 *
 *  V1  Every variable that begins with PCPA_ is a knob or an error: a typo must
 *      not run with a default.
 *  V2  A program with raised privileges sees none of them, good or bad: its
 *      caller must neither steer nor stop it.
 *
 * Concurrency: as getenv(): unsafe beside setenv() of another thread.
 * Cost: linear in the environment, once in a process.
 * Failure: -EINVAL and a text.
 * Proved by tests/unit/test_config.c.
 */
#define _GNU_SOURCE
#include "env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "config.h"

static const char prefix[] = "PCPA_";
static const char checks[] = "PCPA_CHECKS";

/* Is "name=..." a knob?  The name is cut where the buffer ends: no knob's is
 * that long. */
static bool entry_known(const char *entry, char *name, size_t name_bytes)
{
	size_t len = strcspn(entry, "=");

	snprintf(name, name_bytes, "%.*s", (int)pcpi_min(len, name_bytes - 1),
		 entry);
	return strcmp(name, checks) == 0 || pcpi_config_find(name) != NULL;
}

static int names_check(char *error, size_t error_bytes)
{
	char name[64];

	for (char **entry = environ; entry && *entry; entry++) {
		if (strncmp(*entry, prefix, sizeof(prefix) - 1) != 0)
			continue;
		if (entry_known(*entry, name, sizeof(name)))
			continue;
		snprintf(error, error_bytes, "%s: no such variable", name);
		return -EINVAL;
	}
	return 0;
}

int pcpi_env_checks(unsigned *flags, char *error, size_t error_bytes)
{
	const char *value = secure_getenv(checks);

	if (!value || strcmp(value, "0") == 0)
		return 0;
	if (strcmp(value, "1") != 0) {
		snprintf(error, error_bytes, "%s \"%.80s\": must be 0 or 1",
			 checks, value);
		return -EINVAL;
	}
	*flags |= PCPA_HEAP_CHECKS;
	return 0;
}

int pcpi_env_options(struct pcpa_heap_options *opts, char *error,
		     size_t error_bytes)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	int err = 0;

	/* V1, and V2: secure_getenv() below sees to the knobs. */
	if (getauxval(AT_SECURE) == 0)
		err = names_check(error, error_bytes);
	for (size_t i = 0; err == 0 && i < pcpi_knobs_count; i++) {
		const char *variable = pcpi_knobs[i].variable;
		const char *value = secure_getenv(variable);

		if (value)
			err = pcpi_config_parse(variable, value, &o, error,
						error_bytes);
	}
	if (err == 0)
		*opts = o;
	return err;
}
