/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of views, for their own files: view.c (asks the store), claim.c (what a claim says,
 * and how it is written down), holders.c (who holds) and user.c (what this host knows better).
 */
#ifndef DLOCKFS_VIEW_CLAIM_H
#define DLOCKFS_VIEW_CLAIM_H

#include <stdio.h>

#include "claim/data.h"
#include "engine/engine.h"
#include "stores/store.h"

/* A claim, or one who follows on it: then only what is said of the asker counts. */
struct view_claim {
	struct store_read read; /* first: see view.c */
	struct view_lock *lock;
	char *name;
	struct claim_name parts;
	bool gone;	  /* between the look and the reading */
	bool orphan;	  /* of a holder that was lost: the lock has its marker only */
	bool passed;	  /* an orphan that this host does not wait for */
	int64_t lost_ms;  /* an orphan: when this host learned of it, since 1970; 0: unknown */
	int64_t until_ms; /* and until when it grants nobody for its sake; 0: unknown, or it does */
	bool known;	  /* it has been read: */
	int64_t since_ms; /* 0: unknown */
	uint64_t session; /* 0: of none */
	bool waits;	  /* its data says so */
	bool has_ranges;
	struct range_set ranges; /* what it covers, if it has_ranges */
	bool has_holds;
	struct range_set holds; /* and what it goes before others by */
	const char *kind;	/* NULL: unknown; so are the next four */
	char *host;
	char *command;
	int64_t pid;			/* -1 */
	int64_t uid;			/* -1 */
	bool held;			/* view_claims_judge() */
	bool keeps;			/* its data says so, and this host does not know better */
	bool former;			/* it may go on to others, and this host does not know */
	bool kept;			/* this host knows that nobody uses it */
	struct view_claim *followers;	/* in the order in which they will have it */
	struct view_claim *prev, *next; /* in there */
};

/* Takes in what the claim says. More than *ranges_left ranges are taken for their span; they are
 * deducted. Returns 0 or -ENOMEM. */
int view_claim_read(struct view_claim *view, const struct store_claim *claim, size_t *ranges_left);

void view_claim_finish(struct view_claim *view);

/* Forgets who asked for the claim. */
void view_claim_drop_asker(struct view_claim *view);

/* Takes in who asks now: text of this host. Returns 0 or -ENOMEM. */
int view_claim_set_asker(struct view_claim *view, const char *text);

/* Puts in what the engine of this host knows of those who use the claims of one lock, which are in
 * the order of the queue. Returns 0 or -ENOMEM. user.c. */
int view_claims_add_users(struct view_claim *claims, size_t count, const struct engine *engine,
			  const char *path);

/* Puts in what the engine of this host knows of orphans. user.c. */
void view_claims_add_orphans(struct view_claim *claims, size_t count, const struct engine *engine,
			     const char *path);

/* Finds out who holds, of the claims of one lock, which are in the order of the queue. Those that
 * are gone do not count. Returns 0 or -ENOMEM. holders.c. */
int view_claims_judge(struct view_claim *claims, size_t count);

/* Writes the lines of a lock and its claims, those that are not gone. */
void view_claims_write(FILE *out, const char *path, const struct view_claim *claims, size_t count);

#endif
