/* SPDX-License-Identifier: BSD-2-Clause */
/* eal.c - see eal.h. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_log.h>

#include "eal.h"

static FILE *log_file;

void expect(bool is, const char *text)
{
	if (is)
		return;
	fprintf(stderr, "FAILED: %s\n", text);
	exit(1);
}

static char said[1 << 16];

static bool is_said(const char *text)
{
	fflush(log_file);
	rewind(log_file);
	said[fread(said, 1, sizeof(said) - 1, log_file)] = '\0';
	return strstr(said, text) != NULL;
}

void not_said(const char *text)
{
	if (is_said(text)) {
		fprintf(stderr, "FAILED: \"%s\" in:\n%s", text, said);
		exit(1);
	}
}

void said_has(const char *text)
{
	if (!is_said(text)) {
		fprintf(stderr, "FAILED: no \"%s\" in:\n%s", text, said);
		exit(1);
	}
}

/* Two lcores on processors that this process may use, perhaps the same. */
static void lcores_choose(char *text, size_t bytes)
{
	cpu_set_t set;
	int cpu[2], n = 0;

	expect(sched_getaffinity(0, sizeof(set), &set) == 0, "affinity");
	for (size_t i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = (int)i;
	snprintf(text, bytes, "0@%d,1@%d", cpu[0], cpu[n - 1]);
}

void eal_begin(const char *load)
{
	char lcores[32], program[] = "handler";
	const char *argv[20] = {program, "--no-huge", "-m", "64", "--no-shconf",
				"--no-pci", "--no-telemetry", "--lcores", lcores,
				"--log-level=mempool.pcpalloc:debug"};
	int argc = 10;

	lcores_choose(lcores, sizeof(lcores));
	if (load) {
		argv[argc++] = "-d";
		argv[argc++] = load;
	}
	log_file = tmpfile();
	expect(log_file != NULL, "a file for the log");
	rte_openlog_stream(log_file);
	expect(rte_eal_init(argc, (char **)(uintptr_t)argv) >= 0, "rte_eal_init");
	rte_openlog_stream(log_file);
}
