/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared_heap.c - heaps of memory files on the real kernel.
 *
 *   - a second process, which was given the descriptors over a socket, sees what
 *     the heap's blocks hold, and its writes are seen here
 *   - memory that is given back really goes: the files' pages are counted
 *   - a file's size can't be changed by who has it
 *   - a forked child's calls say ENODEV, and its copies of the files are closed
 *   - frames of hugetlb pages are told where that is permitted, others never
 *   - more than the pool has: no signal
 *
 * Twice: as the machine is, and as root with a pool of 2 MiB pages for the time, where
 * nobody else uses one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pcpalloc/stats.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../support/children.h"
#include "../support/heap_new.h"
#include "../support/hugepool.h"

#define MIB ((size_t)1 << 20)
#define PAGE_BYTES POOL_PAGE_BYTES
#define POOL_PAGES 16u
#define FIXED_SHARED (PCPA_HEAP_FIXED | PCPA_HEAP_SHARED)
#define ARENAS_MAX 16u
#define BLOCKS 512u
#define CHILD_SECONDS 30u

static bool has_pool;

/* ---- Heaps and their files ----------------------------------------------------------- */

struct files {
	unsigned n;
	int fd[ARENAS_MAX];
	struct pcpa_arena_info arena[ARENAS_MAX];
};

static int file_add(const struct pcpa_arena_info *info, void *arg)
{
	struct files *f = arg;

	CHECK(f->n < ARENAS_MAX && info->fd >= 0);
	CHECK(info->struct_size == sizeof(*info));
	CHECK(info->offset % info->page_bytes == 0);
	CHECK(info->bytes % info->granule_bytes == 0);
	f->fd[f->n] = info->fd;
	f->arena[f->n++] = *info;
	return 0;
}

static struct files files_of(struct pcpa_heap *heap)
{
	struct files f = { 0 };

	CHECK(pcpa_for_each_arena(heap, file_add, &f) == 0);
	return f;
}

/* Of all the files of the heap; each is listed by its first arena. */
static size_t backed(const struct files *f)
{
	size_t bytes = 0;
	struct stat st;
	unsigned i, j;

	for (i = 0; i < f->n; i++) {
		for (j = 0; j < i && f->fd[j] != f->fd[i]; j++)
			;
		if (j == i) {
			CHECK(fstat(f->fd[i], &st) == 0);
			bytes += (size_t)st.st_blocks * 512;
		}
	}
	return bytes;
}

static struct pcpa_heap *make(size_t initial, size_t max, unsigned flags)
{
	struct pcpa_heap *heap;

	CHECK(heap_new(NULL, initial, max, flags, &heap) == 0);
	return heap;
}

/* ---- A second process ----------------------------------------------------------------- */

static void fds_send(int sock, const struct files *f)
{
	char room[CMSG_SPACE(sizeof(f->fd))];
	size_t bytes = f->n * sizeof(f->fd[0]);
	struct iovec data = { (void *)(uintptr_t)f, sizeof(*f) };
	struct msghdr m = { .msg_iov = &data, .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = CMSG_SPACE(bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	memset(room, 0, sizeof(room));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), f->fd, bytes);
	CHECK(sendmsg(sock, &m, 0) == (ssize_t)sizeof(*f));
}

static void fds_receive(int sock, struct files *f)
{
	char room[CMSG_SPACE(sizeof(f->fd))];
	struct iovec data = { f, sizeof(*f) };
	struct msghdr m = { .msg_iov = &data, .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };

	CHECK(recvmsg(sock, &m, 0) == (ssize_t)sizeof(*f));
	CHECK(CMSG_FIRSTHDR(&m));
	memcpy(f->fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), f->n * sizeof(f->fd[0]));
}

/* Adds 1 to the first word of each page that has a mark. */
static void peer(int sock)
{
	struct files f;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at, marked = 0;
	char *base;
	unsigned i;

	alarm(CHILD_SECONDS);
	fds_receive(sock, &f);
	for (i = 0; i < f.n; i++) {
		CHECK(ftruncate(f.fd[i], 0) != 0);
		base = mmap(NULL, f.arena[i].bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED, f.fd[i], (off_t)f.arena[i].offset);
		CHECK(base != MAP_FAILED);
		for (at = 0; at < f.arena[i].bytes; at += page)
			if (*(uint64_t *)(void *)(base + at) >= 1000) {
				++*(uint64_t *)(void *)(base + at);
				marked++;
			}
	}
	CHECK(write(sock, &marked, sizeof(marked)) == sizeof(marked));
	/* Its mappings live on until the other side has destroyed the heap. */
	CHECK(read(sock, &marked, sizeof(marked)) == sizeof(marked));
	_exit(0);
}

static void shared_with_a_process(void)
{
	struct pcpa_heap *heap = make(8 * MIB, 64 * MIB, PCPA_HEAP_SHARED);
	void *blocks[BLOCKS];
	int sock[2];
	struct files f;
	size_t marked;
	unsigned i;
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		peer(sock[1]);
	CHECK(pcpa_alloc_bulk(heap, 0, PCPA_ZERO, blocks, BLOCKS) == BLOCKS);
	for (i = 0; i < BLOCKS; i++)
		*(uint64_t *)blocks[i] = 1000 + i;
	f = files_of(heap);
	fds_send(sock[0], &f);
	CHECK(read(sock[0], &marked, sizeof(marked)) == sizeof(marked));
	CHECK(marked == BLOCKS);
	for (i = 0; i < BLOCKS; i++)
		CHECK(*(uint64_t *)blocks[i] == 1001 + i);
	pcpa_free_bulk(heap, blocks, BLOCKS);
	CHECK(pcpa_heap_destroy(heap) == 0);
	CHECK(write(sock[0], &marked, sizeof(marked)) == sizeof(marked));
	CHECK(child_status(pid) == 0);
	close(sock[0]);
	close(sock[1]);
}

/* ---- Back to the kernel ------------------------------------------------------------------ */

static void memory_goes_back(void)
{
	size_t all = 2 * POOL_PAGES * PAGE_BYTES;
	struct pcpa_heap *heap = make(all, all, PCPA_HEAP_SHARED);
	struct files f = files_of(heap);
	void *block = pcpa_alloc(heap, 0, 0);
	struct pcpa_stats s = PCPA_STATS_INIT;

	CHECK(block);
	memset(block, 1, pcpa_heap_page_bytes(heap));
	CHECK(backed(&f) == all);
	CHECK(pcpa_heap_trim(heap, 0) == all - PAGE_BYTES);
	CHECK(backed(&f) == PAGE_BYTES);
	CHECK(*(char *)block == 1);
	pcpa_free(heap, block);
	CHECK(pcpa_heap_trim(heap, 0) == PAGE_BYTES);
	CHECK(backed(&f) == 0);
	CHECK(pcpa_stats_read(heap, -1, &s) == 0);
	CHECK(s.trim_failed == 0);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

/* A pool that shrinks between the look and the fault, and one that is too small. */
static void no_signal(void)
{
	size_t all = 2 * POOL_PAGES * PAGE_BYTES, n = 0;
	struct pcpa_heap *heap = make(0, all, PCPA_HEAP_SHARED);
	void *blocks[2 * POOL_PAGES];

	while (n < 2 * POOL_PAGES && (blocks[n] = pcpa_alloc(heap, 9, 0)))
		memset(blocks[n++], 1, PAGE_BYTES);
	CHECK(n == 2 * POOL_PAGES);
	while (n > 0)
		pcpa_free(heap, blocks[--n]);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

/* ---- Children ---------------------------------------------------------------------------- */

static int any_arena(const struct pcpa_arena_info *info, void *arg)
{
	(void)info;
	(void)arg;
	return 1;
}

static int any_change(enum pcpa_arena_change change,
		      const struct pcpa_arena_info *info, void *arg)
{
	(void)change;
	return any_arena(info, arg);
}

static void child_of(struct pcpa_heap *heap, void *block, int fd, int kept)
{
	uint64_t iova = 1;

	alarm(CHILD_SECONDS);
	errno = 0;
	CHECK(!pcpa_alloc(heap, 0, 0) && errno == ENODEV);
	pcpa_free(heap, block);
	CHECK(pcpa_for_each_arena(heap, any_arena, NULL) == -ENODEV);
	CHECK(pcpa_heap_notify(heap, any_change, NULL) == -ENODEV);
	CHECK(pcpa_virt_to_iova(heap, block, &iova) == -ENODEV && iova == 1);
	CHECK(pcpa_heap_trim(heap, 0) == 0);
	CHECK(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
	CHECK(fcntl(kept, F_GETFD) >= 0);
	_exit(0);
}

static void forked(void)
{
	struct pcpa_heap *heap = make(4 * MIB, 0, FIXED_SHARED);
	void *block = pcpa_alloc(heap, 0, 0);
	struct files f = files_of(heap);
	int kept = dup(f.fd[0]);
	pid_t pid;

	CHECK(block && kept >= 0);
	CHECK(fcntl(f.fd[0], F_GETFD) & FD_CLOEXEC);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child_of(heap, block, f.fd[0], kept);
	CHECK(child_status(pid) == 0);
	CHECK(fcntl(f.fd[0], F_GETFD) >= 0);
	memset(block, 1, pcpa_heap_page_bytes(heap));
	pcpa_free(heap, block);
	CHECK(pcpa_heap_destroy(heap) == 0);
	CHECK(fcntl(f.fd[0], F_GETFD) < 0);
	close(kept);
}

/* A fork while the subscriber is told that the heap ends. */
static struct {
	pthread_barrier_t steps;
	int fd;
} ending;

static int ends(enum pcpa_arena_change change, const struct pcpa_arena_info *arena,
		void *arg)
{
	(void)arena;
	(void)arg;
	if (change == PCPA_ARENA_REMOVE) {
		pthread_barrier_wait(&ending.steps);
		pthread_barrier_wait(&ending.steps);
	}
	return 0;
}

static void *forks_meanwhile(void *arg)
{
	pid_t pid;

	pthread_barrier_wait(&ending.steps);
	pid = fork();
	if (pid == 0)
		_exit(fcntl(ending.fd, F_GETFD) < 0 ? 0 : 1);
	pthread_barrier_wait(&ending.steps);
	CHECK(child_status(pid) == 0);
	return arg;
}

static void forked_at_the_end(void)
{
	struct pcpa_heap *heap = make(4 * MIB, 0, FIXED_SHARED);
	pthread_t t;

	ending.fd = files_of(heap).fd[0];
	pthread_barrier_init(&ending.steps, NULL, 2);
	CHECK(pcpa_heap_notify(heap, ends, NULL) == 0);
	CHECK(pthread_create(&t, NULL, forks_meanwhile, NULL) == 0);
	CHECK(pcpa_heap_destroy(heap) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	pthread_barrier_destroy(&ending.steps);
}

/* ---- Frames ------------------------------------------------------------------------------- */

static int kind_note(const struct pcpa_arena_info *info, void *arg)
{
	*(enum pcpa_backing *)arg = info->backing;
	return 0;
}

/* In one huge page frames follow each other. */
static void frames(unsigned flags)
{
	enum pcpa_backing kind = PCPA_BACKING_BASE;
	struct pcpa_heap *heap = make(4 * MIB, 0, PCPA_HEAP_FIXED | flags);
	char *block = pcpa_alloc(heap, 9, 0);
	uint64_t first = 0, other = 0;
	int rc;

	CHECK(block);
	CHECK(pcpa_for_each_arena(heap, kind_note, &kind) == 0);
	CHECK(!has_pool || kind == PCPA_BACKING_HUGETLB);
	rc = pcpa_virt_to_iova(heap, block, &first);
	if (kind != PCPA_BACKING_HUGETLB) {
		CHECK(rc == -ENOTSUP && first == 0);
	} else if (rc == 0) {
		CHECK(first != 0 && first % PAGE_BYTES == 0);
		CHECK(pcpa_virt_to_iova(heap, block + 123457, &other) == 0);
		CHECK(other == first + 123457);
	} else {
		CHECK(rc == -EPERM && first == 0);
		puts("frames are hidden here");
	}
	pcpa_free(heap, block);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

static void all(void)
{
	shared_with_a_process();
	memory_goes_back();
	no_signal();
	forked();
	forked_at_the_end();
	frames(0);
	frames(PCPA_HEAP_SHARED);
}

int main(void)
{
	all();
	has_pool = pool_take(POOL_PAGES);
	printf("pool: %s\n", has_pool ? "set" : "left out");
	fflush(stdout);
	if (has_pool)
		all();
	return 0;
}
