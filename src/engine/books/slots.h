/* SPDX-License-Identifier: Apache-2.0
 *
 * How many may hold a lock at once (lock_policy.slots), and which of its slots each has. For the
 * engine's own files; these functions only look. What follows from them is in engine/turnstile.h.
 *
 * A claim is held when fewer than N claims that conflict with it stand in front. An exclusive lock
 * is the case N = 1: the nearest such claim is in the way. Where N is more, all claims are
 * exclusive ones of the whole file.
 *
 * Numbers. When nobody is in its way any more a claim takes a slot: the smallest number from 0 on
 * that no claim in front of it has. It writes that into its data (claim/data.h), and keeps the
 * number until it goes. Then it is granted, once its marker stands, where it needs one (delay.h).
 * Such a claim has "slots=" in its data from the first, so that others know that it will have a
 * number; and no claim is granted before each of that kind in front of it has a number, which was
 * read. So no two claims that are held have the same number. Of any two, the one behind chose when
 * it had read the number of the one in front, which never changes; or the one in front had gone
 * from the queue, and its holder had released or was told of the loss before that. The write itself
 * need not be waited for: whoever stands behind waits until it can be read. Fewer than N stand in
 * front, so one of the numbers below N is free.
 *
 * A claim that rests (term.h) is held, and has its number. An orphan (delay.h) takes room, and its
 * number is nobody else's: that is in the marker, which was written after the number was taken. So
 * an orphan whose claim was not read with its number is in the way until its marker is read; or if
 * that cannot be read, because the servers do not let this host, until the delay is over.
 *
 * A host that hangs. Where a claim waits there that nobody is in the way of any more, nobody behind
 * it is granted, though slots are free, until it is withdrawn or its session is over: all free
 * slots are closed for that time, not one of them, as an exclusive lock is where the next holder
 * hangs. Whoever passed it would have to know which number it takes when its host goes on, which
 * may be any of those that came free by then. That could be decided by the servers, if its number
 * were written only where nobody had sent it back in its data meanwhile (as settle.c does), and the
 * answer to that write were awaited: a round trip more in every hand-over, to be quicker by a
 * session timeout at most, where a host hangs.
 *
 * Whether a claim takes a number follows from the claim, not from what its host is configured to
 * by now: one that was placed without "slots=" (by another client, or a host where N is 1) takes
 * room, but no number, and nobody waits for that. Hosts that differ in N each let in by their own,
 * in the order of the queue.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_SLOTS_H
#define DLOCKFS_ENGINE_BOOKS_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct claim;
struct lock;
struct place;

/* So many may hold the lock at once; and whether that is more than one. */
int64_t slots_count(const struct lock *lock);
bool slots_are_several(const struct lock *lock);

/* Whether the claim in that place is to have a number, and has none yet, as far as is known; or it
 * is this host's, has one, and is not granted yet. */
bool slots_lack_number(const struct place *place);

/* Whether a claim that conflicts with one behind it is in the way of that: it takes the last slot,
 * with the *taken that stand nearer, or lacks a number. Counts it. */
bool slots_are_taken(int64_t *taken, const struct place *front);

/* The smallest number that no claim in front has. */
uint32_t slots_smallest_free(const struct claim *claim);

/* The number of the claim in that place; -1: it has none. */
int slots_number(const struct place *place);

#endif
