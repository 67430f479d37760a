/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"

#define TEXT_BYTES (64 * 1024)

/* The exit status of a child that could not become the program: 127 and 126, as of a shell. */
enum { STATUS_UNABLE = 126, STATUS_NONE = 127 };

static void run_child(const char *program, const char *const *arguments, int output)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	dup2(nothing, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execvp(program, (char *const *)arguments);
	_exit(errno == ENOENT ? STATUS_NONE : STATUS_UNABLE);
}

/* Reads to the end, or until `end_ms`. Returns whether the end was reached. */
static bool read_all(int input, long long end_ms, char *text)
{
	size_t bytes = 0;
	char rest[1024];

	for (;;) {
		struct pollfd ready = {.fd = input, .events = POLLIN};
		long long left_ms = end_ms - now_ms();
		bool is_full = bytes == TEXT_BYTES;

		if (left_ms <= 0)
			return false;
		if (poll(&ready, 1, (int)left_ms) <= 0)
			continue;
		ssize_t got = is_full ? read(input, rest, sizeof(rest))
				      : read(input, text + bytes, TEXT_BYTES - bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return true;
		bytes += is_full ? 0 : (size_t)got;
	}
}

static int result_of(int status)
{
	if (!WIFEXITED(status))
		return -ECHILD;
	return WEXITSTATUS(status) == STATUS_NONE     ? -ENOENT
	       : WEXITSTATUS(status) == STATUS_UNABLE ? -EACCES
						      : WEXITSTATUS(status);
}

int program_run(const char *program, const char *const *arguments, int limit_ms, char **ret_text)
{
	int ends[2], status = 0;

	*ret_text = NULL;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid_t child = fork();
	if (child == 0)
		run_child(program, arguments, ends[1]);
	int result = child < 0 ? -errno : 0;
	close(ends[1]);
	if (child > 0) {
		char *text = must(calloc(1, TEXT_BYTES + 1));
		bool is_over = read_all(ends[0], now_ms() + limit_ms, text);
		if (!is_over)
			kill(child, SIGKILL);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		result = is_over ? result_of(status) : -ETIME;
		if (result >= 0)
			*ret_text = text;
		else
			free(text);
	}
	close(ends[0]);
	return result;
}
