/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's tenant: a module above the engine that has names of its own on the servers, which
 * end with the engine's session (lockfile/lockfiles.h). It shares the engine's store, session,
 * lease, outbox and list of decisions, and uses their headers. The engine knows nothing of it but
 * this table and these two numbers.
 *
 * The tenant stands above, not below: it needs most of what the engine has for its claims, and the
 * engine needs only to tell when something has changed. An engine without a tenant has one that
 * does nothing: no call of the table is behind a condition.
 *
 * Loop thread only. All functions get the tenant's context. None calls the engine but by the
 * headers of its modules; none is called from within another one.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_TENANT_H
#define DLOCKFS_ENGINE_BOOKS_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/journal.h"

struct engine;
struct state_reader;
struct watcher;

/* Takes the path of a name that a heartbeat is to show; false: there is no room for it. */
typedef bool tenant_show(void *to, const char *path);

struct tenant_kind {
	/* The session is over. What was asked before, and was not sent, is forgotten. The tenant
	 * notes what its callers have lost (decisions_add_news()). */
	void (*lose_session)(void *context);

	/* There is a connection, or grants are allowed, or it is time to try again: sends and tells
	 * what can be. */
	void (*resume)(void *context);

	/* Time has passed: deals with what is due. And when something is due next, INT64_MAX if
	 * nothing is. */
	void (*end_time)(void *context);
	int64_t (*deadline)(const void *context);

	/* The store's on_read() and on_watched() for a watcher of the tenant. */
	void (*watch_read)(void *context, struct watcher *watcher, const char *text);
	void (*watch_ended)(void *context, struct watcher *watcher, int error);

	/* Calls `show` for each name that no heartbeat has shown in that round, until there is no
	 * room. Returns whether there was room for all. */
	bool (*show_names)(void *context, uint32_t round, tenant_show *show, void *to);

	/* A heartbeat has missed the path. Returns whether that is a name of the tenant. */
	bool (*missed)(void *context, const char *path);

	/* Visits the tenant's books; whether the word of a line is of them, and reading such a
	 * line: 0, -EINVAL or -ENOMEM. */
	void (*visit)(void *context, const struct state_visit *visit);
	bool (*has_word)(const char *word);
	int (*restore)(void *context, struct state_reader *in);

	/* For tests: aborts if the books contradict themselves. */
	void (*check_invariants)(const void *context);

	/* Frees the context. The store does not answer any more. */
	void (*destroy)(void *context);
};

/* In struct engine. */
struct tenant {
	const struct tenant_kind *kind;
	void *context;
	size_t held;   /* names that end with the session */
	size_t wanted; /* changes of names that are not decided */
};

/* Of an engine without one. */
extern const struct tenant_kind tenant_none;

#endif
