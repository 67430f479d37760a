/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose claims are: an open file's, or a process's with record locks. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_OWNER_H
#define DLOCKFS_ENGINE_BOOKS_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/books/events.h"
#include "engine/books/term.h"
#include "journal/journal.h"

struct claim;
struct engine;
struct wish;

struct owner {
	struct state_item item; /* owner_mark() */
	struct lock *lock;
	void *cookie;
	bool lost;
	enum engine_loss loss; /* why; not kept for the next process */
	bool is_process;       /* owner_records() */
	uint32_t number;       /* in the ids of its claims */
	struct term term;      /* of what is locked next; of a process: nothing */
	struct wish *wishes;   /* that ask, linger, or were granted what it holds */
	uint64_t granted;      /* the number of the latest grant to it */
	uint64_t token_grant;  /* the latest grant that its token is younger than; 0: it has none */
	uint64_t token;
};

/* Visit the wishes of an owner; the visited one may leave the list where _SAFE says so. */
#define OWNER_FOREACH(owner, wish) DL_FOREACH2 ((owner)->wishes, wish, owner_next)
#define OWNER_FOREACH_SAFE(owner, wish, following)                                                 \
	DL_FOREACH_SAFE2 ((owner)->wishes, wish, following, owner_next)

/* For the ids of the claims of one more owner, or process: never CLAIM_OWNER_NONE. */
uint32_t owner_next_number(struct engine *engine);

/* Whose the claim is: its holder's; while it waits, the one's who asks by its first wish. NULL:
 * nobody's. */
struct owner *owner_of(const struct claim *claim);

/* The same where it comes to claims other than of record locks: one that is handed on is nobody's
 * while it waits. */
struct owner *owner_side(const struct claim *claim);

/* Whether a and b are one when it comes to conflicts; NULL, nobody, is one with nobody. */
bool owners_same_side(const struct owner *a, const struct owner *b);

/* Whether a claim is a flock that a process took over. */
bool owner_took_over(const struct claim *claim);

/* Whether the claim's owner, or who is one with it, holds something of the lock. */
bool owner_side_holds(const struct claim *claim);

/* The claim that the open file holds by open or flock, but for that one; NULL: there is none. */
struct claim *owner_held_but(const struct owner *owner, const struct claim *claim);

/* The owner has been granted something just now. */
void owner_note_grant(struct owner *owner);

#endif
