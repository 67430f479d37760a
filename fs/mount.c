/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the session with the kernel and what is at the mount point. May block, and runs before the
 * loop starts and after it ended.
 */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

#define MOUNT_TYPE	"fuse.dlockfs"
#define ANSWER_LIMIT_MS 5000

/* Follows symbolic links at the end of the path, by hand: what is mounted at the end may be dead.
 * Returns a string that the caller frees, or NULL with errno. */
static char *follow_links(const char *mountpoint)
{
	char *path = strdup(mountpoint);
	char target[PATH_MAX];
	ssize_t length;

	for (int links = 0; path != NULL && links < 40; links++) {
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

/* The absolute path. Only the directory above is resolved by realpath(3), which would ask the file
 * system that is mounted at the last component. */
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

/* The type of what is mounted at the path, the topmost, in `type`. Returns false if nothing is. */
static bool find_mount(const char *path, char *type, size_t type_bytes)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	const struct mntent *entry;
	bool found = false;

	while (mounts != NULL && (entry = getmntent(mounts)) != NULL) {
		if (strcmp(entry->mnt_dir, path) != 0)
			continue;
		snprintf(type, type_bytes, "%s", entry->mnt_type);
		found = true;
	}
	if (mounts != NULL)
		endmntent(mounts);
	return found;
}

/* By root also ends the connection, whoever has it open. */
static int unmount(const char *path)
{
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

/* Whether a daemon answers behind the mount. statfs(2) always asks it, where stat(2) may be
 * answered from the kernel's cache; in a process of its own, because a daemon that was stopped
 * never answers. ECONNABORTED: it died while it was asked. */
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
		kill(child, SIGKILL); /* and do not wait for its end: it may be stuck until the
					 daemon goes */
	if (!ended || waitpid(child, &status, 0) < 0)
		return MOUNT_SILENT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? MOUNT_DEAD : MOUNT_ALIVE;
}

bool mount_is_alive(const char *path)
{
	return find_life(path) == MOUNT_ALIVE;
}

/* Takes away what is mounted at the path, if it is what a dead dlockfs left. */
static int clear_mount(const char *path, const char *type, bool abandoned, char *why,
		       size_t why_bytes)
{
	enum mount_life life = MOUNT_ALIVE;
	if (strcmp(type, MOUNT_TYPE) == 0)
		life = abandoned ? MOUNT_DEAD : find_life(path);
	if (life != MOUNT_DEAD) {
		snprintf(why, why_bytes, "%s: a mount of type %s is already there%s", path, type,
			 life == MOUNT_SILENT ? ", and does not answer" : "");
		return -EBUSY;
	}
	int error = unmount(path);
	if (error != 0)
		snprintf(why, why_bytes, "%s: cannot take the mount of a dead dlockfs away: %s",
			 path, strerror(-error));
	else
		log_warning("%s: took the mount of a dead dlockfs away", path);
	return error;
}

static int make_free(const char *path, bool abandoned, char *why, size_t why_bytes)
{
	char type[64];
	struct stat attr;
	int error = 0;

	/* Who mounts on first use has mounted autofs there, to be mounted upon. */
	while (error == 0 && find_mount(path, type, sizeof(type)) && strcmp(type, "autofs") != 0)
		error = clear_mount(path, type, abandoned, why, why_bytes);
	if (error != 0)
		return error;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		error = -errno;
	else if (stat(path, &attr) < 0)
		error = -errno;
	else if (!S_ISDIR(attr.st_mode))
		error = -ENOTDIR;
	if (error != 0)
		snprintf(why, why_bytes, "%s: %s", path, strerror(-error));
	return error;
}

int mount_find(const char *mountpoint, char **ret, char *why, size_t why_bytes)
{
	char *path = resolve(mountpoint);
	if (path == NULL) {
		int error = -errno;
		snprintf(why, why_bytes, "%s: %s", mountpoint, strerror(-error));
		return error;
	}
	*ret = path;
	return 0;
}

int mount_prepare(const char *mountpoint, bool abandoned, char **ret, char *why, size_t why_bytes)
{
	char *path = NULL;
	int error = mount_find(mountpoint, &path, why, why_bytes);
	if (error != 0)
		return error;
	error = make_free(path, abandoned, why, why_bytes);
	if (error != 0) {
		free(path);
		return error;
	}
	*ret = path;
	return 0;
}

static bool starts_with_word(const char *line, const char *word)
{
	size_t length = strlen(word);
	line += strspn(line, " \t");
	return strncmp(line, word, length) == 0 && strcspn(line + length, " \t\n") == 0;
}

/* Whether this user may let others use a mount: fusermount3 allows it only if /etc/fuse.conf says
 * so. */
static bool may_allow_other(void)
{
	char line[256];
	bool found = geteuid() == 0;
	FILE *file = found ? NULL : fopen("/etc/fuse.conf", "re");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		found = found || starts_with_word(line, "user_allow_other");
	if (file != NULL)
		fclose(file);
	return found;
}

/* What `df` and `mount` show as the source. Commas would divide mount options. */
static int add_source(char **options, const struct store_url *store)
{
	char *text;
	if (asprintf(&text, "fsname=%s%s%s",
		     store->kind == STORE_KIND_LOCAL ? "local:" : "zookeeper://",
		     store->servers != NULL ? store->servers : "",
		     store->root != NULL && store->root[0] != '\0' ? store->root : "") < 0)
		return -1;
	for (char *at = text; *at != '\0'; at++) {
		if (*at == ',')
			*at = ';';
	}
	int failed = fuse_opt_add_opt_escaped(options, text);
	free(text);
	return failed;
}

static void warn_of_request_timeout(void)
{
	static const char *const names[] = {"/proc/sys/fs/fuse/max_request_timeout",
					    "/proc/sys/fs/fuse/default_request_timeout"};
	for (size_t i = 0; i < 2; i++) {
		unsigned int seconds = 0;
		FILE *file = fopen(names[i], "re");
		if (file == NULL)
			continue;
		if (fscanf(file, "%u", &seconds) == 1 && seconds > 0)
			log_warning(
				"%s is %u: the kernel will end the mount when a call has waited "
				"so many seconds for its lock; set it to 0",
				names[i], seconds);
		fclose(file);
	}
}

/* libfuse's latest message, for the one line that says why a mount failed. */
static char fuse_message[256];

static void on_fuse_message(enum fuse_log_level level, const char *format, va_list arguments)
{
	(void)level;
	vsnprintf(fuse_message, sizeof(fuse_message), format, arguments);
	fuse_message[strcspn(fuse_message, "\n")] = '\0';
	log_debug("%s", fuse_message);
}

/* Makes the session: filesystem->session. Returns 0; or -errno and one line in `why`. */
static int make_session(struct filesystem *filesystem, const char *fuse_options, char *why,
			size_t why_bytes)
{
	char *options = NULL;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int error = -ENOMEM;

	warn_of_request_timeout();
	fuse_set_log_func(on_fuse_message);
	if (add_source(&options, &filesystem->config->stores[0].url) < 0)
		goto cleanup;
	if (filesystem->config->allow_other && may_allow_other() &&
	    fuse_opt_add_opt(&options, "allow_other") < 0)
		goto cleanup;
	/* Last, so that they hold whatever the command line says. */
	if ((fuse_options != NULL && fuse_opt_add_opt(&options, fuse_options) < 0) ||
	    fuse_opt_add_opt(&options, "default_permissions,subtype=dlockfs") < 0 ||
	    fuse_opt_add_arg(&args, "dlockfs") < 0 || fuse_opt_add_arg(&args, "-o") < 0 ||
	    fuse_opt_add_arg(&args, options) < 0)
		goto cleanup;
	filesystem->session =
		fuse_session_new(&args, &filesystem_ops, sizeof(filesystem_ops), filesystem);
	error = 0;
	if (filesystem->session == NULL) {
		error = -EINVAL;
		snprintf(why, why_bytes,
			 "-o %s: expected a key of the configuration or a mount option",
			 fuse_options != NULL ? fuse_options : "");
	}
cleanup:
	if (error == -ENOMEM)
		snprintf(why, why_bytes, "out of memory");
	free(options);
	fuse_opt_free_args(&args);
	return error;
}

static int connect_session(struct filesystem *filesystem, const char *where, char *why,
			   size_t why_bytes)
{
	if (fuse_session_mount(filesystem->session, where) == 0)
		return 0;
	snprintf(why, why_bytes, "%s: cannot mount here: %s", where,
		 fuse_message[0] != '\0' ? fuse_message : "see what fusermount3 says");
	fuse_session_destroy(filesystem->session);
	filesystem->session = NULL;
	return -EIO;
}

int mount_begin(struct filesystem *filesystem, const char *mountpoint, const char *fuse_options,
		char *why, size_t why_bytes)
{
	int error = make_session(filesystem, fuse_options, why, why_bytes);
	return error == 0 ? connect_session(filesystem, mountpoint, why, why_bytes) : error;
}

/* libfuse learns what the kernel can do from the greeting, so it gets that once more. Its answer
 * meets no request, and the kernel drops it (fuse_dev_do_write(): ENOENT). */
int mount_resume(struct filesystem *filesystem, const char *fuse_options, int descriptor,
		 const void *init, size_t init_bytes, char *why, size_t why_bytes)
{
	struct fuse_buf buffer = {.mem = (void *)init, .size = init_bytes};
	char where[32];
	int error = make_session(filesystem, fuse_options, why, why_bytes);

	if (error != 0)
		return error;
	snprintf(where, sizeof(where), "/dev/fd/%d", descriptor);
	error = connect_session(filesystem, where, why, why_bytes);
	if (error != 0)
		return error;
	if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	filesystem_handle(filesystem, &buffer);
	return 0;
}

static bool is_connected(const struct filesystem *filesystem)
{
	struct pollfd connection = {.fd = fuse_session_fd(filesystem->session)};
	return poll(&connection, 1, 0) >= 0 && (connection.revents & POLLERR) == 0;
}

/* Others may still have the connection open: the service manager, and what a former daemon has left
 * in the kernel (notifier_process.h). Only root can end it all the same, and does so first. */
void mount_end(struct filesystem *filesystem)
{
	char type[64] = "";
	int error = 0;

	if (filesystem->session == NULL)
		return;
	bool connected = is_connected(filesystem);
	bool here = connected && find_mount(filesystem->mountpoint, type, sizeof(type)) &&
		    strcmp(type, MOUNT_TYPE) == 0;
	if (here && geteuid() == 0)
		error = unmount(filesystem->mountpoint);
	/* libfuse unmounts what it has mounted itself, unless it finds the connection ended. */
	fuse_session_unmount(filesystem->session);
	fuse_session_destroy(filesystem->session); /* closes the descriptor */
	filesystem->session = NULL;
	if (here && geteuid() != 0 && filesystem->taken_over)
		error = unmount(filesystem->mountpoint);
	if (error != 0)
		log_error("%s: cannot unmount: %s", filesystem->mountpoint, strerror(-error));
}
