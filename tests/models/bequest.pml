/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: whoever is told by a message that what it waits for is released may hold, whatever the
 * store still lists: nobody else can, as what was released leaves the store only while its heir
 * stands there, or after that one's host has heard of the end of it.
 *
 * Where: src/engine/books/bequest.h; bequeath() of src/stores/store.h.
 *
 * Abstracted: one lock, exclusive, and three hosts whose claims stand in a row: the first one holds.
 * Or the last claim is of the first host, too: that host's queue does not have what it has released
 * itself, and its session does not end. Each tells only the next one, if at all. The lease is one
 * rule, which other models are of: the service ends no session while its host holds by it. The time
 * for which a claim stays whose heir is gone is as long as that one's host may take to hear of it. A
 * claim that somebody deletes while it is the first is not covered, as in queue.pml; nor is an heir
 * that is deleted, if what it was left then goes by other means before the heir's host has heard of
 * that: with its session, or by hand.
 *
 * Messages: a word between hosts may be lost, late, doubled, or come out of order. Each host sees
 * the store as a server does that is behind, by any time, and sees changes in their order. A
 * withdrawal is under way for any time. A daemon is killed, and goes on with the books that were
 * committed.
 *
 * Liveness: once the faults end, a claim that stands and waits is granted.
 *
 * Clocks: none.
 *
 * Mutants:
 *   -DPLAIN       one_holder  what was released leaves the store whether the heir stands or not
 *   -DIMPATIENT   one_holder  if the heir does not stand, its host is not waited for
 *   -DANYBODY     one_holder  who is not the heir passes what was released, too
 *   -DEARLY_WORD  one_holder  the next host is told before the books are committed
 *   -DPAST_OWN    one_holder  what was released does not keep a claim of its own host out
 *   -DLOSS_TOLD   one_holder  who has lost the lock is said to have released it
 *   -DSTAYS       granted     what was released stays as long as its heir is missing
 */
#define HOSTS 3
#define BIT(host) (1 << (host))

mtype = { WAITING, HOLDING, RELEASING, LEAVING, LOST, GONE };

chan news[HOSTS] = [3] of { byte }; /* whose claims have gone: on the way to the host's server */

mtype state[HOSTS] = WAITING; /* RELEASING: its holder has let go, which is not in the books yet */
bool holds[HOSTS];	      /* the caller believes so */
byte stands = 7;	      /* whose claims there are */
byte known[HOSTS] = 7;	      /* whose claims its server shows */
byte word[HOSTS];	      /* whose claims it was told to be released: on the way, for ever */
byte passes[HOSTS];	      /* and has heard of */
bool robbed[HOSTS];
bool calm; /* there are no more faults */
hidden byte who, other;

bool kin; /* the last claim is of the first host */
bool begun;

#define in_front(host) (BIT(host) - 1)
#define is_kin(host)   (kin && host == 2)
#define left_own(host) (is_kin(host) && (state[0] == LEAVING || state[0] == GONE) -> BIT(0) : 0)
#define shown(host)    (is_kin(host) -> known[0] : known[host])
#ifdef PAST_OWN
#define is_barred(host) false
#else
#define is_barred(host) (is_kin(host) && state[0] == LEAVING && !(known[0] & BIT(1)) && !(passes[2] & BIT(1)))
#endif
#define is_free(host)  ((shown(host) & in_front(host) & ~passes[host] & ~left_own(host)) == 0 && !is_barred(host))

inline take_away(host)
{
	if
	:: stands & BIT(host) ->
		stands = stands & ~BIT(host);
		news[0] ! host; news[1] ! host; news[2] ! host
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
	od;
	other = 0
}

inline tell_next(host)
{
	if
	:: host + 1 < HOSTS -> word[host + 1] = word[host + 1] | BIT(host) | passes[host]
	:: else
	fi;
#ifdef ANYBODY
	word[2] = word[2] | BIT(host)
#endif
}

#define has_room (nfull(news[0]) && nfull(news[1]) && nfull(news[2]))

/* Nobody is the heir of the last one. */
#define heir_stands(host) (host == HOSTS - 1 || (stands & BIT(host + 1)))
#ifdef IMPATIENT
#define heir_knows(host) true
#else
#ifdef STAYS
#define heir_knows(host) false
#else
#define heir_knows(host) (host == HOSTS - 1 || (!(known[host + 1] & BIT(host + 1)) && !holds[host + 1]))
#endif
#endif
#ifdef PLAIN
#define may_leave(host) true
#else
#define may_leave(host) (heir_stands(host) || heir_knows(host))
#endif

/* What the heir was left, or may yet be, goes otherwise. */
inline note_uncovered(host)
{
	if
	:: !heir_stands(host) && ((known[host + 1] & BIT(host + 1)) || holds[host + 1]) -> robbed[host + 1] = true
	:: else
	fi
}

active [HOSTS] proctype Host()
{
end:	do
	:: atomic { begun && state[_pid] == WAITING && (shown(_pid) & BIT(_pid)) && is_free(_pid) -> grant(_pid) }
	:: atomic { begun && state[_pid] == HOLDING -> state[_pid] = RELEASING;
#ifdef EARLY_WORD
		tell_next(_pid)
#endif
	   }
	:: atomic { state[_pid] == RELEASING -> state[_pid] = LEAVING; holds[_pid] = false; /* committed */
		tell_next(_pid)
	   }
	:: atomic { !calm && state[_pid] == RELEASING -> state[_pid] = HOLDING } /* killed, and goes on */
	:: atomic { state[_pid] == LEAVING && has_room && may_leave(_pid) -> take_away(_pid); state[_pid] = GONE }
	:: atomic { word[_pid] != 0 && passes[_pid] != word[_pid] -> passes[_pid] = word[_pid] }
	:: atomic { !calm && begun && (!kin || _pid == 1) && (state[_pid] == HOLDING || state[_pid] == WAITING || state[_pid] == LEAVING) ->
#ifdef LOSS_TOLD
		if
		:: state[_pid] == HOLDING -> tell_next(_pid)
		:: else
		fi;
#endif
		state[_pid] = LOST /* its lease is over: it is told, */
	   }
	:: atomic { state[_pid] == LOST && holds[_pid] -> holds[_pid] = false }
	:: atomic { state[_pid] == LOST && !holds[_pid] && has_room -> /* then the session may end */
		note_uncovered(_pid);
		take_away(_pid); state[_pid] = GONE
	   }
	:: atomic { state[_pid] != GONE && state[_pid] != LEAVING && state[_pid] != LOST && !(shown(_pid) & BIT(_pid)) ->
		state[_pid] = GONE; holds[_pid] = false /* its claim was taken away */
	   }
	od
}

active [HOSTS] proctype Server()
{
	byte host = _pid - HOSTS;
end:	do
	:: atomic { news[host] ? who -> known[host] = known[host] & ~BIT(who); who = 0 }
	od
}

/* Somebody deletes a claim. */
active proctype World()
{
	atomic {
		if
		:: kin = true
		:: kin = false
		fi;
		begun = true
	}
end:	do
	:: atomic { !calm && has_room && stands != 0 ->
		if
		:: stands & BIT(0) -> who = 0
		:: stands & BIT(1) -> who = 1
		:: stands & BIT(2) -> who = 2
		fi;
		note_uncovered(who);
		robbed[who] = robbed[who] || (stands & in_front(who)) == 0;
		take_away(who);
		who = 0
	   }
	:: atomic { !calm -> calm = true }
	od
}

ltl granted { [] ((calm && state[2] == WAITING && (stands & 4) != 0) -> <> (holds[2] || state[2] == GONE)) }
