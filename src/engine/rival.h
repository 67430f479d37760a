/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of others, and watches. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_RIVAL_H
#define DLOCKFS_ENGINE_RIVAL_H

#include "engine/state.h"

/* A rival in no list. NULL: out of memory. */
struct rival *rival_create(struct lock *lock, const char *name, const struct claim_name *parts);

/* The rival in the list that has the name; NULL: there is none. */
struct rival *rival_find(const struct place *list, const char *name);

/* Frees a rival that is in no list. */
void rival_free(struct rival *rival);

/* Whether a rival may turn out to be no claim when it is read: others than dlockfs may have put
 * something else there under such a name. */
bool rival_may_be_none(const struct rival *rival);

/* Asks the store for the data of a rival and for its end, unless that is done already. */
void rival_watch(struct rival *rival);

/* Notes what the data of a rival say, in that version. Returns 0 or -ENOMEM: then they are not
 * known. */
int rival_note_data(struct rival *rival, const char *text, uint32_t version);

/* The data may have changed since they were read. */
void rival_forget_data(struct rival *rival);

/* Writes into the data of a rival that waits and was read, `text`, that it is to be queued again
 * behind the claim of that number. Returns false when out of memory. */
bool rival_send_back(struct rival *rival, int64_t behind);

/* Watches a claim for what others write into its data, unless that is done already or there is no
 * connection. */
void claim_oversee(struct claim *claim);

/* Reads the data of a claim that is to be read, unless that is under way. */
void claim_read(struct claim *claim);

/* Our own change of the claim's data, which was to take the place of `version`, has been made; or
 * has not, because others had changed it before: it is not changed again until that was read. */
void claim_note_change(struct claim *claim, uint32_t version);
void claim_note_stale(struct claim *claim, uint32_t version);

/* The data of a claim of ours have been read in that version. A server that is behind shows what is
 * known already. */
void claim_note_version(struct claim *claim, uint32_t version);

#endif
