/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of views, for their own files: view.c (asks the store), lock.c (takes the
 * answers in), claim.c, asker.c and file.c (read and write claims, who asks for them, and files),
 * holders.c (finds the holders) and user.c (adds what only this host knows).
 */
#ifndef DLOCKFS_VIEW_CLAIM_H
#define DLOCKFS_VIEW_CLAIM_H

#include <stdio.h>

#include "claim/data.h"
#include "engine/engine.h"
#include "stores/store.h"
#include "view/asker.h"

/* A caller of this host who will get a claim that serves several. */
struct view_follower {
	struct view_asker asker;
	struct view_follower *prev, *next; /* in claim->followers */
};

struct view_claim {
	struct store_read read; /* first: see view.c */
	struct view_lock *lock;
	char *name;
	struct claim_name parts;
	bool gone;	  /* between the look and the reading */
	bool orphan;	  /* of a lost holder: only its marker is left */
	bool passed;	  /* an orphan for which this host does not wait */
	int64_t lost_ms;  /* an orphan: when this host learned of it, since 1970; 0: unknown */
	int64_t until_ms; /* an orphan: until when this host grants the lock to nobody because of
			     it; 0: unknown, or the host does not wait */
	bool known;	  /* the claim has been read: */
	uint64_t session; /* 0: of none */
	bool own;	  /* this host's, which knows whether the claim is held */
	bool waits;	  /* by what this host knows, or by the data */
	uint32_t slots;	  /* so many may hold the lock, by the data; 0: they do not say */
	int slot;	  /* the claim's number, which it has since it is held; -1: none */
	bool has_ranges;
	struct range_set ranges; /* the exact ranges, if has_ranges */
	bool has_holds;
	struct range_set holds; /* held by the owner before: by these the claim takes precedence */
	struct view_asker asker;
	bool held;    /* view_holders_find() */
	bool keeps;   /* kept, by the data, and this host does not know better */
	bool former;  /* the claim may have gone on to another caller of its host, which this host
			 cannot know */
	int64_t rest; /* nobody uses it, and its host keeps it until then, in seconds since 1970, by
			 the data; 0: it does not say so */
	bool kept;    /* this host knows that nobody uses the claim */
	struct view_follower *followers; /* in the order in which they will get the claim */
};

/* Reads the data of the claim. Its ranges are deducted from *ranges_left; if they are more than
 * that, only their span is kept. Returns 0 or -ENOMEM. */
int view_claim_read(struct view_claim *view, const struct store_claim *claim, size_t *ranges_left);

void view_claim_finish(struct view_claim *view);

struct view_file;

/* Writes the lines of a lock, of the file, unless that is NULL, and of the claims that are not
 * gone.
 */
void view_claims_write(FILE *out, const char *path, const struct view_file *file,
		       const struct view_claim *claims, size_t count);

#endif
