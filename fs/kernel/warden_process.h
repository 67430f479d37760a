/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's process (warden.h): the arguments by which the daemon starts the process, where its
 * socket is, and its main().
 */
#ifndef DLOCKFS_KERNEL_WARDEN_PROCESS_H
#define DLOCKFS_KERNEL_WARDEN_PROCESS_H

#include <stdbool.h>

#define WARDEN_NAME   "dlockfs-warden" /* argv[0], for `ps` */
#define WARDEN_YES    "yes"
#define WARDEN_SOCKET 0

enum {
	WARDEN_ARGUMENT_NAME,
	WARDEN_ARGUMENT_DAEMON, /* the daemon's process id */
	WARDEN_ARGUMENT_MOUNTPOINT,
	WARDEN_ARGUMENT_UNMOUNTS,
	WARDEN_ARGUMENT_MADE,
	WARDEN_ARGUMENT_HAS_FILES,
	WARDEN_ARGUMENT_CONFIG, /* "": none */
	WARDEN_ARGUMENT_FILES	/* from here on */
};

/* What a program calls before anything else: whether the arguments are the warden's, and the
 * warden's work. */
bool warden_process_is_meant(char *const *arguments);
_Noreturn void warden_process_run(char *const *arguments);

#endif
