/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers are to be told. It is noted while the books change, and told by engine.c when they
 * are in order again. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_DECISIONS_H
#define DLOCKFS_ENGINE_DECISIONS_H

#include "engine/state.h"

enum decision_kind {
	DECIDED, /* on_decided() */
	TESTED,	 /* on_tested() */
	PROVED,	 /* on_proved() */
	LOST,	 /* on_lost() */
	REVOKED, /* on_revoked() */
};

/* Something is to be told of the cookie, behind what was noted before. Without memory for it, all
 * of that is told at once: a callback does not call the engine. */
void decisions_add(struct engine *engine, enum decision_kind kind, void *cookie, int result);

/* The same for the answers to a test, whose conflict may be NULL, and to a proof. */
void decisions_add_test(struct engine *engine, void *cookie, int error,
			const struct engine_conflict *conflict);
void decisions_add_proof(struct engine *engine, void *cookie, int error, uint64_t token);

/* Tells everything that was noted. */
void decisions_tell(struct engine *engine);

#endif
