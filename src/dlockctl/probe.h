/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a mount answers at all, and what one of its files says.
 */
#ifndef DLOCKCTL_PROBE_H
#define DLOCKCTL_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

struct probe {
	bool mount_answered; /* in time; then: */
	int mount_error;     /* of statfs(2) and stat(2), 0 or -errno */
	mode_t mode;	     /* of the root directory */
	dev_t device;
	bool file_answered; /* in time; then: */
	int file_error;	    /* 0 or -errno */
	char *text;	    /* of the file; to be freed */
};

/* Looks at the mount, and reads a file below .dlockfs. Returns 0, or -errno if nothing could be
 * found out. */
int probe_mount(const char *mount, const char *file, struct probe *ret);

/* Makes a name in a directory of the mount, "" for its root, and takes it away: no lock is taken
 * with it. The text is the names of the directories in there, each with a zero, to be freed.
 * Returns 0, -errno, or LOOK_NO_ANSWER; then *ret_text may be as it was. */
int probe_names(const char *mount, const char *name, char **ret_text, size_t *ret_bytes);

#endif
