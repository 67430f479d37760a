/* SPDX-License-Identifier: Apache-2.0
 *
 * The session and its lease. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_SESSION_H
#define DLOCKFS_ENGINE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "stores/store.h"

struct claim;
struct engine;
struct lock;

/* Nothing is known of the store yet. */
void session_begin_silence(struct engine *engine);

/* A write that was sent at that time is acknowledged. */
void session_acknowledged(struct engine *engine, int64_t sent_ms);

/* Whether something is held, and its lease has ended; and what follows: the session is given up,
 * and what is held is lost. */
bool session_lease_is_over(const struct engine *engine);
void session_fence(struct engine *engine);

/* Sends a heartbeat if one is due. */
void session_beat(struct engine *engine);

/* Sends a touch() if one is due. */
void session_touch(struct engine *engine);

/* Nudges a store that does not answer, or has no connection. */
void session_nudge_silent(struct engine *engine);

/* Makes the next one due at once. */
void session_hurry_beat(struct engine *engine);

/* When the lease, the next heartbeat or a silence needs engine_advance(); INT64_MAX if none does.
 */
int64_t session_deadline(const struct engine *engine);

/* Whether a list would tell something that is waited for. */
bool session_needs_list(const struct lock *lock);

/* As on_session() of the store. */
void session_changed(struct engine *engine, enum store_session session, int64_t timeout_ms);

/* The engine ends, and the session with it: everything is lost. Nothing is sent from now on. */
void session_lose_all(struct engine *engine);

/* A heartbeat is answered: as on_proved() says. */
void session_beaten(struct engine *engine, int error, const char *missing);

/* Sends everything that the lock's claims want sent and that is not under way. */
void session_resume_lock(struct lock *lock);

#endif
