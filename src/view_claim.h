/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of views, for their own files: view.c (asks the store) and view_claim.c (what a claim
 * says, and how it is written down).
 */
#ifndef DLOCKFS_VIEW_CLAIM_H
#define DLOCKFS_VIEW_CLAIM_H

#include <stdio.h>

#include "claim_data.h"
#include "store.h"

struct view_claim {
	struct store_read read; /* first: see view.c */
	struct view_lock *lock;
	char *name;
	struct claim_name parts;
	bool gone;	  /* between the look and the reading */
	bool known;	  /* it has been read: */
	int64_t since_ms; /* 0: unknown */
	uint64_t session; /* 0: of none */
	bool waits;	  /* its data says so */
	bool has_ranges;
	struct range_set ranges; /* what it covers, if it has_ranges */
	const char *kind;	 /* NULL: unknown; so are the next four */
	char *host;
	char *command;
	int64_t pid; /* -1 */
	int64_t uid; /* -1 */
	bool held;
};

/* Takes in what the claim says. More than *ranges_left ranges are taken for their span; they are
 * deducted. Returns 0 or -ENOMEM. */
int view_claim_read(struct view_claim *view, const struct store_claim *claim, size_t *ranges_left);

void view_claim_finish(struct view_claim *view);

/* Writes the lines of a lock and its claims, those that are not gone. */
void view_claims_write(FILE *out, const char *path, struct view_claim *claims, size_t count);

#endif
