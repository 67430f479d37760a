/* SPDX-License-Identifier: Apache-2.0
 *
 * The session and its lease. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_SESSION_H
#define DLOCKFS_ENGINE_SESSION_H

#include "engine/state.h"

/* Nothing is known of the store yet. */
void engine_begin_silence(struct engine *engine);

/* A write that was sent at that time is acknowledged. */
void engine_proved_alive(struct engine *engine, int64_t sent_ms);

/* Judges the lease: fences what is held if it has ended. */
void engine_judge_lease(struct engine *engine);

/* Sends a heartbeat if one is due. */
void engine_beat(struct engine *engine);

/* Sends a read in idle time if one is due. */
void engine_touch(struct engine *engine);

/* Nudges a store that does not answer, or has no connection. */
void engine_mind_silence(struct engine *engine);

/* When engine_mind_silence() is needed; INT64_MAX if it is not. */
int64_t engine_silence_deadline(const struct engine *engine);

/* Makes the next one due at once. */
void engine_hurry_beat(struct engine *engine);

/* When the lease or the next heartbeat needs engine_advance(); INT64_MAX if neither does. */
int64_t engine_lease_deadline(const struct engine *engine);

/* Whether a list would tell something that is waited for. */
bool lock_needs_list(const struct lock *lock);

/* The list in which a claim's cycle is to be seen again; 0: it is not in one. */
uint64_t claim_cycle_list(const struct claim *claim);

void engine_on_session(void *context, enum store_session session, int64_t timeout_ms);

/* As on_touched(). */
void engine_on_touched(void *context, int error);

/* A heartbeat is answered: as on_proved() says. */
void engine_beaten(struct engine *engine, int error, const char *missing);

/* Sends everything that the lock's claims want sent and that is not under way. */
void lock_resume(struct lock *lock);

#endif
