/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heavy.c - a shared object with thread-local memory, of which dlopen.c loads
 * copies.  Built twice: with much of it, found by a call; and with a little
 * (TLS_FITTED) that must fit into the room which the C library keeps for objects
 * that are loaded late.
 */
#ifdef TLS_FITTED
static __thread char bytes[16] __attribute__((tls_model("initial-exec")));
#else
static __thread char bytes[4096];
#endif

__attribute__((visibility("default"))) int tls_heavy_touch(void);

int tls_heavy_touch(void)
{
	return ++bytes[0];
}
