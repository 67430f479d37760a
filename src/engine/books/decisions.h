/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers are to be told. It is noted while the books change, and told by engine.c when they
 * are in order again. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_DECISIONS_H
#define DLOCKFS_ENGINE_BOOKS_DECISIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/store.h"

struct engine;
struct engine_conflict;

/* Of the engine. */
struct decisions {
	struct decision *list;
	size_t count, capacity;
	bool lost; /* a loss was noted, and on_told() has not come yet */
};

enum decision_kind {
	DECIDED, /* on_decided() */
	TESTED,	 /* on_tested() */
	PROVED,	 /* on_proved() */
	LOST,	 /* on_lost() */
	REVOKED, /* on_revoked() */
	HOLD,	 /* on_hold() */
	NEWS,	 /* the tenant's */
};

/* Something is to be told of the cookie, behind what was noted before. Without memory for it, all
 * of that is told at once: a callback does not call the engine. */
void decisions_add(struct engine *engine, enum decision_kind kind, void *cookie, int result);

/* The same for the answers to a test, whose conflict may be NULL, and to a proof. */
void decisions_add_test(struct engine *engine, void *cookie, int error,
			const struct engine_conflict *conflict);
void decisions_add_proof(struct engine *engine, void *cookie, int error, uint64_t token);

/* The same for news of the tenant: `news` gets its context, and the subject, which is the tenant's.
 * `lost`: something is lost by what it tells. */
typedef void decision_tell(void *context, void *subject, int result);
void decisions_add_news(struct engine *engine, decision_tell *news, void *subject, int result,
			bool lost);

/* Tells everything that was noted, and then by on_told() that all losses have been. */
void decisions_tell(struct engine *engine);

/* The proof that everybody has been told who was to be told of a loss; NULL: not yet, or not all.
 * There is no other way to have one. */
const struct store_told *decisions_told(const struct engine *engine);

/* The same for what ends everything, such as the session: NULL also while anything is held. */
const struct store_told *decisions_told_all(const struct engine *engine);

#endif
