/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books, shared by the files of the engine and by its tenant, src/lockfile, and nobody
 * else. What one of these files does for the others is in the header of its name, and what it keeps
 * in the books; etc/doc/hacking.md lists them.
 *
 * The life of one of our claims:
 *
 *   state      list it is in   event                      next
 *   ---------  --------------  -------------------------  ------------------------------------
 *   WANTED     lock->unplaced  store connected, and not   PLACING, place() sent
 *                              held back
 *   PLACING    lock->unplaced  placed, queue known        WAITING
 *                              placed, queue not known    QUEUED, list() sent
 *                              placed, but abandoned      LEAVING
 *                              ambiguous                  UNCERTAIN, list() sent
 *                              refused by the store       decided -ENOLCK, freed
 *                              put off by the store       WANTED
 *   UNCERTAIN  lock->unplaced  found in a later list      WAITING (abandoned: LEAVING)
 *                              not found                  WANTED (abandoned: freed)
 *   QUEUED     lock->queue     list has come              WAITING
 *   WAITING    lock->queue     nobody in front conflicts  HELD, decided 0
 *                              would have to wait, may not, LEAVING, decided -EWOULDBLOCK
 *                              and has had its grace
 *                              would wait for itself      LEAVING, decided -EDEADLK
 *                              its anchor is gone         WANTED, under a new name
 *                              its number is the last one WANTED, under a new name
 *                              others of a cycle are to   WANTED, under a new name
 *                              pass it
 *   HELD       lock->queue     released                   LEAVING
 *   LEAVING    lock->leaving   withdrawn                  freed
 *                              ambiguous or failed        LEAVING, withdraw() sent again
 *   any        -               session lost               HELD: owner lost, freed; a wish: WANTED;
 *                                                         else freed
 *
 * A claim serves its wishes in the order of asking: one, or several where the lock's policy hands
 * claims on (handoff.c). The wish that it was granted to stays at the head of its list: the claim's
 * holder is the owner of that wish. A claim is *kept* when it is HELD and the wish at its head has
 * no owner any more; it may *rest* then (term.h). A wish that was taken back *lingers*: it does not
 * ask, but stays in the list until its timer is due or a restarted call takes it up. A claim
 * without wishes is abandoned: it is withdrawn as soon as its place is known.
 *
 * Rivals are the claims of everybody else; they are in lock->queue, or in lock->watched while only
 * their watch or their delay keeps them.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_STATE_H
#define DLOCKFS_ENGINE_BOOKS_STATE_H

/* Out of memory fails the request, not the daemon. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "base/log_limit.h"
#include "base/timers.h"
#include "config/config.h"
#include "engine/books/bequest.h"
#include "engine/books/claim.h"
#include "engine/books/decisions.h"
#include "engine/books/delay.h"
#include "engine/books/events.h"
#include "engine/books/lock.h"
#include "engine/books/moratorium.h"
#include "engine/books/numbers.h"
#include "engine/books/owner.h"
#include "engine/books/place.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/round_trip.h"
#include "engine/books/save.h"
#include "engine/books/seek.h"
#include "engine/books/slots.h"
#include "engine/books/tenant.h"
#include "engine/books/term.h"
#include "journal/journal.h"
#include "stores/store.h"

/* What makes an owner a process with record locks on a file. Its claims are those of its record
 * locks, and those that it took over from a flock(2) which was released before the record locks
 * that the flock covered. */
struct records {
	UT_hash_handle hh; /* in lock->records, by process_id */
	uint64_t process_id;
	struct owner owner;
	struct process *process;
	struct records *process_prev, *process_next;
	struct range_set held;
	struct owner **files; /* open files through which it has locked */
	size_t files_count, files_capacity;
	int pid;
};

/* What the owner is the one of; NULL: it is an open file. */
static inline struct records *owner_records(const struct owner *owner)
{
	return owner->is_process
		       ? (struct records *)((char *)owner - offsetof(struct records, owner))
		       : NULL;
}

/* A process, as the kernel's number says, on all files of this host. */
struct process {
	UT_hash_handle hh; /* in engine->processes, by id */
	uint64_t id;
	uint32_t number; /* in the ids of its claims */
	struct records *records;
	size_t ranges; /* that it holds */
};

struct lock {
	UT_hash_handle hh;
	struct state_item item;
	uint64_t serial;
	struct engine *engine;
	struct lock_policy policy;
	size_t owners; /* open files */

	struct place *unplaced;	  /* ours, in the order in which they were asked for */
	struct place_queue queue; /* ours and foreign ones, in the store's order */
	struct place *leaving;	  /* ours */
	struct place *watched;	 /* rivals, out of the queue's books but with a watch, or orphans */
	struct place *overseers; /* watches of claims of ours */
	struct test *tests;
	struct proof *proofs; /* undecided, or with prove() under way */
	struct queue_counts in_queue;
	struct handoffs handoffs;
	struct bequest *bequests;
	struct attention attention;
	struct records *records;
	struct doubts doubts;
	struct placing placing;
	struct listing listing;
	struct losses losses;
	struct numbers numbers;
	struct seeking seeking;

	char path[];
};

/* Of a store that does not answer, or has no connection: session_nudge_silent(). */
struct silence {
	int64_t nudged_ms; /* when it was nudged last; INT64_MIN: never */
	bool hurried;	   /* it was connected then, and is not again */
	int64_t nudge_ms;  /* when it will be, unless it answers; INT64_MAX: it will not */
};

/* session.h */
struct session {
	enum store_session state;
	int64_t timeout_ms;   /* 0: it cannot end unnoticed */
	int64_t suspended_ms; /* since when it is; INT64_MIN: since engine_advance() */
	uint64_t connections; /* to the store, so far */
	uint64_t lost;	      /* so many sessions were, so far */
	uint32_t doubts;      /* so far: see engine_doubt() */
	int64_t doubt_ms;     /* the latest of them; INT64_MIN: there was none */
	bool beat_wanted;     /* a heartbeat is due at once, to show what stands */
	bool beat_under_way;  /* one is, */
	int64_t beat_sent_ms; /* sent at this time */
	uint32_t beat_round;  /* each heartbeat brings along claims that had no turn in it */
	struct round_trip round_trip;
	struct silence silence;
};

/* As engine_set_placing_max() and engine_set_proofs_max() say. */
struct limits {
	size_t placing;
	size_t proofs;
};

/* How many there are. */
struct counts {
	size_t claims;
	size_t wishes;
	size_t tests;
	size_t holders;
	size_t kept; /* claims: claim_is_kept() */
	size_t waiters;
	size_t worn;	     /* locks */
	size_t mixed;	     /* locks: lock_note_mixture() */
	uint64_t by_message; /* grants, so far, to who waited for other hosts: told by one of them,
			      */
	uint64_t by_store;   /* or by the store alone */
};

/* Wishes, the oldest first. */
struct ages {
	struct wish *waiting; /* that ask */
	struct wish *held;    /* of claims that are HELD by somebody */
};

/* What is due, and when: engine_deadline(). */
struct agenda {
	struct timers timers;		       /* of wishes, tests and the tenant */
	void (*end_wish)(struct timer *timer); /* what those of wishes and of tests are for */
	void (*end_test)(struct timer *timer);
	uint64_t stirs;	    /* how often something has happened that may change the next, */
	uint64_t looked_at; /* and had by then: */
	int64_t look_ms;    /* when the engine is to be looked at, but for its timers */
};

struct engine {
	const struct engine_events *events;
	void *context;
	struct store *store;
	unsigned abilities; /* STORE_HAS_..., of the store */
	bool has_peers;	    /* engine_set_peers() */
	struct saving saving;
	struct state_item item;
	struct issued issued;
	struct outgoing *outgoing; /* outbox.c */
	struct grants grants;
	struct session session;
	struct moratorium moratorium;
	int64_t now_ms;
	struct limits limits;
	int64_t retry_ms;	   /* when to send again what failed; INT64_MAX: nothing did */
	struct log_limit refusals; /* what the log says of them */

	struct tenant tenant;

	struct lock *locks;
	struct decisions decisions;
	struct claim *changed; /* the last of a ring of WAITING claims, to be judged again */
	struct agenda agenda;
	struct counts count;
	struct ages ages;
	struct process *processes;
	struct searches searches;
};

/* Whether anything is of this host that ends with the session. */
static inline bool books_hold(const struct engine *engine)
{
	return engine->count.holders > 0 || engine->tenant.held > 0;
}

/* The heir of a claim that leaves, which is saved with it (bequest.h); NULL: it has none. */
static inline const char *lock_heir(const struct lock *lock, const struct claim *claim)
{
	const struct bequest *bequest;
	DL_FOREACH (lock->bequests, bequest) {
		if (bequest->claim == claim)
			return bequest->made ? bequest->heir : NULL;
	}
	return NULL;
}

/* How the lock's claims are named. */
static inline enum claim_recipe lock_recipe(const struct lock *lock)
{
	return (enum claim_recipe)lock->policy.recipe;
}

/* Whether what a lost holder with a claim of that name leaves (delay.h) is in the way of anybody
 * here. */
static inline bool lock_heeds_orphan(const struct lock *lock, const struct claim_name *parts)
{
	return lock->policy.lock_delay_ms > 0 || lock->policy.min_hold_ms > 0 ||
	       parts->least_ms > 0;
}

/* The mode in which the lock is taken by who asks for that one. What a lock of several slots has
 * not got is refused, not replaced. */
static inline enum claim_mode lock_mode(const struct lock *lock, enum claim_mode mode)
{
	return claim_recipe_shares(lock_recipe(lock)) || slots_are_several(lock) ? mode
										 : CLAIM_EXCLUSIVE;
}

#endif
