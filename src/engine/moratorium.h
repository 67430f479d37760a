/* SPDX-License-Identifier: Apache-2.0
 *
 * The moratorium: a time in which nothing is granted, as somebody may hold what the store does not
 * show any more. So it is when the service has gone back to an earlier state, as after its data
 * were restored from a backup, and where its root was made anew: claims that were granted before
 * are gone, but their holders do not know it until their leases end. A lease counts from a time
 * before the service was stopped, and lasts for a session timeout at most; the moratorium, for as
 * long, from when the service answered again. That holds if no host has a longer session timeout.
 *
 *   service   ---- stops ---- set back, answers ------------------------
 *   holder    held ----------------------- lease ends: told
 *   others                    | moratorium of a session timeout | granted
 *
 * For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_MORATORIUM_H
#define DLOCKFS_ENGINE_MORATORIUM_H

#include "engine/state.h"

/* As on_moratorium() of the store. */
void engine_begin_moratorium(struct engine *engine, enum store_moratorium why, int64_t until_ms);

/* Whether it lasts. */
bool engine_in_moratorium(const struct engine *engine);

/* Ends it, if its time is over. */
void engine_end_moratorium(struct engine *engine);

/* When engine_end_moratorium() is needed; INT64_MAX if it is not. */
int64_t engine_moratorium_deadline(const struct engine *engine);

#endif
