/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lock asks the store for. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_LOCK_H
#define DLOCKFS_ENGINE_LOCK_H

#include "engine/state.h"

/* How soon to send again what there was no memory for; what met a lost connection while the session
 * seems well; and what the store refused. */
enum { RETRY_MEMORY_MS = 100, RETRY_SOON_MS = 100, RETRY_LATER_MS = 1000 };

/* Whether anything is of this host that ends with the session. */
static inline bool engine_holds(const struct engine *engine)
{
	return engine->holders > 0 || engine->tenant.held > 0;
}

/* Notes that something has failed and is to be sent again after so long. */
void engine_retry_in(struct engine *engine, int64_t delay_ms);

/* Whether locks may be granted now: the session is known to live and the store answers. */
bool engine_may_grant(const struct engine *engine);

/* The same for who grants at once if so; if not, it is asked again when that has changed. */
bool engine_try_grant(struct engine *engine);

/* Whether the log may tell that the store refused something: whoever is refused may ask again at
 * once. */
bool lock_may_log(const struct lock *lock, const char *what, int error);

/* Whether the store has all these abilities. If not, the log tells. */
bool lock_has_abilities(const struct lock *lock, unsigned abilities);

/* Notes that something failed and is to be tried again, and tells so unless it was a lost
 * connection: "PATH: WHAT: why; trying again". */
void lock_retry_after(struct lock *lock, const char *what, int error);

/* Whether it is to be asked for on_changed(). */
bool handoffs_want_attention(const struct lock *lock);

/* Whether one of its claims is looked for in the next list. */
bool lock_has_uncertain(const struct lock *lock);

/* Asks the store for the queue of the lock, unless that is under way. */
void lock_list(struct lock *lock);

/* The number of the first list that will be sent from now on, which is asked for. */
uint64_t lock_list_anew(struct lock *lock);

/* Whether what is known of the queue is enough to grant anything. */
bool lock_is_sure(const struct lock *lock);

/* A claim of the lock has ended unbeknown to its host: a moratorium of the lock (moratorium.h). */
void lock_begin_moratorium(struct lock *lock);

/* Whether it lasts. If so, the lock's claims are looked at again when it is over. */
bool lock_in_moratorium(const struct lock *lock);

/* Whether a list has shown that a watched claim is gone before its watch has told: which may say
 * that its host has not heard of that. */
bool lock_has_ends_to_hear(const struct lock *lock);

/* The lock of that path; NULL: it is not in use. */
struct lock *lock_find(const struct engine *engine, const char *path);

/* Frees the lock if nothing needs it. */
void lock_free_if_unused(struct lock *lock);

/* The open file has lost a lock: answers its proofs. */
void proofs_lose_file(const struct owner *file);

/* Ends a proof that is not under way. */
void proof_end(struct proof *proof);

/* Answers whoever asked. If the store has not answered yet, the proof goes when it does. */
void proof_answer(struct proof *proof, int error, uint64_t token);

#endif
