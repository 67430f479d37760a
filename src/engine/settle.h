/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of claims that wait. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_SETTLE_H
#define DLOCKFS_ENGINE_SETTLE_H

#include "engine/state.h"

/* Grants, refuses or blocks every unsettled claim. Last thing in every entry to the engine. */
void engine_settle(struct engine *engine);

/* The same at the end of an entry that is about one lock, which is freed if nothing needs it. */
void lock_settle(struct lock *lock);

#endif
