/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of others, and watches. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_RIVAL_H
#define DLOCKFS_ENGINE_RIVAL_H

#include "engine/state.h"

/* A claim of somebody else, in no list. NULL: out of memory. */
struct claim *rival_create(struct lock *lock, const char *name, const struct claim_name *parts);

/* The claim of somebody else that has the name, in a list; NULL: there is none. */
struct claim *rival_find(const struct place *list, const char *name);

/* Frees a claim of somebody else that is in no list. */
void rival_free(struct claim *claim);

/* Asks the store for the data of a foreign claim and for its end, unless that is done already. */
void rival_watch(struct claim *claim);

/* Notes what the data of a foreign claim say. Returns 0 or -ENOMEM. */
int rival_note_data(struct claim *claim, const char *text);

/* Writes into the data of a foreign claim that waits and was read, `text`, that it is to be queued
 * again behind the claim of that number. Returns false when out of memory. */
bool rival_send_back(struct claim *claim, int32_t behind);

/* Watches a claim for what others write into its data, unless that is done already or there is no
 * connection. */
void claim_oversee(struct claim *claim);

/* Reads the data of a claim that is to be read, unless that is under way. */
void claim_read_orders(struct claim *claim);

/* Our own change of the claim's data, which was to take the place of `version`, has been made; or
 * has not, because others had changed it before: it is not changed again until that was read. */
void claim_note_change(struct claim *claim, uint32_t version);
void claim_note_stale(struct claim *claim, uint32_t version);

/* The data of a claim of ours have been read in that version. A server that is behind shows what is
 * known already. */
void claim_note_version(struct claim *claim, uint32_t version);

#endif
