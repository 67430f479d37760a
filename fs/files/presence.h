/* SPDX-License-Identifier: Apache-2.0
 *
 * This host among those of a store: an entry for each session, which ends with it
 * (claim/host_entry.h), and how many such entries there are.
 *
 * The entry is written when a session begins, when another process goes on with it, and when a
 * reload, or a drain, has changed what it says. So a host that does nothing sends nothing for it.
 * The entries are counted behind that, and when somebody looks at the number and it is old: who
 * looks again sees it.
 *
 * Only in a store that other hosts see and that has entries which end with a session
 * (STORE_HAS_FILES): not in local, nor in Redis.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_PRESENCE_H
#define DLOCKFS_FILES_PRESENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "engine/engine.h"
#include "stores/store.h"

struct presence; /* of one store */

/* What the entry says. */
struct presence_host {
	const struct config *config;
	size_t store;	   /* its number there */
	const char *name;  /* of the host */
	const char *peers; /* NULL: it does not listen to others */
	bool drains;	   /* engine_drain() */
};

/* Both stay the caller's, the store until it is closed. `is_told`: it is a store as above. NULL:
 * out of memory. */
struct presence *presence_create(struct engine *engine, struct store *store, bool is_told);

/* To be called when the store is closed. NULL is fine. */
void presence_destroy(struct presence *presence);

/* Whether it is known which hosts the store has. */
bool presence_is_told(const struct presence *presence);

/* Does what is due. */
void presence_advance(struct presence *presence, const struct presence_host *host, int64_t now_ms);

/* When presence_advance() is needed, unless something happens to the session; INT64_MAX: never. */
int64_t presence_due_ms(const struct presence *presence);

/* The host may be another one. */
void presence_reload(struct presence *presence, const struct presence_host *host);

/* How many hosts of the store there are, this one included; -1: it is not known. If that is old, it
 * is asked for, so that the next call knows. */
int64_t presence_count(struct presence *presence);

/* Why the entry could not be written, as an error below 0; 0: it could, or is yet to be. */
int presence_error(const struct presence *presence);

#endif
