/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books as text, and what of them has changed. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_SAVE_H
#define DLOCKFS_ENGINE_BOOKS_SAVE_H

#include "engine/books/claim.h"
#include "engine/books/events.h"
#include "journal/fields.h"
#include "journal/journal.h"

/* Of the engine: where its books are kept. */
struct saving {
	struct state_journal *journal; /* NULL: nowhere */
	const struct engine_transfer *transfer;
	uint64_t place; /* the first number of its items' places */
};

/* The words for states and kinds, by their numbers; of states, what they are once the connection is
 * lost. */
extern const char *const engine_state_words[CLAIM_LEAVING + 1];
extern const char *const engine_kind_words[LOCK_KIND_RECORD + 1];

/* Numbers that leave room for what is added to them. */
#define SAVE_TIME_MAX_MS  (INT64_MAX / 2)
#define SAVE_HANDOFFS_MAX ((uint64_t)1 << 55)

/* The members that are saved as they are. */
extern const struct field engine_fields[], engine_lock_fields[], engine_owner_fields[],
	engine_wish_fields[], engine_handoff_fields[], engine_place_fields[];

/* Tells the journal that something has changed which save.c writes of the struct. Whoever sets such
 * a member calls this. */
void engine_mark(struct engine *engine);
void lock_mark(struct lock *lock);
void owner_mark(struct owner *owner);
void claim_mark(struct claim *claim);
void wish_mark(struct wish *wish);

/* Visits all items of the engine, in the order of their lines. */
void save_visit(struct engine *engine, struct state_visit each);

/* The struct that has the item is about to be freed. */
void engine_unmark(struct engine *engine, struct state_item *item);

#endif
