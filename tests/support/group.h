/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * group.h - a control group of the test's own, below the one that it is in.
 *
 * Version 2 and version 1 name their files differently; the test says both.  Where
 * the controller isn't there, or the group above doesn't hand it down, there is no
 * group and the test says so.  Nothing above the group is changed.
 */
#ifndef GROUP_H
#define GROUP_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP_PATH 600u

struct group {
	char dir[GROUP_PATH];
	bool v1;
};

static inline bool group_write(const struct group *g, const char *file,
			       const char *text)
{
	char path[GROUP_PATH + 64];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", g->dir, file);
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fputs(text, f) >= 0;
	return fclose(f) == 0 && ok;
}

/* The first line; false where there is none. */
static inline bool group_read(const struct group *g, const char *file, char *buf,
			      size_t size)
{
	char path[GROUP_PATH + 64];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", g->dir, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(buf, (int)size, f) != NULL;
	fclose(f);
	buf[ok ? strcspn(buf, "\n") : 0] = '\0';
	return ok;
}

/* The path behind ":NAME:" in the process's list of groups; v2's name is "". */
static inline bool group_own(const char *name, char *path, size_t size)
{
	char line[1024], key[64];
	FILE *f = fopen("/proc/self/cgroup", "re");
	bool found = false;

	snprintf(key, sizeof(key), ":%s:", name);
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':');

		found = at && strncmp(at, key, strlen(key)) == 0;
		if (!found)
			continue;
		at += strlen(key);
		at[strcspn(at, "\n")] = '\0';
		snprintf(path, size, "%s", strcmp(at, "/") ? at : "");
	}
	if (f)
		fclose(f);
	return found;
}

static inline bool group_try(struct group *g, const char *mount, const char *name,
			     const char *file)
{
	char own[256], path[GROUP_PATH + 64];

	if (!group_own(name, own, sizeof(own)))
		return false;
	g->v1 = name[0] != '\0';
	snprintf(g->dir, sizeof(g->dir), "%s%s", mount, own);
	/* Without this file the directory is no control group. */
	snprintf(path, sizeof(path), "%s/cgroup.procs", g->dir);
	if (access(path, W_OK) != 0)
		return false;
	snprintf(g->dir, sizeof(g->dir), "%s%s/pcpalloc-test-%d", mount, own,
		 (int)getpid());
	if (mkdir(g->dir, 0755) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s", g->dir, file);
	if (access(path, W_OK) == 0)
		return true;
	rmdir(g->dir);
	return false;
}

/* Makes a group that has a controller's file: v2's, or that of v1. */
static inline bool group_make(struct group *g, const char *controller,
			      const char *file, const char *file_v1)
{
	char mount[128];

	snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", controller);
	return group_try(g, "/sys/fs/cgroup", "", file) ||
	       group_try(g, "/sys/fs/cgroup/unified", "", file) ||
	       group_try(g, mount, controller, file_v1);
}

/* Moves the calling process there. */
static inline bool group_enter(const struct group *g)
{
	return group_write(g, "cgroup.procs", "0");
}

/* Requires that its processes have ended. */
static inline void group_remove(const struct group *g)
{
	rmdir(g->dir);
}

#endif
