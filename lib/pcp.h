/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp.h - one thread's cache of one node's blocks.  Layer 4.
 *
 * Owns: the cache structure, the moves between its rings, depot and zone
 * (pcp.c), and the mark and the claim that say who may touch it (pcp_claim.c).
 * Contains no threshold: policy.h says how many, pcp_tune.c asks it.  Does not
 * know which thread, node or heap asks (thread.c, route.c), nor when all caches
 * are drained (sweep.c).
 *
 *                      pop  push                     orders 0..3, a ring each
 *                        ^  |        hot end
 *          refill  ----> [ h h w w c c ]
 *      depot, or the     cold end |
 *      zone in ascending order    +---> trim, flush: depot, or the zone
 *
 * Owner-biased access (design.md D5; proof in docs/memory-order.md).  The
 * owner sets `busy` with a plain store and then reads `claim`; a drainer sets
 * `claim`, has every processor pass a barrier (membarrier), and then reads
 * `busy`.  At least one of them sees the other.  Hits are shorter than that where
 * the kernel has restartable sequences: they set nothing, and the drainer has
 * those that are inside one begin again (pcp_move.h).
 *
 * C1  The rings are touched only by the owner, with busy set after it saw no
 *     CLAIMED or in a sequence that saw neither, or by the one drainer that set
 *     CLAIMED, cut sequences short, and then saw busy clear.
 * C2  busy is never held across a lock, a system call, a claim or a callback; a
 *     try-lock (nowait.c, a taker's refill in pcp.c) waits for nothing and is none.
 * C3  The owner never waits: on a claim it goes around its cache.
 * C4  Each list: frees = allocs + len + out - in, so that frees are not counted.
 *     What the cache holds is the sum of len << order, and not kept either.
 * C5  A ring operation commits with one store.
 * C6  Cache memory lives as long as its heap; adoption clears no claim.
 * C7  Between pcpi_cache_enter() and leave, and in a claim, the front has no block.
 * C8  Where membarrier is refused, and on watched heaps (checks.h), `claim` has
 *     SLOW set for good, so that every call goes the slow way: there the mark is
 *     exchanged in the first case, and blocks are looked at in the other.
 * C9  While the caches of its node are disabled (disable.c) `claim` has OFF set,
 *     which keeps hits out; who puts blocks in on a slow path looks at the depth
 *     of the blocks' zone with the mark set, and goes around the cache.
 *
 * Cost: a hit is some 40 instructions (pcp_hot.h); a refill or a hand-over two
 * lock operations a batch.  Failure: refill returns 0.
 * Proved by tests/unit/test_pcp.c, test_pcp_claim.c, tests/conc/,
 * tests/spin/claim.pml.
 */
#ifndef PCPI_PCP_H
#define PCPI_PCP_H

#include "base.h"
#include "deferred.h"
#include "depot_guess.h"
#include "direct.h"
#include "policy.h"
#include "ring.h"
#include "trace.h"
#include "watch.h"
#include "zone.h"

enum pcpi_claim {
	PCPI_CLAIM_NONE = 0,
	PCPI_CLAIM_CLAIMED = 1, /* a drainer is waiting for the mark, or inside */
	PCPI_CLAIM_PENDING = 2, /* it gave up: the owner flushes at its next call */
	PCPI_CLAIM_STATE = 3,	/* mask of the above */
	PCPI_CLAIM_SLOW = 4,	/* C8 */
	PCPI_CLAIM_OFF = 8,	/* C9 */
	PCPI_CLAIM_LOOK = 16,	/* as PENDING, but claims leave it: the bounds fell,
				 * or a claim has cut the owner's flush short */
	PCPI_CLAIM_WHERE = 32,	/* the owner looks on which node it is at its next call;
				 * a cache that it has left keeps it (thread.c) */
};

/* After so many allocations of a list a hit looks on which node its thread is
 * (thread.c); pcpalloc.h promises it. */
#define PCPI_LOOK_ALLOCS 4096u

/*
 * How many blocks were allocated from a list, in a word whose highest bit is set with
 * every PCPI_LOOK_ALLOCS: the instruction that counts tells, and nothing has to be
 * compared.  Who sees it takes it back by one addition, which changes no number that
 * a reader sees:
 *
 *   63 .... 51  50 ...... 0
 *   n           looks          number = looks * PCPI_LOOK_ALLOCS + n
 *
 * Frozen, as pcpalloc/inline.h counts, too.
 */
union pcpi_allocs {
	uint64_t word;
	uint32_t halves[2];
};

#define PCPI_ALLOCS_SHIFT 51u
#define PCPI_ALLOCS_SIGN (UINT64_C(1) << 63)
#define PCPI_ALLOCS_WRAP (PCPI_ALLOCS_SIGN + 1) /* without the sign, a look more */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PCPI_ALLOCS_HIGH 0
#else
#define PCPI_ALLOCS_HIGH 1
#endif
_Static_assert(PCPI_LOOK_ALLOCS == 1u << (63 - PCPI_ALLOCS_SHIFT), "the sign's value");

PCPI_INLINE uint64_t pcpi_allocs(const union pcpi_allocs *a)
{
	uint64_t word = pcpi_load_relaxed(&a->word); /* relaxed: counter */
	uint64_t looks = word & ((UINT64_C(1) << PCPI_ALLOCS_SHIFT) - 1);

	return looks * PCPI_LOOK_ALLOCS + (word >> PCPI_ALLOCS_SHIFT);
}

/* Owner: one more by a hit; whether it is time to look, which pcpi_allocs_wrap()
 * must follow: the sign is worth as much as n has room for. */
PCPI_INLINE bool pcpi_allocs_inc(union pcpi_allocs *a)
{
	return pcpi_counter_add_sign(&a->halves[PCPI_ALLOCS_HIGH],
				     1u << (PCPI_ALLOCS_SHIFT - 32));
}

/* Owner: it is seen to. */
PCPI_INLINE void pcpi_allocs_wrap(union pcpi_allocs *a)
{
	uint64_t word = pcpi_load_relaxed(&a->word); /* relaxed: counter */

	/* acquire/release: pairs with itself; a signal handler may have been here. */
	while (word & PCPI_ALLOCS_SIGN &&
	       !pcpi_cas_acq_rel(&a->word, &word, word + PCPI_ALLOCS_WRAP))
		;
}

/* Owner, with the mark: n < PCPI_LOOK_ALLOCS more, seen to; whether it is time to
 * look, which calls that have looked may leave. */
PCPI_INLINE bool pcpi_allocs_add(union pcpi_allocs *a, uint32_t n)
{
	uint64_t word = a->word + ((uint64_t)n << PCPI_ALLOCS_SHIFT);
	bool look = word & PCPI_ALLOCS_SIGN;

	/* relaxed: counter */
	pcpi_store_relaxed(&a->word, look ? word + PCPI_ALLOCS_WRAP : word);
	return look;
}

/* A list of one order. */
struct pcpi_pcp_list {
	struct pcpi_ring ring; /* its limit: r, see pcp_tune.h */
	union pcpi_allocs allocs; /* r: blocks */
};

/* Why pages left a cache; indexes the counters. */
enum pcpi_drain_reason {
	PCPI_DRAIN_HIGH,
	PCPI_DRAIN_FREER,
	PCPI_DRAIN_FLUSH,
	PCPI_DRAIN_SWEEP,
	PCPI_DRAIN_DECAY,
	PCPI_DRAIN_REASONS,
};

/* What all caches of a heap share.  c: fixed after init. */
struct pcpi_pcp_env {
	char *base;		 /* c: address of page index 0 */
	unsigned page_shift;	 /* c */
	struct pcpi_zone *zones; /* c: [nr_zones] */
	unsigned nr_zones;	 /* c */
	uint8_t *orders;	 /* c: page.h */
	const unsigned *window_zone; /* c: [nr_windows] position of the node */
	unsigned window_pfn_shift;  /* c: pfn >> this = window */
	bool watched;		 /* c: checks.h */
	bool exchange;		 /* c: C8 */
	bool rseq;		 /* c: hits are sequences, where the thread can */
	bool free_high_batch;	 /* c: a large data cache */
	uint64_t ticks;		 /* a: so far (tick.c) */
	struct pcpi_trace trace;
	struct pcpi_watch watch;
	struct pcpi_deferred deferred PCPI_ALIGNED(PCPI_CACHELINE);
};

/* Blocks of one other node on their way home: a batch of each order. */
struct pcpi_outbox {
	uint32_t len[PCPI_PCP_ORDERS];
	uint64_t frees;
	struct pcpi_idle idle; /* t, as the next two */
	uint64_t frees_noted;
	uint32_t give;
	uint32_t pfns[PCPI_PCP_ORDERS][PCPI_CHUNK];
};

/*
 * The front is one block of order 0 before its ring's hot end, as an address: what
 * is freed and allocated again at once goes through it without a conversion and
 * without waiting for the ring's head, which would be stored and loaded twice in
 * a pair.  Whoever enters on a slow path moves it into the ring first (C7), so
 * that only the hot path knows of it.
 *
 * Where orders are mixed the processor can't foresee whether the front is taken,
 * and each surprise costs more than the front saves: it is off unless the policy's
 * last look found order 0 used alone (pcp_tune.c).
 */
#define PCPI_FRONT_OFF_ADDR 1
#define PCPI_FRONT_OFF ((void *)PCPI_FRONT_OFF_ADDR)

/* t: what ticks know of a cache's lists (pcp_decay.c). */
struct pcpi_cache_idle {
	struct pcpi_idle idle;
	struct pcpi_split_cursor cursor;
	uint64_t ops;	  /* allocs and frees up to the last tick */
	uint32_t high;	  /* as it sinks while the owner is away */
	uint32_t decayed; /* pages above high, and of those below it what is */
	uint32_t expired; /* due: to be given now */
	bool owes;	  /* the owner owes a flush, and owes it after a claim */
	bool flush;	  /* and is idle: all is to be given for it */
	uint64_t away;	  /* in root: the last tick that found pages of others */
};

/* o: owner (C1), or the drainer; c: fixed; a: atomic; r: owner, read by anyone; t:
 * who ticks, under the drain lock. */
struct pcpi_cache {
	/* First line: all that a hit of order 0 reads and writes.  What begins here
	 * is frozen as struct pcpa_inline_cache (api_inline.c). */
	union {
		struct {
			uint8_t busy;	 /* a: set by the owner only */
			uint8_t claim;	 /* a: pcpi_claim */
			uint8_t by_mark; /* r: no sequences for this owner */
		};
		uint32_t state; /* 0: a sequence may go on (pcp_move.h) */
	};
	void *front;		     /* o: a block, NULL or PCPI_FRONT_OFF */
	uint64_t first_pfn, nr_pfns; /* c: of the zone */
	struct pcpi_pcp_list list[PCPI_PCP_ORDERS]; /* o */
	/* Of env, for pcpalloc/inline.h, whose struct ends here. */
	char *base;	       /* c */
	char *start;	       /* c: address of first_pfn */
	const uint8_t *orders; /* c: from first_pfn on */
	uint32_t page_shift;   /* c */
	uint32_t wide;	       /* c: convert.h */

	struct pcpi_pcp_env *env;   /* c */
	struct pcpi_zone *zone;	    /* c */
	struct pcpi_cache *root;    /* r: the owner's first cache of the heap */
	struct pcpi_cache **peers;  /* r: [nr_zones] the owner's others; in root */
	struct pcpi_cache *home;    /* r: that of the owner's node; in root */
	struct pcpi_outbox *outbox; /* o: [nr_zones], NULL with one zone */
	uint32_t high_cap;	    /* c: what the rings can hold */

	/* Policy state, owner only. */
	void *front_rest; /* r: the front without a block */
	uint32_t high;	  /* r */
	uint32_t free_count, alloc_factor, free_factor;
	uint64_t allocs_noted[PCPI_PCP_ORDERS]; /* when they were last looked at */
	uint64_t frees_noted[PCPI_PCP_ORDERS];
	uint64_t allocs_at_drain;
	uint64_t list_tick[PCPI_PCP_ORDERS]; /* of the last alloc seen */
	struct pcpi_depot_guess guess[PCPI_PCP_ORDERS];
	struct pcpi_split_cursor cursor;
	uint64_t ticks_seen; /* of env->ticks: high has sunk for these */
	uint64_t looks, ops_at_send; /* thread.c: TH6 */
	struct pcpi_cache_idle idle;

	/* Statistics. */
	uint64_t in[PCPI_PCP_ORDERS];  /* r: blocks that came by refills: C4 */
	uint64_t out[PCPI_PCP_ORDERS]; /* o: blocks that left by drains: C4 */
	uint64_t frees_seen; /* a: highest that statistics have reported */
	uint64_t drains[PCPI_DRAIN_REASONS]; /* r; SWEEP by the drainer */
	uint64_t refills, depot_gets, depot_puts; /* r */
	uint64_t busy_skipped;			  /* drainer */
	bool claimed; /* drainer: by the sweep that runs (sweep.c) */

	/* Registry (thread.c). */
	struct cds_list_head registry; /* RCU, add-only */
	const void *owner;	       /* a: thread record, NULL: adoptable */
	struct pcpi_cache *next_adoptable; /* threads lock */
	int tid;		       /* r */
	void *memory;		       /* c: the mapping that it lies in */
	size_t bytes;		       /* c: of that */
} PCPI_ALIGNED(PCPI_CACHELINE);

/*
 * Where a cache lies in its mapping.  A load whose address agrees with that of a
 * store before it in the bits below 4096 waits for the store, and the loads of a
 * hit are those of a thread's table and a heap's first line, which lie at the
 * start of pages: with the mark at the start of a page too, a pair took 12.9 ns
 * instead of 5.
 */
#define PCPI_CACHE_OFFSET 2048u

/* Bytes of a cache with its rings and outboxes, for a zone as it is now. */
size_t pcpi_cache_bytes(const struct pcpi_pcp_env *env,
			const struct pcpi_zone *zone);

/* Makes a cache in zero memory of so many bytes, which pcpi_cache_bytes() said at some
 * time: it holds no more than has place in them. */
struct pcpi_cache *pcpi_cache_init(void *memory, size_t bytes,
				   struct pcpi_pcp_env *env,
				   struct pcpi_zone *zone);

/* Owner: sets the mark.  False, without it, on a claim or when the caller is a
 * signal handler that interrupted the owner inside. */
bool pcpi_cache_enter(struct pcpi_cache *c);

void pcpi_cache_leave(struct pcpi_cache *c);

/* 1 where the front has a block of this order; relaxed: exact for the owner. */
PCPI_INLINE uint32_t pcpi_cache_front_len(const struct pcpi_cache *c,
					  unsigned order)
{
	return order == 0 && (uintptr_t)pcpi_load_relaxed(&c->front) >
				     (uintptr_t)PCPI_FRONT_OFF;
}

/* Inside (C1): moves the front into its ring, C7. */
PCPI_INLINE void pcpi_cache_tuck(struct pcpi_cache *c)
{
	bool full = pcpi_cache_front_len(c, 0);
	void *front = pcpi_load_relaxed(&c->front); /* relaxed: C1 */
	uint32_t pfn;

	/* relaxed: C1; a block is rather lost than held twice, if the thread is
	 * cut off here.  The rest may change meanwhile: either will do. */
	pcpi_store_relaxed(&c->front, pcpi_load_relaxed(&c->front_rest));
	if (!full)
		return;
	pfn = (uint32_t)((uint64_t)((char *)front - c->env->base) >>
			 c->env->page_shift);
	pcpi_ring_push(&c->list[0].ring, &pfn, 1);
}

/* Owner: does what a drainer that gave up has asked for. */
void pcpi_cache_settle(struct pcpi_cache *c);

/* Owner: moves up to n blocks from the rings to pfns; 0 on a claim. */
uint32_t pcpi_cache_pop(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			uint32_t n);

/* Before a refill: has the depot's lines fetched (depot_guess.h). */
void pcpi_cache_expect_refill(const struct pcpi_cache *c, unsigned order);

/*
 * Owner, of a list that pcpi_tune_is_taker(): up to PCPI_DEPOT_GET of the depot's
 * blocks straight into the ring, of which n go to pfns.  Waits for nothing; 0 where
 * the depot is empty or busy, the node's caches are disabled, or there is a claim:
 * nothing was done then.
 */
uint32_t pcpi_cache_refill_at_once(struct pcpi_cache *c, unsigned order,
				   uint32_t *pfns, uint32_t n);

/* Owner: takes what policy says from depot or zone, n >= 1 blocks at least
 * being wanted now.  Up to n of them go to pfns, the rest to the ring; returns
 * how many went to pfns, 0 when the node has none. */
uint32_t pcpi_cache_refill(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			   uint32_t n);

/* Owner: frees blocks of the cache's own zone, n <= PCPI_CHUNK. */
void pcpi_cache_push(struct pcpi_cache *c, unsigned order, const uint32_t *pfns,
		     uint32_t n);

/* Owner: frees blocks of another zone; whether some went there. */
bool pcpi_cache_push_remote(struct pcpi_cache *c, struct pcpi_zone *home,
			    unsigned order, const uint32_t *pfns, uint32_t n);

/* Owner: the list of this order has reached its limit by a free. */
void pcpi_cache_trim(struct pcpi_cache *c, unsigned order);

/* ---- pcp_defer.c ---- */

/* In a nested call: frees a checked block; false: somebody was faster. */
bool pcpi_defer_block(struct pcpi_pcp_env *env, uint32_t pfn, unsigned order);

/* The same of a contiguous range that is the caller's alone. */
void pcpi_defer_range(struct pcpi_pcp_env *env, uint32_t pfn, uint32_t pages);

/* Owner, nested: the list of this order has reached its limit. */
void pcpi_cache_defer(struct pcpi_cache *c, unsigned order);

/* Not nested: what was deferred goes to depots and zones. */
void pcpi_deferred_settle(struct pcpi_pcp_env *env);

PCPI_INLINE void pcpi_deferred_look(struct pcpi_pcp_env *env)
{
	if (pcpi_deferred_any(&env->deferred))
		pcpi_deferred_settle(env);
}

/* ---- pcp.c ---- */

/* Inside (C1): takes up to n blocks from the cold end of a list. */
uint32_t pcpi_cache_shift(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			  uint32_t n);

/* ---- pcp_decay.c ---- */

/* Owner, at a look for the order: high sinks for the ticks that came since the
 * last call, and what is above it goes to the zone. */
void pcpi_cache_decay(struct pcpi_cache *c, unsigned order);

/* Owner: whether there were any. */
PCPI_INLINE bool pcpi_cache_has_ticks(const struct pcpi_cache *c)
{
	/* relaxed: a tick more or less. */
	return c->ticks_seen != pcpi_load_relaxed(&c->env->ticks);
}

/* Whether a cache is of its owner's node, and whether it waits until what its
 * owner has of others is gone. */
enum pcpi_idle_place { PCPI_IDLE_AWAY, PCPI_IDLE_HOME, PCPI_IDLE_WAIT };

/* Who ticks: pages of other nodes than its owner's. */
bool pcpi_cache_has_away(const struct pcpi_cache *c, bool home);

/* Who ticks: notes what has happened since the last tick, and plans what an idle
 * cache gives back; false: nothing. */
bool pcpi_cache_idle_plan(struct pcpi_cache *c, enum pcpi_idle_place at);

/* Something of the plan is no mere decay. */
bool pcpi_cache_idle_expired(const struct pcpi_cache *c);

/* Drainer, inside: carries the plan out; to moved[zone] are added the pages. */
void pcpi_cache_idle_give(struct pcpi_cache *c, uint64_t *moved);

/* ---- pcp.c ---- */

/* Owner: everything to the depots, as far as no claim comes in between. */
void pcpi_cache_flush(struct pcpi_cache *c);

/* What is in its outboxes; pages moved. */
uint64_t pcpi_cache_outboxes_flush(struct pcpi_cache *c);

/* All; what is left the owner flushes at a later call. */
void pcpi_cache_flush_whole(struct pcpi_cache *c);

/* The owner has ended, wherever it was: the mark is cleared, and everything goes
 * to the depots. */
void pcpi_cache_abandon(struct pcpi_cache *c);

/* Drainer: claims the cache, NONE or PENDING before; false if it is claimed. */
bool pcpi_cache_claim(struct pcpi_cache *c);

/* Drainer, before it claims: the owner was asked to flush and didn't yet. */
bool pcpi_cache_is_pending(const struct pcpi_cache *c);

/* Under the threads lock: a drainer waits for the owner, or is inside. */
bool pcpi_cache_is_claimed(const struct pcpi_cache *c);

/* Drainer: true once the owner is out (C1). */
bool pcpi_cache_claimed_quiet(const struct pcpi_cache *c);

/* Drainer, inside: everything to the zones; ends the claim.  To moved[zone]
 * are added the pages. */
void pcpi_cache_empty_claimed(struct pcpi_cache *c, uint64_t *moved);

/* Drainer: lets go, leaving NONE or PENDING. */
void pcpi_cache_claim_end(struct pcpi_cache *c, enum pcpi_claim state);

/* Drainer: leaves the rest to the owner, and counts that. */
void pcpi_cache_claim_postpone(struct pcpi_cache *c);

/* Without a claim: asks the owner to see on which node it is (thread.c). */
void pcpi_cache_ask_where(struct pcpi_cache *c);

/* Owner: whether it was asked; it won't be again for this time. */
bool pcpi_cache_where_answer(struct pcpi_cache *c);

/* Without a claim: asks the owner to flush at its next call (NO_IPI heaps). */
void pcpi_cache_ask(struct pcpi_cache *c);

/* Claimed or not: the owner flushes and looks at the zone's numbers anew at its next
 * call without a claim, whoever drains the cache before. */
void pcpi_cache_ask_look(struct pcpi_cache *c);

/* Under the drain lock: sets or clears OFF, C9. */
void pcpi_cache_off(struct pcpi_cache *c, bool off);

/* OFF is set. */
bool pcpi_cache_is_off(const struct pcpi_cache *c);

/* OFF is set, and the owner, which was asked after it, has answered: from then
 * on it sets its mark by exchange. */
bool pcpi_cache_off_answered(const struct pcpi_cache *c);

/* Pages in the rings and outboxes; may race. */
uint64_t pcpi_cache_pages(const struct pcpi_cache *c);

/* Adds to remote[zone] the pages in the outboxes; may race. */
void pcpi_cache_remote_pages(const struct pcpi_cache *c, uint64_t *remote);

/* Blocks freed into the lists so far (C4); may race, never falls. */
uint64_t pcpi_cache_frees(struct pcpi_cache *c);

/* ---- Counts: exact for the owner, true a moment ago for others (relaxed) ---- */

static inline uint32_t pcpi_cache_len(const struct pcpi_cache *c, unsigned order)
{
	return pcpi_ring_len_racy(&c->list[order].ring) +
	       pcpi_cache_front_len(c, order);
}

/* Pages, without outboxes. */
static inline uint32_t pcpi_cache_count(const struct pcpi_cache *c)
{
	uint32_t pages = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pages += pcpi_cache_len(c, o) << o;
	return pages;
}

/* Blocks freed into a list so far: C4.  Whoever moves a block counts `in` before
 * the length rises, and allocs and `out` after it fell; read the other way round,
 * the sum may be late, but is never above what it will be at rest. */
static inline uint64_t pcpi_cache_list_frees(const struct pcpi_cache *c,
					     unsigned order)
{
	/* relaxed: see above; the barriers do on x86, elsewhere it may be off. */
	uint64_t frees = pcpi_load_relaxed(&c->out[order]);

	pcpi_compiler_barrier();
	frees += pcpi_allocs(&c->list[order].allocs);
	pcpi_compiler_barrier();
	frees += pcpi_cache_len(c, order);
	pcpi_compiler_barrier();
	return frees - pcpi_load_relaxed(&c->in[order]); /* relaxed: ditto */
}

static inline uint64_t pcpi_cache_allocs(const struct pcpi_cache *c)
{
	uint64_t allocs = 0;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		allocs += pcpi_allocs(&c->list[o].allocs);
	return allocs;
}

/* Owner: sees to the signs of its counts. */
static inline void pcpi_cache_allocs_wrap(struct pcpi_cache *c)
{
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pcpi_allocs_wrap(&c->list[o].allocs);
}

/* Zone of a page. */
PCPI_INLINE struct pcpi_zone *pcpi_zone_of(const struct pcpi_pcp_env *env,
					   uint32_t pfn)
{
	return &env->zones[env->window_zone[(uint64_t)pfn >> env->window_pfn_shift]];
}

/* Owner at rest, or claimed: R1, C4. */
bool pcpi_cache_check(const struct pcpi_cache *c);

#endif
