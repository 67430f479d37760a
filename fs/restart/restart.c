/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the rehearsing process. Loop thread only.
 */
#include "restart/restart.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_queue.h"
#include "base/platform.h"
#include "files/filesystem.h"
#include "handles/handle.h"
#include "handles/holder.h"
#include "kernel/lease_board.h"
#include "kernel/warden.h"
#include "ops/serving.h"
#include "restart/supervisor.h"

/* How long a rehearsal may take; the start of a program takes milliseconds. */
#define REHEARSAL_LIMIT_MS 10000

/* How long a killed rehearsal may take to end. */
#define KILL_LIMIT_MS 1000

/* How long the last rehearsal may take, during which no request is answered. */
#define FINAL_LIMIT_MS 2000

/* No answer of a server is heard either from the time at which the state is written until the new
 * program runs, which takes once more what its rehearsal took: one part of what the shortest lease
 * has left is for each, and one to spare. */
#define PARTS_OF_LEASE 3

/* Where the rehearsing process finds the state: the first free descriptor there. */
#define REHEARSAL_DESCRIPTOR 3

static void end_limit(struct timer *limit)
{
	restart_give_up(TIMER_WHOLE(limit, struct restart, limit),
			"it has not shown in time that it can");
}

void restart_init(struct restart *restart, char **arguments)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	*restart = (struct restart){
		.arguments = arguments,
		.child_descriptor = -1,
		.answer = -1,
		.complaint = -1,
		.limit.on_due = end_limit,
		.folder = getcwd(NULL, 0),
	};
	if (length > 0) {
		path[length] = '\0';
		restart->program = strdup(path);
	}
}

void restart_set(struct restart *restart, struct filesystem *filesystem, bool background,
		 const struct takeover *taken)
{
	restart->filesystem = filesystem;
	restart->process = (struct takeover_process){
		.folder = restart->folder != NULL ? restart->folder : "",
		.mountpoint = filesystem->mountpoint,
		.background = background,
		.fuse = fuse_session_fd(filesystem->session),
		.init = restart->init,
	};
	restart_note_config(restart);
	if (taken->file == NULL || taken->process.init_bytes > sizeof(restart->init))
		return;
	memcpy(restart->init, taken->process.init, taken->process.init_bytes);
	restart->process.init_bytes = taken->process.init_bytes;
}

/* Ends the rehearsal, if there is one. */
static void end_rehearsal(struct restart *restart)
{
	int *descriptors[] = {&restart->child_descriptor, &restart->answer, &restart->complaint};

	/* The program's file may be where reads hang: then the process ends when it can. */
	if (restart->child != 0) {
		struct pollfd end = {.fd = restart->child_descriptor, .events = POLLIN};
		kill(restart->child, SIGKILL);
		poll(&end, 1, KILL_LIMIT_MS);
		waitpid(restart->child, NULL, WNOHANG);
	}
	restart->child = 0;
	if (timer_is_set(&restart->limit))
		timers_clear(&restart->filesystem->due.timers, &restart->limit);
	for (size_t i = 0; i < 3; i++) {
		if (*descriptors[i] >= 0)
			close(*descriptors[i]);
		*descriptors[i] = -1;
	}
}

void restart_note_config(struct restart *restart)
{
	const struct config *config = restart->filesystem->config;

	restart->process.config = config->text;
	restart->process.config_bytes = config->text_bytes;
	takeover_keep_process(restart->filesystem, &restart->process);
}

void restart_finish(struct restart *restart)
{
	end_rehearsal(restart);
	free(restart->program);
	free(restart->folder);
}

void restart_note_request(struct restart *restart, const struct fuse_buf *request)
{
	if (restart->process.init_bytes > 0 || (request->flags & FUSE_BUF_IS_FD) != 0 ||
	    request->size > sizeof(restart->init))
		return;
	memcpy(restart->init, request->mem, request->size);
	restart->process.init_bytes = request->size;
}

void restart_give_up(struct restart *restart, const char *why)
{
	end_rehearsal(restart);
	log_error("%s does not take over: %s; this program %s",
		  restart->program != NULL ? restart->program : "the program", why,
		  restart->leave ? "releases all locks and ends" : "goes on");
	if (!restart->leave)
		supervisor_ready("Serving the mount; a program that was to take over could not");
}

/* Writes the whole state to a file without a name. If the configuration has an error now, this
 * program can go on, unless it leaves. Returns the descriptor, or -errno. */
static int write_state(struct restart *restart)
{
	struct takeover_process process = restart->process;
	int descriptor = memfd_create("dlockfs state", MFD_CLOEXEC);
	int copy = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : -1;
	FILE *out = copy >= 0 ? fdopen(copy, "we") : NULL;
	int error = out != NULL ? 0 : -errno;

	if (!restart->leave)
		process.config = NULL;
	if (error == 0) {
		takeover_save(restart->filesystem, &process, out);
		if (ferror(out) != 0)
			error = -EIO;
		if (fclose(out) != 0)
			error = -errno;
	} else if (copy >= 0) {
		close(copy);
	}
	if (error == 0 && lseek(descriptor, 0, SEEK_SET) < 0)
		error = -errno;
	if (error == 0)
		return descriptor;
	if (descriptor >= 0)
		close(descriptor);
	return error;
}

/* The environment with one more variable; NULL: out of memory. The strings are as they were. */
static char **add_variable(char *variable)
{
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	char **result = calloc(count + 2, sizeof(*result));
	if (result == NULL)
		return NULL;
	memcpy(result, environ, count * sizeof(*result));
	result[count] = variable;
	return result;
}

/* A way of its own to the warden, for a rehearsal; above the descriptors that it gets. -1: there is
 * none. */
static int open_channel(void)
{
	const struct warden_request request = {.kind = WARDEN_CHANNEL};
	struct warden_answer answer;
	int descriptor;

	if (warden_ask(&request, NULL, NULL, 0, &answer, &descriptor) != 0 || descriptor < 0)
		return -1;
	int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, TAKEOVER_WARDEN + 1);
	close(descriptor);
	return copy;
}

static int spawn(struct restart *restart, int state)
{
	static char variable[] = TAKEOVER_ENVIRONMENT "=3" TAKEOVER_REHEARSAL;
	char **environment = add_variable(variable);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t blocked;

	if (environment == NULL)
		return -ENOMEM;
	int channel = open_channel();
	/* Another process has a warden of its own; another program in this one has not. */
	if (channel < 0 && warden_is_set() && !restart->leave) {
		free(environment);
		return -ENOTCONN;
	}
	/* These signals may be sent to all processes of a service. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGHUP);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGUSR2);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, restart->answer, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, restart->complaint, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, state, REHEARSAL_DESCRIPTOR);
	if (channel >= 0)
		posix_spawn_file_actions_adddup2(&actions, channel, TAKEOVER_WARDEN);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &blocked);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	int error = posix_spawn(&restart->child, restart->program, &actions, &attributes,
				restart->arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	if (channel >= 0)
		close(channel);
	if (error != 0) {
		restart->child = 0;
		return -error;
	}
	restart->child_descriptor = pidfd_open(restart->child, 0);
	return restart->child_descriptor >= 0 ? 0 : -errno;
}

/* Starts a rehearsal of the state. Returns false if that fails, the reason logged. */
static bool rehearse(struct restart *restart, int state)
{
	int error = state >= 0 ? 0 : state;

	restart->answer = memfd_create("dlockfs answer", MFD_CLOEXEC);
	restart->complaint = memfd_create("dlockfs complaint", MFD_CLOEXEC);
	if (error == 0 && (restart->answer < 0 || restart->complaint < 0))
		error = -errno;
	if (error == 0)
		error = spawn(restart, state);
	if (error != 0)
		restart_give_up(restart, error == -ENOTCONN ? "the process with root's rights does "
							      "not answer"
							    : strerror(-error));
	return error == 0;
}

int restart_begin(struct restart *restart, bool leave, int64_t now_ms)
{
	restart->leave = restart->leave || leave;
	if (restart->child != 0)
		return -1;
	if (restart->process.init_bytes == 0) {
		log_error("there is no mount yet that another program could take over");
		return -1;
	}
	if (!restart->leave)
		supervisor_reloading();
	if (restart->program == NULL) {
		restart_give_up(restart, "it is not known where it is");
		return -1;
	}
	int state = write_state(restart);
	bool begun = rehearse(restart, state);
	if (state >= 0)
		close(state);
	if (!begun)
		return -1;
	timers_set(&restart->filesystem->due.timers, &restart->limit, now_ms + REHEARSAL_LIMIT_MS);
	return restart->child_descriptor;
}

int restart_descriptor(const struct restart *restart)
{
	return restart->child_descriptor;
}

/* Reads the beginning of the child's output, as text. */
static void read_text(int descriptor, char *text, size_t bytes)
{
	ssize_t got = pread(descriptor, text, bytes - 1, 0);
	text[got > 0 ? got : 0] = '\0';
}

bool restart_is_understood(struct restart *restart)
{
	static const char prefix[] = "dlockfs: error: ";
	char answer[64], complaint[512], ended[64];
	int status = 0;

	if (restart->child == 0 || waitpid(restart->child, &status, WNOHANG) != restart->child)
		return false;
	restart->child = 0;
	read_text(restart->answer, answer, sizeof(answer));
	read_text(restart->complaint, complaint, sizeof(complaint));
	end_rehearsal(restart);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
	    strcmp(answer, TAKEOVER_UNDERSTOOD) == 0)
		return true;
	const char *error = strstr(complaint, prefix);
	error = error != NULL ? error + strlen(prefix) : complaint;
	complaint[error - complaint + (ptrdiff_t)strcspn(error, "\n")] = '\0';
	if (WIFSIGNALED(status))
		snprintf(ended, sizeof(ended), "it was ended by SIG%s",
			 sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(ended, sizeof(ended), "it ended with status %d", WEXITSTATUS(status));
	restart_give_up(restart, *error != '\0' ? error : ended);
	return false;
}

/* Lets no descriptor live through execve(2) but the usual three. */
static void close_on_exec(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		int descriptor = atoi(entry->d_name);
		if (descriptor > 2)
			fcntl(descriptor, F_SETFD, FD_CLOEXEC);
	}
	if (folder != NULL)
		closedir(folder);
}

static void execute(struct restart *restart, int state)
{
	const struct filesystem *filesystem = restart->filesystem;
	const struct handle *handle;
	char variable[64];

	snprintf(variable, sizeof(variable), TAKEOVER_ENVIRONMENT "=%d", state);
	char **environment = add_variable(variable);
	if (environment == NULL) {
		errno = ENOMEM;
		return;
	}
	close_on_exec();
	fcntl(state, F_SETFD, 0);
	fcntl(restart->process.fuse, F_SETFD, 0);
	if (warden_socket() >= 0)
		fcntl(warden_socket(), F_SETFD, 0);
	if (filesystem->journal != NULL)
		fcntl(state_journal_descriptor(filesystem->journal), F_SETFD, 0);
	HANDLES_FOREACH (filesystem->handles, handle) {
		holder_keep_all(handle);
	}
	lease_board_hand_over(filesystem->board, true);
	log_queue_flush();
	execve(restart->program, restart->arguments, environment);
	int error = errno;
	lease_board_hand_over(filesystem->board, false);
	close_on_exec();
	free(environment);
	errno = error;
}

/* The last rehearsal, of the very state that is taken over, by that time. */
static bool is_understood_at_last(struct restart *restart, int state, int64_t limit_ms)
{
	if (!rehearse(restart, state))
		return false;
	struct pollfd child = {.fd = restart->child_descriptor, .events = POLLIN};
	int64_t left_ms = limit_ms - clock_now_ms();
	if (poll(&child, 1, left_ms > 0 ? (int)left_ms : 0) == 1)
		return restart_is_understood(restart);
	end_limit(&restart->limit);
	return false;
}

void restart_execute(struct restart *restart)
{
	int64_t now_ms = clock_now_ms();
	struct shards *shards = restart->filesystem->shards;
	shards_conclude(shards);
	int64_t most_ms =
		shards->lease_ms > now_ms ? (shards->lease_ms - now_ms) / PARTS_OF_LEASE : 0;
	if (most_ms > FINAL_LIMIT_MS)
		most_ms = FINAL_LIMIT_MS;
	serving_prepare_handover(restart->filesystem);
	takeover_commit(restart->filesystem, 0);
	int state = write_state(restart);
	if (is_understood_at_last(restart, state, now_ms + most_ms)) {
		log_info("%s takes over", restart->program);
		execute(restart, state);
		restart_give_up(restart, strerror(errno));
	}
	if (state >= 0)
		close(state);
}
