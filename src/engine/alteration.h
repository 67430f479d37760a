/* SPDX-License-Identifier: Apache-2.0
 *
 * The books of lock files that outlive close (lockfile.h), and what of them becomes of sessions.
 * For the engine's own files.
 *
 *   lockfile.c          calls, and the store's answers
 *   alteration.c        the life of an alteration
 *   lockfile_session.c  the session is lost; and all that can go on does
 *   lockfile_watch.c    watches of files of this host
 *   lockfile_book.c     files of this host, whose turn it is to alter one, questions to the store
 *   lockfile_save.c     all that as text
 *   lockfile_restore.c  and read again
 */
#ifndef DLOCKFS_ENGINE_ALTERATION_H
#define DLOCKFS_ENGINE_ALTERATION_H

#include "engine/lockfile.h"
#include "engine/state.h"
#include "journal/fields.h"

/* A file of this host. */
struct lockfile {
	UT_hash_handle hh; /* in engine->lockfiles, by path */
	struct state_item item;
	struct engine *engine;
	uint64_t serial;
	uint32_t proof_round;	      /* in which a heartbeat has shown last that it stands */
	struct file_ask *ask;	      /* it is looked for; NULL: it is not */
	struct file_ask *watch;	      /* NULL: the store watches it not */
	struct timer timer;	      /* when that is to be; lockfile_watch.c */
	struct lockfile *prev, *next; /* in engine->unwatched */
	bool is_unwatched;	      /* it is there */
	bool watched;		      /* the store would have told if it had gone */
	int64_t seen_ms;       /* when it was known last to stand; INT64_MIN: that is not known */
	char *line;	       /* the first of its text; behind the path */
	enum lockfile_end end; /* of one that is gone */
	char path[];
};

/* The alterations about a path, in the order of the calls. */
struct turn {
	UT_hash_handle hh; /* in engine->turns, by path */
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
	enum found found;
	struct lockfile *made; /* MAKE, TAKE: the file, before it is in the engine's books */
};

/* lockfile_save.c: a step as it is saved, as struct store_step. */
extern const struct field alteration_step_fields[];

/* See the table in lockfile.h. One that nobody waits for is undone, or was another process's and
 * may be adopted yet. */
enum alteration_state {
	ALTERATION_WANTED,
	ALTERATION_SENT,
	ALTERATION_DOUBTFUL,
	ALTERATION_BARRED, /* `error` is known, but cannot be told yet */
};

struct alteration {
	struct engine *engine;
	struct alteration *prev, *next; /* in engine->alterations, in the order of the calls */
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
	struct engine *engine;
	struct file_read *prev, *next; /* in engine->file_reads */
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
	union { /* first: the store knows it by this */
		struct store_change change;
		struct store_read read;
		struct store_files files;
	};
	struct watcher watcher; /* WATCH: by that */
	struct engine *engine;
	struct file_ask *prev, *next; /* in engine->file_asks */
	enum file_ask_kind kind;
	bool answered; /* WATCH: once, at least */
	bool sent;     /* the store will answer, or */
	bool failed;   /* had no memory for it */
	union {	       /* all NULL: nobody wants to know any more */
		void *asker;
		struct alteration *alteration;
		struct lockfile *file;
		struct file_read *reader;
	};
	int64_t sent_ms;
	uint64_t serial; /* engine->serials by then: what it shows of a file with a later one is old
			  */
	size_t count;
	struct store_step steps[]; /* the first one's path is what is read */
};

/* What the store answers, in lockfile.c. */
struct file_answers {
	void (*changed)(struct store_change *change, int error);
	void (*read)(struct store_read *read, int error, const struct store_claim *claim);
	void (*listed)(struct store_files *files, int error, const char *const *names,
		       size_t count);
};

extern const struct file_answers engine_file_answers;

/* Limits that have passed; and when the next one does, INT64_MAX if there is none. */
void lockfiles_end_time(struct engine *engine);
int64_t lockfiles_deadline(const struct engine *engine);

/* The books are in order again: what can go on does, and callers are told. */
void lockfiles_finish(struct engine *engine);

/* Frees everything. */
void lockfiles_destroy(struct engine *engine);

/* lockfile_book.c */

/* Whether the text begins with that line, which has no newline. */
bool lockfile_has_line(const void *text, size_t bytes, const char *line);

/* The file of this host; NULL: it has none by that path. */
struct lockfile *lockfile_find(const struct engine *engine, const char *path);

/* One that is not in the books yet; NULL: out of memory. lockfile_free() takes it out of them. */
struct lockfile *lockfile_create(struct engine *engine, const char *path, const char *text);
bool lockfile_add(struct lockfile *file); /* false: no memory */
void lockfile_free(struct lockfile *file);

/* It is gone, which is told to callers; takes the file. */
void lockfile_end(struct lockfile *file, enum lockfile_end why);

/* Whether an alteration about that path is not decided. O(1). */
bool lockfile_is_busy(const struct engine *engine, const char *path);

/* Whether one may have been sent: what there is may be its work. */
bool lockfile_is_in_flux(const struct engine *engine, const char *path);

/* Asks for what there is at the file's path, if that is not asked already. Returns false if there
 * is no memory. */
bool lockfile_look(struct lockfile *file);

/* The steps are the last in the turns of their paths; and are in none. Returns 0 or -ENOMEM. */
int step_queue(struct alteration_step *step, const char *path);
void step_leave(struct alteration_step *step);

/* Sends a question, with copies of the steps. NULL: out of memory. */
struct file_ask *file_ask_send(struct engine *engine, enum file_ask_kind kind, void *asker,
			       const struct store_step *steps, size_t count);
struct file_ask *file_ask_path(struct engine *engine, enum file_ask_kind kind, void *asker,
			       const char *path);

/* It is answered, or was not sent; and nobody wants its answer any more. */
void file_ask_free(struct file_ask *ask);
void file_ask_forget(struct file_ask **ask);

/* A heartbeat has missed what has the path. Returns whether that is a file of this host. */
bool lockfile_missed(struct engine *engine, const char *path);

/* lockfile_watch.c */

/* It stands now. */
void lockfile_note_seen(struct lockfile *file);

/* Whether another host cannot have taken it away, but for a moment ago. */
bool lockfile_is_known(const struct lockfile *file);

/* It is to be watched: when it has lived a while; as soon as possible. */
void lockfile_watch_later(struct lockfile *file);
void lockfile_watch_soon(struct lockfile *file);

/* Files whose time has come; and the calls of watch() that are possible now. */
void lockfiles_grow_up(struct engine *engine);
void lockfiles_watch(struct engine *engine);

/* The store's on_read() and on_watched(). */
void lockfile_watch_read(struct file_ask *ask, const char *text);
void lockfile_watch_ended(struct file_ask *ask, int error);

/* alteration.c */

/* Copies the steps. It is in the books, WANTED; NULL: out of memory. */
struct alteration *alteration_create(struct engine *engine, const struct store_step *steps,
				     size_t count);
void alteration_free(struct alteration *alteration);

/* The same step by step, with room for so many; alteration_add() returns false if there is no
 * memory. */
struct alteration *alteration_create_empty(struct engine *engine, size_t room);
bool alteration_add(struct alteration *alteration, const struct store_step *step);

/* A former caller's, which is the same but for the first lines of its texts; NULL: there is none.
 */
struct alteration *alteration_find_former(const struct engine *engine,
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

/* lockfile_session.c */

/* The session is over. What was asked before, and was not sent, is forgotten by the store. */
void lockfiles_lose_session(struct engine *engine);

/* What can be sent, or told, is. */
void lockfiles_resume(struct engine *engine);

/* Reads that are to be sent. */
void file_read_send(struct file_read *read);

/* lockfile_save.c. An alteration without steps is nothing that another process would go on with. */
void lockfile_mark(struct lockfile *file);
void alteration_mark(struct alteration *alteration);
void lockfiles_mark_all(struct engine *engine);
void lockfiles_save(const struct engine *engine, FILE *out);

/* lockfile_restore.c: whether the line's word is of these books; and reads one. Returns 0, -EINVAL
 * or -ENOMEM. */
bool lockfiles_have_word(const char *word);
int lockfiles_restore(struct engine *engine, struct state_reader *in);

#endif
