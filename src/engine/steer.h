/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks holders for their locks, or takes them away. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_STEER_H
#define DLOCKFS_ENGINE_STEER_H

#include "engine/state.h"

/* Watches claims that are held, for what others write into their data. */
void engine_oversee(struct engine *engine);

/* The data of a claim that is overseen has been read, which was changed so often. */
void orders_read(const struct claim *orders, const char *text, uint32_t version);

/* Our own change of the claim's data, which was to take the place of `version`, has been made; or
 * has not, because others had changed it before: it is not changed again until that was read. */
void claim_note_change(struct claim *claim, uint32_t version);
void claim_note_stale(struct claim *claim, uint32_t version);

/* Watches a claim for what others write into its data, unless that is done already or there is no
 * connection. */
void claim_oversee(struct claim *claim);

/* Reads the data of a claim that is to be read, unless that is under way. */
void claim_read_orders(struct claim *claim);

/* Writes into the data of a foreign claim that waits and was read, `text`, that it is to be queued
 * again behind the claim of that number. Returns false when out of memory. */
bool claim_send_back(struct claim *claim, int32_t behind);

/* Such a watch is over; error 0: because the claim is gone. */
void orders_end(const struct claim *orders, int error);

#endif
