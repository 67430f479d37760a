/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts this program once more, under another name.
 */
#ifndef DLOCKFS_KERNEL_OWN_PROGRAM_H
#define DLOCKFS_KERNEL_OWN_PROGRAM_H

#include <spawn.h>
#include <sys/types.h>

/* This program, not the one that an upgrade may have put at its path. In a session of its own: a
 * signal to the caller's process group is not for it. Returns 0 or -errno. */
int own_program_spawn(const posix_spawn_file_actions_t *actions, char *const *arguments,
		      pid_t *ret);

#endif
