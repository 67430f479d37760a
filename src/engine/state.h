/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books, shared by the files of the engine and nobody else. What one of these files
 * does for the others is in the header of its name, and what it keeps in the books.
 *
 *   engine.c      calls, and time
 *   wish.c        what callers ask for: limits
 *   claim.c       the life of one claim: placing, holding, withdrawing
 *   handoff.c     whom a claim goes to next
 *   decide.c      what becomes of wishes and of what is held: granted, refused, lost
 *   decisions.c   what callers are to be told of that, once the books are in order
 *   rival.c       claims of others, and watches
 *   overseer.c    watches of our claims, for what others write into their data
 *   conflict.c    which claims exclude each other, and whose they are
 *   place.c       places in a queue: order, and what they exclude
 *   queue.c       the queue of one lock, and whom a change of it concerns
 *   settle.c      what becomes of claims that wait: granted, refused, or blocked
 *   merge.c       bringing the queue in line with a list from the store
 *   numbers.c     claims that are held back until the queue's numbers start anew
 *   precedence.c  which of them go before others that came earlier
 *   record.c      record locks: what processes hold
 *   coverage.c    which claims stand for that
 *   deadlock.c    who waits for whom in a cycle
 *   search.c      whether a claim waits for a process, at whatever remove
 *   seek.c        how much of the time the search for that takes
 *   delay.c       nobody is granted for a while after a holder was lost
 *   grace.c       calls that do not wait, while another host's release is on its way
 *   test.c        F_GETLK: what a wish would conflict with
 *   proof.c       whether what is held still is, and tokens
 *   steer.c       who asks holders for their locks, or takes them away
 *   inbox.c       what the store tells: answers and lists
 *   lock.c        lists that are asked for, and what is to be tried again
 *   session.c     the session and its lease
 *   moratorium.c  nothing is granted for a while after the store has forgotten claims
 *   tenant.h      lock files, which share the engine's session
 *   outbox.c      what is sent to the store, behind the commit of the journal
 *   save.c        all that as text, and what of it has changed
 *   transfer.c    passed on to another process
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
 * no owner any more. A wish that was taken back *lingers*: it does not ask, but stays in the list
 * until its timer is due or a restarted call takes it up. A claim without wishes is abandoned: it
 * is withdrawn as soon as its place is known.
 *
 * Rivals are the claims of everybody else; they are in lock->queue, or in lock->watched while only
 * their watch or their delay keeps them.
 */
#ifndef DLOCKFS_ENGINE_STATE_H
#define DLOCKFS_ENGINE_STATE_H

/* Out of memory fails the request, not the daemon. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "base/log_limit.h"
#include "base/timers.h"
#include "engine/claim.h"
#include "engine/decisions.h"
#include "engine/delay.h"
#include "engine/engine.h"
#include "engine/handoff.h"
#include "engine/lock.h"
#include "engine/moratorium.h"
#include "engine/numbers.h"
#include "engine/place.h"
#include "engine/proof.h"
#include "engine/queue.h"
#include "engine/rival.h"
#include "engine/round_trip.h"
#include "engine/seek.h"
#include "engine/session.h"
#include "engine/tenant.h"
#include "engine/test.h"
#include "engine/transfer.h"
#include "journal/journal.h"

struct owner {
	struct state_item item; /* owner_mark() */
	struct lock *lock;
	void *cookie;
	bool lost;
	uint32_t number;	 /* in the ids of its claims */
	struct wish *wishes;	 /* that ask, linger, or were granted what it holds */
	struct records *records; /* of a process; NULL: this is an open file */
	uint64_t granted;	 /* the number of the latest grant to it */
	uint64_t token_grant; /* the latest grant that its token is younger than; 0: it has none */
	uint64_t token;
};

/* Visit the wishes of an owner; the visited one may leave the list where _SAFE says so. */
#define OWNER_FOREACH(owner, wish) DL_FOREACH2 ((owner)->wishes, wish, owner_next)
#define OWNER_FOREACH_SAFE(owner, wish, following)                                                 \
	DL_FOREACH_SAFE2 ((owner)->wishes, wish, following, owner_next)

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
	bool mixed; /* the log has told of claims of another recipe */
	struct attention attention;
	struct records *records;
	size_t ranges;	    /* held by processes of this host */
	size_t held_flocks; /* claims of flock or open that are HELD */

	/* Once it is known, `queue` has every claim of an order up to known_to that exists: claims
	 * in front can go, but never come. It is known only while a claim of ours stands in it (an
	 * empty queue's orders may restart). */
	bool known;
	int64_t known_to;
	struct doubts doubts;

	struct placing placing;
	struct listing listing;
	int64_t moratorium_ms; /* nothing is granted before that time (moratorium.h) */
	struct losses losses;
	struct numbers numbers;
	struct seeking seeking;

	char path[];
};

/* How many there are. */
struct counts {
	size_t claims;
	size_t wishes;
	size_t tests;
	size_t holders;
	size_t kept; /* claims: claim_is_kept() */
	size_t waiters;
	size_t worn; /* locks */
};

struct engine {
	const struct engine_events *events;
	void *context;
	struct store *store;
	unsigned abilities;	       /* STORE_HAS_..., of the store */
	struct state_journal *journal; /* NULL: nothing is kept there */
	const struct engine_transfer *transfer;
	uint64_t place; /* the first number of its items' places */
	struct state_item item;
	struct issued issued;
	struct outgoing *outgoing; /* outbox.c */
	bool stopping;		   /* grants nothing any more */
	struct session session;
	bool barred; /* something waits because nothing might be granted (lock.h) */
	struct round_trip round_trip;
	struct moratorium moratorium;
	int64_t now_ms;
	size_t placing_max; /* see engine_set_placing_max() */
	struct proofs proofs;
	int64_t retry_ms;	   /* when to send again what failed; INT64_MAX: nothing did */
	struct log_limit refusals; /* what the log says of them */

	struct tenant tenant;

	struct lock *locks;
	struct decisions decisions;
	struct claim *changed; /* the last of a ring of WAITING claims, to be judged again */
	struct timers timers;  /* of wishes, tests and the tenant */
	void (*end_wish)(struct timer *timer); /* what those of wishes and of tests are for */
	void (*end_test)(struct timer *timer);
	uint64_t stirs;	    /* how often something has happened that may change the next, */
	uint64_t looked_at; /* and had by then: */
	int64_t look_ms;    /* when the engine is to be looked at, but for its timers */
	struct counts count;
	struct process *processes;
	struct searches searches;
};

/* Whether anything is of this host that ends with the session. */
static inline bool engine_holds(const struct engine *engine)
{
	return engine->count.holders > 0 || engine->tenant.held > 0;
}

static inline struct lock *wish_lock(const struct wish *wish)
{
	return wish->claim->place.lock;
}

/* How the lock's claims are named. */
static inline enum claim_recipe lock_recipe(const struct lock *lock)
{
	return (enum claim_recipe)lock->policy.recipe;
}

/* The mode in which the lock is taken by who asks for that one. */
static inline enum claim_mode lock_mode(const struct lock *lock, enum claim_mode mode)
{
	return claim_recipe_shares(lock_recipe(lock)) ? mode : CLAIM_EXCLUSIVE;
}

/* Finds or makes the lock, which gets the policy unless it is in use. NULL: out of memory. */
struct lock *engine_open_lock(struct engine *engine, const char *path,
			      const struct lock_policy *policy);

#endif
