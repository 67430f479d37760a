/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of views, for their own files: view.c (asks the store), lock.c (takes the
 * answers in), claim.c and file.c (read and write claims and files), holders.c (finds the holders)
 * and user.c (adds what only this host knows).
 */
#ifndef DLOCKFS_VIEW_CLAIM_H
#define DLOCKFS_VIEW_CLAIM_H

#include <stdio.h>

#include "claim/data.h"
#include "engine/engine.h"
#include "stores/store.h"

/* A claim, or a caller who follows on a claim: then only the members about the caller count. */
struct view_claim {
	struct store_read read; /* first: see view.c */
	struct view_lock *lock;
	char *name;
	struct claim_name parts;
	bool gone;	  /* between the look and the reading */
	bool orphan;	  /* of a lost holder: only its marker is left */
	bool passed;	  /* an orphan for which this host does not wait */
	int64_t lost_ms;  /* an orphan: when this host learned of it, since 1970; 0: unknown */
	int64_t until_ms; /* and until when it grants the lock to nobody because of it; 0: unknown,
			     or it does not wait */
	bool known;	  /* it has been read: */
	int64_t since_ms; /* 0: unknown */
	uint64_t session; /* 0: of none */
	bool own;	  /* this host's, which knows whether it is held */
	bool waits;	  /* that, or its data, says so */
	bool has_ranges;
	struct range_set ranges; /* the exact ranges, if has_ranges */
	bool has_holds;
	struct range_set holds; /* held by its owner before: by these it takes precedence */
	const char *kind;	/* NULL: unknown; so are the next four */
	char *host;
	char *command;
	int64_t pid; /* -1 */
	int64_t uid; /* -1 */
	bool held;   /* view_claims_judge() */
	bool keeps;  /* its data says so, and this host does not know better */
	bool former; /* it may have gone on to another caller of its host, which this host cannot
			know */
	bool kept;   /* this host knows that nobody uses it */
	struct view_claim *followers;	/* in the order in which they will get the claim */
	struct view_claim *prev, *next; /* in there */
};

/* Reads the data of the claim. Its ranges are deducted from *ranges_left; if they are more than
 * that, only their span is kept. Returns 0 or -ENOMEM. */
int view_claim_read(struct view_claim *view, const struct store_claim *claim, size_t *ranges_left);

void view_claim_finish(struct view_claim *view);

/* Forgets who asked for the claim. */
void view_claim_drop_asker(struct view_claim *view);

/* Sets the caller who asks now, from a text of this host. Returns 0 or -ENOMEM. */
int view_claim_set_asker(struct view_claim *view, const char *text);

/* Adds what the engine of this host knows of its own claims among those of a lock, which are in the
 * order of the queue: whether they are held, and who uses them. Returns 0 or -ENOMEM. user.c. */
int view_claims_add_users(struct view_claim *claims, size_t count, const struct engine *engine,
			  const char *path);

/* Adds what the engine of this host knows of orphans. user.c. */
void view_claims_add_orphans(struct view_claim *claims, size_t count, const struct engine *engine,
			     const char *path);

/* Finds out which claims of one lock, in the order of the queue, are held. Claims that are gone do
 * not count. Returns 0 or -ENOMEM. holders.c. */
int view_claims_judge(struct view_claim *claims, size_t count);

struct view_file;

/* Writes the lines of a lock, of the file, unless that is NULL, and of the claims that are not
 * gone.
 */
void view_claims_write(FILE *out, const char *path, const struct view_file *file,
		       const struct view_claim *claims, size_t count);

#endif
