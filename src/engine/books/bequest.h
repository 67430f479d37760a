/* SPDX-License-Identifier: Apache-2.0
 *
 * Hand-over by message: whoever releases a lock tells the host of the next claim, its *heir*, while
 * the store is still being told. The order of claims is in the store already; what the heir waits
 * for is one word of the host in front of it.
 *
 *   store          R, C ------------------------------ R goes, if C stands ---- C
 *   R's host   holds | release: journal, then both at once
 *                    |---- bequeath(R, C) ---->
 *                    '---- tell: C, R is released ---.
 *   C's host   ask: tell C of the end of R .. waits  '-- holds, whatever the store still lists
 *
 * The rule
 *
 * 1. A claim that waits for a rival whose data name a peer (claim/data.h) asks that host to be
 * told.
 * 2. When its holder releases a claim R for which somebody has asked less than a session timeout
 *    before, R's host chooses one heir C, and writes that into its books. Who asked earlier may be
 *    gone with its session, and R would then keep everybody out by rule 4. Behind the journal's
 * commit it tells C's host, and asks the store to *bequeath* R: to take R away if C stands then, in
 * one transaction (stores/store.h).
 * 3. C's host lets C pass R from then on; no other claim. C is held as soon as every claim in front
 *    that conflicts has gone, or is one that C may pass. R stays in the books until the store does
 *    not list it any more.
 * 4. If R stands and C does not, R stays in the store until C's host has said that C is over, which
 *    is told of R again and again; or for a session timeout and what it takes to tell holders, by
 *    the clock of R's host. Then R is withdrawn. So long R keeps claims of its own host out, too,
 *    that stand behind C, though that host's queue has R no more (bequest_lets_hold()).
 * 5. A message names R, and with it all claims of the lock, ENGINE_TOLD_MAX at most, that R's host
 *    knows to be bequeathed: those that R itself has passed, and its own that have not left yet. C
 *    may pass them as well. So if R's host dies before its withdrawal arrives, not only C goes on
 *    but also those who come behind C; whoever is told of too few waits for the store.
 * 6. If C is handed on to a claim of its own host, C is bequeathed to that one likewise, which may
 *    pass what C has passed.
 *
 * Why nobody else holds what C does
 *
 * - Who has released does not hold, and never will by that claim. Its name is given once: it has 60
 *   random bits of a session, drawn anew for each session of each host, and a number that counts
 *   that session's claims (claim/name.h). So what is said of a claim stays true for ever. A message
 *   that is late, doubled or out of order says nothing wrong; one about a claim that this host does
 *   not know says nothing; nor does one that comes from another store, or from the time before a
 *   store was wiped or restored. A message that is lost leaves what there was without it.
 * - In front of C nobody holds: each claim there that conflicts has gone, or was released.
 * - Behind C nobody holds who conflicts with C, while C stands: that one would wait for C's end.
 * C's own host says so only after C was released; and the session that C ends with is that of C's
 * own host, whose lease C is held by, as always. It owes nothing to that of R's host.
 * - There remains that somebody deletes C by hand, while C's host has not heard of it. That may
 *   happen before R has gone, and then a grant by the store rests on more: the end of R is told in
 *   the order of the store, behind the end of C (settle.c: is_shown()). No word from outside of the
 *   store can show as much, since a server that is behind shows C as it was. So it is shown the
 *   other way round: R is in the way of all others until it has gone, and it goes in the very
 *   transaction that finds C standing. So C stood when R went, though its host learns that later;
 *   and nobody can have been let in by the end of C before. From then on C is the first, and what
 *   is said of a first claim that somebody deletes goes for C too (etc/doc/safety.md).
 * - If that transaction does not find C, R keeps everybody else out for as long as C's host may
 *   believe in C. If that is R's own host, it makes a list at once, which shows that C has gone.
 *   Another host has C watched (overseer.h) when it holds by that; whatever proves to it that its
 *   session lives, and was sent after C had gone, comes behind the end of C. So the host has heard
 *   of that, or holds by a lease that counts from before, which is over in time (rule 4). That
 *   holds if no host has a longer session timeout, as with a moratorium (moratorium.h).
 * - So R must be in the way of everybody that C is in the way of: what is bequeathed is exclusive
 *   and of the whole file. So is the heir: what one reader may pass, those beside it may not.
 * - Services that are set back, or whose root is made anew, let nobody in for a session timeout
 *   (moratorium.h), longer than C's lease, which counts from before. And once the host has heard of
 *   it, its session is over, and C's name with it: nothing is granted by a word about former
 * claims.
 * - A fencing token is the store's: C's is made by a change of C that is asked for after the grant,
 *   R's was told before the release. So C's is greater.
 * - Order: C passes only what stands in front of it, and everybody else passes nothing.
 *
 * What is not bequeathed, but withdrawn as always: what was lost, broken, or outlived its longest
 * time, since its holder may go on; what is held as the daemon stops; what has a marker, by
 * lock_delay or min_hold, which other hosts read together with the claim; what is shared, or one of
 * several slots, where the one in front is not in the way of all; locks with record locks, where
 * claims go before others; claims of curator-any, which are two znodes; and whatever is released
 * while there is no connection, as the session may be about to end. A claim that is kept, or rests,
 * is not released yet.
 *
 * A restart between telling and withdrawing: the books were committed before anything was told, and
 * say that R leaves, and to whom. The next process asks the store the same. Who had asked is
 * forgotten, as is what may be passed: that costs time only.
 *
 * What is not covered: that somebody deletes C, and R then goes by other means than rule 2, since
 * its host is lost or stops at that moment, or somebody deletes R, too, all before C's host hears
 * of the first. Nor that somebody deletes a claim behind C that may pass R by rule 5 or 6, after C
 * has gone as it should and before R has: R's host is told that C is over, and knows of no other.
 * That takes a withdrawal of C that overtakes R's, and a host that hears of R before it hears of
 * the end of its own claim. Where the store tells such ends (-EOWNERDEAD), a moratorium of the lock
 * is left for both.
 *
 * Off on a host that does not listen (engine_set_peers()), and where the store cannot bequeath.
 * Then none of this costs anything. For the engine's own files; loop thread only.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_BEQUEST_H
#define DLOCKFS_ENGINE_BOOKS_BEQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "claim/name.h"
#include "engine/books/events.h"

struct claim;
struct lock;
struct rival;

/* Of a claim of ours: who is to have the lock next. In lock->bequests. */
struct bequest {
	struct bequest *prev, *next;
	struct claim *claim;
	char heir[CLAIM_NAME_BYTES]; /* of any host, our own too */
	struct engine_peer asker;    /* who has asked for that one, if `asked` */
	bool asked;
	bool made;	  /* the claim leaves, and the heir may have it; else it may come to that */
	bool bars;	  /* a claim of this host waits for the end of that */
	int64_t asked_ms; /* when somebody asked last */
	int64_t until_ms; /* the heir was not found: not withdrawn before; 0: it was not missed */
	int64_t again_ms; /* and its host is told once more, */
	unsigned words;	  /* after so many times */
};

/* The claim waits for the rival: asks its host, unless that was asked for this claim, or cannot be.
 */
void bequest_ask(struct claim *claim, struct rival *rival);

/* Somebody has asked to be told of the end of the claim, for one of that name. The last in the
 * queue is the heir: it has asked last, as it has seen that nobody is between, or that those have
 * gone. What is no name in this store is ignored. Out of memory nothing is noted. */
void bequest_note_asked(struct claim *claim, const char *heir, const struct engine_peer *asker);

/* A HELD claim, which stands in the queue, is about to be withdrawn, as its holder has released it:
 * chooses the heir, if there is one, and tells that one's host. */
void bequest_make(struct claim *claim);

/* Whether the claim has passed, or may pass, what still stands in front of it. O(queue). */
bool bequest_passes(const struct claim *claim);

/* Whether nobody may hold, behind whom the claim stands, by what this host has bequeathed: an heir
 * in front that the queue does not show may be one that somebody has taken away. Else the claim is
 * judged anew once that is known. */
bool bequest_lets_hold(const struct claim *claim);

/* The claims of these names are released, for the claim: lets it pass them. Unknown ones, and what
 * is not bequeathed, are ignored. */
void bequest_inherit(struct claim *claim, const char *const *names, size_t count);

/* A claim of ours that leaves has no heir any more, if that was the one of that name. Returns
 * whether it was. */
bool bequest_disclaim(struct claim *claim, const char *heir);

/* bequeath() was answered by -ESTALE. */
void bequest_note_missing(struct claim *claim);

/* The heir of a claim that leaves; NULL: it has none, or that one's time is over. *ret_held_back:
 * nothing is to be sent yet. */
const char *bequest_heir(struct claim *claim, bool *ret_held_back);

/* As another process has saved it: the heir of a claim that leaves. Returns 0, -ENOMEM, or -EINVAL:
 * no claim has that name. */
int bequest_restore(struct claim *claim, const char *heir);

/* The claim has gone. */
void bequest_end(struct claim *claim);

#endif
