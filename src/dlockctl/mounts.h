/* SPDX-License-Identifier: Apache-2.0
 *
 * The mounts of dlockfs, as /proc/self/mountinfo lists them. Never asks a mount itself.
 */
#ifndef DLOCKCTL_MOUNTS_H
#define DLOCKCTL_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

struct mount {
	char *folder;
	char *root;   /* the directory of the file system that is mounted there; "/": all of it */
	char *device; /* "0:47": mounts of the same device show the same file system */
	bool trusted; /* mounted by root or by the caller: other users must not decide which locks
			 the caller uses */
	char *owner;  /* who has mounted it: the number of a user, */
	bool is_private; /* who alone can use it: the caller cannot */
};

struct mounts {
	struct mount *list;
	size_t count;
};

/* Returns 0; or tells the error and returns the status to end with. mounts_finish() frees *mounts
 * in any case. */
int mounts_read(struct mounts *mounts);

/* The mount at the folder, or NULL. */
const struct mount *mounts_at(const struct mounts *mounts, const char *folder);

/* The innermost mount that the absolute path is below, or NULL. */
const struct mount *mounts_above(const struct mounts *mounts, const char *path);

/* A mount of the whole file system of which `part` may show a directory only; NULL: there is none.
 */
const struct mount *mounts_whole(const struct mounts *mounts, const struct mount *part);

void mounts_finish(struct mounts *mounts);

/* Whether the mount shows all of its file system. */
bool mount_is_whole(const struct mount *mount);

/* The part of a path that is below the folder, or NULL. */
const char *path_below(const char *path, const char *folder);

#endif
