/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program goes on in place of this one, without anybody noticing: SIGUSR2. It is the one
 * that is found now where this one was started from, so the next version after an upgrade. It gets
 * the same process, by execve(2): whoever watches the process, and the mount, see no change.
 *
 *   SIGUSR2         the program is run with what it would get now, as another process: a rehearsal
 *   it has ended    understood: all is written down anew, rehearsed once more, and the program
 *                   executed
 *
 * Whatever goes wrong until then is logged in one line, and this program goes on.
 *
 * Loop thread only; nothing here blocks but restart_execute(), for as long as a program takes to
 * start, at most two seconds.
 */
#ifndef DLOCKFS_RESTART_RESTART_H
#define DLOCKFS_RESTART_RESTART_H

#include <sys/types.h>

#include "files/filesystem.h"
#include "restart/takeover.h"

struct restart {
	struct filesystem *filesystem;
	char **arguments; /* as main() got them */
	struct takeover_process process;
	char *program;
	char *folder;
	char init[256]; /* the kernel's greeting */
	pid_t child;	/* that rehearses; 0: none */
	int child_descriptor;
	int answer;	  /* what it has printed, */
	int complaint;	  /* and to stderr */
	int64_t limit_ms; /* when it is not waited for any more; INT64_MAX: never */
	bool leave;	  /* this program ends in any case */
};

/* Notes from where the program was started. Before the folder changes. What is missing is told when
 * it is needed. */
void restart_init(struct restart *restart, char **arguments);

/* The rest, before the loop begins. `taken` is what this process has taken over itself, or has no
 * file. */
void restart_set(struct restart *restart, struct filesystem *filesystem, bool background,
		 const struct takeover *taken);

void restart_finish(struct restart *restart);

/* A request has come: the first is the greeting. */
void restart_note_request(struct restart *restart, const struct fuse_buf *request);

/* Lets the program rehearse; with `leave` this one is going to end, and the other would be started
 * by the service manager (keeping.h). Returns a descriptor that becomes readable when it has ended,
 * and is the struct's; or -1, the reason logged, or because one rehearses already. */
int restart_begin(struct restart *restart, bool leave, int64_t now_ms);

/* The same descriptor; -1: nobody rehearses. */
int restart_descriptor(const struct restart *restart);

/* The child has ended. Returns whether it has understood; else the reason is logged. */
bool restart_is_understood(struct restart *restart);

/* Ends a rehearsal that takes too long, by the time of restart_deadline(); INT64_MAX: nobody
 * rehearses. */
void restart_advance(struct restart *restart, int64_t now_ms);
int64_t restart_deadline(const struct restart *restart);

/* Ends the rehearsal, if there is one, and logs why this program goes on, or ends. */
void restart_give_up(struct restart *restart, const char *why);

/* Executes the program. Returns only if that fails, the reason logged. */
void restart_execute(struct restart *restart);

#endif
