/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books, shared by the files of the engine and nobody else. What one of these files
 * does for the others is in the header of its name.
 *
 *   engine.c      calls, and time
 *   wish.c        what callers ask for: limits
 *   claim.c       the life of one claim: placing, holding, withdrawing
 *   handoff.c     whom a claim goes to next
 *   decide.c      what becomes of wishes and of what is held: granted, refused, lost
 *   decisions.c   what callers are to be told of that, once the books are in order
 *   rival.c       claims of others, and watches
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
#include "engine/engine.h"
#include "engine/place.h"
#include "engine/round_trip.h"
#include "engine/tenant.h"
#include "engine/transfer.h"
#include "journal/journal.h"

enum claim_state {
	CLAIM_WANTED,
	CLAIM_PLACING,
	CLAIM_UNCERTAIN,
	CLAIM_QUEUED,
	CLAIM_WAITING,
	CLAIM_HELD,
	CLAIM_LEAVING,
};

/* See grace.h. */
enum grace {
	GRACE_NONE,  /* not yet */
	GRACE_READS, /* how long it takes is to be read from the blocker */
	GRACE_RUNS,
	GRACE_OVER,
};

/* The marker of a claim in the store (delay.h). */
struct marker {
	bool asked : 1;	  /* perhaps it stands */
	bool stands : 1;  /* it does */
	bool marking : 1; /* mark() is under way */
	bool broken : 1;  /* the claim is LEAVING: it was held, and taken away */
};

/* What is written into the data of a claim. */
struct writing {
	uint32_t version;  /* of the data when the present amend() was sent */
	bool amending : 1; /* amend() is under way */
	bool amended : 1;  /* the data in the store is to be replaced (again) */
	bool stale : 1;	   /* others have changed it, and it is to be read */
};

/* What a claim of record locks is about. */
struct coverage {
	struct range_set ranges; /* place.ranges: all that it covers; only becomes less */
	struct range_set next;	 /* what it will be, if it changes */
	struct range asked;	 /* what is held from the grant on */
	struct owner *file;	 /* through which it was asked for */
	uint64_t cycle_list;	 /* the list in which a cycle is to be seen again */
	int cycles;		 /* in how many it was asked to be */
	int64_t cycle_ms;	 /* from when on; 0: it was not seen */
	bool changes;		 /* a change is prepared */
};

/* A call that is not decided; the wish that a claim was granted to stays with that. */
struct wish {
	struct timer timer;  /* its limit; of one that lingers, or is kept: the end of that */
	struct owner *owner; /* NULL: the owner has released the claim, which is kept */
	struct claim *claim;
	struct wish *prev, *next;	      /* in claim->wishes */
	struct wish *owner_prev, *owner_next; /* in owner->wishes */
	void *cookie;
	struct state_item item; /* wish_mark() */
	int64_t asked_ms;	/* when it was asked for */
	int pid;		/* of the caller */
	uint32_t uid;
	uint64_t serial : 56; /* the order of asking */
	uint64_t kind : 2;    /* enum lock_kind */
	uint64_t grace : 2;   /* enum grace, of one that may not wait */
	uint64_t waits : 1;   /* it may wait */
	uint64_t asked : 1;   /* it waits for its decision; cookie is set */
};

/* The details of the caller, which stand behind the wish. */
static inline void *wish_details(const struct wish *wish)
{
	return (void *)(wish + 1);
}

static inline struct engine_caller wish_caller(const struct wish *wish)
{
	return (struct engine_caller){
		.pid = wish->pid,
		.uid = wish->uid,
		.details = wish_details(wish),
	};
}

/* What a claim that is handed on from wish to wish needs for that. */
struct handoff {
	struct claim *claim;
	struct handoff *prev, *next; /* in lock->handoffs, or lock->held_handoffs */
	uint64_t number;	     /* by which saved wishes name their claim */
	int64_t passed;		     /* how often it was handed on while another host waited */
	const struct owner *asker;   /* whose it is while it is WAITING; only to be compared */
	bool contended;		     /* another host waits for it, as far as is known */
};

/* A claim of ours. */
struct claim {
	struct place place;	 /* first: see claim_of() */
	struct wish *wishes;	 /* of one that is HELD, the first is the holder's */
	struct handoff *handoff; /* NULL: the claim serves one wish only */

	struct state_item item; /* claim_mark() */
	uint64_t serial;	/* greater than of those before it in lock->unplaced */
	struct writing data;
	uint32_t proof_round; /* in which a heartbeat has shown last that it stands */
	enum claim_state state : 4;
	bool sent : 1;	   /* LEAVING: withdraw() is; PLACING: with a list */
	bool careful : 1;  /* stood behind a rival of record locks */
	bool fresh : 1;	   /* not blocked: no list is needed to be sure of that (any more) */
	bool overseen : 1; /* there is a watch in lock->overseers, */
	bool shown : 1;	   /* by which it stands: as long as nothing else was told */
	bool rivaled : 1;  /* has waited for a rival */
	bool revoked : 1;  /* somebody has asked for it, and its holder was told */
	bool gave_way : 1; /* it was queued again because of a cycle, and goes before nobody */
	struct marker marker;

	union {
		int64_t held_back_ms; /* WANTED: since when it is not placed; 0: it may be */
		int64_t sent_ms;      /* PLACING, LEAVING: when place() or withdraw() was sent */
		/* QUEUED, WAITING: when the timer of the wish is due once the grace that runs is
		 * over; INT64_MAX: it is not set then */
		int64_t limit_ms;
		int64_t kept; /* HELD: what on_held() returned */
	};
	uint64_t list_wanted; /* the list that will make it fresh, or show whether it would wait
				 where it is held back; 0: none */
	char *wanted_by;      /* who asked for it while it waited; told when it is held */
	struct claim *changed_next; /* in engine->changed; NULL: it is not */
	uint32_t looked;	    /* of lock->looks, the latest in which it was looked at */
};

/* What is known of a rival's data. */
enum knowledge {
	KNOWN_NOT,
	KNOWN_ONCE, /* they were read, or may not be: rival_may_be_none() */
	KNOWN,	    /* they have been read, and are again when they change */
	KNOWN_OURS, /* the same, and they are of dlockfs */
};

/* Who has called watch() of the store: the tag. */
struct watcher {
	bool of_tenant; /* it is the tenant's (outbox.h); else of a struct rival */
};

/* A claim of somebody else. */
struct rival {
	struct place place; /* first: see rival_of() */
	char *name;	    /* next: see struct named_place */
	struct watcher watcher;
	enum knowledge known : 2;
	bool sent : 1;	       /* watch() is under way; or withdraw(), of an orphan */
	bool amending : 1;     /* amend() is: rival_send_back() */
	bool orphan : 1;       /* it has gone, and was not released */
	bool looked_ahead : 1; /* since the last list the next one in front is watched */
	bool overseer : 1;     /* no claim, but the watch of one of ours; in lock->overseers */
	bool may_wait : 1;     /* as found out by */
	uint32_t judged;       /* the search of deadlock.c of that number */
	int64_t trip_ms;       /* of its host, as its data say; 0: not known */
	int64_t delay_end_ms;  /* of an orphan */
	char *text;	       /* its data, if they were read, and say that it waits; else NULL */
};

/* The claim of ours that has the place; NULL for a rival's, and for NULL. */
static inline struct claim *claim_of(const struct place *place)
{
	_Static_assert(offsetof(struct claim, place) == 0, "a claim begins with its place");
	return place != NULL && !place->foreign ? (struct claim *)place : NULL;
}

/* The rival that has the place; NULL for a claim of ours, and for NULL. */
static inline struct rival *rival_of(const struct place *place)
{
	_Static_assert(offsetof(struct rival, place) == offsetof(struct named_place, place) &&
			       offsetof(struct rival, name) == offsetof(struct named_place, name),
		       "a rival begins with its place, and has a name");
	return place != NULL && place->foreign ? (struct rival *)place : NULL;
}

/* The first claim of ours from that place on, in its list; NULL: there is none. */
static inline struct claim *claim_from(const struct place *place)
{
	while (place != NULL && place->foreign)
		place = place->next;
	return claim_of(place);
}

/* The next claim of ours in the list that the claim is in. */
static inline struct claim *claim_next(const struct claim *claim)
{
	return claim_from(claim->place.next);
}

/* The same for rivals. */
static inline struct rival *rival_from(const struct place *place)
{
	while (place != NULL && !place->foreign)
		place = place->next;
	return rival_of(place);
}

static inline struct rival *rival_next(const struct rival *rival)
{
	return rival_from(rival->place.next);
}

/* The first claim that waits for what stands in the place, and the next one that waits for the
 * same. */
static inline struct claim *claim_blocked(const struct place *place)
{
	return claim_of(place->blocked);
}

static inline struct claim *claim_blocked_next(const struct claim *claim)
{
	return claim_of(claim->place.blocked_next);
}

/* Visit the claims of ours, or the rivals, in a list of places. The visited one may leave the list
 * where _SAFE says so. */
#define CLAIMS_FOREACH(list, claim)                                                                \
	for ((claim) = claim_from(list); (claim) != NULL; (claim) = claim_next(claim))
#define CLAIMS_FOREACH_SAFE(list, claim, following)                                                \
	for ((claim) = claim_from(list);                                                           \
	     (claim) != NULL && ((following) = claim_next(claim), true); (claim) = (following))
#define RIVALS_FOREACH(list, rival)                                                                \
	for ((rival) = rival_from(list); (rival) != NULL; (rival) = rival_next(rival))

/* What a claim of record locks is about; NULL: it covers the whole span, in the mode, of its name.
 */
static inline struct coverage *claim_coverage(const struct claim *claim)
{
	_Static_assert(offsetof(struct coverage, ranges) == 0, "a coverage begins with its ranges");
	return (struct coverage *)claim->place.ranges;
}

/* Whether the lock is held with the claim, but by nobody of this host. */
static inline bool claim_is_kept(const struct claim *claim)
{
	return claim->state == CLAIM_HELD && claim->wishes->owner == NULL;
}

/* Whether the lock is held with the claim that was granted to the wish. */
static inline bool wish_is_held(const struct wish *wish)
{
	return wish->claim->state == CLAIM_HELD && wish->claim->wishes == wish;
}

/* The first wish of the claim that waits for its decision; NULL: there is none. */
static inline struct wish *claim_first_asked(const struct claim *claim)
{
	struct wish *wish = claim->wishes;
	while (wish != NULL && !wish->asked)
		wish = wish->next;
	return wish;
}

/* Visit the wishes of an owner; the visited one may leave the list where _SAFE says so. */
#define OWNER_FOREACH(owner, wish) DL_FOREACH2 ((owner)->wishes, wish, owner_next)
#define OWNER_FOREACH_SAFE(owner, wish, following)                                                 \
	DL_FOREACH_SAFE2 ((owner)->wishes, wish, following, owner_next)

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

/* A question what a wish for a record lock would conflict with. */
struct test {
	struct test *prev, *next; /* in lock->tests */
	struct timer timer;	  /* its limit, or the end of the grace of what is in the way */
	int64_t limit_ms;	  /* INT64_MAX: it has none */
	int64_t asked_ms;
	struct lock *lock;
	struct owner *file;
	uint64_t process;
	struct range range;
	uint64_t list_wanted; /* the list that will answer it */
	void *cookie;
};

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
	size_t own_in_queue;  /* claims of ours and tests: what the queue is kept for */
	size_t tests_count;
	size_t foreign_in_queue;
	size_t foreign_records_in_queue; /* of record locks among them */
	size_t records_in_queue;	 /* anybody's of record locks, or with an anchor */
	size_t anchored_in_queue;	 /* anybody's with an anchor */
	struct handoff *handoffs;	 /* of claims not HELD, in the order of asking */
	struct handoff *held_handoffs;
	bool mixed;	/* the log has told of claims of another recipe */
	bool attended;	/* on_changed() will tell of the next change of the queue; */
	bool unchanged; /* and would have told of every one since a list that is known */
	bool duel; /* the latest list that came with a claim had one rival's besides, and no more */
	const struct claim *attender; /* whose place() asks for on_changed(); or NULL */
	struct records *records;
	size_t ranges;	    /* held by processes of this host */
	size_t held_flocks; /* claims of flock or open that are HELD */

	/* Once it is known, `queue` has every claim of an order up to known_to that exists: claims
	 * in front can go, but never come. It is known only while a claim of ours stands in it (an
	 * empty queue's orders may restart). */
	bool known;
	int64_t known_to;
	size_t placing;		  /* place() under way, engine->placing_max at most */
	size_t placing_with_list; /* those that will bring the queue along */

	uint64_t list_wanted;	 /* nothing is granted before that list; 0: there was none */
	int64_t moratorium_ms;	 /* nor before that time (moratorium.h) */
	size_t broken;		 /* claims; nor before these have left */
	uint64_t orphans_list;	 /* the list that will show what lost holders have left, once */
	uint64_t former_session; /* of claim ids: the latest that was lost with a claim of ours that
				    may leave an orphan; 0: none was */

	bool worn; /* a late order stands there, as far as is known: new claims are held back */
	int64_t late_order;    /* the latest one that was seen, while it is worn; 0: none was yet */
	int64_t worn_since_ms; /* since then it is */
	size_t listed;	       /* in the latest list: claims and orphans, */
	size_t listed_orphans; /* and how many of them were orphans */
	bool spent;	       /* the last one does */
	bool put_off;	       /* the store takes none for the moment */

	/* There may be a cycle, but not all of it is known, or it could not be broken yet: it is
	 * looked for again whenever a claim goes. */
	bool cycle_expected;
	uint32_t looks; /* so often all of its claims were to be looked at because of that */
	struct lock *seeking_prev, *seeking_next; /* in engine->seeking; NULL: it is not */
	int64_t sought; /* the order of the latest claim that was looked at there */

	bool missing;	 /* one of our claims is gone: which, the next list shows */
	bool taken_over; /* from another process: a server may know less of it than we do */
	bool unseen;	/* the store has not listed it since it is connected: with what was in front
			   of a claim of ours, that may be gone too */
	bool listing;	/* a list() is under way, */
	bool attending; /* which asks for on_changed(), */
	bool synced;	/* which shows everything that happened before it was sent */
	uint64_t lists_sent, lists_done;
	bool read_since; /* the latest one was sent: data of a rival */

	char path[];
};

/* What callers are to be told (decisions.h). */
struct decisions {
	struct decision *list;
	size_t count, capacity;
	bool lost; /* a loss was noted, and on_told() has not come yet */
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
	uint64_t serials;	   /* so far: of locks, claims and wishes */
	struct outgoing *outgoing; /* outbox.c */
	bool stopping;		   /* grants nothing any more */
	enum store_session session;
	int64_t timeout_ms; /* of the session; 0: it cannot end unnoticed */
	bool barred;	    /* something waits because nothing might be granted (lock.h) */
	struct round_trip round_trip;
	uint32_t doubts;       /* so far: see engine_doubt() */
	int64_t doubt_ms;      /* the latest of them; INT64_MIN: there was none */
	int64_t moratorium_ms; /* nothing is granted before (moratorium.h); INT64_MIN: there is none
				*/
	enum store_moratorium moratorium; /* and why */
	uint64_t setbacks;		  /* of the store, so far */
	bool beat_wanted;		  /* a heartbeat is due at once, to show what stands */
	bool beating;			  /* a heartbeat is under way, */
	int64_t sent_ms;		  /* sent at this time */
	int64_t suspended_ms; /* since when the session is; INT64_MIN: since engine_advance() */
	int64_t nudged_ms;    /* when the store was nudged last; INT64_MIN: never */
	bool hurried;	      /* it was connected then, and is not again */
	int64_t nudge_ms;     /* when it will be, unless it answers; INT64_MAX: it will not */
	int64_t now_ms;
	size_t placing_max;	   /* see engine_set_placing_max() */
	size_t proofs_max;	   /* see engine_set_proofs_max() */
	int64_t retry_ms;	   /* when to send again what failed; INT64_MAX: nothing did */
	struct log_limit refusals; /* what the log says of them */

	struct tenant tenant;

	struct lock *locks;
	struct decisions decisions;
	struct claim *changed; /* the last of a ring of WAITING claims, to be judged again */
	struct timers timers;
	size_t claims;
	size_t wishes; /* for which there is room in timers */
	struct timers test_timers;
	size_t tests; /* for which there is room in that */
	size_t holders;
	size_t kept; /* claims: claim_is_kept() */
	size_t waiters;
	size_t worn;		 /* locks */
	uint64_t session_number; /* of claim ids */
	uint32_t claim_number;
	uint32_t owner_number;
	struct process *processes;
	uint32_t searches;    /* for cycles, so far */
	struct lock *seeking; /* with claims to be looked at because of cycles */
	int64_t steps_left;   /* that searches may take, */
	int64_t steps_least;  /* as many are left of them when one is given up, */
	int64_t steps_ms;     /* until there are more at this time */
	uint32_t proof_round; /* of heartbeats: each brings along claims that had no turn in it */
	uint64_t grants;      /* so far */
	uint64_t connections; /* to the store, so far */
	uint64_t sessions_lost;
};

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
struct lock *lock_open(struct engine *engine, const char *path, const struct lock_policy *policy);

#endif
