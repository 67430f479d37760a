/* SPDX-License-Identifier: Apache-2.0
 *
 * The locks of a view under way, and what the answers about them lead to: view.c asks, lock.c takes
 * the answers in, which may bring further locks.
 *
 * Of a lock its queue is read. In a directory of lock files (claim/file_path.h)
 * a name is a file, and may have a queue besides, so both are read. A view of all queues lists such
 * a directory first: then it knows which of the names that it finds are files.
 *
 * For the view's own files. Loop thread only.
 */
#ifndef DLOCKFS_VIEW_LOCK_H
#define DLOCKFS_VIEW_LOCK_H

#include "view/claim.h"
#include "view/view.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum view_kind { VIEW_QUEUE, VIEW_QUEUES, VIEW_SHELF, VIEW_NAMES, VIEW_ORPHANS };

/* What is asked about a lock, in this order. */
enum view_question {
	ASK_FILE = 1,  /* the file itself */
	ASK_FILES = 2, /* the names in the directory of files */
	ASK_LOOK = 4,  /* the queue */
	/* VIEW_SHELF (shelf.h): */
	ASK_SHELF = 8,	  /* of the directory: which files there are */
	ASK_SHELVED = 16, /* what the file says */
};

struct view_shelf;

struct view_lock {
	union { /* first: the store knows it by this */
		struct store_look look;
		struct store_read read;
		struct store_files files;
	};
	struct view *view;
	struct view_lock *prev, *next;		 /* in view->locks, or view->unseen */
	struct view_lock *read_prev, *read_next; /* in view->unread */
	struct view_claim *claims;
	size_t count;
	size_t asked;		 /* how many of the claims have been asked for */
	int error;		 /* why the lock cannot be looked at, or 0 */
	unsigned int to_ask;	 /* enum view_question; if any, it is in view->unseen, */
	bool under_way;		 /* unless a question is */
	bool looked;		 /* ASK_LOOK was asked */
	bool found;		 /* it exists */
	bool is_top;		 /* a directory of files, which is no lock */
	size_t top_bytes;	 /* the length of the path of that directory; SIZE_MAX: none */
	struct view_file *file;	 /* NULL: it is none */
	char *lines;		 /* VIEW_SHELF: what is shown of it; NULL: nothing */
	UT_hash_handle by_plain; /* in view->in_tops, if it is, or is in, such a directory */
	char *path;   /* of its queue, in the form of claim/file_path.h: that of a file is
			 known once the file was asked for */
	char plain[]; /* as the kernel has it */
};

struct view {
	struct viewer *viewer;
	struct view *prev, *next;		/* in viewer->views */
	struct view *asking_prev, *asking_next; /* in viewer->asking */
	enum view_kind kind;
	const struct view_shelf *shelf; /* VIEW_SHELF */
	const struct view_events *events;
	void *context;
	bool asking;
	bool over;	  /* its result was delivered, or it was cancelled */
	size_t under_way; /* questions */
	uint64_t progress;
	size_t ranges_left;
	struct view_lock *unseen; /* about which something is to be asked */
	struct view_lock *locks;
	struct view_lock *unread;  /* locks with claims to be read */
	struct view_lock *in_tops; /* by their plain paths */
	/* VIEW_NAMES: */
	size_t claims;
	char **names;
	size_t names_count;
};

struct viewer {
	struct store *store;
	const struct engine *engine;	/* NULL: none */
	const struct view_files *files; /* NULL: none; and their context: */
	const void *files_context;
	struct view *views;
	struct view *asking; /* views that have more to ask */
	size_t under_way;    /* questions of all views */
	uint64_t progress;
};

/* Adds the lock of that path, as the kernel has it, to those to be asked about. Returns NULL when
 * out of memory. */
struct view_lock *view_lock_add(struct view *view, const char *plain);

/* It is in no list of the view any more. */
void view_lock_free(struct view_lock *lock);

/* What is to be asked next, which is not to be asked again; the lock is still in view->unseen. */
enum view_question view_lock_next_question(const struct view_lock *lock);

/* The question is answered, and the answer taken in. */
void view_lock_answered(struct view_lock *lock);

/* Take answers in. Each returns what becomes of the view: 0, or -errno. view_lock_take_error()
 * takes the error of a question, below 0. */
int view_lock_take_error(struct view_lock *lock, int error);
int view_lock_take_look(struct view_lock *lock, const char *const *names, size_t names_count,
			const struct store_entry *entries, size_t entries_count);
int view_lock_take_file(struct view_lock *lock, const struct store_claim *claim);
int view_lock_take_files(struct view_lock *lock, const char *const *names, size_t count);

#endif
