/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * odd.c - rule 15: calls from where little of the process is there: before all
 * constructors, in signal handlers, on small stacks, in threads whose thread-local
 * memory is shared, empty or missing; without the C library's heap, and with errno
 * and descriptors as they were.
 */
#define _GNU_SOURCE
#include "contract.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* ---- Before main ---------------------------------------------------------------------- */

/* What was seen there; probes can't speak yet. */
static const char *before_constructors = "nothing ran";
static const char *in_constructor = "nothing ran";

static const char *first_calls(void)
{
	for (size_t bytes = PAGE; bytes <= 2 * MIB; bytes *= 8)
		for (unsigned i = 0; i < 4; i++) {
			unsigned char *p = mmap(NULL, bytes, RW, ANON, -1, 0);

			if (p == MAP_FAILED)
				return "mmap failed";
			for (size_t at = 0; at < bytes; at++)
				if (p[at] != 0)
					return "a byte that isn't zero";
			memset(p, SOIL, bytes);
			if (munmap(p, bytes) != 0)
				return "munmap failed";
		}
	return NULL;
}

/* Other programs begin as most do: with main(). */
static bool is_wanted(int argc, char **argv)
{
	return argc > 2 && strcmp(argv[2], "helper_before_main") == 0;
}

static void run_before_constructors(int argc, char **argv, char **env)
{
	(void)env;
	if (is_wanted(argc, argv))
		before_constructors = first_calls();
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(
	int, char **, char **) = run_before_constructors;

/* The C library's constructors have the arguments. */
__attribute__((constructor(101))) static void run_in_constructor(int argc,
								 char **argv)
{
	if (is_wanted(argc, argv))
		in_constructor = first_calls();
}

static void expect_none(const char *seen, const char *where)
{
	if (seen)
		probe_fail("%s: seen: %s; the kernel: zeroed memory", where,
			   seen);
}

void helper_before_main(void)
{
	expect_none(before_constructors, "before all constructors");
	expect_none(in_constructor, "in a constructor");
	expect_clean(MIB);
}

static void rule15_before_main(void)
{
	run_helper("helper_before_main");
}

static void *first_call_in_a_thread(void *arg)
{
	expect_none(first_calls(), "first call, in a thread");
	return arg;
}

static void rule15_first_call_in_a_thread(void)
{
	pthread_t threads[8];

	for (unsigned i = 0; i < 8; i++)
		EXPECT(pthread_create(&threads[i], NULL, first_call_in_a_thread,
				      NULL) == 0);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

/* ---- Handlers --------------------------------------------------------------------------- */

static volatile unsigned handled, handled_bad;
static volatile bool handler_ends;

static void on_signal_churn(int sig)
{
	static unsigned random = 3;

	(void)sig;
	for (unsigned i = 0; i < 3; i++)
		if (!churn_round(&random))
			handled_bad = handled_bad + 1;
	handled = handled + 1;
}

static void *send_signals(void *target)
{
	while (!handler_ends) {
		pthread_kill(*(pthread_t *)target, SIGUSR1);
		usleep(30);
	}
	return NULL;
}

static void rule15_signal_handler(void)
{
	struct sigaction act = {.sa_handler = on_signal_churn,
				.sa_flags = SA_RESTART};
	pthread_t self = pthread_self(), sender;
	unsigned random = 4;

	OK(sigaction(SIGUSR1, &act, NULL));
	EXPECT(pthread_create(&sender, NULL, send_signals, &self) == 0);
	while (handled < 2000)
		EXPECT(churn_round(&random));
	handler_ends = true;
	pthread_join(sender, NULL);
	EXPECT(handled_bad == 0);
}

static void rule15_alternate_signal_stack(void)
{
	struct sigaction act = {.sa_handler = on_signal_churn,
				.sa_flags = SA_ONSTACK};
	size_t bytes = 4 * KIB;
	unsigned char *room = map_soiled(64 * KIB);
	stack_t stack = {0};

#ifdef AT_MINSIGSTKSZ
	bytes += getauxval(AT_MINSIGSTKSZ);
#endif
	bytes = (bytes + PAGE - 1) & -PAGE;
	stack.ss_size = bytes;
	stack.ss_sp = room + PAGE;
	OK(mprotect(room, PAGE, PROT_NONE));
	OK(sigaltstack(&stack, NULL));
	OK(sigaction(SIGUSR1, &act, NULL));
	for (unsigned i = 0; i < 200; i++)
		raise(SIGUSR1);
	EXPECT(handled == 200 && handled_bad == 0);
	expect_bytes(room + PAGE + bytes, 64 * KIB - PAGE - bytes, SOIL,
		     "above the stack");
}

static unsigned char *barrier;

static void on_barrier(int sig, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & -PAGE;

	(void)sig, (void)context;
	if (page < (uintptr_t)barrier || page >= (uintptr_t)barrier + MIB ||
	    mprotect((void *)page, PAGE, RW) != 0)
		_exit(1);
	handled = handled + 1;
}

/* As collectors do: written pages are found by their faults. */
static void rule15_write_barrier(void)
{
	struct sigaction act = {.sa_sigaction = on_barrier,
				.sa_flags = SA_SIGINFO};

	OK(sigaction(SIGSEGV, &act, NULL));
	barrier = map_soiled(MIB);
	for (unsigned round = 1; round <= 5; round++) {
		OK(mprotect(barrier, MIB, PROT_READ));
		for (size_t at = 0; at < MIB; at += 3 * PAGE)
			((volatile unsigned char *)barrier)[at] = SOIL;
		EXPECT(handled == round * ((MIB / PAGE + 2) / 3));
	}
	expect_bytes(barrier, MIB, SOIL, "behind a barrier");
	unmap(barrier, MIB);
	expect_clean(MIB);
}

/* ---- Threads ------------------------------------------------------------------------------ */

static void *churn_some(void *arg)
{
	unsigned random = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 20; i++)
		EXPECT(churn_round(&random));
	return NULL;
}

static void rule15_smallest_stack(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	OK(-pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN));
	for (uintptr_t i = 1; i < 20; i++) {
		EXPECT(pthread_create(&thread, &attr, churn_some, (void *)i) ==
		       0);
		pthread_join(thread, NULL);
	}
}

/* A thread on memory of the program's own. */
static void rule15_stack_that_was_mapped(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	for (uintptr_t i = 1; i < 20; i++) {
		unsigned char *p;

		soil(256 * KIB);
		p = map_with(256 * KIB, MAP_STACK);
		OK(mprotect(p, PAGE, PROT_NONE));
		pthread_attr_init(&attr);
		EXPECT(pthread_attr_setstack(&attr, p + PAGE,
					     256 * KIB - PAGE) == 0);
		EXPECT(pthread_create(&thread, &attr, churn_some, (void *)i) ==
		       0);
		pthread_join(thread, NULL);
		unmap(p, 256 * KIB);
	}
	expect_clean(256 * KIB);
}

static pthread_key_t key;

static void key_destructor(void *p)
{
	static __thread unsigned runs;

	expect_bytes(p, MIB, SOIL, "a key's value");
	unmap(p, MIB);
	expect_none(first_calls(), "in a destructor");
	if (++runs < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, map_soiled(MIB));
}

static void *set_key(void *arg)
{
	pthread_setspecific(key, map_soiled(MIB));
	return arg;
}

static void rule15_thread_destructors(void)
{
	EXPECT(pthread_key_create(&key, key_destructor) == 0);
	for (unsigned i = 0; i < scaled(12); i++) {
		pthread_t thread;

		EXPECT(pthread_create(&thread, NULL, set_key, NULL) == 0);
		pthread_join(thread, NULL);
	}
	expect_clean(MIB);
}

static void rule15_many_short_threads(void)
{
	long before = 0, after;

	for (unsigned i = 0; i < 200; i++) {
		pthread_t thread;

		EXPECT(pthread_create(&thread, NULL, churn_some,
				      (void *)(uintptr_t)i) == 0);
		pthread_join(thread, NULL);
		if (i == 50)
			before = status_kib("VmSize:");
	}
	after = status_kib("VmSize:");
	EXPECT(after - before < 64 * 1024);
}

/* Threads that the C library didn't make.  They end by the kernel's call alone. */
static volatile unsigned clones_done;

static int clone_main(void *arg)
{
	for (unsigned i = 0; i < 400; i++) {
		size_t bytes = PAGE << i % 8;
		unsigned char *p = mmap(NULL, bytes, RW, ANON, -1, 0);

		for (size_t at = 0; at < bytes; at += 64)
			if (p[at] != 0)
				*(volatile unsigned *)arg = 1;
		for (size_t at = 0; at < bytes; at += 64)
			((volatile unsigned char *)p)[at] = SOIL;
		munmap(p, bytes);
	}
	clones_done = 1;
	return 0;
}

#define CLONE_AS_THREAD                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |    \
	 CLONE_SYSVSEM)

static void clone_runs(int flags, void *tls)
{
	static unsigned char stack[64 * KIB] __attribute__((aligned(16)));
	unsigned bad = 0, random = 9;

	unmap(map(PAGE), PAGE); /* the calls' addresses are known from here on */
	if (clone(clone_main, stack + sizeof(stack), CLONE_AS_THREAD | flags,
		  &bad, NULL, tls, NULL) < 0)
		probe_skip("no clone: %s", error_name(errno));
	while (!clones_done)
		EXPECT(churn_round(&random));
	usleep(2000); /* its stack is in use until it has ended */
	EXPECT(bad == 0);
	expect_clean(64 * KIB);
}

/* It finds the thread-local memory of the thread that made it. */
static void rule15_thread_that_shares_tls(void)
{
	clone_runs(0, NULL);
}

#if defined(__x86_64__)
/* A block as another runtime has it: itself at its start, and otherwise zero. */
static void rule15_thread_with_empty_tls(void)
{
	static uintptr_t block[16 * KIB] __attribute__((aligned(64)));
	uintptr_t *self = block + 8 * KIB;

	self[0] = self[2] = (uintptr_t)self;
	clone_runs(CLONE_SETTLS, self);
}

static void rule15_thread_without_tls(void)
{
	clone_runs(CLONE_SETTLS, NULL);
}
#else
static void rule15_thread_with_empty_tls(void)
{
	probe_skip("written for x86-64 only");
}

static void rule15_thread_without_tls(void)
{
	probe_skip("written for x86-64 only");
}
#endif

/* ---- Filters of system calls ----------------------------------------------------------------- */

#define FILTER_CALL(number, verdict)                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                   \
		BPF_STMT(BPF_RET | BPF_K, (verdict))

static void filter_set(struct sock_filter *code, unsigned short n)
{
	struct sock_fprog program = {n, code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		probe_skip("no filters of system calls: %s", error_name(errno));
}

/* A program that has shut itself in, and maps and frees from there on. */
static void rule15_filter_that_kills(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		FILTER_CALL(SYS_mmap, SECCOMP_RET_ALLOW),
		FILTER_CALL(SYS_munmap, SECCOMP_RET_ALLOW),
		FILTER_CALL(SYS_exit_group, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 4)
		soil(bytes);
	filter_set(code, sizeof(code) / sizeof(*code));
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 2)
		for (unsigned i = 0; i < 6; i++) {
			unsigned char *p = map(bytes);

			expect_zero(p, bytes, "behind a filter");
			memset(p, SOIL, bytes);
			unmap(p, bytes);
		}
}

/* What a container's filter refuses isn't relied on: set unseen, or inherited. */
static void advice_refuse(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		FILTER_CALL(SYS_madvise, SECCOMP_RET_ERRNO | EPERM),
		FILTER_CALL(SYS_mincore, SECCOMP_RET_ERRNO | EPERM),
		FILTER_CALL(SYS_mremap, SECCOMP_RET_ERRNO | EPERM),
		FILTER_CALL(SYS_membarrier, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_set(code, sizeof(code) / sizeof(*code));
}

void helper_refused_advice(void)
{
	for (size_t bytes = PAGE; bytes <= 64 * MIB; bytes *= 2) {
		for (unsigned i = 0; i < (bytes > 4 * MIB ? 3 : 12); i++) {
			unsigned char *p = map(bytes);

			expect_zero(p, bytes, "where advice is refused");
			memset(p, SOIL, bytes);
			unmap(p, bytes);
		}
		for (unsigned i = 0; i < 100; i++)
			unmap(map(bytes), bytes);
	}
	FAILS(madvise(map(PAGE), PAGE, MADV_DONTNEED), EPERM);
}

static void rule15_filter_that_refuses_advice(void)
{
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 2)
		soil(bytes);
	advice_refuse();
	helper_refused_advice();
}

static void rule15_inherited_filter(void)
{
	advice_refuse();
	run_helper("helper_refused_advice");
}

/* ---- What else a call might touch ----------------------------------------------------------- */

/* The C library's heap, for all of the process: its calls are counted. */
static volatile bool in_calls;
static volatile unsigned long heap_calls;

#define FOR_ALL __attribute__((visibility("default")))

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
extern void __libc_free(void *p);

FOR_ALL void *malloc(size_t bytes)
{
	heap_calls = heap_calls + in_calls;
	return __libc_malloc(bytes);
}

FOR_ALL void *calloc(size_t n, size_t bytes)
{
	heap_calls = heap_calls + in_calls;
	return __libc_calloc(n, bytes);
}

FOR_ALL void *realloc(void *p, size_t bytes)
{
	heap_calls = heap_calls + in_calls;
	return __libc_realloc(p, bytes);
}

FOR_ALL void free(void *p)
{
	heap_calls = heap_calls + in_calls;
	__libc_free(p);
}

/* Each of the calls, with success; nothing else. */
static void all_calls(void)
{
	for (size_t bytes = 4 * PAGE; bytes <= 4 * MIB; bytes *= 4) {
		unsigned char *p = mmap(NULL, bytes, RW, ANON, -1, 0), vec[4];

		memset(p, SOIL, bytes);
		mincore(p, 4 * PAGE, vec);
		mprotect(p, PAGE, PROT_READ);
		mprotect(p, PAGE, RW);
		madvise(p, PAGE, MADV_DONTNEED);
		munmap(p + 3 * PAGE, PAGE);
		p = mremap(p, 2 * PAGE, bytes, MREMAP_MAYMOVE);
		munmap(p, bytes);
	}
}

static void rule15_no_heap(void)
{
	in_calls = true;
	all_calls();
	in_calls = false;
	EXPECT(heap_calls == 0);
	/* A library's call is seen at all. */
	in_calls = true;
	free(strdup("text"));
	in_calls = false;
	EXPECT(heap_calls == 2);
}

static void rule15_errno_is_kept(void)
{
	errno = 4711;
	all_calls();
	EXPECT(errno == 4711);
	for (unsigned i = 0; i < 1000; i++) {
		unsigned char *p =
			mmap(NULL, 64 * MIB, RW, ANON | MAP_NORESERVE, -1, 0);

		if (errno != 4711)
			break;
		munmap(p, 64 * MIB);
	}
	EXPECT(errno == 4711);
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!dir)
		probe_skip("no /proc/self/fd");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void rule15_no_descriptor(void)
{
	unsigned before = descriptors();
	int next = dup(STDOUT_FILENO);

	close(next);
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 4)
		soil(bytes);
	churn_start(4);
	churn_stop();
	EXPECT(descriptors() == before);
	EXPECT(dup(STDOUT_FILENO) == next);
}

static void rule15_all_descriptors_closed(void)
{
	soil(MIB);
	for (int fd = 0; fd < 1000; fd++)
		close(fd);
	for (size_t bytes = PAGE; bytes <= 16 * MIB; bytes *= 4) {
		soil(bytes);
		unmap(map_soiled(bytes), bytes);
	}
	EXPECT(open("/dev/null", O_RDWR) == 0);
	EXPECT(open("/dev/null", O_RDWR) == 1);
}

static void at_exit(void)
{
	expect_none(first_calls(), "in an exit handler");
}

static void exits(void *arg)
{
	(void)arg;
	atexit(at_exit);
	soil(MIB);
	exit(0);
}

static void rule15_exit_handlers(void)
{
	in_child(exits, NULL);
}

const struct probe probes_odd[] = {
	PROBE(rule15_before_main),
	PROBE(rule15_first_call_in_a_thread),
	PROBE(rule15_signal_handler),
	PROBE(rule15_alternate_signal_stack),
	PROBE(rule15_write_barrier),
	PROBE(rule15_smallest_stack),
	PROBE(rule15_stack_that_was_mapped),
	PROBE(rule15_filter_that_kills),
	PROBE(rule15_filter_that_refuses_advice),
	PROBE(rule15_inherited_filter),
	PROBE(rule15_thread_destructors),
	PROBE(rule15_many_short_threads),
	PROBE(rule15_thread_that_shares_tls),
	PROBE(rule15_thread_with_empty_tls),
	PROBE(rule15_thread_without_tls),
	PROBE(rule15_no_heap),
	PROBE(rule15_errno_is_kept),
	PROBE(rule15_no_descriptor),
	PROBE(rule15_all_descriptors_closed),
	PROBE(rule15_exit_handlers),
	PROBES_END,
};
