/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sys.c - the sys table on the real kernel, and what hugepages.c and
 * cgroup.c read out of invented files.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../lib/sys/cgroup.h"
#include "../../lib/sys/hugepages.h"
#include "../support/fake_sys.h"
#include "../support/sanitized.h"

#define MIB ((size_t)1 << 20)
#define ODD_ERRNO 4711

static const struct pcpi_sys *const linux_sys = &pcpi_sys_linux;

/* Whether the maps file has the text in a line. */
static bool maps_have(const char *text)
{
	char line[512];
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return found;
}

/* "" or the protection of the area that has addr in it.  It may begin earlier:
 * without names of areas in the kernel, a reservation merges with its like next to
 * it, such as the rest of a malloc arena of the C library. */
static void protection_at(const void *addr, char prot[8])
{
	unsigned long from, to, at = (unsigned long)addr;
	char line[512], found[8];
	FILE *f = fopen("/proc/self/maps", "r");

	prot[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, found) == 3 &&
		    from <= at && at < to)
			memcpy(prot, found, sizeof(found));
	}
	if (f)
		fclose(f);
}

/* ---- Ranges -------------------------------------------------------------- */

Test(sys, reserve_aligns_and_gives_no_access)
{
	for (size_t align = linux_sys->page_bytes(); align <= 1024 * MIB;
	     align <<= 1) {
		char prot[8];
		void *p;

		cr_assert_eq(linux_sys->reserve(4 * MIB, align, &p), 0);
		cr_expect_eq((uintptr_t)p % align, 0);
		protection_at((char *)p + 4 * MIB - 1, prot);
		cr_expect_str_eq(prot, "---p");
		protection_at(p, prot);
		cr_expect_str_eq(prot, "---p");
		cr_expect_eq(linux_sys->unmap(p, 4 * MIB), 0);
		protection_at(p, prot);
		cr_expect_str_eq(prot, "");
	}
}

Test(sys, reserve_of_a_tebibyte_is_free)
{
	void *p;

	cr_assert_eq(linux_sys->reserve((size_t)1 << 40, 2 * MIB, &p), 0);
	cr_expect_eq(linux_sys->unmap(p, (size_t)1 << 40), 0);
}

Test(sys, refused_reserve_leaves_out_and_errno)
{
	void *p = &p;

	errno = ODD_ERRNO;
	cr_expect_eq(linux_sys->reserve((size_t)1 << 60, 2 * MIB, &p), -ENOMEM);
	cr_expect_eq(p, &p);
	cr_expect_eq(errno, ODD_ERRNO);
	cr_expect_eq(linux_sys->reserve(SIZE_MAX - 2 * MIB, 4 * MIB, &p),
		     -ENOMEM);
}

Test(sys, commit_populate_and_give_back)
{
	unsigned char resident[2] = {0, 0};
	size_t page = linux_sys->page_bytes();
	char *p;
	void *out;

	cr_assert_eq(linux_sys->reserve(4 * page, page, &out), 0);
	p = out;
	cr_expect_lt(linux_sys->populate(p, page), 0, "no access yet");
	cr_expect_eq(linux_sys->commit(p, 2 * page), 0);
	cr_expect_eq(linux_sys->populate(p, 2 * page), 0);
	cr_assert_eq(mincore(p, 2 * page, resident), 0);
	cr_expect(resident[0] & resident[1] & 1);
	p[page] = 1;
	cr_expect_eq(linux_sys->advise(p, 2 * page, PCPI_ADVISE_DONTNEED), 0);
	cr_expect_eq(p[page], 0);
	cr_expect_eq(linux_sys->decommit(p, 2 * page), 0);
	cr_expect_eq(linux_sys->unmap(p, 4 * page), 0);
}

Test(sys, names_show_in_the_maps_file)
{
	void *p;

	cr_assert_eq(linux_sys->map_meta(MIB, &p), 0);
	linux_sys->name(p, MIB, "pcpalloc:test");
	*(char *)p = 1;
	if (!maps_have("pcpalloc:test"))
		cr_skip_test("a kernel without names of anonymous areas");
	cr_expect_eq(linux_sys->unmap(p, MIB), 0);
}

Test(sys, refused_hugetlb_mapping_keeps_the_reservation)
{
	char prot[8];
	void *p;

	cr_assert_eq(linux_sys->reserve(4 * MIB, 4 * MIB, &p), 0);
	linux_sys->name(p, 4 * MIB, "apart");
	errno = ODD_ERRNO;
	/* No machine has huge pages of 8 bytes. */
	cr_expect_lt(linux_sys->map_hugetlb(p, 4 * MIB, 8), 0);
	cr_expect_eq(errno, ODD_ERRNO);
	protection_at(p, prot);
	cr_expect_str_eq(prot, "---p");
	cr_expect_eq(linux_sys->unmap(p, 4 * MIB), 0);
}

Test(sys, bad_calls_return_errors_and_keep_errno)
{
	char *odd = (char *)(linux_sys->page_bytes() + 1);
	char buf[8];

	errno = ODD_ERRNO;
	cr_expect_lt(linux_sys->commit(odd, 1), 0);
	cr_expect_lt(linux_sys->decommit(odd, 1), 0);
	cr_expect_lt(linux_sys->unmap(odd, 1), 0);
	cr_expect_lt(linux_sys->populate(odd, 1), 0);
	cr_expect_lt(linux_sys->advise(odd, 1, PCPI_ADVISE_DONTNEED), 0);
	cr_expect_eq(linux_sys->bind(odd, 1, 0, PCPI_BIND_PREFER),
		     -ENOSYS);
	cr_expect_eq(linux_sys->elsewhere(odd, 1, 1, 0), -ENOSYS);
	linux_sys->name(odd, 1, "no");
	cr_expect_eq(linux_sys->read_file("/nonesuch", buf, 8), -ENOENT);
	linux_sys->address_space_left();
	linux_sys->cpu();
	linux_sys->cpus();
	linux_sys->yield();
	cr_expect_eq(errno, ODD_ERRNO);
}

Test(sys, locked_memory_can_be_given_back)
{
	size_t page = linux_sys->page_bytes();
	void *p;

	cr_assert_eq(linux_sys->map_meta(page, &p), 0);
	if (mlock(p, page) != 0)
		cr_skip_test("no memory may be locked");
	*(char *)p = 1;
	if (linux_sys->advise(p, page, PCPI_ADVISE_DONTNEED) == -EINVAL)
		cr_skip_test("a kernel before 5.18");
	cr_expect_eq(*(char *)p, 0);
	munmap(p, page);
}

/* ---- Threads -------------------------------------------------------------- */

struct piece {
	int tid;
	unsigned times;
	bool blocked;
};

static void note_piece(void *arg, unsigned i)
{
	struct piece *pieces = arg;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	pieces[i].tid = pcpi_sys_linux.tid();
	pieces[i].blocked =
		sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1);
	pieces[i].times++;
}

Test(sys, parallel_runs_each_piece_once_with_signals_blocked)
{
	static struct piece pieces[200];
	int self = linux_sys->tid();
	sigset_t mask;

	errno = ODD_ERRNO;
	linux_sys->parallel(200, note_piece, pieces);
	cr_expect_eq(errno, ODD_ERRNO);
	for (unsigned i = 0; i < 200; i++) {
		cr_expect_eq(pieces[i].times, 1);
		cr_expect(pieces[i].blocked == (pieces[i].tid != self));
	}
	cr_expect_neq(pieces[1].tid, self);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	cr_expect_not(sigismember(&mask, SIGUSR1), "the caller's mask is back");
}

Test(sys, parallel_without_threads_is_done_by_the_caller)
{
	static struct piece pieces[3];
	struct rlimit limit = {0, 0};

	if (IS_SANITIZED)
		cr_skip_test("sanitizers need address space");
	/* No address space for any further stack. */
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	linux_sys->parallel(3, note_piece, pieces);
	limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_AS, &limit);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(pieces[i].times, 1);
		cr_expect_eq(pieces[i].tid, linux_sys->tid());
	}
}

Test(sys, membarrier_works_once_registered)
{
	if (linux_sys->membarrier_register() != 0)
		cr_skip_test("membarrier is refused here");
	cr_expect_eq(linux_sys->membarrier(), 0);
}

Test(sys, clocks_and_ids_make_sense)
{
	uint64_t before = linux_sys->clock_ns();

	cr_expect_leq(before, linux_sys->clock_ns());
	cr_expect_gt(linux_sys->coarse_ns(), 0);
	cr_expect_eq(linux_sys->tid(), getpid());
	cr_expect_geq(linux_sys->cpu(), -1);
	cr_expect_geq(linux_sys->cpus(), 1);
}

Test(sys, counts_how_often_the_thread_was_off_its_cpu)
{
	uint64_t before = linux_sys->switches();

	usleep(1000);
	cr_expect_gt(linux_sys->switches(), before);
}

/* ---- Files and words ------------------------------------------------------ */

Test(sys, read_file_cuts_at_the_buffer)
{
	char buf[5];

	cr_expect_eq(linux_sys->read_file("/proc/meminfo", buf, 5), 4);
	cr_expect_str_eq(buf, "MemT");
	cr_expect_lt(linux_sys->read_file("/proc", buf, 5), 0);
}

Test(sys, read_file_leaves_no_descriptor)
{
	char buf[16];
	int first = dup(0), second;

	close(first);
	linux_sys->read_file("/proc/meminfo", buf, 16);
	linux_sys->read_file("/proc", buf, 16);
	second = dup(0);
	cr_expect_eq(first, second);
	close(second);
}

Test(sys, read_u64_takes_the_leading_number)
{
	uint64_t x = 7;

	fake_sys_install();
	fake_sys_file("/a", "18446744073709551615\n");
	fake_sys_file("/b", "12 34");
	fake_sys_file("/c", "max\n");
	fake_sys_file("/d", "");
	cr_expect_eq(pcpi_sys_read_u64("/a", &x), 0);
	cr_expect_eq(x, UINT64_MAX);
	cr_expect_eq(pcpi_sys_read_u64("/b", &x), 0);
	cr_expect_eq(x, 12);
	cr_expect_eq(pcpi_sys_read_u64("/c", &x), -EINVAL);
	cr_expect_eq(pcpi_sys_read_u64("/d", &x), -EINVAL);
	cr_expect_eq(pcpi_sys_read_u64("/e", &x), -ENOENT);
	cr_expect_eq(x, 12);
}

Test(sys, address_space_is_what_the_limit_leaves)
{
	struct rlimit limit;
	uint64_t left;
	void *p;

	if (IS_SANITIZED)
		cr_skip_test("sanitizers need address space");
	cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
	if (limit.rlim_cur == RLIM_INFINITY)
		cr_expect_eq(linux_sys->address_space_left(), UINT64_MAX);
	limit.rlim_cur = (rlim_t)64 << 30;
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	left = linux_sys->address_space_left();
	cr_expect_lt(left, (uint64_t)64 << 30);
	cr_assert_eq(linux_sys->reserve(512 * MIB, MIB, &p), 0);
	cr_expect_leq(linux_sys->address_space_left(), left - 512 * MIB);
}

Test(sys, say_writes_one_line)
{
	fake_sys_install();
	pcpi_sys_say("node %u: %s", 3u, "gone");
	cr_expect_str_eq(fake.said, "pcpalloc: node 3: gone\n");
	cr_expect_eq(fake.says, 1);
}

Test(sys, say_cuts_a_long_line)
{
	char text[2000];

	fake_sys_install();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	pcpi_sys_say("%s", text);
	cr_expect_eq(strlen(fake.said), PCPI_SAY_BYTES);
	cr_expect_eq(fake.said[PCPI_SAY_BYTES - 1], '\n');
	cr_expect_eq(fake.says, 1);
}

/* ---- Events ----------------------------------------------------------------- */

Test(sys, event_is_readable_once_raised)
{
	int fd = linux_sys->event_make();
	uint64_t value = 0;

	cr_assert_geq(fd, 0);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	errno = ODD_ERRNO;
	cr_expect_eq(read(fd, &value, sizeof(value)), -1);
	cr_expect_eq(errno, EAGAIN);
	errno = ODD_ERRNO;
	linux_sys->event_raise(fd);
	linux_sys->event_raise(fd);
	cr_expect_eq(read(fd, &value, sizeof(value)), sizeof(value));
	cr_expect_eq(value, 2);
	linux_sys->fd_close(fd);
	linux_sys->event_raise(fd); /* refused by the kernel */
	cr_expect_eq(errno, ODD_ERRNO);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

Test(sys, event_without_descriptors_is_an_error)
{
	struct rlimit before, none;
	int fd, err;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	errno = ODD_ERRNO;
	fd = linux_sys->event_make();
	err = errno;
	setrlimit(RLIMIT_NOFILE, &before);
	cr_expect_eq(fd, -EMFILE);
	cr_expect_eq(err, ODD_ERRNO);
}

/* ---- Huge pages ----------------------------------------------------------- */

Test(hugepages, sizes_come_largest_first)
{
	size_t sizes[PCPI_HUGETLB_SIZES];

	fake_sys_install();
	cr_expect_eq(pcpi_hugepages_sizes(sizes), 0);
	fake_sys_pool(64 << 10, 0, 0);
	fake_sys_pool(2 * MIB, 0, 0);
	fake_sys_pool(1024 * MIB, 0, 0);
	cr_assert_eq(pcpi_hugepages_sizes(sizes), 3);
	cr_expect_eq(sizes[0], 1024 * MIB);
	cr_expect_eq(sizes[1], 2 * MIB);
	cr_expect_eq(sizes[2], 64 << 10);
}

Test(hugepages, pool_counts_what_a_fault_on_the_node_can_get)
{
	struct pcpi_hugetlb_pool pool;
	struct fake_pool *near, *far;

	fake_sys_install();
	near = fake_sys_pool(2 * MIB, 0, 10);
	far = fake_sys_pool(2 * MIB, 1, 20);
	pcpi_hugepages_pool(2 * MIB, 1, &pool);
	cr_expect_eq(pool.total, 20);
	cr_expect_eq(pool.usable, 20);
	near->promised = 25; /* of the 30 of both nodes */
	pcpi_hugepages_pool(2 * MIB, 1, &pool);
	cr_expect_eq(pool.usable, 5);
	far->overcommit = 8;
	far->surplus = 2;
	pcpi_hugepages_pool(2 * MIB, 1, &pool);
	cr_expect_eq(pool.usable, 11);
	pcpi_hugepages_pool(2 * MIB, 7, &pool);
	cr_expect_eq(pool.total, 0, "no such node");
}

Test(hugepages, kernel_without_numa_has_one_pool)
{
	struct pcpi_hugetlb_pool pool;

	fake_sys_install();
	fake_sys_file("/sys/kernel/mm/hugepages/hugepages-2048kB/"
		      "free_hugepages",
		      "6\n");
	pcpi_hugepages_pool(2 * MIB, 0, &pool);
	cr_expect_eq(pool.usable, 6);
	pcpi_hugepages_pool(2 * MIB, 1, &pool);
	cr_expect_eq(pool.usable, 0);
}

Test(hugepages, modes_of_transparent_pages_are_read)
{
	static const char file[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	static const char sized[] = "/sys/kernel/mm/transparent_hugepage/"
				    "hugepages-2048kB/enabled";

	fake_sys_install();
	cr_expect_eq(pcpi_hugepages_thp_bytes(), 2 * MIB);
	cr_expect_eq(pcpi_hugepages_thp(false), PCPI_THP_MADVISE);
	fake_sys_file(file, "[always] madvise never\n");
	cr_expect_eq(pcpi_hugepages_thp(false), PCPI_THP_ALWAYS);
	fake_sys_file(sized, "always [inherit] madvise never\n");
	cr_expect_eq(pcpi_hugepages_thp(false), PCPI_THP_ALWAYS);
	fake_sys_file(sized, "always inherit madvise [never]\n");
	cr_expect_eq(pcpi_hugepages_thp(false), PCPI_THP_NEVER);
	fake_sys_file(file, "always madvise [never]\n");
	fake_sys_file(sized, "always inherit [madvise] never\n");
	cr_expect_eq(pcpi_hugepages_thp(false), PCPI_THP_MADVISE);
	fake_sys_file(file, NULL);
	fake_sys_file(sized, NULL);
	cr_expect_eq(pcpi_hugepages_thp(false), PCPI_THP_NEVER);
}

Test(hugepages, odd_transparent_size_counts_as_none)
{
	static const char file[] =
		"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";

	fake_sys_install();
	fake_sys_file(file, "0\n");
	cr_expect_eq(pcpi_hugepages_thp_bytes(), 0);
	fake_sys_file(file, "3145728\n");
	cr_expect_eq(pcpi_hugepages_thp_bytes(), 0);
	fake_sys_file(file, NULL);
	cr_expect_eq(pcpi_hugepages_thp_bytes(), 0);
}

Test(hugepages, command_fits_the_machine)
{
	char cmd[160];

	fake_sys_install();
	pcpi_hugepages_command(2 * MIB, 0, 64, cmd, sizeof(cmd));
	cr_expect_str_eq(cmd, "sysctl vm.nr_hugepages=64");
	pcpi_hugepages_command(1024 * MIB, 0, 2, cmd, sizeof(cmd));
	cr_expect_str_eq(cmd, "echo 2 > /sys/devices/system/node/node0/"
			      "hugepages/hugepages-1048576kB/nr_hugepages");
	fake_sys_file("/sys/devices/system/node/online", "0-1\n");
	pcpi_hugepages_command(2 * MIB, 1, 64, cmd, sizeof(cmd));
	cr_expect_str_eq(cmd, "echo 64 > /sys/devices/system/node/node1/"
			      "hugepages/hugepages-2048kB/nr_hugepages");
}

/* ---- Control groups ------------------------------------------------------- */

static struct pcpi_memory_room room(void)
{
	struct pcpi_memory_room r;

	pcpi_cgroup_memory(&r);
	return r;
}

Test(cgroup, no_groups_is_no_limit)
{
	fake_sys_install();
	cr_expect_eq(room().left, UINT64_MAX);
	cr_expect_eq(room().limit, UINT64_MAX);
	cr_expect_eq(room().machine_left, UINT64_C(67108864) << 10);
	cr_expect_eq(pcpi_cgroup_hugetlb_left(2 * MIB), UINT64_MAX);
}

Test(cgroup, least_of_all_levels_holds)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "0::/a/b/c\n");
	fake_sys_file("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
	fake_sys_file("/sys/fs/cgroup/a/b/memory.max", "1000000\n");
	fake_sys_file("/sys/fs/cgroup/a/b/memory.current", "200000\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.max", "900000\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.current", "500000\n");
	cr_expect_eq(room().limit, 900000);
	cr_expect_eq(room().left, 400000);
}

Test(cgroup, high_throttles_so_it_limits)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "0::/a\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.max", "1000\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.high", "600\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.current", "100\n");
	cr_expect_eq(room().left, 500);
}

Test(cgroup, idle_page_cache_counts_as_left)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "0::/a\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.max", "1000\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.current", "900\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.stat",
		      "anon 200\nfile 700\ninactive_file 600\n");
	cr_expect_eq(room().left, 700);
}

Test(cgroup, use_beyond_the_limit_leaves_nothing)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "0::/\n");
	fake_sys_file("/sys/fs/cgroup/memory.max", "1000\n");
	fake_sys_file("/sys/fs/cgroup/memory.current", "1001\n");
	cr_expect_eq(room().left, 0);
}

Test(cgroup, version_1_is_read)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "12:pids:/x\n4:memory:/a/b\n"
					   "3:hugetlb:/h\n0::/\n");
	fake_sys_file("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
		      "9223372036854771712\n");
	fake_sys_file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000\n");
	fake_sys_file("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "4000\n");
	fake_sys_file("/sys/fs/cgroup/memory/a/memory.stat",
		      "inactive_file 3\ntotal_inactive_file 1500\n");
	fake_sys_file("/sys/fs/cgroup/hugetlb/h/hugetlb.2MB.limit_in_bytes",
		      "4194304\n");
	fake_sys_file("/sys/fs/cgroup/hugetlb/h/hugetlb.2MB.usage_in_bytes",
		      "2097152\n");
	cr_expect_eq(room().left, 2500);
	cr_expect_eq(pcpi_cgroup_hugetlb_left(2 * MIB), 2 * MIB);
	cr_expect_eq(pcpi_cgroup_hugetlb_left(1024 * MIB), UINT64_MAX);
}

Test(cgroup, container_without_namespace_reads_the_mount_root)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "4:memory:/docker/abc\n");
	fake_sys_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
	fake_sys_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
	cr_expect_eq(room().left, 4000);
}

Test(cgroup, reserved_hugetlb_pages_are_limited_too)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "0::/a\n");
	fake_sys_file("/sys/fs/cgroup/unified/a/hugetlb.1GB.max", "max\n");
	fake_sys_file("/sys/fs/cgroup/unified/a/hugetlb.1GB.rsvd.max", "0\n");
	cr_expect_eq(pcpi_cgroup_hugetlb_left(1024 * MIB), 0);
}

Test(cgroup, strange_files_make_no_limit)
{
	fake_sys_install();
	fake_sys_file("/proc/self/cgroup", "\n::\nnonsense\n0:");
	cr_expect_eq(room().left, UINT64_MAX);
	fake_sys_file("/proc/self/cgroup", "0::/a");
	fake_sys_file("/sys/fs/cgroup/a/memory.max", "");
	fake_sys_file("/proc/meminfo", "MemTotal: 4 kB\n");
	cr_expect_eq(room().left, UINT64_MAX);
	cr_expect_eq(room().machine_left, UINT64_MAX);
}

Test(cgroup, size_names_are_those_of_the_files)
{
	char buf[24];

	pcpi_cgroup_size_name(64 << 10, buf, sizeof(buf));
	cr_expect_str_eq(buf, "64KB");
	pcpi_cgroup_size_name(2 * MIB, buf, sizeof(buf));
	cr_expect_str_eq(buf, "2MB");
	pcpi_cgroup_size_name(1024 * MIB, buf, sizeof(buf));
	cr_expect_str_eq(buf, "1GB");
}
