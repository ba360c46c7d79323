/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * support.c - what contract.h says of memory, faults, /proc, processes and threads.
 *
 * Nothing here allocates where a probe looks at a fresh process, and files of /proc
 * are read through one static buffer: the probes' children are single-threaded
 * where they read any.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ---- Verdicts ------------------------------------------------------------------ */

const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "no errno";
}

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

void check_true(bool holds, const char *text, const char *file, int line)
{
	if (!holds)
		probe_fail("%s:%d: seen: not %s; the kernel: %s",
			   base_name(file), line, text, text);
}

void check_ok(long result, int error, const char *text, const char *file,
	      int line)
{
	if (result == -1)
		probe_fail("%s:%d: %s: seen: %s; the kernel: success",
			   base_name(file), line, text, error_name(error));
}

void check_fails(long result, int error, int wanted, const char *text,
		 const char *file, int line)
{
	if (result != -1)
		probe_fail("%s:%d: %s: seen: %#lx; the kernel: %s",
			   base_name(file), line, text, result,
			   error_name(wanted));
	if (error != wanted)
		probe_fail("%s:%d: %s: seen: %s; the kernel: %s",
			   base_name(file), line, text, error_name(error),
			   error_name(wanted));
}

/* ---- Memory -------------------------------------------------------------------- */

unsigned char *map_with(size_t bytes, int flags)
{
	void *p = mmap(NULL, bytes, RW, ANON | flags, -1, 0);

	if (p == MAP_FAILED)
		probe_fail("mmap of %zu bytes, flags %#x: seen: %s; the "
			   "kernel: success",
			   bytes, (unsigned)flags, error_name(errno));
	if ((uintptr_t)p % PAGE != 0)
		probe_fail("mmap of %zu bytes: seen: %p; the kernel: a page's "
			   "address",
			   bytes, p);
	return p;
}

unsigned char *map(size_t bytes)
{
	return map_with(bytes, 0);
}

void unmap(void *p, size_t bytes)
{
	if (munmap(p, bytes) != 0)
		probe_fail("munmap of %zu bytes: seen: %s; the kernel: 0",
			   bytes, error_name(errno));
}

#define SOIL_BLOCKS 3u

void soil(size_t bytes)
{
	unsigned blocks = bytes > 4 * MIB ? 1 : SOIL_BLOCKS;
	unsigned rounds = bytes > 16 * MIB ? 2 : 4;
	unsigned char *p[SOIL_BLOCKS];

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < blocks; i++) {
			p[i] = map(bytes);
			memset(p[i], SOIL, (bytes + PAGE - 1) & -PAGE);
		}
		for (unsigned i = 0; i < blocks; i++)
			unmap(p[i], bytes);
	}
}

void soil_often(size_t bytes)
{
	unsigned times = bytes <= 64 * KIB ? 40 : bytes <= MIB ? 12 : 6;

	for (unsigned i = 0; i < times; i++)
		soil(bytes);
}

unsigned char *map_reused(size_t bytes)
{
	soil(bytes);
	return map(bytes);
}

unsigned char *map_soiled(size_t bytes)
{
	unsigned char *p = map_reused(bytes);

	memset(p, SOIL, bytes);
	return p;
}

void expect_bytes(const void *p, size_t bytes, unsigned char value,
		  const char *what)
{
	const unsigned char *s = p;

	/* Equal to itself moved by one: all bytes are the first. */
	if (bytes == 0 || (s[0] == value && memcmp(s, s + 1, bytes - 1) == 0))
		return;
	for (size_t i = 0; i < bytes; i++)
		if (s[i] != value)
			probe_fail("%s: byte %zu of %zu: seen: %#x; the "
				   "kernel: %#x",
				   what, i, bytes, s[i], value);
}

void expect_zero(const void *p, size_t bytes, const char *what)
{
	expect_bytes(p, bytes, 0, what);
}

static void expect_plain_areas(const unsigned char *p, size_t bytes);

#define CLEAN_BLOCKS 6u

void expect_clean(size_t bytes)
{
	unsigned blocks = bytes > 4 * MIB ? 1 : CLEAN_BLOCKS;
	size_t whole = (bytes + PAGE - 1) & -PAGE;
	unsigned char *p[CLEAN_BLOCKS];

	for (unsigned i = 0; i < blocks; i++) {
		p[i] = map(bytes);
		expect_plain_areas(p[i], whole);
		expect_zero(p[i], whole, "mapped after a free");
		memset(p[i], SOIL, whole);
	}
	for (unsigned i = 0; i < blocks; i++)
		unmap(p[i], bytes);
}

bool is_hole(const void *p)
{
	unsigned char vec;

	return mincore((void *)(uintptr_t)p, PAGE, &vec) == -1 &&
	       errno == ENOMEM;
}

bool is_resident(const void *p)
{
	unsigned char vec = 0;

	OK(mincore((void *)(uintptr_t)p, PAGE, &vec));
	return vec & 1;
}

unsigned char *free_range(size_t bytes)
{
	size_t whole = bytes + 2 * MIB;
	void *p = mmap(NULL, whole, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		probe_fail("mmap of %zu bytes, PROT_NONE: seen: %s; the "
			   "kernel: success",
			   whole, error_name(errno));
	unmap(p, whole);
	return (unsigned char *)(((uintptr_t)p + 2 * MIB - 1) & -(2 * MIB));
}

int file_of(size_t bytes, unsigned char value)
{
	unsigned char buffer[PAGE];
	char path[] = "/tmp/contract.XXXXXX";
	int fd = memfd_create("contract", MFD_CLOEXEC);

	if (fd < 0) {
		fd = mkostemp(path, O_CLOEXEC);
		unlink(path);
	}
	if (fd < 0)
		probe_skip("no memfd, and no file in /tmp: %s",
			   error_name(errno));
	memset(buffer, value, sizeof(buffer));
	for (size_t at = 0; at < bytes; at += PAGE)
		EXPECT(write(fd, buffer, PAGE) == (ssize_t)PAGE);
	return fd;
}

/* ---- Faults -------------------------------------------------------------------- */

static sigjmp_buf fault_jump;
static volatile struct fault fault_seen;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	fault_seen.signal = sig;
	fault_seen.code = info->si_code;
	siglongjmp(fault_jump, 1);
}

enum access { READ, WRITE, CALL };

static struct fault fault_of(volatile unsigned char *p, enum access access)
{
	struct sigaction act = {.sa_sigaction = on_fault,
				.sa_flags = SA_SIGINFO},
			 segv, bus;

	fault_seen.signal = fault_seen.code = 0;
	sigaction(SIGSEGV, &act, &segv);
	sigaction(SIGBUS, &act, &bus);
	if (sigsetjmp(fault_jump, 1) == 0) {
		if (access == READ)
			(void)*p;
		else if (access == WRITE)
			*p = SOIL;
		else
			((void (*)(void))(uintptr_t)p)();
	}
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return (struct fault){fault_seen.signal, fault_seen.code};
}

struct fault fault_read(const volatile void *p)
{
	return fault_of((volatile unsigned char *)(uintptr_t)p, READ);
}

struct fault fault_write(volatile void *p)
{
	return fault_of(p, WRITE);
}

struct fault fault_call(const void *p)
{
	return fault_of((volatile unsigned char *)(uintptr_t)p, CALL);
}

void expect_segv(struct fault f, int code, const char *what)
{
	if (f.signal != SIGSEGV || f.code != code)
		probe_fail("%s: seen: %s, si_code %d; the kernel: SIGSEGV, "
			   "si_code %d",
			   what, f.signal ? strsignal(f.signal) : "no signal",
			   f.code, code);
}

/* ---- What the kernel says of a page --------------------------------------------- */

static char text[2 * MIB];

static bool text_read(const char *path)
{
	size_t used = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (used < sizeof(text) - 1 &&
	       (got = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	close(fd);
	text[used] = '\0';
	return used > 0;
}

static const char *next_line(const char *line)
{
	line = strchr(line, '\n');
	return line && line[1] ? line + 1 : NULL;
}

/* The line of the area with p, in what was read last. */
static const char *area_of(const void *p)
{
	for (const char *line = text; line; line = next_line(line)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 &&
		    (uintptr_t)p >= from && (uintptr_t)p < to)
			return line;
	}
	return NULL;
}

/* The line of this field that follows; fields end where the next area begins. */
static const char *field_after(const char *line, const char *field)
{
	while (line && strncmp(line, field, strlen(field)) != 0)
		line = next_line(line);
	return line;
}

static const char *smaps_field(const void *p, const char *field)
{
	const char *line;

	if (!text_read(p ? "/proc/self/smaps" : "/proc/self/smaps_rollup"))
		probe_skip("no /proc/self/smaps");
	line = p ? area_of(p) : text;
	if (!line)
		probe_fail("%p in smaps: seen: no area; the kernel: one", p);
	line = field_after(line, field);
	if (!line)
		probe_skip("no %s in smaps", field);
	return line + strlen(field);
}

/* `flags` is what follows "VmFlags:". */
static bool flags_have(const char *flags, const char *flag)
{
	const char *end = strchr(flags, '\n');

	for (; flags + 2 < end; flags += 3)
		if (strncmp(flags + 1, flag, 2) == 0)
			return true;
	return false;
}

bool has_vm_flag(const void *p, const char *flag)
{
	return flags_have(smaps_field(p, "VmFlags:"), flag);
}

/* The area that `line` of smaps begins: what a fresh mapping's is. */
static void expect_plain(const char *line)
{
	/* Which pages back it (hg, nh) is no promise of the kernel's. */
	static const char odd[][3] = {"lo", "dc", "wf", "dd", "mg",
				      "sh", "ht", "gd", "ex"};
	const char *flags = field_after(line, "VmFlags:");
	unsigned long inode = 1;
	char mode[5] = "", name[32] = "";
	bool pool;

	sscanf(line, "%*s %4s %*s %*s %lu %31s", mode, &inode, name);
	/* The kernel's name for anonymous memory from its pool. */
	pool = getenv(POOL_ALLOWED) && strcmp(name, "/anon_hugepage") == 0;
	if (strcmp(mode, "rw-p") != 0)
		probe_fail("mapped after a free: seen: %s; the kernel: rw-p",
			   mode);
	if (inode != 0 && !pool)
		probe_fail("mapped after a free: seen: a file; the kernel: "
			   "anonymous memory");
	for (size_t i = 0; flags && i < sizeof(odd) / sizeof(*odd); i++)
		if (!(pool && strcmp(odd[i], "ht") == 0) &&
		    flags_have(flags + strlen("VmFlags:"), odd[i]))
			probe_fail("mapped after a free: seen: VmFlags with "
				   "%s; the kernel: none of the old state",
				   odd[i]);
}

static void expect_plain_areas(const unsigned char *p, size_t bytes)
{
	unsigned long from, to, end = (unsigned long)(p + bytes);
	unsigned long at = (unsigned long)p;

	if (!text_read("/proc/self/smaps") && !text_read("/proc/self/maps"))
		return;
	for (const char *line = text; line && at < end; line = next_line(line))
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 && from <= at &&
		    to > at) {
			expect_plain(line);
			at = to;
		}
	if (at < end)
		probe_fail("mapped after a free: seen: no area at byte %lu; "
			   "the kernel: one",
			   at - (unsigned long)p);
}

long smaps_kib(const void *p, const char *field)
{
	return strtol(smaps_field(p, field), NULL, 10);
}

long status_kib(const char *field)
{
	const char *line = NULL;

	if (text_read("/proc/self/status"))
		line = field_after(text, field);
	if (!line)
		probe_skip("no %s in /proc/self/status", field);
	return strtol(line + strlen(field), NULL, 10);
}

const char *maps_mode(const void *p)
{
	static char mode[5];
	const char *line;

	if (!text_read("/proc/self/maps"))
		probe_skip("no /proc/self/maps");
	line = area_of(p);
	if (!line)
		return "";
	memcpy(mode, strchr(line, ' ') + 1, 4);
	return mode;
}

bool maps_name_is(const void *p, const char *name)
{
	size_t length = strlen(name);
	const char *line, *end;

	if (!text_read("/proc/self/maps"))
		probe_skip("no /proc/self/maps");
	line = area_of(p);
	end = line ? strchr(line, '\n') : NULL;
	return end && (size_t)(end - line) >= length &&
	       strncmp(end - length, name, length) == 0;
}

/* ---- Processes ------------------------------------------------------------------ */

void child_await(pid_t pid)
{
	int status = 0;

	if (pid < 0)
		probe_skip("no further process: %s", error_name(errno));
	OK(waitpid(pid, &status, 0));
	if (WIFSIGNALED(status))
		probe_fail("a child: seen: ended by %s; the kernel: exit",
			   strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) != 0)
		probe_fail("a child: seen: exit code %d; the kernel: 0",
			   WEXITSTATUS(status));
}

void in_child(void (*fn)(void *), void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		fn(arg);
		_exit(0);
	}
	child_await(pid);
}

#define NOBODY 65534

bool become_nobody(void)
{
	if (geteuid() != 0)
		return true;
	if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return false;
	prctl(PR_SET_DUMPABLE, 1); /* /proc/self is its own again */
	return true;
}

void run_helper(const char *name)
{
	run_program("/proc/self/exe", name);
}

void run_program(const char *path, const char *name)
{
	char said[400];
	int status = 0, out[2];
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	OK(pipe(out));
	pid = fork();
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(path, "contract", "--helper", name, (char *)NULL);
		_exit(126);
	}
	close(out[1]);
	while (n < sizeof(said) - 1 &&
	       (got = read(out[0], said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(out[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		probe_skip("no further process: %s", error_name(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		probe_skip("%s", said);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126)
		probe_skip("this program can't be started again");
	if (status != 0)
		probe_fail("in a program of its own: %s (status %#x)", said,
			   (unsigned)status);
}

/* ---- Threads that map, write and free all the time ------------------------------- */

#define CHURN_MAX 16u

static pthread_t churners[CHURN_MAX];
static unsigned churners_n;
static volatile bool churn_ends;
static unsigned churn_bad;

static bool page_fresh(unsigned char *p)
{
	for (size_t at = 0; at < PAGE; at += 256)
		if (p[at] != 0)
			return false;
	memset(p, SOIL, PAGE);
	return true;
}

/* Not all pages of large ones: some stay as they are, as programs do. */
bool churn_round(unsigned *random)
{
	size_t pages, step;
	unsigned char *p;
	bool fresh = true;

	*random = *random * 1103515245u + 12345u;
	pages = ((size_t)1 << (*random >> 16) % 10) + (*random >> 8) % 2;
	step = pages > 16 ? pages / 16 : 1;
	p = mmap(NULL, pages * PAGE, RW, ANON, -1, 0);
	if (p == MAP_FAILED)
		return false;
	for (size_t at = (*random >> 4) % step; at < pages; at += step)
		fresh = page_fresh(p + at * PAGE) && fresh;
	return munmap(p, pages * PAGE) == 0 && fresh;
}

static void *churn_main(void *arg)
{
	unsigned random = (unsigned)(uintptr_t)arg;

	while (!churn_ends)
		if (!churn_round(&random))
			__atomic_fetch_add(&churn_bad, 1, __ATOMIC_RELAXED);
	return NULL;
}

unsigned scaled(unsigned times)
{
	return getenv("CONC_WHOLE") ? times : (times + 3) / 4;
}

void churn_start(unsigned threads)
{
	churn_ends = false;
	for (churners_n = 0; churners_n < threads; churners_n++)
		EXPECT(pthread_create(&churners[churners_n], NULL, churn_main,
				      (void *)(uintptr_t)(churners_n + 1)) == 0);
}

void churn_stop(void)
{
	churn_ends = true;
	for (unsigned i = 0; i < churners_n; i++)
		pthread_join(churners[i], NULL);
	if (churn_bad)
		probe_fail("in %u rounds of other threads: seen: old bytes or "
			   "a refusal; the kernel: zero",
			   churn_bad);
}
