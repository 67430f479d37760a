/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books as text, and what of them has changed. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_SAVE_H
#define DLOCKFS_ENGINE_SAVE_H

#include "engine/state.h"

/* The words for states and kinds, by their numbers; of states, what they are once the connection is
 * lost. */
extern const char *const engine_state_words[CLAIM_LEAVING + 1];
extern const char *const engine_kind_words[LOCK_KIND_RECORD + 1];

/* What is written of it has changed: for the journal. Called by who sets a member. */
void engine_mark(struct engine *engine);
void lock_mark(struct lock *lock);
void owner_mark(struct owner *owner);
void claim_mark(struct claim *claim);
void wish_mark(struct wish *wish);

/* It is about to be freed. */
void engine_unmark(struct engine *engine, struct state_item *item);

#endif
