/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/look.h"
#include "dlockfs.h"

/* The question of a token, or another one, that a child asks. */
struct question {
	int fd;
	int (*ask)(int fd, uint64_t *ret_token);
};

static int ask_question(const void *what, char **ret_text, size_t *ret_bytes)
{
	const struct question *question = what;
	uint64_t *token = must(calloc(1, sizeof(*token)));

	*ret_text = (char *)token;
	*ret_bytes = sizeof(*token);
	return question->ask(question->fd, token);
}

/* Asks in a child: the daemon may hang. */
static int ask_in_time(int fd, int (*ask)(int fd, uint64_t *ret_token), uint64_t *ret_token)
{
	const struct question question = {fd, ask};
	char *path = must_format("/proc/self/fd/%d", fd), *text = NULL;
	size_t bytes;
	int error = look(path, ask_question, &question, &text, &bytes);

	if (error == 0)
		memcpy(ret_token, text, sizeof(*ret_token));
	free(text);
	free(path);
	return error;
}

static int ask_daemon(int fd, unsigned long command, void *what)
{
	int failed;
	do
		failed = ioctl(fd, command, what);
	while (failed < 0 && errno == EINTR);
	return failed < 0 ? -errno : 0;
}

int descriptor_token(int fd, uint64_t *ret_token)
{
	return ask_daemon(fd, DLOCKFS_IOC_TOKEN, ret_token);
}

int descriptor_slot(int fd, uint64_t *ret_slot)
{
	return ask_daemon(fd, DLOCKFS_IOC_SLOT, ret_slot);
}

int descriptor_set_term(int fd, long long least_ms, long long most_ms)
{
	struct dlockfs_term term = {.least_ms = least_ms, .most_ms = most_ms};

	return ask_daemon(fd, DLOCKFS_IOC_TERM, &term);
}

int descriptor_may_hold(int fd)
{
	return ask_daemon(fd, DLOCKFS_IOC_MAY_HOLD, NULL);
}

int descriptor_hold(int fd, const struct dlockfs_hold *hold)
{
	return ioctl(fd, DLOCKFS_IOC_HOLD, hold) < 0 ? -errno : 0;
}

/* Reads the number of an open descriptor. Returns 0, or tells the error and returns the status. */
static int parse(const char *word, int *ret_fd)
{
	long long number;
	if (!parse_number(word, 0, INT_MAX, &number))
		return fail(EX_USAGE, "%s: is no descriptor; expected its number, such as 9", word);
	if (fcntl((int)number, F_GETFD) < 0)
		return fail(EX_USAGE,
			    "descriptor %s: is not open; expected one that the shell "
			    "opened, as with exec 9>FILE",
			    word);
	*ret_fd = (int)number;
	return 0;
}

int descriptor_fail(const char *what, int error)
{
	switch (-error) {
	case EIO:
		return fail(EXIT_LOST, "%s: the lock is lost; close the file and lock it anew",
			    what);
	case ENODATA:
		return fail(EXIT_NO, "%s: nothing is locked through it; lock it first", what);
	case ENOTTY:
	case EBADF:
		return fail(EX_DATAERR,
			    "%s: is no file of dlockfs; expected a lock file that was "
			    "opened for reading or writing",
			    what);
	default:
		return fail(status_of_errno(error), "%s: %s; see: dlockctl doctor", what,
			    look_words(error));
	}
}

int descriptor_ask(struct context *context, int argc, char **argv,
		   int (*ask)(int fd, uint64_t *ret_token), uint64_t *ret_token)
{
	int fd = -1;

	int status = only_common_options(context, argc, argv, 1, 1);
	if (status >= 0)
		return status;
	status = parse(argv[optind], &fd);
	if (status != 0)
		return status;
	int error = ask_in_time(fd, ask, ret_token);
	if (error == 0)
		return -1;
	char *what = must_format("descriptor %d", fd);
	status = descriptor_fail(what, error);
	free(what);
	return status;
}
