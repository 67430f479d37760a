/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"
#include "keeper/report.h"

#define FIRST 3 /* SD_LISTEN_FDS_START */

static void set_number(const char *name, int64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, number);
	setenv(name, text, 1);
}

/* Puts the descriptors where they are looked for. Returns their number, or -1. */
static int place(const struct shelf *shelf, char *names, size_t names_bytes)
{
	int away[SHELF_MAX], count = 0;
	size_t length = 0;

	for (size_t i = 0; i < shelf->count; i++) {
		const struct shelf_entry *entry = &shelf->entries[i];
		if (strcmp(entry->name, SHELF_DAEMON) == 0)
			continue;
		away[count] = fcntl(entry->descriptor, F_DUPFD_CLOEXEC, FIRST + SHELF_MAX);
		if (away[count++] < 0)
			return -1;
		length += (size_t)snprintf(names + length, names_bytes - length, "%s%s",
					   length > 0 ? ":" : "", entry->name);
	}
	for (int i = 0; i < count; i++)
		if (dup2(away[i], FIRST + i) < 0)
			return -1;
	return count;
}

static int prepare(const struct child_plan *plan)
{
	char names[SHELF_MAX * SHELF_NAME_BYTES] = "";
	int count = place(plan->shelf, names, sizeof(names));

	if (count < 0)
		return -errno;
	set_number("LISTEN_PID", getpid());
	set_number("LISTEN_FDS", count);
	setenv("LISTEN_FDNAMES", names, 1);
	setenv("NOTIFY_SOCKET", plan->notify, 1);
	set_number("WATCHDOG_PID", getpid());
	set_number("WATCHDOG_USEC", plan->watchdog_ms * 1000);
	set_number("FDSTORE", SHELF_MAX - 1);
	return sigprocmask(SIG_SETMASK, plan->signals, NULL) == 0 ? 0 : -errno;
}

_Noreturn static void become(const struct child_plan *plan, int gate)
{
	char byte;

	if (read(gate, &byte, 1) != 1)
		_exit(EXIT_FAILURE);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	int error = prepare(plan);
	if (error == 0) {
		execvp(plan->command[0], plan->command);
		error = -errno;
	}
	report("%s: %s", plan->command[0], strerror(-error));
	_exit(127);
}

int child_begin(const struct child_plan *plan, struct child *ret)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[1]);
		become(plan, ends[0]);
	}
	int error = pid < 0 ? -errno : 0;
	close(ends[0]);
	*ret = (struct child){.pid = pid, .pidfd = -1, .gate = ends[1]};
	if (error == 0) {
		ret->pidfd = pidfd_open(pid, 0);
		error = ret->pidfd < 0 ? -errno : 0;
	}
	if (error != 0)
		close(ends[1]);
	return error;
}

void child_go(struct child *child)
{
	ssize_t written = write(child->gate, "", 1);

	(void)written; /* it has ended, which is heard of */
	close(child->gate);
}
