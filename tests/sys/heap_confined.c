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
#include <pcpalloc/stats.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../support/children.h"
#include "../support/heap_new.h"
#include "../support/sandbox.h"
#include "../support/sanitized.h"

#define MIB ((size_t)1 << 20)
#define BULK 64u
#define ROUNDS 200u
#define USED "used"
#define SELF "/proc/self/exe"

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
	struct pcpa_heap *heap;
	int err = heap_new(NULL, initial, max, flags, &heap);

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

/* Executes this program, as it is confined now. */
static int again(const char *name)
{
	execl(SELF, SELF, name, USED, (char *)NULL);
	return 1;
}

static int sandbox(void)
{
	bool shut = sandbox_refuse(__NR_mbind, ENOSYS) &&
		    sandbox_refuse(__NR_set_mempolicy, ENOSYS) &&
		    sandbox_refuse(__NR_get_mempolicy, ENOSYS) &&
		    sandbox_refuse(__NR_membarrier, ENOSYS) &&
		    sandbox_refuse_if(__NR_madvise, 2, BPF_JGE, 20, EINVAL) &&
		    sandbox_refuse_if(__NR_mmap, 3, BPF_JSET, MAP_HUGETLB, EINVAL);

	return shut ? again("sandbox") : SKIPPED;
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

static int address_space(void)
{
	struct rlimit l = { 1024 * MIB, 1024 * MIB };

	if (IS_SANITIZED || setrlimit(RLIMIT_AS, &l) != 0)
		return SKIPPED;
	return again("address space");
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[2], USED) == 0) {
		if (strcmp(argv[1], "sandbox") == 0)
			EXPECT(is_sandboxed());
		return used();
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	case_run("sandbox", sandbox);
	case_run("address space", address_space);
	return cases_status();
}
