/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom in a cycle. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_DEADLOCK_H
#define DLOCKFS_ENGINE_DEADLOCK_H

#include "engine/state.h"

/* Whether the claim's owner waits for itself, by others who came earlier. Reads rivals that
 * have to be known first: then the claim is judged again. */
bool claim_closes_cycle(struct claim *claim);

/* The claim that is to look next (queue_seek()), if there is time for that; else NULL. */
struct claim *engine_next_seeker(struct engine *engine);

/* When there is time again for who is to look; INT64_MAX: nobody is. */
int64_t engine_seeking_deadline(const struct engine *engine);

#endif
