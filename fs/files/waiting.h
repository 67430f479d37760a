/* SPDX-License-Identifier: Apache-2.0
 *
 * A request of the kernel that waits: what every kind of them has. What a request waits for is in a
 * struct of its kind, whose first member this is:
 *
 *   struct parked       (handles/parked.h)  waits for the engine: a lock, a proof
 *   struct asking       (ops/asking.h)      waits for the engine: a lock file
 *   struct status_wait  (status/wait.c)     waits for the stores: a text of .dlockfs
 *   struct steer        (handles/steer.c)   waits for a store: another host's claim
 *   struct running      (ops/running.c)     waits for a store: the runs of a job
 *   struct holding_request (ops/holding.c)  waits for the engine: a hold
 *   struct held         (ops/held.c)        waits for other requests
 *
 * Each counts for its user, is kept for the next process, and is answered exactly once: by its
 * kind, which then calls waiting_end(). The kind owns the memory, and has its requests in lists.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_WAITING_H
#define DLOCKFS_FILES_WAITING_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/user.h"
#include "journal/journal.h"

struct filesystem;
struct kept_request;

struct waiting {
	struct waiting *prev, *next; /* in a list of the kind */
	fuse_req_t req;		     /* NULL: has not come yet, or is answered */
	union {
		struct kept_request *kept; /* NULL: no copy of the request is known */
		struct state_item item;	   /* of a kind that saves itself */
	};
	uid_t uid;	 /* the user for whom the request counts */
	uint32_t shares; /* for so many; 0: the request counts for nobody */
};

struct waiting_kind {
	enum user_share share; /* what a request counts as */
	bool saves_itself;     /* the kind has the request in the lines that it writes */
	/* A signal to the caller has come: answers with EINTR. NULL: signals do not end the wait.
	 */
	fuse_interrupt_func_t on_interrupt;
	/* Answers with the error (-errno), and ends the wait. */
	void (*refuse)(struct waiting *waiting, int error);
	/* When advance() is to go on; INT64_MAX: once something tells. NULL: something always
	 * tells. */
	int64_t (*deadline)(const struct waiting *waiting);
	void (*advance)(struct waiting *waiting);
};

/* The request counts for so many (more) shares of the user, whose limit is not checked. Returns 0
 * or -ENOMEM. */
int waiting_count(struct filesystem *filesystem, const struct waiting_kind *kind,
		  struct waiting *waiting, uid_t uid, size_t amount);

/* The request counts for nobody any more. */
void waiting_uncount(struct filesystem *filesystem, const struct waiting_kind *kind,
		     struct waiting *waiting);

/* The request that is being handled waits from now on, in place of the former request of the call,
 * if there was one: the request is kept, and a signal ends its wait. Returns 0; or -EINTR, if that
 * signal has come already, or -ENOMEM: the request is then still the caller's to answer. */
int waiting_hold(const struct waiting_kind *kind, struct waiting *waiting, fuse_req_t req);

/* The request is answered: the next process need not handle the request. */
void waiting_answered(struct filesystem *filesystem, const struct waiting_kind *kind,
		      struct waiting *waiting);

/* The request is answered, and counts for nobody any more: its memory may be freed. */
void waiting_end(struct filesystem *filesystem, const struct waiting_kind *kind,
		 struct waiting *waiting);

/* Refuses all that are in the list. */
void waiting_refuse_all(struct waiting *list, const struct waiting_kind *kind, int error);

/* Goes on with those in the list that are due. */
void waiting_advance(struct waiting *list, const struct waiting_kind *kind, int64_t now_ms);

/* When the next one in the list is due; INT64_MAX: none is. */
int64_t waiting_deadline(const struct waiting *list, const struct waiting_kind *kind);

#endif
