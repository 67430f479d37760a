/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers ask for. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_WISH_H
#define DLOCKFS_ENGINE_WISH_H

#include "engine/state.h"

/* Notes who asks in which way. */
void wish_note_caller(struct wish *wish, const struct engine *engine, enum lock_kind kind,
		      const struct engine_caller *caller);

/* It is asked for from now on, until its limit. */
void wish_ask(struct wish *wish, bool waits, void *cookie);

/* It is over: nobody is to be told any more, and its limit is cleared. */
void wish_end(struct wish *wish);

/* While the store cannot be reached, wishes that wait do so for a limited time. */
void wish_limit(struct wish *wish);

/* Sets the timer, for which there is room, or clears it. */
void wish_set_timer(struct wish *wish, int64_t due_ms);
void wish_clear_timer(struct wish *wish);

#endif
