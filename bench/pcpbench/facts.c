/* SPDX-License-Identifier: BSD-2-Clause */
/* facts.c - see facts.h. */
#include "facts.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

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

void bench_facts_add(struct json_object *o)
{
	struct utsname names;
	char cpu[128];

	cpu_name_read(cpu, sizeof(cpu));
	json_object_object_add(o, "cpu", json_object_new_string(cpu));
	if (uname(&names) == 0)
		json_object_object_add(
			o, "kernel",
			json_object_new_string(names.release));
}
