/* SPDX-License-Identifier: Apache-2.0
 *
 * The books of lock files (lockfiles.h), and what of them becomes of sessions. For the files of
 * this folder only.
 *
 *   lockfiles.c   calls, and the store's answers
 *   alteration.c  the life of an alteration
 *   session.c     the session is lost; and all that can go on does
 *   watch.c       watches of files of this host
 *   own.c         files of this host, whose turn it is to alter one, questions to the store
 *   save.c        all that as text
 *   restore.c     and read again
 *   news.c        what callers are told
 *   invariants.c  for tests: whether the books contradict themselves
 */
#ifndef DLOCKFS_LOCKFILE_ALTERATION_H
#define DLOCKFS_LOCKFILE_ALTERATION_H

#include "engine/books/outbox.h"
#include "engine/books/state.h"
#include "journal/fields.h"
#include "lockfile/lockfiles.h"

/* A lock file of this host. */
struct own {
	UT_hash_handle hh; /* in lockfiles->files, by path */
	struct state_item item;
	struct lockfiles *lockfiles;
	uint64_t serial;
	uint32_t proof_round;	 /* in which a heartbeat has shown last that it stands */
	struct file_ask *ask;	 /* it is looked for; NULL: it is not */
	struct file_ask *watch;	 /* NULL: the store watches it not */
	struct timer timer;	 /* when that is to be; watch.c */
	struct own *prev, *next; /* in lockfiles->unwatched */
	bool is_unwatched;	 /* it is there */
	bool watched;		 /* the store would have told if it had gone */
	int64_t seen_ms;	 /* when it was known last to stand; INT64_MIN: that is not known */
	char *line;		 /* the first of its text; behind the path */
	char path[];
};

/* The alterations about a path, in the order of the calls. */
struct turn {
	UT_hash_handle hh; /* in lockfiles->turns, by path */
	struct alteration_step *steps;
	char path[];
};

/* What there is at the path of a step, when that was read. */
enum found {
	FOUND_NOTHING,
	FOUND_OURS,   /* what it was to make */
	FOUND_MEANT,  /* the file of this host that it is to remove, or replace */
	FOUND_DONE,   /* REPLACE: it has the new text */
	FOUND_FORMER, /* what it was to make, but of a session that is over */
	FOUND_OTHER,
};

struct alteration_step {
	struct alteration *alteration;
	struct turn *turn;
	struct alteration_step *prev, *next; /* in turn->steps */
	enum store_step_kind kind;
	char *text; /* NULL: it has none */
	uint32_t version;
	bool is_of_own; /* its file was one of this host when that was asked for */
	enum found found;
	struct own *made; /* MAKE, TAKE: the file, before it is in the engine's books */
};

/* save.c: a step as it is saved, as struct store_step. */
extern const struct field alteration_step_fields[];

/* See the table in lockfiles.h. One that nobody waits for is undone, or was another process's and
 * may be adopted yet. */
enum alteration_state {
	ALTERATION_WANTED,
	ALTERATION_SENT,
	ALTERATION_DOUBTFUL,
	ALTERATION_BARRED, /* `error` is known, but cannot be told yet */
};

struct alteration {
	struct lockfiles *lockfiles;
	struct alteration *prev, *next; /* in lockfiles->alterations, in the order of the calls */
	struct state_item item;
	uint64_t serial;
	struct timer timer; /* the limit */
	void *cookie;
	bool asked;   /* somebody waits; else */
	bool undoing; /* its limit has passed, or */
	bool former;  /* another process's, for which the caller may come */
	bool removes; /* undoing, SENT: it is the removal that was */
	bool resent;  /* it may have been done in a session that is over; and so */
	bool refused; /* the file that it met may be its own */
	enum alteration_state state;
	int error; /* BARRED */
	struct file_ask *ask;
	size_t looked; /* DOUBTFUL: so many steps have been read */
	size_t count;
	struct alteration_step steps[];
};

/* Who wants to read a file, or a list. */
struct file_read {
	struct lockfiles *lockfiles;
	struct file_read *prev, *next; /* in lockfiles->reads */
	struct timer timer;
	void *cookie;
	bool list;
	struct file_ask *ask; /* NULL: it is to be sent */
	char path[];
};

enum file_ask_kind {
	ASK_ALTER,  /* of an alteration: its steps, or the removal of what it has made; */
	ASK_SYNC,   /* nothing, so that what is read after it is new; */
	ASK_LOOK,   /* what there is for its next step */
	ASK_MISSED, /* of a file of this host: a heartbeat has missed it, or it is not known */
	ASK_WATCH,  /* the same: its watch, which is answered several times */
	ASK_READ,   /* of a file_read */
	ASK_LIST,
};

/* A question to the store, which stays until that has answered. */
struct file_ask {
	struct errand errand; /* first: the store knows it by this */
	struct lockfiles *lockfiles;
	struct file_ask *prev, *next; /* in lockfiles->asks */
	enum file_ask_kind kind;
	bool answered; /* WATCH: once, at least */
	union {	       /* all NULL: nobody wants to know any more */
		void *asker;
		struct alteration *alteration;
		struct own *file;
		struct file_read *reader;
	};
	int64_t sent_ms;
	uint64_t serial; /* engine->issued.serials by then: what it shows of a file with a later one
			  * is old
			  */
	struct store_step steps[];
};

/* What the store answers, in lockfiles.c. */
struct file_answers {
	void (*changed)(struct store_change *change, int error);
	void (*read)(struct store_read *read, int error, const struct store_claim *claim);
	void (*listed)(struct store_files *files, int error, const char *const *names,
		       size_t count);
};

/* All of them. The engine's struct tenant counts the files, and the alterations. */
struct lockfiles {
	struct engine *engine;
	const struct lockfile_events *events;
	void *context;
	const struct file_answers *answers;
	struct own *files;	    /* of this host */
	struct timers watch_timers; /* see watch.c */
	struct own *unwatched;
	size_t watches_sent; /* and not answered yet */
	struct turn *turns;
	struct alteration *alterations; /* not decided */
	struct timers alteration_timers;
	bool turns_changed; /* one of those that waited for another one may be sent */
	struct file_read *reads;
	size_t reads_count;
	struct timers read_timers;
	struct file_ask *asks; /* under way */
};

/* own.c */

/* Whether the text begins with that line, which has no newline. */
bool own_has_line(const void *text, size_t bytes, const char *line);

/* The file of this host; NULL: it has none by that path. */
struct own *own_find(const struct lockfiles *lockfiles, const char *path);

/* One that is not in the books yet; NULL: out of memory. own_free() takes it out of them,
 * as own_take_out() does, which leaves the file to the caller. */
struct own *own_create(struct lockfiles *lockfiles, const char *path, const char *text);
bool own_add(struct own *file); /* false: no memory */
void own_take_out(struct own *file);
void own_free(struct own *file);

/* It is gone, which is told to callers; takes the file. */
void own_end(struct own *file, enum lockfile_end why);

/* Whether an alteration about that path is not decided. O(1). */
bool own_is_busy(const struct lockfiles *lockfiles, const char *path);

/* Whether one may have been sent: what there is may be its work. */
bool own_is_in_flux(const struct lockfiles *lockfiles, const char *path);

/* Asks for what there is at the file's path, if that is not asked already. Returns false if there
 * is no memory. */
bool own_look(struct own *file);

/* The steps are the last in the turns of their paths; and are in none. Returns 0 or -ENOMEM. */
int step_queue(struct alteration_step *step, const char *path);
void step_leave(struct alteration_step *step);

/* Sends a question, with copies of the steps. NULL: out of memory. */
struct file_ask *file_ask_send(struct lockfiles *lockfiles, enum file_ask_kind kind, void *asker,
			       const struct store_step *steps, size_t count);
struct file_ask *file_ask_path(struct lockfiles *lockfiles, enum file_ask_kind kind, void *asker,
			       const char *path);

/* It is answered, or was not sent; and nobody wants its answer any more. */
void file_ask_free(struct file_ask *ask);
void file_ask_forget(struct file_ask **ask);

/* Of struct tenant_kind. */
bool lockfiles_show(void *context, uint32_t round, tenant_show *show, void *to);
bool lockfiles_missed(void *context, const char *path);

/* watch.c */

/* It stands now. */
void own_note_seen(struct own *file);

/* Whether another host cannot have taken it away, but for a moment ago. */
bool own_is_known(const struct own *file);

/* It is to be watched: when it has lived a while; as soon as possible. */
void own_watch_later(struct own *file);
void own_watch_soon(struct own *file);

/* Files whose time has come; and the calls of watch() that are possible now. */
void lockfiles_grow_up(struct lockfiles *lockfiles);
void lockfiles_watch(struct lockfiles *lockfiles);

/* The store's on_read() and on_watched(). */
void own_watch_read(struct file_ask *ask, const char *text);
void own_watch_ended(struct file_ask *ask, int error);

/* alteration.c */

/* Copies the steps. It is in the books, WANTED; NULL: out of memory. */
struct alteration *alteration_create(struct lockfiles *lockfiles, const struct store_step *steps,
				     size_t count);
void alteration_free(struct alteration *alteration);

/* The same step by step, with room for so many; alteration_add() returns false if there is no
 * memory. */
struct alteration *alteration_create_empty(struct lockfiles *lockfiles, size_t room);
bool alteration_add(struct alteration *alteration, const struct store_step *step);

/* A former caller's, which is the same but for the first lines of its texts; NULL: there is none.
 */
struct alteration *alteration_find_former(const struct lockfiles *lockfiles,
					  const struct store_step *steps, size_t count);

/* It is new, or has a caller again. It is not decided within the call. */
void alteration_begin(struct alteration *alteration);

/* Sends, or tells, what it wants sent or told. */
void alteration_go_on(struct alteration *alteration);

/* Nobody waits for it any more. */
void alteration_undo(struct alteration *alteration);

/* What it asked is answered. */
void alteration_answered(struct alteration *alteration, int error);
void alteration_synced(struct alteration *alteration, int error);
void alteration_looked(struct alteration *alteration, int error, const struct store_claim *claim);

/* It is in that state now, and what it has asked is forgotten. */
void alteration_set_state(struct alteration *alteration, enum alteration_state state);

/* BARRED: tells the caller, if the session allows that. May free the alteration. */
void alteration_decide(struct alteration *alteration);

/* It is done, or will not be. Decides, too. */
void alteration_conclude(struct alteration *alteration, int error);

/* session.c */

/* The session is over. What was asked before, and was not sent, is forgotten by the store. */
void lockfiles_lose_session(void *context);

/* What can be sent, or told, is. */
void lockfiles_resume(void *context);

/* Reads that are to be sent. */
void file_read_send(struct file_read *read);

/* save.c. An alteration without steps is nothing that another process would go on with. */
void own_mark(struct own *file);
void alteration_mark(struct alteration *alteration);
void lockfiles_visit(void *context, const struct state_visit *visit);

/* restore.c: whether the line's word is of these books; and reads one. Returns 0, -EINVAL
 * or -ENOMEM. */
bool lockfiles_have_word(const char *word);
int lockfiles_restore(void *context, struct state_reader *in);

/* news.c: callers are told in the order of what was noted, as decisions_add() has it; of
 * what was read, at once, behind that. */
void news_altered(struct lockfiles *lockfiles, void *cookie, int error);
void news_gone(struct own *file, enum lockfile_end why); /* takes the file */
void news_read(struct lockfiles *lockfiles, void *cookie, int error,
	       const struct store_claim *claim, bool ours);
void news_listed(struct lockfiles *lockfiles, void *cookie, int error, const char *const *names,
		 size_t count);

/* invariants.c */
void lockfiles_check_invariants(const void *context);

#endif
