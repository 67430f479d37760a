/* SPDX-License-Identifier: Apache-2.0
 *
 * What outlives the daemon if the service manager keeps descriptors (supervisor.h): the mount's, by
 * the name of "fuse", and the journal's (journal/journal.h), by that of "state". The next process
 * gets both, however this one ended, and goes on: it takes over what the journal says (takeover.h),
 * fences what is lost if the lease is over by then, sends the last answers once more, with an error
 * in place of a lock that is fenced, and handles the request that was not handled.
 *
 *   killed, crashed, SIGUSR1   the next process goes on
 *   fails before it goes on    the next process tries again
 *   stopped, unmounted         nothing is kept
 *   not understood, of other   the next process begins anew: the mount of before is dead then, and
 *   stores, or eight that      what was locked is free when the session has expired
 *   went on died at once
 *
 * Loop thread only, or before the loop begins.
 */
#ifndef DLOCKFS_RESTART_KEEPING_H
#define DLOCKFS_RESTART_KEEPING_H

#include "files/filesystem.h"
#include "journal/journal.h"
#include "restart/takeover.h"

struct keeping {
	int fuse;   /* of the process before; -1: there is none, or it is the session's by now */
	int state;  /* of its journal; likewise */
	bool found; /* the takeover is of these */
	bool gave_up;
	bool abandoned;	  /* nobody goes on with the mount of the process before, if that is still
			     there, */
	char *mountpoint; /* of which this is the path; NULL: it is not known */
	struct state_journal_content content;
	struct state_journal *journal; /* NULL: nothing is kept */
	int64_t publish_ms;	       /* when it is given to the service manager again, which could
					  not be told; INT64_MAX: it has both descriptors, or is
					  not to get them yet */
	uint64_t handled;	       /* the latest request before SIGUSR2; 0: none */
	struct filesystem *filesystem;
	int64_t settle_ms; /* when it is sure that this process can live on what it found;
			      INT64_MAX: it is */
};

/* Takes what the service manager has kept, and reads it into `takeover` up to the file system,
 * unless that has something already. What is no good is logged and given up: the takeover is
 * empty then. Returns 0; or -errno of what may pass (-ENOMEM, -EMFILE and the like), and one line
 * in `why`: the process is to end, and the next one finds all as it was. Before threads exist. */
int keeping_begin(struct keeping *keeping, struct takeover *takeover, char *why, size_t why_bytes);

/* Gives up what was found if it is of another mountpoint (as on the command line) or of stores that
 * are configured in another way. Returns as keeping_begin(). May block for up to five seconds. */
int keeping_check(struct keeping *keeping, struct takeover *takeover, const char *mountpoint,
		  const struct config *config, char *why, size_t why_bytes);

/* What was found could not be gone on with: `error`, and `why`. Unless that may pass, logs it,
 * closes what was found, and empties the takeover. */
void keeping_refuse(struct keeping *keeping, struct takeover *takeover, int error, const char *why);

/* Whether that has happened since this was asked last. */
bool keeping_gave_up(struct keeping *keeping);

/* Whether what the process before has left is as it was, for another one; until keeping_start(). */
bool keeping_is_left(const struct keeping *keeping, const struct takeover *takeover);

/* The file system is new: begins to keep what it knows, if there is somebody who keeps it, or goes
 * on with that. Returns 0; or -errno if the second fails. If the first does that is logged, and the
 * daemon lives without. */
int keeping_open(struct keeping *keeping, struct filesystem *filesystem,
		 const struct takeover *takeover);

/* The descriptor of the mount is the session's from now on: collects what is to be sent. */
void keeping_start(struct keeping *keeping);

/* The mount is usable: gives the descriptors to the service manager; if that fails, which is logged
 * once, each second again. */
void keeping_publish(struct keeping *keeping);

/* What was found is restored, and its waiting calls are handled again: from now on a kill loses
 * nothing. Sends what may not have been sent, and handles what was not handled. */
void keeping_resume(struct keeping *keeping);

/* Whether another process could go on, were this one to end now. */
bool keeping_is_possible(const struct keeping *keeping);

/* The process can live on what it found: attempts are counted anew. */
void keeping_settle(struct keeping *keeping);

/* The same once it has lived for a while, and what is to be tried again; by the time of
 * keeping_deadline(), INT64_MAX: there is nothing to do. */
void keeping_advance(struct keeping *keeping, int64_t now_ms);
int64_t keeping_deadline(const struct keeping *keeping);

/* The daemon stops: nothing is kept any more. Before anybody is told that a lock is lost, and
 * before the mount is ended, which the service manager would keep alive. */
void keeping_end(struct keeping *keeping);

/* After the file system and the shards. */
void keeping_finish(struct keeping *keeping);

#endif
