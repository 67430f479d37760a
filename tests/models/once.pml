/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: of all runs of a job for one key, `dlockctl run --once` records one that has succeeded, at
 * most; and if hosts that run it die or lose the lock, another one that stands by runs it.
 *
 * Where: src/dlockctl/commands/once.c and run.c (look, lock, look again, run, record), fs/ops/running.c
 * (the transaction: STEP_STAND of the claim, and the record).
 *
 * Abstracted: one key, one lock, three hosts with one caller each. Every command succeeds. How a
 * lock is granted is the model queue.pml. The record is read and written in one step: who writes it
 * compares its version, and begins anew if that has changed.
 *
 * Messages: the answer to the transaction may be lost, whether it was carried out or not; then it is
 * sent again, and a record with the run's token is not added twice.
 *
 * Clocks: none. What is read may be old, but not older than what the session was told before: that
 * the claim in front has gone. A holder may lose the lock at any time, and its command goes on.
 *
 * Liveness: it is recorded, if one host is left that runs it.
 *
 * Mutants:
 *   -DLOOKS_ONCE   once  who has waited for the lock does not look again
 *   -DREADS_OLD    once  the second look may be older than the grant
 *   -DUNPROVEN     once  the record is written without the proof that the lock is held
 *   -DADDS_AGAIN   once  what was sent again is added twice
 *   -DSTANDS_NOT_BY  runs  a host that finds the lock taken skips the run
 */
#define HOSTS 3

bool recorded;		/* with the token of: */
byte recorder;
byte successes;		/* in the record */
byte holder;		/* 1 more than the number of the host; 0: nobody */
bool sees[HOSTS];	/* the record, as the host has read it */
byte losses;

inline record(me)
{
#ifdef ADDS_AGAIN
	successes++;
#else
	successes = successes + (!recorded || recorder != me);
#endif
	recorded = true;
	recorder = me;
	assert(successes <= 1) /* once */
}

active [HOSTS] proctype Host()
{
	if /* the first look, at any time */
	:: sees[_pid] = recorded
	:: skip
	fi;
	if
	:: sees[_pid] -> goto over
	:: else
	fi;
#ifdef STANDS_NOT_BY
	if
	:: holder != 0 -> goto over
	:: else
	fi;
#endif
	atomic { holder == 0 ->
		holder = _pid + 1;
#if !defined(LOOKS_ONCE) && !defined(READS_OLD)
		sees[_pid] = recorded
#endif
	}
#ifdef READS_OLD
	if
	:: sees[_pid] = recorded
	:: skip
	fi;
#endif
	if
	:: sees[_pid] -> goto release
	:: else
	fi;
	do /* the command has run: records that */
	:: atomic { holder == _pid + 1 -> record(_pid) } -> break
	:: atomic { holder == _pid + 1 -> record(_pid) } /* the answer is lost */
#ifdef UNPROVEN
	:: atomic { holder != _pid + 1 -> record(_pid) } -> break
#else
	:: holder != _pid + 1 -> break
#endif
	od;
release:
	atomic {
		if
		:: holder == _pid + 1 -> holder = 0
		:: else
		fi
	}
over:	skip
}

/* One host is left that loses nothing. */
active proctype Trouble()
{
	do
	:: atomic { losses < HOSTS - 1 && holder != 0 -> holder = 0; losses++ }
	:: break
	od
}

ltl runs { <> recorded }
