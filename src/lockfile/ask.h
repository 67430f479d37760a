/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to the store. A question stays until the store has answered, also if nobody wants the
 * answer any more. Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_ASK_H
#define DLOCKFS_LOCKFILE_ASK_H

#include "engine/books/outbox.h"
#include "lockfile/books.h"

/* The kind says what asks, and for what. */
enum ask_kind {
	ASK_ALTER,  /* an alteration: its steps, or the removal of what the alteration has made */
	ASK_SYNC,   /* an alteration: an empty transaction, which orders the reads after it */
	ASK_LOOK,   /* an alteration: the file at the path of its next step */
	ASK_MISSED, /* a file of this host, which a heartbeat has missed, or which is not known */
	ASK_WATCH,  /* a file of this host: a watch, which is answered several times */
	ASK_READ,   /* a reading: a file */
	ASK_LIST,   /* a reading: a list of files */
};

struct ask {
	struct errand errand; /* first: the store knows the question by the errand */
	struct lockfiles *lockfiles;
	struct ask *prev, *next; /* in lockfiles->asks */
	enum ask_kind kind;
	bool answered;	   /* WATCH: at least once */
	void *asker;	   /* struct alteration, struct own or struct reading, by the kind */
	struct ask **slot; /* where the asker has the question; NULL: nobody wants the answer */
	int64_t sent_ms;
	uint64_t serial; /* engine->issued.serials when the question was sent: an answer says
			  * nothing of a file with a later serial */
	struct store_step steps[];
};

/* The functions that the store's answers call, and the limit of an alteration: those of
 * lockfiles.c.
 */
struct ask_answers {
	void (*timed_out)(struct timer *timer);
	void (*changed)(struct store_change *change, int error);
	void (*read)(struct store_read *read, int error, const struct store_claim *claim);
	void (*listed)(struct store_files *files, int error, const char *const *names,
		       size_t count);
};

/* Sends a question, with copies of the steps, and puts it into the asker's slot. Without memory the
 * slot is NULL, and the engine resumes soon. */
void ask_send(struct lockfiles *lockfiles, enum ask_kind kind, void *asker, struct ask **slot,
	      const struct store_step *steps, size_t count);

/* ask_send() of a question that is about one path. */
void ask_path(struct lockfiles *lockfiles, enum ask_kind kind, void *asker, struct ask **slot,
	      const char *path);

/* Frees a question that was answered, or was not sent. The asker's slot is NULL then. */
void ask_free(struct ask *ask);

/* The asker does not want the answer any more. The slot is NULL then; it may have been before. */
void ask_forget(struct ask **slot);

#endif
