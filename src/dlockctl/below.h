/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder below a mount. Programs get to it when nothing is mounted there, and a lock in it
 * excludes nobody in the mount.
 */
#ifndef DLOCKCTL_BELOW_H
#define DLOCKCTL_BELOW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum below_protection {
	BELOW_WRITABLE,
	BELOW_READ_ONLY, /* but for root */
	BELOW_IMMUTABLE	 /* or in a file system that is mounted read-only */
};

struct below_file {
	char *name; /* "." is the folder */
	ino_t inode;
};

struct below {
	dev_t device;
	enum below_protection protection;
	struct below_file *files;
	size_t file_count;
};

/* Reads the folder, without a call of the file system that is mounted there. Returns false if that
 * cannot be done: by others than root, and where other mounts than those of dlockfs are in the way.
 * below_finish() frees *ret in any case. */
bool below_read(const char *mount, struct below *ret);

/* The name of the file with that inode, or NULL. */
const char *below_name(const struct below *below, ino_t inode);

void below_finish(struct below *below);

#endif
