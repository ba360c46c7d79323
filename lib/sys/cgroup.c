/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroup.c - limits of the control groups, read from their files.
 *
 * /proc/self/cgroup names the process's group in each hierarchy, as a line
 * "4:memory:/a/b" (version 1) or "0::/a/b" (version 2).  A limit holds for all
 * groups below it, so the tree is walked up from there:
 *
 *   /sys/fs/cgroup  /a/b   max 1G, current 200M   -> 800M left
 *                   /a     max 900M, current 500M -> 400M left   <- the least
 *                   /      (no such file)         -> no limit
 *
 * In a container without a namespace of its own the named path may not exist
 * under the mount, whose root is then the container's group: levels that can't
 * be read are passed over, and the root is read in any case.
 *
 * Invariants:
 *   L1  an unreadable or strange file never makes a limit;
 *   L2  left is 0, not negative, where the use exceeds the limit.
 *
 * Concurrency: no state; any thread.
 * Cost: about ten opens, only when an arena is made.
 * Proved by tests/unit/test_sys.c.
 */
#include "cgroup.h"

#include <stdio.h>
#include <string.h>

#define NO_LIMIT UINT64_MAX

/* Version 1 says "none" as the largest multiple of the page below 2^63. */
#define LARGEST_LIMIT (UINT64_C(1) << 62)

#define GROUP_BYTES 1024
#define PATH_BYTES (GROUP_BYTES + 128)

/* How one version of one controller names things. */
struct dialect {
	const char *line;     /* begins the group's line after "N"      */
	const char *mount[3]; /* tried in this order                    */
};

static const struct dialect unified = {
	"::", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL}};
static const struct dialect memory_v1 = {":memory:",
					 {"/sys/fs/cgroup/memory", NULL, NULL}};
static const struct dialect hugetlb_v1 = {
	":hugetlb:", {"/sys/fs/cgroup/hugetlb", NULL, NULL}};

/* What to read at each level; the limits are alternatives, the least holds. */
struct meter {
	const char *limit[2];
	const char *used;
	const char *idle_key; /* in memory.stat: reclaimable; or NULL   */
};

static const struct meter meter_v2 = {
	{"memory.max", "memory.high"}, "memory.current", "inactive_file "};
static const struct meter meter_v1 = {{"memory.limit_in_bytes", NULL},
				      "memory.usage_in_bytes",
				      "total_inactive_file "};

/* ---- Text --------------------------------------------------------------- */

/* The number after the key at the beginning of a line; 0 without it. */
static uint64_t number_after(const char *text, const char *key)
{
	size_t len = strlen(key);
	const char *at = text;
	uint64_t x = 0;

	while (at && strncmp(at, key, len) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return 0;
	for (at += len; *at == ' '; at++)
		;
	for (; *at >= '0' && *at <= '9'; at++)
		x = x * 10 + (uint64_t)(*at - '0');
	return x;
}

/* Copies the path of the line whose controllers match. */
static bool find_group(const char *text, const char *line, char *group)
{
	while (text && *text) {
		const char *end = strchr(text, '\n');
		const char *at = strchr(text, ':');
		size_t len = end ? (size_t)(end - text) : strlen(text);

		if (at && strncmp(at, line, strlen(line)) == 0) {
			at += strlen(line);
			len -= (size_t)(at - text);
			if (len >= GROUP_BYTES)
				return false;
			memcpy(group, at, len);
			group[len] = '\0';
			return true;
		}
		text = end ? end + 1 : NULL;
	}
	return false;
}

/* "/a/b" -> "/a" -> "" -> false */
static bool parent(char *group)
{
	char *slash = strrchr(group, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

/* ---- One level ---------------------------------------------------------- */

static int read_at(const char *mount, const char *group, const char *file,
		   uint64_t *out)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
	return pcpi_sys_read_u64(path, out);
}

static uint64_t limit_at(const char *mount, const char *group,
			 const struct meter *meter)
{
	uint64_t least = NO_LIMIT;

	for (unsigned i = 0; i < 2 && meter->limit[i]; i++) {
		uint64_t x;

		/* "max" is no number and fails here. */
		if (read_at(mount, group, meter->limit[i], &x) == 0 &&
		    x < LARGEST_LIMIT)
			least = pcpi_min(least, x);
	}
	return least;
}

static PCPI_NOINLINE uint64_t idle_at(const char *mount, const char *group,
				      const char *key)
{
	char path[PATH_BYTES];
	char stat[4096];

	snprintf(path, sizeof(path), "%s%s/memory.stat", mount, group);
	if (pcpi_sys->read_file(path, stat, sizeof(stat)) < 0)
		return 0;
	return number_after(stat, key);
}

static uint64_t use_at(const char *mount, const char *group,
		       const struct meter *meter)
{
	uint64_t used = 0, idle = 0;

	if (read_at(mount, group, meter->used, &used) != 0)
		return 0;
	if (meter->idle_key)
		idle = idle_at(mount, group, meter->idle_key);
	return used > idle ? used - idle : 0;
}

/* ---- All levels --------------------------------------------------------- */

static void walk_up(const char *mount, char *group, const struct meter *meter,
		    struct pcpi_memory_room *room)
{
	do {
		uint64_t limit = limit_at(mount, group, meter);
		uint64_t used;

		if (limit == NO_LIMIT)
			continue;
		used = use_at(mount, group, meter);
		room->limit = pcpi_min(room->limit, limit);
		room->left =
			pcpi_min(room->left, limit > used ? limit - used : 0);
	} while (parent(group));
}

static PCPI_NOINLINE bool own_group(const struct dialect *dialect, char *group)
{
	char text[2048];

	if (pcpi_sys->read_file("/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	if (!find_group(text, dialect->line, group))
		return false;
	if (strcmp(group, "/") == 0)
		group[0] = '\0';
	return true;
}

static void measure(const struct dialect *dialect, const struct meter *meter,
		    struct pcpi_memory_room *room)
{
	char group[GROUP_BYTES], walker[GROUP_BYTES];

	if (!own_group(dialect, group))
		return;
	for (unsigned i = 0; i < 3 && dialect->mount[i]; i++) {
		memcpy(walker, group, sizeof(walker));
		walk_up(dialect->mount[i], walker, meter, room);
	}
}

static PCPI_NOINLINE uint64_t machine_left(void)
{
	char text[512];
	uint64_t kib;

	if (pcpi_sys->read_file("/proc/meminfo", text, sizeof(text)) < 0)
		return NO_LIMIT;
	kib = number_after(text, "MemAvailable:");
	return kib ? kib << 10 : NO_LIMIT;
}

void pcpi_cgroup_memory(struct pcpi_memory_room *out)
{
	*out = (struct pcpi_memory_room){NO_LIMIT, NO_LIMIT, NO_LIMIT};
	measure(&unified, &meter_v2, out);
	measure(&memory_v1, &meter_v1, out);
	out->machine_left = machine_left();
}

static uint64_t node_number(const char *text, unsigned os_node, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "Node %u %s:", os_node, name);
	return number_after(text, key);
}

/* The part of the kernel's reserve that is kept on a node, up to the watermark below
 * which it takes other nodes' memory, in KiB. */
static uint64_t node_reserve(uint64_t node_total, uint64_t all_total)
{
	uint64_t reserve = 0;

	pcpi_sys_read_u64("/proc/sys/vm/min_free_kbytes", &reserve);
	reserve += reserve / 4;
	/* What a container is shown of the machine may be less than a node has. */
	return all_total ? reserve * pcpi_min(node_total, all_total) / all_total
			 : 0;
}

/* File pages are dropped only where no node has as much free. */
uint64_t pcpi_node_memory_left(unsigned os_node, uint64_t want)
{
	char path[64], text[1024];
	uint64_t total, free, files, all_total, all_free, reserve;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo",
		 os_node);
	if (pcpi_sys->read_file(path, text, sizeof(text)) < 0)
		return NO_LIMIT;
	total = node_number(text, os_node, "MemTotal");
	free = node_number(text, os_node, "MemFree");
	files = node_number(text, os_node, "Active(file)") +
		node_number(text, os_node, "Inactive(file)");
	if (pcpi_sys->read_file("/proc/meminfo", text, sizeof(text)) < 0)
		return NO_LIMIT;
	all_total = number_after(text, "MemTotal:");
	all_free = number_after(text, "MemFree:");
	reserve = node_reserve(total, all_total);
	if (all_free < free + (want >> 10))
		free += files;
	return free > reserve ? (free - reserve) << 10 : 0;
}

void pcpi_cgroup_size_name(size_t page_bytes, char *buf, size_t size)
{
	if (page_bytes >= (size_t)1 << 30)
		snprintf(buf, size, "%zuGB", page_bytes >> 30);
	else if (page_bytes >= (size_t)1 << 20)
		snprintf(buf, size, "%zuMB", page_bytes >> 20);
	else
		snprintf(buf, size, "%zuKB", page_bytes >> 10);
}

/* One pair of limit and use of a hugetlb controller. */
static void measure_hugetlb(const struct dialect *dialect, const char *size,
			    const char *limit, const char *used,
			    struct pcpi_memory_room *room)
{
	char limit_file[64], used_file[64];
	struct meter meter = {{limit_file, NULL}, used_file, NULL};

	snprintf(limit_file, sizeof(limit_file), "hugetlb.%s.%s", size, limit);
	snprintf(used_file, sizeof(used_file), "hugetlb.%s.%s", size, used);
	measure(dialect, &meter, room);
}

uint64_t pcpi_cgroup_hugetlb_left(size_t page_bytes)
{
	struct pcpi_memory_room room = {NO_LIMIT, NO_LIMIT, NO_LIMIT};
	char size[24];

	pcpi_cgroup_size_name(page_bytes, size, sizeof(size));
	measure_hugetlb(&unified, size, "max", "current", &room);
	/* Pages of a mapping without reservation count here when they come. */
	measure_hugetlb(&unified, size, "rsvd.max", "rsvd.current", &room);
	measure_hugetlb(&hugetlb_v1, size, "limit_in_bytes", "usage_in_bytes",
			&room);
	measure_hugetlb(&hugetlb_v1, size, "rsvd.limit_in_bytes",
			"rsvd.usage_in_bytes", &room);
	return room.left;
}
