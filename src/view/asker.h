/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks for a claim: a caller, as the claim's data says, or as this host knows. Trusts nothing
 * in the data. Pure but for memory.
 */
#ifndef DLOCKFS_VIEW_ASKER_H
#define DLOCKFS_VIEW_ASKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct view_asker {
	int64_t since_ms; /* 0: unknown */
	bool by_host;	  /* by the clock of the caller's host, not of the service */
	const char *kind; /* NULL: unknown, as are host and command */
	char *host;
	char *command;
	int64_t pid; /* -1: unknown, as is uid */
	int64_t uid;
	bool is_other; /* a client without dlockfs, whatever the claim is named */
};

/* Reads what the text, of lines "key=value", says; of `since`, only if since_ms is unknown. Values
 * that are not well-formed are left out. Returns 0 or -ENOMEM. */
int view_asker_read(struct view_asker *asker, const char *text);

/* Sets the caller who asks now, from a text of this host. Returns 0 or -ENOMEM. */
int view_asker_set(struct view_asker *asker, const char *text);

/* Forgets the caller, but for since_ms. */
void view_asker_drop(struct view_asker *asker);

/* Write what is known of the caller, as words with a space in front: the kind; host, pid, uid and
 * command; and since when the caller asks, by whose clock. */
void view_asker_write_kind(FILE *out, const struct view_asker *asker);
void view_asker_write(FILE *out, const struct view_asker *asker);
void view_asker_write_since(FILE *out, const struct view_asker *asker);

#endif
