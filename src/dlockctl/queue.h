/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues of locks, read from the text that is described in src/view/view.h. The text may come from
 * a newer dlockfs, and its values from anybody who can write to the store: unknown keys are
 * skipped, lines that make no sense are counted. No I/O.
 */
#ifndef DLOCKCTL_QUEUE_H
#define DLOCKCTL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts are decoded, and NULL if not known; numbers are -1 then. */
struct claim {
	int64_t position;
	int64_t follower; /* from 1 on: the caller waits on its host for that claim, as the first,
			     second... */
	bool held;
	bool kept;	   /* no caller uses it; then it is not held */
	bool resting;	   /* its holder has released it, and nobody gets the lock yet */
	bool lost;	   /* the claim is gone, and its holder had not released it */
	bool maybe_kept;   /* it is held, or kept unused by another host */
	bool maybe_former; /* the caller in its data may not use it any more */
	bool shared;
	int64_t slots; /* so many may hold the lock at once */
	int64_t slot;  /* which of these it has */
	char *kind;
	char *target; /* of a symbolic link */
	char *ranges;
	char *host;
	int64_t pid;
	int64_t uid;
	char *command;
	int64_t since;	     /* seconds since 1970 */
	char *clock;	     /* by whose that is: "host", of the claim; NULL: the service's */
	int64_t lost_since;  /* likewise: when this host learned of the loss, */
	int64_t delay_until; /* and until when it grants the lock to nobody because of it; or until
				when it rests */
	char *client;
	char *session;
	char *claim; /* its name in the store */
};

struct queue {
	char *name;	    /* decoded */
	char *name_encoded; /* as in the text */
	struct claim *claims;
	size_t count;
	size_t holders;
	size_t kept;
	size_t resting;
	size_t lost;
	size_t waiters;	 /* all other claims */
	bool unreadable; /* the queue could not be read */
};

struct queues {
	struct queue *list;
	size_t count;
	size_t bad_lines;
	size_t unreadable; /* how many of them are unreadable */
};

/* Reads text of any content, which it cuts in pieces; text[bytes] is writable, too. */
void queues_parse(char *text, size_t bytes, struct queues *queues);

void queues_finish(struct queues *queues);

/* Whether the entry stands for all locks of a store that did not answer: "cron/" for those below
 * that prefix, "/" for those that no other store has. */
bool queue_is_silent_store(const struct queue *queue);

/* Whether the entry is no claim but a lock file, or a directory or symbolic
 * link of that kind: it is held because it exists, and blocks nobody. It is the first of its queue.
 */
bool claim_is_file(const struct claim *claim);

/* Whether it has one. */
bool queue_has_file(const struct queue *queue);

/* Whether it waits for the lock, as those do that are in no other state. */
bool claim_waits(const struct claim *claim);

/* The first claim that is held, else the first that rests, is lost, or is kept, in this order; or
 * NULL. */
const struct claim *queue_holder(const struct queue *queue);

#endif
