/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom in a cycle. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_RECORDS_DEADLOCK_H
#define DLOCKFS_ENGINE_RECORDS_DEADLOCK_H

#include "engine/books/state.h"

/* Whether the claim's owner waits for itself, by others who came earlier. Reads rivals that
 * have to be known first: then the claim is judged again. */
bool deadlock_closes_cycle(struct claim *claim);

#endif
