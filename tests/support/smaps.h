/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smaps.h - what the kernel says of the areas of a range of addresses.
 */
#ifndef SMAPS_H
#define SMAPS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct smaps {
	unsigned areas;	       /* that touch the range                      */
	unsigned flagged;      /* of them, those with the flag              */
	unsigned closed;       /* of them, those without any access         */
	unsigned long rss_kib;  /* without hugetlb pages                    */
	unsigned long huge_kib; /* AnonHugePages and private hugetlb pages  */
};

static inline bool smaps_field(const char *line, const char *name,
			       unsigned long *kib)
{
	size_t n = strlen(name);

	return strncmp(line, name, n) == 0 && sscanf(line + n, ": %lu", kib) == 1;
}

/* flag as in VmFlags, " dd". */
static inline struct smaps smaps_read(const void *base, size_t bytes,
				      const char *flag)
{
	unsigned long from, to, kib, at = (unsigned long)base;
	FILE *f = fopen("/proc/self/smaps", "r");
	struct smaps s = { 0 };
	char line[512], access[8];
	bool ours = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3) {
			ours = from < at + bytes && to > at;
			s.areas += ours;
			s.closed += ours && strncmp(access, "---", 3) == 0;
		}
		if (!ours)
			continue;
		if (strncmp(line, "VmFlags:", 8) == 0)
			s.flagged += strstr(line, flag) != NULL;
		if (smaps_field(line, "Rss", &kib))
			s.rss_kib += kib;
		if (smaps_field(line, "AnonHugePages", &kib) ||
		    smaps_field(line, "Private_Hugetlb", &kib))
			s.huge_kib += kib;
	}
	if (f)
		fclose(f);
	return s;
}

/* Lines of the maps file. */
static inline unsigned smaps_areas(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

#endif
