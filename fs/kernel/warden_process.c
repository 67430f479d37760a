/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's process. Owns its sockets. What comes by them was written by a process that may have
 * been taken over.
 */
#include "kernel/warden_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ini.h>

#include "base/clock.h"
#include "base/opener.h"
#include "base/platform.h"
#include "kernel/calling.h"
#include "kernel/confine.h"
#include "kernel/descriptors.h"
#include "kernel/folder_below.h"
#include "kernel/kill_right.h"
#include "kernel/memory_lock.h"
#include "kernel/mount_point.h"
#include "kernel/nosymfollow.h"
#include "kernel/notifier_process.h"
#include "kernel/packet.h"
#include "kernel/proc.h"
#include "kernel/process_start.h"
#include "kernel/warden.h"

#define SOCKETS_MAX 8

struct warden {
	char *const *arguments;
	const char *mountpoint;
	pid_t daemon;
	uint64_t start;	     /* of the daemon */
	unsigned int device; /* of the mount; 0: it was not asked for yet */
	struct pollfd sockets[SOCKETS_MAX];
	size_t count;
};

/* A request as it came. Its descriptors are closed when it was handled. */
struct order {
	struct warden_request request;
	char text[WARDEN_TEXT_BYTES];
	int descriptors[PACKET_DESCRIPTORS_MAX];
	size_t count;
};

/* What goes back. The descriptor, if there is one, is closed then. */
struct reply {
	struct warden_answer answer;
	int descriptor;
};

static void tell_call(const struct warden *warden, const struct order *order, struct reply *reply)
{
	(void)warden;
	reply->answer.result = calling_read(order->request.pid);
}

static void tell_file(const struct warden *warden, const struct order *order, struct reply *reply)
{
	size_t looks = (size_t)order->request.looks;

	(void)warden;
	reply->answer.result = descriptors_show(order->request.pid, order->request.inode, &looks);
	reply->answer.looks = looks;
}

/* Whether the descriptor is a pidfd of the process with that number, which has not ended (proc(5)).
 */
static bool is_of_process(int descriptor, pid_t pid)
{
	char name[24], text[512];

	snprintf(name, sizeof(name), "fdinfo/%d", descriptor);
	proc_read(getpid(), name, text, sizeof(text));
	const char *number = strstr(text, "\nPid:\t");
	return number != NULL && pid > 0 && atoi(number + strlen("\nPid:\t")) == pid;
}

/* It stays the same when somebody has unmounted, while files are open. */
static unsigned int find_device(struct warden *warden)
{
	if (warden->device == 0)
		warden->device = mount_point_device(warden->mountpoint);
	return warden->device;
}

/* inih's handler: 1 stands for success. */
static int on_style(void *context, const char *section, const char *key, const char *value)
{
	bool *found = context;

	(void)section;
	*found = *found || (strcmp(key, "style") == 0 && strcmp(value, "file") == 0);
	return 1;
}

/* Whether a process may be told of a loss that has nothing of the mount open. */
static bool has_files(const struct warden *warden)
{
	const char *config = warden->arguments[WARDEN_ARGUMENT_CONFIG];
	bool found = strcmp(warden->arguments[WARDEN_ARGUMENT_HAS_FILES], WARDEN_YES) == 0;

	if (!found && config[0] != '\0')
		ini_parse(config, on_style, &found);
	return found;
}

/* Nobody waits for the answer any more. */
static bool is_late(const struct order *order)
{
	return order->request.until_ms <= clock_now_ms();
}

static void send_signal(struct warden *warden, const struct order *order, struct reply *reply)
{
	const struct warden_request *request = &order->request;

	if (order->count != 1 || request->signal <= 0 || find_device(warden) == 0)
		reply->answer.result = -EINVAL;
	else if (!is_of_process(order->descriptors[0], request->pid) ||
		 (!descriptors_have_of(request->pid, warden->device) && !has_files(warden)))
		reply->answer.result = -ESRCH; /* it holds nothing here any more */
	else if (is_late(order)) /* as looking takes time: the guard may have sent it */
		reply->answer.result = -ETIMEDOUT;
	else
		reply->answer.result = kill_right_send(request->user, order->descriptors[0],
						       request->pid, request->signal);
}

static void start_guard(struct warden *warden, const struct order *order, struct reply *reply)
{
	const int *given = order->descriptors;
	const struct notifier_daemon daemon = {
		.pid = warden->daemon,
		.start = warden->start,
		.socket = given[0],
		.shared = given[2],
		.board = order->count > 3 ? given[3] : -1,
		.wake = order->count > 4 ? given[4] : -1,
		.journal = order->count > 5 ? given[5] : -1,
	};
	const struct notifier_mount mount = {
		.fuse = given[1],
		.mountpoint = warden->mountpoint,
		.unmounts = strcmp(warden->arguments[WARDEN_ARGUMENT_UNMOUNTS], WARDEN_YES) == 0,
		.device = has_files(warden) ? 0 : find_device(warden),
	};
	pid_t child;

	if (order->count < 3 || find_device(warden) == 0) {
		reply->answer.result = -EINVAL;
		return;
	}
	reply->answer.result = notifier_process_spawn(&mount, &daemon, &child);
	if (reply->answer.result == 0)
		reply->descriptor = pidfd_open(child, 0);
}

/* A value of the configuration that is looked for. */
struct search {
	const char *file;
	bool found;
};

/* inih's handler: 1 stands for success. */
static int on_value(void *context, const char *section, const char *key, const char *value)
{
	struct search *search = context;
	const char *end = strstr(key, "_file");

	(void)section;
	if ((end != NULL && strcmp(end, "_file") == 0) || strncmp(key, "tls_", 4) == 0)
		search->found = search->found || strcmp(value, search->file) == 0;
	return 1;
}

static bool may_open(const struct warden *warden, const char *file)
{
	const char *config = warden->arguments[WARDEN_ARGUMENT_CONFIG];
	char *const *known = warden->arguments + WARDEN_ARGUMENT_FILES;
	struct search search = {.file = file};

	if (file[0] == '\0')
		return false;
	while (*known != NULL && strcmp(*known, file) != 0)
		known++;
	if (*known != NULL || strcmp(config, file) == 0)
		return true;
	if (config[0] != '\0')
		ini_parse(config, on_value, &search);
	return search.found;
}

static void open_file(const struct warden *warden, const struct order *order, struct reply *reply)
{
	if (!may_open(warden, order->text)) {
		reply->answer.result = -EACCES;
		return;
	}
	reply->descriptor = opener_open(order->text, O_NONBLOCK | O_NOCTTY);
	reply->answer.result = reply->descriptor < 0 ? -errno : 0;
}

static void make_channel(struct warden *warden, struct reply *reply)
{
	int ends[2];

	if (warden->count == SOCKETS_MAX)
		reply->answer.result = -EMFILE;
	else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		reply->answer.result = -errno;
	else {
		warden->sockets[warden->count++] = (struct pollfd){.fd = ends[0], .events = POLLIN};
		reply->descriptor = ends[1];
	}
}

static void handle(struct warden *warden, const struct order *order, struct reply *reply)
{
	reply->answer.id = order->request.id;
	if (is_late(order)) {
		reply->answer.result = -ETIMEDOUT;
		return;
	}
	switch ((enum warden_kind)order->request.kind) {
	case WARDEN_CALL:
		tell_call(warden, order, reply);
		break;
	case WARDEN_HAS_FILE:
		tell_file(warden, order, reply);
		break;
	case WARDEN_SIGNAL:
		send_signal(warden, order, reply);
		break;
	case WARDEN_GUARD:
		start_guard(warden, order, reply);
		break;
	case WARDEN_OPEN:
		open_file(warden, order, reply);
		break;
	case WARDEN_CHANNEL:
		make_channel(warden, reply);
		break;
	case WARDEN_NO_LINKS:
		reply->answer.result = nosymfollow_set(warden->mountpoint) ? 0 : -EPERM;
		break;
	case WARDEN_UNMOUNT:
		reply->answer.result = mount_point_is_ours(warden->mountpoint)
					       ? mount_point_unmount(warden->mountpoint)
					       : -EINVAL;
		break;
	case WARDEN_REMOVE:
		reply->answer.result =
			strcmp(warden->arguments[WARDEN_ARGUMENT_MADE], WARDEN_YES) == 0
				? folder_below_remove(warden->mountpoint)
				: -EPERM;
		break;
	default:
		reply->answer.result = -EOPNOTSUPP;
	}
}

/* Returns false at the end of the socket. */
static bool serve(struct warden *warden, int socket)
{
	struct {
		struct warden_request request;
		char text[WARDEN_TEXT_BYTES];
	} message = {0};
	struct reply reply = {.descriptor = -1};
	struct order order;
	ssize_t bytes = packet_receive(socket, &message, sizeof(message) - 1, order.descriptors,
				       &order.count);

	if (bytes <= 0)
		return false;
	if (bytes >= (ssize_t)sizeof(message.request)) {
		order.request = message.request;
		((char *)&message)[bytes] = '\0';
		memcpy(order.text, message.text, sizeof(order.text));
		handle(warden, &order, &reply);
	} else {
		reply.answer.result = -EINVAL;
	}
	const struct iovec part = {.iov_base = &reply.answer, .iov_len = sizeof(reply.answer)};
	bool sent = packet_send(socket, &part, 1, &reply.descriptor, reply.descriptor >= 0) == 0;
	if (reply.descriptor >= 0)
		close(reply.descriptor);
	while (order.count > 0)
		close(order.descriptors[--order.count]);
	return sent;
}

static void run(struct warden *warden)
{
	while (warden->count > 0) {
		if (poll(warden->sockets, warden->count, -1) < 0)
			continue;
		for (size_t i = warden->count; i-- > 0;) {
			if (warden->sockets[i].revents == 0 || serve(warden, warden->sockets[i].fd))
				continue;
			close(warden->sockets[i].fd);
			warden->sockets[i] = warden->sockets[--warden->count];
		}
	}
}

bool warden_process_is_meant(char *const *arguments)
{
	return arguments[WARDEN_ARGUMENT_NAME] != NULL &&
	       strcmp(arguments[WARDEN_ARGUMENT_NAME], WARDEN_NAME) == 0 &&
	       arguments[WARDEN_ARGUMENT_DAEMON] != NULL &&
	       arguments[WARDEN_ARGUMENT_MOUNTPOINT] != NULL &&
	       arguments[WARDEN_ARGUMENT_UNMOUNTS] != NULL &&
	       arguments[WARDEN_ARGUMENT_MADE] != NULL &&
	       arguments[WARDEN_ARGUMENT_HAS_FILES] != NULL &&
	       arguments[WARDEN_ARGUMENT_CONFIG] != NULL;
}

_Noreturn void warden_process_run(char *const *arguments)
{
	struct warden warden = {
		.arguments = arguments,
		.mountpoint = arguments[WARDEN_ARGUMENT_MOUNTPOINT],
		.daemon = atoi(arguments[WARDEN_ARGUMENT_DAEMON]),
		.sockets = {{.fd = WARDEN_SOCKET, .events = POLLIN}},
		.count = 1,
	};

	warden.start = process_start(warden.daemon); /* which waits for this process */
	close_range(WARDEN_SOCKET + 1, ~0U, 0);
	/* Not a child of the daemon: a program that goes on in its process would not know it. */
	pid_t own = fork();
	if (own != 0)
		_exit(own > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	fcntl(WARDEN_SOCKET, F_SETFD, FD_CLOEXEC);
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps who starts a guard */
	prctl(PR_SET_NAME, WARDEN_NAME);
	if (chdir("/") < 0)
		_exit(EXIT_FAILURE);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int descriptor = STDOUT_FILENO; null >= 0 && descriptor <= STDERR_FILENO; descriptor++)
		dup2(null, descriptor); /* nothing else gets its number */
	memory_lock_all();		/* a daemon with a lease waits for it */
	confine_self();
	run(&warden);
	_exit(EXIT_SUCCESS);
}
