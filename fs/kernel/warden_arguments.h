/* SPDX-License-Identifier: Apache-2.0
 *
 * How the daemon starts the warden: its arguments, and where its socket is.
 */
#ifndef DLOCKFS_KERNEL_WARDEN_ARGUMENTS_H
#define DLOCKFS_KERNEL_WARDEN_ARGUMENTS_H

#define WARDEN_NAME   "dlockfs-warden" /* argv[0], for `ps` */
#define WARDEN_YES    "yes"
#define WARDEN_SOCKET 0

enum {
	WARDEN_ARGUMENT_NAME,
	WARDEN_ARGUMENT_DAEMON, /* its process id */
	WARDEN_ARGUMENT_MOUNTPOINT,
	WARDEN_ARGUMENT_UNMOUNTS,
	WARDEN_ARGUMENT_MADE,
	WARDEN_ARGUMENT_HAS_FILES,
	WARDEN_ARGUMENT_CONFIG, /* "": none */
	WARDEN_ARGUMENT_FILES	/* from here on */
};

#endif
