/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books, shared by the files of the engine and nobody else.
 *
 *   engine.c        owners and their wishes, time
 *   engine_claim.c  the life of one claim: placing, deciding, withdrawing
 *   engine_lead.c   claims that serve several callers, one after the other
 *   engine_queue.c  the order of claims in one lock: who blocks whom, who is next
 *   engine_merge.c  bringing the queue in line with a list from the store
 *   engine_record.c  record locks: what processes hold
 *   engine_coverage.c  which claims stand for that
 *   engine_deadlock.c  who waits for whom in a cycle
 *   engine_test.c   F_GETLK: what a wish would conflict with
 *   engine_proof.c  whether what is held still is, and tokens
 *   engine_steer.c  who asks holders for their locks, or takes them away
 *   engine_store.c  what the store tells: answers and lists
 *   engine_session.c  the session and its lease
 *   engine_outbox.c  what is sent to the store, behind the commit of the journal
 *   engine_save.c  all that as text, and what of it has changed
 *   engine_transfer.c  passed on to another process
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
 *                              would wait for itself      LEAVING, decided -EDEADLK
 *                              its anchor is gone         WANTED, under a new name
 *   HELD       lock->queue     released                   LEAVING
 *   FOLLOWING  lead->followers the lead is given to it    decided 0, freed
 *   LEAVING    lock->leaving   withdrawn                  freed
 *                              ambiguous or failed        LEAVING, withdraw() sent again
 *   TESTING    lock->tests     list has come, all that    told, freed
 *                              conflicts has been read
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
#include "engine_transfer.h"
#include "lease.h"
#include "log_limit.h"
#include "state_journal.h"
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
	CLAIM_TESTING,
	CLAIM_FOLLOWING,
};

/* What a claim of record locks is about. */
struct coverage {
	struct range_set ranges; /* all that the claim covers; only becomes less */
	struct range_set next;	 /* what it will be, while a change is prepared */
	struct range asked;	 /* ours: what is held from the grant on */
	struct owner *file;	 /* ours: through which it was asked for */
	uint64_t process_id;	 /* of a test: who asks */
	uint64_t cycle_list;	 /* the list in which a cycle is to be seen again */
	int cycles;		 /* in how many it was asked to be */
};

struct claim {
	struct timer timer; /* the limit of a wish, or the end of lingering; first: see engine.c */
	struct state_item item; /* ours, as engine_save.c writes it: claim_mark() */
	uint64_t serial;	/* ours: greater than of those before it in lock->unplaced */
	struct lock *lock;
	struct owner *owner; /* NULL: foreign, leaving, or abandoned while being placed */
	struct claim *prev, *next;
	struct claim *owner_prev, *owner_next;

	enum claim_state state : 4;
	enum lock_kind kind : 2;
	bool named : 1;	     /* it has a name, else a cookie */
	bool waits : 1;	     /* a wish that may wait */
	bool asked : 1;	     /* a wish waits for its decision; cookie is set */
	bool sent : 1;	     /* LEAVING: withdraw() is; FOREIGN: watch(); PLACING: with a list */
	bool unsettled : 1;  /* in engine->unsettled */
	bool read : 1;	     /* FOREIGN: its data has been read, and is again when it changes */
	bool amending : 1;   /* amend() is under way */
	bool amended : 1;    /* its data in the store is to be replaced (again) */
	bool says_waits : 1; /* its data does, or is about to: see engine_queue.c */
	bool says_keep : 1;  /* its data does: perhaps nobody holds by it */
	bool careful : 1;    /* ours: stood behind a foreign claim of record locks */
	bool may_wait : 1;   /* see judged */
	bool fresh : 1;	   /* ours, not blocked: no list is needed to be sure of that (any more) */
	bool overseen : 1; /* ours: there is a watch for its orders */
	bool orders : 1;   /* no claim, but that watch of one that is overseen; in lock->watched */
	bool revoked : 1;  /* ours: somebody has asked for it, and its holder was told */
	bool looked_ahead : 1; /* FOREIGN: since the last list the next one in front is watched */

	int32_t waits_for; /* for the claim of that number */
	union {
		int64_t sent_ms; /* when place() or withdraw() was sent */
		int64_t kept;	 /* HELD: what on_held() returned */
	};
	uint64_t list_wanted; /* the list that will make it fresh, or answer the test; 0: none */
	uint32_t visited;     /* by the search of engine_deadlock.c of that number, */
	uint32_t judged;      /* and whether it may wait found out by that one */
	uint32_t proof_round; /* in which a heartbeat has shown last that it stands */
	int pid;	      /* of who asked */
	uint32_t uid;
	struct claim_name parts;
	struct lead *lead;	   /* that it is, or follows; NULL: it is on its own */
	struct coverage *coverage; /* NULL: the whole span of its name, in the mode of its name */
	union {
		char *name; /* FOREIGN; that of ours follows from its parts: claim_name_of() */
		void *cookie;
	};

	/* The nearest claim in front that conflicts, and whom this one blocks in that way. */
	struct claim *blocker;
	struct claim *blocked;
	struct claim *blocked_prev, *blocked_next;
	struct claim *unsettled_prev, *unsettled_next;

	char details[] __attribute__((aligned(8))); /* of who asked */
};

/* What makes a claim one that serves several wishes, one after the other: see engine_lead.c. */
struct lead {
	struct claim *claim;	   /* its owner is who holds by it, or lock->keeper */
	uint64_t number;	   /* by which its followers know it */
	struct claim *followers;   /* in the order of asking; not in the store */
	struct lead *prev, *next;  /* in lock->leads, or lock->held_leads */
	int64_t passed;		   /* so often on from one to the next while another host waited */
	const struct owner *asker; /* whose it was as long as it waited; only to be compared */
	bool held;		   /* the lock is held with it */
	bool used;		   /* it has been given to somebody */
	bool contended; /* whoever has it now knows that another host waits, or was told */
};

struct owner {
	struct state_item item; /* owner_mark() */
	struct lock *lock;
	void *cookie;
	bool lost;
	uint32_t number;	 /* in the ids of its claims */
	struct claim *claims;	 /* all that it asks for, lingers for or holds */
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
	bool sent;	      /* prove() is under way */
	int64_t sent_ms;      /* since then */
	uint64_t list_wanted; /* the list that comes before it is sent (again) */
	uint64_t granted;     /* the latest grant when it was sent */
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

	struct claim *unplaced; /* ours, in the order in which they were asked for */
	struct claim *queue;	/* ours and foreign ones, in the store's order */
	struct claim *leaving;	/* ours */
	struct claim *watched;	/* foreign, out of the queue's books but with a watch */
	struct claim *tests;	/* ours, that never stand in a queue */
	struct proof *proofs;	/* undecided, or with prove() under way */
	size_t own_in_queue;	/* and tests: what the queue is kept for */
	size_t tests_count;
	size_t foreign_in_queue;
	size_t foreign_records_in_queue; /* of record locks among them */
	size_t records_in_queue;	 /* anybody's of record locks, or with an anchor */
	size_t anchored_in_queue;	 /* anybody's with an anchor */
	struct lead *leads;		 /* that wait, in the order of asking */
	struct lead *held_leads;
	struct owner *keeper; /* of leads that nobody holds by; NULL: there was none yet */
	bool mixed;	      /* the log has told of claims of another recipe */
	bool attended;	      /* on_changed() will tell of the next change of the queue */
	struct records *records;
	size_t ranges;	    /* held by processes of this host */
	size_t held_flocks; /* claims of flock or open that are HELD */

	/* Once it is known, `queue` has every claim numbered up to known_to that exists: claims in
	 * front can go, but never come. It is known only while a claim of ours stands in it (an
	 * empty queue's numbers may restart). */
	bool known;
	int32_t known_to;
	size_t placing;		  /* place() under way, engine->placing_max at most */
	size_t placing_with_list; /* those that will bring the queue along */

	uint64_t list_wanted; /* nothing is granted before that list; 0: there was none */

	bool missing;	 /* one of our claims is gone: which, the next list shows */
	bool taken_over; /* from another process: a server may know less of it than we do */
	bool listing;	 /* a list() is under way, */
	bool attending;	 /* which asks for on_changed(), */
	bool synced;	 /* which shows everything that happened before it was sent */
	uint64_t lists_sent, lists_done;
	bool read_since; /* the latest one was sent: data of a foreign claim */

	char path[];
};

struct engine {
	const struct engine_events *events;
	void *context;
	struct store *store;
	struct state_journal *journal; /* NULL: nothing is kept there */
	const struct engine_transfer *transfer;
	uint64_t place; /* the first number of its items' places */
	struct state_item item;
	uint64_t serials;	   /* so far: of locks, claims and leads */
	struct outgoing *outgoing; /* engine_outbox.c */
	bool stopping;		   /* grants nothing any more */
	enum store_session session;
	struct lease lease;
	bool beating;	      /* a heartbeat is under way, */
	int64_t sent_ms;      /* sent at this time */
	int64_t suspended_ms; /* since when the session is; INT64_MIN: since engine_advance() */
	int64_t nudged_ms;    /* when the store was nudged last; INT64_MIN: never */
	bool hurried;	      /* it was connected then, and is not again */
	int64_t nudge_ms;     /* when it will be, unless it answers; INT64_MAX: it will not */
	int64_t now_ms;
	size_t placing_max;	   /* see engine_set_placing_max() */
	int64_t retry_ms;	   /* when to send again what failed; INT64_MAX: nothing did */
	struct log_limit refusals; /* what the log says of them */
	struct lock *locks;
	struct claim *unsettled; /* WAITING claims whose place is to be looked at again */
	struct timers timers;
	size_t claims; /* ours: room is reserved for so many timers */
	size_t holders;
	size_t waiters;
	uint64_t session_number; /* of claim ids */
	uint32_t claim_number;
	uint32_t owner_number;
	struct process *processes;
	uint32_t searches;    /* for cycles, so far */
	uint32_t proof_round; /* of heartbeats: each brings along claims that had no turn in it */
	uint64_t grants;      /* so far */
	uint64_t connections; /* to the store, so far */
	uint64_t sessions_lost;
};

/* engine.c */

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

/* Tells that the owner has lost a lock, unless that was told, and ends its wishes with -EIO. */
void owner_lose(struct owner *owner);

/* Whether somebody of this host, who is known without asking, is surely in the way of a wish. */
bool would_wait_here(const struct owner *owner, struct range range);

/* Finds or makes the lock, which gets the policy if it is new. NULL: out of memory. */
struct lock *lock_open(struct engine *engine, const char *path, const struct lock_policy *policy);

/* Makes the claim a wish and sends it on its way. */
void wish(struct claim *claim, bool waits, void *cookie);

/* The claim that an open file holds by open or flock, but for that one; NULL: there is none. */
struct claim *owner_held_but(const struct owner *owner, enum lock_kind kind,
			     const struct claim *claim);

/* The owner has been granted something just now. */
void owner_note_grant(struct owner *owner);

/* engine_claim.c */

/* A new wish of the owner at the end of lock->unplaced. Returns NULL when out of memory. */
struct claim *claim_create(struct owner *owner, enum lock_kind kind, struct range range,
			   const struct engine_caller *caller);

/* The claim's name in the store: of one that stands there, or has stood. `text` may be used for it.
 */
const char *claim_name_of(const struct claim *claim, char text[CLAIM_NAME_BYTES]);

/* Puts a claim at the end of lock->unplaced. */
void claim_append_unplaced(struct claim *claim);

/* Sets the claim's timer, for which there is room, or clears it. */
void claim_set_timer(struct claim *claim, int64_t due_ms);
void claim_clear_timer(struct claim *claim);

/* Frees a claim that is in no list but its owner's. */
void claim_free(struct claim *claim);

/* Ends one that is in no list but its owner's: frees it, if the store need not answer first. */
void claim_end(struct claim *claim);

/* Marks the claim as somebody's wish, and sets its limit. */
void claim_ask(struct claim *claim, bool waits, void *cookie);

/* The claim is HELD from now on. */
void claim_hold(struct claim *claim);

/* The end of the wish: result 0 makes the claim HELD, another one withdraws it. */
void claim_decide(struct claim *claim, int result);

/* Takes the claim away, from whatever state, without a decision. It may be freed. */
void claim_withdraw(struct claim *claim);

/* Takes a flock or an open away, or hands it to a process whose record locks it covers. */
void claim_release(struct claim *claim);

/* The claim is another owner's from now on. */
void claim_hand_over(struct claim *claim, struct owner *owner);

/* Whether a WAITING claim has lost its anchor: its owner, and who is one with it, holds nothing any
 * more. Others would wait for it who owe it nothing, perhaps in a cycle. */
bool claim_is_adrift(const struct claim *claim);

/* Lets a WAITING claim go to the end of the queue, under a new name. Returns false without
 * the memory for that: it stays. */
bool claim_requeue(struct claim *claim);

/* Back to WANTED with a new identity, out of any list; the caller puts it into lock->unplaced. */
void claim_start_over(struct claim *claim);

/* The owner of a HELD claim, already out of the queue, has lost it: tells, ends its other wishes
 * with -EIO, ends the claim. */
void claim_lose(struct claim *claim);

/* The text of who asked for it. */
void claim_describe(const struct claim *claim, char text[ENGINE_TEXT_BYTES]);

/* The claim's data; NULL: out of memory. To be freed. */
char *claim_format_data(const struct claim *claim);

/* Whether the claim must not be decided by what was known of others before it was placed: to be
 * refused, or with an anchor, to go before them. */
bool claim_needs_news(const struct claim *claim);

/* Sends what the claim wants sent, if the store is connected. */
void claim_place(struct claim *claim);
void claim_watch(struct claim *claim);
void claim_amend(struct claim *claim);

/* Notes that something has failed and is to be sent again after so long. */
void engine_retry_in(struct engine *engine, int64_t delay_ms);

/* The wish is over: nobody is to be told any more, and its limit is cleared. */
void claim_end_wish(struct claim *claim);

/* A lead is held with: somebody of this host holds by it from now on, or nobody any more. */
void claim_give(struct claim *claim, struct owner *owner);
void claim_take_back(struct claim *claim);

/* For the ids of the claims of one more owner, or process: never CLAIM_OWNER_NONE. */
uint32_t engine_next_owner(struct engine *engine);

/* engine_lead.c */

/* Whether the claim is HELD, but by nobody of this host. */
bool claim_is_kept(const struct claim *claim);

/* The owner of a claim; of a lead that waits, that of the first follower who asks. */
const struct owner *claim_asker(const struct claim *claim);

/* Makes sure that the lock has a keeper. Returns false when out of memory. */
bool lock_make_keeper(struct lock *lock);

/* Whether wishes of flock and open follow leads. */
bool lock_uses_leads(const struct lock *lock);

/* A wish, as engine_lock() says. */
int lead_wish(struct owner *owner, enum lock_kind kind, enum claim_mode mode, bool waits,
	      const struct engine_caller *caller, void *cookie, struct claim **ret_claim);

/* The claim of a lead is placed anew. */
void lead_start_over(struct lead *lead);

/* The claim of a lead has been granted, or refused. */
void lead_decided(struct claim *claim, int result);

/* The holder releases the claim. Returns false if it is no lead, or not any more: then it is to be
 * released as others are. */
bool lead_release(struct claim *claim);

/* A follower gives up: it is freed. */
void lead_unfollow(struct claim *wish);

/* A follower asks, again, or only lingers. */
void lead_follower_changed(struct claim *wish);

/* If the claim is a lead, it is none any more: its followers get a new one. */
void lead_disband(struct claim *claim);

/* If the claim is a lead, without followers, it is none any more. */
void lead_forget(struct claim *claim);

/* Looks at the lock's leads again: the queue is known better, or the session. */
void leads_settle(struct lock *lock);

/* As engine_each_user(), for one claim. */
void lead_each_user(const struct lead *lead,
		    void (*visit)(void *context, const char *claim, enum engine_use use,
				  const char *text),
		    void *context);

/* Whether it is to be asked for on_changed(). */
bool leads_want_attention(const struct lock *lock);

/* engine_queue.c */

/* Whether a and b are one when it comes to conflicts. */
bool owners_are_one(const struct owner *a, const struct owner *b);

/* Whether what two claims of one lock cover excludes each other, whosever they are. */
bool claims_cross(const struct claim *a, const struct claim *b);

/* Whether two claims of one lock exclude each other. */
bool claims_conflict(const struct claim *a, const struct claim *b);

/* Whether a claim is a flock that a process took over. */
bool claim_was_handed_over(const struct claim *claim);

/* Whether two foreign claims of record locks are of one process. */
bool claims_are_one_process(const struct claim *a, const struct claim *b);

/* Negative, zero or positive as the claims stand in the queue. */
int claims_compare(const struct claim *a, const struct claim *b);

/* Whether a claim, by its anchor, goes before one that stands in front of it and is not held. */
bool claim_has_precedence(const struct claim *claim, const struct claim *over);

/* Whether a claim is to wait for one that stands behind it: that has precedence, or is held: a
 * flock through the same open file, which others have locked under, or which was handed over. */
bool claim_is_behind(const struct claim *claim, const struct claim *behind);

/* Whether a claim goes before one that stands in front of it, as far as is known. */
bool claim_passes(const struct claim *claim, const struct claim *front);

/* Puts a claim that has a sequence number where it belongs. */
void queue_insert(struct claim *claim);

/* Puts a claim in front of `at`; NULL: at the end. */
void queue_insert_before(struct lock *lock, struct claim *at, struct claim *claim);

/* A foreign claim is about to go, as a watch has told: who waits for the next one behind it looks
 * further ahead, the first one for all. */
void queue_end_look_ahead(const struct claim *claim);

/* Takes a claim out of the queue; whom it blocked is looked at again. */
void queue_remove(struct claim *claim);

/* The claim covers less, or is known to: whom it blocked is looked at again. */
void queue_weaken(struct claim *claim);

/* One claim of ours, or test, needs the queue no longer. */
void queue_release(struct lock *lock);

/* Notes that a WAITING claim's place is to be looked at, by engine_settle(). */
void queue_unsettle(struct claim *claim);

/* Grants, refuses or blocks every unsettled claim. Last thing in every entry to the engine. */
void engine_settle(struct engine *engine);

/* engine_merge.c */

/* Brings the queue in line with a list from the store. */
void queue_merge(struct lock *lock, const struct store_entry *entries, size_t count);

/* A HELD claim is in the store no longer: somebody took it away, and its owner has lost it. */
void queue_lose(struct claim *claim);

/* engine_record.c */

/* Whether the process can have what the claim asks for without it: by what it holds, or a flock. */
bool records_cover(const struct claim *claim);

/* Its owner holds what the claim asked for. It is HELD, if it is needed for that, and others that
 * it makes needless go. Returns 0; or -ENOMEM, and the claim is withdrawn. */
int records_grant(struct claim *claim);

/* The open file is closed. */
void records_forget_file(struct owner *file);

/* The process has lost a lock: it holds nothing any more, and its open files are told. */
void records_lose(struct records *records);

/* The open file has lost a lock: ends what processes ask for through it. */
void records_lose_file(const struct owner *file);

/* Whether the process holds record locks on any file of this host. */
bool process_holds(const struct process *process);

/* Those of a process; NULL: it has none on that lock. */
struct records *records_find(const struct lock *lock, uint64_t process_id);

/* The same, made if there are none. NULL: out of memory. */
struct records *records_open(struct lock *lock, uint64_t process_id);

/* Frees what has no claims any more. */
void records_free(struct records *records);

/* From now on the process and the open file are one. Returns 0 or -ENOMEM. */
int records_add_file(struct records *records, struct owner *file);

/* The process holds this from now on; the set is taken over. */
void records_set_held(struct records *records, struct range_set held);

/* engine_coverage.c */

/* Whether a flock covers record locks that are in the way of a claim of record locks. */
bool coverage_is_in_the_way(const struct claim *flock, const struct claim *claim);

/* Whether the claim is a flock that may cover record locks of the process. */
bool coverage_may_be_by(const struct claim *claim, const struct records *records);

/* A process whose record locks need the flock's claim; NULL: nobody does. */
struct owner *coverage_heir(const struct claim *flock);

/* A flock was lost: so is what only that covered. */
void coverage_lose_rest(struct lock *lock);

/* Whether the process can have the range at once: by what it holds, or by a flock of its, if nobody
 * else who has locked under that is in the way. */
bool coverage_includes(const struct records *records, struct range range);

/* The process holds this from now on, and nothing more; the set is taken over. Its claims cover
 * that. Returns 0 or -ENOMEM: then nothing has changed, and the set is freed. */
int coverage_change(struct records *records, struct range_set held);

/* The process holds less: those are looked at again who may have waited for that. */
void coverage_release(const struct records *records);

/* The claim has been granted: older ones of the owner that it makes needless go. */
void coverage_tidy(struct claim *claim);

/* engine_deadlock.c */

/* Whether the claim's owner waits for itself, by others who came earlier. Reads foreign claims that
 * have to be known first: then the claim is unsettled again. */
bool claim_closes_cycle(struct claim *claim);

/* engine_test.c */

/* Answers the tests that can be. */
void tests_settle(struct lock *lock);

/* A foreign claim has gone, and its owner may have another one for the same range: looks again. */
void tests_look_anew(struct lock *lock);

/* Ends a test without an answer. */
void test_end(struct claim *claim);

/* Ends a test with an answer. */
void test_answer(struct claim *claim, int error, const struct engine_conflict *conflict);

/* engine_proof.c */

/* Sends the lock's proofs that can be. */
void proofs_resume(struct lock *lock);

/* Whether one of them waits for a list. */
bool proofs_need_list(const struct lock *lock);

/* Nothing will be heard of those that were sent. */
void proofs_forget_sent(struct lock *lock);

/* The open file has lost a lock: answers its proofs. */
void proofs_lose_file(const struct owner *file);

/* The open file is closed: its proofs end without an answer. */
void proofs_forget_file(const struct owner *file);

/* Sends a heartbeat, which brings along some claims. */
void engine_send_beat(struct engine *engine);

void engine_on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp);

/* engine_steer.c */

/* Watches claims that are held, for what others write into their data. */
void engine_oversee(struct engine *engine);

/* The data of a claim that is overseen has been read. */
void orders_read(const struct claim *orders, const char *text);

/* Such a watch is over; error 0: because the claim is gone. */
void orders_end(const struct claim *orders, int error);

/* engine_session.c */

/* Whether locks may be granted now: the session is known to live and the store answers. */
bool engine_may_grant(const struct engine *engine);

/* Nothing is known of the store yet. */
void engine_begin_silence(struct engine *engine);

/* A write that was sent at that time is acknowledged. */
void engine_proved_alive(struct engine *engine, int64_t sent_ms);

/* Judges the lease: fences what is held if it has ended. */
void engine_judge_lease(struct engine *engine);

/* Sends a heartbeat if one is due. */
void engine_beat(struct engine *engine);

/* Nudges a store that does not answer, and gives up a session that stays without a connection. */
void engine_mind_silence(struct engine *engine);

/* When engine_mind_silence() is needed; INT64_MAX if it is not. */
int64_t engine_silence_deadline(const struct engine *engine);

/* Makes the next one due at once. */
void engine_hurry_beat(struct engine *engine);

/* When the lease or the next heartbeat needs engine_advance(); INT64_MAX if neither does. */
int64_t engine_lease_deadline(const struct engine *engine);

void engine_on_session(void *context, enum store_session session, int64_t timeout_ms);

/* A heartbeat is answered: as on_proved() says. */
void engine_beaten(struct engine *engine, int error, const char *missing);

/* engine_outbox.c: the operations of store.h. Everything is copied, where it has to wait. */

void engine_place(struct claim *claim, const char *data, bool list);
void engine_list(struct lock *lock, bool sync, bool attend);
void engine_amend(struct claim *claim, const char *data);
void engine_watch(struct claim *claim);
void engine_withdraw(struct claim *claim);
void engine_send_proof(struct engine *engine, struct proof *proof, const struct store_proof *proofs,
		       size_t count);

/* What waits to be sent is not. */
void engine_forget_outgoing(struct engine *engine);

/* engine_save.c */

/* The words for states and kinds, by their numbers; of states, what they are once the connection is
 * lost. */
extern const char *const engine_state_words[CLAIM_FOLLOWING + 1];
extern const char *const engine_kind_words[LOCK_KIND_RECORD + 1];

/* What is written of it has changed: for the journal. Not for foreign claims. */
void engine_mark(struct engine *engine);
void lock_mark(struct lock *lock);
void owner_mark(struct owner *owner);
void claim_mark(struct claim *claim);

/* It is about to be freed. */
void engine_unmark(struct engine *engine, struct state_item *item);

/* engine_store.c */

/* Notes that something failed and is to be tried again, and tells so unless it was a lost
 * connection: "PATH: WHAT: why; trying again". */
void lock_retry_after(struct lock *lock, const char *what, int error);

/* Asks the store for the queue of the lock, unless that is under way. */
void lock_list(struct lock *lock);

/* The number of the first list that will be sent from now on, which is asked for. */
uint64_t lock_list_anew(struct lock *lock);

/* Whether what is known of the queue is enough to grant anything. */
bool lock_is_sure(const struct lock *lock);

/* Frees the lock if nothing needs it. */
void lock_free_if_unused(struct lock *lock);

/* Sends everything that the lock's claims want sent and that is not under way. */
void lock_resume(struct lock *lock);

#endif
