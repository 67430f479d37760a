/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: once the quorum has answered a proof, and then the same member a keep-alive that was sent
 * after that answer, the leader, and each one that comes after it, counts the lease from when the
 * proof was sent, or later. So the lease ends before that.
 *
 * Where: src/stores/etcd/lease.h; etcd_lease_note_proof(), etcd_lease_send_sign() and
 * etcd_lease_note_sign() of lease.c.
 *
 * Abstracted: one proof stands for all. Whether the lessor of a term counts from the proof or later
 * is one bit. A member goes by the latest term that it knows; who leads that renews in its own
 * lessor, others ask the leader that they know. A lease that a leader has found to be over is not
 * in it, nor what lease.h names as not covered.
 *
 * Messages may be late without bound, lost, and overtake one another; the client asks one thing at
 * a time of a member, and two members of the three. A keep-alive that was passed on to a leader waits
 * there for any time.
 *
 * Clocks: none. Members may stand still at any time, for any time; another one may be elected at
 * any time, by a majority of three, of which the former leader, and the client's member, need not
 * hear.
 *
 * Mutants:
 *   -DNO_PROOF      proven  a keep-alive alone renews the lease
 *   -DEARLY_SIGN    proven  the keep-alive may have been sent before the proof was answered
 *   -DANY_MEMBER    proven  another member may answer the keep-alive
 *   -DSERIALIZABLE  proven  a member answers the proof by itself
 *   -DCHECKPOINT    proven  a new leader goes on with what was left of the lease
 */
#define MEMBERS 3
#define TERMS 3
#define NOBODY MEMBERS

byte term;		/* the latest; */
byte leader[TERMS];	/* of each: a member, at first 0 */
byte knows[MEMBERS];	/* the latest term that it knows */
bool counts[TERMS];	/* its lessor does so from the proof, or later */

bool sent;		/* the proof */
byte proof_by = NOBODY;	/* who has answered it */
bool asks_proof[MEMBERS]; /* under way */
bool proves[MEMBERS];	/* its answer is */
bool asks_sign[MEMBERS];
bool asks_lead[MEMBERS]; /* passed on, to whoever it then was: */
byte lead[MEMBERS];
bool signs[MEMBERS];	/* the answer is under way */
bool counted[MEMBERS];	/* the keep-alive was sent when the proof was answered */
bool proven;

inline conclude(member)
{
	proven = true;
	assert(counts[term]) /* proven */
}

active [MEMBERS] proctype Member()
{
	byte who;
end:	do
	/* The leader of the latest term has heard from a majority since the proof was sent. */
	:: atomic { asks_proof[_pid] &&
#ifndef SERIALIZABLE
		knows[_pid] == term &&
#endif
		!proven -> asks_proof[_pid] = false; proves[_pid] = true }
	:: atomic { asks_sign[_pid] && !proven -> asks_sign[_pid] = false;
		if
		:: leader[knows[_pid]] == _pid ->
			counts[knows[_pid]] = counts[knows[_pid]] || sent; signs[_pid] = true
		:: else -> asks_lead[_pid] = true; lead[_pid] = knows[_pid]
		fi
	   }
	:: atomic { asks_lead[_pid] && leader[knows[leader[lead[_pid]]]] == leader[lead[_pid]] && !proven ->
		who = knows[leader[lead[_pid]]];
		counts[who] = counts[who] || sent;
		asks_lead[_pid] = false; lead[_pid] = 0; signs[_pid] = true; who = 0
	   }
	:: atomic { asks_lead[_pid] && !proven -> asks_lead[_pid] = false; lead[_pid] = 0 } /* it fails */
	:: atomic { knows[_pid] < term && !proven -> knows[_pid]++ }
	:: atomic { term < TERMS - 1 && !proven -> /* elected, by itself and another one */
		term++; leader[term] = _pid; knows[_pid] = term;
#ifndef CHECKPOINT
		counts[term] = sent;
#endif
		if
		:: knows[(_pid + 1) % MEMBERS] = term
		:: knows[(_pid + 2) % MEMBERS] = term
		fi
	   }
	od
}

active [2] proctype Client()
{
	byte member = _pid - MEMBERS;
end:	do
	:: atomic { !asks_proof[member] && !proves[member] && proof_by == NOBODY && !proven ->
		asks_proof[member] = true; sent = true }
	:: atomic { proves[member] && !proven -> proves[member] = false; proof_by = member }
	:: atomic { !asks_sign[member] && !asks_lead[member] && !signs[member] && !proven ->
		asks_sign[member] = true;
#ifdef EARLY_SIGN
		counted[member] = true
#elif defined(ANY_MEMBER)
		counted[member] = (proof_by != NOBODY)
#elif defined(NO_PROOF)
		counted[member] = sent; proof_by = (sent -> member : proof_by)
#else
		counted[member] = (proof_by == member)
#endif
	   }
	:: atomic { signs[member] && !proven -> signs[member] = false;
		if
		:: counted[member] && proof_by != NOBODY -> conclude(member)
		:: else
		fi;
		counted[member] = false
	   }
	od
}
