/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: with lock_delay nobody is granted a lock for that time after its holder was lost; a
 * release leaves no marker, so the next one waits for nothing; and no orphan stays for ever.
 *
 * Where: src/engine/books/delay.h; mark() and withdraw() of src/stores/store.h.
 *
 * Abstracted: one holder, which may be lost once, and two hosts behind it, in that order, which may
 * come late and may go at any time. The holder's own host, in its next session, is one more that
 * looks for what is left. The lock is exclusive, and nobody takes a claim away by hand.
 *
 * Messages: requests and answers of the holder are late by any time; with its session they are lost,
 * carried out or not. That a claim has gone is heard of after any time. A list is later than what
 * its host has heard, and shows claims and markers of one moment.
 *
 * Clocks: each host counts the delay by its own, from when it saw the orphan. They run at one speed.
 *
 * Liveness: an orphan goes.
 *
 * Mutants:
 *   -DGRANT_FIRST     delayed  the holder is told before the marker stands
 *   -DNO_LIST         delayed  who hears that a claim has gone does not look for an orphan
 *   -DSINCE_WAITING   delayed  the delay counts from when the host began to wait
 *   -DNO_DELAY        delayed  an orphan is taken away at once
 *   -DMARKER_STAYS    clean    a release leaves the marker
 *   -DMARKER_LAST     clean    a release takes the claim away, and then the marker
 *   -DFORGETS_LOSS    taken    the host that lost a holder does not look for what is left
 */
#define DELAY 2

mtype = { WAITS, MARKS, MARKED, HOLDS, RELEASES, HALFWAY, OVER }; /* the holder's claim */
mtype = { ABSENT, WATCHES, LISTS, SEES, GRANTED, GONE };	  /* another host */

mtype holder = WAITS;
bool claim = true, marker;  /* in the store */
bool held;		    /* a caller was told of its grant, and has not asked for a release */
bool lost;		    /* while it was; */
byte lost_for;		    /* for so long, up to DELAY */
mtype host[2] = ABSENT;
byte waited[3];		    /* since it saw the orphan; of the holder's host the last one */
bool looks;		    /* the holder's host */

#define is_orphan (marker && !claim)

active proctype Holder()
{
end:	do
	:: atomic { holder == WAITS -> holder = MARKS;
#ifdef GRANT_FIRST
		held = true
#endif
	   }
	:: atomic { holder == MARKS && claim -> marker = true; holder = MARKED }
	:: atomic { holder == MARKED -> holder = HOLDS; held = true }
	:: atomic { holder == HOLDS -> holder = RELEASES; held = false }
#if defined(MARKER_LAST)
	:: atomic { holder == RELEASES -> claim = false; holder = HALFWAY;
		assert(!is_orphan) /* clean */
	   }
	:: atomic { holder == HALFWAY -> marker = false; holder = OVER }
#else
	:: atomic { holder == RELEASES ->
#ifndef MARKER_STAYS
		marker = false;
#endif
		holder = HALFWAY }
	:: atomic { holder == HALFWAY -> claim = false; holder = OVER;
		assert(!is_orphan) /* clean */
	   }
#endif
	:: atomic { holder != OVER -> /* its session is over, and ends in the store */
		holder = OVER; lost = held; held = false; claim = false;
#ifndef FORGETS_LOSS
		looks = true
#endif
	   }
	:: atomic { looks && is_orphan && waited[2] == DELAY -> marker = false; looks = false; waited[2] = 0 }
	:: atomic { looks && !is_orphan -> looks = false; waited[2] = 0 }
	od
}

inline grant(number)
{
	host[number] = GRANTED;
	assert(!lost || lost_for == DELAY) /* delayed */
}

inline list(number)
{
	if
	:: claim || (number == 1 && host[0] != ABSENT && host[0] != GONE) -> host[number] = WATCHES
	:: !claim && is_orphan && (number == 0 || host[0] == ABSENT || host[0] == GONE) -> host[number] = SEES
	:: !claim && !is_orphan && (number == 0 || host[0] == ABSENT || host[0] == GONE) -> grant(number)
	fi
}

active [2] proctype Host()
{
	byte number = _pid - 1;
end:	do
	:: atomic { host[number] == ABSENT && (number == 0 || holder != WAITS) -> list(number) }
	:: atomic { host[number] == WATCHES && !claim && (number == 0 || host[0] == ABSENT || host[0] == GONE) ->
#ifdef NO_LIST
		grant(number)
#else
		host[number] = LISTS
#endif
	   }
	:: atomic { host[number] == LISTS -> list(number) }
#ifdef NO_DELAY
	:: atomic { host[number] == SEES && is_orphan -> marker = false }
#else
	:: atomic { host[number] == SEES && is_orphan && waited[number] == DELAY -> marker = false }
#endif
	:: atomic { host[number] == SEES && !is_orphan -> waited[number] = 0; list(number) }
	:: atomic { host[number] != GONE -> host[number] = GONE; waited[number] = 0 }
	od
}

#ifdef SINCE_WAITING
#define counts(number) (host[number] == WATCHES || host[number] == LISTS || host[number] == SEES)
#else
#define counts(number) (host[number] == SEES)
#endif

active proctype Clock()
{
end:	do
	:: atomic { (lost && lost_for < DELAY) || (looks && waited[2] < DELAY) ||
		    (counts(0) && waited[0] < DELAY) || (counts(1) && waited[1] < DELAY) ->
		lost_for = (lost && lost_for < DELAY -> lost_for + 1 : lost_for);
		waited[0] = (counts(0) && waited[0] < DELAY -> waited[0] + 1 : waited[0]);
		waited[1] = (counts(1) && waited[1] < DELAY -> waited[1] + 1 : waited[1]);
		waited[2] = (looks && is_orphan && waited[2] < DELAY -> waited[2] + 1 : waited[2])
	   }
	od
}

ltl taken { [] (is_orphan -> <> !is_orphan) }
