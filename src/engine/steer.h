/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks holders for their locks, or takes them away. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_STEER_H
#define DLOCKFS_ENGINE_STEER_H

#include "engine/books/state.h"

/* Watches claims that are held, for what others write into their data. */
void steer_oversee(struct engine *engine);

/* The data of a claim that is overseen has been read, which was changed so often; or (NULL) has to
 * be read anew, and it is not known meanwhile whether the claim stands. */
void steer_watch_read(const struct rival *overseer, const char *text, uint32_t version);

/* The claim is held for as long as it may be: its holder has lost it. */
void steer_expire(struct claim *claim);

/* Such a watch is over; error 0: because the claim is gone. */
void steer_watch_ended(struct rival *overseer, int error);

#endif
