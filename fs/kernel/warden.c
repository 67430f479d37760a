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
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/opener.h"
#include "base/platform.h"
#include "kernel/own_program.h"
#include "kernel/packet.h"
#include "kernel/warden_process.h"

#define START_LIMIT_MS 2000

/* Without the loop: umount(2) waits for others. */
#define CALM_LIMIT_MS 5000

/* What an answer takes if the warden is well (kernel/calling.c) does not count. */
#define PROMPT_US 3000

/* Of the loop's time a part of so many may be spent with waiting. */
#define PARTS 10

/* Until then a warden that owes an answer is not silent, as the host may be busy; and how often the
 * log says that it is. */
#define SILENT_MS     1000
#define TOLD_AGAIN_MS 60000

static struct {
	int socket;
	bool was_set;
	int patience_ms; /* of the loop; 0: it does not run */
	uint64_t last_id;
	uint64_t missed; /* the request whose answer nobody waits for any more; 0: there is none */
	int64_t missed_ms;	  /* when that was asked */
	int64_t waited_us, at_us; /* how long the loop has waited, as of then */
	bool is_told;		  /* that it does not answer, */
	int64_t told_ms;	  /* the last time then; 0: never */
} warden = {.socket = -1};

int warden_socket(void)
{
	return warden.socket;
}

uid_t warden_uid(void)
{
	return warden.was_set ? 0 : getuid();
}

gid_t warden_gid(void)
{
	return warden.was_set ? 0 : getgid();
}

void warden_hurry(int patience_ms)
{
	warden.patience_ms = patience_ms;
}

bool warden_is_set(void)
{
	return warden.was_set;
}

static bool is_silent(void)
{
	return warden.missed != 0 && clock_now_ms() - warden.missed_ms >= SILENT_MS;
}

static void tell_silence(void)
{
	int64_t now_ms = clock_now_ms();

	if (!is_silent() || warden.is_told ||
	    (warden.told_ms != 0 && now_ms - warden.told_ms < TOLD_AGAIN_MS))
		return;
	warden.is_told = true;
	warden.told_ms = now_ms;
	log_error("the process with root's rights does not answer; until it does, the guard sends "
		  "signals");
}

static void tell_answer(void)
{
	if (warden.is_told)
		log_info("the process with root's rights answers again");
	warden.is_told = false;
}

static void give_up(int error)
{
	log_error("the process with root's rights has ended: %s; the guard sends signals from now "
		  "on",
		  strerror(error));
	close(warden.socket);
	warden.socket = -1;
	opener_set(NULL);
}

/* What is left of the loop's patience, or of another caller's. */
static int find_limit_ms(enum warden_kind kind)
{
	int64_t now_us = histogram_now_us();

	if (warden.patience_ms == 0)
		return CALM_LIMIT_MS;
	if (kind == WARDEN_GUARD || kind == WARDEN_OPEN || kind == WARDEN_CHANNEL)
		return WARDEN_PATIENCE_MS;
	warden.waited_us -= (now_us - warden.at_us) / PARTS;
	if (warden.waited_us < 0)
		warden.waited_us = 0;
	warden.at_us = now_us;
	int64_t left_ms = warden.patience_ms - warden.waited_us / 1000;
	return left_ms > 0 ? (int)left_ms : 0;
}

/* The host may have been suspended meanwhile. */
static void note_wait(int64_t begun_us)
{
	int64_t took_us = histogram_now_us() - begun_us;

	if (took_us > PROMPT_US)
		warden.waited_us += took_us;
	if (warden.waited_us > INT64_C(1000) * WARDEN_PATIENCE_MS)
		warden.waited_us = INT64_C(1000) * WARDEN_PATIENCE_MS;
}

static void close_all(int *descriptors, size_t count)
{
	while (count > 0)
		close(descriptors[--count]);
}

/* Takes an answer that has come. Returns 0; -EAGAIN: there is none, or to a request that nobody
 * waits for; or another -errno, the warden given up. */
static int take_answer(uint64_t id, struct warden_answer *ret, int *ret_descriptor)
{
	int received[PACKET_DESCRIPTORS_MAX];
	size_t count;
	ssize_t got = packet_receive(warden.socket, ret, sizeof(*ret), received, &count);

	if (got == -EAGAIN)
		return -EAGAIN;
	if (got != (ssize_t)sizeof(*ret)) {
		int error = got < 0 ? (int)got : -ECONNRESET;
		close_all(received, count);
		give_up(-error);
		return error;
	}
	if (ret->id == warden.missed)
		warden.missed = 0;
	if (ret->id == id && count > 0 && ret_descriptor != NULL)
		*ret_descriptor = received[--count];
	close_all(received, count);
	if (warden.missed == 0)
		tell_answer();
	return ret->id == id ? 0 : -EAGAIN;
}

void warden_dispatch(void)
{
	struct warden_answer answer;

	if (warden.socket >= 0)
		take_answer(0, &answer, NULL);
}

static int await_answer(uint64_t id, int limit_ms, struct warden_answer *ret, int *ret_descriptor)
{
	int64_t end_us = histogram_now_us() + (int64_t)limit_ms * 1000, left_us;
	int error = -EAGAIN;

	while (error == -EAGAIN && (left_us = end_us - histogram_now_us()) > 0) {
		struct pollfd readable = {.fd = warden.socket, .events = POLLIN};
		if (poll(&readable, 1, (int)((left_us + 999) / 1000)) == 1)
			error = take_answer(id, ret, ret_descriptor);
	}
	return error;
}

static int send_request(const struct warden_request *request, const char *text,
			const int *descriptors, size_t count)
{
	const struct iovec parts[] = {
		{.iov_base = (void *)request, .iov_len = sizeof(*request)},
		{.iov_base = (void *)text, .iov_len = text != NULL ? strlen(text) : 0},
	};
	int error = packet_send(warden.socket, parts, 2, descriptors, count);

	if (error != 0)
		give_up(-error);
	return error;
}

int warden_ask(const struct warden_request *request, const char *text, const int *descriptors,
	       size_t count, struct warden_answer *ret, int *ret_descriptor)
{
	struct warden_request asked = *request;
	int limit_ms = find_limit_ms((enum warden_kind)request->kind);

	if (ret_descriptor != NULL)
		*ret_descriptor = -1;
	if (warden.missed != 0)
		warden_dispatch();
	if (warden.socket < 0)
		return -ENOTCONN;
	int error = -EAGAIN;
	if (warden.missed == 0 && limit_ms > 0) {
		int64_t begun_us = histogram_now_us();
		asked.id = ++warden.last_id;
		asked.until_ms = clock_now_ms() + limit_ms;
		error = send_request(&asked, text, descriptors, count);
		if (error == 0)
			error = await_answer(asked.id, limit_ms, ret, ret_descriptor);
		if (error == -EAGAIN) {
			warden.missed = asked.id;
			warden.missed_ms = clock_now_ms();
		}
		note_wait(begun_us);
	}
	if (error != -EAGAIN)
		return error;
	tell_silence();
	return -ETIMEDOUT;
}

enum warden_state warden_state(void)
{
	const struct warden_request request = {.kind = WARDEN_CALL};

	if (!warden.was_set)
		return WARDEN_NONE;
	warden_do(&request);
	if (warden.socket < 0)
		return WARDEN_ENDED;
	return is_silent() ? WARDEN_SILENT : WARDEN_ANSWERS;
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

/* The answers that the program before waited for have smaller numbers. */
void warden_resume(int socket)
{
	fcntl(socket, F_SETFD, FD_CLOEXEC);
	fcntl(socket, F_SETFL, O_NONBLOCK);
	warden.socket = socket;
	warden.was_set = true;
	warden.last_id = (uint64_t)histogram_now_us() << 10;
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
	arguments[WARDEN_ARGUMENT_HAS_FILES] = plan->has_files ? WARDEN_YES : "no";
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
