/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.c - knob table, text to options, check of options.
 *
 * Owns: the list of knobs and of flag names, the syntax of their values, and
 * every rule about which values go together.  Doesn't own: where values come
 * from (env.c), the syntax of node lists and whether the nodes exist
 * (nodeset), rounding to arenas, and what the machine can give.
 *
 *     text --pcpi_config_parse--> options --pcpi_config_check--> normalized
 *              one knob's syntax     ^       all knobs together
 *              and range             |
 *                              caller's struct, of any release's size
 *
 * A caller may have been compiled with an older header, whose struct is
 * shorter, or a newer one, whose struct is longer.  Only the bytes that the
 * caller declares are read; what is missing is a default, and what is more
 * than we know must be zero, for a knob that we don't know and that is set
 * can't be honoured.
 *
 * Invariants
 *  J1  Every field of struct pcpa_heap_options but struct_size is in the table
 *      exactly once, in the order of the struct.
 *  J2  Output parameters are written on success only.
 *  J3  Every error text has the name and the value of the knob at fault.
 *
 * Concurrency: pure; no state.
 * Cost: linear in the number of knobs; only at heap creation.
 * Failure: -EINVAL and a text.
 * Proved by tests/unit/test_config.c.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bits.h"
#include "check.h"

/* Kept values in texts short, so that an absurd one can't hide the reason. */
#define SHOWN "%.80s"

/* No release's struct will be longer: a larger size is garbage, and the tail
 * must not be read to find that out. */
#define STRUCT_BYTES_MAX 1024u

/* clang-format off */
#define KNOB(field, NAME, type, min, max, stability, help)                     \
	{                                                                      \
		#field, "PCPA_" #NAME, type,                                   \
		offsetof(struct pcpa_heap_options, field), min, max,           \
		stability, help                                                \
	}

const struct pcpi_knob pcpi_knobs[] = {
	KNOB(flags, FLAGS, PCPI_KNOB_FLAGS, 0, UINT_MAX, "stable",
	     "cow, fixed, legacy, checks, dump, no_ipi, background, shared, "
	     "contents, bound"),
	KNOB(initial_bytes, INITIAL_BYTES, PCPI_KNOB_BYTES, 1, SIZE_MAX, "stable",
	     "backed at creation, per node; 0: one arena at first use"),
	KNOB(max_bytes, MAX_BYTES, PCPI_KNOB_BYTES, 1, SIZE_MAX, "stable",
	     "bound of growth, per node; 0: what the node has"),
	KNOB(nodes, NODES, PCPI_KNOB_NODES, 0, 0, "stable",
	     "os numbers, 0,2-3; unset: every allowed node with memory"),
	KNOB(hugepage_bytes, HUGEPAGE_BYTES, PCPI_KNOB_BYTES, 1, SIZE_MAX, "stable",
	     "0: the largest that fits; the base page size: no huge pages"),
	KNOB(batch_pages, BATCH_PAGES, PCPI_KNOB_UNSIGNED, 1,
	     PCPI_BATCH_PAGES_MAX, "tuning",
	     "between a cache and the buddy at once; 0: by the zone's size"),
	KNOB(high_pages, HIGH_PAGES, PCPI_KNOB_UNSIGNED, 1,
	     PCPI_HIGH_PAGES_MAX, "tuning",
	     "fixed bound of a cache; 0: by watermarks and CPUs"),
	/* Below 8 one cache alone could hold the caches' whole share. */
	KNOB(high_fraction, HIGH_FRACTION, PCPI_KNOB_UNSIGNED, 8, UINT_MAX,
	     "tuning", "bound of all caches of a zone as 1/n of it; 0: off"),
	KNOB(verbosity, VERBOSITY, PCPI_KNOB_UNSIGNED, 1, 1, "stable",
	     "0: silent; 1: each fallback and the first bad free, once"),
	KNOB(reserve_pages, RESERVE_PAGES, PCPI_KNOB_UNSIGNED, 1, UINT_MAX,
	     "stable", "free pages of a node for PCPA_RESERVE only; 0: none"),
};
const size_t pcpi_knobs_count = sizeof(pcpi_knobs) / sizeof(pcpi_knobs[0]);

static const struct flag_name {
	const char *name;
	unsigned bit;
} flag_names[] = {
	{ "cow", PCPA_HEAP_COW },
	{ "fixed", PCPA_HEAP_FIXED },
	{ "legacy", PCPA_HEAP_LEGACY },
	{ "checks", PCPA_HEAP_CHECKS },
	{ "dump", PCPA_HEAP_DUMP },
	{ "no_ipi", PCPA_HEAP_NO_IPI },
	{ "background", PCPA_HEAP_BACKGROUND },
	{ "shared", PCPA_HEAP_SHARED },
	{ "contents", PCPA_HEAP_CONTENTS },
	{ "bound", PCPA_HEAP_BOUND },
};
/* clang-format on */
static const size_t flag_names_count =
	sizeof(flag_names) / sizeof(flag_names[0]);

/* ---- Errors -------------------------------------------------------------- */

struct report {
	char *text;
	size_t bytes;
};

static int PCPI_PRINTF(2, 3) fail(const struct report *to, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(to->text, to->bytes, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* ---- Access to a field --------------------------------------------------- */

static size_t field_bytes(const struct pcpi_knob *knob)
{
	switch (knob->type) {
	case PCPI_KNOB_BYTES:
		return sizeof(size_t);
	case PCPI_KNOB_NODES:
		return sizeof(const char *);
	default:
		return sizeof(unsigned);
	}
}

static uint64_t field_get(const struct pcpa_heap_options *opts,
			  const struct pcpi_knob *knob)
{
	const char *field = (const char *)opts + knob->offset;
	unsigned narrow;
	size_t wide;

	if (knob->type == PCPI_KNOB_BYTES) {
		memcpy(&wide, field, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, field, sizeof(narrow));
	return narrow;
}

static void field_set(struct pcpa_heap_options *opts,
		      const struct pcpi_knob *knob, uint64_t value)
{
	char *field = (char *)opts + knob->offset;
	unsigned narrow = (unsigned)value;
	size_t wide = (size_t)value;

	if (knob->type == PCPI_KNOB_BYTES)
		memcpy(field, &wide, sizeof(wide));
	else
		memcpy(field, &narrow, sizeof(narrow));
}

/* ---- Text to value ------------------------------------------------------- */

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads decimal digits at *text and moves behind them; false when there are
 * none or the number needs more than 64 bits. */
static bool number_parse(const char **text, uint64_t *out)
{
	const char *p = *text;
	uint64_t value = 0;

	if (!digit(*p))
		return false;
	for (; digit(*p); p++) {
		uint64_t units = (uint64_t)(*p - '0');

		if (value > (UINT64_MAX - units) / 10)
			return false;
		value = value * 10 + units;
	}
	*text = p;
	*out = value;
	return true;
}

/* Reads the suffix at *text, if any, as a power of two. */
static unsigned suffix_parse(const char **text)
{
	static const char suffixes[] = "KkMmGgTt";
	const char *found = **text ? strchr(suffixes, **text) : NULL;

	if (!found)
		return 0;
	++*text;
	return 10u * ((unsigned)(found - suffixes) / 2 + 1);
}

static bool value_parse(const char *text, bool suffix, uint64_t *out)
{
	unsigned shift = 0;
	uint64_t value;

	if (!number_parse(&text, &value))
		return false;
	if (suffix)
		shift = suffix_parse(&text);
	if (*text != '\0' || value > UINT64_MAX >> shift)
		return false;
	*out = value << shift;
	return true;
}

static unsigned flag_find(const char *name, size_t len)
{
	for (size_t i = 0; i < flag_names_count; i++)
		if (strlen(flag_names[i].name) == len &&
		    memcmp(flag_names[i].name, name, len) == 0)
			return flag_names[i].bit;
	return 0;
}

static bool flags_parse(const char *text, uint64_t *out)
{
	unsigned flags = 0;

	for (;;) {
		size_t len = strcspn(text, ",");
		unsigned bit = flag_find(text, len);

		if (bit == 0)
			return false;
		flags |= bit;
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	*out = flags;
	return true;
}

static bool range_ok(const struct pcpi_knob *knob, uint64_t value)
{
	return value == 0 || (value >= knob->min && value <= knob->max);
}

static int range_fail(const struct report *to, const struct pcpi_knob *knob,
		      const char *name, const char *shown)
{
	const unsigned long long min = knob->min, max = knob->max;

	if (min == max)
		return fail(to, "%s " SHOWN ": must be 0 or %llu", name, shown,
			    min);
	return fail(to, "%s " SHOWN ": must be 0 or %llu to %llu", name, shown,
		    min, max);
}

static const char *syntax_of(enum pcpi_knob_type type)
{
	switch (type) {
	case PCPI_KNOB_BYTES:
		return "not a size (digits, then nothing, K, M, G or T)";
	case PCPI_KNOB_FLAGS:
		return "not a list of cow,fixed,legacy,checks,dump,no_ipi,"
		       "background,shared,contents,bound";
	case PCPI_KNOB_NODES:
		return "not a list of nodes (like 0,2-3)";
	default:
		return "not a number";
	}
}

const struct pcpi_knob *pcpi_config_find(const char *name)
{
	for (size_t i = 0; i < pcpi_knobs_count; i++)
		if (strcmp(name, pcpi_knobs[i].name) == 0 ||
		    strcmp(name, pcpi_knobs[i].variable) == 0)
			return &pcpi_knobs[i];
	return NULL;
}

int pcpi_config_parse(const char *name, const char *value,
		      struct pcpa_heap_options *opts, char *error,
		      size_t error_bytes)
{
	const struct report to = {error, error_bytes};
	const struct pcpi_knob *knob = pcpi_config_find(name);
	uint64_t number = 0;
	bool ok;

	if (!knob)
		return fail(&to, SHOWN " \"" SHOWN "\": no such knob", name,
			    value);
	if (knob->type == PCPI_KNOB_NODES)
		ok = value[0] != '\0';
	else if (knob->type == PCPI_KNOB_FLAGS)
		ok = flags_parse(value, &number);
	else
		ok = value_parse(value, knob->type == PCPI_KNOB_BYTES, &number);
	if (!ok)
		return fail(&to, "%s \"" SHOWN "\": %s", name, value,
			    syntax_of(knob->type));
	if (knob->type == PCPI_KNOB_NODES) {
		opts->nodes = value;
		return 0;
	}
	if (!range_ok(knob, number))
		return range_fail(&to, knob, name, value);
	field_set(opts, knob, number);
	return 0;
}

/* ---- Check --------------------------------------------------------------- */

static bool tail_is_zero(const struct pcpa_heap_options *opts)
{
	const unsigned char *bytes = (const unsigned char *)opts;

	for (size_t i = sizeof(*opts); i < opts->struct_size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* Copies what the caller's struct has and fills in what it lacks. */
static int options_import(const struct pcpa_heap_options *in,
			  struct pcpa_heap_options *out, const struct report *to)
{
	const size_t have = in->struct_size;

	if (have < sizeof(have) || have > STRUCT_BYTES_MAX)
		return fail(to,
			    "struct_size %zu: not the size of the options "
			    "(PCPA_HEAP_OPTIONS_INIT sets it)",
			    have);
	if (!tail_is_zero(in))
		return fail(to,
			    "struct_size %zu: sets a field that this library "
			    "(struct of %zu) doesn't know",
			    have, sizeof(*out));
	for (size_t i = 0; i < pcpi_knobs_count; i++) {
		const struct pcpi_knob *knob = &pcpi_knobs[i];

		if (knob->offset + field_bytes(knob) <= have)
			memcpy((char *)out + knob->offset,
			       (const char *)in + knob->offset,
			       field_bytes(knob));
	}
	return 0;
}

static int ranges_check(const struct pcpa_heap_options *o,
			const struct report *to)
{
	for (size_t i = 0; i < pcpi_knobs_count; i++) {
		const struct pcpi_knob *knob = &pcpi_knobs[i];
		char shown[24];
		uint64_t value;

		if (knob->type == PCPI_KNOB_NODES)
			continue;
		value = field_get(o, knob);
		if (range_ok(knob, value))
			continue;
		snprintf(shown, sizeof(shown), "%llu",
			 (unsigned long long)value);
		return range_fail(to, knob, knob->name, shown);
	}
	return 0;
}

static int flags_check(const struct pcpa_heap_options *o,
		       const struct report *to)
{
	unsigned unknown = o->flags;

	for (size_t i = 0; i < flag_names_count; i++)
		unknown &= ~flag_names[i].bit;
	if (unknown != 0)
		return fail(to, "flags 0x%x: unknown flag 0x%x", o->flags,
			    unknown);
	if (o->flags & PCPA_HEAP_COW && o->flags & PCPA_HEAP_SHARED)
		return fail(to,
			    "flags 0x%x: cow and shared, but memory is either "
			    "copied on write or shared",
			    o->flags);
	return 0;
}

/* A page index has 32 bits, so a node has at most 2^32 pages. */
static int pages_check(const char *name, size_t bytes, size_t page_bytes,
		       const struct report *to)
{
	if ((bytes - 1) / page_bytes > UINT32_MAX && bytes != 0)
		return fail(to, "%s %zu: more than 2^32 pages of %zu bytes",
			    name, bytes, page_bytes);
	return 0;
}

static int sizes_check(const struct pcpa_heap_options *o, size_t page_bytes,
		       const struct report *to)
{
	const bool fixed = o->flags & PCPA_HEAP_FIXED;
	int err = pages_check("initial_bytes", o->initial_bytes, page_bytes, to);

	if (err == 0)
		err = pages_check("max_bytes", o->max_bytes, page_bytes, to);
	if (err != 0)
		return err;
	if (fixed && o->initial_bytes == 0)
		return fail(to, "initial_bytes 0: a fixed heap needs a size");
	if (o->max_bytes == 0 || o->initial_bytes == o->max_bytes)
		return 0;
	if (fixed)
		return fail(to,
			    "max_bytes %zu: a fixed heap's is 0 or "
			    "initial_bytes (%zu)",
			    o->max_bytes, o->initial_bytes);
	if (o->initial_bytes > o->max_bytes)
		return fail(to, "initial_bytes %zu: more than max_bytes (%zu)",
			    o->initial_bytes, o->max_bytes);
	return 0;
}

static int hugepage_check(const struct pcpa_heap_options *o, size_t page_bytes,
			  const struct report *to)
{
	const size_t huge = o->hugepage_bytes;

	if (huge == 0)
		return 0;
	if (!pcpi_is_pow2(huge) || huge < page_bytes)
		return fail(to,
			    "hugepage_bytes %zu: not a power of two of at "
			    "least a page (%zu)",
			    huge, page_bytes);
	if (o->flags & PCPA_HEAP_COW && huge != page_bytes)
		return fail(to,
			    "hugepage_bytes %zu: a copy-on-write heap (cow) "
			    "takes 0 or the base page size (%zu)",
			    huge, page_bytes);
	return 0;
}

static int cache_check(const struct pcpa_heap_options *o,
		       const struct report *to)
{
	if (o->high_pages == 0)
		return 0;
	if (o->high_fraction != 0)
		return fail(to,
			    "high_fraction %u: high_pages (%u) is set too, and "
			    "only one can hold",
			    o->high_fraction, o->high_pages);
	/* A bound below the batch would drain one page at a time. */
	if (o->high_pages < o->batch_pages)
		return fail(to, "high_pages %u: less than batch_pages (%u)",
			    o->high_pages, o->batch_pages);
	return 0;
}

/* Of a node that can't be larger; others keep what they can (policy.h). */
static int reserve_check(const struct pcpa_heap_options *o, size_t page_bytes,
			 const struct report *to)
{
	const size_t most = pcpi_max(o->max_bytes, o->initial_bytes);

	if (o->max_bytes == 0 && !(o->flags & PCPA_HEAP_FIXED))
		return 0;
	if (o->reserve_pages > most / page_bytes / 4)
		return fail(to,
			    "reserve_pages %u: more than a quarter of the "
			    "heap's %zu bytes",
			    o->reserve_pages, most);
	return 0;
}

int pcpi_config_check(const struct pcpa_heap_options *opts, size_t page_bytes,
		      struct pcpa_heap_options *normalized, char *error,
		      size_t error_bytes)
{
	const struct report to = {error, error_bytes};
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	int err = 0;

	PCPA_ASSERT(pcpi_is_pow2(page_bytes));
	if (opts)
		err = options_import(opts, &o, &to);
	/* Flags first: a later error may be about what a flag means. */
	if (err == 0)
		err = flags_check(&o, &to);
	if (err == 0)
		err = ranges_check(&o, &to);
	if (err == 0)
		err = sizes_check(&o, page_bytes, &to);
	if (err == 0)
		err = hugepage_check(&o, page_bytes, &to);
	if (err == 0)
		err = cache_check(&o, &to);
	if (err == 0)
		err = reserve_check(&o, page_bytes, &to);
	if (err != 0)
		return err;
	if (o.flags & PCPA_HEAP_FIXED)
		o.max_bytes = o.initial_bytes;
	*normalized = o;
	return 0;
}

bool pcpi_config_is_loud(const struct pcpa_heap_options *opts)
{
	size_t need = offsetof(struct pcpa_heap_options, verbosity) +
		      sizeof(opts->verbosity);

	return !opts || opts->struct_size < need || opts->verbosity > 0;
}
