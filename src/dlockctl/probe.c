/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/tree.h"

/* The child writes one report as soon as it knows about the mount, then one for the file,
 * followed by its text. */
struct report {
	int error;
	mode_t mode;
	dev_t device;
	size_t bytes;
};

static void write_all(int fd, const void *from, size_t bytes)
{
	const char *next = from;
	while (bytes > 0) {
		ssize_t written = write(fd, next, bytes);
		if (written <= 0)
			_exit(1);
		next += written;
		bytes -= (size_t)written;
	}
}

static void run_child(const char *mount, const char *file, int fd)
{
	struct report report = {0};
	struct statfs statfs_buffer;
	struct stat stat_buffer = {0};
	char *text = NULL;

	if (statfs(mount, &statfs_buffer) < 0 || stat(mount, &stat_buffer) < 0)
		report.error = -errno;
	report.mode = stat_buffer.st_mode;
	report.device = stat_buffer.st_dev;
	write_all(fd, &report, sizeof(report));
	report = (struct report){0};
	report.error = tree_read(mount, file, &text, &report.bytes);
	if (report.error != 0)
		report.bytes = 0;
	write_all(fd, &report, sizeof(report));
	write_all(fd, text, report.bytes);
	_exit(0);
}

/* Reads `bytes` until `end_ms`. False: they did not come. */
static bool read_all(int fd, void *to, size_t bytes, long long end_ms)
{
	char *next = to;
	while (bytes > 0) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		long long left_ms = end_ms - now_ms();
		if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) <= 0)
			return false;
		ssize_t got = read(fd, next, bytes);
		if (got <= 0)
			return false;
		next += got;
		bytes -= (size_t)got;
	}
	return true;
}

static void read_reports(int fd, struct probe *probe)
{
	long long end_ms = now_ms() + PROBE_LIMIT_MS;
	struct report report;

	if (!read_all(fd, &report, sizeof(report), end_ms))
		return;
	probe->mount_answered = true;
	probe->mount_error = report.error;
	probe->mode = report.mode;
	probe->device = report.device;
	if (!read_all(fd, &report, sizeof(report), end_ms))
		return;
	char *text = must(calloc(1, report.bytes + 1));
	if (!read_all(fd, text, report.bytes, end_ms)) {
		free(text);
		return;
	}
	probe->file_answered = true;
	probe->file_error = report.error;
	probe->text = text;
}

int probe_mount(const char *mount, const char *file, struct probe *ret)
{
	int ends[2];

	*ret = (struct probe){0};
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		run_child(mount, file, ends[1]);
	int error = child < 0 ? -errno : 0;
	close(ends[1]);
	if (child > 0) {
		read_reports(ends[0], ret);
		/* If the child cannot end, it is not waited for here, but by the process that
		 * inherits it. */
		kill(child, SIGKILL);
		if (ret->file_answered)
			waitpid(child, NULL, 0);
	}
	close(ends[0]);
	return error;
}
