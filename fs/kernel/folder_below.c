/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/folder_below.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/proc.h"

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
	"/run/systemd/userdb",
	"/sys/fs/fuse",
	"/usr/bin/fusermount3",
	"/var/lib/sss",
	"/var/run/nscd",
};

static bool is_same(const char *path, const struct stat *folder)
{
	struct stat found;

	return stat(path, &found) == 0 && found.st_dev == folder->st_dev &&
	       found.st_ino == folder->st_ino;
}

/* Whether the folder is on the way of the absolute path, which need not lead to anything. */
static bool is_on_way(const char *file, const struct stat *folder)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", file);
	while (strcmp(path, "/") != 0) {
		if (is_same(path, folder))
			return true;
		char *slash = strrchr(path, '/');
		slash[slash == path ? 1 : 0] = '\0';
	}
	return is_same(path, folder);
}

/* Whether the file is the folder, or is reached through it. */
static bool is_below(const char *file, const struct stat *folder)
{
	char path[PATH_MAX];

	return is_on_way(file, folder) || (realpath(file, path) != NULL && is_on_way(path, folder));
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

/* A lock in a file system of this host. */
struct local_lock {
	unsigned long long inode;
	long holder; /* 0: a process of another pid namespace */
};

struct local_locks {
	struct local_lock *list;
	size_t count;
};

/* Reads a line of proc_locks(5), "1: FLOCK ADVISORY WRITE 4711 00:2f:17 0 EOF". Returns whether it
 * is of a lock on that device that is held, not waited for. */
static bool read_lock(const char *line, dev_t device, struct local_lock *ret)
{
	unsigned int found_major, found_minor;

	return sscanf(line, "%*d: %*[A-Z] %*s %*s %ld %x:%x:%llu", &ret->holder, &found_major,
		      &found_minor, &ret->inode) == 4 &&
	       found_major == major(device) && found_minor == minor(device);
}

/* Out of memory: those that were read. */
static struct local_locks read_locks(dev_t device)
{
	FILE *file = fopen("/proc/locks", "re");
	struct local_locks locks = {0};
	struct local_lock lock, *grown;
	char line[256];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (!read_lock(line, device, &lock))
			continue;
		grown = reallocarray(locks.list, locks.count + 1, sizeof(*grown));
		if (grown == NULL)
			break;
		locks.list = grown;
		locks.list[locks.count++] = lock;
	}
	if (file != NULL)
		fclose(file);
	return locks;
}

/* "process 4711 flock" */
static void describe_process(long pid, char *text, size_t bytes)
{
	char command[32];

	proc_read((pid_t)pid, "comm", command, sizeof(command));
	command[strcspn(command, "\n")] = '\0';
	if (pid > 0)
		snprintf(text, bytes, "process %ld %s", pid, command);
	else
		snprintf(text, bytes, "a process of another pid namespace");
}

/* Describes a lock on the file, if there is one and `text` is empty. */
static void find_lock(const struct local_locks *locks, const char *name, ino_t inode, char *text,
		      size_t bytes)
{
	char process[80];

	for (size_t i = 0; text[0] == '\0' && i < locks->count; i++) {
		if (locks->list[i].inode != inode)
			continue;
		describe_process(locks->list[i].holder, process, sizeof(process));
		snprintf(text, bytes, "%s has locked %s there, and excludes nobody in the mount",
			 process, name);
	}
}

/* What is in a folder: the name of anything; "": nothing is. And one who has locked something. */
struct content {
	char name[NAME_MAX + 1];
	char lock[2 * NAME_MAX];
};

/* Returns 0 or -errno. */
static int find_content(const char *path, struct content *ret)
{
	DIR *folder = opendir(path);
	struct local_locks locks = {0};
	const struct dirent *entry;
	struct stat attr;

	*ret = (struct content){0};
	if (folder == NULL)
		return -errno;
	if (fstat(dirfd(folder), &attr) == 0)
		locks = read_locks(attr.st_dev);
	while ((entry = readdir(folder)) != NULL) {
		bool is_folder = strcmp(entry->d_name, ".") == 0;
		if (strcmp(entry->d_name, "..") == 0)
			continue;
		if (!is_folder && ret->name[0] == '\0')
			snprintf(ret->name, sizeof(ret->name), "%s", entry->d_name);
		find_lock(&locks, is_folder ? "the folder itself" : entry->d_name, entry->d_ino,
			  ret->lock, sizeof(ret->lock));
	}
	free(locks.list);
	closedir(folder);
	return 0;
}

static int check_empty(const char *path, bool nonempty, char *why, size_t why_bytes)
{
	struct content content;
	int error = find_content(path, &content);
	bool empty = error == 0 && content.name[0] == '\0';

	if ((empty || nonempty) && content.lock[0] != '\0')
		log_warning("%s: %s", path, content.lock);
	if (nonempty && error == 0 && !empty)
		log_warning("%s: is not empty, and the mount hides what is in there, such as %s",
			    path, content.name);
	if (empty || nonempty)
		return 0;
	if (error != 0)
		snprintf(why, why_bytes, "%s: cannot see whether it is empty: %s", path,
			 strerror(-error));
	else
		snprintf(why, why_bytes,
			 "%s: is not empty, and the mount would hide what is in there, such as "
			 "%s%s%s; expected an empty folder, or -o nonempty",
			 path, content.name, content.lock[0] != '\0' ? "; " : "", content.lock);
	return error != 0 ? error : -ENOTEMPTY;
}

int folder_below_check(const char *path, bool nonempty, char *why, size_t why_bytes)
{
	int error = check_needed(path, why, why_bytes);

	return error != 0 ? error : check_empty(path, nonempty, why, why_bytes);
}

/* Makes the folder immutable, or no more so. Returns whether that is done. */
static bool set_immutable(int descriptor, bool immutable)
{
	int flags;

	if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) < 0)
		return false;
	if (((flags & FS_IMMUTABLE_FL) != 0) == immutable)
		return true;
	flags ^= FS_IMMUTABLE_FL;
	return ioctl(descriptor, FS_IOC_SETFLAGS, &flags) == 0;
}

static bool is_immutable(int descriptor)
{
	int flags;

	return ioctl(descriptor, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_IMMUTABLE_FL) != 0;
}

/* fusermount3 refuses a folder to which the user has no write access: as an earlier mount has left
 * it. */
static void make_fit(struct folder_below *folder)
{
	if (geteuid() == 0 || (folder->mode & S_IWUSR) != 0)
		return;
	folder->made_fit = fchmod(folder->descriptor, folder->mode | S_IWUSR) == 0;
}

/* Opens the folder; -1: it is none, or somebody has put a symbolic link on its way. Step by step:
 * systemd withholds openat2(2) from services with RestrictSUIDSGID. */
static int open_folder(const char *path, int access)
{
	char copy[PATH_MAX], *rest, *next;
	char *name = strtok_r(strcpy(copy, path), "/", &rest);
	int folder = open("/", name != NULL ? O_PATH | O_CLOEXEC : access | O_CLOEXEC);

	for (; name != NULL && folder >= 0; name = next) {
		next = strtok_r(NULL, "/", &rest);
		int below = openat(folder, name,
				   (next != NULL ? O_PATH : access) | O_DIRECTORY | O_NOFOLLOW |
					   O_CLOEXEC);
		close(folder);
		folder = below;
	}
	return folder;
}

void folder_below_begin(struct folder_below *folder, const char *path)
{
	struct statfs type;
	struct stat attr;

	*folder = (struct folder_below){
		.path = path,
		.descriptor = open_folder(path, O_RDONLY),
	};
	if (folder->descriptor < 0)
		return;
	if (fstatfs(folder->descriptor, &type) < 0 || type.f_type == AUTOFS_SUPER_MAGIC ||
	    fstat(folder->descriptor, &attr) < 0) {
		close(folder->descriptor);
		folder->descriptor = -1;
		return;
	}
	folder->mode = attr.st_mode & 07777;
	folder->immutable = is_immutable(folder->descriptor);
	folder->changed = !folder->immutable && set_immutable(folder->descriptor, true);
	folder->immutable = folder->immutable || folder->changed;
	make_fit(folder);
}

/* The second best: whoever is not root cannot lock there. */
static void take_permission(struct folder_below *folder)
{
	unsigned int mode = folder->mode & ~(unsigned int)(S_IWUSR | S_IWGRP | S_IWOTH);

	if (mode == folder->mode && !folder->made_fit)
		return;
	int error = fchmod(folder->descriptor, mode) < 0 ? errno : 0;
	if (error != 0 && error != EROFS)
		log_warning("%s: the folder below the mount cannot be made read-only: %m; without "
			    "the mount, files in it are locked on this host only",
			    folder->path);
	else if (error == 0 && mode != folder->mode)
		log_info("%s: the folder below the mount has the mode %04o from now on, so that "
			 "without the mount nobody but root can lock there",
			 folder->path, mode);
}

void folder_below_end(struct folder_below *folder, bool mounted)
{
	if (folder->descriptor < 0)
		return;
	if (mounted && !folder->immutable)
		take_permission(folder);
	else if (mounted && folder->changed)
		log_info("%s: the folder below the mount is immutable from now on, so that without "
			 "the mount nobody can lock there; chattr -i undoes that",
			 folder->path);
	if (!mounted && folder->changed)
		set_immutable(folder->descriptor, false);
	if (!mounted && folder->made_fit)
		fchmod(folder->descriptor, folder->mode);
	close(folder->descriptor);
	folder->descriptor = -1;
}

/* Calls act() in the folder that the one at the path is in, with the name of that. Returns 0 or
 * -errno. */
static int do_above(const char *path, int (*act)(int above, const char *name))
{
	char copy[PATH_MAX];
	size_t bytes = strlen(path);

	if (bytes >= sizeof(copy))
		return -ENAMETOOLONG;
	memcpy(copy, path, bytes + 1);
	const char *name = strrchr(path, '/') + 1;
	int above = open_folder(dirname(copy), O_PATH);
	int error = above < 0 || act(above, *name != '\0' ? name : ".") < 0 ? -errno : 0;
	if (above >= 0)
		close(above);
	return error;
}

static int make_in(int above, const char *name)
{
	return mkdirat(above, name, 0755);
}

int folder_below_make(const char *path)
{
	return do_above(path, make_in);
}

static int remove_in(int above, const char *name)
{
	return unlinkat(above, name, AT_REMOVEDIR);
}

int folder_below_remove(const char *path)
{
	int descriptor = open_folder(path, O_RDONLY);

	if (descriptor >= 0) {
		set_immutable(descriptor, false);
		close(descriptor);
	}
	return do_above(path, remove_in);
}
