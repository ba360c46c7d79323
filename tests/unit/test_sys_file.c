/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sys_file.c - memory files and the page map, on the real kernel.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/sys/sys.h"

#define MIB ((size_t)1 << 20)
#define ODD_ERRNO 4711

static const struct pcpi_sys *const linux_sys = &pcpi_sys_linux;
static size_t page;

static void setup(void)
{
	page = linux_sys->page_bytes();
	errno = ODD_ERRNO;
}

static void teardown(void)
{
	cr_expect_eq(errno, ODD_ERRNO);
}

TestSuite(sys_file, .init = setup, .fini = teardown);

/* What follows may set errno. */
#define KEEP(statement)                                                        \
	do {                                                                   \
		int before_ = errno;                                           \
		statement;                                                     \
		errno = before_;                                               \
	} while (0)

static blkcnt_t blocks_of(int fd)
{
	struct stat st;

	KEEP(cr_assert_eq(fstat(fd, &st), 0));
	return st.st_blocks;
}

Test(sys_file, size_is_there_and_sealed_and_no_page)
{
	int fd = linux_sys->memory_file("test", 64 * MIB, page);
	struct stat st;

	cr_assert_geq(fd, 0, "%d", fd);
	KEEP(cr_assert_eq(fstat(fd, &st), 0));
	cr_expect_eq(st.st_size, 64 * MIB);
	cr_expect_eq(st.st_blocks, 0);
	KEEP(cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC));
	KEEP(cr_expect_eq(ftruncate(fd, MIB), -1));
	KEEP(cr_expect_eq(ftruncate(fd, 65 * MIB), -1));
	linux_sys->fd_close(fd);
}

Test(sys_file, mapping_is_closed_until_committed_and_shared)
{
	int fd = linux_sys->memory_file("test", 4 * MIB, page);
	void *at, *other;

	cr_assert_geq(fd, 0);
	cr_assert_eq(linux_sys->reserve(4 * MIB, page, &at), 0);
	cr_assert_eq(linux_sys->map_file(at, 4 * MIB, fd), 0);
	cr_expect_eq(linux_sys->populate(at, MIB) == 0, false, "no access");
	cr_assert_eq(linux_sys->commit(at, MIB), 0);
	cr_assert_eq(linux_sys->populate(at, MIB), 0);
	cr_expect_eq(blocks_of(fd), MIB / 512);
	other = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(other, MAP_FAILED);
	memset(at, 7, MIB);
	cr_expect_eq(((char *)other)[MIB - 1], 7);
	KEEP(munmap(other, MIB));
	cr_expect_eq(linux_sys->unmap(at, 4 * MIB), 0);
	linux_sys->fd_close(fd);
}

Test(sys_file, punch_gives_the_pages_back_also_locked_ones)
{
	int fd = linux_sys->memory_file("test", 4 * MIB, page);
	void *at;

	cr_assert_geq(fd, 0);
	cr_assert_eq(linux_sys->reserve(4 * MIB, page, &at), 0);
	cr_assert_eq(linux_sys->map_file(at, 4 * MIB, fd), 0);
	cr_assert_eq(linux_sys->commit(at, 4 * MIB), 0);
	cr_assert_eq(linux_sys->populate(at, 2 * MIB), 0);
	memset(at, 7, 2 * MIB);
	cr_assert_eq(linux_sys->advise(at, 2 * MIB, PCPI_ADVISE_DONTNEED), 0);
	cr_expect_eq(blocks_of(fd), 2 * MIB / 512, "that is not enough");
	KEEP(mlock(at, 16 * page)); /* where that is allowed */
	cr_expect_eq(linux_sys->punch(fd, MIB, MIB), 0);
	cr_expect_eq(blocks_of(fd), MIB / 512);
	cr_expect_eq(linux_sys->punch(fd, 0, MIB), 0);
	cr_expect_eq(blocks_of(fd), 0);
	cr_expect_eq(((char *)at)[0], 0);
	cr_expect_eq(linux_sys->unmap(at, 4 * MIB), 0);
	linux_sys->fd_close(fd);
	cr_expect_eq(linux_sys->punch(fd, 0, MIB), -EBADF);
}

Test(sys_file, limit_of_files_is_an_error_and_no_signal)
{
	struct rlimit before, low;
	int fd;

	KEEP(cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0));
	low = before;
	low.rlim_cur = MIB;
	KEEP(cr_assert_eq(setrlimit(RLIMIT_FSIZE, &low), 0));
	fd = linux_sys->memory_file("test", 2 * MIB, page);
	KEEP(setrlimit(RLIMIT_FSIZE, &before));
	cr_expect_eq(fd, -EFBIG);
}

Test(sys_file, no_descriptors_is_an_error)
{
	struct rlimit before, none;
	int fd;

	KEEP(cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0));
	none = before;
	none.rlim_cur = 0;
	KEEP(cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0));
	fd = linux_sys->memory_file("test", 2 * MIB, page);
	KEEP(setrlimit(RLIMIT_NOFILE, &before));
	cr_expect_eq(fd, -EMFILE);
}

Test(sys_file, mapping_a_bad_descriptor_leaves_the_reservation)
{
	void *at, *again;

	cr_assert_eq(linux_sys->reserve(MIB, page, &at), 0);
	cr_expect_eq(linux_sys->map_file(at, MIB, -1), -EBADF);
	again = mmap(at, page, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_expect_eq(again, MAP_FAILED, "something is still there");
	KEEP(errno = 0);
	errno = ODD_ERRNO;
	cr_expect_eq(linux_sys->unmap(at, MIB), 0);
}

Test(sys_file, pagemap_tells_of_present_pages)
{
	uint64_t entry = 0;
	void *at;

	cr_assert_eq(linux_sys->map_meta(2 * page, &at), 0);
	((char *)at)[0] = 1;
	if (linux_sys->pagemap(at, &entry) == -EACCES)
		cr_skip("the page map is closed here");
	cr_expect_eq(linux_sys->pagemap((char *)at + 1, &entry), 0);
	cr_expect(entry >> 63, "present");
	cr_expect_eq(linux_sys->pagemap((char *)at + page, &entry), 0);
	cr_expect_eq(entry >> 63, 0);
	linux_sys->unmap(at, 2 * page);
}
