/* SPDX-License-Identifier: BSD-2-Clause */
/* facts.c - see facts.h. */
#include "facts.h"

#include <dirent.h>
#include <json-c/json.h>
#include <pcpalloc/pcpalloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "commit.h"

#define HUGEPAGES "/sys/kernel/mm/hugepages"
#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define GOVERNOR "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

static void text_add(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

/* The machine's name for its processor; empty where it has none. */
static void cpu_name_read(char *name, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	name[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, "model name", 10) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(name, size, "%s", colon + 2);
		break;
	}
	if (f)
		fclose(f);
}

/* The first line of a file, or `otherwise`. */
static void line_read(const char *path, const char *otherwise, char *line,
		      size_t size)
{
	FILE *f = fopen(path, "r");

	snprintf(line, size, "%s", otherwise);
	if (!f)
		return;
	if (fgets(line, (int)size, f))
		line[strcspn(line, "\n")] = '\0';
	else
		snprintf(line, size, "%s", otherwise);
	fclose(f);
}

/* Puts "2048kB 3 of 16 free, " behind what is in text. */
static void hugepages_size_add(const char *folder, char *text, size_t size)
{
	size_t used = strlen(text);
	char path[320], free_pages[24], pages[24];

	snprintf(path, sizeof(path), HUGEPAGES "/%.200s/free_hugepages", folder);
	line_read(path, "0", free_pages, sizeof(free_pages));
	snprintf(path, sizeof(path), HUGEPAGES "/%.200s/nr_hugepages", folder);
	line_read(path, "0", pages, sizeof(pages));
	snprintf(text + used, size - used, "%.32s %s of %s free, ",
		 folder + strlen("hugepages-"), free_pages, pages);
}

/* The word in brackets: "always [madvise] never". */
static void thp_mode_read(char *mode, size_t size)
{
	char line[128], *open, *close;

	line_read(THP, "[none]", line, sizeof(line));
	open = strchr(line, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close)
		*close = '\0';
	snprintf(mode, size, "%s", close ? open + 1 : "none");
}

static void hugepages_read(char *text, size_t size)
{
	DIR *d = opendir(HUGEPAGES);
	char mode[32];

	text[0] = '\0';
	for (struct dirent *e; d && (e = readdir(d));)
		if (strncmp(e->d_name, "hugepages-", 10) == 0)
			hugepages_size_add(e->d_name, text, size);
	if (d)
		closedir(d);
	thp_mode_read(mode, sizeof(mode));
	snprintf(text + strlen(text), size - strlen(text), "THP %s", mode);
}

void bench_facts_add(struct json_object *o)
{
	struct utsname names;
	time_t now = time(NULL);
	char text[512];

	cpu_name_read(text, sizeof(text));
	text_add(o, "cpu", text);
	text_add(o, "kernel", uname(&names) == 0 ? names.release : "");
	json_object_object_add(
		o, "cpus", json_object_new_int64(sysconf(_SC_NPROCESSORS_ONLN)));
	hugepages_read(text, sizeof(text));
	text_add(o, "hugepages", text);
	line_read(GOVERNOR, "none", text, sizeof(text));
	text_add(o, "governor", text);
	text_add(o, "commit", BENCH_COMMIT);
	text_add(o, "version", PCPA_VERSION);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	text_add(o, "date", text);
}
