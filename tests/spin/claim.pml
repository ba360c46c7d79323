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
 *   claims in between cuts the emptying short and takes the duty over.
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
 *
 * Variants, by -D to spin
 *   (none)                   as above                            correct
 *   EXCHANGE                 no membarrier; the owner sets busy and the
 *                            drainer sets claim by an exchange   correct
 *   NO_IPI                   the drainer leaves PENDING and goes correct
 *   RSEQ                     hits are sequences                  correct
 *   RSEQ + NO_IPI            both                                correct
 *   RSEQ + NO_RESTART        nobody is sent back                 M1 fails
 *   NO_MEMBARRIER            the barrier is forgotten            M1 fails
 *   EXCHANGE + PLAIN_CLAIM   the drainer's exchange is forgotten M1 fails
 *   PLAIN_SETTLE             the owner stores NONE over PENDING
 *                            without comparing                   M1, M2 fail
 *   SETTLE_LATE              the owner empties the ring first    M2 fails
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

/* Memory: ring is the number of blocks in it. */
byte claim = NONE;
byte busy = 0;
byte ring = 0;
bit drain_lock = 0;

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
	:: seen == CLAIMED -> owner_unmark()
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
		:: claim == PENDING ->
			claim = NONE;
			accepted = true
		:: else /* claimed again: it is that drainer's */
		fi
	}
#endif
}

inline owner_settle()
{
	if
	:: claim == PENDING ->
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
	owner_enter();
	ring_read(blocks);
	ring_write(blocks + 1);
	atomic {
		put_in++;
		blocks = 0
	};
	owner_unmark()
}

/* The kernel looks before each step of a sequence, so the last is one with its
 * look; what is stored before it lies outside of the ring. */
inline sequence_push()
{
	atomic {
		in_sequence = 1;
		restarted = 0
	};
	seen = claim;
	ring_read(blocks);
	atomic {
		nfull(owner_stores) ->
		if
		:: seen == NONE && !restarted ->
			assert(drainers_inside == 0); /* M1 */
			owner_stores ! RING, blocks + 1;
			ring_newest = blocks + 1;
			ring_stores++;
			put_in++
		:: else -> seen = CLAIMED /* for any reason: the slow way */
		fi;
		in_sequence = 0;
		blocks = 0
	}
}

inline hot_push()
{
#ifdef RSEQ
	sequence_push()
#else
	owner_mark();
	seen = claim;
	if
	:: seen == NONE -> ring_push()
	:: else -> owner_unmark()
	fi
#endif
}

/* Puts one block in: the hot way, or the slow one on any claim. */
inline owner_call()
{
	hot_push();
	if
	:: seen == NONE
	:: else ->
		owner_settle();
		owner_mark();
		seen = claim;
		if
		:: seen == CLAIMED ->
			/* Around: the block goes where the locks are. */
			owner_unmark();
			atomic {
				put_in++;
				depot++
			}
		:: else -> ring_push()
		fi
	fi;
	/* M2, where no drainer is in the middle of a claim */
	assert(!owed || claim != NONE || len(drainer_stores) > 0)
}

active proctype owner()
{
	byte seen, blocks, calls;
	bool accepted;

	do
	:: calls < CALLS ->
		calls++;
		owner_call()
	:: break
	od;
	/* The model's own wait, so that a last call follows the last claim. */
	drainers_done == DRAINERS && empty(drainer_stores);
	owner_call();
	assert(claim == NONE && !owed); /* M4 */
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

active [DRAINERS] proctype drainer()
{
	byte taken, sweeps;

	do
	:: sweeps < SWEEPS ->
		sweeps++;
		atomic { drain_lock == 0 -> drain_lock = 1 };
#ifdef NO_IPI
		claim_give_up();
#else
		claim_set();
		do
		:: busy == 0 ->
			ring_take();
			break
		:: true -> /* the deadline */
			claim_give_up();
			break
		od;
#endif
		atomic { empty(drainer_stores) -> drain_lock = 0 };
		atomic {
			depot = depot + taken;
			taken = 0
		}
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
