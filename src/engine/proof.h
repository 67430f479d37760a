/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what is held still is, and tokens. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_PROOF_H
#define DLOCKFS_ENGINE_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct lock;
struct owner;
struct proof;

/* Of the engine. */
struct proofs {
	uint32_t round; /* of heartbeats: each brings along claims that had no turn in it */
	size_t max;	/* see engine_set_proofs_max() */
};

/* As engine_prove(). */
int proof_begin(struct owner *file, bool token, void *cookie, struct proof **ret_proof);

/* Sends the lock's proofs that can be. */
void proofs_resume(struct lock *lock);

/* Whether one of them waits for a list. */
bool proofs_need_list(const struct lock *lock);

/* Nothing will be heard of those that were sent. */
void proofs_forget_sent(struct lock *lock);

/* The open file is closed: its proofs end without an answer. */
void proofs_forget_file(const struct owner *file);

/* Sends a heartbeat, which brings along some claims. */
void engine_send_beat(struct engine *engine);

/* The store has answered a part of the proof, as on_proved() says. */
void proof_note_answer(struct proof *proof, int error, int64_t stamp);

#endif
