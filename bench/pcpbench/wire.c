/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.c - whole structs through a socket.
 *
 * A stream may cut a struct in two: both loops go on until all of it went
 * through.
 */
#include "wire.h"

#include <errno.h>
#include <unistd.h>

bool wire_send(int fd, const void *what, size_t bytes)
{
	const char *from = what;

	while (bytes) {
		ssize_t n = write(fd, from, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		bytes -= (size_t)n;
	}
	return true;
}

bool wire_receive(int fd, void *what, size_t bytes)
{
	char *to = what;

	while (bytes) {
		ssize_t n = read(fd, to, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		bytes -= (size_t)n;
	}
	return true;
}
