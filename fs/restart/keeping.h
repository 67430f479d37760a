/* SPDX-License-Identifier: Apache-2.0
 *
 * What outlives the daemon if the service manager keeps descriptors (supervisor.h): the descriptor
 * of the mount, under the name "fuse", and the descriptor of the journal (journal/journal.h), under
 * the name "state". However this process ends, the next one gets both and goes on: the next process
 * restores the state from the journal (takeover.h), fences holders if the lease is over by then,
 * sends the latest answers once more, with an error in place of a lock that is fenced, and handles
 * the request that was not handled.
 *
 *   killed, crashed, SIGUSR1   the next process goes on
 *   fails before it goes on    the next process tries again
 *   stopped, unmounted         nothing is kept
 *   the next process does not  that process begins anew: the former mount is dead, and its locks
 *   understand the state, has  are free when the session has expired
 *   other stores, or is the
 *   ninth after eight that
 *   went on and died at once
 *
 * Loop thread only, or before the loop begins.
 */
#ifndef DLOCKFS_RESTART_KEEPING_H
#define DLOCKFS_RESTART_KEEPING_H

#include "journal/journal.h"
#include "restart/takeover.h"

struct keeping {
	int fuse;   /* the mount of the process before; -1: there is none, or the session has the
		       descriptor by now */
	int state;  /* the journal of the process before; -1: there is none */
	bool found; /* the takeover was read from these two */
	bool gave_up;
	bool abandoned;	  /* no process goes on with the former mount, which may still be there */
	char *mountpoint; /* the path of the former mount; NULL: not known */
	struct state_journal_content content;
	struct state_journal *journal; /* NULL: nothing is kept */
	struct takeover_marks marks;   /* of the journal */
	int64_t publish_ms; /* when the service manager is given the descriptors again, after a
			       failure; INT64_MAX: it has both, or is not to get them yet */
	uint64_t handled;   /* the latest request before SIGUSR2; 0: none */
	struct filesystem *filesystem;
	int64_t settle_ms; /* when this process counts as able to live on the restored state;
			      INT64_MAX: it counts as that */
};

/* Takes the descriptors that the service manager has kept, and reads the journal into `takeover` up
 * to the file system, unless the takeover has content already. An unusable journal is logged and
 * given up: the takeover is empty then. Returns 0; or -errno of an error that may pass (-ENOMEM,
 * -EMFILE and the like), and one line in `why`: the process is to end, and the next one finds
 * everything as it was. Before threads exist. */
int keeping_begin(struct keeping *keeping, struct takeover *takeover, char *why, size_t why_bytes);

/* Gives the state up if the state is of another mountpoint than that of the command line, or of
 * stores that are configured in another way. Returns as keeping_begin(). May block for up to five
 * seconds. */
int keeping_check(struct keeping *keeping, struct takeover *takeover, const char *mountpoint,
		  const struct config *config, char *why, size_t why_bytes);

/* The state could not be restored, because of `error` and `why`. Unless the error may pass, logs
 * it, closes the descriptors, and empties the takeover. */
void keeping_refuse(struct keeping *keeping, struct takeover *takeover, int error, const char *why);

/* Whether the state was given up since the last call of this function. */
bool keeping_gave_up(struct keeping *keeping);

/* Whether the state of the process before is still as it was, for the next process; until
 * keeping_start(). */
bool keeping_is_left(const struct keeping *keeping, const struct takeover *takeover);

/* The file system is new: goes on with the former journal, or begins one, if a service manager
 * keeps descriptors. Returns 0; or -errno if the former journal cannot go on. That a new journal
 * cannot be begun is logged, and the daemon works without. */
int keeping_open(struct keeping *keeping, struct filesystem *filesystem,
		 const struct takeover *takeover);

/* The session has the descriptor of the mount from now on. Answers are collected. Returns 0 or
 * -errno. */
int keeping_start(struct keeping *keeping);

/* The mount is usable: gives the descriptors to the service manager; after a failure, which is
 * logged once, again each second. */
void keeping_publish(struct keeping *keeping);

/* The state is restored, and calls that waited are handled again: from now on a kill loses nothing.
 * Sends the answers that may not have been sent, and handles the request that was not handled. */
void keeping_resume(struct keeping *keeping);

/* Whether another process could go on if this one ended now. */
bool keeping_is_possible(const struct keeping *keeping);

/* The process can live on the restored state: attempts are counted anew. */
void keeping_settle(struct keeping *keeping);

/* Settles a process that has lived for a while, and publishes again after a failure. To be called
 * at the time of keeping_deadline(); INT64_MAX: there is nothing to do. */
void keeping_advance(struct keeping *keeping, int64_t now_ms);
int64_t keeping_deadline(const struct keeping *keeping);

/* The daemon stops: the state is not kept any more. To be called before any holder is told of a
 * loss, and before the mount is ended, which the service manager would keep alive. */
void keeping_end(struct keeping *keeping);

/* To be called after the file system and the shards are finished. */
void keeping_finish(struct keeping *keeping);

#endif
