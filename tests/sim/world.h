/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated world: a few hosts, each an engine on a bad network, share one service of claims;
 * their users lock and unlock at random.
 *
 *   sim.c            the command line, time, the order of things
 *   world.c          hosts and what befalls them
 *   world_users.c    what users do
 *   world_model.c    what users hold, by the rules of flock(2) and fcntl(2)
 *   world_view.c     what stands in the service's queues
 *   world_handoff.c  claims that pass from call to call, and are kept
 *   world_wait.c     who waits for whom in a circle
 *   world_proof.c    questions whether what was locked is still held, tokens, claims taken away by
 *                    hand
 *   world_peers.c    hosts that tell each other what is released
 *   world_lease.c    the clocks of the servers, and what a lease may be
 *   world_machine.c  hosts whose clocks stand still, and that are told so
 *   world_restart.c  daemons that are killed, and those that go on after them
 *   world_setback.c  servers that are set back, unnoticed
 *   world_fence.c    fences that take time
 *   world_room.c     locks that several may hold at once
 *   world_told.c     claims that end though nobody has announced it
 *   world_files.c    lock files
 *   world_check.c    what must be true after every step
 *
 * The world knows the truth: what stands in the service's queues and whose it is. An engine only
 * knows what its store tells it.
 */
#ifndef DLOCKFS_WORLD_H
#define DLOCKFS_WORLD_H

#include <stdarg.h>

#include "../told.h"
#include "engine/engine.h"
#include "journal/journal.h"
#include "prng.h"
#include "slots.h"
#include "store_faulty.h"
#include "unclaimed.h"

enum { HOSTS_MAX = 4, LOCKS_MAX = 3, USERS_MAX = 5, FOREIGN_MAX = 2, NAME_BYTES = 192 };
enum { CALLS_MAX = 2 };				/* at once, through one open file */
enum { QUESTIONS_MAX = 2 };			/* likewise */
enum { PROCESSES_MAX = USERS_MAX * CALLS_MAX }; /* that have locked, on one host */
enum { TIMEOUT_MS = 480 };			/* of a session */
enum { CLAIMS_MAX = 512 };			/* in one queue */

enum call_kind { CALL_OPEN, CALL_FLOCK, CALL_RECORD, CALL_TEST };

/* What a process asks for through an open file, or asked for last. */
struct call {
	struct user *user;
	uint64_t process; /* who makes it: the kernel's number, or one that the file has alone */
	unsigned number;  /* of all that ever were, from 1 */
	enum call_kind kind;
	enum claim_mode mode;
	struct claim_span span;
	struct slots slots; /* the same */
	bool waits;

	struct wish *wish; /* NULL: none is under way */
	struct test *test;
	bool waiting;
	bool interrupted;  /* it was; it may be restarted */
	bool excused;	   /* there was a reason to refuse it, if it does not wait; or to tell a
			      conflict, if it is a test */
	bool excused_here; /* the same, and it was one of its own host */
	bool unopposed;	   /* a test: there was a moment without a conflict */
	bool circled;	   /* there was a circle that it closed */
	bool refused;	   /* just now: its claim is being withdrawn */
	int64_t since_ms;

	uint64_t visited; /* world_wait.c */
};

/* Whether what was locked through an open file is still held. */
struct question {
	struct user *user;
	unsigned number; /* of all that ever were, from 1 */
	bool token;	 /* is asked for */

	struct proof *proof;
	bool asked;	   /* and not answered */
	bool held_nothing; /* there was a moment since when the file did */
	bool stood;	   /* there was one when it held, and its claims stood at the service */
	struct slots kept; /* what it has held all the time */
	unsigned grants;   /* of the file, when it was asked */
	int64_t since_ms;
};

/* A token that an open file was told. */
struct told {
	uint64_t token;
	int lock;
	unsigned life, user;
	uint64_t processes[CALLS_MAX];
	struct slots slots; /* what it is good for, */
	int number;	    /* and of whom, where several may hold the lock; -1: they may not */
};

/* A lock's file, opened; one or two processes make calls through it, each one at a time. */
struct user {
	struct state_item item; /* in host->journal */
	struct host *host;
	struct owner *owner; /* NULL: no such user now */
	unsigned number;     /* of all that ever were, from 1 */
	int lock;
	bool lost;
	bool likes_records; /* rather than flock */
	struct call calls[CALLS_MAX];
	struct question questions[QUESTIONS_MAX];

	unsigned grants;	/* so far; or what may count as one */
	uint64_t token;		/* the last that it was told; 0: none */
	unsigned token_grants;	/* so many grants there were then */
	struct slots told;	/* what that was good for, */
	struct slots told_kept; /* and what of that it has held since */
	int64_t broken_ms;	/* when the claim that it holds by was taken away; 0: it was not */
	bool broken;		/* one by which a process of its held record locks was */

	int64_t least_ms, most_ms; /* its own (world_term.c) */
	int64_t held_ms;	   /* when it was granted that, or once more by another call, */
	int64_t again_ms;	   /* which it */
	bool holds;		   /* holds: the whole file, by flock or open, */
	enum claim_mode mode;	   /* in this mode */
};

/* A process that has made calls for record locks, on one lock. */
struct process {
	bool known; /* there is one */
	int lock;
	uint64_t id;
	bool lost;
	bool files[USERS_MAX]; /* through which it has locked */
	struct slots held;
};

enum { FILES_MAX = 3, FILE_CALLS_MAX = 2, FILES_TAKEN_MAX = 256 };

enum file_call_kind { FILE_MAKE, FILE_MOVE, FILE_REMOVE, FILE_STEAL, FILE_CHECK, FILE_READ };

/* A call about a lock file. */
struct file_call {
	struct host *host;
	enum file_call_kind kind;
	int file, from;
	uint32_t version;
	uint64_t number;       /* of all that ever were, from 1: that of what it makes */
	uint64_t first_number; /* that it had before its daemon was killed */
	bool waiting;
	bool met;   /* there was a moment when something had that name; */
	bool stood; /* and one when the host's own file had */
	bool lost;  /* its session may be another one than when it was asked */
	unsigned life;
	int64_t since_ms, limit_ms; /* by the clock of the host */
};

struct host {
	struct world *world;
	int number;
	unsigned life; /* of all that ever were, from 1: a host that comes back begins another, and
			  so does one that gives its session up */
	uint64_t session_seed;
	struct engine *engine;	     /* NULL: it is down */
	struct lockfiles *lockfiles; /* the engine's */
	struct store *store;
	struct store *ghost;	       /* of its former life, until that session has expired */
	struct state_journal *journal; /* NULL: it has none */
	bool hurries;		       /* it has granted nothing since its daemon was killed */
	bool answered; /* it was asked for something, or has told somebody, since the last commit */
	unsigned committed_life;   /* as of then, */
	uint64_t committed_losses; /* and how many sessions were lost */
	int64_t reconnect_ms;
	int64_t flap_ms;	 /* when its link, which is back, is away again */
	int64_t heal_ms;	 /* when its server is not cut off any more */
	int64_t wake_ms;	 /* paused: when it goes on; else INT64_MAX */
	int64_t clock_stands_ms; /* likewise: since when its clock stands still */
	int64_t misled_ms; /* until then it may hold by a lease from before its clock stood still */
	int64_t lease_end_ms; /* of the lease that it had last */
	int64_t fences_ms;    /* so long may the fences still take of the loss that is being told */
	long fences_step;
	bool telling, fences_in_time;
	int64_t well_ms;		      /* nothing has been wrong with it since then, */
	bool well;			      /* nor is now */
	int64_t clock_offset_ms, clock_drift; /* in 1/10000 */
	struct user users[USERS_MAX];
	struct process processes[PROCESSES_MAX];
	uint64_t files[FILES_MAX]; /* the numbers of those that it was told to have; 0: none */
	uint64_t former_files[FILES_MAX]; /* of what was under way when its daemon was killed */
	bool has_left;			  /* some of that nobody asks for again */
	struct file_call file_calls[FILE_CALLS_MAX];
};

/* A claim that came to stand in a queue, and by whom. */
struct standing {
	char name[NAME_BYTES];
	int lock;
	unsigned life;	      /* 0: of none any more, when it came to stand */
	unsigned former;      /* the same, but by the session that it is named after */
	uint64_t session;     /* that one */
	bool withdrawing;     /* its host has asked for its end */
	long withdrawn;	      /* in this step */
	bool broken;	      /* somebody has taken it away by hand */
	bool forgotten;	      /* it has vanished, and what it waited for later, */
	uint64_t connections; /* as its host knows once it was connected so often */
	bool granted;	      /* it stands for what is held, or was */
	bool released;	      /* a flock: its file has let go, but others may need it, or get it */
	bool gone;
	int64_t lost_ms; /* when it went though it was held and nobody had released it; 0: it has
			    not */
	bool says_waits; /* its data does */
	bool requeue;	 /* its data says that it is to be queued again */
	int64_t since_ms;
	size_t heir;   /* the number, from 1, of the one that it is bequeathed to; 0: none, or its
			  end was judged */
	size_t behind; /* the number, from 1, of the one that it stood right behind when that ended
			  unannounced; 0: of none */

	/* Of a claim that may pass from call to call, see world_handoff.c: */
	unsigned uid;	  /* of the user for whom it was placed */
	int64_t first_ms; /* when it was granted to a call for the first time; 0: it was not */
	int64_t idle_ms;  /* since when nobody uses it; 0: somebody does, or waits for it */
	int passes;	  /* how often it has passed on while another host waited */

	unsigned user, call; /* who has it now, or had it last */
	int number;	     /* since it is granted, where several may hold the lock */
	uint64_t process;
	enum call_kind kind;
	struct slots asked;
	struct slots covered; /* as its name and data say now */
	bool has_holds;	      /* its data does: */
	struct slots holds;   /* what its owner held when it was placed */
};

/* A queue as it is now. */
struct view {
	size_t count;
	struct view_claim {
		char name[NAME_BYTES];
		struct claim_name parts;
		struct standing *standing; /* NULL: a foreign client's */
		bool orphan;		   /* its marker is all that is left */
		uint64_t visited;	   /* world_wait.c */
	} claims[CLAIMS_MAX];
};

/* A grant of flock or open, of which the least time may not be over. */
struct grant {
	int lock;
	unsigned user; /* 0: there is none */
	int64_t since_ms;
	int64_t least_ms; /* nobody is granted what conflicts before so much has passed */
	struct slots slots;
	int number; /* where several may hold the lock; -1: they may not */
};

enum { GRANTS_MAX = 256 };

struct world {
	uint64_t seed;
	const struct faulty_rules *rules; /* of the service */
	struct prng prng;
	struct prng restarts;
	struct {
		struct prng prng;
		bool some; /* hosts drain now and then */
	} drains;
	struct prng machines;
	int clock_drift; /* so many ten-thousandths are the hosts' clocks fast or slow, at most */
	bool virtual;	 /* hosts are virtual machines, which stand still with their clocks */
	bool journals;	 /* hosts keep one */
	int64_t now_ms;
	long step;
	bool verbose;
	bool failed;
	bool calm;	  /* the end: no faults, nothing new, who holds lets go */
	int64_t lull_ms;  /* until then nobody does anything, and no misfortune happens; 0: that is
			     not so */
	int64_t quiet_ms; /* but until then nobody does anything; 0: that is over */
	size_t calm_standings; /* so many claims had come to stand until the end began */
	bool ending;	       /* after the last step a session went on that its client had left */

	struct local_service *service;
	struct lock_policy policy;
	struct lock_policy policies[LOCKS_MAX]; /* the same, but for what claims are good for */
	struct {
		struct grant list[GRANTS_MAX]; /* the latest */
		size_t count;		       /* of all so far */
	} grants;
	struct {
		struct prng prng;
		int own_percent; /* so many open files have times of their own, if any has */
		int64_t own_least_max_ms;
	} terms;
	int records_percent; /* so many users like record locks; 0: there are none */
	int change_percent;  /* so many of their calls are of the other kind */
	int refused_percent;
	int stale_percent;
	int nudge_percent;
	int unlisted_percent;  /* so often a claim is placed without the list that was asked for */
	int proof_percent;     /* so often users ask whether they still hold */
	int exclusive_percent; /* of those who flock */
	int impatient_percent; /* so often who waits gives up */
	int fault_percent;     /* so often it is a misfortune that happens */
	int break_percent;     /* so many misfortunes are somebody who takes a claim away */
	bool apart; /* each process locks through one file: then what is lost with a claim of record
		       locks is known, and such claims are taken away too */
	int64_t calm_ms;   /* since when there are no more faults */
	bool late_numbers; /* queues begin shortly before claims are held back, or the last number
			    */
	int64_t delay_ms;
	int64_t tick_ms, tick_phase_ms, ping_delay_ms; /* of the servers */
	int hosts_count, locks_count;
	int crowd; /* so many slots, the first ones, are what users ask for; and they wait */
	struct host hosts[HOSTS_MAX];
	unsigned users, lives, calls, questions;
	struct told *tolds;
	size_t tolds_count, tolds_capacity;

	struct standing *standings;
	size_t standings_count, standings_capacity;
	size_t observed_count;	/* so many of them are watched */
	struct store *observer; /* looks at queues, places nothing */
	bool views_good[LOCKS_MAX];
	struct view views[LOCKS_MAX];
	struct view *listed; /* what a list is for */
	struct ready {
		unsigned life; /* one of whose claims has just ceased to say that it waits, or is
				  the first to be granted since its daemon was killed; 0 */
		int lock;
	} ready;
	uint64_t searches; /* for circles, so far */

	struct peers *peers; /* world_peers.c; NULL: hosts do not tell each other anything */
	uint64_t granted_by_message;
	bool telling; /* they do in every world, and it often comes to that */

	bool has_files; /* world_files.c */
	struct prng file_prng;
	uint64_t files_made;	   /* so far */
	uint64_t files[FILES_MAX]; /* the numbers of those that stand at the service; 0: none */
	uint64_t files_first[FILES_MAX]; /* and the first numbers of the calls that made them */
	uint64_t files_now[FILES_MAX], files_first_now[FILES_MAX]; /* as they are looked at */
	uint64_t files_taken[FILES_TAKEN_MAX]; /* the latest that others took away */
	size_t files_taken_count;

	/* What stands in the queues besides, if there is such in this world. */
	bool has_unclaimed;
	struct unclaimed_set unclaimed;
	unsigned unclaimed_made; /* so far */

	/* A client of another kind, if there is such in this world. */
	bool only_own;
	bool flaps;	   /* its links do */
	bool sets_back;	   /* its servers are */
	int64_t fence_ms;  /* so long may all fences of one loss take */
	bool ends_unasked; /* a claim is still to end in it that nobody takes away */
	struct store *foreign;
	struct foreign_claim {
		int lock;
		int64_t order;
		char name[NAME_BYTES];
	} foreign_claims[FOREIGN_MAX];
};

/* world.c */
void world_init(struct world *world, uint64_t seed, const struct faulty_rules *rules, int drift,
		bool telling, bool verbose);
void world_finish(struct world *world);
const char *world_lock(int lock);
int64_t world_due(const struct world *world);

/* Nothing will happen but what servers are shown in idle time. */
bool world_is_idle(const struct world *world);

/* The first moment at which the host's clock shows this time, or a later one. */
int64_t host_moment(const struct host *host, int64_t clock_ms);

/* Lets one thing happen that is due on a host that is drawn. */
void world_happen(struct world *world);

/* Notes after each step whether something is wrong with the hosts, and mends what nobody else will.
 */
void world_note(struct world *world);

/* The time by the host's own clock, which runs at its own speed. */
int64_t host_clock(const struct host *host);

/* world_lease.c: how the servers' clocks go. */
void world_draw_ticks(struct world *world);
void world_elect(struct world *world);
void check_lease(struct host *host);

/* world_machine.c */

/* Links that flap: whether there are any in this world; a host's link is back; it is away again. */
void world_draw_flaps(struct world *world);
void host_link_is_back(struct host *host);
void host_flap(struct host *host);

/* Draws whether there are such hosts. */
void world_draw_machines(struct world *world);

/* Perhaps a host that runs is paused, and its clock with it; or its clock is set without a pause.
 */
void world_disturb_clocks(struct world *world);

/* It goes on: before anything else. */
void machine_wake(struct host *host);

/* Whether the host may still hold what it had when its clock stood still, and is over. */
bool machine_is_misled(const struct host *host);

/* The host does nothing for so long. */
void host_pause(struct host *host, int64_t ms);

/* Whether there is somebody to act or to be asked. */
bool host_runs(const struct host *host);

/* Makes the host an engine. */
void host_open_engine(struct host *host);

/* Something that users do not do: connections break, servers are cut off, hosts pause, crash and
 * come back. */
void world_misfortune(struct world *world);

/* No more of that: everything that is broken is mended. */
void world_calm_down(struct world *world);

/* Tells what happens, if wanted. */
__attribute__((format(printf, 2, 3))) void world_say(const struct world *world, const char *format,
						     ...);

/* world_users.c */
extern const struct lockfile_events file_user_events;
extern const struct engine_events user_events; /* the context is the host */
extern const struct engine_events user_events_of_peers;

/* As whom the user of that number runs. */
unsigned user_uid(unsigned number);
void user_close(struct user *user);

/* A user that is drawn does something; when it is calm it only ends what it does. */
void user_act(struct host *host, struct user *user);

/* What the user tests is asked of the next daemon. */
void user_test_again(struct user *user);

/* A claim is about to be granted: perhaps somebody of another host who might go before it asks for
 * what it covers just now. */
void users_hurry(struct world *world, struct ready ready);

/* world_proof.c */
void user_on_proved(void *context, void *cookie, int error, uint64_t token);

/* Asks, or takes a question back after a signal. */
void user_prove(struct user *user);

/* The same is asked of the next daemon. */
void questions_again(struct user *user);

/* The file is closed: nobody wants to know any more. */
void questions_forget(struct user *user);
bool user_is_asking(const struct user *user);

/* Somebody takes a claim away by hand, which is drawn; or asks for one that goes on. */
void world_break(struct world *world);

/* A claim is taken away. What the view of its queue says is not good any more. */
void world_break_claim(struct world *world, int lock, const struct view_claim *claim);

/* world_fence.c: a holder is told, and the last one of a loss has been. */
void world_draw_fences(struct world *world);
void host_fence(struct host *host);
void host_told(struct host *host);

/* The user who has it now, or had it last, if that one is on the same life of its host. NULL: none
 * is. */
struct user *standing_user(struct world *world, const struct standing *standing);

/* world_told.c: draws whether claims end unannounced; after each step, begins a lull or ends one;
 * the call is granted by a claim. */
void world_draw_ends(struct world *world);
void world_lull(struct world *world);
void check_told(const struct call *call, const struct standing *own);

/* world_setback.c: perhaps the servers are set back. Returns false if they are not. */
void world_draw_setbacks(struct world *world);
bool world_set_back(struct world *world);

/* The call is granted though its claim does not stand: whether that had vanished before the host
 * connected anew, and so with what was in front of it. */
bool world_is_forgotten(const struct call *call);

/* The call is granted though its claim does not stand: whether that was taken away. */
bool user_note_broken(const struct call *call);

/* A claim of the process was taken away, which it may not have heard of. */
bool process_is_broken(const struct host *host, const struct process *process);

/* Something was granted to the process, or the open file, or may as well have been. */
void process_note_grant(struct host *host, const struct process *process);
void user_note_grant(struct user *user);

/* After every step. */
void check_proofs(struct user *user);

/* When nobody has done anything for a while. */
void check_quiet_proofs(const struct user *user);

/* world_peers.c */

/* Draws whether hosts tell each other what is released; and forgets all of that. */
void world_draw_peers(struct world *world);
void world_end_peers(struct world *world);

/* For struct engine_events, and struct faulty_settings; the context is the host. */
void peers_on_ask(void *context, const char *path, const char *rival, const char *peer,
		  const char *claim);
void peers_on_tell(void *context, const char *path, const struct engine_peer *asker,
		   const char *claim, const char *const *names, size_t count);
void peers_bequeathing(void *context, const char *path, const char *name, const char *heir);

/* Whether the heir, or its host for it, was told that the claim of that name is released. */
bool peers_passed(const struct world *world, const char *name, const char *heir);

/* When a message is read next; and reads one, if any is due. */
int64_t peers_due(const struct world *world);
bool peers_happen(struct world *world);

/* After every step. */
void check_peers(struct world *world);

/* world_restart.c */

/* Draws whether hosts drain; lets them begin and end; and nobody is granted a lock on such a host
 * who holds nothing of it. */
void world_draw_drains(struct world *world);
void world_drain(struct world *world);
void check_drain(const struct call *call);

/* Draws whether hosts keep journals. */
void world_draw_restarts(struct world *world);

/* The engine is new; and the journal ends with it. */
void host_begin_journal(struct host *host);
void host_end_journal(struct host *host);

/* The open file belongs to what is kept, and does not any more. */
void user_keep(struct user *user);
void user_forget(struct user *user);

/* The engine is about to be asked for something, or tells somebody. */
void host_note(struct host *host);

/* What has happened is kept, and what is to be sent is. */
void host_committed(struct host *host);

/* Whether its session was lost since then. */
bool host_has_lost_session(const struct host *host);

/* At the end of each step: the same for all hosts, but some are killed instead, and go on. */
void world_commit(struct world *world);

/* world_files.c */

/* Draws whether there are such files. */
void world_draw_files(struct world *world);

/* Perhaps somebody does something with one; when it is calm they are removed. */
void files_act(struct world *world);

/* The host's daemon has ended; or another one goes on. */
void host_forget_files(struct host *host);
void host_ask_files_again(struct host *host);

/* After every step; whether nobody has, or wants, one; and at the end. */
void check_files(struct world *world);
bool files_are_over(const struct world *world);
void check_files_end(struct world *world);

/* world_model.c */

/* The process of that number on that lock; NULL: it has not locked. */
struct process *process_find(struct host *host, int lock, uint64_t id);

/* The process locks through the open file. */
struct process *process_use(struct user *user, uint64_t id);

/* It closes a file: it holds nothing any more. */
void process_flush(struct host *host, int lock, uint64_t id);

/* The open file is closed. */
void processes_forget_file(const struct user *user);

/* The open file has lost a lock. Returns whether a process has that had locked through it. */
bool processes_lose(const struct user *user);

/* Whether the process, on whichever lock, has a call under way. */
bool process_waits(const struct host *host, uint64_t id);

/* Whether a process has locked through the open file. */
bool process_uses(const struct host *host, uint64_t id, const struct user *user);

/* The kind of lock is fcntl's. */
bool is_record(enum call_kind kind);

/* What the user holds by flock or open. */
struct slots user_slots(const struct user *user);

/* What is held through the open file: that, and by the processes that have locked through it. */
struct slots file_slots(const struct user *user);

/* Whether what the process holds, or what the open file holds, is in the way of a call: it
 * conflicts and is another owner's. */
bool process_opposes(const struct host *host, const struct process *process,
		     const struct call *call);
bool user_opposes(const struct user *user, const struct call *call);

/* Whether two calls are one owner's. */
bool calls_are_one(const struct call *a, const struct call *b);

/* world_view.c */
void view_init(struct world *world);
void view_finish(struct world *world);

/* The queue of a lock as it is now. */
struct view *view_of(struct world *world, int lock);

/* Something has happened since it was looked at. */
void view_forget(struct world *world);

/* The claim of a call that has not been granted, in the view; NULL: none stands. A process that
 * asks for the same twice may be granted the one by the claim of the other: each that it may be by
 * comes next after the one given; first after NULL. */
const struct view_claim *view_find(const struct view *view, const struct call *call);
const struct view_claim *view_find_next(const struct view *view, const struct call *call,
					const struct view_claim *after);

/* Whether a claim goes before one in front of it, by its anchor. */
bool view_has_precedence(const struct view_claim *claim, const struct view_claim *over);

/* The open file lets go of what it holds by flock or open. */
void view_release(const struct user *user);

/* Whether claims stand at the service for all that is held through the open file. */
bool view_supports(const struct view *view, const struct user *user);

/* world_term.c */

/* May give locks a least and a longest time. To be called when everything else is drawn. */
void world_draw_terms(struct world *world);

/* A flock or open is granted, right or wrong; and once more to who holds it already. */
void term_note_grant(const struct call *call);
void term_note_again(struct user *user);

/* The user has opened its file: may give that times of its own. */
void term_open(struct user *user);

/* Whether anybody may lose that lock, because he had it for so long. */
bool term_may_end(const struct world *world, int lock);

/* Whether the user may lose what it holds, because it had that for so long. */
bool term_is_over(const struct user *user);

/* Whether the claim may stand, though it was released, because its least time is not over. */
bool term_rests(const struct world *world, const struct view_claim *claim);

void check_term(const struct user *user);

/* Whether a claim of the call's own host is of its own owner. A flock that was released stands for
 * a process that the model does not know. */
bool standing_is_own(const struct standing *standing, const struct call *call);

/* What the data of a claim, or a text of a caller, says of who asked. */
void view_parse(const char *text, struct standing *standing);

/* Whether a call of that number waits. */
bool call_is_under_way(const struct host *host, unsigned number);

/* For struct faulty_settings; the context is the host. */
void view_standing(void *context, bool over, const char *path, const char *name, const char *text);
void view_withdrawing(void *context, const char *path, const char *name);

/* world_room.c */

/* Draws whether several may hold locks, in a world of flock and open alone. */
void world_draw_room(struct world *world);

/* So many may hold the lock at once. */
int lock_room(const struct world *world, int lock);

/* Of a claim of a lock that several may hold, which is granted: the one in front that it must not
 * pass by; NULL: there is none. */
const struct view_claim *room_find_respected(const struct call *call, const struct view *view,
					     const struct view_claim *own);

/* The user holds the lock: its number is a holder's. `used` has those of the others. */
void check_number(const struct user *user, bool *used);

/* world_handoff.c */

/* Whether claims of flock and open pass from call to call at that lock, or are kept. */
bool lock_has_handoff(const struct world *world, int lock);

/* Whether the call waits for the claim to pass to it. */
bool handoff_is_followed(const struct standing *standing, const struct call *call);

/* Whether the call, of the claim's own host, may wait for that claim, or just have been granted by
 * it. Brings the claim's user up to date. */
bool handoff_may_be_of(struct standing *standing, const struct call *call);

/* Whether nobody has used the claim for so long that other hosts know, and its host could give it
 * up. */
bool handoff_is_idle(const struct world *world, const struct standing *standing);

/* Whether the claim may pass from call to call, and was granted to none yet. */
bool handoff_waits(const struct world *world, const struct standing *standing);

/* The number of the user who has the claim, or is to have it next. */
unsigned handoff_user(const struct host *host, const struct standing *standing);

/* The call is granted by the claim. */
void handoff_note_grant(struct call *call, const struct view_claim *own);
void handoff_note_user(struct standing *standing, const struct call *call);

/* After every step. */
void check_handoffs(struct world *world);

/* world_wait.c */

/* Whether a call for a record lock waits for its own process, as far as anybody could know. */
bool wait_is_circle(struct call *call);

/* When it is calm: whether a call waits in a circle that no engine promises to see, and in none
 * that one does. */
bool wait_is_hopeless(struct call *call);

/* world_check.c */
__attribute__((format(printf, 2, 3))) void world_fail(struct world *world, const char *format, ...);

/* What is called when a call is granted, or refused, and after each step. `claimed`: it had a
 * claim, which what a process holds already does not take. */
void check_grant(struct call *call, bool claimed);
void check_refusal(struct call *call, int result);
void check_answer(struct call *call, int error, const struct engine_conflict *conflict);

/* Whether there is a reason for a call to wait, or to tell a conflict, on any host or only here;
 * and that somebody holds what conflicts. */
bool check_conflict(const struct call *call, bool here);
bool check_opposed(const struct call *call);

/* When the user is told that it has lost its lock: there is a reason. */
void check_loss(const struct user *user);
void check_step(struct world *world);

/* When nobody has done anything for a while: nobody waits for what is free. */
void check_quiet(struct world *world);

/* When all is over: nothing is left. */
void check_end(struct world *world);

#endif
