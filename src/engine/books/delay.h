/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_delay: after its holder was lost, nobody is granted a lock for a time, because requests that
 * the holder has sent may still be on their way (Burrows, The Chubby lock service, 2006, 2.4).
 *
 *   holder's host   place ── mark ── grant ···························· withdraw with the marker
 *                                          session over: the claim goes, the marker stays
 *   other hosts               list shows the orphan ──── lock_delay ──── withdraw ── next grant
 *
 * The marker (stores/store.h: mark()) stands before the grant is told, so a claim that goes without
 * it was never held, or was released. An orphan stands in the queue in the place of its claim and
 * is in the way of what the claim was in the way of. The delay is counted by the clock of the host
 * that waits, from when that host saw the orphan, which is after the loss: no clock of another host
 * counts. A host that comes late cannot know since when the orphan is one, and waits for all of the
 * delay. Who has waited takes the orphan away.
 *
 * Where nobody waits, an orphan would stay for ever. So a host that lost a session, or saw a holder
 * of its own lose the claim, lists the lock even if nobody asks for it any more, and takes the
 * orphan away as if it had waited. What a daemon leaves that does not come back, engine_clear()
 * takes away (fs/files/shard.c). A host that sets no delay takes orphans away after the longest one
 * that another host may have set. But if the name of the claim has a least time (term.h), it heeds
 * what that leaves as if it had set that.
 *
 * Where a lock has a least time (term.h), an orphan stays for the rest of that, too. An orphan
 * whose age is asked for is in the way of calls that wait; those that do not wait for the answer
 * before they are refused.
 *
 * Unclean is every end of a held claim that its holder did not ask for: the session is over, for
 * whatever reason, somebody took the claim away (dlockctl break), or the daemon stops while the
 * holder lives: it is fenced, but what it has sent is on its way as after any other loss. A claim
 * that is kept has no holder, and leaves no orphan then.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_DELAY_H
#define DLOCKFS_ENGINE_BOOKS_DELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claim;
struct lock;
struct place;
struct rival;
struct store_entry;

/* The marker of a claim in the store. */
struct marker {
	bool asked : 1;	     /* perhaps it stands */
	bool stands : 1;     /* it does */
	bool marking : 1;    /* mark() is under way */
	bool broken : 1;     /* the claim is LEAVING: it was held, and taken away */
	uint32_t connection; /* session.connections when it was asked for first */
};

/* Of a lock. */
struct losses {
	size_t broken; /* claims that were taken away: nothing is granted before they have left */
	uint64_t orphans_list;	 /* the list that will show what lost holders have left, once */
	uint64_t former_session; /* of claim ids: the latest that was lost with a claim of ours that
				    may leave an orphan; 0: none was */
	int64_t moratorium_ms;	 /* nothing is granted before that time (moratorium.h) */
};

/* Whether the claim, which nobody is in the way of, can be held: its marker stands, or it needs
 * none. Asks for the marker. */
bool delay_lets_hold(struct claim *claim);

/* A holder of this host is all that the claim waits for: asks for its marker early. If the session
 * is lost before the holder releases, that holder is lost, too. */
void delay_prepare(struct claim *claim);

/* mark() was answered. */
void delay_marked(struct claim *claim, int error);

/* The store lists the claim, somebody else's, as an orphan. */
void delay_note_orphan(struct rival *rival);

/* age() was answered, but not by -ENOENT. */
void delay_note_age(struct rival *rival, int error, int64_t age_ms);

/* Whether the orphan is about to go, or it is not known yet for how long it stays. */
bool delay_may_be_over(const struct rival *rival);

/* For how long the orphan stays; 0: its time is over. */
int64_t delay_left_ms(const struct rival *orphan);

/* Who stood in the place may have been lost: nothing is granted before a list shows whether an
 * orphan stands there. */
void delay_look(const struct place *place);

/* A claim of ours that is held is taken away: its withdrawal leaves an orphan. To be called before
 * that. */
void delay_break(struct claim *claim);

/* The withdrawal is done. */
void delay_broken(struct claim *claim);

/* Takes away orphans whose delay is over, and asks for the time when the next one's is. Lists the
 * lock if it is to be known whether there are any. */
void delay_resume(struct lock *lock);

/* The session is over. To be called while the lock still has the claims of it. */
void delay_lose_session(struct lock *lock);

/* A list has come, and is noted; or an error. */
void delay_listed(struct lock *lock, int error, const struct store_entry *entries, size_t count);

/* The daemon stops: who holds now has not released, and never will. */
void delay_stop(struct lock *lock);

#endif
