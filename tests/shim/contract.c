/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contract.c - does mmap's family do what the kernel does?
 *
 *   contract [--list] [--only PATTERN] [--allow NAME,...] [--warm] [--nobody] [--pool]
 *            [--log FILE]
 *
 * Runs the probes of the other files (contract.h), each in a child process with an
 * alarm, and prints a line for each:
 *
 *   ok NAME
 *   not ok NAME: what was seen, against what the kernel does
 *   skip NAME: what the machine lacks or refuses
 *   known NAME: ...       failed, and --allow has its name
 *   ok NAME (allowed to fail)
 *
 * --only takes a shell pattern.  --warm maps, writes and frees memory here first, so
 * that the children inherit what a preloaded library has made by then; without it the
 * first call in each child is the first of all.  --nobody gives up root before.  --pool
 * takes memory of the kernel's pool of huge pages for what the kernel might have mapped.
 * --log also writes all lines to a file.  What many rounds or children show is done a
 * quarter as often as with CONC_WHOLE=1 in the environment.
 * The exit code is 0 when nothing was "not ok", 77 when all was skipped, 2 for a wrong
 * call.
 *
 * On the bare kernel all probes pass, whoever runs them.  With a library preloaded
 * that replaces these calls they say which of its promises it breaks.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#define SECONDS 60u

enum state { RUNNING, PASSED, FAILED, SKIPPED };

/* Shared by the runner and all children of a probe. */
struct verdict {
	enum state state;
	char text[600];
};

static const struct probe *const tables[] = {
	probes_zero,    probes_args,    probes_hint,   probes_fixed,
	probes_flags,   probes_limits,  probes_unmap,  probes_freed,
	probes_protect, probes_remap,   probes_advice, probes_cleared,
	probes_lock,    probes_fork,    probes_odd,    probes_direct,
	probes_others,  probes_process,
};

/* For run_helper() only. */
static const struct probe helpers[] = {
	PROBE(helper_before_main),
	PROBE(helper_refused_advice),
	PROBE(helper_small_space),
	PROBE(helper_thp_disable),
	PROBE(helper_without_huge_pages),
	PROBE(helper_secure),
	PROBES_END,
};

static struct verdict *verdict;
static pid_t runner;
static const char *only, *allowed;
static bool list, warm, nobody;
static FILE *log_file;
static unsigned counts[SKIPPED + 1], known;

/* ---- What a probe says ----------------------------------------------------------- */

static void say(enum state state, const char *format, va_list args)
{
	if (getpid() == runner) { /* while it warms up */
		vfprintf(stderr, format, args);
		fputc('\n', stderr);
	} else if (verdict->state == RUNNING) {
		verdict->state = state;
		vsnprintf(verdict->text, sizeof(verdict->text), format, args);
	}
}

void probe_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(FAILED, format, args);
	va_end(args);
	_exit(1);
}

void probe_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(SKIPPED, format, args);
	va_end(args);
	_exit(0);
}

/* ---- Running one ----------------------------------------------------------------- */

static void child_main(const struct probe *p)
{
	setpgid(0, 0);
	alarm(SECONDS);
	p->run();
	if (verdict->state == RUNNING)
		verdict->state = PASSED;
	_exit(0);
}

static void settle(int status)
{
	if (WIFSIGNALED(status) && verdict->state != FAILED) {
		int sig = WTERMSIG(status);

		verdict->state = FAILED;
		if (sig == SIGALRM)
			snprintf(verdict->text, sizeof(verdict->text),
				 "hung for %u s, which nothing here does",
				 SECONDS);
		else
			snprintf(verdict->text, sizeof(verdict->text),
				 "ended by %s, where the kernel raises nothing",
				 strsignal(sig));
	}
	if (verdict->state == RUNNING) {
		verdict->state = FAILED;
		snprintf(verdict->text, sizeof(verdict->text),
			 "ended early, with status %#x", (unsigned)status);
	}
}

static void run(const struct probe *p)
{
	int status = 0;
	pid_t pid;

	verdict->state = RUNNING;
	verdict->text[0] = '\0';
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child_main(p);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("contract: fork");
		exit(2);
	}
	kill(-pid, SIGKILL); /* what it left behind */
	settle(status);
}

/* ---- Which ones -------------------------------------------------------------------- */

static const struct probe *find(const char *name, size_t length)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (const struct probe *p = tables[t]; p->name; p++)
			if (strlen(p->name) == length &&
			    strncmp(p->name, name, length) == 0)
				return p;
	return NULL;
}

static bool is_allowed(const char *name)
{
	size_t length = strlen(name);

	for (const char *s = allowed; s && *s; s += strspn(s, ",")) {
		size_t n = strcspn(s, ",");

		if (n == length && strncmp(s, name, n) == 0)
			return true;
		s += n;
	}
	return false;
}

static void check_allowed(void)
{
	for (const char *s = allowed; s && *s; s += strspn(s, ",")) {
		size_t n = strcspn(s, ",");

		if (!find(s, n)) {
			fprintf(stderr,
				"contract: --allow: no such probe: "
				"'%.*s'\n",
				(int)n, s);
			exit(2);
		}
		s += n;
	}
}

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	if (!log_file)
		return;
	va_start(args, format);
	vfprintf(log_file, format, args);
	va_end(args);
	fflush(log_file);
}

static void log_open(const char *path)
{
	log_file = fopen(path, "we");
	if (!log_file) {
		perror(path);
		exit(2);
	}
}

static void report(const struct probe *p)
{
	bool may_fail = is_allowed(p->name);

	if (verdict->state == FAILED && may_fail) {
		known++;
		print("known %s: %s\n", p->name, verdict->text);
		return;
	}
	counts[verdict->state]++;
	if (verdict->state == PASSED)
		print("ok %s%s\n", p->name,
		      may_fail ? " (allowed to fail)" : "");
	else
		print("%s %s: %s\n",
		      verdict->state == FAILED ? "not ok" : "skip", p->name,
		      verdict->text);
}

static void run_all(void)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++)
		for (const struct probe *p = tables[t]; p->name; p++) {
			if (only && fnmatch(only, p->name, 0) != 0)
				continue;
			if (list) {
				counts[PASSED]++;
				puts(p->name);
				continue;
			}
			run(p);
			report(p);
		}
}

/* ---- The program -------------------------------------------------------------------- */

static void usage(const char *wrong)
{
	fprintf(stderr,
		"contract: '%s' is no option, lacks its value, or names no "
		"probe\nusage: contract [--list] [--only PATTERN] "
		"[--allow NAME,...] [--warm] [--nobody] [--pool] [--log FILE]\n",
		wrong);
	exit(2);
}

/* In the program that a probe started; the verdict goes up through a pipe. */
static int helper_main(const char *name)
{
	const struct probe *p;

	for (p = helpers; p->name && strcmp(p->name, name) != 0;)
		p++;
	if (!p->name)
		usage(name);
	run(p);
	printf("%s", verdict->text);
	fflush(stdout);
	return verdict->state == SKIPPED ? 77 : verdict->state == FAILED;
}

static void verdict_map(void)
{
	verdict = mmap(NULL, sizeof(*verdict), RW, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (verdict == MAP_FAILED) {
		perror("contract: mmap");
		exit(2);
	}
}

/* --helper NAME is what run_helper() adds; everything else is above. */
static void options_read(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (strcmp(argv[i], "--list") == 0)
			list = true;
		else if (strcmp(argv[i], "--warm") == 0)
			warm = true;
		else if (strcmp(argv[i], "--nobody") == 0)
			nobody = true;
		else if (strcmp(argv[i], "--pool") == 0)
			setenv(POOL_ALLOWED, "1", 1);
		else if (more && strcmp(argv[i], "--only") == 0)
			only = argv[++i];
		else if (more && strcmp(argv[i], "--allow") == 0)
			allowed = argv[++i];
		else if (more && strcmp(argv[i], "--log") == 0)
			log_open(argv[++i]);
		else if (more && strcmp(argv[i], "--helper") == 0)
			exit(helper_main(argv[i + 1]));
		else
			usage(argv[i]);
	}
	check_allowed();
}

static int summary(void)
{
	unsigned ran = counts[PASSED] + counts[FAILED] + known;

	if (ran + counts[SKIPPED] == 0)
		usage(only);
	if (!list)
		print("contract: %u ok, %u not ok, %u known, %u skipped\n",
		      counts[PASSED], counts[FAILED], known, counts[SKIPPED]);
	if (ran == 0)
		return 77;
	return counts[FAILED] != 0;
}

int main(int argc, char **argv)
{
	runner = getpid();
	verdict_map();
	options_read(argc, argv);
	if (nobody && !become_nobody()) {
		perror("contract: --nobody");
		return 77;
	}
	for (size_t bytes = PAGE; warm && bytes <= 4 * MIB; bytes *= 2)
		soil_often(bytes);
	run_all();
	return summary();
}
