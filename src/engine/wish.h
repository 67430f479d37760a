/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers ask for. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_WISH_H
#define DLOCKFS_ENGINE_WISH_H

#include "engine/state.h"

/* A wish of the owner at the end of the claim's list, which does not ask yet. The caller may be
 * NULL: its members are to be filled in. NULL: out of memory. */
struct wish *wish_create(struct claim *claim, struct owner *owner, enum lock_kind kind,
			 const struct engine_caller *caller);

/* Takes the wish out of all lists and frees it, without a decision. */
void wish_free(struct wish *wish);

/* Moves the wish to the end of another claim's list. */
void wish_move(struct wish *wish, struct claim *claim);

/* The wish is granted: it goes to the head of its claim's list, and asks no more. */
void wish_lead(struct wish *wish);

/* The wish is the owner's from now on; NULL: nobody's. */
void wish_set_owner(struct wish *wish, struct owner *owner);

/* It is asked for from now on, until its limit. */
void wish_ask(struct wish *wish, bool waits, void *cookie);

/* It asks no more, and its limit is cleared. */
void wish_end(struct wish *wish);

/* While the store cannot be reached, wishes that wait do so for a limited time. */
void wish_limit(struct wish *wish);

/* Sets the timer, for which there is room, or clears it. */
void wish_set_timer(struct wish *wish, int64_t due_ms);
void wish_clear_timer(struct wish *wish);

#endif
