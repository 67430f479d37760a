/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the session with the kernel. May block, and runs before the loop starts and after it ended.
 */
#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "mount_point.h"

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

int mount_check(const struct config *config, const char *fuse_options, char *why, size_t why_bytes)
{
	struct filesystem filesystem = {.config = config};
	int error = make_session(&filesystem, fuse_options, why, why_bytes);

	if (error == 0)
		fuse_session_destroy(filesystem.session);
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
	int error = 0;

	if (filesystem->session == NULL)
		return;
	bool connected = is_connected(filesystem);
	bool here = connected && mount_point_is_ours(filesystem->mountpoint);
	if (here && geteuid() == 0)
		error = mount_point_unmount(filesystem->mountpoint);
	/* libfuse unmounts what it has mounted itself, unless it finds the connection ended. */
	fuse_session_unmount(filesystem->session);
	fuse_session_destroy(filesystem->session); /* closes the descriptor */
	filesystem->session = NULL;
	if (here && geteuid() != 0 && filesystem->taken_over)
		error = mount_point_unmount(filesystem->mountpoint);
	if (error != 0)
		log_error("%s: cannot unmount: %s", filesystem->mountpoint, strerror(-error));
}
