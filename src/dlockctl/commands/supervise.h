/* SPDX-License-Identifier: Apache-2.0
 *
 * A command that runs while a lock is held, or all of several, and not much longer.
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

#include <stddef.h>

#include "dlockctl/dlockctl.h"

enum action { ACTION_TERM, ACTION_KILL, ACTION_IGNORE };

struct supervised {
	const int *locks;	  /* the descriptors that hold the locks, with O_CLOEXEC, */
	size_t count;		  /* one or more, in an array that stays until the program ends; */
	const char *const *names; /* and the names of the locks, printable */
	enum action on_lost;
	enum action on_revoke;
	long long most_ms;  /* --max-hold; 0: none. For the words about a loss: */
	long long taken_ms; /* when the last of them was taken, by now_ms() */
	char **command;	    /* its words, the last one NULL */
};

/* Returns the exit status. Errors are reported. */
int supervise(const struct supervised *supervised);

#endif
