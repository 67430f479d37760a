/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers ask for. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_WISH_H
#define DLOCKFS_ENGINE_BOOKS_WISH_H

#include "base/timers.h"
#include "claim/data.h"
#include "engine/books/events.h"
#include "engine/books/grace.h"
#include "journal/journal.h"

struct claim;
struct lock;

/* A call that is not decided; the wish that a claim was granted to stays with that. */
struct wish {
	struct timer timer;  /* its limit; of one that lingers, or is kept: the end of that; of a
				holder's: the end of the longest time (term.h) */
	struct owner *owner; /* NULL: the owner has released the claim, which is kept */
	struct claim *claim;
	struct wish *prev, *next;	      /* in claim->wishes */
	struct wish *owner_prev, *owner_next; /* in owner->wishes */
	void *cookie;
	struct state_item item; /* wish_mark() */
	int64_t since_ms;	/* when it was asked for; of a holder's: when it was granted */
	struct wish *age_prev, *age_next; /* in one of engine->ages, while it asks, or is held */
	int pid;			  /* of the caller */
	uint32_t uid;
	uint64_t serial : 56; /* the order of asking */
	uint64_t kind : 2;    /* enum lock_kind */
	uint64_t grace : 2;   /* enum grace, of one that may not wait */
	uint64_t waits : 1;   /* it may wait */
	uint64_t asked : 1;   /* it waits for its decision; cookie is set */
};

/* The details of the caller, which stand behind the wish. */
static inline void *wish_details(const struct wish *wish)
{
	return (void *)(wish + 1);
}

static inline struct engine_caller wish_caller(const struct wish *wish)
{
	return (struct engine_caller){
		.pid = wish->pid,
		.uid = wish->uid,
		.details = wish_details(wish),
	};
}

/* A wish of the owner at the end of the claim's list, which does not ask yet. The caller may be
 * NULL: its members are to be filled in. NULL: out of memory. */
struct wish *wish_create(struct claim *claim, struct owner *owner, enum lock_kind kind,
			 const struct engine_caller *caller);

/* Takes the wish out of all lists and frees it, without a decision. */
void wish_free(struct wish *wish);

/* Moves the wish to the end of another claim's list. */
void wish_move(struct wish *wish, struct claim *claim);

/* The wish is granted: it goes to the head of its claim's list, and asks no more. */
void wish_put_first(struct wish *wish);

/* The wish is the owner's from now on; NULL: nobody's. */
void wish_set_owner(struct wish *wish, struct owner *owner);

/* The wish asks from now on, until its limit. */
void wish_ask(struct wish *wish, bool waits, void *cookie);

/* The wish asks no more, and its limit is cleared. */
void wish_end(struct wish *wish);

/* Sets the limit of a wish that waits: there is one only while the store cannot be reached. */
void wish_limit(struct wish *wish);

/* Sets the wish's timer, for which there is room, or clears the timer. */
void wish_set_timer(struct wish *wish, int64_t due_ms);
void wish_clear_timer(struct wish *wish);

/* The text of who asked for the wish. */
void wish_describe(const struct wish *wish, char text[ENGINE_TEXT_BYTES]);

/* The caller in words, for logs: claim_data_words(). Returns `words`. */
const char *wish_words(const struct wish *wish, char words[CLAIM_DATA_WHO_BYTES]);

/* The data of the wishes' claim; NULL: out of memory. To be freed. */
char *wish_format_data(const struct claim *claim);

#endif
