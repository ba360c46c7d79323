/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c - what the environment asks for.
 *
 * Owns: the table of variables, their syntax, and the one decision whether the shim is
 * on in this program.  The environment is walked by hand, as programs may bring a
 * getenv() of their own (shells do).
 *
 * A value that can't be is named in one line on standard error, and the shim stays off:
 * the program runs as without it.  A program that runs with other rights than its
 * caller's (AT_SECURE) is left alone, and reads nothing.
 *
 * Concurrency: one thread reads; calls that come meanwhile go to the kernel.
 * Proved by tests/preload/control.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "control.h"

#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "extent.h"
#include "hugetlb.h"
#include "raw.h"
#include "stats.h"

struct shim_control shim_control = {
	.min_bytes = SHIM_PAGE_BYTES,
	.max_bytes = (size_t)SHIM_WINDOW_PAGES << SHIM_PAGE_SHIFT,
	.retain = (size_t)256 << 20,
};

static const char prefix[] = "PCPA_PRELOAD_";
static bool strict, named = true, refused;
/* A copy: servers write titles for ps over the environment they began with. */
static char stats_name[1024];

/* ---- Words on standard error --------------------------------------------- */

static void say(const char *const words[], size_t n)
{
	char line[512];
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(words[i]);

		size = pcpi_min(size, sizeof(line) - 1 - used);
		memcpy(line + used, words[i], size);
		used += size;
	}
	line[used++] = '\n';
	raw6(SYS_write, STDERR_FILENO, (long)line, (long)used, 0, 0, 0);
}

/* entry: NAME=VALUE without the prefix */
static void refuse(const char *entry, const char *why)
{
	const char *words[] = {"pcpalloc-preload: ", prefix, entry, ": ", why,
			       "; not used"};

	refused = true;
	say(words, sizeof(words) / sizeof(*words));
}

/* ---- Values -------------------------------------------------------------- */

/* A number with K, M, G or nothing behind it; false when it is none. */
static bool size_parse(const char *s, size_t *out)
{
	static const char units[] = "KMG";
	uint64_t n = 0;
	const char *unit;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		n = n * 10 + (uint64_t)(*s - '0');
		if (n > UINT64_C(1) << 40)
			return false;
	}
	if (*s) {
		unit = strchr(units, *s >= 'a' ? *s - 'a' + 'A' : *s);
		if (!unit)
			return false;
		n <<= 10 * (unit - units + 1);
		s++;
	}
	*out = (size_t)n;
	return *s == '\0' && n <= UINT64_C(1) << 40;
}

static bool flag_parse(const char *s, bool *out)
{
	if ((*s != '0' && *s != '1') || s[1])
		return false;
	*out = *s == '1';
	return true;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Is the name one of a list with commas? */
static bool listed(const char *list, const char *name)
{
	size_t size = strlen(name);

	for (; *list; list += *list == ',') {
		const char *end = list;

		while (*end && *end != ',')
			end++;
		if (size && (size_t)(end - list) == size &&
		    memcmp(list, name, size) == 0)
			return true;
		list = end;
	}
	return false;
}

/* The program by the name it was started with, and by its file's. */
static bool program_listed(const char *list)
{
	const char *started = (const char *)getauxval(AT_EXECFN);
	char path[4096];
	long n = raw6(SYS_readlinkat, -100 /* AT_FDCWD */,
		      (long)"/proc/self/exe", (long)path, sizeof(path) - 1, 0,
		      0);

	if (started && listed(list, last_part(started)))
		return true;
	if (raw_failed(n))
		return false;
	path[n] = '\0';
	return listed(list, last_part(path));
}

static int signal_parse(const char *s)
{
	size_t n;

	if (strcmp(s, "USR1") == 0 || strcmp(s, "SIGUSR1") == 0)
		return SIGUSR1;
	if (strcmp(s, "USR2") == 0 || strcmp(s, "SIGUSR2") == 0)
		return SIGUSR2;
	if (!size_parse(s, &n) || n < 1 || n > 64 || n == SIGKILL ||
	    n == SIGSTOP)
		return 0;
	return (int)n;
}

/* ---- The table ----------------------------------------------------------- */

static const char *take_programs(const char *v)
{
	named = *v == '\0' || program_listed(v);
	return NULL;
}

static const char *take_bound(const char *v, size_t *bound)
{
	size_t most = (size_t)SHIM_WINDOW_PAGES << SHIM_PAGE_SHIFT;

	if (!size_parse(v, bound) || *bound < SHIM_PAGE_BYTES || *bound > most)
		return "not a size from 4K to 128M";
	return NULL;
}

static const char *take_min(const char *v)
{
	return take_bound(v, &shim_control.min_bytes);
}

static const char *take_max(const char *v)
{
	return take_bound(v, &shim_control.max_bytes);
}

static const char *take_strict(const char *v)
{
	return *v == '\0' || flag_parse(v, &strict) ? NULL : "neither 0 nor 1";
}

static const char *take_hugetlb(const char *v)
{
	return *v == '\0' || flag_parse(v, &shim_control.hugetlb)
		       ? NULL
		       : "neither 0 nor 1";
}

static const char *take_populate(const char *v)
{
	if (!size_parse(v, &shim_control.populate) ||
	    shim_control.populate > (size_t)SHIM_WINDOW_PAGES << SHIM_PAGE_SHIFT)
		return "not a size up to 128M";
	return NULL;
}

static const char *take_retain(const char *v)
{
	return size_parse(v, &shim_control.retain) ? NULL : "not a size";
}

static const char *take_stats(const char *v)
{
	size_t size = strlen(v) + 1;

	if (size > sizeof(stats_name)) {
		refuse("STATS", "the name is too long");
		return NULL;
	}
	memcpy(stats_name, v, size);
	shim_control.stats = *v ? stats_name : NULL;
	return NULL;
}

static const char *take_stats_signal(const char *v)
{
	shim_control.stats_signal = signal_parse(v);
	return shim_control.stats_signal ? NULL
					 : "not a signal that can be caught";
}

static const struct {
	const char *name;
	const char *(*take)(const char *value); /* NULL, or what is wrong */
} variables[] = {
	{"PROGRAMS", take_programs}, {"MIN", take_min},
	{"MAX", take_max},           {"STRICT", take_strict},
	{"POPULATE", take_populate}, {"RETAIN", take_retain},
	{"STATS", take_stats},       {"STATS_SIGNAL", take_stats_signal},
	{"HUGETLB", take_hugetlb},
};

static void variable_take(const char *entry)
{
	const char *equals = strchr(entry, '=');
	size_t size = equals ? (size_t)(equals - entry) : 0;

	for (size_t i = 0; equals && i < sizeof(variables) / sizeof(*variables);
	     i++) {
		const char *name = variables[i].name, *why;

		if (strlen(name) != size || memcmp(entry, name, size) != 0)
			continue;
		why = variables[i].take(equals + 1);
		if (why)
			refuse(entry, why);
		return;
	}
	if (equals)
		refuse(entry, "no such variable");
}

static enum shim_mode mode_read(char **environment)
{
	if (getauxval(AT_SECURE) || getauxval(AT_PAGESZ) != SHIM_PAGE_BYTES)
		return SHIM_OFF;
	for (char **e = environment; e && *e; e++)
		if (strncmp(*e, prefix, sizeof(prefix) - 1) == 0)
			variable_take(*e + sizeof(prefix) - 1);
	if (!refused && shim_control.min_bytes > shim_control.max_bytes)
		refuse("MIN", "larger than PCPA_PRELOAD_MAX");
	if (refused || !named)
		return SHIM_OFF;
	return strict ? SHIM_STRICT : SHIM_ON;
}

/* Set by our constructor: from then on an empty environment is one. */
static bool constructed;

enum shim_mode shim_control_read(void)
{
	uint32_t mode = SHIM_BOOTING;

	if (!environ && !constructed)
		return SHIM_BOOTING;
	/* pairs with itself: one thread reads. */
	if (!pcpi_cas_acq_rel(&shim_control.mode, &mode, (uint32_t)SHIM_READING))
		return (enum shim_mode)mode;
	mode = mode_read(environ);
	/* pairs with shim_mode(). */
	pcpi_store_release(&shim_control.mode, mode);
	return (enum shim_mode)mode;
}

void shim_control_off(void)
{
	/* pairs with shim_mode(). */
	pcpi_store_release(&shim_control.mode, (uint32_t)SHIM_OFF);
}

/* ---- Beginning and end --------------------------------------------------- */

static void signal_stats(int number)
{
	(void)number;
	shim_stats_write();
}

__attribute__((constructor)) static void begin(void)
{
	struct sigaction action = {.sa_handler = signal_stats,
				   .sa_flags = SA_RESTART};

	constructed = true;
	if (shim_mode() == SHIM_ON)
		shim_hugetlb_start();
	if (shim_mode() > SHIM_OFF && shim_control.stats &&
	    shim_control.stats_signal)
		sigaction(shim_control.stats_signal, &action, NULL);
}

__attribute__((destructor)) static void end(void)
{
	if (shim_mode() > SHIM_OFF && shim_control.stats)
		shim_stats_write();
}
