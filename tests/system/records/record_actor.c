/* SPDX-License-Identifier: Apache-2.0
 *
 * record_actor IN OUT...: processes that make the calls that record_runner.py asks for.
 *
 * Each pair of descriptors is a slot: requests come from IN, a line each, and answers go to OUT.
 * The process that is started serves the last slot; "fork SLOT" in any slot makes a child that
 * serves another one. A process ends when nobody can ask any more. The answer is "ok", the name of
 * the error, or what the call found.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static char **channels; /* the descriptors of slot n are channels[2 * n] and channels[2 * n + 1] */
static int in, out;
static int first; /* the first descriptor that the calls open: they count from here */

static void serve(int slot)
{
	in = atoi(channels[2 * slot]);
	out = atoi(channels[2 * slot + 1]);
}

static void answer(const char *text)
{
	if (write(out, text, strlen(text)) < 0)
		_exit(1);
}

static void answer_result(int result)
{
	answer(result >= 0 ? "ok" : strerrorname_np(errno));
}

/* A call that opens a descriptor must get the expected one. */
static void answer_opened(int fd, int expected)
{
	if (fd >= 0 && fd != first + expected)
		answer("another descriptor");
	else
		answer_result(fd);
}

static void make_child(int slot)
{
	char text[32];
	pid_t child = fork();

	if (child == 0) {
		serve(slot);
		return;
	}
	snprintf(text, sizeof(text), "%d", child);
	answer(child > 0 ? text : "fork failed");
}

static void call_fcntl(int fd, int command, const char *arguments)
{
	short type, whence;
	int64_t start, length;
	struct stat attributes;
	char text[128];

	if (sscanf(arguments, "%hd %hd %" SCNd64 " %" SCNd64, &type, &whence, &start, &length) != 4)
		_exit(1);
	struct flock lock = {.l_type = type, .l_whence = whence, .l_start = start, .l_len = length};
	/* SEEK_END counts from the size that the kernel knows of this descriptor. */
	if ((whence == SEEK_END && fstat(fd, &attributes) != 0) || fcntl(fd, command, &lock) != 0) {
		answer_result(-1);
	} else if (command != F_GETLK && command != F_OFD_GETLK) {
		answer("ok");
	} else {
		snprintf(text, sizeof(text), "found %d %d %" PRId64 " %" PRId64 " %d", lock.l_type,
			 lock.l_whence, (int64_t)lock.l_start, (int64_t)lock.l_len, lock.l_pid);
		answer(text);
	}
}

static void call(const char *line)
{
	char name[16], path[4096];
	int64_t number = 0, other = 0;
	int rest = 0;

	if (sscanf(line, "%15s", name) != 1)
		_exit(1);
	line += strlen(name);
	if (strcmp(name, "open") == 0 &&
	    sscanf(line, "%" SCNd64 " %" SCNd64 " %4095s", &number, &other, path) == 3) {
		answer_opened(open(path, (int)other, 0666), (int)number);
		return;
	}
	if (strcmp(name, "unlink") == 0 && sscanf(line, "%4095s", path) == 1) {
		answer_result(unlink(path));
		return;
	}
	if (sscanf(line, "%" SCNd64 " %" SCNd64 " %n", &number, &other, &rest) < 1)
		_exit(1);
	int fd = first + (int)number;
	if (strcmp(name, "fork") == 0)
		make_child((int)number);
	else if (strcmp(name, "dup") == 0)
		answer_opened(dup(fd), (int)other);
	else if (strcmp(name, "close") == 0)
		answer_result(close(fd));
	else if (strcmp(name, "seek") == 0)
		answer_result(lseek(fd, other, SEEK_SET) < 0 ? -1 : 0);
	else if (strcmp(name, "truncate") == 0)
		answer_result(ftruncate(fd, other));
	else if (strcmp(name, "flock") == 0)
		answer_result(flock(fd, (int)other));
	else if (strcmp(name, "fcntl") == 0)
		call_fcntl(fd, (int)other, line + rest);
	else
		_exit(1);
}

int main(int argc, char **argv)
{
	char line[8192];
	int last = 0;

	if (argc < 3 || argc % 2 == 0) {
		fprintf(stderr, "usage: %s IN OUT...\n", argv[0]);
		return 2;
	}
	/* Nobody waits for the children, nor for theirs. */
	signal(SIGCHLD, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	channels = argv + 1;
	serve((argc - 1) / 2 - 1);
	/* From there on the kernel gives them one after the other. */
	for (int i = 1; i < argc; i++)
		last = atoi(argv[i]) > last ? atoi(argv[i]) : last;
	do
		first = dup(0);
	while (first >= 0 && first < last);
	close(first);
	while (true) {
		ssize_t size = read(in, line, sizeof(line) - 1);
		if (size <= 0)
			return 0;
		line[size] = '\0';
		call(line);
	}
}
