/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew.c - starts, asks and ends the worker processes.
 *
 * Failure: everything is told on stderr with the allocator's name; the caller
 * then gives the run up.  A worker's standard input is the socket, and what it
 * writes goes to stderr: stdout is for the results.
 */
#define _GNU_SOURCE
#include "crew.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000 };

extern char **environ;

static bool complain(struct bench_member *m, const char *what)
{
	snprintf(m->why, sizeof(m->why), "%s", what);
	fprintf(stderr, "pcpbench: %s: %s\n", m->allocator, what);
	return false;
}

/* The worker's path, beside this program.  False when it is too long. */
static bool worker_path(const char *allocator, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	int length;

	if (n < 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	length = snprintf(path, size, "%s/pcpbench-worker-%s", self, allocator);
	return length > 0 && (size_t)length < size;
}

static const char *worker_name(const struct bench_allocator_info *info)
{
	return info->worker ? info->worker : info->name;
}

bool bench_member_exists(const struct bench_allocator_info *info)
{
	char path[PATH_MAX];

	return worker_path(worker_name(info), path, sizeof(path)) &&
	       access(path, X_OK) == 0;
}

/* Whether two assignments are to the same name. */
static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && b[n] == '=';
}

/*
 * This process's environment with the settings ("A=B C=D", which is cut up) in
 * place of what it has of these names.  NULL: no memory; to be freed.
 */
static char **environment_make(char *settings)
{
	size_t most = strlen(settings) / 2 + 2, n = 0, given;
	char *rest = NULL, **env;

	for (char **e = environ; *e; e++)
		most++;
	env = calloc(most, sizeof(*env));
	if (!env)
		return NULL;
	for (char *one = strtok_r(settings, " ", &rest); one;
	     one = strtok_r(NULL, " ", &rest))
		env[n++] = one;
	given = n;
	for (char **e = environ; *e; e++) {
		bool replaced = false;

		for (size_t i = 0; i < given; i++)
			replaced |= same_name(env[i], *e);
		if (!replaced)
			env[n++] = *e;
	}
	return env;
}

/* Returns 0 or an errno. */
static int program_spawn(pid_t *pid, char *path, int socket_fd, char **env)
{
	posix_spawn_file_actions_t actions;
	char *argv[] = {path, NULL};
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	err = posix_spawn_file_actions_adddup2(&actions, socket_fd, WIRE_FD);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO,
						       STDOUT_FILENO);
	if (!err)
		err = posix_spawn(pid, path, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

/* Returns 0 or an errno. */
static int worker_spawn(pid_t *pid, const struct bench_allocator_info *info,
			int socket_fd)
{
	char *settings = strdup(info->settings ? info->settings : "");
	char **env = settings ? environment_make(settings) : NULL;
	char path[PATH_MAX];
	int err = ENOMEM;

	if (env)
		err = worker_path(worker_name(info), path, sizeof(path))
			      ? program_spawn(pid, path, socket_fd, env)
			      : ENAMETOOLONG;
	free(env);
	free(settings);
	return err;
}

bool bench_member_start(struct bench_member *m,
			const struct bench_allocator_info *info,
			const struct wire_request *setup)
{
	struct wire_reply r;
	int pair[2];
	int err;

	*m = (struct bench_member){.allocator = info->name, .fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return complain(m, strerror(errno));
	err = worker_spawn(&m->pid, info, pair[1]);
	close(pair[1]);
	if (err) {
		close(pair[0]);
		return complain(m, strerror(err));
	}
	m->fd = pair[0];
	if (!bench_member_ask(m, setup, &r))
		return false;
	snprintf(m->backing, sizeof(m->backing), "%.31s", r.text);
	return true;
}

static bool end_tell(struct bench_member *m)
{
	char what[96] = "the worker ended";
	int status;

	close(m->fd);
	m->fd = -1;
	if (waitpid(m->pid, &status, 0) != m->pid)
		return complain(m, what);
	m->pid = 0;
	if (WIFSIGNALED(status))
		snprintf(what, sizeof(what),
			 "the worker was killed by signal %d", WTERMSIG(status));
	else
		snprintf(what, sizeof(what), "the worker ended with status %d",
			 WEXITSTATUS(status));
	return complain(m, what);
}

static bool reply_await(struct bench_member *m)
{
	struct pollfd p = {.fd = m->fd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, PATIENCE_MS);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

bool bench_member_ask(struct bench_member *m, const struct wire_request *q,
		      struct wire_reply *r)
{
	if (!wire_send(m->fd, q, sizeof(*q)))
		return end_tell(m);
	if (!reply_await(m)) {
		kill(m->pid, SIGKILL);
		complain(m, "no answer for two minutes");
		return end_tell(m);
	}
	if (!wire_receive(m->fd, r, sizeof(*r)))
		return end_tell(m);
	if (r->status == WIRE_FAILED)
		return complain(m, r->text);
	return true;
}

void bench_member_stop(struct bench_member *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->pid > 0)
		waitpid(m->pid, NULL, 0);
	m->fd = -1;
	m->pid = 0;
}
