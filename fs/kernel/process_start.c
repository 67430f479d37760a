/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/process_start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"
#include "kernel/proc.h"

uint64_t process_start(pid_t pid)
{
	uint64_t start = 0;
	char text[1024];
	int spaces = 0;

	proc_read(pid, "stat", text, sizeof(text));
	/* The time is behind 19 other fields that follow the name, which may have spaces and
	 * parentheses. */
	const char *at = strrchr(text, ')');
	for (; at != NULL && *at != '\0' && spaces < 20; at++)
		spaces += *at == ' ';
	if (at != NULL && spaces == 20)
		start = strtoull(at, NULL, 10);
	return start;
}

int process_start_open(pid_t pid, uint64_t start)
{
	int pidfd = pidfd_open(pid, 0);

	if (pidfd < 0)
		return -1;
	/* process_start() reads the time of the process that has the number now. If the process of
	 * the pidfd still lives after that, it is that process. */
	if (process_start(pid) == start &&
	    (pidfd_send_signal(pidfd, 0, NULL, 0) == 0 || errno == EPERM))
		return pidfd;
	close(pidfd);
	errno = ESRCH;
	return -1;
}
