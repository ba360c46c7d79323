/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodeset.c - see nodeset.h.
 */
#include "nodeset.h"

#include <errno.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Moves *s past the number it reads.  On failure *s is on the mistake. */
static int parse_number(const char **s, unsigned *out)
{
	const char *start = *s;
	unsigned n = 0;

	if (!is_digit(**s))
		return -EINVAL;
	for (; is_digit(**s); ++*s) {
		n = n * 10 + (unsigned)(**s - '0');
		if (n > PCPI_NODESET_MAX) {
			*s = start;
			return -EINVAL;
		}
	}
	*out = n;
	return 0;
}

static int parse_range(const char **s, struct pcpi_node_range *out)
{
	struct pcpi_node_range r;
	const char *second;

	if (parse_number(s, &r.first) != 0)
		return -EINVAL;
	r.last = r.first;
	if (**s == '-') {
		second = ++*s;
		if (parse_number(s, &r.last) != 0)
			return -EINVAL;
		if (r.last < r.first) {
			*s = second;
			return -EINVAL;
		}
	}
	*out = r;
	return 0;
}

int pcpi_nodeset_next(const char **cursor, struct pcpi_node_range *out)
{
	struct pcpi_node_range r;

	if (**cursor == '\0')
		return 0;
	if (parse_range(cursor, &r) != 0)
		return -EINVAL;
	if (**cursor == ',') {
		/* A comma at the end would look like the end of the list. */
		++*cursor;
		if (!is_digit(**cursor))
			return -EINVAL;
	} else if (**cursor != '\0') {
		return -EINVAL;
	}
	*out = r;
	return 1;
}

int pcpi_nodeset_check(const char *list, size_t *at)
{
	const char *cursor = list;
	struct pcpi_node_range r;
	int rc;

	do
		rc = pcpi_nodeset_next(&cursor, &r);
	while (rc > 0);
	if (rc == 0 && cursor != list)
		return 0;
	*at = (size_t)(cursor - list);
	return -EINVAL;
}

bool pcpi_nodeset_has(const char *list, unsigned number)
{
	struct pcpi_node_range r;

	while (pcpi_nodeset_next(&list, &r) > 0)
		if (number >= r.first && number <= r.last)
			return true;
	return false;
}
