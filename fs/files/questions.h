/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose question goes to a store next: users in turns, each user's questions in the order in which
 * they came, and only so many at a time. So who asks much waits behind its own questions, and other
 * users, and all that is not a question, wait behind a few of them.
 *
 * A question that has gone counts until its answer has come. Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_QUESTIONS_H
#define DLOCKFS_FILES_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* How many questions are under way at a time: enough to keep a store busy, whose answer takes a few
 * milliseconds, and no more than it answers meanwhile. */
#define QUESTIONS_AT_ONCE 32

/* Questions of one user that wait. */
struct asker {
	uid_t uid;
	struct question *waiting;
	struct asker *prev, *next; /* in questions->first */
	UT_hash_handle by_uid;
};

/* All zero: there is none. */
struct questions {
	struct asker *by_uid; /* users whose questions wait */
	struct asker *first;  /* these users in the order of their turns */
	size_t under_way;
};

/* A member of the struct that the question is about. All zero: has not joined. */
struct question {
	struct question *prev, *next; /* in user->waiting */
	struct asker *user;	      /* NULL: does not wait */
	bool under_way;
};

/* The question waits from now on. Returns 0 or -ENOMEM. */
int questions_join(struct questions *questions, struct question *question, uid_t uid);

/* The question whose turn it is, which counts as under way from now on. NULL: none waits, or there
 * are enough under way. */
struct question *questions_next(struct questions *questions);

/* The question, in any state, is answered or taken back. */
void questions_leave(struct questions *questions, struct question *question);

#endif
