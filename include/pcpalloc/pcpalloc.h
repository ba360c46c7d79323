/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcpalloc.h - the public interface of libpcpalloc, a page allocator for
 * packet processing in Linux userspace.
 *
 * A heap hands out blocks of 2^order base pages (order 0 is one page, 4 KiB
 * on x86-64), each aligned to its own size and never crossing a huge page.
 * Any thread may free what any other allocated.  Nothing is registered and no
 * size or count is fixed: threads get their caches at their first call, a heap
 * grows by whole arenas up to its maximum.
 *
 * Units: *_bytes are bytes; *_pages, batch, high and the counts of trace
 * events are base pages; *_total, *_blocks and n of the bulk calls are blocks.
 *
 * Concurrency: every call may be made from any thread at any time, except
 * pcpa_heap_destroy(), which requires that no other call on the heap is
 * running or will follow.
 *
 * errno: success and every free leave it alone.
 */
#ifndef PCPALLOC_PCPALLOC_H
#define PCPALLOC_PCPALLOC_H

#include <stddef.h>
#include <stdint.h>

#include <pcpalloc/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pcpa_heap;
struct pcpa_stats; /* pcpalloc/stats.h */

/* The largest order of any heap; a heap's own may be lower: see
 * pcpa_heap_max_order(). */
#define PCPA_MAX_ORDER 10

/* ---- Allocation flags --------------------------------------------------- */

/* Zero the bytes handed out by this call. */
#define PCPA_ZERO 0x10u
/* Never grow the heap for this call. */
#define PCPA_NOGROW 0x20u
/* Fail rather than take a block of another node than the one asked for; alone
 * it means the caller's node. */
#define PCPA_THISNODE 0x40u
/*
 * Never wait: the thread's cache, the depot and the free pages are looked at, by
 * try-locks, and nothing is drained, grown or asked of the kernel.  EAGAIN where a
 * lock was taken or the cache was being drained, so that a retry may succeed;
 * ENOMEM where all was looked at.  A thread that has only made such calls has no
 * cache: any other call makes it.
 */
#define PCPA_NOWAIT 0x80u
/* May take what reserve_pages keeps from other calls. */
#define PCPA_RESERVE 0x100u
/* Prefer node n, an os number up to 65,534. */
#define PCPA_NODE(n) (((unsigned)(n) + 1u) << 16)

/* ---- Creation ----------------------------------------------------------- */

/* Arenas are copy-on-write after fork and the child may use the heap; never
 * backed by hugetlb pages. */
#define PCPA_HEAP_COW 0x01u
/* The heap never grows: initial_bytes is required, max_bytes equals it or is 0. */
#define PCPA_HEAP_FIXED 0x02u
/* The cache policy of Linux 5.14 instead of that of 6.7 and later. */
#define PCPA_HEAP_LEGACY 0x04u
/*
 * Find a program's mistakes with blocks: a free that can't be right (twice, not
 * the start of a block, of another heap or of none, of another order than said),
 * and a write to a block that is free, which is seen when it is handed out
 * again.  Either says which block it is, of which heap, node and order, who
 * allocated and freed it last and where, on stderr whatever the verbosity, and
 * aborts.  So that this works, freed blocks (up to 2,048 of an order, and 1/8 of
 * a node) rest before they are used again, and are filled with bytes a5.  A
 * second free after the block was handed out again can't be told from a right
 * one; the free after that is.
 * Cost: some microseconds a pair, and 145 bytes of memory a page; where there is
 * no address space for these, which is said, bad frees are found only.
 * (In contiguous ranges writes to free pages are not looked for.)
 * The variable PCPA_CHECKS=1 sets it for every heap of the process, also those
 * that the program makes with options of its own.
 */
#define PCPA_HEAP_CHECKS 0x08u
/* Blocks are part of core dumps. */
#define PCPA_HEAP_DUMP 0x10u
/* Never interrupt a running thread to drain its cache: it drains itself at its
 * next call.  The creation of a process's first heap still interrupts all of its
 * running threads, a few times at most: create it before they matter. */
#define PCPA_HEAP_NO_IPI 0x20u
/* A thread of the heap's own, named pcpalloc and with all signals blocked, calls
 * pcpa_heap_tick() once a second until the heap is destroyed; -EAGAIN at creation
 * where it can't be made.  It does not survive a fork: a child with
 * PCPA_HEAP_COW lives without. */
#define PCPA_HEAP_BACKGROUND 0x40u
/*
 * The memory is that of files without a name (memfd), one for each node and kind of
 * page, so that another process can map it: pcpa_arena_info says which file and
 * where.  Hugetlb pages where these can be had, else transparent huge pages, which
 * for such memory have a setting of their own (shmem_enabled), else base pages.
 * Not with PCPA_HEAP_COW; needs Linux 5.14.  Creation may also fail with -EMFILE and
 * the like, or with -EFBIG where RLIMIT_FSIZE is below the address space of a node.
 *
 * A descriptor is the heap's, is closed at exec, and is closed in a forked child:
 * send it over a Unix socket (SCM_RIGHTS), or dup() it before the fork.  Its size
 * is sealed.  Who has it sees and changes all blocks, and can take them away by
 * punching holes; it must keep to what
 * pcpa_for_each_arena() lists: what lies between takes memory when it is touched,
 * or raises SIGBUS.  What pcpa_heap_trim() gives back is gone for every process,
 * which then reads zeros or gets SIGBUS: pcpa_heap_notify() tells before.  After
 * pcpa_heap_destroy() other processes keep what they have mapped.
 */
#define PCPA_HEAP_SHARED 0x80u
/*
 * The program uses what is in its free blocks, for instance to keep objects
 * constructed.  The library leaves that alone anyway, but for a free in a signal
 * handler that interrupted it (below), which uses a block's first bytes; with this
 * flag PCPA_HEAP_CHECKS and memory tools do, too: free blocks are neither filled nor
 * looked at nor forbidden, and frees that can't be right are found as ever.
 */
#define PCPA_HEAP_CONTENTS 0x100u
/*
 * Memory is on the node that the library says, or isn't had: creation fails where
 * it can't be bound or the kernel doesn't tell where pages are (its error: -EPERM
 * in a sandbox), and where initial_bytes aren't on the node (-ENOMEM); growth gives
 * back what came from elsewhere. Without this flag all of that is a fallback, said
 * once; what came from elsewhere is counted (misplaced_pages), but what a heap on
 * several nodes grows by is given back, and the other nodes are asked.  Where the
 * process may use one node only it is no matter that memory can't be bound.
 */
#define PCPA_HEAP_BOUND 0x200u

/*
 * What a heap is made of.  Start from PCPA_HEAP_OPTIONS_INIT; zero means the
 * default everywhere.  Each field has a PCPA_* variable of the same name for
 * the default heap (PCPA_INITIAL_BYTES=64M, PCPA_NODES=0, PCPA_FLAGS=fixed,...).
 */
struct pcpa_heap_options {
	size_t struct_size;
	unsigned flags; /* PCPA_HEAP_* */
	/* Backed at creation, per node; 0: one arena at first use. */
	size_t initial_bytes;
	/* Bound of growth, per node, rounded up to a huge page; 0: what the
	 * node has, less than the cgroup's limit. */
	size_t max_bytes;
	/* os numbers, "0,2-3"; NULL: every allowed node with memory. */
	const char *nodes;
	/* Huge page size to use; 0: the largest that fits; the base page size:
	 * no huge pages. */
	size_t hugepage_bytes;
	/* Transfer unit between a cache and the buddy, up to 4,096; 0: by the
	 * zone's size. */
	unsigned batch_pages;
	/* A cache's bound, up to 65,536 (of which 65,024 are used); 0: by
	 * watermarks and CPUs.  Set, it is fixed. */
	unsigned high_pages;
	/* A cache's bound as 1/high_fraction of the zone over its CPUs; 0: off;
	 * 1 to 7 are refused. */
	unsigned high_fraction;
	/* 0 silent, 1 each fallback and the first bad free once, on stderr. */
	unsigned verbosity;
	/* Free pages of each node that only calls with PCPA_RESERVE may take:
	 * the node's min watermark then, at most a quarter of what is backed.
	 * What a thread has in its cache is its own all the same.  0: none. */
	unsigned reserve_pages;
};

#define PCPA_HEAP_OPTIONS_INIT                                                 \
	{                                                                      \
		sizeof(struct pcpa_heap_options), 0u, 0u, 0u, NULL, 0u, 0u, 0u,   \
			0u, 1u, 0u                                             \
	}

/*
 * Creates a heap and stores it in *out; *opts may be NULL for defaults.
 * Returns 0, or a negative errno with *out untouched and nothing mapped:
 * -EINVAL for an option that can't be (named on stderr at verbosity 1) or a
 * variable PCPA_CHECKS that is neither 0 nor 1,
 * -ENOMEM when initial_bytes can't be backed, -ENODEV for a node that isn't
 * there or allowed.
 * Cost: 1-7 ms once in a process (hwloc's reading of the topology, the more
 * plugins it has the longer), then the population of initial_bytes, in parallel.
 */
int pcpa_heap_create(const struct pcpa_heap_options *opts,
		     struct pcpa_heap **out);

/*
 * Gives everything back to the kernel, after a subscription to its arenas was ended
 * (pcpa_heap_notify()).  Requires quiescent callers.
 * Returns 0, or -EBUSY while blocks are out or there is a packet pool
 * (pcpalloc/page_pool.h): the heap is then unchanged and pcpa_stats_read() says how
 * many blocks.
 */
int pcpa_heap_destroy(struct pcpa_heap *heap);

/*
 * The process's heap, made at first use from the PCPA_* variables and never
 * destroyed.  NULL with errno EINVAL when a variable is bad (one line on stderr
 * names it or its field), or with the errno of pcpa_heap_create().
 */
struct pcpa_heap *pcpa_default_heap(void);

/* ---- Signal handlers ------------------------------------------------------ */

/*
 * A handler may call the library wherever it has interrupted its thread, the
 * library included.  A call from one that interrupted another call of this library
 * in the same thread (creation and forks included) never waits:
 *
 *   allocations    as with PCPA_NOWAIT; NULL, or fewer, with EAGAIN where the
 *                  cache is in use, a lock is taken, or memory would have to be
 *                  looked for: not with ENOMEM
 *   frees          always taken; what can't be put away at once is kept aside, and
 *                  found by the next calls that a thread's cache can't serve, by
 *                  ticks and drains, and before an allocation fails.  Statistics
 *                  count it as depot_pages.  A thread whose every other call has
 *                  PCPA_NOWAIT finds none of it.  A write to such a block is
 *                  found, and aborts; with PCPA_HEAP_CHECKS its free is noted as
 *                  that of who finds it
 *   other calls    do nothing: -EAGAIN, or NULL with errno EAGAIN; pcpa_heap_trim()
 *                  returns 0.  pcpa_block_order(), pcpa_block_node() and those that
 *                  need no heap or a constant of it work as ever
 *
 * A handler that interrupted anything else is served like any caller.  So if it may
 * have interrupted the C library, which a slow call uses (to begin a
 * thread's cache, to populate memory with threads, to tell subscribers), it should
 * allocate with PCPA_NOWAIT, on a heap with no subscriber, and free where its
 * thread has allocated from the heap before.
 *
 * An alternate signal stack needs 8 KiB for the library.
 *
 * A failed allocation sets errno, which the handler has to save for the code that
 * it interrupted.  Handlers must not fork where they may have interrupted the
 * library, and must return: one that jumps out, or ends its thread,
 * leaves the call below it unfinished.  With more than 64 heaps, of which some share
 * an entry of a thread's table, a handler must keep to the heap that its thread uses.
 */

/* ---- Blocks ------------------------------------------------------------- */

/*
 * Returns a block of 2^order base pages, aligned to its size, or NULL with
 * errno: ENOMEM after draining all caches and growing failed (what other threads
 * have in their hands at that moment is not found), or did so a moment ago: less
 * than a batch that has come into other threads' caches since is found after 100
 * us, and growth that was refused twice is tried again after 10 ms; in a heap on
 * several nodes after twice as long each time, up to a second.  It waits for
 * other threads no longer than 100 us in all.  EAGAIN with PCPA_NOWAIT, and in a
 * signal handler as said above; EINVAL for an order above the
 * heap's, an unknown flag or a node that the heap doesn't use, ENODEV in a forked
 * child of a heap without PCPA_HEAP_COW.
 * Without PCPA_NODE() a block is of the node where the thread runs.  One that has
 * moved to another goes on with the cache that it had until it looks: with any
 * allocation that the cache can't serve, at the latest with the 4,096th of an
 * order that it can, or with the free that makes it look at its bound.  Then
 * it has a cache of its new node, and the pages of the old one's are back there.
 * A call with PCPA_NOWAIT doesn't give back; the next without it does.
 * Cost: a hit of the thread's cache (orders 0-3) takes no lock, atomic
 * read-modify-write or system call, but each 4,096th, which looks.
 */
void *pcpa_alloc(struct pcpa_heap *heap, unsigned order, unsigned flags);

/*
 * Frees a block; NULL is allowed.  A pointer that is no block of the heap, is
 * interior, or is already back in the buddy is counted (bad_frees), reported
 * once and refused; a double free of a block that is still in a cache is found
 * with PCPA_HEAP_CHECKS only, and in a program that runs under AddressSanitizer,
 * ThreadSanitizer or memcheck.
 */
void pcpa_free(struct pcpa_heap *heap, void *block);

/* The same, told the order: saves reading it.  A wrong order, or a page of the
 * heap that is no block, corrupts the heap, unless PCPA_HEAP_CHECKS is set. */
void pcpa_free_sized(struct pcpa_heap *heap, void *block, unsigned order);

/*
 * Stores up to n blocks in blocks[0..n-1] and returns how many.  Fewer than n
 * only where pcpa_alloc() would fail; errno is set exactly then.  More blocks than
 * the thread's cache may hold, as for a ring's first filling, come from the free
 * pages first and don't pass the cache: 20 to 40 ns a block instead of 1.  What a
 * cache may hold grows with the heap: in one of 16 MiB it is some 64 blocks, from
 * 256 MiB on it is more than such calls ask for.
 */
size_t pcpa_alloc_bulk(struct pcpa_heap *heap, unsigned order, unsigned flags,
		       void **blocks, size_t n);

/*
 * Fills the NULL entries of slots[0..n-1] and returns the length of the filled
 * prefix, entries that were filled before included; it stops at the first hole
 * that can't be filled (errno is set exactly then).
 */
size_t pcpa_refill(struct pcpa_heap *heap, unsigned order, unsigned flags,
		   void **slots, size_t n);

/* Frees blocks[0..n-1] of mixed orders and nodes, NULLs skipped; a bad entry
 * is treated as by pcpa_free() and the others are freed. */
void pcpa_free_bulk(struct pcpa_heap *heap, void **blocks, size_t n);

/* The same for blocks that are all of one order. */
void pcpa_free_bulk_sized(struct pcpa_heap *heap, unsigned order, void **blocks,
			  size_t n);

/* ---- Contiguous ranges -------------------------------------------------- */

/*
 * Returns `pages` base pages in one piece inside one arena, aligned to
 * align_pages base pages (a power of two; 1: none); it may cross huge pages.
 * Flags and node as for pcpa_alloc(), but for PCPA_NOWAIT.  Where no such range is free, all caches
 * are drained for it, and then the heap grows by what it needs; an alignment above
 * a huge page may need up to as much again.  NULL with errno: ENOMEM, where all of that
 * failed or what is missing is in use; EINVAL for 0 pages, more than a node's
 * maximum, an alignment that is no power of two or larger than the heap's
 * address space, PCPA_NOWAIT, an unknown flag or a node that the heap doesn't
 * use; ENODEV as
 * for pcpa_alloc().  It counts as one block in *_total and used_blocks.
 * Cost: a search of the node's bits, some ns for each possible place; at worst
 * four drains and as many searches.  Not for hot paths.
 */
void *pcpa_alloc_contig(struct pcpa_heap *heap, size_t pages, size_t align_pages,
			unsigned flags);

/*
 * Frees a range whole; NULL is allowed.  A start or a number of pages that is
 * not that of a range is counted (bad_frees), reported once and refused, as is a
 * range or a part of it that is passed to the frees of blocks.
 */
void pcpa_free_contig(struct pcpa_heap *heap, void *start, size_t pages);

/* ---- Queries ------------------------------------------------------------ */

/* Order of an allocated block, or -EINVAL. */
int pcpa_block_order(struct pcpa_heap *heap, const void *block);

/* os number of the node a block of the heap belongs to, or -EINVAL. */
int pcpa_block_node(struct pcpa_heap *heap, const void *block);

/* The largest order that the heap serves.  Requires a heap. */
unsigned pcpa_heap_max_order(const struct pcpa_heap *heap);

/* Bytes of a block of order 0.  Requires a heap. */
size_t pcpa_heap_page_bytes(const struct pcpa_heap *heap);

enum pcpa_backing {
	PCPA_BACKING_HUGETLB = 0,
	PCPA_BACKING_THP = 1,
	PCPA_BACKING_BASE = 2
};

/* A range of backed memory, for DMA mapping, UMEM or extmem registration. */
struct pcpa_arena_info {
	size_t struct_size;
	void *base;
	size_t bytes;
	int node; /* os number */
	enum pcpa_backing backing;
	size_t page_bytes; /* of the pages asked for */
	/* With PCPA_HEAP_SHARED the file that the range is in and where it begins
	 * there, else -1 and 0.  Where struct_size is smaller there is none. */
	int fd;
	uint64_t offset;
	/* An arena begins at a multiple of it and has a multiple of it, and so has
	 * what is given back of one: a huge page, also where none is used. */
	size_t granule_bytes;
};

/*
 * Calls fn for each arena until it returns non-zero, and returns that value or
 * 0; -ENODEV in a forked child of a heap without PCPA_HEAP_COW, -EINVAL without
 * a heap or fn.  Arenas added meanwhile may or may not be seen, and one that
 * pcpa_heap_trim() shortens may be seen as it was, as it is, or both.  fn must not
 * call the heap, nor trim any or subscribe to any, and must return, as that of
 * pcpa_heap_trace().
 */
int pcpa_for_each_arena(struct pcpa_heap *heap,
			int (*fn)(const struct pcpa_arena_info *, void *),
			void *arg);

enum pcpa_arena_change {
	PCPA_ARENA_ADD = 0,   /* before its first use */
	PCPA_ARENA_REMOVE = 1 /* after its last, before the memory goes back */
};

/*
 * Has fn called before the first and after the last use of an arena, so that a
 * program can map it for a device (VFIO, ibv_reg_mr(), rte_extmem_register()) or tell
 * another process of it.  fn returns 0 to agree, or a negative errno to refuse
 * (anything else counts as -ECANCELED).  One subscriber a heap; fn NULL ends it.
 *
 *   PCPA_ARENA_ADD      when the heap grows: refused, the memory goes back, and the
 *                       allocation fails with ENOMEM where nothing else serves it.
 *                       And by this call, for each arena that there is: refused, the
 *                       call takes back what was agreed to, and returns the refusal
 *   PCPA_ARENA_REMOVE   when pcpa_heap_trim() gives memory back: refused, it stays in
 *                       the heap, and the next trim asks again.  And at the end of
 *                       the subscription or the heap, for each arena that was added
 *                       and what is left of it: then refusals are ignored
 *
 * Statistics count refusals (grow_vetoed, trim_vetoed).  A trim removes arenas in
 * parts: *arena then is a multiple of granule_bytes, at such a multiple, of one arena
 * as it is, and at most 64 MiB or one granule; so what must be unmapped as it
 * was mapped is to be mapped in granules.  What the kernel refuses to take back after
 * it was removed is added again, becomes part of its arena again, and where that is
 * refused leaves the heap.
 *
 * Each address is added once before it is removed, and the other way round.  fn runs
 * on the thread that causes it: ADD in any that allocates, with no lock of the
 * library held, perhaps in several at once for different arenas, also before this
 * call has told of those that there are; such a thread waits for another one's
 * addition, or for memory that is being removed, for 10 ms and then grows the heap
 * itself where it can: a fn that takes longer to unmap lets allocations fail that
 * need what it has.  REMOVE, and ADD by this call,
 * run one at a time, and pcpa_heap_trim(), this call and pcpa_heap_destroy() wait for
 * them: who calls these must hold no lock that fn takes.  When fn is replaced by NULL
 * it is not running when the call returns, and won't be called.  fn may take locks
 * of the program's, also those that callers of allocations hold, and may sleep.  It
 * must not call the heap, nor trim, subscribe to or destroy any, nor fork.
 *
 * Returns 0, -EINVAL without a heap or for one with PCPA_HEAP_COW, -EBUSY where there
 * is a subscriber, -ENODEV in a forked child, or fn's refusal.
 */
int pcpa_heap_notify(struct pcpa_heap *heap,
		     int (*fn)(enum pcpa_arena_change change,
			       const struct pcpa_arena_info *arena, void *arg),
		     void *arg);

/*
 * Stores in *out the physical address of a byte of the heap, which is its address
 * for a device that has no IOMMU before it.  Behind one (VFIO in its usual mode) a
 * device sees what the program maps there, and this is of no use.
 * Only hugetlb pages have one: others are moved by the kernel at any time, also while
 * a device writes, and locking them in memory doesn't change that.  A hugetlb page
 * moves only where the machine is told to take its memory offline, or a privileged
 * process moves it between nodes.
 * Returns 0, or with *out untouched: -EINVAL without a heap or out, or for an address
 * that is not in an arena of the heap; -ENOTSUP in one of transparent huge pages or
 * base pages; -EPERM where the kernel hides the address, which it tells processes with
 * CAP_SYS_ADMIN only; -EAGAIN while the page is being moved; -ENODEV in a forked
 * child.  The answer is good for the huge page around addr (page_bytes of its arena)
 * until the arena is removed.
 * Cost: four system calls, some microseconds: for the time when memory is mapped
 * (PCPA_ARENA_ADD), not when a packet is sent.
 */
int pcpa_virt_to_iova(struct pcpa_heap *heap, const void *addr, uint64_t *out);

/* ---- Control ------------------------------------------------------------ */

/* Moves the calling thread's cached blocks to the depot.  Returns 0, or
 * -ENODEV in a forked child. */
int pcpa_thread_flush(struct pcpa_heap *heap);

/*
 * Moves every thread's cached blocks and the depot to the buddy, where they
 * merge.  Returns 0, or -ETIMEDOUT when a thread stayed inside the library for
 * 100 ms; its cache is then drained by itself at its next call.  With
 * PCPA_HEAP_NO_IPI all other running threads' caches are, and 0 is returned without
 * a wait for them; only while caches are disabled, threads are waited for as above.
 */
int pcpa_heap_drain(struct pcpa_heap *heap);

/*
 * Decay and idle reclaim: one tick is a second, and a call that comes earlier
 * after the last tick, whoever made that, does nothing.  Calls that a thread's
 * cache can't serve tick by themselves, as does PCPA_HEAP_BACKGROUND; this is for
 * programs that go idle as a whole.
 * A cache that was not used for a whole tick gives back what is above its bound,
 * which sinks by an eighth a tick, then all the rest, by and by; outboxes and
 * caches of other nodes than their thread's from the third tick on; depots what
 * nobody needed for a second.  Caches in use are not touched, but their bounds
 * sink likewise.  With PCPA_HEAP_NO_IPI no cache of a living thread is: it is
 * asked to flush at its next call.
 * Where processors went offline or came, the caches' bounds follow; and of a heap
 * of several nodes each thread's next call sees on which it is, so that one that
 * has moved follows sooner than it would by itself (pcpa_alloc()).
 * Returns 0, -EINVAL without a heap, or -ENODEV in a forked child.
 * Cost: early 10 ns; else a small file is read, a look at each cache, and a
 * membarrier and moving the pages where one gives any.
 */
int pcpa_heap_tick(struct pcpa_heap *heap);

/*
 * Gives free memory back to the kernel until the nodes of the heap together have
 * no more than keep_bytes, and never less; returns how many bytes went.
 * All caches and depots are drained first, as by pcpa_heap_drain().  What goes
 * are whole huge pages without a block in use (also where the memory is of base
 * pages), of the latest arenas first; an arena of which others stay is listed as
 * what is left of it.  Their addresses stay reserved and the heap grows into them
 * again.  What the kernel refuses to take, or the subscriber of pcpa_heap_notify(),
 * stays in use and is counted (trim_failed, trim_vetoed); the next call tries it
 * again.
 * 0 for a heap of fixed size (PCPA_HEAP_FIXED), which keeps its initial_bytes,
 * and in a forked child.  Not for callbacks of any heap, nor for a caller that
 * holds a lock which these take.
 * Cost: a drain, and 4 ms a GiB of huge pages or 65 of base pages; growth of the
 * same node waits for up to 64 MiB of it, allocations that need none don't.
 */
size_t pcpa_heap_trim(struct pcpa_heap *heap, size_t keep_bytes);

/*
 * Empties all caches and the depot of a node (an os number, or -1: all nodes) and
 * keeps them empty until pcpa_cache_enable(): blocks come from and go to the
 * buddy directly, and statistics are exact.  Nests: the caches work again after
 * as many enables, node by node.  Requires nothing of the callers, who go on;
 * blocks that a thread has on their way from its cache at the moment of the
 * return count as used until it goes on.
 * Returns 0; -EINVAL for a node that the heap doesn't use; -ENODEV in a forked
 * child; or -ETIMEDOUT when a thread stayed inside the library for 100 ms, or,
 * with PCPA_HEAP_NO_IPI, when one that has a cache made no call in that time:
 * nothing is disabled then, and there is nothing to enable.
 * Cost: as pcpa_heap_drain(); while it lasts, the buddy's lock for each call.
 */
int pcpa_cache_disable(struct pcpa_heap *heap, int node);

/*
 * Ends one disable of the node, or of each node (-1): one that has returned 0,
 * whoever called it, also before a fork.  Returns 0; -EINVAL for a node that the
 * heap doesn't use or, with nothing changed, where there is none; -ENODEV in a
 * forked child without PCPA_HEAP_COW.
 */
int pcpa_cache_enable(struct pcpa_heap *heap, int node);

/* ---- Observation -------------------------------------------------------- */

enum pcpa_event_kind {
	PCPA_EVENT_PCPU_DRAIN = 0,  /* a cache gives pages back            */
	PCPA_EVENT_PCPU_REFILL = 1, /* a cache takes blocks                */
	PCPA_EVENT_ZONE_LOCKED = 2, /* pages taken under the zone lock     */
	PCPA_EVENT_EXTFRAG = 3,     /* a larger block was broken up        */
	PCPA_EVENT_ARENA_GROW = 4,  /* an arena was added                  */
	PCPA_EVENT_ARENA_TRIM = 5,  /* memory went back to the kernel      */
	/* Of pcpa_heap_watch() only. */
	PCPA_EVENT_LOW = 6,	 /* free pages fell below low           */
	PCPA_EVENT_AVAILABLE = 7 /* they are at high again, or more     */
};

/* One decision, with the state before it. */
struct pcpa_event {
	size_t struct_size;
	enum pcpa_event_kind kind;
	int node;	/* os number */
	unsigned order; /* of the block that caused it */
	uint64_t pages; /* moved by this decision */
	uint64_t count; /* pages in the cache before */
	uint64_t high;	/* the cache's bound at that time */
};

/*
 * Has fn called for each rare event of the heap, on the thread that causes it,
 * with no lock of the library held; NULL ends it.  When pcpa_heap_trace()
 * returns, what was subscribed before is not running and won't be called.  fn
 * must not call the heap, trim any or subscribe to any, fork, or take a lock that a
 * caller of pcpa_heap_trace() holds; nor must a handler that interrupts it.  It must
 * return, neither jump out nor end its thread, which can't be cancelled meanwhile.
 * Returns 0 or -EINVAL.
 */
int pcpa_heap_trace(struct pcpa_heap *heap,
		    void (*fn)(const struct pcpa_event *, void *), void *arg);

/*
 * Has fn called when a node's free pages, those in the depot included, fall below
 * the low watermark (PCPA_EVENT_LOW), once, and when they have come up to the high
 * one again (PCPA_EVENT_AVAILABLE), once; pages is how many there were, count the
 * low and high the high watermark.  It is called on the thread that causes or finds
 * it, with no lock of the library held, one call at a time for a node, and the last
 * one tells how things are.  A node that is low already is told of at once.  NULL
 * ends it; when pcpa_heap_watch() returns, what was subscribed before is not
 * running and won't be called.  fn must not call the heap, trim any or subscribe to
 * any, fork, or take a lock that a caller of pcpa_heap_watch() or
 * pcpa_heap_destroy() holds; nor must a handler that interrupts it.  It must return, as
 * that of pcpa_heap_trace().
 * Blocks in threads' caches count as used, and PCPA_NOWAIT calls don't tell: the
 * next other call does.  Returns 0, -EINVAL without a heap, or -ENODEV in a forked
 * child of a heap without PCPA_HEAP_COW.
 * Cost: nothing on hits; an atomic read-modify-write a slow path while watched.
 */
int pcpa_heap_watch(struct pcpa_heap *heap,
		    void (*fn)(const struct pcpa_event *, void *), void *arg);

/*
 * Returns an eventfd that becomes readable at each such change (and at once when a
 * node is low already), the same at every call, or a negative errno: -EINVAL
 * without a heap, -ENODEV in a forked child of a heap without PCPA_HEAP_COW,
 * -EMFILE and the like.  It belongs to the heap: read it, don't close it; destroying
 * the heap does, and so does a forked child.  Close on exec, not blocking.
 */
int pcpa_heap_eventfd(struct pcpa_heap *heap);

/*
 * Bytes that a heap needs on a node so that rx and tx ring descriptors (of all
 * rings together) can hold a block of order 0 each, while each of the threads has
 * `burst` blocks in its hands and its cache is full, and no allocation fails:
 *
 *     (rx + tx + threads * (burst + 64)) * 8 / 5 pages
 *
 * where 64 is what a thread moves at once, and 8/5 makes room for the caches (1/8)
 * and the depot (1/4).  For blocks of order k, 2^k times as many; reserve_pages come
 * on top.  SIZE_MAX where it is more than that.  Needs no heap.
 */
size_t pcpa_heap_size_for(unsigned rx, unsigned tx, unsigned threads,
			  unsigned burst);

/*
 * Fills *out, whose struct_size the caller has set (PCPA_STATS_INIT), for a
 * node's os number, or all nodes with -1.  Returns 0 or -EINVAL.  Each counter
 * is monotone; the sum of the states is exact while the callers rest.
 */
int pcpa_stats_read(struct pcpa_heap *heap, int node, struct pcpa_stats *out);

/* Version of the library that is running, "MAJOR.MINOR.PATCH". */
const char *pcpa_version(void);

#ifdef __cplusplus
}
#endif

#endif
