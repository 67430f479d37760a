/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's process, as a service manager starts it: with the descriptors that are kept
 * (sd_listen_fds(3)), and with where to send messages (sd_notify(3)).
 */
#ifndef DLOCKFS_KEEPER_CHILD_H
#define DLOCKFS_KEEPER_CHILD_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/shelf.h"

struct child_plan {
	char *const *command;
	const char *notify;	   /* NOTIFY_SOCKET */
	int64_t watchdog_ms;	   /* how long it may be silent */
	const sigset_t *signals;   /* the mask that it begins with */
	const struct shelf *shelf; /* all but its own pidfd are for it */
};

struct child {
	pid_t pid;
	int pidfd; /* the caller's */
	int gate;
};

/* Starts a process that waits for child_go(), and ends if this process does before. Returns 0 or
 * -errno. */
int child_begin(const struct child_plan *plan, struct child *ret);

/* The process executes the command; if that fails it reports that, and ends with status 127. */
void child_go(struct child *child);

#endif
