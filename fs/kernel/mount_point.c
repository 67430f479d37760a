/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/mount_point.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/platform.h"
#include "kernel/folder_below.h"
#include "kernel/warden.h"

#define MOUNT_TYPE	"fuse.dlockfs"
#define ANSWER_LIMIT_MS 5000
#define UNMOUNTING_MS	100 /* from the end of a connection to that of its mount */

#define LINKS_MAX 40 /* as the kernel's MAXSYMLINKS */

/* Puts what the symbolic link refers to in its place: the link ends at `end` of the path, and the
 * directory that it is in at `begin`. Returns false if that is too long. */
static bool put_target(char path[PATH_MAX], size_t begin, size_t end, const char *target)
{
	char followed[PATH_MAX];
	size_t kept = target[0] == '/' ? 0 : begin;
	int length = snprintf(followed, sizeof(followed), "%.*s%s%s", (int)kept, path, target,
			      path + end);

	if (length < 0 || (size_t)length >= sizeof(followed))
		return false;
	memcpy(path, followed, (size_t)length + 1);
	return true;
}

/* The first symbolic link on the way of the path that neither root nor this user has made, in
 * `found`: whoever has made it decides what becomes the mount point. Asks nothing of what is at the
 * end of the path, unless that is a link. */
static bool find_foreign_link(const char *mountpoint, char found[PATH_MAX])
{
	char path[PATH_MAX], target[PATH_MAX];
	size_t begin = 0;
	struct stat attr;

	snprintf(path, sizeof(path), "%s", mountpoint);
	for (int links = 0; path[begin] != '\0' && links < LINKS_MAX;) {
		size_t name = begin + strspn(path + begin, "/");
		size_t end = name + strcspn(path + name, "/");
		snprintf(found, PATH_MAX, "%.*s", (int)end, path);
		ssize_t length = end > name ? readlink(found, target, sizeof(target) - 1) : -1;
		if (length < 0) {
			begin = end;
			continue;
		}
		target[length] = '\0';
		if (lstat(found, &attr) == 0 && attr.st_uid != 0 && attr.st_uid != geteuid())
			return true;
		links++;
		if (!put_target(path, name, end, target))
			return false;
		begin = 0;
	}
	return false;
}

static void cut_slashes(char *path)
{
	for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
		path[end - 1] = '\0';
}

/* Follows symbolic links at the end of the path, by hand: the file system that is mounted at the
 * end may be dead. Returns a string that the caller frees, or NULL with errno. */
static char *follow_links(const char *mountpoint)
{
	char *path = strdup(mountpoint);
	char target[PATH_MAX];
	ssize_t length;

	for (int links = 0; path != NULL && links < LINKS_MAX; links++) {
		cut_slashes(path); /* else readlink(2) would follow the link */
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			return path;
		target[length] = '\0';
		char *next;
		if (target[0] == '/')
			next = strdup(target);
		else if (asprintf(&next, "%s/%s", dirname(path), target) < 0)
			next = NULL;
		free(path);
		path = next;
	}
	free(path);
	errno = path != NULL ? ELOOP : ENOMEM;
	return NULL;
}

/* The absolute path. realpath(3) resolves only the directory above: for the last component it would
 * ask the file system that is mounted there. */
static char *resolve(const char *mountpoint)
{
	char directory[PATH_MAX];
	char *path = follow_links(mountpoint);
	char *copy = path != NULL ? strdup(path) : NULL;
	char *result = NULL;

	if (copy != NULL && realpath(dirname(copy), directory) != NULL) {
		const char *name = basename(path);
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "/") == 0)
			result = realpath(path, NULL);
		else if (asprintf(&result, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory,
				  name) < 0)
			result = NULL;
	}
	free(copy);
	free(path);
	return result;
}

/* Undoes what proc(5) does with spaces, tabs, newlines and backslashes: \040 and so on. */
static void decode(char *text)
{
	char *out = text;

	for (const char *at = text; *at != '\0'; out++) {
		unsigned int byte;
		if (*at == '\\' && sscanf(at + 1, "%3o", &byte) == 1) {
			*out = (char)byte;
			at += 4;
		} else {
			*out = *at++;
		}
	}
	*out = '\0';
}

/* What mountinfo has of a mount. */
struct found {
	char type[64]; /* "": nothing is mounted there */
	unsigned int device;
	bool has_option;
};

/* Notes what a line says, if it is of a mount at the path. */
static void read_line(char *line, const char *path, const char *option, struct found *found)
{
	char *type = strstr(line, " - "), *rest = NULL, *word;
	unsigned int minor;
	int begin = 0;

	if (type == NULL || sscanf(line, "%*d %*d %*u:%u %*s %n", &minor, &begin) != 1 ||
	    begin == 0)
		return;
	*type = '\0';
	type += strlen(" - ");
	char *point = strtok_r(line + begin, " ", &rest);
	if (point == NULL)
		return;
	decode(point);
	if (strcmp(point, path) != 0)
		return;
	*found = (struct found){.device = minor};
	snprintf(found->type, sizeof(found->type), "%.*s", (int)strcspn(type, " "), type);
	while ((word = strtok_r(NULL, " ,", &rest)) != NULL)
		found->has_option |= strcmp(word, option) == 0;
}

/* The topmost mount there. */
static struct found find_topmost(const char *path, const char *option)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	struct found found = {0};
	char *line = NULL;
	size_t line_bytes = 0;

	while (mounts != NULL && getline(&line, &line_bytes, mounts) > 0)
		read_line(line, path, option, &found);
	if (mounts != NULL)
		fclose(mounts);
	free(line);
	return found;
}

static bool is_ours(const struct found *found)
{
	return strcmp(found->type, MOUNT_TYPE) == 0;
}

bool mount_point_is_ours(const char *path)
{
	const struct found found = find_topmost(path, "");
	return is_ours(&found);
}

unsigned int mount_point_device(const char *path)
{
	const struct found found = find_topmost(path, "");
	return is_ours(&found) ? found.device : 0;
}

bool mount_point_has_option(const char *path, const char *option)
{
	return find_topmost(path, option).has_option;
}

int mount_point_unmount(const char *path)
{
	const struct warden_request request = {.kind = WARDEN_UNMOUNT};

	if (warden_socket() >= 0)
		return (int)warden_do(&request);
	if (geteuid() == 0)
		return umount2(path, MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
	char *arguments[] = {"fusermount3", "-uz", "--", (char *)path, NULL};
	pid_t child;
	int status;
	int error = posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ);
	if (error != 0)
		return -error;
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

enum mount_life { MOUNT_ALIVE, MOUNT_DEAD, MOUNT_SILENT };

/* Whether the daemon of the mount answers. statfs(2) always asks it, while stat(2) may be answered
 * from the kernel's cache. In a process of its own, because a daemon that was stopped never
 * answers. ECONNABORTED: the daemon died while it was asked. */
static enum mount_life find_life(const char *path)
{
	struct statfs answer;
	int status;
	pid_t child = fork();
	if (child == 0)
		_exit(statfs(path, &answer) < 0 && (errno == ENOTCONN || errno == ECONNABORTED));
	int descriptor = child > 0 ? pidfd_open(child, 0) : -1;
	struct pollfd end = {.fd = descriptor, .events = POLLIN};
	bool ended = descriptor >= 0 && poll(&end, 1, ANSWER_LIMIT_MS) > 0;
	if (descriptor >= 0)
		close(descriptor);
	if (child > 0 && !ended)
		kill(child, SIGKILL); /* and do not wait for the child's end: it may be stuck until
					 the daemon ends */
	if (!ended || waitpid(child, &status, 0) < 0)
		return MOUNT_SILENT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? MOUNT_DEAD : MOUNT_ALIVE;
}

bool mount_point_is_alive(const char *path)
{
	return find_life(path) == MOUNT_ALIVE;
}

static bool is_dead(const char *path)
{
	return mount_point_is_ours(path) && find_life(path) == MOUNT_DEAD;
}

void mount_point_unmount_dead(const char *path)
{
	const struct timespec pause = {.tv_nsec = UNMOUNTING_MS * 1000000L};

	if (!is_dead(path))
		return;
	nanosleep(&pause, NULL);
	if (is_dead(path))
		mount_point_unmount(path);
}

bool mount_point_is_left(const char *path)
{
	const struct timespec pause = {.tv_nsec = UNMOUNTING_MS * 1000000L};

	if (!mount_point_is_ours(path))
		return false;
	nanosleep(&pause, NULL);
	return mount_point_is_ours(path);
}

/* Unmounts what a dead dlockfs has left at the path. */
static int clear_mount(const char *path, const struct found *found, bool abandoned, char *why,
		       size_t why_bytes)
{
	enum mount_life life = MOUNT_ALIVE;
	if (is_ours(found))
		life = abandoned ? MOUNT_DEAD : find_life(path);
	if (life != MOUNT_DEAD) {
		snprintf(why, why_bytes, "%s: a mount of type %s is already there%s", path,
			 found->type, life == MOUNT_SILENT ? ", and does not answer" : "");
		return -EBUSY;
	}
	int error = mount_point_unmount(path);
	if (error != 0)
		snprintf(why, why_bytes, "%s: cannot take the mount of a dead dlockfs away: %s",
			 path, strerror(-error));
	else
		log_warning("%s: took the mount of a dead dlockfs away", path);
	return error;
}

void mount_point_remove(const char *path)
{
	const struct warden_request request = {.kind = WARDEN_REMOVE};
	int error = warden_socket() >= 0 ? (int)warden_do(&request) : folder_below_remove(path);

	if (error != 0 && error != -ENOENT)
		log_warning("%s: cannot remove the folder: %s; files that are locked in it are "
			    "locked on this host only",
			    path, strerror(-error));
}

static int make_free(const char *path, bool abandoned, bool nonempty, bool *ret_made, char *why,
		     size_t why_bytes)
{
	struct found found;
	struct stat attr;
	bool mounted = false;
	int error = 0;

	*ret_made = false;
	/* A mount on first use (x-systemd.automount) has autofs there, to be mounted upon. */
	while (error == 0) {
		found = find_topmost(path, "");
		mounted = found.type[0] != '\0';
		if (!mounted || strcmp(found.type, "autofs") == 0)
			break;
		error = clear_mount(path, &found, abandoned, why, why_bytes);
	}
	if (error != 0)
		return error;
	error = folder_below_make(path);
	*ret_made = error == 0;
	if (error == -EEXIST)
		error = 0;
	if (error == 0 && stat(path, &attr) < 0)
		error = -errno;
	else if (error == 0 && !S_ISDIR(attr.st_mode))
		error = -ENOTDIR;
	if (error != 0)
		snprintf(why, why_bytes, "%s: %s", path, strerror(-error));
	else if (!mounted)
		error = folder_below_check(path, nonempty, why, why_bytes);
	return error;
}

int mount_point_find(const char *mountpoint, char **ret, char *why, size_t why_bytes)
{
	char link[PATH_MAX];
	if (find_foreign_link(mountpoint, link)) {
		snprintf(why, why_bytes,
			 "%s: %s is a symbolic link of another user, expected a folder, or a link "
			 "of root",
			 mountpoint, link);
		return -EPERM;
	}
	char *path = resolve(mountpoint);
	if (path == NULL) {
		int error = -errno;
		snprintf(why, why_bytes, "%s: %s", mountpoint, strerror(-error));
		return error;
	}
	*ret = path;
	return 0;
}

bool mount_point_is_link(const char *mountpoint)
{
	char path[PATH_MAX], target[1];

	snprintf(path, sizeof(path), "%s", mountpoint);
	cut_slashes(path);
	return readlink(path, target, sizeof(target)) >= 0;
}

int mount_point_prepare(const char *mountpoint, bool abandoned, bool nonempty, char **ret,
			bool *ret_made, char *why, size_t why_bytes)
{
	char *path = NULL;
	int error = mount_point_find(mountpoint, &path, why, why_bytes);
	if (error != 0)
		return error;
	error = make_free(path, abandoned, nonempty, ret_made, why, why_bytes);
	if (error == 0) {
		*ret = path;
		return 0;
	}
	if (*ret_made)
		mount_point_remove(path);
	*ret_made = false;
	free(path);
	return error;
}
