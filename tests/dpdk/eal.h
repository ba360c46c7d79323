/* SPDX-License-Identifier: BSD-2-Clause */
/* eal.h - EAL in the handler's test, and its log, in which the handler speaks. */
#ifndef TESTS_DPDK_EAL_H
#define TESTS_DPDK_EAL_H

#include <stdbool.h>

/* Without huge pages, with two lcores, and the plugin where one is named. */
void eal_begin(const char *load);

/* Each ends the test where it isn't so. */
void expect(bool is, const char *text);
void said_has(const char *text);

/* And doesn\'t have this. */
void not_said(const char *text);

#endif
