/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of claims that wait. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_SETTLE_H
#define DLOCKFS_ENGINE_SETTLE_H

#include "engine/books/state.h"

/* The last thing in every entry to the engine: judges the claims whose blocker may be another one
 * now (engine->changed), one after the other, and tells who is concerned as soon as one is dealt
 * with. */
void settle_changed(struct engine *engine);

/* The same where the entry was about one lock, or about all: those that nothing needs are freed. */
void settle_lock(struct lock *lock);
void settle_all(struct engine *engine);

#endif
