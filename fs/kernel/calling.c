/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc/THREAD/syscall (proc(5)): "NUMBER ARGUMENT...", or "running" while the thread is on a
 * processor. That takes the lock of the process that execve(2) holds for writing, but only when no
 * other thread of the process is left that could wait for us. Before Linux 5.11 it took another
 * one, which execve(2) holds while it waits for those threads to end: that would be a deadlock.
 *
 * Programs of 32 bits have other numbers. None of those that are asked for here opens a file there.
 */
#include "kernel/calling.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread that has sent a request is asleep after some microseconds, unless others keep it from
 * the processor. */
#define YIELDS	 20
#define PAUSES	 20
#define PAUSE_NS 50000

static const long makes_name[] = {
#ifdef SYS_rename
	SYS_rename,   SYS_mkdir,  SYS_link,	 SYS_symlink, SYS_mknod,
#endif
#ifdef SYS_renameat
	SYS_renameat,
#endif
	SYS_mkdirat,  SYS_linkat, SYS_symlinkat, SYS_mknodat, SYS_renameat2,
};

/* Reads the number of the call. Returns false if the thread runs. */
static bool read_call(int file, long *ret)
{
	char text[256], *end;
	ssize_t bytes = pread(file, text, sizeof(text) - 1, 0);

	*ret = -1;
	text[bytes > 0 ? bytes : 0] = '\0';
	if (strcmp(text, "running\n") == 0)
		return false;
	long number = strtol(text, &end, 10);
	if (end != text)
		*ret = number;
	return true;
}

static long find_call(pid_t thread)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	char path[48];
	long number = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)thread);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	for (int i = 0; !read_call(file, &number) && i < YIELDS + PAUSES; i++) {
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
	close(file);
	return number;
}

bool calling_makes_name(pid_t thread)
{
	long number = thread > 0 ? find_call(thread) : -1;

	for (size_t i = 0; number >= 0 && i < sizeof(makes_name) / sizeof(*makes_name); i++) {
		if (makes_name[i] == number)
			return true;
	}
	return false;
}
