/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lock asks the store for. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_LOCK_H
#define DLOCKFS_ENGINE_BOOKS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "claim/name.h"
#include "engine/books/events.h"

struct claim;
struct engine;
struct lock;
struct lock_policy;

/* The lists of a lock's queue, and what is known by them. They have numbers, from 1. */
struct listing {
	bool under_way;	     /* a list() is, */
	bool synced;	     /* which shows everything that happened before it was sent */
	bool read_since;     /* the latest one was sent: data of a rival */
	uint64_t sent, done; /* so many of them */
	uint64_t wanted;     /* nothing is granted before that list; 0: there was none */
	bool mixed;	     /* there were claims of another recipe, or of other slots */
	int64_t behind;	     /* turnstile.c: made because of the place of that order, the latest */

	/* Once it is known, the queue has every claim of an order up to known_to that exists:
	 * claims in front can go, but never come. It is known only while a claim of ours stands in
	 * it (an empty queue's orders may restart). */
	bool known;
	int64_t known_to;
};

/* A lock's on_changed(), which the store is asked for with a list, or a place(). */
struct attention {
	bool expected;	/* it will tell of the next change of the queue; */
	bool unchanged; /* and would have told of every one since a list that is known */
	bool asked;	/* the list that is under way asks for it */
	bool duel; /* the latest list that came with a claim had one rival's besides, and no more */
	const struct claim *claim; /* whose place() asks for it; or NULL */
};

/* Why what is known of a lock's queue may not be so any more. */
struct doubts {
	bool missing;	 /* one of our claims is gone: which, the next list shows */
	bool taken_over; /* from another process: a server may know less of it than we do */
	bool unseen; /* the store has not listed it since it is connected: with what was in front
			of a claim of ours, that may be gone too */
};

/* Of the engine: whether anything is granted. */
struct grants {
	bool stopping; /* nothing is any more */
	bool draining; /* nothing new is (drain.h) */
	bool barred;   /* something waits because nothing might be: lock_try_grant() */
};

/* How soon to send again what there was no memory for; what met a lost connection while the session
 * seems well; and what the store refused. */
enum { RETRY_MEMORY_MS = 100, RETRY_SOON_MS = 100, RETRY_LATER_MS = 1000 };

/* Notes that something has failed and is to be sent again after so long. */
void lock_retry_in(struct engine *engine, int64_t delay_ms);

/* Whether locks may be granted now: the session is known to live and the store answers. */
bool lock_may_grant(const struct engine *engine);

/* Whether locks may be granted now, for a caller that grants at once if so. If not, settle.c looks
 * at what waits as soon as they may. */
bool lock_try_grant(struct engine *engine);

/* Another host is seen to be configured otherwise for the lock. Whether that is new: it is noted
 * until lock_forget_mixture(), or as long as the lock stays in use. */
bool lock_note_mixture(struct lock *lock);
void lock_forget_mixture(struct lock *lock);

/* Whether the log may tell that the store refused something: whoever is refused may ask again at
 * once. */
bool lock_may_log(const struct lock *lock, const char *what, int error);

/* Whether the lock is taken in that mode: where several may hold it, there are exclusive locks of
 * the whole file alone. If not, the log tells. */
bool lock_is_taken_so(const struct lock *lock, enum lock_kind kind, enum claim_mode mode);

/* Whether the store has all these abilities. If not, the log tells. */
bool lock_has_abilities(const struct lock *lock, unsigned abilities);

/* Notes that something failed and is to be tried again, and tells so unless it was a lost
 * connection: "PATH: WHAT: why; trying again". */
void lock_retry_after(struct lock *lock, const char *what, int error);

/* Whether the store is to be asked for the lock's on_changed(). */
bool lock_wants_attention(const struct lock *lock);

/* Whether a claim of the lock is looked for in the next list. */
bool lock_has_uncertain(const struct lock *lock);

/* Asks the store for the queue of the lock, unless that is under way. */
void lock_list(struct lock *lock);

/* The number of the first list that will be sent from now on, which is asked for. */
uint64_t lock_list_anew(struct lock *lock);

/* Whether what is known of the queue is enough to grant anything. */
bool lock_is_sure(const struct lock *lock);

/* A claim of the lock has ended, and its host may not know. A moratorium of the lock begins
 * (moratorium.h). */
void lock_begin_moratorium(struct lock *lock);

/* Whether the moratorium of the lock lasts. If so, its claims are judged again when that is over.
 */
bool lock_in_moratorium(const struct lock *lock);

/* Whether a list has shown that a watched claim is gone before its watch has told: which may say
 * that its host has not heard of that. */
bool lock_has_ends_to_hear(const struct lock *lock);

/* The lock of that path; NULL: it is not in use. */
struct lock *lock_find(const struct engine *engine, const char *path);

/* Finds or makes the lock, which gets the policy unless it is in use. NULL: out of memory. */
struct lock *lock_open(struct engine *engine, const char *path, const struct lock_policy *policy);

/* Frees the lock if nothing needs it. */
void lock_free_if_unused(struct lock *lock);

#endif
