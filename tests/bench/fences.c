/* SPDX-License-Identifier: Apache-2.0
 *
 * fences FOLDER NUMBER PROCESSES: so many locks of the folder, a file each, held by so many
 * processes.
 *
 * Says "held" when all are; and "told" when poll(2) has told of the loss of each. Ends then.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void raise_limit(void)
{
	struct rlimit limit;

	check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "limit of open files");
	limit.rlim_cur = limit.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit of open files");
}

static void take(const char *folder, long number, int events)
{
	struct epoll_event event = {.events = EPOLLONESHOT};
	char path[4096];

	snprintf(path, sizeof(path), "%s/%ld", folder, number);
	int file = open(path, O_RDWR | O_CREAT, 0666);
	check(file >= 0, path);
	check(flock(file, LOCK_EX) == 0, path);
	check(epoll_ctl(events, EPOLL_CTL_ADD, file, &event) == 0, "epoll");
}

/* Holds every lock whose number is the process's, modulo their number. */
static _Noreturn void hold(const char *folder, long number, long process, long processes, int ready)
{
	struct epoll_event told[64];
	int events = epoll_create1(0);
	long left = 0;

	check(events >= 0, "epoll");
	for (long i = process; i < number; i += processes, left++)
		take(folder, i, events);
	close(ready);
	while (left > 0) {
		int count = epoll_wait(events, told, 64, -1);
		check(count >= 0, "epoll");
		left -= count;
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int ready[2], failed = 0, status;
	long number, processes;
	char byte;

	if (argc != 4 || (number = atol(argv[2])) < 1 || (processes = atol(argv[3])) < 1) {
		fprintf(stderr, "usage: fences FOLDER NUMBER PROCESSES\n");
		return 2;
	}
	raise_limit();
	/* The signal of on_lost comes beside, and must not end anybody. */
	signal(SIGUSR1, SIG_IGN);
	check(pipe(ready) == 0, "pipe");
	for (long process = 0; process < processes; process++) {
		pid_t child = fork();
		check(child >= 0, "fork");
		if (child == 0)
			hold(argv[1], number, process, processes, ready[1]);
	}
	close(ready[1]);
	while (read(ready[0], &byte, 1) > 0)
		continue;
	puts("held");
	fflush(stdout);
	while (wait(&status) > 0)
		failed |= status;
	puts(failed == 0 ? "told" : "failed");
	return failed != 0;
}
