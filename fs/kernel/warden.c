/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's side. Owns its socket.
 */
#include "kernel/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opener.h"
#include "base/platform.h"
#include "kernel/own_program.h"
#include "kernel/packet.h"
#include "kernel/warden_arguments.h"

#define ANSWER_LIMIT_S 10
#define START_LIMIT_MS 2000

static int connection = -1;

static bool was_set;

int warden_socket(void)
{
	return connection;
}

uid_t warden_uid(void)
{
	return was_set ? 0 : getuid();
}

gid_t warden_gid(void)
{
	return was_set ? 0 : getgid();
}

static void give_up(int error)
{
	log_error("the process with root's rights does not answer: %s; signals, the guard and the "
		  "end of the mount may lack them",
		  strerror(error));
	close(connection);
	connection = -1;
	opener_set(NULL);
}

int warden_ask(const struct warden_request *request, const char *text, const int *descriptors,
	       size_t count, struct warden_answer *ret, int *ret_descriptor)
{
	const struct iovec parts[] = {
		{.iov_base = (void *)request, .iov_len = sizeof(*request)},
		{.iov_base = (void *)text, .iov_len = text != NULL ? strlen(text) : 0},
	};
	int received[PACKET_DESCRIPTORS_MAX];
	size_t received_count = 0;

	if (ret_descriptor != NULL)
		*ret_descriptor = -1;
	if (connection < 0)
		return -ENOTCONN;
	int error = packet_send(connection, parts, 2, descriptors, count);
	if (error == 0) {
		ssize_t got =
			packet_receive(connection, ret, sizeof(*ret), received, &received_count);
		if (got != (ssize_t)sizeof(*ret))
			error = got < 0 ? (int)got : -ECONNRESET;
	}
	if (received_count > 0 && ret_descriptor != NULL && error == 0)
		*ret_descriptor = received[--received_count];
	while (received_count > 0)
		close(received[--received_count]);
	if (error != 0)
		give_up(-error);
	return error;
}

int64_t warden_do(const struct warden_request *request)
{
	struct warden_answer answer;
	int error = warden_ask(request, NULL, NULL, 0, &answer, NULL);

	return error != 0 ? error : answer.result;
}

static int open_file(const char *file)
{
	const struct warden_request request = {.kind = WARDEN_OPEN};
	struct warden_answer answer;
	int descriptor;
	int error = strlen(file) < WARDEN_TEXT_BYTES
			    ? warden_ask(&request, file, NULL, 0, &answer, &descriptor)
			    : -ENAMETOOLONG;

	if (error == 0 && descriptor < 0)
		error = answer.result < 0 ? (int)answer.result : -EIO;
	return error != 0 ? error : descriptor;
}

void warden_resume(int socket)
{
	const struct timeval limit = {.tv_sec = ANSWER_LIMIT_S};

	fcntl(socket, F_SETFD, FD_CLOEXEC);
	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	connection = socket;
	was_set = true;
	opener_set(open_file);
}

/* The caller frees the array alone. */
static char **make_arguments(const struct warden_plan *plan)
{
	static char process[16];
	size_t count = 0;

	while (plan->files[count] != NULL)
		count++;
	char **arguments = calloc(WARDEN_ARGUMENT_FILES + count + 1, sizeof(*arguments));
	if (arguments == NULL)
		return NULL;
	snprintf(process, sizeof(process), "%d", (int)getpid());
	arguments[WARDEN_ARGUMENT_DAEMON] = process;
	arguments[WARDEN_ARGUMENT_NAME] = WARDEN_NAME;
	arguments[WARDEN_ARGUMENT_MOUNTPOINT] = (char *)plan->mountpoint;
	arguments[WARDEN_ARGUMENT_UNMOUNTS] = plan->unmounts ? WARDEN_YES : "no";
	arguments[WARDEN_ARGUMENT_MADE] = plan->made ? WARDEN_YES : "no";
	arguments[WARDEN_ARGUMENT_CONFIG] = plan->config != NULL ? (char *)plan->config : "";
	memcpy(arguments + WARDEN_ARGUMENT_FILES, plan->files, count * sizeof(*arguments));
	return arguments;
}

/* A program whose loader asks for files of a mount that is there already takes longer: it waits for
 * the daemon. */
static int await_start(pid_t starter)
{
	struct pollfd end = {.fd = pidfd_open(starter, 0), .events = POLLIN};
	int status = 0;

	if (end.fd >= 0 && poll(&end, 1, START_LIMIT_MS) == 0) {
		close(end.fd);
		return 0;
	}
	if (end.fd >= 0)
		close(end.fd);
	return waitpid(starter, &status, 0) < 0 || status != 0 ? -EIO : 0;
}

int warden_start(const struct warden_plan *plan)
{
	posix_spawn_file_actions_t actions;
	int ends[2];
	pid_t starter;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	char **arguments = make_arguments(plan);
	int error = arguments != NULL ? 0 : -ENOMEM;
	if (error == 0) {
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_adddup2(&actions, ends[1], WARDEN_SOCKET);
		error = own_program_spawn(&actions, arguments, &starter);
		posix_spawn_file_actions_destroy(&actions);
	}
	free(arguments);
	close(ends[1]);
	if (error == 0)
		error = await_start(starter);
	if (error == 0)
		warden_resume(ends[0]);
	else
		close(ends[0]);
	return error;
}
