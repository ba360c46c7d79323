/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * claim.pml - the claim and busy protocol of a thread cache, on a machine with
 * store buffers.
 *
 * One owner makes calls on its cache; two drainers, one at a time under the
 * drain lock, empty it.  Owner and drainers take no lock in common:
 *
 *   owner                              drainer (holds the drain lock)
 *     busy = 1       (may be late)       claim = CLAIMED
 *     read claim                         membarrier: the owner's stores are out
 *     NONE:    use the ring              poll busy until 0, or give up
 *     CLAIMED: go around the cache       0:       take the ring, claim = NONE
 *     PENDING: busy = 0, settle,         give up: claim = PENDING
 *              begin again
 *     busy = 0       (may be late)
 *
 *   With restartable sequences the owner's call is shorter, unless it turns to
 *   the slow way, and the drainer asks for one thing more:
 *
 *     read claim                         after the barrier: whoever is between
 *     NONE: use the ring; its last       his read and his commit begins again,
 *           store commits                and by that goes the slow way
 *
 *   settle: PENDING -> NONE by compare and swap; then, if that was it, the
 *   owner empties the ring with the mark set.  In this order: a drainer that
 *   claims in between cuts the emptying short and takes the duty over, or if
 *   it is a tick the owner says so by a bit (claim_look) that claims leave alone.
 *
 * What the machine may do: a plain store waits in a first-in first-out buffer
 * of its processor until the process `machine` writes it to memory, at any
 * time; loads read memory, or the own buffer.  This is x86's model.  Locked
 * instructions, and membarrier on every processor, wait for an empty buffer.
 * (Weaker machines are kept in the same order by the acquires and releases in
 * docs/memory-order.md.)
 *
 * What is asserted
 *   M1  Owner and drainer never use the ring at once, nor do two drainers.
 *   M2  A drainer leaves an empty ring; and a drain that was asked for is
 *       done or still asked for at the end of each call of the owner.
 *   M3  Every block that was put in is in the ring or in the depot at the end.
 *   M4  The owner's next call after a claim that was given up settles it.
 *   M5  Nobody waits for ever (spin's invalid end states); and the owner has
 *       no statement that waits for a claim.
 *   M6  From a disable that has emptied the ring to its enable nothing is put
 *       into it.
 *
 * Variants, by -D to spin
 *   (none)                   as above                            correct
 *   EXCHANGE                 no membarrier; the owner sets busy and the
 *                            drainer sets claim by an exchange   correct
 *   NO_IPI                   the drainer leaves PENDING and goes correct
 *   RSEQ                     hits are sequences                  correct
 *   RSEQ + NO_IPI            both                                correct
 *   RSEQ + NO_RESTART        nobody is sent back                 M1 fails
 *   DISABLE                  each sweep is that of a disable: it says so
 *                            before it claims, and keeps hits out until the
 *                            enable; the owner's slow way asks with
 *                            the mark set                        correct
 *   NO_IPI + DISABLE         the owner is asked after hits are kept out,
 *                            and once it has answered claimed without
 *                            a membarrier: it marks by exchange  correct
 *   TICK                     each drainer's last sweep is a tick, which takes
 *                            nothing from the ring and ends in what its
 *                            claim replaced; an owner whose flush
 *                            was cut short owes it again         correct
 *   NO_MEMBARRIER            the barrier is forgotten            M1 fails
 *   EXCHANGE + PLAIN_CLAIM   the drainer's exchange is forgotten M1 fails
 *   PLAIN_SETTLE             the owner stores NONE over PENDING
 *                            without comparing                   M1, M2 fail
 *   SETTLE_LATE              the owner empties the ring first    M2 fails
 *   DISABLE + ASK_EARLY      the owner asks before it marks      M6 fails
 *   DISABLE + HITS_IN        claims don't keep hits out          M6 fails
 *   NO_IPI + DISABLE + NO_ANSWER
 *                            nobody waits for the answer         M1 fails
 *   TICK + TICK_NONE         a tick ends in NONE                 M2 fails
 *   TICK + TICK_CUT          the owner whose flush is cut short
 *                            thinks that it is done              M2 fails
 *   NO_IPI + DISABLE + PLAIN_MARK
 *                            the owner marks by a store          M1 fails
 */

#ifndef CALLS
#define CALLS 3 /* of the owner, while drainers run */
#endif
#ifndef SWEEPS
#define SWEEPS 2 /* of each drainer */
#endif
#define DRAINERS 2
#define BUFFER 2 /* stores that a processor holds back */

#define NONE 0
#define CLAIMED 1
#define PENDING 2

/* Names of memory words in a store buffer. */
#define CLAIM 0
#define BUSY 1
#define RING 2
#define DEPTH 3

/* Memory: ring is the number of blocks in it. */
byte claim = NONE;
byte busy = 0;
byte ring = 0;
bit drain_lock = 0;
byte depth = 0;    /* of disables */
bit claim_off = 0; /* bits of claim, read with it */
bit claim_look = 0;

/* One buffer for both drainers: the lock between them drains it. */
chan owner_stores = [BUFFER] of { byte, byte };
chan drainer_stores = [BUFFER] of { byte, byte };

/* The owner's newest value of ring while it is still in the buffer. */
byte ring_stores = 0;
byte ring_newest = 0;

/* The owner is between the read of the claim and the commit; it was sent back. */
bit in_sequence = 0;
bit restarted = 0;

/* What really happens, for the assertions; no process decides by it. */
byte owner_inside = 0;
byte drainers_inside = 0;
bool owed = false; /* a drainer gave up and nobody emptied the ring since */
byte kept = 0; /* disables that hold */
bool pushing = false;
byte put_in = 0;
byte depot = 0;
byte drainers_done = 0;
bool owner_done = false;

inline write_memory(address, value)
{
	if
	:: address == CLAIM ->
		assert(value != NONE || ring == 0); /* M2 */
		claim = value
	:: address == BUSY -> busy = value
	:: address == RING -> ring = value
	:: address == DEPTH -> depth = value
	fi
}

active proctype machine()
{
	byte address, value;
end:
	do
	:: atomic {
		owner_stores ? address, value ->
		if
		:: address == RING -> ring_stores--
		:: else
		fi;
		write_memory(address, value)
	   }
	:: atomic {
		drainer_stores ? address, value ->
		write_memory(address, value)
	   }
	od
}

/* ---- Owner ---------------------------------------------------------------- */

inline owner_mark()
{
#ifdef EXCHANGE
	atomic { empty(owner_stores) -> busy = 1 }
#elif defined(NO_IPI) && defined(DISABLE) && !defined(PLAIN_MARK)
	if
	:: claim_off -> atomic { empty(owner_stores) -> busy = 1 }
	:: else -> owner_stores ! BUSY, 1
	fi
#else
	owner_stores ! BUSY, 1
#endif
}

inline owner_unmark()
{
	atomic {
		owner_stores ! BUSY, 0 -> owner_inside = 0
	}
}

inline ring_read(value)
{
	atomic {
		if
		:: ring_stores > 0 -> value = ring_newest
		:: else -> value = ring
		fi
	}
}

inline ring_write(value)
{
	atomic {
		owner_stores ! RING, value ->
		ring_newest = value;
		ring_stores++
	}
}

inline owner_enter()
{
	atomic {
		assert(drainers_inside == 0); /* M1 */
		owner_inside = 1
	}
}

/* Takes all blocks to a private batch, unless claimed. */
inline ring_flush()
{
	owner_mark();
	seen = claim;
	if
	:: seen == CLAIMED ->
		owner_unmark();
#if defined(TICK) && !defined(TICK_CUT)
		/* A compare and swap. */
		atomic { empty(owner_stores) -> claim_look = 1 }
#endif
	:: else ->
		owner_enter();
		ring_read(blocks);
		ring_write(0);
		owed = false;
		owner_unmark();
		/* The mark is clear before any lock is taken. */
		atomic {
			depot = depot + blocks;
			blocks = 0
		}
	fi
}

/* Accepts what a drainer that gave up has asked for. */
inline pending_clear()
{
#ifdef PLAIN_SETTLE
	owner_stores ! CLAIM, NONE;
	accepted = true
#else
	atomic {
		empty(owner_stores) ->
		if
		:: claim == PENDING || (claim == NONE && claim_look) ->
			claim = NONE;
			claim_look = 0;
			accepted = true
		:: else /* claimed again: it is that drainer's */
		fi
	}
#endif
}

inline owner_settle()
{
	if
	:: claim == PENDING || claim_look ->
#ifdef SETTLE_LATE
		ring_flush();
		pending_clear()
#else
		pending_clear();
		if
		:: accepted -> ring_flush()
		:: else
		fi
#endif
		;
		accepted = false
	:: else
	fi
}

inline ring_push()
{
	atomic {
		assert(drainers_inside == 0); /* M1 */
		assert(kept == 0); /* M6 */
		owner_inside = 1;
		pushing = true
	};
	ring_read(blocks);
	ring_write(blocks + 1);
	atomic {
		put_in++;
		blocks = 0;
		pushing = false
	};
	owner_unmark()
}

/* The block goes where the locks are. */
inline around()
{
	owner_unmark();
	atomic {
		put_in++;
		depot++
	}
}

inline claim_read()
{
	atomic {
		seen = claim;
#ifdef HITS_IN
		off = 0
#else
		off = claim_off || claim_look
#endif
	}
}

/* The kernel looks before each step of a sequence, so the last is one with its
 * look; what is stored before it lies outside of the ring. */
inline sequence_push()
{
	atomic {
		in_sequence = 1;
		restarted = 0
	};
	claim_read();
	ring_read(blocks);
	atomic {
		nfull(owner_stores) ->
		if
		:: seen == NONE && !off && !restarted ->
			assert(drainers_inside == 0); /* M1 */
			owner_stores ! RING, blocks + 1;
			ring_newest = blocks + 1;
			ring_stores++;
			put_in++;
			hit = true
		:: else /* the slow way */
		fi;
		in_sequence = 0;
		blocks = 0
	}
}

/* A hit doesn't look at the claim before it marks. */
inline hit_mark()
{
#ifdef EXCHANGE
	owner_mark()
#else
	owner_stores ! BUSY, 1
#endif
}

inline hot_push()
{
#ifdef RSEQ
	sequence_push()
#else
	hit_mark();
	claim_read();
	if
	:: seen == NONE && !off ->
		ring_push();
		hit = true
	:: else -> owner_unmark()
	fi
#endif
}

/* Puts one block in: the hot way, or the slow one on any claim. */
inline owner_call()
{
	hit = false;
	hot_push();
	if
	:: hit
	:: else ->
		owner_settle();
#ifdef ASK_EARLY
		seen_depth = depth;
#endif
		owner_mark();
		seen = claim;
		if
		:: seen == CLAIMED -> around()
		:: else ->
#ifndef ASK_EARLY
			seen_depth = depth;
#endif
			if
			:: seen_depth > 0 -> around()
			:: else -> ring_push()
			fi
		fi;
		seen_depth = 0
	fi;
	off = 0;
	/* M2, where no drainer is in the middle of a claim */
	assert(!owed || claim != NONE || claim_look || len(drainer_stores) > 0)
}

active proctype owner()
{
	byte seen, blocks, calls, seen_depth;
	bool accepted, hit;
	bit off;

	do
	:: calls < CALLS ->
		calls++;
		owner_call()
	:: break
	od;
	/* The model's own wait, so that a last call follows the last claim. */
	drainers_done == DRAINERS && empty(drainer_stores);
	owner_call();
	assert(claim == NONE && !claim_look && !owed); /* M4 */
	owner_done = true
}

/* ---- Drainers ------------------------------------------------------------- */

inline claim_set()
{
#ifdef EXCHANGE
#ifdef PLAIN_CLAIM
	drainer_stores ! CLAIM, CLAIMED
#else
	atomic { empty(drainer_stores) -> claim = CLAIMED }
#endif
#else
	drainer_stores ! CLAIM, CLAIMED;
	empty(drainer_stores); /* the caller's own barrier */
#ifndef NO_MEMBARRIER
	empty(owner_stores)
#endif
#if defined(RSEQ) && !defined(NO_RESTART)
	;
	/* The owner's processor is interrupted, by which its stores get out. */
	atomic { empty(owner_stores) -> restarted = in_sequence }
#endif
#endif
}

inline claim_give_up()
{
	atomic {
		drainer_stores ! CLAIM, PENDING -> owed = true
	}
}

inline ring_take()
{
	atomic {
		assert(owner_inside == 0); /* M1 */
		drainers_inside++;
		assert(drainers_inside == 1)
	};
	taken = ring;
	drainer_stores ! RING, 0;
	atomic {
		drainer_stores ! CLAIM, NONE ->
		drainers_inside--;
		owed = false
	}
}

inline lock_take()
{
	atomic { drain_lock == 0 -> drain_lock = 1 }
}

inline lock_drop()
{
	atomic { empty(drainer_stores) -> drain_lock = 0 }
}

/* With OFF set: what the owner answers it has read with OFF. */
inline owner_ask()
{
#ifdef NO_IPI
	if
	:: claim == NONE -> claim = PENDING; owed = true
	:: else
	fi
#else
	skip
#endif
}

inline depth_change(to)
{
	lock_take();
	drainer_stores ! DEPTH, to;
	atomic {
		empty(drainer_stores) ->
		if
		:: depth > 0 && !claim_off -> claim_off = 1; owner_ask()
		:: depth == 0 -> claim_off = 0
		:: else
		fi
	};
	lock_drop()
}

/* Until the owner has answered, or the deadline; then as in other heaps, but
 * without a membarrier. */
inline answered_take()
{
	do
#ifndef NO_ANSWER
	:: claim != PENDING -> break
#endif
	:: true -> break
	od;
	lock_take();
	if
#ifdef NO_ANSWER
	:: true ->
#else
	:: claim != PENDING ->
#endif
		atomic { empty(drainer_stores) -> claim = CLAIMED };
		busy_await()
	:: else
	fi
}

inline busy_await()
{
	do
	:: busy == 0 ->
		ring_take();
		emptied = true;
		break
	:: true -> /* the deadline */
		claim_give_up();
		break
	od
}

/* It takes what is no part of the ring, or finds the owner inside. */
inline tick()
{
	lock_take();
	taken = claim; /* the plan */
	claim_set();
	if
	:: busy == 0 ->
		atomic {
			assert(owner_inside == 0); /* M1 */
			drainers_inside++
		};
		drainers_inside--
	:: true
	fi;
	/* A compare and swap. */
	atomic {
		empty(drainer_stores) ->
#ifdef TICK_NONE
		claim = NONE;
#else
		claim = (taken == PENDING -> PENDING : NONE);
#endif
		taken = 0
	};
	lock_drop()
}

/* Holds for a while, if it has emptied the ring. */
inline disable_hold()
{
	if
	:: emptied ->
		atomic {
			kept++;
			assert(!pushing); /* M6 */
			assert((ring_stores > 0 -> ring_newest : ring) == 0)
		};
		kept--
	:: else
	fi;
	emptied = false;
	depth_change(depth - 1)
}

active [DRAINERS] proctype drainer()
{
	byte taken, sweeps;
	bool emptied;

	do
	:: sweeps < SWEEPS ->
		sweeps++;
#ifdef DISABLE
		depth_change(depth + 1);
#endif
#ifdef TICK
		if
		:: sweeps == SWEEPS ->
			tick();
			break
		:: else
		fi;
#endif
#if defined(NO_IPI) && defined(DISABLE)
		answered_take();
#elif defined(NO_IPI)
		lock_take();
		claim_give_up();
#else
		lock_take();
		claim_set();
		busy_await();
#endif
		lock_drop();
		atomic {
			depot = depot + taken;
			taken = 0
		}
#ifdef DISABLE
		;
		disable_hold()
#endif
	:: break
	od;
	drainers_done++
}

/* ---- The end -------------------------------------------------------------- */

active proctype observer()
{
	owner_done && empty(owner_stores) && empty(drainer_stores);
	assert(ring + depot == put_in); /* M3 */
	assert(busy == 0 && claim == NONE)
}
