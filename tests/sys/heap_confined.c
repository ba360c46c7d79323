/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_confined.c - whole heaps where the kernel refuses things from the start.
 *
 *   sandbox        a real filter: mmap(MAP_HUGETLB) and madvise(20 and above) are
 *                  EINVAL, mbind, the other calls of memory policies and membarrier
 *                  ENOSYS
 *   address space  RLIMIT_AS of 1 GiB, with a heap of default size
 *
 * The program confines itself and then executes itself, so that also what the
 * loader and other libraries' constructors do meets the refusals.  A signal fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/sanitized.h"

#define MIB ((size_t)1 << 20)
#define SKIPPED 77
#define BULK 64u
#define ROUNDS 200u
#define USED "used"

static unsigned failures;

#define EXPECT(cond)                                                           \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#cond);                                        \
			failures++;                                            \
		}                                                              \
	} while (0)

/* ---- What a program does with a heap ------------------------------------------ */

static void *churn(void *arg)
{
	struct pcpa_heap *heap = arg;
	void *at[BULK];
	size_t n;

	for (unsigned i = 0; i < ROUNDS; i++) {
		n = pcpa_alloc_bulk(heap, i % 4, 0, at, BULK);
		for (size_t k = 0; k < n; k++)
			memset(at[k], 1, 64);
		EXPECT(n == BULK);
		pcpa_free_bulk(heap, at, n);
	}
	return NULL;
}

static void heap_use(struct pcpa_heap *heap)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	pthread_t t;
	void *range;

	EXPECT(pthread_create(&t, NULL, churn, heap) == 0);
	churn(heap);
	pthread_join(t, NULL);
	range = pcpa_alloc_contig(heap, 100, 1, PCPA_ZERO);
	EXPECT(range);
	pcpa_free_contig(heap, range, 100);
	EXPECT(pcpa_cache_disable(heap, -1) == 0);
	churn(heap);
	EXPECT(pcpa_cache_enable(heap, -1) == 0);
	EXPECT(pcpa_heap_tick(heap) == 0);
	EXPECT(pcpa_heap_drain(heap) == 0);
	pcpa_heap_trim(heap, 0);
	churn(heap);
	EXPECT(pcpa_thread_flush(heap) == 0);
	EXPECT(pcpa_stats_read(heap, -1, &s) == 0);
	EXPECT(s.used_pages == 0 && s.managed_pages > 0);
	EXPECT(pcpa_heap_destroy(heap) == 0);
}

static void heap_live(size_t initial, size_t max, unsigned flags)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	int err;

	o.initial_bytes = initial;
	o.max_bytes = max;
	o.flags = flags;
	o.verbosity = 0;
	err = pcpa_heap_create(&o, &heap);
	if (err)
		fprintf(stderr, "flags %#x: %s\n", flags, strerror(-err));
	EXPECT(err == 0);
	if (!err)
		heap_use(heap);
}

static int used(void)
{
	static const unsigned flags[] = { 0, PCPA_HEAP_COW, PCPA_HEAP_LEGACY,
					  PCPA_HEAP_CHECKS, PCPA_HEAP_NO_IPI,
					  PCPA_HEAP_BACKGROUND };

	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		heap_live(8 * MIB, 48 * MIB, flags[i]);
	heap_live(16 * MIB, 0, PCPA_HEAP_FIXED);
	heap_live(0, 0, 0);
	return failures != 0;
}

/* ---- Confinements --------------------------------------------------------------- */

#define LOW_WORD(arg)                                                          \
	((unsigned)offsetof(struct seccomp_data, args[arg]) +                  \
	 (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4u : 0u))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offset))
#define REFUSE(error)                                                          \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)(error))
#define IF(op, value, yes, no)                                                 \
	BPF_JUMP(BPF_JMP | (op) | BPF_K, (unsigned)(value), yes, no)

static bool sandbox(void)
{
	struct sock_filter code[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		IF(BPF_JEQ, __NR_mbind, 4, 0),
		IF(BPF_JEQ, __NR_set_mempolicy, 3, 0),
		IF(BPF_JEQ, __NR_get_mempolicy, 2, 0),
		IF(BPF_JEQ, __NR_membarrier, 1, 0),
		IF(BPF_JEQ, __NR_madvise, 1, 3),
		REFUSE(ENOSYS),
		LOAD(LOW_WORD(2)),
		IF(BPF_JGE, 20, 4, 3),
		IF(BPF_JEQ, __NR_mmap, 0, 2),
		LOAD(LOW_WORD(3)),
		IF(BPF_JSET, MAP_HUGETLB, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		REFUSE(EINVAL),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* Whether the kernel now refuses what it is to refuse, and nothing more. */
static bool is_sandboxed(void)
{
	char *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return syscall(__NR_membarrier, 0, 0, 0) == -1 && errno == ENOSYS &&
	       syscall(__NR_mbind, p, 4096, 0, NULL, 0, 0) == -1 &&
	       errno == ENOSYS && p != MAP_FAILED &&
	       madvise(p, 2 * MIB, MADV_DONTFORK) == 0 &&
	       madvise(p, 2 * MIB, 23) == -1 && errno == EINVAL &&
	       mmap(NULL, 2 * MIB, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) ==
		       MAP_FAILED &&
	       errno == EINVAL;
}

static bool address_space(void)
{
	struct rlimit l = { 1024 * MIB, 1024 * MIB };

	return !IS_SANITIZED && setrlimit(RLIMIT_AS, &l) == 0;
}

static int run(const char *name, bool (*confine)(void), const char *self)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0) {
		if (!confine())
			_exit(SKIPPED);
		execl(self, self, name, USED, (char *)NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		printf("%s: skipped\n", name);
	else
		printf("%s: %s (%d)\n", name, status ? "FAILED" : "passed", status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	int a, b;

	if (argc == 3 && strcmp(argv[2], USED) == 0) {
		if (strcmp(argv[1], "sandbox") == 0)
			EXPECT(is_sandboxed());
		return used();
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	a = run("sandbox", sandbox, "/proc/self/exe");
	b = run("address space", address_space, "/proc/self/exe");
	if (a == SKIPPED && b == SKIPPED)
		return SKIPPED;
	return (a != 0 && a != SKIPPED) || (b != 0 && b != SKIPPED);
}
