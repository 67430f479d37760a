/* SPDX-License-Identifier: Apache-2.0
 *
 * What is sent to the store, behind what callers are told and the commit of the journal: the
 * operations of stores/store.h.
 * Everything is copied, where it has to wait. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_OUTBOX_H
#define DLOCKFS_ENGINE_BOOKS_OUTBOX_H

#include "engine/books/state.h"

void outbox_place(struct claim *claim, const char *data, bool list, bool attend);
void outbox_list(struct lock *lock, bool sync, bool attend);
void outbox_amend(struct place *place, const char *data);
void outbox_watch(struct rival *rival);
void outbox_mark_holder(struct claim *claim, const char *data);
void outbox_age(struct rival *orphan);
void outbox_send_proof(struct engine *engine, struct proof *proof, const struct store_proof *proofs,
		       size_t count);

/* `marked`: with the marker of the claim's holder (delay.h), if there may be one. */
void outbox_withdraw(struct place *place, bool marked);

/* The claim is to become a hold of that id. */
void outbox_hold(struct claim *claim, const struct claim_id *id, const char *data);

/* A hold is to go. */
void outbox_outlast(struct rival *hold);

/* As withdraw(), if the heir stands (bequest.h). */
void outbox_bequeath(struct place *place, const char *heir);

/* Another host is asked, or told, as events->on_ask() and on_tell() say. */
void outbox_ask(struct rival *rival, const char *claim);
void outbox_tell(struct engine *engine, const char *path, const struct engine_peer *asker,
		 const char *claim, const char *const *names, size_t count);

/* What the tenant asks of the store: alter(), read(), files() and watch() of a path. */
enum errand_kind { ERRAND_ALTER, ERRAND_READ, ERRAND_LIST, ERRAND_WATCH };

/* Such a question. It is the tenant's, and stays until the store has answered, or until it was not
 * sent. Without memory in the store it has failed, and the engine resumes soon. */
struct errand {
	union { /* first: the store knows it by this, or, WATCH, by the watcher */
		struct store_change change;
		struct store_read read;
		struct store_files files;
	};
	struct watcher watcher;
	enum errand_kind kind;
	bool sent; /* the store will answer, or */
	bool failed;
	size_t count;
	const struct store_step *steps; /* the first one's path is what is read */
};

void outbox_run(struct engine *engine, struct errand *errand);

/* Whether what was read ends with the present session. */
bool outbox_is_of_session(const struct engine *engine, const struct store_claim *claim);

/* The session is over, which the store has told. */
void outbox_renew(struct engine *engine);

/* Tells callers what was decided, and sends what has waited for that only. To be called at the end
 * of each call of the engine. */
void outbox_conclude(struct engine *engine);

/* As engine_send(). */
void outbox_send(struct engine *engine);

/* The session is over, which the engine found, and nothing is held any more: tells callers what was
 * decided, and gives the session up. Does not wait for the journal: the books say nothing of it. */
void outbox_renew_now(struct engine *engine);

/* These are sent at once, as the books say nothing of them: when the store does not answer; when
 * the root is settled; when a touch() is due. */
void outbox_nudge(struct engine *engine);
void outbox_settle_root(struct engine *engine);
void outbox_send_touch(struct engine *engine);

/* What the store knows of the lease now; and the other functions of a lease, as in stores/store.h.
 * All are called at once. */
struct store_lease outbox_lease(const struct engine *engine);
void outbox_defer_beat(struct engine *engine);
void outbox_doubt_lease(struct engine *engine, int64_t now_ms);
void outbox_resume_lease(struct engine *engine, int64_t saved_ms, bool doubtful);

/* Drops what waits to be sent. */
void outbox_forget(struct engine *engine);

#endif
