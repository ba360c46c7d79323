/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.c - a program that links the library and never calls it opens no more
 * files and starts no more threads than one that links only what the library
 * depends on.
 *
 * Two programs are compiled, which differ in what they link:
 *
 *   deps    what the shared library needs (DT_NEEDED), without the library
 *   lib     the library
 *
 * and traced.  lib may open what deps opens, and the library itself.  Exits 77
 * where there is no strace, no compiler, or tracing is not permitted.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED 77

static char dir[] = "load.XXXXXX";

static bool run(const char *fmt, const char *a, const char *b)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command), fmt, dir, a, b);
	return system(command) == 0;
}

/* Lines of a trace that have the text. */
static int count(const char *trace, const char *text)
{
	char path[PATH_MAX], line[4096];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, trace);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

/* Successful opens: "openat(...) = 3". */
static int opened(const char *trace)
{
	return count(trace, "openat(") - count(trace, "ENOENT");
}

/* Not just "clone", which may be part of a path. */
static int cloned(const char *trace)
{
	return count(trace, "clone(") + count(trace, "clone3(");
}

static int expect(const char *what, int lib, int most)
{
	printf("%s: %d with the library, at most %d expected\n", what, lib,
	       most);
	return lib > most;
}

/* Where the library was built: beside this program's own folder. */
static bool library_find(char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *end;

	if (len <= 0)
		return false;
	self[len] = '\0';
	for (int up = 0; up < 3 && (end = strrchr(self, '/')); up++)
		*end = '\0';
	return (size_t)snprintf(path, size, "%s/lib/libpcpalloc.so", self) <
		       size &&
	       access(path, R_OK) == 0;
}

static bool programs_make(const char *library)
{
	return run("echo 'int main(void) { return 0; }' >%s/main.c", "", "") &&
	       run("d=%s; cc -o $d/lib $d/main.c -Wl,--no-as-needed '%s' "
		   "-Wl,-rpath,\"$(dirname '%s')\"", library, library) &&
	       run("d=%s; cc -o $d/deps $d/main.c -Wl,--no-as-needed "
		   "$(readelf -d '%s' | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/-l:\\1/p' "
		   "| grep -v -e libc.so -e ld-linux)%s", library, "");
}

static bool traces_make(void)
{
	return run("d=%s; for p in lib deps; do strace -f -o $d/$p.trace "
		   "-e trace=openat,clone,clone3,membarrier $d/$p || exit 1; "
		   "done%s%s", "", "");
}

int main(void)
{
	char library[PATH_MAX];
	int bad = 0;

	if (!library_find(library, sizeof(library))) {
		printf("skipped: no shared library in this build\n");
		return SKIPPED;
	}
	if (!mkdtemp(dir) || !programs_make(library) || !traces_make()) {
		run("rm -rf %s%s%s", "", "");
		printf("skipped: needs cc, readelf and a permitted strace\n");
		return SKIPPED;
	}
	bad += expect("files opened", opened("lib.trace"),
		      opened("deps.trace") + 1);
	bad += expect("threads started", cloned("lib.trace"),
		      cloned("deps.trace"));
	bad += expect("registrations for membarrier",
		      count("lib.trace", "membarrier("),
		      count("deps.trace", "membarrier("));
	run("rm -rf %s%s%s", "", "");
	return bad ? 1 : 0;
}
