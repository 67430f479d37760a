/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the session with the kernel. May block, and runs before the loop starts and after it ended.
 */
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/mount_point.h"
#include "kernel/warden.h"

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
	if (asprintf(&text, "fsname=%s:%s%s%s", store->scheme, store->servers != NULL ? "//" : "",
		     store->servers != NULL ? store->servers : "",
		     store->root != NULL ? store->root : "") < 0)
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
			log_warning("%s is %u: the kernel will end the mount when a call has "
				    "waited so many seconds for its lock; set it to 0",
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

/* Makes the session. Returns 0; or -errno and one line in `why`, and *ret is NULL. */
static int make_session(const struct mount_plan *plan, struct fuse_session **ret, char *why,
			size_t why_bytes)
{
	const struct config *config = plan->config;
	const char *fuse_options = plan->fuse_options;
	char *options = NULL;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int error = -ENOMEM;

	*ret = NULL;
	warn_of_request_timeout();
	fuse_set_log_func(on_fuse_message);
	if (add_source(&options, &config->stores[0].url) < 0)
		goto cleanup;
	if (config->allow_other && may_allow_other() &&
	    fuse_opt_add_opt(&options, "allow_other") < 0)
		goto cleanup;
	/* Added last, so that they win over the command line. */
	if ((fuse_options != NULL && fuse_opt_add_opt(&options, fuse_options) < 0) ||
	    fuse_opt_add_opt(&options, "default_permissions,subtype=dlockfs") < 0 ||
	    fuse_opt_add_arg(&args, "dlockfs") < 0 || fuse_opt_add_arg(&args, "-o") < 0 ||
	    fuse_opt_add_arg(&args, options) < 0)
		goto cleanup;
	*ret = fuse_session_new(&args, plan->ops, sizeof(*plan->ops), plan->userdata);
	error = 0;
	if (*ret == NULL) {
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

int mount_check(const struct mount_plan *plan, char *why, size_t why_bytes)
{
	struct fuse_session *session;
	int error = make_session(plan, &session, why, why_bytes);

	if (error == 0)
		fuse_session_destroy(session);
	return error;
}

int mount_begin(const struct mount_plan *plan, const char *mountpoint, struct fuse_session **ret,
		char *why, size_t why_bytes)
{
	int error = make_session(plan, ret, why, why_bytes);

	if (error != 0 || fuse_session_mount(*ret, mountpoint) == 0)
		return error;
	snprintf(why, why_bytes, "%s: cannot mount here: %s", mountpoint,
		 fuse_message[0] != '\0' ? fuse_message : "see what fusermount3 says");
	fuse_session_destroy(*ret);
	*ret = NULL;
	return -EIO;
}

int mount_resume(const struct mount_plan *plan, int descriptor, struct fuse_session **ret,
		 char *why, size_t why_bytes)
{
	char where[32];

	snprintf(where, sizeof(where), "/dev/fd/%d", descriptor);
	int error = mount_begin(plan, where, ret, why, why_bytes);
	if (error == 0 && fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0)
		error = -errno;
	return error;
}

static bool is_connected(struct fuse_session *session)
{
	struct pollfd connection = {.fd = fuse_session_fd(session)};
	return poll(&connection, 1, 0) >= 0 && (connection.revents & POLLERR) == 0;
}

/* Without fusermount3. */
static bool may_unmount(void)
{
	return geteuid() == 0 || warden_socket() >= 0;
}

/* Others may still have the connection open: the service manager, and the writer of a former daemon
 * that waits in the kernel (notifier_process.h). Root ends the connection first, all the same;
 * other users cannot. */
bool mount_end(struct fuse_session *session, const char *mountpoint, bool resumed)
{
	int error = 0;

	if (session == NULL)
		return false;
	bool connected = is_connected(session);
	bool here = connected && mount_point_is_ours(mountpoint);
	if (here && may_unmount())
		error = mount_point_unmount(mountpoint);
	/* libfuse unmounts what it has mounted itself, unless it finds the connection ended. */
	fuse_session_unmount(session);
	fuse_session_destroy(session); /* closes the descriptor */
	if (here && !may_unmount() && resumed)
		error = mount_point_unmount(mountpoint);
	if (error != 0)
		log_error("%s: cannot unmount: %s", mountpoint, strerror(-error));
	return here;
}
