/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch of a claim of ours, for what others write into its data (steer.c), and which version of
 * that is known. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_OVERSEER_H
#define DLOCKFS_ENGINE_OVERSEER_H

#include <stdint.h>

struct claim;

/* Watches a claim for what others write into its data, unless that is done already or there is no
 * connection. */
void overseer_set(struct claim *claim);

/* Reads the data of a claim that is to be read, unless that is under way. */
void overseer_read_stale(struct claim *claim);

/* Our own change of the claim's data, which was to take the place of `version`, has been made; or
 * has not, because others had changed it before: it is not changed again until that was read. */
void overseer_note_change(struct claim *claim, uint32_t version);
void overseer_note_stale(struct claim *claim, uint32_t version);

/* The data of a claim of ours have been read in that version. A server that is behind shows what is
 * known already. */
void overseer_note_version(struct claim *claim, uint32_t version);

#endif
