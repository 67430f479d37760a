/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock files of this host. Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_OWN_H
#define DLOCKFS_LOCKFILE_OWN_H

#include "lockfile/books.h"

struct own {
	UT_hash_handle hh; /* in lockfiles->files, by path */
	struct state_item item;
	struct lockfiles *lockfiles;
	uint64_t serial;
	uint32_t proof_round;	 /* the last one in which a heartbeat has shown the file */
	struct ask *ask;	 /* the file is looked for; NULL: it is not */
	struct ask *watch;	 /* NULL: the store does not watch the file */
	struct timer timer;	 /* when the file is to be watched; watch.c */
	struct own *prev, *next; /* in lockfiles->unwatched */
	bool is_unwatched;	 /* whether the file is in that list */
	bool watched;		 /* the store would have told if the file had gone */
	int64_t seen_ms;	 /* when the file was last known to stand; INT64_MIN: unknown */
	char *line;		 /* the first line of the text; behind the path */
	char path[];
};

/* Whether the text begins with the line, which has no newline. */
bool own_has_line(const void *text, size_t bytes, const char *line);

/* Whether what the store has read is the file. */
bool own_is_read(const struct own *file, int error, const struct store_claim *claim);

/* The file of this host by that path; NULL: there is none. */
struct own *own_find(const struct lockfiles *lockfiles, const char *path);

/* Makes a file that is not in the books yet, with the first line of the text; NULL: out of memory.
 */
struct own *own_create(struct lockfiles *lockfiles, const char *path, const char *text);

/* Puts the file into the books. Returns false if there is no memory. */
bool own_add(struct own *file);

/* Takes the file out of the books, and leaves it to the caller. */
void own_take_out(struct own *file);

/* Frees the file, which may be in the books. NULL is fine. */
void own_free(struct own *file);

/* The file is gone, which callers are told. Takes the file. */
void own_end(struct own *file, enum lockfile_end why);

/* Asks for what there is at the file's path, if that is not asked already. */
void own_look(struct own *file);

/* show_names() and missed() of struct tenant_kind. */
bool own_show(void *context, uint32_t round, tenant_show *show, void *to);
bool own_missed(void *context, const char *path);

#endif
