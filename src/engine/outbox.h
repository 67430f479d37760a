/* SPDX-License-Identifier: Apache-2.0
 *
 * What is sent to the store, behind what callers are told and the commit of the journal: the
 * operations of stores/store.h.
 * Everything is copied, where it has to wait. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_OUTBOX_H
#define DLOCKFS_ENGINE_OUTBOX_H

#include "engine/alteration.h"
#include "engine/state.h"

void outbox_place(struct claim *claim, const char *data, bool list, bool attend);
void outbox_list(struct lock *lock, bool sync, bool attend);
void outbox_amend(struct place *place, const char *data);
void outbox_watch(struct rival *rival);
void outbox_mark_holder(struct claim *claim, const char *data);
void outbox_send_proof(struct engine *engine, struct proof *proof, const struct store_proof *proofs,
		       size_t count);

/* With the marker of its holder (delay.h), if it may have one. */
void outbox_withdraw(struct place *place, bool marked);

/* An alteration, a read, a list or a watch, as the ask's kind says. */
void outbox_ask_file(struct file_ask *ask);

/* Whether what was read ends with the present session. */
bool outbox_is_of_session(const struct engine *engine, const struct store_claim *claim);

/* The session is over, which the store has told. */
void outbox_renew(struct engine *engine);

/* Tells callers what was decided, and sends what has waited for that only. To be called at the end
 * of each call of the engine. */
void outbox_conclude(struct engine *engine);

/* The session is over, which the engine found, and nothing is held any more: tells callers what was
 * decided, and gives the session up. Does not wait for the journal: the books say nothing of it. */
void outbox_renew_now(struct engine *engine);

/* These wait for nothing: the books say nothing of them. The store does not answer; the
 * root is settled; a touch() is due. */
void outbox_nudge(struct engine *engine);
void outbox_settle_root(struct engine *engine);
void outbox_send_touch(struct engine *engine);

/* What the store knows of the lease now. It is no operation, and waits for nothing; nor do these,
 * which are as in stores/store.h. */
struct store_lease outbox_lease(const struct engine *engine);
void outbox_defer_beat(struct engine *engine);
void outbox_doubt_lease(struct engine *engine, int64_t now_ms);
void outbox_resume_lease(struct engine *engine, int64_t saved_ms, bool doubtful);

/* What waits to be sent is not. */
void outbox_forget(struct engine *engine);

#endif
