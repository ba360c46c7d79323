/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen.c - the shared library loaded after thirty objects each of two kinds
 * that use thread-local memory up, used in a thread, and closed before the thread ends, again
 * and again: its code stays (nodelete), because the thread's destructor and the
 * fork handlers point into it; and so no key is lost by it.
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

#define ROUNDS 1000
#define HEAVY 30

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

/* Copies, because what is loaded already is not loaded again. */
static void heavy_copy(const char *from, const char *to)
{
	char buf[16384];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	size_t n;

	if (!in || !out) {
		perror(in ? to : from);
		_Exit(1);
	}
	while ((n = fread(buf, 1, sizeof(buf), in)) > 0)
		if (fwrite(buf, 1, n, out) != n)
			fail(to);
	fclose(in);
	if (fclose(out) != 0)
		fail(to);
}

static void heavy_load(const char *from, const char *folder, unsigned i)
{
	int (*tls_heavy_touch_p)(void);
	char name[PATH_MAX];
	void *heavy;

	snprintf(name, sizeof(name), "%.4000s/%u.so", folder, i);
	heavy_copy(from, name);
	heavy = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	unlink(name);
	if (!heavy)
		fail("a heavy object");
	BIND(tls_heavy_touch, heavy);
	if (tls_heavy_touch_p() != 1)
		fail("not an object of its own");
}

static void heavies_load(void)
{
	char folder[] = TLS_HEAVY "-XXXXXX"; /* in the build's folder */
	unsigned i;

	if (!mkdtemp(folder))
		fail(folder);
	for (i = 0; i < HEAVY; i++) {
		heavy_load(TLS_HEAVY, folder, 2 * i);
		heavy_load(TLS_FITTED, folder, 2 * i + 1);
	}
	rmdir(folder);
}

/* The keys that are left: every round the same. */
static int keys_left(void)
{
	pthread_key_t keys[PTHREAD_KEYS_MAX];
	int n = 0, i;

	while (n < PTHREAD_KEYS_MAX && pthread_key_create(&keys[n], NULL) == 0)
		n++;
	for (i = 0; i < n; i++)
		pthread_key_delete(keys[i]);
	return n;
}

int main(void)
{
	struct pcpa_heap *heap = NULL;
	int keys = 0;
	pthread_t thread;
	int i;

	path_find();
	heavies_load();
	for (i = 0; i < ROUNDS; i++) {
		if (pthread_create(&thread, NULL, user, &heap) != 0)
			fail("pthread_create");
		pthread_join(thread, NULL);
		if (i == 0)
			keys = keys_left();
	}
	if (keys_left() != keys) {
		fprintf(stderr, "%d keys left of %d\n", keys_left(), keys);
		return 1;
	}
	return 0;
}
