/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at a mount from a child process, because a mount whose daemon hangs makes its callers hang,
 * and they cannot even be killed.
 */
#ifndef DLOCKCTL_PROBE_H
#define DLOCKCTL_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

#define PROBE_LIMIT_MS 5000

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
 * found out. Blocks for up to PROBE_LIMIT_MS. */
int probe_mount(const char *mount, const char *file, struct probe *ret);

#endif
