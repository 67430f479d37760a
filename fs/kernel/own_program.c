/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps no state.
 */
#include "kernel/own_program.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

/* After an upgrade the link ends in " (deleted)". The path is preferred, for tools that run the
 * program inside themselves. */
int own_program_spawn(const posix_spawn_file_actions_t *actions, char *const *arguments, pid_t *ret)
{
	static const char self[] = "/proc/self/exe";
	char path[PATH_MAX];
	ssize_t length = readlink(self, path, sizeof(path) - 1);
	posix_spawnattr_t attributes;
	sigset_t ignored; /* that the warden ignores */
	int error = ENOENT;

	posix_spawnattr_init(&attributes);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGCHLD);
	posix_spawnattr_setsigdefault(&attributes, &ignored);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
	if (length > 0) {
		path[length] = '\0';
		error = posix_spawn(ret, path, actions, &attributes, arguments, environ);
	}
	if (error == ENOENT)
		error = posix_spawn(ret, self, actions, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	return -error;
}
