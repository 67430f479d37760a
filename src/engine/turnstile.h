/* SPDX-License-Identifier: Apache-2.0
 *
 * How claims get in where several may hold a lock (engine/books/slots.h): whom one that waits
 * watches, and the number that it gets. For the engine's own files.
 *
 * Who is told. A claim of ours that waits is tied to the nearest in front that lacks a number; if
 * that is a rival, it is watched, and nobody else is: before it has a number, or has gone, nobody
 * behind it is granted. So who waits does not hear of who holds, and a grant is news for one claim
 * behind. Once the nearest in front has its number, the claim is the next one, and watches all that
 * hold: some of these it has watched before, for an earlier claim of this host. There are N of them
 * at most, but many more may be known that have gone unheard; then a list is made, once for each
 * such nearest one. So a hand-over costs each host that has somebody waiting a read or two, and at
 * most a list, whatever N is and however many wait.
 */
#ifndef DLOCKFS_ENGINE_TURNSTILE_H
#define DLOCKFS_ENGINE_TURNSTILE_H

struct claim;
struct place;
struct rival;

/* The rival that the claim, which is blocked by the blocker, waits for, or one of those; NULL: it
 * waits for claims of this host. */
struct rival *turnstile_rival(const struct claim *claim, struct place *blocker);

/* The rival whose release may be on its way, and let the claim in; NULL: those of this host alone
 * leave no room. */
struct rival *turnstile_releasing(const struct claim *claim, struct place *blocker);

/* The claim waits for a rival: watches those in front that it is to hear of. */
void turnstile_watch(const struct claim *claim);

/* Nothing is in the way of the claim: gives it its number, unless it needs none, or has one. */
void turnstile_number(struct claim *claim);

/* The claim is granted: who is tied to it waits for those that hold from now on. */
void turnstile_let_in(struct claim *claim);

/* The data of the rival have been read: warns if its host lets in another number. */
void turnstile_compare(const struct rival *rival);

#endif
