/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the pipes, the folder and what the daemon said. The part of the keeper ends its process
 * here.
 */
#include "dlockctl/private_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dlockctl/look.h"
#include "dlockctl/mounts.h"

#define FOLDER_NAME "/locks"

/* How long a daemon has to end before it is killed; how often is looked whether it is ready. */
enum { END_LIMIT_MS = 5000, LOOK_MS = 20 };

enum { STATUS_BYTES = 65536 };

static struct {
	pid_t keeper; /* 0: there is no mount */
	int alive;    /* closed by the end of this process */
	int ended;    /* closed by the end of the keeper */
	int said;     /* what the daemon has said, a file in memory */
} mount_state;

/* The keeper's process */

/* Waits for the child until then. Returns whether it has ended. */
static bool has_ended(pid_t child, long long end_ms)
{
	while (waitpid(child, NULL, WNOHANG) == 0) {
		if (now_ms() >= end_ms)
			return false;
		poll(NULL, 0, LOOK_MS);
	}
	return true;
}

/* What a daemon that was killed has left. */
static void unmount(const char *folder)
{
	if (umount2(folder, MNT_DETACH) == 0 || errno != EPERM)
		return;
	pid_t child = fork();
	if (child == 0) {
		execlp("fusermount3", "fusermount3", "-uzq", folder, (char *)NULL);
		_exit(EXIT_FAILURE);
	}
	if (child > 0)
		has_ended(child, now_ms() + END_LIMIT_MS);
}

static void run_daemon(const struct context *context, const char *folder, int said)
{
	static const char *const of_services[] = {
		"NOTIFY_SOCKET", "WATCHDOG_USEC",  "WATCHDOG_PID",  "LISTEN_FDS",
		"LISTEN_PID",	 "LISTEN_FDNAMES", "JOURNAL_STREAM"};
	const char *words[12] = {"dlockfs", "--foreground", "-o",
				 "ro,nonempty,auto_unmount,allow_other=no"};
	size_t count = 4;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	for (size_t i = 0; i < sizeof(of_services) / sizeof(*of_services); i++)
		unsetenv(of_services[i]);
	if (context->config != NULL) {
		words[count++] = "--config";
		words[count++] = context->config;
	}
	if (context->store != NULL) {
		words[count++] = "--store";
		words[count++] = context->store;
	}
	words[count] = folder;
	dup2(said, STDERR_FILENO);
	execvp(words[0], (char *const *)words);
	dprintf(STDERR_FILENO, "dlockfs: cannot be executed: %s; expected it in PATH\n",
		strerror(errno));
	_exit(EXIT_FAILURE);
}

/* Waits for the end of the process on the other side, or of the daemon. */
static void keep(int alive, pid_t daemon)
{
	struct pollfd side = {.fd = alive};

	while (poll(&side, 1, 10 * LOOK_MS) <= 0 && waitpid(daemon, NULL, WNOHANG) == 0)
		;
	kill(daemon, SIGTERM);
	if (!has_ended(daemon, now_ms() + END_LIMIT_MS)) {
		kill(daemon, SIGKILL);
		has_ended(daemon, now_ms() + END_LIMIT_MS);
	}
}

/* `alive` and `ended` are the keeper's sides of the pipes; the latter is closed by its end. */
static void run_keeper(const struct context *context, const char *folder, int alive, int ended,
		       int said)
{
	char *mount = must_format("%s" FOLDER_NAME, folder);
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)ended;
	setsid();
	prctl(PR_SET_NAME, "dlockfs-keeper");
	for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++)
		dup2(nothing, standard);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	pid_t daemon = mkdir(mount, 0700) == 0 ? fork() : -1;
	if (daemon == 0)
		run_daemon(context, mount, said);
	if (daemon > 0)
		keep(alive, daemon);
	unmount(mount);
	rmdir(mount);
	rmdir(folder);
	_exit(EXIT_SUCCESS);
}

/* This process */

/* What the mount is of, for people. */
static const char *shown(const struct context *context)
{
	return context->store != NULL ? context->store : context->config;
}

/* The last line that the daemon, or fusermount3, has said, without the daemon's name; empty: it
 * said nothing. To be freed. */
static char *last_said(void)
{
	char text[8192], *end = text, *line = text;
	off_t bytes = lseek(mount_state.said, 0, SEEK_END);
	off_t from = bytes > (off_t)sizeof(text) - 1 ? bytes - ((off_t)sizeof(text) - 1) : 0;
	ssize_t got = pread(mount_state.said, text, sizeof(text) - 1, from);

	end += got > 0 ? got : 0;
	while (end > text && end[-1] == '\n')
		end--;
	*end = '\0';
	for (char *at = text; *at != '\0'; at++)
		line = *at == '\n' ? at + 1 : line;
	char *of_fusermount = strstr(text, "fusermount3: "); /* which the last line refers to */
	if (of_fusermount != NULL && of_fusermount < line) {
		line = of_fusermount;
		line[strcspn(line, "\n")] = '\0';
	}
	static const char *const fronts[] = {"dlockfs: ", "warning: ", "error: "};
	for (size_t i = 0; i < sizeof(fronts) / sizeof(*fronts); i++) {
		if (strncmp(line, fronts[i], strlen(fronts[i])) == 0)
			line += strlen(fronts[i]);
	}
	return must(strdup(line));
}

static bool keeper_has_ended(int wait_ms)
{
	struct pollfd side = {.fd = mount_state.ended};

	return poll(&side, 1, wait_ms) > 0;
}

static bool is_mounted(const char *folder)
{
	struct mounts mounts;
	bool found = mounts_read(&mounts) == 0 && mounts_at(&mounts, folder) != NULL;

	mounts_finish(&mounts);
	return found;
}

/* Reads the status of the mount, in the child of a look. */
static int ask_status(const void *mount, char **ret_text, size_t *ret_bytes)
{
	char *path = must_format("%s/.dlockfs/status", (const char *)mount);
	char *text = must(calloc(1, STATUS_BYTES));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, text, STATUS_BYTES - 1) : -1;
	int error = got < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	free(path);
	*ret_text = text;
	*ret_bytes = got > 0 ? (size_t)got : 0;
	return error;
}

/* The value of the next line of that key, "key=", from *text on, which is moved behind the line; to
 * be freed. NULL: there is none. */
static char *next_value(const char **text, const char *key)
{
	while (**text != '\0') {
		const char *line = *text;
		size_t bytes = strcspn(line, "\n");
		*text = line + bytes + (line[bytes] == '\n');
		if (strncmp(line, key, strlen(key)) == 0)
			return must(strndup(line + strlen(key), bytes - strlen(key)));
	}
	return NULL;
}

/* Whether the stores of the status are all connected. */
static bool is_connected(const char *status)
{
	bool connected = true;
	char *session;

	while ((session = next_value(&status, "session=")) != NULL) {
		connected = connected && strcmp(session, "connected") == 0;
		free(session);
	}
	return connected;
}

/* Tells what is wrong with a store that is connected. Returns 0 or the status. */
static int check_status(const struct context *context, const char *status)
{
	char *trouble = next_value(&status, "store_error=");
	int result = 0;

	if (trouble != NULL)
		result = fail(EX_NOINPUT, "%s: %s; expected the URL as the hosts have it",
			      shown(context), trouble);
	free(trouble);
	return result;
}

static int fail_start(const struct context *context)
{
	char *said = last_said();
	int status = fail(EX_UNAVAILABLE, "%s: %s", shown(context),
			  *said != '\0' ? said : "dlockfs has ended without a word");

	free(said);
	return status;
}

static int fail_late(const struct context *context)
{
	char *said = last_said();
	bool is_ready = strstr(said, " is ready; ") != NULL; /* and nothing since */
	int status = fail(EXIT_NO_ANSWER, "%s: has not answered within %d s: %s", shown(context),
			  PRIVATE_MOUNT_LIMIT_MS / 1000,
			  is_ready ? "none of its servers was reached" : said);

	free(said);
	return status;
}

/* Returns 0 once the mount is there and has its session. */
static int await(const struct context *context, const char *folder)
{
	long long end_ms = now_ms() + PRIVATE_MOUNT_LIMIT_MS;
	bool mounted = false;

	while (now_ms() < end_ms) {
		char *status = NULL;
		size_t bytes;
		if (keeper_has_ended(LOOK_MS))
			return fail_start(context);
		mounted = mounted || is_mounted(folder);
		if (!mounted || look(folder, ask_status, folder, &status, &bytes) != 0)
			continue;
		bool connected = is_connected(status);
		int result = connected ? check_status(context, status) : 0;
		free(status);
		if (connected)
			return result;
	}
	return fail_late(context);
}

static int start_keeper(const struct context *context, const char *folder)
{
	int alive[2], ended[2];

	mount_state.said = memfd_create("said", MFD_CLOEXEC);
	if (mount_state.said < 0 || pipe2(alive, O_CLOEXEC) < 0 || pipe2(ended, O_CLOEXEC) < 0)
		return -errno;
	pid_t keeper = fork();
	if (keeper < 0)
		return -errno;
	if (keeper == 0) {
		close(alive[1]);
		close(ended[0]);
		run_keeper(context, folder, alive[0], ended[1], mount_state.said);
	}
	close(alive[0]);
	close(ended[1]);
	mount_state.keeper = keeper;
	mount_state.alive = alive[1];
	look_keep_from(alive[1]);
	mount_state.ended = ended[0];
	return 0;
}

int private_mount_begin(const struct context *context, char **ret_folder)
{
	const char *above = getenv("TMPDIR");
	char *folder =
		must_format("%s/dlockctl-XXXXXX", above != NULL && *above == '/' ? above : "/tmp");
	int error = mkdtemp(folder) != NULL ? 0 : -errno;
	char *real = error == 0 ? realpath(folder, NULL) : NULL; /* as mounts_read() has it */

	if (real != NULL) {
		free(folder);
		folder = real;
	}
	if (error == 0)
		error = start_keeper(context, folder);
	if (error != 0) {
		int status =
			fail(EX_OSERR, "%s: cannot be mounted on: %s", folder, strerror(-error));
		rmdir(folder);
		free(folder);
		return status;
	}
	atexit(private_mount_end);
	char *mount = must_format("%s" FOLDER_NAME, folder);
	free(folder);
	int status = await(context, mount);
	if (status == 0)
		*ret_folder = mount;
	else
		free(mount);
	return status;
}

void private_mount_end(void)
{
	if (mount_state.keeper == 0)
		return;
	close(mount_state.alive);
	waitpid(mount_state.keeper, NULL, 0);
	close(mount_state.ended);
	close(mount_state.said);
	mount_state.keeper = 0;
}
