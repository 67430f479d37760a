/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves and restores the first lines of the state (takeover.h): of the process, its stores, and the
 * numbers that were given out. Loop thread only, or before the loop begins.
 */
#ifndef DLOCKFS_RESTART_TAKEOVER_PROCESS_H
#define DLOCKFS_RESTART_TAKEOVER_PROCESS_H

#include "journal/fields.h"
#include "restart/takeover.h"

/* A store of the former process. */
struct takeover_store {
	char *prefix;
	struct store_url url;
	int64_t session_timeout_ms;
	enum store_acl acl;
	struct shard_former former; /* with the session */
};

extern const struct field takeover_number_fields[]; /* struct takeover_numbers */

void takeover_process_save(const struct filesystem *filesystem,
			   const struct takeover_process *process, FILE *out);

/* Writes the line of a shard's store. The item is shard->store_item. */
void takeover_store_save(const struct state_item *item, FILE *out);

/* Read the first line, and the line of one more store. Return 0; or -errno, with a line in the
 * reader's `why`. */
int takeover_process_read(struct takeover *takeover);
int takeover_store_read(struct takeover *takeover);

/* Frees what both have read. */
void takeover_process_finish(struct takeover *takeover);

#endif
