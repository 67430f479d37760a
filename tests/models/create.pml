/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: that a claim may have been placed is a state of its own. It ends with a list that is made
 * after a sync, in which the claim is found by its id or was not placed. So what is held stands, no
 * claim stands for ever that nobody knows, and a claim that another session of this host has left
 * is somebody else's.
 *
 * Where: src/engine/inbox.c (place_failed(), resolve_uncertain()), src/engine/merge.c (admit()),
 * claim_start_over() of src/engine/books/claim.c, place.c and list.c of the stores.
 *
 * Abstracted: one host and one caller, who locks, gives up, and unlocks again and again. Who else
 * is in the queue is the model queue.pml. Ids are two, and one is taken again when nothing of it is
 * left. That a claim of an unknown id is withdrawn (withdraw_ghost()) is not needed here.
 *
 * Messages: with a connection, a request or its answer is lost; a request that was under way may be
 * carried out later, until something is answered that was asked for after a sync over the next
 * connection. They keep their order, and are not doubled.
 *
 * Clocks: none. Sessions are lost at any time, and their claims go at any time after that. That the
 * holder is told before is the model restart.pml.
 *
 * Liveness: a claim that nobody knows goes.
 *
 * Mutants:
 *   -DTAKEN_FOR_SUCCESS  held_stands  an answer that got lost counts as success
 *   -DTAKEN_FOR_FAILURE  known        an answer that got lost counts as failure
 *   -DUNSYNCED           known        the list comes from a server that is behind
 *   -DDROPS_ABANDONED    known        a caller that gives up leaves its claim without looking for it
 *   -DTAKES_FORMER       held_stands  a claim of a former session is found by its id, and taken
 */
mtype = { WANTED, PLACING, UNCERTAIN, ABANDONED, QUEUED, HELD };

mtype state = WANTED;
bit id;			/* of the claim */
bool under_way[2];	/* its request, by id */
bool stands[2];
bool is_former[2];	/* it is of a session that is over */
byte sessions;		/* that were lost */

#define is_known(number) (number == id && state != WANTED)
#define is_free(number) (!under_way[number] && !stands[number])
#define is_mine(number) (stands[number] && !is_former[number])

inline start_over()
{
	state = WANTED;
	id = 1 - id
}

active proctype Host()
{
end:	do
	:: atomic { state == WANTED && is_free(id) -> state = PLACING; under_way[id] = true; is_former[id] = false }
	:: atomic { state == WANTED && !is_free(id) && is_free(1 - id) -> id = 1 - id }
	:: atomic { state == PLACING && stands[id] -> state = QUEUED } /* answered */
	:: atomic { state == PLACING -> /* the connection is lost */
#if defined(TAKEN_FOR_SUCCESS)
		state = QUEUED
#elif defined(TAKEN_FOR_FAILURE)
		start_over()
#else
		state = UNCERTAIN
#endif
	   }
	:: atomic { state == UNCERTAIN ->
#ifdef DROPS_ABANDONED
		start_over()
#else
		state = ABANDONED
#endif
	   }
#ifdef UNSYNCED
	:: atomic { state == UNCERTAIN || state == ABANDONED -> start_over() }
#endif
	/* The list, after a sync. */
	:: atomic { state == UNCERTAIN && !under_way[id] ->
		if
#ifdef TAKES_FORMER
		:: stands[id] -> state = QUEUED
		:: !stands[id] -> start_over()
#else
		:: is_mine(id) -> state = QUEUED
		:: !is_mine(id) -> start_over()
#endif
		fi
	   }
	:: atomic { state == ABANDONED && !under_way[id] ->
		stands[id] = stands[id] && is_former[id]; start_over() }
	:: atomic { state == QUEUED -> state = HELD;
		assert(is_mine(id)) /* held_stands */
	   }
	:: atomic { state == QUEUED || state == HELD -> stands[id] = false; start_over() } /* withdrawn */
	:: atomic { sessions < 2 -> sessions++; /* the session is lost */
		is_former[0] = stands[0] || under_way[0]; is_former[1] = stands[1] || under_way[1];
#ifdef TAKES_FORMER
		state = (state == WANTED -> WANTED : UNCERTAIN)
#else
		start_over()
#endif
	   }
	od
}

active proctype Service()
{
end:	do
	:: atomic { under_way[0] -> under_way[0] = false; stands[0] = true }
	:: atomic { under_way[1] -> under_way[1] = false; stands[1] = true }
	:: atomic { under_way[0] && !(id == 0 && state == PLACING) -> under_way[0] = false }
	:: atomic { under_way[1] && !(id == 1 && state == PLACING) -> under_way[1] = false }
	od
}

/* Ends sessions that are over. */
active [2] proctype Sessions()
{
	bit number = _pid % 2;
end:	do
	:: atomic { is_former[number] && (stands[number] || under_way[number]) ->
		under_way[number] = false; stands[number] = false; is_former[number] = false }
	od
}

ltl known { [] ((stands[0] && !is_known(0)) -> <> (!stands[0] || is_known(0))) }
