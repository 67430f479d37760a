/* SPDX-License-Identifier: Apache-2.0
 *
 * How much users may have in the log: every line that a user can cause asks here first. Each user
 * has a few lines at once, and some more with time, of the audit and of all others; what is over
 * that is left out and counted, and a line tells how many, at the latest USER_LINES_TELL_MS later.
 *
 * At most USER_LINES_USERS users have their own lines at one time: if there are more, the others
 * share those of one. The users without limits (user_is_limited()) are not limited here either.
 *
 * Does not allocate. Loop thread only; nothing waits.
 */
#ifndef DLOCKFS_FILES_USER_LINES_H
#define DLOCKFS_FILES_USER_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rate.h"

struct filesystem;

enum { USER_LINES_USERS = 64, USER_LINES_TELL_MS = 10000 };

enum user_lines_kind {
	USER_LINES_EVENTS, /* warnings and errors */
	USER_LINES_AUDIT,
	USER_LINES_KINDS
};

struct user_lines_share {
	bool taken;
	uid_t uid;
	struct rate rates[USER_LINES_KINDS];
	uint64_t left_out[USER_LINES_KINDS]; /* that no line has told of yet */
	int64_t since_ms[USER_LINES_KINDS];  /* then: when the first of them was left out */
};

/* Zero at first. The last one is for all users that the others have no room for. */
struct user_lines {
	struct user_lines_share shares[USER_LINES_USERS + 1];
};

/* Whether to write a line that the user has caused. If so, the line counts as written. */
bool user_lines_pass(struct filesystem *filesystem, uid_t uid, enum user_lines_kind kind);

/* The next user to be told of, of whom lines of that kind were left out for long enough (`all`: of
 * whom any were): which user, and how many lines, which then count as told. Returns false if there
 * is none. */
bool user_lines_next(struct filesystem *filesystem, enum user_lines_kind kind, bool all, uid_t *uid,
		     uint64_t *count);

/* Writes a line for each user of whom warnings and errors were left out for long enough; `all`:
 * were left out. */
void user_lines_tell(struct filesystem *filesystem, bool all);

/* When the next user is to be told of; INT64_MAX: nothing was left out. */
int64_t user_lines_deadline(const struct user_lines *lines);

#endif
