/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/below.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"

#define MOUNT_TYPE "fuse.dlockfs"

/* Whether only mounts of dlockfs are at that path: below another one, such as autofs, nobody ever
 * gets. */
static bool is_only_ours(const char *mount)
{
	const struct mntent *entry;
	FILE *file = setmntent("/proc/self/mounts", "re");
	bool found = false, other = false;

	while (file != NULL && (entry = getmntent(file)) != NULL) {
		if (strcmp(entry->mnt_dir, mount) != 0)
			continue;
		found = true;
		other = other || strcmp(entry->mnt_type, MOUNT_TYPE) != 0;
	}
	if (file != NULL)
		endmntent(file);
	return found && !other;
}

/* Opens the folder in a copy of the mount that it is in, a copy without what is mounted in there.
 * Returns -1 if that cannot be done, as by users who are not root. */
static int open_below(const char *mount)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	char *copy = must(strdup(mount)), *other = must(strdup(mount));
	int above = (int)syscall(SYS_openat2, AT_FDCWD, dirname(copy), &how, sizeof(how));
	int tree = (int)syscall(SYS_open_tree, above, "",
				AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int folder = tree < 0 ? -1
			      : openat(tree, basename(other),
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (tree >= 0)
		close(tree);
	if (above >= 0)
		close(above);
	free(copy);
	free(other);
	return folder;
}

static void add(struct below *below, const char *name, ino_t inode)
{
	below->files =
		must(reallocarray(below->files, below->file_count + 1, sizeof(*below->files)));
	below->files[below->file_count++] =
		(struct below_file){.name = must(strdup(name)), .inode = inode};
}

static void read_folder(struct below *below, int folder)
{
	DIR *stream = fdopendir(folder);
	const struct dirent *entry;

	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		if (strcmp(entry->d_name, "..") != 0)
			add(below, entry->d_name, entry->d_ino);
	}
	if (stream != NULL)
		closedir(stream);
	else
		close(folder);
}

bool below_read(const char *mount, struct below *ret)
{
	struct statvfs system;
	struct stat attr;
	int flags = 0;

	*ret = (struct below){0};
	int folder = is_only_ours(mount) ? open_below(mount) : -1;
	if (folder < 0)
		return false;
	if (fstat(folder, &attr) < 0 || fstatvfs(folder, &system) < 0) {
		close(folder);
		return false;
	}
	ret->device = attr.st_dev;
	if ((system.f_flag & ST_RDONLY) != 0 ||
	    (ioctl(folder, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_IMMUTABLE_FL) != 0))
		ret->protection = BELOW_IMMUTABLE;
	else if ((attr.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0)
		ret->protection = BELOW_READ_ONLY;
	read_folder(ret, folder);
	return true;
}

const char *below_name(const struct below *below, ino_t inode)
{
	for (size_t i = 0; i < below->file_count; i++) {
		if (below->files[i].inode == inode)
			return below->files[i].name;
	}
	return NULL;
}

void below_finish(struct below *below)
{
	for (size_t i = 0; i < below->file_count; i++)
		free(below->files[i].name);
	free(below->files);
	*below = (struct below){0};
}
