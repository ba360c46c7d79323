/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * children.h - cases that are child processes, since limits and filters can't be
 * taken back.
 *
 * A case exits 0, 1, or SKIPPED where the machine lacks what it needs; one that dies
 * of a signal has failed.  What the library says to a case that listens is kept, and
 * printed if the case fails.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "sys/sys.h"

#define SKIPPED 77

static char said[4096];
static struct pcpi_sys listening; /* the real system, but for messages */
static unsigned cases_passed, cases_failed, cases_skipped;

static inline void said_add(const char *text, size_t len)
{
	size_t at = strlen(said);

	if (at + len < sizeof(said))
		memcpy(said + at, text, len);
}

static inline bool is_said(const char *text)
{
	return strstr(said, text) != NULL;
}

static inline void listen_in(void)
{
	listening = pcpi_sys_linux;
	listening.bind = pcpi_sys_bind_numa;
	listening.elsewhere = pcpi_sys_elsewhere_numa;
	listening.write_err = said_add;
	pcpi_sys = &listening;
}

/* Waits for its end: the exit status, or -1 after a signal. */
static inline int child_status(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void case_run(const char *name, int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		status = body();
		if (failures > 0)
			fprintf(stderr, "%s", said);
		_exit(failures > 0 ? 1 : status);
	}
	status = child_status(pid);
	cases_passed += status == 0;
	cases_skipped += status == SKIPPED;
	cases_failed += status != 0 && status != SKIPPED;
	printf("%s: %s\n", name,
	       status == 0 ? "passed" : status == SKIPPED ? "skipped" : "FAILED");
}

/* For main(). */
static inline int cases_status(void)
{
	return cases_failed > 0 ? 1 : cases_passed > 0 ? 0 : SKIPPED;
}

#endif
