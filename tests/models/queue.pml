/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: what stands before a claim can only go, so a claim is held once all of that has gone; a
 * grant rests on something that shows the claim standing after that; nothing that frees a claim
 * leaves a host before its holders were told; and while claims may be held that the store does not
 * show, as after it was set back, a moratorium lets nobody in.
 *
 * Where: settle.c (is_shown(), is_seen()), books/outbox.c, books/decisions.h, books/moratorium.h
 * of src/engine; on_session() and the rules at the top of src/stores/store.h.
 *
 * Abstracted: one lock, exclusive, and two hosts with one caller each, who lock again and again: one
 * that has released, or was robbed, is as good as a third.
 * Where others stand before a claim, all of them are waited for, not the nearest. The lease is one
 * rule, which other models are of: the service ends no session while its host holds by it. What
 * takes a claim away that is first in the queue is not covered (safety.md: claims that somebody
 * deletes), and such a claim is `robbed`; every other one is, at any time.
 *
 * Messages: each host sees the store as a server does that is behind, by any time, and sees changes
 * in their order. A claim, and a withdrawal, is under way for any time, and lost with the session.
 * None is doubled: an ambiguous answer is the model create.pml.
 *
 * Liveness: once the faults end, a claim that stands and waits is granted.
 *
 * Clocks: none, but that a moratorium outlasts the leases that were counted from before it.
 *
 * Mutants:
 *   -DNO_LIST           one_holder  a grant does not ask whether the claim still stands
 *   -DNO_WAIT           one_holder  a claim is held without looking at what stands before it
 *   -DEARLY_WITHDRAWAL  one_holder  a withdrawal leaves before its holder was told
 *   -DEARLY_RENEWAL     one_holder  a session is given up before its holder was told
 *   -DNO_MORATORIUM     one_holder  a service that has gone back grants at once
 *   -DFORGETS           granted     the end of what is waited for is missed
 */
#define HOSTS 2
#define BIT(host) (1 << (host))

mtype = { IDLE, PLACING, WAITING, LISTING, HOLDING, LEAVING, LOST, RENEWED };
mtype = { PLACED, GONE };

chan news[HOSTS] = [3] of { mtype, byte }; /* on their way to the host's server */

mtype state[HOSTS] = IDLE; /* of the host's claim; LOST: the session is over, as the host knows; RENEWED: it has
			      another one, from a server that has seen the end of that */
bool holds[HOSTS];	   /* the caller believes so */
bool placing[HOSTS];	   /* its claim is under way */
byte known[HOSTS];	   /* whose claims it waits for */
byte seen[HOSTS];	   /* whose claims its server shows */
byte stands;		   /* whose claims there are, */
byte before[HOSTS];	   /* and whose there were before that of a host */
bool robbed[HOSTS];
bool set_back;		   /* the service was, and the moratorium lasts */
bool calm;		   /* there are no more faults */
hidden mtype what;
hidden byte who, other;

#define has_room (nfull(news[0]) && nfull(news[1]))
#define is_first(host) (before[host] == 0)

inline tell_all(change, host)
{
	news[0] ! change, host; news[1] ! change, host
}

inline take_away(host)
{
	if
	:: stands & BIT(host) ->
		stands = stands & ~BIT(host);
		before[0] = before[0] & stands; before[1] = before[1] & stands;
		before[host] = 0;
		tell_all(GONE, host)
	:: else
	fi
}

inline grant(host)
{
	state[host] = HOLDING; holds[host] = true;
	other = 0;
	do
	:: other < HOSTS ->
		assert(other == host || !holds[other] || robbed[other] || robbed[host]); /* one_holder */
		other++
	:: else -> break
	od
}

#ifdef NO_MORATORIUM
#define may_grant true
#else
#define may_grant !set_back
#endif
#ifdef EARLY_RENEWAL
#define is_told(host) true
#else
#define is_told(host) (!holds[host])
#endif

active [HOSTS] proctype Host()
{
end:	do
	:: atomic { state[_pid] == IDLE -> state[_pid] = PLACING; placing[_pid] = true }
	:: atomic { placing[_pid] && !(stands & BIT(_pid)) && has_room ->
		placing[_pid] = false; robbed[_pid] = false;
		before[_pid] = stands; stands = stands | BIT(_pid);
		tell_all(PLACED, _pid)
	   }
	:: atomic { state[_pid] == WAITING && known[_pid] == 0 && may_grant ->
#ifdef NO_LIST
		grant(_pid)
#else
		state[_pid] = LISTING
#endif
	   }
	:: atomic { state[_pid] == LISTING && may_grant ->
		if
		:: seen[_pid] & BIT(_pid) -> grant(_pid)
		:: else -> state[_pid] = IDLE
		fi
	   }
	:: atomic { state[_pid] == HOLDING -> state[_pid] = LEAVING;
#ifndef EARLY_WITHDRAWAL
		holds[_pid] = false
#endif
	   }
	:: atomic { state[_pid] == LEAVING && has_room -> take_away(_pid); state[_pid] = IDLE }
	:: atomic { state[_pid] == IDLE && holds[_pid] -> holds[_pid] = false }
	:: atomic { !calm && state[_pid] != LOST && state[_pid] != IDLE && state[_pid] != RENEWED -> /* its lease is over: it is told, */
		state[_pid] = LOST; known[_pid] = 0
	   }
	:: atomic { state[_pid] == LOST && holds[_pid] -> holds[_pid] = false }
	:: atomic { state[_pid] == LOST && is_told(_pid) && has_room -> /* then the session may end */
		placing[_pid] = false; take_away(_pid); state[_pid] = RENEWED
	   }
	:: atomic { state[_pid] == RENEWED && empty(news[_pid]) -> state[_pid] = IDLE }
	:: atomic { (state[_pid] == WAITING || state[_pid] == HOLDING) && !(seen[_pid] & BIT(_pid)) ->
		state[_pid] = IDLE; holds[_pid] = false; known[_pid] = 0 /* a heartbeat shows that */
	   }
	od
}

active [HOSTS] proctype Server()
{
	byte host = _pid - HOSTS;
end:	do
	:: atomic { news[host] ? what, who ->
		if
		:: what == PLACED ->
			if
			:: who == host && state[host] == PLACING ->
				known[host] = seen[host];
#ifdef NO_WAIT
				known[host] = 0;
#endif
				state[host] = (known[host] == 0 -> LISTING : WAITING)
			:: else
			fi;
			seen[host] = seen[host] | BIT(who)
		:: what == GONE ->
			seen[host] = seen[host] & ~BIT(who);
#ifdef FORGETS
			if
			:: who == 0 -> known[host] = known[host] & ~BIT(who)
			:: else
			fi
#else
			known[host] = known[host] & ~BIT(who)
#endif
		fi;
		who = 0
	   }
	od
}

/* Somebody deletes a claim, or sets the service back to before all claims that stand. */
active proctype World()
{
end:	do
	:: atomic { !calm && has_room && stands != 0 ->
		if
		:: stands & BIT(0) -> who = 0
		:: stands & BIT(1) -> who = 1
		fi;
		robbed[who] = is_first(who);
		take_away(who);
		who = 0
	   }
	:: atomic { !calm && !set_back && stands != 0 ->
		who = 0;
		do
		:: who < HOSTS ->
			do
			:: news[who] ? what, other
			:: empty(news[who]) -> break
			od;
			placing[who] = false; seen[who] = 0; known[who] = 0; before[who] = 0; robbed[who] = false;
			state[who] = (holds[who] -> LOST : IDLE);
			who++
		:: else -> break
		od;
		stands = 0; set_back = true; who = 0; other = 0
	   }
	:: atomic { set_back && !holds[0] && !holds[1] -> set_back = false }
	:: atomic { !calm -> calm = true }
	od
}

ltl granted { [] ((calm && state[0] == WAITING && (stands & 1) != 0) -> <> holds[0]) }
