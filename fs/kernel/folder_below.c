/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/folder_below.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

/* What dlockfs, its libraries, and the programs that it starts open or connect to while the mount
 * is there. Files of /etc may be symbolic links. What the configuration names is off limits below
 * the mount point anyway (base/off_limits.h). */
static const char *const needed[] = {
	"/",
	"/dev",
	"/dev/log",
	"/etc",
	"/etc/group",
	"/etc/hosts",
	"/etc/localtime",
	"/etc/mtab",
	"/etc/nsswitch.conf",
	"/etc/passwd",
	"/etc/resolv.conf",
	"/proc",
	"/run/systemd/journal",
	"/sys/fs/fuse",
	"/usr/bin/fusermount3",
};

static bool is_same(const char *path, const struct stat *folder)
{
	struct stat found;

	return stat(path, &found) == 0 && found.st_dev == folder->st_dev &&
	       found.st_ino == folder->st_ino;
}

/* Whether the file is the folder, or below it. What is not there is not. */
static bool is_below(const char *file, const struct stat *folder)
{
	char path[PATH_MAX];

	if (realpath(file, path) == NULL)
		return false;
	while (strcmp(path, "/") != 0) {
		if (is_same(path, folder))
			return true;
		char *slash = strrchr(path, '/');
		slash[slash == path ? 1 : 0] = '\0';
	}
	return is_same(path, folder);
}

/* A file that this process has mapped, its program or a library, and that is below the folder: in
 * `line`, which is getline(3)'s. NULL: there is none. */
static const char *find_mapped(const struct stat *folder, char **line, size_t *line_bytes)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	const char *found = NULL;

	while (maps != NULL && found == NULL && getline(line, line_bytes, maps) > 0) {
		const char *path = strchr(*line, '/');
		(*line)[strcspn(*line, "\n")] = '\0';
		if (path != NULL && is_below(path, folder))
			found = path;
	}
	if (maps != NULL)
		fclose(maps);
	return found;
}

static int check_needed(const char *path, char *why, size_t why_bytes)
{
	const char *notify = getenv("NOTIFY_SOCKET");
	const char *found = NULL;
	char *line = NULL;
	size_t line_bytes = 0;
	struct stat folder;

	if (stat(path, &folder) < 0) {
		int error = -errno;
		snprintf(why, why_bytes, "%s: %s", path, strerror(-error));
		return error;
	}
	for (size_t i = 0; found == NULL && i < sizeof(needed) / sizeof(*needed); i++) {
		if (is_below(needed[i], &folder))
			found = needed[i];
	}
	if (found == NULL && notify != NULL && notify[0] == '/' && is_below(notify, &folder))
		found = notify;
	if (found == NULL)
		found = find_mapped(&folder, &line, &line_bytes);
	if (found != NULL)
		snprintf(why, why_bytes,
			 "%s: dlockfs itself needs %s, which would be behind its own mount, "
			 "expected an empty folder such as /run/dlocks",
			 path, found);
	free(line);
	return found != NULL ? -EBUSY : 0;
}

/* Puts the name of anything that is in the folder into `name`, or "". Returns 0 or -errno. */
static int find_entry(const char *path, char name[NAME_MAX + 1])
{
	DIR *folder = opendir(path);
	const struct dirent *entry;

	name[0] = '\0';
	if (folder == NULL)
		return -errno;
	while (name[0] == '\0' && (entry = readdir(folder)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	closedir(folder);
	return 0;
}

static int check_empty(const char *path, bool nonempty, char *why, size_t why_bytes)
{
	char name[NAME_MAX + 1];
	int error = find_entry(path, name);

	if (nonempty) {
		if (error == 0 && name[0] != '\0')
			log_warning("%s: is not empty, and the mount hides what is in there, such "
				    "as %s",
				    path, name);
		return 0;
	}
	if (error != 0)
		snprintf(why, why_bytes, "%s: cannot see whether it is empty: %s", path,
			 strerror(-error));
	else if (name[0] != '\0')
		snprintf(why, why_bytes,
			 "%s: is not empty, and the mount would hide what is in there, such as %s; "
			 "expected an empty folder, or -o nonempty",
			 path, name);
	return error != 0 ? error : name[0] != '\0' ? -ENOTEMPTY : 0;
}

int folder_below_check(const char *path, bool nonempty, char *why, size_t why_bytes)
{
	int error = check_needed(path, why, why_bytes);

	return error != 0 ? error : check_empty(path, nonempty, why, why_bytes);
}
