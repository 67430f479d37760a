/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/look.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"

/* What the child writes, followed by the text. */
struct report {
	int error;
	size_t bytes;
};

static long long last_ms = LLONG_MAX;
static int kept_fd = -1;

void look_keep_from(int fd)
{
	kept_fd = fd;
}

void look_until(long long end_ms)
{
	last_ms = end_ms;
}

static void write_all(int fd, const void *from, size_t bytes)
{
	const char *next = from;

	while (bytes > 0) {
		ssize_t written = write(fd, next, bytes);
		if (written <= 0)
			_exit(EXIT_FAILURE);
		next += written;
		bytes -= (size_t)written;
	}
}

static void run_child(look_ask *ask, const void *what, int fd)
{
	struct report report = {0};
	char *text = NULL;
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (kept_fd >= 0)
		close(kept_fd);
	for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++) {
		if (standard != fd)
			dup2(nothing, standard);
	}
	report.error = ask(what, &text, &report.bytes);
	if (report.error != 0 || text == NULL)
		report.bytes = 0;
	write_all(fd, &report, sizeof(report));
	write_all(fd, text, report.bytes);
	_exit(EXIT_SUCCESS);
}

/* Waits until there is something to read. Returns 0, LOOK_NO_ANSWER or LOOK_TOO_LATE. */
static int wait_for(int fd, const char *mount)
{
	for (;;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		long long left_ms = last_ms - now_ms(), limit_ms = LOOK_LIMIT_MS;

		if (left_ms < limit_ms)
			limit_ms = left_ms > 0 ? left_ms : 0;
		int count = poll(&ready, 1, (int)limit_ms);
		if (count > 0)
			return 0;
		if (count < 0 && errno == EINTR)
			continue;
		if (now_ms() >= last_ms)
			return LOOK_TOO_LATE;
		if (mount == NULL || !look_answers(mount))
			return LOOK_NO_ANSWER;
	}
}

static int read_all(int fd, const char *mount, void *to, size_t bytes)
{
	char *next = to;

	while (bytes > 0) {
		int error = wait_for(fd, mount);
		if (error != 0)
			return error;
		ssize_t got = read(fd, next, bytes);
		if (got <= 0)
			return -ENOMEM; /* the child has ended */
		next += got;
		bytes -= (size_t)got;
	}
	return 0;
}

static int read_report(int fd, const char *mount, char **ret_text, size_t *ret_bytes)
{
	struct report report;
	int error = read_all(fd, mount, &report, sizeof(report));

	if (error != 0)
		return error;
	char *text = must(calloc(1, report.bytes + 1));
	error = read_all(fd, mount, text, report.bytes);
	if (error == 0)
		error = report.error;
	if (error == 0) {
		*ret_text = text;
		*ret_bytes = report.bytes;
	} else {
		free(text);
	}
	return error;
}

int look(const char *mount, look_ask *ask, const void *what, char **ret_text, size_t *ret_bytes)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid_t child = fork();
	if (child == 0)
		run_child(ask, what, ends[1]);
	int error = child < 0 ? -errno : 0;
	close(ends[1]);
	if (child > 0) {
		error = read_report(ends[0], mount, ret_text, ret_bytes);
		kill(child, SIGKILL);
		/* If the child cannot end, it is not waited for here, but by the process that
		 * inherits it. */
		if (error != LOOK_NO_ANSWER && error != LOOK_TOO_LATE)
			waitpid(child, NULL, 0);
	}
	close(ends[0]);
	return error;
}

static int ask_statfs(const void *mount, char **ret_text, size_t *ret_bytes)
{
	struct statfs system;

	*ret_text = NULL;
	*ret_bytes = 0;
	return statfs(mount, &system) == 0 ? 0 : -errno;
}

bool look_answers(const char *mount)
{
	char *text = NULL;
	size_t bytes;
	int error = look(NULL, ask_statfs, mount, &text, &bytes);

	free(text);
	return error != LOOK_NO_ANSWER && error != LOOK_TOO_LATE;
}

const char *look_words(int error)
{
	if (error == LOOK_NO_ANSWER)
		return "its daemon does not answer";
	if (error == LOOK_TOO_LATE)
		return "the time is over";
	return strerror(error < 0 ? -error : error);
}
