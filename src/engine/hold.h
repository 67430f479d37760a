/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds: locks that outlive the session of who took them, until somebody gives them back. For the
 * engine's own files; engine_hold() is in engine/engine.h.
 *
 * A claim that may become a hold says so in its name (claim/name.h) from the first. While it is
 * held, its holder may have it turned into a hold (stores/store.h: hold()): an entry that ends with
 * no session, in the same place of the queue. To everybody, also to clients that know nothing of
 * dlockfs, the hold is a claim that stands where the former one stood, and is in the way of what
 * that one was in the way of.
 *
 * What hold() of a claim of this host, which is held, comes to:
 *
 *   done        its caller is told, the claim is no more, and the hold is a rival
 *   refused     its caller is told, and the claim is held as before
 *   ambiguous   hold() once more
 *   no claim    a list tells: there is a hold with its order, it was done; or the holder has lost
 *
 * And when the claim of another host, which may become a hold, has gone, nothing is granted before
 * a list.
 *
 * Why nobody is granted what a hold is in the way of. Claims of a lock never come in front of
 * others, so whoever waits may walk on, when one in front has gone, along the list that it knows. A
 * hold is the exception: it takes the place of a claim that has gone. Both happen in one
 * transaction. So a list that is made after that claim has gone shows the hold, and nothing is
 * granted between the end of a claim that may become a hold and such a list: on_watched() of
 * inbox.c for those of other hosts, and here for this host's own. A list that came without the end
 * shows one of the two. Claims of that kind are never bequeathed by message (books/bequest.h), and
 * never handed on.
 *
 * A holder who releases while hold() is under way may leave a hold behind, or not: here, too, a
 * list comes first.
 *
 * An order is given once. So an entry that is not the claim, and has its order, is its hold; only
 * Curator gives another claim the number of its own.
 *
 * A hold counts by its name, whatever its data say: anybody may write there, as Curator's Revoker
 * does. The data say whose it is, and for how long.
 *
 * The time of a hold. A host that knows a hold counts from when it has read those data first, by
 * its own clock: no clock of another host counts, and a hold stands at least for its time, from
 * when its data were written. A daemon that is restarted, or has lost its session, counts anew.
 * When the time is over it takes the hold away, if the data are still those that it has read
 * (outlast()): whoever writes a new time there is not overtaken. Each hold in a queue that this
 * host has listed is watched for that, also if nobody here waits any more; where no host ever asks
 * for the lock, the hold stands in nobody's way.
 *
 * Loop thread only.
 */
#ifndef DLOCKFS_ENGINE_HOLD_H
#define DLOCKFS_ENGINE_HOLD_H

#include <stdbool.h>

struct claim;
struct lock;
struct rival;

/* The store lists the rival, which may be a hold. */
void hold_note_listed(struct rival *rival);

/* The data of the rival, which may be a hold, were read. */
void hold_note_read(const struct rival *rival);

/* Takes holds away whose time is over, and asks for the time when the next one's is. */
void hold_resume(struct lock *lock);

/* A claim of ours that stands: sends what it wants sent to become a hold. */
void hold_send(struct claim *claim);

/* hold() was answered. */
void hold_answered(struct claim *claim, int error);

/* Whether a claim of ours that is HELD, and is not in a list that has just come, and was taken out
 * of the queue, has become a hold. If so, its caller is told, and the claim is freed. */
bool hold_explains(struct claim *claim);

/* Somebody else tells that the claim of ours, which is HELD, has gone: whether it may have become a
 * hold. A list will tell. */
bool hold_may_explain(const struct claim *claim);

#endif
