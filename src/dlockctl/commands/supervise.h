/* SPDX-License-Identifier: Apache-2.0
 *
 * A command that runs while a lock is held, and not much longer.
 *
 *     running --command ends--------------------------------> its status
 *     running --lock lost, ACTION_IGNORE--> running, a message
 *     running --lock lost--> ending (TERM or KILL to the group) --group is gone--> EXIT_LOST
 *     ending  --GRACE_MS later--> KILL to the group
 *
 * The command leads a process group of its own, which gets the terminal if dlockctl's group has it,
 * and stops and goes on together with dlockctl.
 */
#ifndef DLOCKCTL_COMMANDS_SUPERVISE_H
#define DLOCKCTL_COMMANDS_SUPERVISE_H

#include "dlockctl/dlockctl.h"

enum action { ACTION_TERM, ACTION_KILL, ACTION_IGNORE };

struct supervised {
	int lock;	  /* the descriptor that holds the lock, with O_CLOEXEC */
	const char *name; /* of the lock, printable */
	enum action on_lost;
	enum action on_revoke;
	char **command; /* its words, the last one NULL */
};

/* Returns the exit status. Errors are reported. */
int supervise(const struct supervised *supervised);

#endif
