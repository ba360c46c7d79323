/* SPDX-License-Identifier: BSD-2-Clause */
/* nest.c - see nest.h. */
#include "nest.h"

__thread unsigned pcpi_nest_depth __attribute__((tls_model("initial-exec")));
