/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock engine: decides who holds which lock. It turns the wishes of owners (open files of this
 * host) into claims in a store and tells when a wish is granted, refused or lost.
 *
 * A pure state machine: no I/O, no threads, no clock of its own. Time comes from engine_advance(),
 * in milliseconds of any clock that does not jump. All functions run on the loop's thread and none
 * blocks.
 *
 * Callbacks are made from within any function here that takes an engine or an owner, also before
 * engine_lock() returns, and from the store's dispatch(). A callback must not call the engine back.
 *
 * Rules that hold after every call:
 * - a claim is held exactly when no earlier claim of another owner in its queue conflicts with it
 *   (and the session was known to live when it got there); or, where N may hold, fewer than N do;
 * - what is held is fenced before the session can end unnoticed (struct store_lease);
 * - each wish is decided once: granted, refused, cancelled or ended by its owner's close;
 * - two claims conflict when they overlap, at least one is exclusive, and they belong to different
 *   owners; a process with record locks and an open file that it locked through are the same.
 */
#ifndef DLOCKFS_ENGINE_ENGINE_H
#define DLOCKFS_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "claim/name.h"
#include "claim/range_set.h"
#include "config/config.h"
#include "engine/books/events.h"
#include "stores/store.h"

struct engine;
struct owner; /* an open file, or a process with record locks: what locks belong to */
struct wish;  /* a call on its way */
struct test;  /* a question on its way: what a record lock would conflict with */
struct proof; /* a question on its way: whether something is still held */

/* What somebody wants who steers from outside. */
enum engine_order {
	ENGINE_REVOKE, /* the holder is asked to release the lock */
	ENGINE_BREAK,  /* the claim is taken away: its holder has lost the lock, or waits anew */
};

struct engine_counts {
	size_t locks;	/* names with an owner or a claim */
	size_t holders; /* claims held */
	size_t waiters; /* wishes undecided */
	size_t kept;	/* claims that the lock is held with, but by nobody (lock_policy: keep_ms,
			   min_hold_ms) */
	/* With peers: grants, so far, to who waited for other hosts, and was told by one of them,
	 * or by the store alone. */
	uint64_t by_message, by_store;
};

/* Who of this host holds, or waits, for the longest time. */
struct engine_oldest {
	const char *path;
	int pid;
	int64_t age_ms; /* since the grant, or the call */
};

/* What is needed before the numbers of a lock's claims can start anew. */
enum engine_worn_wait {
	ENGINE_AWAITS_CLAIMS,  /* claims of any host stand in the queue: they are to go */
	ENGINE_AWAITS_DELAY,   /* lost holders' claims alone do (lock_policy.lock_delay_ms) */
	ENGINE_AWAITS_SERVERS, /* nothing stands there: the service is to start them anew, which it
				  cannot while locks below are in use */
};

/* A lock whose numbers come to an end: new claims are held back. */
struct engine_worn {
	const char *path;
	int64_t number;	  /* of a claim, the latest that this host has seen */
	int64_t known_ms; /* for so long it knows */
	size_t held_back; /* calls of this host that have no claim for that */
	enum engine_worn_wait awaits;
};

struct engine_status {
	enum store_session session;
	int64_t timeout_ms;    /* of the session; 0: it cannot end unnoticed */
	int64_t lease_left_ms; /* until what is held is given up unless the session is proved to
				  live; -1: nothing is asked for or held, or it cannot end */
	bool doubtful;	       /* nothing is granted, after engine_doubt() */
	int64_t moratorium_left_ms; /* for so long nothing is granted, as others may hold what the
				       store does not show; -1: it may be */
	enum store_moratorium moratorium; /* and why */
	uint64_t setbacks;		  /* of the store to an earlier state, so far */
	uint64_t sessions_lost;
	uint64_t reconnects; /* after a loss of the connection, or of the session */
};

/* When the lease ends, unless the session is proved to live: by the clock of engine_advance().
 * INT64_MAX: it cannot; INT64_MIN: nothing is proven. It says nothing of whether anything is held.
 */
int64_t engine_lease_end(const struct engine *engine);

/* Returns NULL when out of memory. The store is set once, before anything else, and stays the
 * caller's. `session_seed` is random: the first of the session numbers in claim ids, each new
 * session takes the next of a sequence that it starts. */
struct engine *engine_create(const struct engine_events *events, void *context,
			     uint64_t session_seed);

void engine_set_store(struct engine *engine, struct store *store);

/* What the store can do (STORE_HAS_...); everything, unless this is called. A call that needs more
 * is refused with -ENOLCK. */
void engine_set_abilities(struct engine *engine, unsigned abilities);

/* Whether this host listens to other hosts (books/bequest.h); it does, unless this is called, if
 * events->on_ask is set. Who has asked, or is an heir already, stays that. */
void engine_set_peers(struct engine *engine, bool has_peers);

/* So many claims of a lock are placed at a time, 500 unless this is called, for tests. What is
 * under way takes more memory than a claim that waits. */
void engine_set_placing_max(struct engine *engine, size_t claims);

/* So many znodes are proved in one transaction, STORE_PROOFS_MAX unless this is called, for tests;
 * a claim is never split. */
void engine_set_proofs_max(struct engine *engine, size_t znodes);

/* What the engine wants to hear from its store; the context is the engine. */
extern const struct store_events engine_store_events;

/* Frees everything. Owners must have been closed before; claims on their way are forgotten. */
void engine_destroy(struct engine *engine);

/* Grants nothing from now on: the daemon stops. What is held now is lost by its holders, who live,
 * and not released by them, even if their owners are closed (lock_policy.lock_delay_ms). */
void engine_stop(struct engine *engine);

/* Whether nothing new is granted, as before a reboot: who holds a part of a lock gets more of it,
 * other calls wait without a place in a queue, or are refused with -ENOLCK if they do not wait;
 * what is kept is given back. It is saved. O(locks and claims) when it changes. */
void engine_drain(struct engine *engine, bool drains);
bool engine_drains(const struct engine *engine);

/* Ends the session, as far as the engine is concerned: who holds something yet is told of the loss
 * by on_lost(), and nothing is sent to the store any more. Returns what the store wants to be
 * closed with. */
const struct store_told *engine_end(struct engine *engine);

/* What this host knows of a lost holder's claim, which the store lists as an orphan. */
struct engine_orphan {
	int64_t known_ms; /* for so long it has known of it */
	int64_t left_ms;  /* for so long nobody is granted here what the claim is in the way of; -1:
			     this host has neither lock_policy.lock_delay_ms nor min_hold_ms, nor
			     had the claim a least time of its own: it does not wait */
};

/* Returns false if this host knows nothing of such a claim. O(queue). */
bool engine_find_orphan(const struct engine *engine, const char *path, const char *name,
			struct engine_orphan *ret);

/* Takes away what lost holders have left at the path, after the time of lock_policy.lock_delay_ms,
 * if nobody who asks for the lock does so before. Returns 0 or -ENOMEM. */
int engine_clear(struct engine *engine, const char *path, const struct lock_policy *policy);

/* The clock may have stood still until now, while that of the servers went on, for a time that
 * nobody knows. To be called before engine_advance() is with a time at or after that.
 * What is held stays held, but nothing is granted, and no proof that was sent before counts, until
 * the store has proved for how long the session will live; which it is asked for at once. Returns
 * false if the session cannot end unnoticed, so that there is nothing to prove. */
bool engine_doubt(struct engine *engine, int64_t now_ms);

/* Tells the time and does what is due. To be called before the other functions each time the loop
 * wakes, and by the time of engine_deadline(). O(1) if nothing is due. */
void engine_advance(struct engine *engine, int64_t now_ms);

/* When engine_advance() is needed at the latest; INT64_MAX if nothing is due. Found anew if the
 * engine was called since, or has heard of the store; else O(1). */
int64_t engine_deadline(struct engine *engine);

/* The store may know more of the lease, as after each of its dispatch(), though it has told the
 * engine nothing. */
void engine_stir(struct engine *engine);

/* How often the engine was called, or has heard of the store: while the number stays, neither
 * engine_deadline() nor engine_held_lease() changes. */
uint64_t engine_stirs(const struct engine *engine);

/* An open file of the lock at `path` (copied). Returns NULL when out of memory. */
struct owner *engine_owner_open(struct engine *engine, const char *path,
				const struct lock_policy *policy, void *cookie);

/* The policy of the lock at `path` may be another one: if it lets another number hold the lock
 * (lock_policy.slots), that counts from now on. All else that it says is heeded once the lock is
 * not in use. Calls policy() for each lock, which must not call the engine. */
void engine_change_slots(struct engine *engine,
			 struct lock_policy (*policy)(void *context, const char *path),
			 void *context);

/* Ends the owner: what it holds is released, what it waits for is withdrawn without a callback. So
 * are the record locks of those who locked through no other open file. */
void engine_owner_close(struct owner *owner);

/* Wishes for the lock in `mode`. A flock of another mode than the one held, by flock or open, lets
 * that go first (flock(2)); one of the same mode is granted at once. A wish that does not wait is
 * refused as soon as it is clear that it would have to.
 *
 * Where several may hold the lock (lock_policy.slots), in any mode but CLAIM_EXCLUSIVE the decision
 * is -EINVAL, and so are record locks and the question for them, at once.
 *
 * Where lock_policy has `handoff` or `keep_ms`, the claim may be one that another owner of this
 * host has used, and which goes on to a third one.
 *
 * The decision comes by on_decided(cookie). *ret_wish is what engine_cancel() takes until then,
 * and is set before on_decided() is called. Returns 0; or -ENOMEM, -EIO (the owner has lost a
 * lock): then no decision follows. */
int engine_lock(struct owner *owner, enum lock_kind kind, enum claim_mode mode, bool waits,
		const struct engine_caller *caller, void *cookie, struct wish **ret_wish);

/* Wishes for a record lock on a span of the file, in the name of a process: `process` is what the
 * kernel calls the lock owner, a number for each process or, for locks of an open file description,
 * for that; the same in all files. By the rules of fcntl(2): on the grant the range replaces what
 * the process holds there; what it holds already is granted at once.
 *
 * Record locks exclude flock(2) and open(O_EXCL), but not those through an open file through which
 * the process has locked, too. What such a flock covers is granted at once, and is released when
 * both are.
 *
 * A wish of a process that holds a part of the file goes before those that wait for that part.
 * As engine_lock() otherwise; also returns -ENOLCK (limits of lock_policy; engine_drain()), -EINVAL
 * (slots). */
int engine_lock_range(struct owner *file, uint64_t process, struct range range, bool waits,
		      const struct engine_caller *caller, void *cookie, struct wish **ret_wish);

/* Releases what the process holds in the span. Returns 0 (also if there was nothing); -EIO the
 * process or the file has lost a lock; -ENOMEM, -ENOLCK (it would be left with more than twice as
 * many ranges as lock_policy allows), with nothing changed. */
int engine_unlock_range(struct owner *file, uint64_t process, struct claim_span span);

/* Asks for the first lock, in the order of the queue, that such a wish would conflict with. The
 * answer comes by on_tested(cookie), perhaps before this returns; until then engine_cancel_test()
 * takes *ret_test. Returns 0; or -ENOMEM, -EIO, -ENOLCK (the store keeps no such locks), -EINVAL
 * (slots): then no answer follows. */
int engine_test_range(struct owner *file, uint64_t process, struct range range, void *cookie,
		      struct test **ret_test);

/* Takes the question back: no answer follows. */
void engine_cancel_test(struct test *test);

/* The process closes the file, through whichever open file: its record locks are released. */
void engine_flush(struct owner *file, uint64_t process);

/* Takes back an undecided wish after a signal: no decision follows. The place in the
 * queue is kept for lock_policy.linger_ms, for the same call of the same owner that is restarted.
 */
void engine_cancel(struct wish *wish);

/* Asks whether what was locked through the open file is still held: by flock, open, and the record
 * locks of all processes that have locked through it. The answer is that of the service as a
 * whole, and true for all of that at one moment after the call; where nothing is held, it is 0 at
 * once.
 *
 * With `token` it brings the fencing token of what is held: a number above 0, greater than any
 * token that was ever told for a lock of that path which conflicts and was granted before, on any
 * host. It stays the same until something is granted through the file, or one of those processes
 * takes a flock over that was released before what it covers. It is of what was held when this was
 * called, or of what was granted since: never of what was granted and released before.
 *
 * The answer comes by on_proved(cookie), perhaps before this returns; until then
 * engine_cancel_proof() takes *ret_proof. Returns 0; or -ENOMEM, -EIO, -ENOLCK (the store has no
 * tokens): then no answer follows. */
int engine_prove(struct owner *file, bool token, void *cookie, struct proof **ret_proof);

/* Takes the question back: no answer follows. */
void engine_cancel_proof(struct proof *proof);

/* The caller who asked for a claim of this host. Returns false if no such claim is held, or waits.
 * The details are valid until the engine is called again. */
bool engine_claim_caller(const struct engine *engine, const char *path, const char *name,
			 struct engine_caller *ret);

/* Visits the claims of this host in the queue of the lock, in its order, and tells whether the lock
 * is held with each. visit() must not call the engine. O(queue). */
void engine_each_own(const struct engine *engine, const char *path,
		     void (*visit)(void *context, const char *claim, bool held), void *context);

/* What somebody of this host has to do with a claim that serves several callers. */
enum engine_use {
	ENGINE_KEPT,	/* nobody holds by it, though the lock is held with it: text is NULL */
	ENGINE_USES,	/* holds by it or, while it waits, is the first of those it waits for */
	ENGINE_FOLLOWS, /* waits to have it after those */
};

/* Visits who uses such claims of this host (lock_policy: handoff, keep_ms) in the queue of the
 * lock, with what each said of itself: claim by claim in the order of the queue, and those of one
 * in the order in which they will have it. visit() must not call the engine. O(queue). */
void engine_each_user(const struct engine *engine, const char *path,
		      void (*visit)(void *context, const char *claim, enum engine_use use,
				    const char *text),
		      void *context);

/* Carries out what is wanted of a claim of this host, and logs who wants it. Returns 0; -ENOENT no
 * claim of this host that is held, or waits, has that name; -EINVAL it cannot be revoked, because
 * it waits. */
int engine_steer(struct engine *engine, const char *path, const char *name, enum engine_order order,
		 const char *who);

/* What is asked for from now on through the open file, by flock, has these times of its own besides
 * those of the policy: the longer of lock_policy.min_hold_ms and `least_ms`, from 0 to
 * CLAIM_LEAST_MAX_MS, and the shorter of max_hold_ms and `most_ms`, UINT32_MAX at most; 0: none.
 * What is held, or under way, stays as it is. */
void engine_set_term(struct owner *owner, int64_t least_ms, int64_t most_ms);

/* Hand-over by message (books/bequest.h). A daemon of another host asks to be told of the end of
 * the claim `name`, of this host, for its own claim `heir`: `asker` is what on_tell() is to be
 * given then. Ignored if no such claim stands. */
void engine_peer_asked(struct engine *engine, const char *path, const char *name, const char *heir,
		       const struct engine_peer *asker);

/* The daemon of another host tells the claim `name`, of this host, that these claims are released.
 * What is not known is ignored. If the claim itself is over, on_tell() follows with `from`: it says
 * that to names[0]. */
void engine_peer_told(struct engine *engine, const char *path, const char *name,
		      const char *const *names, size_t count, const struct engine_peer *from);

/* Releases what the owner holds by flock or open. Returns 0 (also if there was nothing), or -EIO if
 * the owner has lost a lock. */
int engine_unlock(struct owner *owner);

/* Whether the owner holds the lock by flock or open. */
bool engine_owner_holds(const struct owner *owner);

/* The number of the slot by which the owner holds the lock, by flock or open (lock_policy.slots):
 * from 0 on, and of no other holder on any host. -1: it holds nothing, or none with a number. */
int engine_slot(const struct owner *owner);

/* Whether anything is held through the open file, in whatever way. O(queue). */
bool engine_file_holds(const struct owner *file);

/* A claim by which something is held through the open file, in whatever way: of what is held, the
 * first in the queue. The path is valid until the engine is called again. */
struct engine_claim {
	const char *path; /* of the queue */
	char name[CLAIM_NAME_BYTES];
	uint32_t version; /* so often its data was changed, as far as is known */
};

/* Returns false if nothing is held. O(queue). */
bool engine_file_claim(const struct owner *file, struct engine_claim *ret);

/* Whether somebody has asked for anything that is held through the open file, in whatever way.
 * O(queue). */
bool engine_file_is_revoked(const struct owner *file);

/* Why what was held through the open file is lost; ENGINE_LOSS_NONE: it is not, or an earlier
 * process has lost it. */
enum engine_loss engine_file_loss(const struct owner *file);

/* What the process holds in the file by record locks; NULL if that is nothing. */
const struct range_set *engine_ranges(const struct owner *file, uint64_t process);

/* O(1). */
struct engine_counts engine_counts(const struct engine *engine);

/* The oldest claim that is held by somebody, by when it was granted to its holder; the oldest call
 * that waits for a lock. Return false if there is none. The path is valid until the engine is
 * called again. O(1). */
bool engine_oldest_holder(const struct engine *engine, struct engine_oldest *ret);
bool engine_oldest_waiter(const struct engine *engine, struct engine_oldest *ret);

/* Visits the locks of this host whose numbers come to an end; visit() must not call the engine.
 * O(1) where there are none, else O(locks and wishes). */
void engine_each_worn(const struct engine *engine,
		      void (*visit)(void *context, const struct engine_worn *worn), void *context);

/* Visits the locks in use for which another host is configured otherwise: another recipe, or number
 * of slots. As engine_each_worn(). */
void engine_each_mixed(const struct engine *engine, void (*visit)(void *context, const char *path),
		       void *context);

/* As of the time that was told last. */
struct engine_status engine_status(const struct engine *engine);

/* When what is held will be given up unless the session is proved to live by then, in the engine's
 * time. INT64_MAX: nothing is held, or all who did were told that it is lost, or the session cannot
 * end unnoticed; INT64_MIN: it is being given up. *ret_timeout_ms is that of the session. O(1). */
int64_t engine_held_lease(const struct engine *engine, int64_t *ret_timeout_ms);

/* For tests: aborts with a message if the engine's books contradict themselves. O(everything). */
void engine_check_invariants(const struct engine *engine);

#endif
