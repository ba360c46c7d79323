/* SPDX-License-Identifier: BSD-2-Clause */
/* env.h - options of the default heap from the environment.  Layer 6. */
#ifndef PCPI_ENV_H
#define PCPI_ENV_H

#include <pcpalloc/pcpalloc.h>

#include "base.h"

/*
 * Stores the defaults, changed by the PCPA_* variables.  opts->nodes points into
 * the environment: use it before anyone changes that.  Returns 0, or -EINVAL
 * with *opts untouched and a text that names the variable and its value; a
 * PCPA_* variable that is no knob is an error too.  The options still need
 * pcpi_config_check().
 */
int pcpi_env_options(struct pcpa_heap_options *opts, char *error,
		     size_t error_bytes);

/* PCPA_CHECKS=1, which is for every heap of the process, adds PCPA_HEAP_CHECKS to
 * *flags.  Returns 0, or -EINVAL and a text when it is neither 0 nor 1. */
int pcpi_env_checks(unsigned *flags, char *error, size_t error_bytes);

#endif
