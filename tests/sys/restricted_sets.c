/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restricted_sets.c - heaps of processes that may not use all of the machine, under
 * the limits of a real kernel: control groups of CPUs, nodes and hugetlb pages, the
 * CPUs of a thread, the caller's own memory policy, a sandbox.
 *
 * Each case is a child process (children.h), skipped where the machine lacks what it
 * needs, which is said.  Where a block is the kernel says.  On a machine with one node
 * half of it can't go wrong; in the guests of tests/vm it could.  With the argument
 * `all` a case that is skipped has failed: these guests have what it takes.
 *
 * As root it sets the pool of 2 MiB pages to POOL_PAGES (hugepool.h), unless as many
 * are free.
 */
#define _GNU_SOURCE
#include <numaif.h>
#include <sched.h>
#include <sys/syscall.h>

#include <pcpalloc/stats.h>

#include "../../lib/nodeset.h"
#include "../../lib/topo.h"
#include "../support/children.h"
#include "../support/group.h"
#include "../support/hugepool.h"
#include "../support/sandbox.h"

#define MIB ((size_t)1 << 20)
#define BLOCKS 32u
#define MOST_NODES 64u
#define POOL_PAGES 32u
#define LIMIT_PAGES 4u

static struct group group;
static bool has_group;

static int skip(const char *why)
{
	printf("(%s) ", why);
	return SKIPPED;
}

/* ---- What is said, and where memory is ----------------------------------------- */

static int node_of(void *page)
{
	int node = -1;

	EXPECT(move_pages(0, 1, &page, NULL, &node, 0) == 0);
	return node;
}

/* Nodes with memory that the process may use; their number. */
static unsigned nodes_allowed(unsigned out[MOST_NODES])
{
	const struct pcpi_topo *topo;
	unsigned n = 0;

	pcpi_topo_load(&topo);
	for (unsigned i = 0; i < topo->nr_nodes && n < MOST_NODES; i++)
		if (topo->nodes[i].memory_bytes != 0)
			out[n++] = topo->nodes[i].os_index;
	return n;
}

static int heap_make(const char *nodes, unsigned flags, struct pcpa_heap **heap)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.nodes = nodes;
	o.initial_bytes = 2 * MIB;
	o.max_bytes = 2 * MIB * BLOCKS;
	o.flags = flags;
	return pcpa_heap_create(&o, heap);
}

static struct pcpa_heap *heap_of(const char *nodes, unsigned flags)
{
	struct pcpa_heap *heap = NULL;

	listen_in();
	EXPECT(heap_make(nodes, flags, &heap) == 0);
	if (!heap)
		exit(1);
	return heap;
}

/* Takes and writes 2 MiB blocks, and gives them back; how many there were. */
static unsigned use(struct pcpa_heap *heap, int node, unsigned n)
{
	unsigned flags = node < 0 ? 0 : PCPA_NODE(node) | PCPA_THISNODE;
	void *blocks[BLOCKS];
	unsigned got = 0;

	for (; got < n; got++) {
		blocks[got] = pcpa_alloc(heap, 9, flags);
		if (!blocks[got])
			break;
		memset(blocks[got], 1, 2 * MIB);
		if (node < 0)
			continue;
		EXPECT(node_of(blocks[got]) == node);
		EXPECT(node_of((char *)blocks[got] + 2 * MIB - 1) == node);
	}
	for (unsigned i = 0; i < got; i++)
		pcpa_free(heap, blocks[i]);
	return got;
}

static uint64_t misplaced(struct pcpa_heap *heap)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	EXPECT(pcpa_stats_read(heap, -1, &s) == 0);
	return s.misplaced_pages;
}

/* ---- CPUs and nodes ------------------------------------------------------------- */

/* The last number of a list such as "0,2-3". */
static const char *last_of(const char *list)
{
	const char *at = list;

	for (const char *p = list; *p; p++)
		if (*p == ',' || *p == '-')
			at = p + 1;
	return at;
}

static char cpus[1024], mems[1024]; /* that the group above has */

static int above_read(void)
{
	struct group above = group;

	if (!has_group)
		return skip("no control group of CPUs can be made");
	*strrchr(above.dir, '/') = '\0';
	if ((group_read(&above, "cpuset.cpus.effective", cpus, sizeof(cpus)) ||
	     group_read(&above, "cpuset.effective_cpus", cpus, sizeof(cpus))) &&
	    (group_read(&above, "cpuset.mems.effective", mems, sizeof(mems)) ||
	     group_read(&above, "cpuset.effective_mems", mems, sizeof(mems))))
		return 0;
	return skip("the group above doesn't say what it has");
}

/* A group with the last CPU and the last node of those that are allowed. */
static int in_cpuset(void)
{
	const struct pcpi_topo *topo;
	struct pcpa_heap *heap;
	unsigned node;

	if (above_read() != 0)
		return SKIPPED;
	EXPECT(group_write(&group, "cpuset.cpus", last_of(cpus)));
	EXPECT(group_write(&group, "cpuset.mems", last_of(mems)));
	if (!group_enter(&group))
		return skip("the group can't be entered");
	node = (unsigned)atoi(last_of(mems));
	pcpi_topo_load(&topo);
	EXPECT(topo->nr_nodes == 1 && topo->nodes[0].os_index == node);
	EXPECT(topo->nr_cpus == 1);
	heap = heap_of(NULL, PCPA_HEAP_BOUND);
	EXPECT(use(heap, (int)node, 8) == 8);
	EXPECT(misplaced(heap) == 0);
	EXPECT(pcpa_heap_destroy(heap) == 0);
	if (node != 0)
		EXPECT(heap_make("0", 0, &heap) == -ENODEV);
	return 0;
}

/* The nodes of the group above; their number. */
static unsigned mems_parse(unsigned out[MOST_NODES])
{
	const char *at = mems;
	struct pcpi_node_range r;
	unsigned n = 0;

	while (pcpi_nodeset_next(&at, &r) > 0)
		for (unsigned os = r.first; os <= r.last && n < MOST_NODES; os++)
			out[n++] = os;
	return n;
}

static bool group_mems(const unsigned *nodes, unsigned n, unsigned but)
{
	char list[512] = "";
	size_t at = 0;

	for (unsigned i = 0; i < n; i++)
		if (nodes[i] != but)
			at += (size_t)snprintf(list + at, sizeof(list) - at,
					       "%s%u", at ? "," : "", nodes[i]);
	return group_write(&group, "cpuset.mems", list);
}

/* Has this thread run on the node; false for one without CPUs. */
static bool run_on(unsigned node)
{
	char path[64], list[256] = "";
	cpu_set_t set;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist",
		 node);
	f = fopen(path, "re");
	if (f && fgets(list, sizeof(list), f) && list[0] >= '0') {
		CPU_ZERO(&set);
		CPU_SET((unsigned)atoi(list), &set);
		EXPECT(sched_setaffinity(0, sizeof(set), &set) == 0);
	}
	if (f)
		fclose(f);
	return list[0] >= '0';
}

static unsigned denied; /* which of the nodes */

/* Numbers with a gap, or without 0; and CPUs whose node is denied. */
static int without_a_node(void)
{
	unsigned nodes[MOST_NODES], n, left[MOST_NODES], nr_left;
	struct pcpa_heap *heap;
	void *block;

	if (above_read() != 0)
		return SKIPPED;
	n = mems_parse(nodes);
	EXPECT(group_write(&group, "cpuset.cpus", cpus));
	EXPECT(group_mems(nodes, n, nodes[denied]));
	if (!group_enter(&group))
		return skip("the group can't be entered");
	nr_left = nodes_allowed(left);
	EXPECT(nr_left == n - 1);
	heap = heap_of(NULL, PCPA_HEAP_BOUND);
	for (unsigned i = 0; i < nr_left; i++) {
		EXPECT(left[i] != nodes[denied]);
		EXPECT(use(heap, (int)left[i], 8) == 8);
	}
	EXPECT(!pcpa_alloc(heap, 0, PCPA_NODE(nodes[denied])) && errno == EINVAL);
	run_on(nodes[denied]);
	block = pcpa_alloc(heap, 3, PCPA_THISNODE);
	EXPECT(block && node_of(block) == pcpa_block_node(heap, block));
	pcpa_free(heap, block);
	EXPECT(misplaced(heap) == 0 && said[0] == '\0');
	EXPECT(pcpa_heap_destroy(heap) == 0);
	return 0;
}

/* The last node is taken away from a process that has heaps on it. */
static int denied_later(void)
{
	unsigned nodes[MOST_NODES], n;
	struct pcpa_heap *heap, *bound, *both;
	char number[12];

	if (above_read() != 0)
		return SKIPPED;
	n = mems_parse(nodes);
	EXPECT(group_write(&group, "cpuset.cpus", cpus));
	EXPECT(group_write(&group, "cpuset.mems", mems));
	if (!group_enter(&group))
		return skip("the group can't be entered");
	snprintf(number, sizeof(number), "%u", nodes[n - 1]);
	heap = heap_of(number, 0);
	bound = heap_of(number, PCPA_HEAP_BOUND);
	both = heap_of(NULL, 0);
	EXPECT(group_mems(nodes, n, nodes[n - 1]));
	EXPECT(use(heap, -1, BLOCKS) == BLOCKS);
	EXPECT(misplaced(heap) == (BLOCKS - 1) * 512);
	EXPECT(use(bound, -1, BLOCKS) == 1);
	EXPECT(use(both, (int)nodes[0], 8) == 8);
	EXPECT(misplaced(bound) == 0 && misplaced(both) == 0);
	EXPECT(pcpa_heap_destroy(heap) == 0);
	EXPECT(pcpa_heap_destroy(bound) == 0);
	EXPECT(pcpa_heap_destroy(both) == 0);
	return 0;
}

static int on_one_cpu(void)
{
	unsigned nodes[MOST_NODES], cpu, node, n;
	struct pcpa_heap *heap;
	cpu_set_t set;
	void *block;

	EXPECT(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (cpu = CPU_SETSIZE; cpu-- > 0;)
		if (CPU_ISSET(cpu, &set))
			break;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	EXPECT(sched_setaffinity(0, sizeof(set), &set) == 0);
	EXPECT(getcpu(NULL, &node) == 0);
	n = nodes_allowed(nodes);
	heap = heap_of(NULL, 0);
	EXPECT(pcpi_sys->cpus() == 1);
	block = pcpa_alloc(heap, 0, PCPA_THISNODE);
	EXPECT(block);
	EXPECT(pcpa_block_node(heap, block) == node_of(block));
	for (unsigned i = 0; i < n; i++)
		if (nodes[i] == node)
			EXPECT(node_of(block) == (int)node);
	pcpa_free(heap, block);
	EXPECT(pcpa_heap_destroy(heap) == 0);
	return 0;
}

/* ---- The caller's policy ----------------------------------------------------------- */

/* For the whole process, from now on: all nodes, or the last. */
static bool policy_set(int mode, const unsigned *nodes, unsigned n)
{
	unsigned long mask[MOST_NODES] = {0};

	for (unsigned i = mode == MPOL_INTERLEAVE ? 0 : n - 1; i < n; i++)
		mask[nodes[i] / 64] |= 1ul << nodes[i] % 64;
	return set_mempolicy(mode, mask, sizeof(mask) * 8) == 0;
}

static int policy_of(void *addr)
{
	int mode = -1;

	EXPECT(get_mempolicy(&mode, NULL, 0, addr, MPOL_F_ADDR) == 0);
	return mode;
}

/* Each node's memory is its own, whatever the caller's policy; all kinds of heaps. */
static int under_policy(int mode)
{
	static const unsigned flags[] = {0, PCPA_HEAP_BOUND, PCPA_HEAP_SHARED};
	unsigned nodes[MOST_NODES], n = nodes_allowed(nodes);

	if (!policy_set(mode, nodes, n))
		return skip("set_mempolicy() is refused");
	for (unsigned k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
		struct pcpa_heap *heap = heap_of(NULL, flags[k]);
		void *block = pcpa_alloc(heap, 0, 0);

		EXPECT(block && (policy_of(block) == MPOL_PREFERRED ||
				 policy_of(block) == MPOL_BIND));
		pcpa_free(heap, block);
		for (unsigned i = 0; i < n; i++)
			EXPECT(use(heap, (int)nodes[i], 8) == 8);
		EXPECT(misplaced(heap) == 0);
		EXPECT(!is_said("bound"));
		EXPECT(pcpa_heap_destroy(heap) == 0);
	}
	return 0;
}

static int under_bind(void)
{
	return under_policy(MPOL_BIND);
}

static int under_interleave(void)
{
	return under_policy(MPOL_INTERLEAVE);
}

static int under_preferred(void)
{
	return under_policy(MPOL_PREFERRED);
}

/* ---- A sandbox ---------------------------------------------------------------------- */

/* move_pages stays allowed: the test needs it. */
static bool sandbox(void)
{
	return sandbox_refuse(__NR_mbind, EPERM) &&
	       sandbox_refuse(__NR_get_mempolicy, EPERM);
}

/* All memory then is where the caller's policy has it, the last node: said, counted,
 * and not for a heap that has to be bound. */
static int in_sandbox(void)
{
	unsigned nodes[MOST_NODES], n = nodes_allowed(nodes);
	struct pcpa_heap *heap = NULL;
	char number[12];

	if (!policy_set(MPOL_BIND, nodes, n) || !sandbox())
		return skip("no memory policy or no filter here");
	listen_in();
	EXPECT(heap_make(NULL, PCPA_HEAP_BOUND, &heap) == (n > 1 ? -EPERM : 0));
	if (heap)
		EXPECT(pcpa_heap_destroy(heap) == 0);
	EXPECT(is_said("which the heap's flags demand") == (n > 1));
	said[0] = '\0';
	snprintf(number, sizeof(number), "%u", nodes[0]);
	heap = heap_of(number, 0);
	EXPECT(use(heap, -1, 8) == 8);
	EXPECT((misplaced(heap) >= 8 * 512) == (n > 1));
	EXPECT(is_said("came from other nodes") == (n > 1));
	EXPECT(is_said("can't be bound") == (n > 1));
	EXPECT(pcpa_heap_destroy(heap) == 0);
	return 0;
}

/* ---- Limits of hugetlb pages ----------------------------------------------------------- */

static int hugetlb_note(const struct pcpa_arena_info *a, void *arg)
{
	if (a->backing == PCPA_BACKING_HUGETLB)
		*(uint64_t *)arg += a->bytes;
	return 0;
}

static ssize_t read_no_limits(const char *path, char *buf, size_t size)
{
	if (strstr(path, "/hugetlb."))
		return -EACCES;
	return pcpi_sys_linux.read_file(path, buf, size);
}

static bool limits_hidden;

/* More than the limit is asked for: the group's pages, and others for the rest. */
static int under_limit(const char *file, const char *file_v1, unsigned flags)
{
	uint64_t hugetlb = 0;
	struct pcpa_heap *heap;
	unsigned nodes[MOST_NODES];
	char limit[24], number[12];

	if (pool_file("free_hugepages") < POOL_PAGES)
		return skip("no 32 free hugetlb pages, and none to be had");
	if (!has_group)
		return skip("no control group of hugetlb pages can be made");
	snprintf(limit, sizeof(limit), "%zu", LIMIT_PAGES * 2 * MIB);
	EXPECT(group_write(&group, group.v1 ? file_v1 : file, limit));
	if (!group_enter(&group))
		return skip("the group can't be entered");
	nodes_allowed(nodes);
	snprintf(number, sizeof(number), "%u", nodes[0]);
	listen_in();
	if (limits_hidden)
		listening.read_file = read_no_limits;
	EXPECT(heap_make(number, flags, &heap) == 0);
	EXPECT(use(heap, (int)nodes[0], BLOCKS) == BLOCKS);
	EXPECT(pcpa_for_each_arena(heap, hugetlb_note, &hugetlb) == 0);
	EXPECT(hugetlb > 0 && hugetlb <= LIMIT_PAGES * 2 * MIB);
	EXPECT(is_said("the control group limits hugetlb pages"));
	EXPECT(pcpa_heap_destroy(heap) == 0);
	return 0;
}

#define MAX "hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes"
#define RSVD_MAX "hugetlb.2MB.rsvd.max", "hugetlb.2MB.rsvd.limit_in_bytes"

static int under_max(void)
{
	return under_limit(MAX, 0);
}

static int under_rsvd_max(void)
{
	return under_limit(RSVD_MAX, 0);
}

static int under_max_shared(void)
{
	return under_limit(MAX, PCPA_HEAP_SHARED);
}

static int under_rsvd_max_shared(void)
{
	return under_limit(RSVD_MAX, PCPA_HEAP_SHARED);
}

static int under_hidden_max(void)
{
	limits_hidden = true;
	return under_limit(MAX, 0);
}

static int under_hidden_rsvd_max(void)
{
	limits_hidden = true;
	return under_limit(RSVD_MAX, PCPA_HEAP_SHARED);
}

/* ---- Running ------------------------------------------------------------------------------ */

static void run_in_group(const char *name, int (*body)(void),
			 const char *controller, const char *file,
			 const char *file_v1)
{
	has_group = group_make(&group, controller, file, file_v1);
	case_run(name, body);
	if (has_group)
		group_remove(&group);
}

/* How many nodes a group could be given. */
static unsigned above_of_cpuset(unsigned nodes[MOST_NODES])
{
	unsigned n = 0;

	has_group = group_make(&group, "cpuset", "cpuset.mems", "cpuset.mems");
	if (has_group && above_read() == 0)
		n = mems_parse(nodes);
	if (has_group)
		group_remove(&group);
	return n;
}

int main(int argc, char **argv)
{
	unsigned nodes[MOST_NODES], n;

	setvbuf(stdout, NULL, _IONBF, 0);
	run_in_group("one CPU and one node of a control group", in_cpuset,
		     "cpuset", "cpuset.mems", "cpuset.mems");
	n = above_of_cpuset(nodes);
	for (denied = 0; denied < n && n > 1; denied++)
		run_in_group("all nodes but one", without_a_node, "cpuset",
			     "cpuset.mems", "cpuset.mems");
	if (n > 1)
		run_in_group("a node that is denied later", denied_later,
			     "cpuset", "cpuset.mems", "cpuset.mems");
	case_run("one CPU by affinity", on_one_cpu);
	case_run("caller's policy: bind", under_bind);
	case_run("caller's policy: interleave", under_interleave);
	case_run("caller's policy: preferred", under_preferred);
	case_run("binding refused", in_sandbox);
	pool_take(POOL_PAGES); /* where it can't, cases that want pages say so */
	run_in_group("hugetlb limit", under_max, "hugetlb", MAX);
	run_in_group("hugetlb limit, shared", under_max_shared, "hugetlb", MAX);
	run_in_group("hugetlb limit, hidden", under_hidden_max, "hugetlb", MAX);
	run_in_group("reservation limit", under_rsvd_max, "hugetlb", RSVD_MAX);
	run_in_group("reservation limit, shared", under_rsvd_max_shared,
		     "hugetlb", RSVD_MAX);
	run_in_group("reservation limit, hidden", under_hidden_rsvd_max,
		     "hugetlb", RSVD_MAX);
	if (argc == 2 && strcmp(argv[1], "all") == 0)
		cases_failed += cases_skipped;
	return cases_status();
}
