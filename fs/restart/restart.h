/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program goes on in place of this one, and no caller notices: SIGUSR2. The other program
 * is the one that is now at the path from which this one was started: after an upgrade, the next
 * version. The other program gets the same process, by execve(2): for those who watch the process,
 * and for the mount, nothing changes.
 *
 *   SIGUSR2             the other program is run, as another process, with the state of now: a
 *                       rehearsal
 *   the rehearsal has   the state is written anew and rehearsed once more, and the other program
 *   ended well          is executed
 *
 * If anything goes wrong before that, one line is logged, and this program goes on.
 *
 * Loop thread only; nothing here blocks but restart_execute(), for as long as a program takes to
 * start, at most two seconds, and no longer than a third of what the shortest lease has left.
 */
#ifndef DLOCKFS_RESTART_RESTART_H
#define DLOCKFS_RESTART_RESTART_H

#include <fuse_lowlevel.h>
#include <sys/types.h>

#include "restart/takeover.h"

struct restart {
	struct filesystem *filesystem;
	char **arguments; /* as main() got them */
	struct takeover_process process;
	char *program;
	char *folder;
	char init[256]; /* the kernel's greeting */
	pid_t child;	/* the rehearsing process; 0: none */
	int child_descriptor;
	int answer;	  /* the child's stdout */
	int complaint;	  /* the child's stderr */
	int64_t limit_ms; /* until when the child may rehearse; INT64_MAX: for ever */
	bool leave;	  /* this program ends in any case */
};

/* Notes from where the program was started. To be called before the folder changes. An error is
 * reported when the path is needed. */
void restart_init(struct restart *restart, char **arguments);

/* Sets the rest, before the loop begins. `taken` is the state that this process has taken over
 * itself; without a file: none. */
void restart_set(struct restart *restart, struct filesystem *filesystem, bool background,
		 const struct takeover *taken);

/* The configuration has been read anew. */
void restart_note_config(struct restart *restart);

void restart_finish(struct restart *restart);

/* A request has come; the first one is the greeting (FUSE_INIT). */
void restart_note_request(struct restart *restart, const struct fuse_buf *request);

/* Begins a rehearsal. With `leave` this program is going to end, and the service manager would
 * start the other program (keeping.h). Returns a descriptor, owned by the struct, that becomes
 * readable when the rehearsal has ended; or -1, if a rehearsal runs already, or for a reason that
 * is logged. */
int restart_begin(struct restart *restart, bool leave, int64_t now_ms);

/* The descriptor that restart_begin() has returned; -1: no rehearsal runs. */
int restart_descriptor(const struct restart *restart);

/* The rehearsal has ended. Returns whether the other program understood the state; if not, the
 * reason is logged. */
bool restart_is_understood(struct restart *restart);

/* Ends a rehearsal that takes too long. To be called at the time of restart_deadline(); INT64_MAX:
 * no rehearsal runs. */
void restart_advance(struct restart *restart, int64_t now_ms);
int64_t restart_deadline(const struct restart *restart);

/* Ends the rehearsal, if there is one, and logs why this program goes on, or ends. */
void restart_give_up(struct restart *restart, const char *why);

/* Executes the other program. Returns only if that fails, with the reason logged. */
void restart_execute(struct restart *restart);

#endif
