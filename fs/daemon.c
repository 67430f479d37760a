/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the pipe to the waiting parent. Only the parent's part ends the process here.
 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "restart/supervisor.h"

static int ready_pipe = -1; /* the child's end */

static void wait_for_child(int pipe_end, pid_t child)
{
	char byte;
	ssize_t got;
	do
		got = read(pipe_end, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		_exit(EXIT_SUCCESS);
	waitpid(child, NULL, 0);
	_exit(EXIT_FAILURE);
}

int daemon_begin(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid_t child = fork();
	if (child < 0) {
		int error = -errno;
		close(ends[0]);
		close(ends[1]);
		return error;
	}
	if (child > 0) {
		close(ends[1]);
		wait_for_child(ends[0], child);
	}
	close(ends[0]);
	ready_pipe = ends[1];
	supervisor_forget();
	return 0;
}

void daemon_resume(void)
{
	if (!log_to_journal())
		log_to_syslog();
}

void daemon_ready(void)
{
	if (ready_pipe < 0)
		return;
	/* Not earlier: autofs lets only the process group of systemd mount upon its mounts. */
	setsid();
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (chdir("/") < 0 || null < 0)
		log_warning("going to the background: %m");
	if (!log_to_journal())
		log_to_syslog();
	for (int descriptor = 0; null >= 0 && descriptor <= 2; descriptor++)
		dup2(null, descriptor);
	if (null > 2)
		close(null);
	if (write(ready_pipe, "", 1) < 0)
		log_warning("telling the parent: %m");
	close(ready_pipe);
	ready_pipe = -1;
}
