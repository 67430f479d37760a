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

/* A question whether what was locked through an open file is still held. */
struct proof {
	struct lock *lock;
	struct proof *prev, *next; /* in lock->proofs */
	struct owner *file;	   /* NULL: nobody wants to know any more */
	void *cookie;
	bool wants_token;
	size_t under_way;     /* prove() is, so many times, */
	int64_t sent_ms;      /* since then; */
	int error;	      /* the first of their answers that was none of success, */
	int64_t stamp;	      /* and the number of the change, if there was one */
	uint64_t list_wanted; /* the list that comes before it is sent (again) */
	uint64_t granted;     /* the latest grant when it was sent */
	uint32_t doubts;      /* and how many doubts there were by then */
	uint32_t changes;     /* the number of the claim that it changes, and its version then */
	uint32_t version;
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

/* The open file has lost a lock: answers its proofs. */
void proofs_lose_file(const struct owner *file);

/* Sends a heartbeat, which brings along some claims. */
void proofs_send_beat(struct engine *engine);

/* The store has answered a part of the proof, as on_proved() says. */
void proof_note_answer(struct proof *proof, int error, int64_t stamp);

#endif
