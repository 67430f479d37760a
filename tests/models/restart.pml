/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: a caller that was told of a lock holds it for the next process, too; the books that this
 * finds know of everything that was sent to the store; nothing that frees a claim leaves before who
 * loses by it was told; and each request is answered, wherever the daemon is killed.
 *
 * Where: src/engine/books/outbox.c, decisions.h and save.h; answers_send() of
 * fs/handles/answers.c; fs/restart/takeover.h; session_fence() of src/engine/session.c.
 *
 * Abstracted: one caller that locks and unlocks one lock with nobody else in its queue, one claim
 * at a time. A turn of the loop is: something changes the books, the journal is committed, answers
 * go out, the store is sent what waits. The daemon may be killed before each of these.
 *
 * Messages to the store, and its answers, are late by any time; with a connection they are lost,
 * carried out or not. Answers to the kernel are sent again by the next process: the kernel ignores
 * an answer that nobody waits for.
 *
 * Clocks: none. The lease may end at any time while the lock is held.
 *
 * Liveness: a caller is answered once no daemon is killed any more.
 *
 * Mutants:
 *   -DANSWER_FIRST    told_is_kept  answers go out before the commit
 *   -DSEND_FIRST      sent_is_kept  the store is sent something before the commit
 *   -DRENEW_FIRST     told_first    the session is given up before the holder was told
 *   -DFREES_KILLED    told_first    the next process gives a session up that the books have a holder of
 *   -DDROPS_ANSWERS   answered      answers are not in the journal
 *   -DTRUSTS_SENT     answered      the next process takes what was sent for done, and waits for it
 */
mtype = { IDLE, ASKS, HOLDS, UNLOCKS };		 /* the caller */
mtype = { NONE, PLACING, HELD, LEAVING };	 /* the claim, in the books */
mtype = { NOTHING, GRANTED, RELEASED };		 /* an answer */
mtype = { PLACE, WITHDRAW };			 /* what is sent */
mtype = { CHANGES, COMMITS, ANSWERS, SENDS };	 /* what the daemon does next */

mtype caller = IDLE;
mtype books = NONE, answer = NOTHING, outbox = NOTHING, next = CHANGES;
mtype kept_books = NONE, kept_answer = NOTHING; /* in the journal */
mtype under_way = NOTHING;   /* to the store */
mtype told_by_store = NOTHING; /* from it */
bool stands;		     /* the claim, in the store */
bool is_over;		     /* the lease, of what is held */
byte kills;

inline tell()
{
	if
	:: answer == GRANTED && caller == ASKS -> caller = (is_over -> IDLE : HOLDS)
	:: answer == RELEASED && caller == UNLOCKS -> caller = IDLE
	:: else
	fi;
	answer = NOTHING
}

inline send()
{
	if
	:: outbox != NOTHING -> under_way = outbox; outbox = NOTHING
	:: else
	fi
}

inline free()
{
	assert(caller != HOLDS); /* told_first */
	stands = false
}

inline carry_out()
{
	if
	:: under_way == PLACE -> stands = true; told_by_store = PLACE
	:: under_way == WITHDRAW ->
		free(); told_by_store = WITHDRAW
	fi;
	under_way = NOTHING
}

active proctype Caller()
{
end:	do
	:: caller == IDLE -> caller = ASKS
	:: atomic { caller == HOLDS -> caller = UNLOCKS }
	od
}

active proctype Store()
{
end:	do
	:: atomic { under_way != NOTHING && told_by_store == NOTHING -> carry_out() }
	od
}

inline commit()
{
	kept_books = books;
#ifndef DROPS_ANSWERS
	kept_answer = answer
#endif
}

/* Another process goes on: requests to the store are looked for, or sent again. */
inline take_over()
{
	if
	:: under_way != NOTHING -> carry_out()
	:: under_way = NOTHING
	fi;
	told_by_store = NOTHING; outbox = NOTHING;
	books = kept_books; answer = kept_answer; next = COMMITS;
	assert(caller != HOLDS || books == HELD); /* told_is_kept */
	assert(!stands || books != NONE); /* sent_is_kept */
	tell();
#ifndef TRUSTS_SENT
	if
	:: books == PLACING && stands -> books = HELD; answer = GRANTED
	:: books == PLACING && !stands -> outbox = PLACE
	:: books == LEAVING -> outbox = WITHDRAW
	:: else
	fi;
#endif
#ifdef FREES_KILLED
	free()
#endif
}

active proctype Daemon()
{
end:	do
	:: atomic { next == CHANGES && !is_over && caller == ASKS && books == NONE ->
		books = PLACING; outbox = PLACE; next = COMMITS }
	:: atomic { next == CHANGES && told_by_store == PLACE ->
		told_by_store = NOTHING; books = HELD; answer = GRANTED; next = COMMITS }
	:: atomic { next == CHANGES && !is_over && caller == UNLOCKS && books == HELD ->
		books = LEAVING; answer = RELEASED; outbox = WITHDRAW; next = COMMITS }
	:: atomic { next == CHANGES && told_by_store == WITHDRAW ->
		told_by_store = NOTHING; books = NONE; next = COMMITS }
	:: atomic { next == COMMITS -> next = ANSWERS;
#if defined(ANSWER_FIRST)
		tell()
#elif defined(SEND_FIRST)
		send()
#else
		commit()
#endif
	   }
	:: atomic { next == ANSWERS -> next = SENDS;
#if defined(ANSWER_FIRST) || defined(SEND_FIRST)
		commit()
#endif
#ifndef ANSWER_FIRST
		tell()
#endif
	   }
	:: atomic { next == SENDS -> next = CHANGES; send() }

	/* The lease is over: the holder is told, and then the session is given up. */
	:: atomic { next == CHANGES && books == HELD && !is_over -> is_over = true }
#ifndef RENEW_FIRST
	:: atomic { next == CHANGES && is_over && (caller == HOLDS || caller == UNLOCKS) -> caller = IDLE }
	:: atomic { next == CHANGES && is_over && caller != HOLDS && caller != UNLOCKS ->
#else
	:: atomic { next == CHANGES && is_over ->
#endif
		free(); books = NONE; is_over = false; next = COMMITS }
	:: atomic { kills < 2 -> kills++; take_over() }
	od
}

ltl answered { [] ((caller == ASKS || caller == UNLOCKS) -> <> (caller == HOLDS || caller == IDLE)) }
