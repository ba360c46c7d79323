/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen.c - the shared library loaded, used in a thread, and closed before the
 * thread ends, again and again: its code stays (nodelete), because the thread's
 * destructor and the fork handlers point into it.
 *
 * The library is looked for where the build puts it, beside this program's
 * directory; 77 where it isn't.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pcpalloc/pcpalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 40

static char path[PATH_MAX];

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, dlerror());
	_Exit(1);
}

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fail(name);
	return found;
}

/* POSIX lets function and data pointers be converted; C has no cast for it. */
#define BIND(fn, library)                                                      \
	do {                                                                   \
		void *found_ = symbol(library, #fn);                           \
		memcpy(&(fn##_p), &found_, sizeof(found_));                    \
	} while (0)

static void *user(void *arg)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*pcpa_heap_create_p)(const struct pcpa_heap_options *,
				  struct pcpa_heap **);
	void *(*pcpa_alloc_p)(struct pcpa_heap *, unsigned, unsigned);
	void (*pcpa_free_p)(struct pcpa_heap *, void *);
	struct pcpa_heap **heap = arg;
	void *block;

	if (!library)
		fail(path);
	BIND(pcpa_heap_create, library);
	BIND(pcpa_alloc, library);
	BIND(pcpa_free, library);
	if (!*heap) {
		struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;

		opts.max_bytes = (size_t)16 << 20;
		opts.verbosity = 0;
		if (pcpa_heap_create_p(&opts, heap))
			fail("pcpa_heap_create");
	}
	block = pcpa_alloc_p(*heap, 0, 0);
	if (!block)
		fail("pcpa_alloc");
	pcpa_free_p(*heap, block);
	dlclose(library);
	return NULL; /* and now the destructor of its cache */
}

static void path_find(void)
{
	char *end;
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	int up;

	if (len <= 0)
		_Exit(77);
	path[len] = '\0';
	for (up = 0; up < 3; up++) {
		end = strrchr(path, '/');
		if (!end)
			_Exit(77);
		*end = '\0';
	}
	strcat(path, "/lib/libpcpalloc.so");
	if (access(path, R_OK) != 0) {
		fprintf(stderr, "%s is not built\n", path);
		_Exit(77);
	}
}

int main(void)
{
	struct pcpa_heap *heap = NULL;
	pthread_t thread;
	int i;

	path_find();
	for (i = 0; i < ROUNDS; i++) {
		if (pthread_create(&thread, NULL, user, &heap) != 0)
			fail("pthread_create");
		pthread_join(thread, NULL);
	}
	return 0;
}
