/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books, shared by the files of the engine and nobody else.
 *
 *   engine.c        owners and their wishes, time
 *   engine_claim.c  the life of one claim: placing, deciding, withdrawing
 *   engine_queue.c  the order of claims in one lock: who blocks whom, who is next
 *   engine_merge.c  bringing the queue in line with a list from the store
 *   engine_store.c  what the store tells: answers and lists
 *   engine_session.c  the session and its lease
 *
 * The life of one of our claims:
 *
 *   state      list it is in   event                      next
 *   ---------  --------------  -------------------------  ------------------------------------
 *   WANTED     lock->unplaced  store connected            PLACING, place() sent
 *   PLACING    lock->unplaced  placed, queue known        WAITING
 *                              placed, queue not known    QUEUED, list() sent
 *                              placed, but abandoned      LEAVING
 *                              ambiguous                  UNCERTAIN, list() sent
 *                              refused by the store       decided -ENOLCK, freed
 *   UNCERTAIN  lock->unplaced  found in a later list      WAITING (abandoned: LEAVING)
 *                              not found                  WANTED (abandoned: freed)
 *   QUEUED     lock->queue     list has come              WAITING
 *   WAITING    lock->queue     nobody in front conflicts  HELD, decided 0
 *                              would have to wait, may not  LEAVING, decided -EWOULDBLOCK
 *   HELD       lock->queue     released                   LEAVING
 *   LEAVING    lock->leaving   withdrawn                  freed
 *                              ambiguous or failed        LEAVING, withdraw() sent again
 *   any        -               session lost               HELD: owner lost, freed; a wish: WANTED;
 *                                                         else freed
 *
 * A claim that nobody asks for any more (its wish was cancelled) lingers in its state until its
 * timer ends it or a restarted call adopts it. FOREIGN claims are those of everybody else; they are
 * in lock->queue, or in lock->watched while only their watch keeps them.
 */
#ifndef DLOCKFS_ENGINE_STATE_H
#define DLOCKFS_ENGINE_STATE_H

/* Out of memory fails the request, not the daemon. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "engine.h"
#include "lease.h"
#include "timers.h"

enum claim_state {
	CLAIM_WANTED,
	CLAIM_PLACING,
	CLAIM_UNCERTAIN,
	CLAIM_QUEUED,
	CLAIM_WAITING,
	CLAIM_HELD,
	CLAIM_LEAVING,
	CLAIM_FOREIGN,
};

struct claim {
	struct timer timer; /* the limit of a wish, or the end of lingering; first: see engine.c */
	struct lock *lock;
	struct owner *owner; /* NULL: foreign, leaving, or abandoned while being placed */
	struct claim *prev, *next;
	struct claim *owner_prev, *owner_next;

	enum claim_state state;
	enum claim_mode mode;
	enum lock_kind kind;
	bool waits; /* a wish that may wait */
	bool asked; /* a wish waits for its decision; cookie is set */
	bool sent; /* LEAVING: withdraw() is under way; FOREIGN: watch() is; PLACING: with a list */
	bool unsettled; /* in engine->unsettled */

	int64_t sent_ms; /* when place() or withdraw() was sent */
	struct claim_id id;
	int32_t sequence;
	char *name; /* NULL until it is placed */
	char *text; /* NULL from the grant on */
	void *cookie;

	/* The nearest claim in front that conflicts, and whom this one blocks in that way. */
	struct claim *blocker;
	struct claim *blocked;
	struct claim *blocked_prev, *blocked_next;
	struct claim *unsettled_prev, *unsettled_next;
};

struct owner {
	struct lock *lock;
	void *cookie;
	bool lost;
	struct claim *claims; /* all that it asks for, lingers for or holds */
	struct claim *open;   /* the claim it holds by open(O_EXCL) */
	struct claim *flock;  /* the claim it holds by flock(2) */
};

struct lock {
	UT_hash_handle hh;
	struct engine *engine;
	struct lock_policy policy;
	size_t owners;

	struct claim *unplaced; /* ours, in the order in which they were asked for */
	struct claim *queue;	/* ours and foreign ones, in the store's order */
	struct claim *leaving;	/* ours */
	struct claim *watched;	/* foreign, out of the queue's books but with a watch */
	size_t own_in_queue;

	/* Once it is known, `queue` has every claim numbered up to known_to that exists: claims in
	 * front can go, but never come. It is known only while a claim of ours stands in it (an
	 * empty queue's numbers may restart). */
	bool known;
	int32_t known_to;
	size_t placing_with_list; /* place() under way that will bring the queue along */

	bool listing; /* a list() is under way */

	char path[];
};

struct engine {
	const struct engine_events *events;
	void *context;
	struct store *store;
	bool stopping; /* grants nothing any more */
	enum store_session session;
	struct lease lease;
	bool beating;	 /* a heartbeat is under way, */
	int64_t sent_ms; /* sent at this time */
	int64_t now_ms;
	int64_t retry_ms; /* when to send again what failed; INT64_MAX: nothing did */
	struct lock *locks;
	struct claim *unsettled; /* WAITING claims whose place is to be looked at again */
	struct timers timers;
	size_t claims; /* ours: room is reserved for so many timers */
	size_t holders;
	size_t waiters;
	uint64_t session_number; /* of claim ids */
	uint64_t claim_number;
};

/* engine_claim.c */

/* A new wish of the owner at the end of lock->unplaced. Returns NULL when out of memory. */
struct claim *claim_create(struct owner *owner, enum lock_kind kind, enum claim_mode mode,
			   const char *text);

/* Frees a claim that is in no list but its owner's. */
void claim_free(struct claim *claim);

/* Marks the claim as somebody's wish, and sets its limit. */
void claim_ask(struct claim *claim, bool waits, void *cookie);

/* The end of the wish: result 0 makes the claim HELD, another one withdraws it. */
void claim_decide(struct claim *claim, int result);

/* Takes the claim away, from whatever state, without a decision. It may be freed. */
void claim_withdraw(struct claim *claim);

/* Back to WANTED with a new identity, out of any list; the caller puts it into lock->unplaced. */
void claim_start_over(struct claim *claim);

/* The owner of a HELD claim, already out of the queue, has lost it: tells, ends its other wishes
 * with -EIO, frees the claim. */
void claim_lose(struct claim *claim);

/* Sends what the claim wants sent, if the store is connected. */
void claim_place(struct claim *claim);
void claim_watch(struct claim *claim);

/* Notes that something has failed and is to be sent again after so long. */
void engine_retry_in(struct engine *engine, int64_t delay_ms);

/* engine_queue.c */

/* Whether two claims of one lock exclude each other. */
bool claims_conflict(const struct claim *a, const struct claim *b);

/* Puts a claim that has a sequence number where it belongs. */
void queue_insert(struct claim *claim);

/* Puts a claim in front of `at`; NULL: at the end. */
void queue_insert_before(struct lock *lock, struct claim *at, struct claim *claim);

/* No claim of ours is left in the queue: what is known of it grows stale, and is dropped. */
void queue_forget(struct lock *lock);

/* Takes a claim out of the queue; whom it blocked is looked at again. */
void queue_remove(struct claim *claim);

/* Notes that a WAITING claim's place is to be looked at, by engine_settle(). */
void queue_unsettle(struct claim *claim);

/* Grants, refuses or blocks every unsettled claim. Last thing in every entry to the engine. */
void engine_settle(struct engine *engine);

/* engine_merge.c */

/* Brings the queue in line with a list from the store. */
void queue_merge(struct lock *lock, const struct store_entry *entries, size_t count);

/* engine_session.c */

/* Whether locks may be granted now: the session is known to live and the store answers. */
bool engine_may_grant(const struct engine *engine);

/* A write that was sent at that time is acknowledged. */
void engine_proved_alive(struct engine *engine, int64_t sent_ms);

/* Judges the lease: fences what is held if it has ended. */
void engine_judge_lease(struct engine *engine);

/* Sends a heartbeat if one is due. */
void engine_beat(struct engine *engine);

/* When the lease or the next heartbeat needs engine_advance(); INT64_MAX if neither does. */
int64_t engine_lease_deadline(const struct engine *engine);

void engine_on_session(void *context, enum store_session session, int64_t timeout_ms);
void engine_on_heartbeat(void *context, int error);

/* engine_store.c */

/* Asks the store for the queue of the lock, unless that is under way. */
void lock_list(struct lock *lock);

/* Frees the lock if nothing needs it. */
void lock_free_if_unused(struct lock *lock);

/* Sends everything that the lock's claims want sent and that is not under way. */
void lock_resume(struct lock *lock);

#endif
