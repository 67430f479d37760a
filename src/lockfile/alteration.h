/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an alteration: see the table in lockfiles.h. Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_ALTERATION_H
#define DLOCKFS_LOCKFILE_ALTERATION_H

#include "lockfile/ask.h"
#include "lockfile/own.h"
#include "lockfile/turn.h"

/* What was found at the path of a step. */
enum found {
	FOUND_NOTHING,
	FOUND_OURS,   /* the file that the step was to make */
	FOUND_MEANT,  /* the file of this host that the step is to remove, or replace */
	FOUND_DONE,   /* REPLACE: the file, with the new text */
	FOUND_FORMER, /* the file that the step was to make, of a session that is over */
	FOUND_OTHER,
};

struct alteration_step {
	struct alteration *alteration;
	struct turn *turn;
	struct alteration_step *prev, *next; /* in turn->steps */
	enum store_step_kind kind;
	char *text; /* NULL: the step has none */
	uint32_t version;
	bool is_of_own; /* the file was one of this host when the caller asked */
	enum found found;
	struct own *made; /* MAKE, TAKE: the file, before it is in the books */
};

/* See the table in lockfiles.h. */
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
	/* One of these three at a time. */
	bool asked;   /* a caller waits */
	bool undoing; /* the limit has passed: what was done is undone */
	bool former;  /* another process's alteration, which the same call may take up */

	bool removes; /* undoing: what is sent is the removal of what was made */
	bool resent;  /* the alteration may have been done in a session that is over */
	bool refused; /* resent: a file was met that the alteration itself may have made then */
	enum alteration_state state;
	int error; /* BARRED */
	struct ask *ask;
	size_t looked; /* DOUBTFUL: so many steps have been read */
	size_t count;
	struct alteration_step steps[];
};

/* Puts a WANTED alteration into the books, with copies of the steps. NULL: out of memory. */
struct alteration *alteration_create(struct lockfiles *lockfiles, const struct store_step *steps,
				     size_t count);
void alteration_free(struct alteration *alteration);

/* Makes an alteration step by step, with room for so many. alteration_add() returns false if there
 * is no memory. */
struct alteration *alteration_create_empty(struct lockfiles *lockfiles, size_t room);
bool alteration_add(struct alteration *alteration, const struct store_step *step);

/* The `former` alteration with these steps, whose texts may differ as lockfiles.h says; NULL: there
 * is none. */
struct alteration *alteration_find_former(const struct lockfiles *lockfiles,
					  const struct store_step *steps, size_t count);

/* The alteration is new, or has a caller again. Nothing is decided within the call. */
void alteration_begin(struct alteration *alteration);

/* Sends, or tells, what can be sent or told now. May free the alteration, as can all below. */
void alteration_go_on(struct alteration *alteration);

/* The limit has passed, or the caller is gone. */
void alteration_undo(struct alteration *alteration);

/* The store's answers to the questions ALTER, SYNC and LOOK. */
void alteration_answered(struct alteration *alteration, int error);
void alteration_synced(struct alteration *alteration, int error);
void alteration_looked(struct alteration *alteration, int error, const struct store_claim *claim);

/* Sets the state, and forgets the question. */
void alteration_set_state(struct alteration *alteration, enum alteration_state state);

/* BARRED: tells the caller, if the session allows that. */
void alteration_decide(struct alteration *alteration);

/* The alteration is done (0), or will not be: BARRED, and decided if possible. */
void alteration_conclude(struct alteration *alteration, int error);

#endif
