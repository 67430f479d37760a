/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: whoever holds by a lease that has ended is told before another host can be granted, also
 * if the daemon stops at any instruction. The guard learns of each deadline in time though it
 * sleeps. A process is signalled once, unless the daemon hung as it was about to do it. The guard
 * does not act while the daemon tells holders.
 *
 * Where: fs/kernel/lease_board.h and lease_board.c, fs/kernel/lease_watch.c, shard_guard() of
 * fs/files/shard.c, fs/handles/telling.c.
 *
 * Abstracted: two stores with one holder each, which is granted once, until time ends. Each access
 * to a word of the shared memory is a step. The eventfd is a bit. To tell a holder is to signal it;
 * that its descriptors fail comes before that.
 *
 * Nothing is lost, late or doubled in memory. The daemon may stand still before any step, for any
 * time, and go on or not. It may do so before the guard knows the deadline, too: so it looks at the
 * clock once more between that and the answer that tells of a grant (takeover_commit()).
 *
 * Clocks: one, in units of T/80. The guard runs when it is due, before time goes on: that is its
 * place (safety.md). The deadline of a lease is a unit after its end, and others may be granted when
 * two have passed.
 *
 * Mutants:
 *   -DNO_SECOND_LOOK   told         the guard does not look again after it said how long it sleeps
 *   -DLATER_LOOK       told         it sleeps for longer than it said, if what is due has changed
 *   -DLOOK_BEFORE_SET  told         the daemon looks how long the guard sleeps, then sets a deadline
 *   -DGRANT_FIRST      told         the caller learns of its grant before the deadline is set
 *   -DTRUSTS_HUNG      told         the guard leaves out whom a daemon that hangs was about to tell
 *   -DNO_WAKE          told         nobody wakes the guard
 *   -DJUDGED_ONCE      told         the daemon does not look at the clock again
 *   -DTAKES_NOTHING    once         the guard signals without taking the entry
 *   -DNO_MOVE          only_hung    the daemon does not say that it makes progress
 */
#define STORES 2
#define PATIENCE 1
#define LAST 5	   /* time ends */
#define NEVER 15

mtype = { NOBODY, DAEMON, GUARD }; /* who has signalled, or is about to */

byte now = 1;
/* What the two share. */
byte deadline[STORES] = NEVER;
byte moved;
byte sleeps_until;	   /* 0: the guard does not sleep */
bool wake;
bool entry[STORES];
mtype told[STORES] = NOBODY;
/* What is so. */
byte lease_end[STORES];	   /* of the lease */
bool holds[STORES];	   /* a caller, that has not been told of a loss */
byte signals[STORES];	   /* that its process got */
byte progress, progress_read;
bool dead, waits;
byte alarm = NEVER;

inline set_deadline(store, time)
{
#ifdef LOOK_BEFORE_SET
	sleeps = sleeps_until;
	deadline[store] = time;
#else
	deadline[store] = time;
	sleeps = sleeps_until;
#endif
#ifndef NO_WAKE
	if
	:: time < sleeps -> sleeps_until = 0; wake = true
	:: else
	fi;
#endif
	sleeps = 0
}

inline note(store)
{
	atomic { told[store] = NOBODY; signals[store] = 0 };
	entry[store] = true
}

inline hold(store)
{
	holds[store] = true
}

active proctype Daemon()
{
	byte store, sleeps, until;
	bool mine;
end:	do
	:: store = 1 - store
	:: atomic { !holds[store] && lease_end[store] == 0 && now < LAST -> lease_end[store] = now + 1; until = lease_end[store] + 1 };
#ifdef GRANT_FIRST
		note(store); hold(store); set_deadline(store, until);
#else
		set_deadline(store, until); note(store);
#ifdef JUDGED_ONCE
		hold(store);
#else
		if
		:: now < lease_end[store] -> hold(store)
		:: else -> entry[store] = false; deadline[store] = NEVER
		fi;
#endif
#endif
		until = 0
	:: atomic { holds[store] && now < lease_end[store] && lease_end[store] < now + 2 -> lease_end[store] = now + 2; until = lease_end[store] + 1 };
		set_deadline(store, until);
		until = 0
	:: atomic { holds[store] && now >= lease_end[store] ->
		progress = now;
#ifndef NO_MOVE
		moved = now
#endif
	   };
		atomic { mine = (told[store] == NOBODY); told[store] = (mine -> DAEMON : told[store]) };
		atomic {
			if
			:: mine -> signals[store]++
			:: else
			fi;
			assert(signals[store] <= 1) /* once */
		};
		mine = false;
		holds[store] = false;
		entry[store] = false;
		deadline[store] = NEVER
	od unless { dead }
}

inline look()
{
	due = NEVER; late = false; store = 0;
	do
	:: store < STORES ->
		time = deadline[store];
		atomic {
			if
			:: time <= now ->
				late = true;
				time = (moved != 0 && moved + PATIENCE > time -> moved + PATIENCE : time)
			:: else
			fi;
			progress_read = (time < due -> progress : progress_read);
			due = (time < due -> time : due);
			time = 0; store++
		}
	:: else -> break
	od;
	store = 0
}

/* To the holders of stores that are late, or to all. */
inline signal(hung)
{
	store = 0;
	do
	:: store < STORES ->
		atomic {
			if
			:: entry[store] && (hung || deadline[store] <= now) &&
#ifdef TRUSTS_HUNG
			   told[store] == NOBODY ->
#else
			   (told[store] == NOBODY || (hung && told[store] == DAEMON)) ->
#endif
#ifndef TAKES_NOTHING
				told[store] = GUARD;
#endif
				signals[store]++;
				assert(hung || signals[store] <= 1) /* once */
			:: else
			fi;
			store++
		}
	:: else -> break
	od;
	store = 0
}

active proctype Guard()
{
	byte store, time, due, until;
	bool late;
	do
	:: look();
		do
		:: until = due;
			wake = false;
			sleeps_until = until;
#ifdef NO_SECOND_LOOK
			break
#else
			look();
			if
#ifdef LATER_LOOK
			:: due >= until -> break
#else
			:: due == until -> break
#endif
			:: else
			fi
#endif
		od;
		until = 0;
		if
		:: due <= now -> break
		:: else
		fi;
		if
		:: late -> signal(false)
		:: else
		fi;
		atomic { alarm = due; due = 0; late = false; waits = true };
end:		atomic { wake || alarm <= now -> waits = false }
	od;
	atomic { assert(progress_read == 0 || progress_read + PATIENCE <= now); /* only_hung */
		dead = true };
	signal(true);
	atomic { alarm = NEVER; wake = false; waits = true }
}

/* Time goes on when the guard has nothing to do. */
active proctype Clock()
{
	byte store;
end:	do
	:: atomic { now < LAST + 3 && waits && !wake && alarm > now ->
		do
		:: store < STORES ->
			assert(!holds[store] || now < lease_end[store] + 2 || signals[store] > 0); /* told */
			store++
		:: else -> break
		od;
		store = 0;
		now++
	   }
	od
}
