/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c - parses the command line; a table drives it.
 *
 * Owns the names, bounds and defaults of the options and the help text.  Opens
 * no file.  Concurrency: getopt's own state, so one thread.
 * Failure: a message that names the option and the value.
 */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_CAPTURE = 'c',
	OPT_SECONDS = 's',
	OPT_ROUNDS = 'r',
	OPT_HEAP_MIB = 'm',
	OPT_BACKENDS = 'b',
	OPT_DEPTH = 'd',
	OPT_MAX_ORDER = 'o',
	OPT_SINGLE = '1',
	OPT_JSON = 'j',
	OPT_HELP = 'h',
};

static const struct option table[] = {
	{"capture", required_argument, NULL, OPT_CAPTURE},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"rounds", required_argument, NULL, OPT_ROUNDS},
	{"heap-mib", required_argument, NULL, OPT_HEAP_MIB},
	{"backends", required_argument, NULL, OPT_BACKENDS},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"max-order", required_argument, NULL, OPT_MAX_ORDER},
	{"single", no_argument, NULL, OPT_SINGLE},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const char *option_name(int code)
{
	for (const struct option *o = table; o->name; o++)
		if (o->val == code)
			return o->name;
	return "?";
}

static int value_refuse(char error[REPLAY_ERROR_BYTES], int code,
			const char *text, const char *wanted)
{
	snprintf(error, REPLAY_ERROR_BYTES, "--%s: \"%.100s\" is not %s",
		 option_name(code), text, wanted);
	return -1;
}

static int unsigned_parse(int code, unsigned least, unsigned most,
			  unsigned *out, char error[REPLAY_ERROR_BYTES])
{
	char wanted[64];
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(optarg, &end, 10);
	if (!errno && optarg[0] >= '0' && optarg[0] <= '9' && !*end &&
	    value >= least && value <= most) {
		*out = (unsigned)value;
		return 0;
	}
	snprintf(wanted, sizeof(wanted), "a whole number from %u to %u", least,
		 most);
	return value_refuse(error, code, optarg, wanted);
}

static int seconds_parse(double *out, char error[REPLAY_ERROR_BYTES])
{
	char *end;
	double value = strtod(optarg, &end);

	/* Written so that not-a-number fails too. */
	if (end != optarg && !*end && value >= 0.01 && value <= 86400.0) {
		*out = value;
		return 0;
	}
	return value_refuse(error, OPT_SECONDS, optarg,
			    "a number of seconds from 0.01 to 86400");
}

static int backend_find(const char *name, size_t length)
{
	for (int k = 0; k < BACKEND_NR_KINDS; k++) {
		const char *known = backend_name((enum backend_kind)k);

		if (strlen(known) == length && !memcmp(known, name, length))
			return k;
	}
	return -1;
}

static int backends_parse(bool out[BACKEND_NR_KINDS],
			  char error[REPLAY_ERROR_BYTES])
{
	bool chosen[BACKEND_NR_KINDS] = {false};
	const char *at = optarg;

	for (;;) {
		size_t length = strcspn(at, ",");
		int kind = backend_find(at, length);

		if (kind < 0)
			return value_refuse(error, OPT_BACKENDS, optarg,
					    "a list of none, pcpalloc, glibc, "
					    "glibc-tuned, mmap, with commas");
		chosen[kind] = true;
		if (!at[length])
			break;
		at += length + 1;
	}
	memcpy(out, chosen, sizeof(chosen));
	return 0;
}

static int option_apply(int code, struct options *o,
			char error[REPLAY_ERROR_BYTES])
{
	switch (code) {
	case OPT_CAPTURE:
		o->capture = optarg;
		return 0;
	case OPT_SECONDS:
		return seconds_parse(&o->seconds, error);
	case OPT_ROUNDS:
		return unsigned_parse(code, 1, 1000, &o->rounds, error);
	case OPT_HEAP_MIB:
		return unsigned_parse(code, 1, 1u << 24, &o->heap_mib, error);
	case OPT_BACKENDS:
		return backends_parse(o->backends, error);
	case OPT_DEPTH:
		return unsigned_parse(code, 1, 4096, &o->depth, error);
	case OPT_MAX_ORDER:
		return unsigned_parse(code, 0, PCPA_MAX_ORDER, &o->max_order,
				      error);
	case OPT_SINGLE:
		o->single = true;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	default:
		o->help = true;
		return 0;
	}
}

/* getopt has advanced past the argument it refused. */
static int option_refuse(int code, char **argv, char error[REPLAY_ERROR_BYTES])
{
	snprintf(error, REPLAY_ERROR_BYTES, "%s: \"%.100s\"",
		 code == ':' ? "value missing after" : "unknown option",
		 argv[optind - 1]);
	return -1;
}

int options_parse(int argc, char **argv, struct options *o,
		  char error[REPLAY_ERROR_BYTES])
{
	int code;

	*o = (struct options){.seconds = 20.0,
			      .rounds = 5,
			      .depth = 64,
			      .max_order = PCPA_MAX_ORDER,
			      .backends = {true, true, true, true, true}};
	optind = 1;
	opterr = 0;
	while ((code = getopt_long(argc, argv, ":c:h", table, NULL)) != -1) {
		if (code == '?' || code == ':')
			return option_refuse(code, argv, error);
		if (option_apply(code, o, error))
			return -1;
	}
	if (o->help)
		return 0;
	if (optind < argc) {
		snprintf(error, REPLAY_ERROR_BYTES,
			 "unexpected argument \"%.100s\"", argv[optind]);
		return -1;
	}
	if (!o->capture) {
		snprintf(error, REPLAY_ERROR_BYTES, "--capture FILE is needed");
		return -1;
	}
	return 0;
}

void options_print_help(void)
{
	fputs("usage: pcpreplay --capture FILE [OPTION...]\n"
	      "\n"
	      "Replays a packet capture through three threads, receive ->\n"
	      "worker -> transmit, each packet in a block allocated by the\n"
	      "first and freed by the last, and compares allocators.\n"
	      "\n"
	      "  -c, --capture FILE   pcap or pcapng\n"
	      "      --seconds S      measured time in all (20)\n"
	      "      --rounds N       the allocators take turns N times; the\n"
	      "                       median counts (5)\n"
	      "      --backends LIST  of none,pcpalloc,glibc,glibc-tuned,mmap\n"
	      "                       (all); glibc-tuned keeps freed memory;\n"
	      "                       none reuses blocks made beforehand and\n"
	      "                       shows what the pipeline itself costs\n"
	      "      --heap-mib N     size of pcpalloc's heap (256, or four\n"
	      "                       times the packets in flight)\n"
	      "      --depth N        batches of 32 packets that a queue\n"
	      "                       holds (64)\n"
	      "      --max-order N    leave out frames that need a larger\n"
	      "                       block (what the heap serves, 10 at most)\n"
	      "      --single         pcpalloc: one call a block instead of\n"
	      "                       one a batch\n"
	      "      --json           one JSON object instead of the table\n"
	      "  -h, --help           this text\n"
	      "\n"
	      "A packet of n bytes lies 128 bytes into its block, so it takes\n"
	      "the smallest order whose block has n + 128 bytes.\n",
	      stdout);
}
