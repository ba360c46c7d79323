/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_default_heap.c - the heap that is made from PCPA_* variables
 * (lib/api.c, env.c).  Each case is a process of its own, with its own
 * environment and its own default heap.
 */
#include <fcntl.h>
#include <unistd.h>

#include "../support/heap_fixture.h"

static int err_end = -1, err_saved = -1;

/* From now on standard error goes into a pipe. */
static void err_catch(void)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	fflush(stderr);
	err_saved = dup(2);
	cr_assert_geq(dup2(ends[1], 2), 0);
	close(ends[1]);
	err_end = ends[0];
	cr_assert_eq(fcntl(err_end, F_SETFL, O_NONBLOCK), 0);
}

static void err_read(char *text, size_t size)
{
	ssize_t len;

	dup2(err_saved, 2);
	len = read(err_end, text, size - 1);
	text[len > 0 ? len : 0] = '\0';
}

static void expect_none(const char *variable, const char *value)
{
	char text[4096];
	const char *end;

	setenv(variable, value, 1);
	err_catch();
	errno = 0;
	cr_expect_null(pcpa_default_heap());
	cr_expect_eq(errno, EINVAL, "errno %d", errno);
	errno = 0;
	cr_expect_null(pcpa_default_heap(), "it is not tried again");
	cr_expect_eq(errno, EINVAL);
	err_read(text, sizeof(text));
	cr_expect(strstr(text, variable), "\"%s\"", text);
	end = strchr(text, '\n');
	cr_expect(end && end[1] == '\0', "one line: \"%s\"", text);
}

Test(default_heap, variables_shape_it)
{
	struct pcpa_heap *heap = NULL;
	struct pcpa_stats s;
	size_t page, n;
	void *blocks[1025];

	setenv("PCPA_INITIAL_BYTES", "4M", 1);
	setenv("PCPA_FLAGS", "fixed", 1);
	setenv("PCPA_NODES", "0", 1);
	setenv("PCPA_VERBOSITY", "0", 1);
	KEEPS_ERRNO(heap = pcpa_default_heap());
	cr_assert(heap);
	cr_expect_eq(pcpa_default_heap(), heap);
	page = pcpa_heap_page_bytes(heap);
	s = stats_summed(heap);
	cr_expect_eq(s.managed_pages * page, 4 * MIB);
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, 4 * MIB / page + 1);
	cr_expect_eq(n, 4 * MIB / page);
	pcpa_free_bulk(heap, blocks, n);
	expect_all_free(heap);
}

Test(default_heap, without_variables_it_grows_from_nothing)
{
	struct pcpa_heap *heap = pcpa_default_heap();
	void *block;

	cr_assert(heap);
	cr_expect_eq(stats_of(heap, -1).managed_pages, 0);
	block = pcpa_alloc(heap, 3, PCPA_ZERO);
	cr_assert(block);
	pcpa_free(heap, block);
	expect_all_free(heap);
}

static void *ask(void *arg)
{
	(void)arg;
	return pcpa_default_heap();
}

Test(default_heap, all_threads_get_the_same)
{
	pthread_t t[8];
	void *heap, *first = NULL;

	setenv("PCPA_INITIAL_BYTES", "2M", 1);
	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, ask, NULL), 0);
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_eq(pthread_join(t[i], &heap), 0);
		cr_expect(heap);
		if (!first)
			first = heap;
		cr_expect_eq(heap, first);
	}
}

Test(default_heap, bad_size_is_named)
{
	expect_none("PCPA_INITIAL_BYTES", "much");
}

Test(default_heap, bad_flag_is_named)
{
	expect_none("PCPA_FLAGS", "fixed,fast");
}

Test(default_heap, bad_fraction_is_named)
{
	expect_none("PCPA_HIGH_FRACTION", "3");
}

Test(default_heap, unknown_variable_is_named)
{
	expect_none("PCPA_INITAL_BYTES", "4M");
}

Test(default_heap, copy_on_write_is_refused)
{
	expect_none("PCPA_FLAGS", "cow");
}

/* Good one by one, impossible together. */
Test(default_heap, fixed_without_a_size_is_refused)
{
	char text[4096];

	setenv("PCPA_FLAGS", "fixed", 1);
	err_catch();
	errno = 0;
	cr_expect_null(pcpa_default_heap());
	cr_expect_eq(errno, EINVAL);
	err_read(text, sizeof(text));
	cr_expect(strstr(text, "initial_bytes"), "\"%s\"", text);
}

Test(default_heap, node_that_is_not_there_is_no_device)
{
	setenv("PCPA_NODES", "4000", 1);
	setenv("PCPA_VERBOSITY", "0", 1);
	errno = 0;
	cr_expect_null(pcpa_default_heap());
	cr_expect_eq(errno, ENODEV);
}
