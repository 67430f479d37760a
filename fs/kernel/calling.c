/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc/THREAD/syscall (proc(5)): "NUMBER ARGUMENT...", the arguments in hexadecimal, or
 * "running" while the thread is on a processor. That takes the lock of the process that execve(2)
 * holds for writing, but only when no other thread of the process is left that could wait for us.
 * Before Linux 5.11 it took another one, which execve(2) holds while it waits for those threads to
 * end: that would be a deadlock.
 *
 * Programs of 32 bits have other numbers. None of those that make a name opens a file there, and
 * none of those that go on makes a name.
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

#include "kernel/warden.h"

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

/* Calls that send a request about the file that they have found, or remove its name; unless that
 * argument has that flag. */
static const struct {
	long number;
	int argument;
	unsigned long flag;
} goes_on[] = {
#ifdef SYS_open
	{SYS_open, 1, O_EXCL},	 {SYS_stat, 0, 0},  {SYS_lstat, 0, 0},
	{SYS_unlink, 0, 0},	 {SYS_rmdir, 0, 0},
#endif
#ifdef SYS_newfstatat
	{SYS_newfstatat, 0, 0},
#endif
	{SYS_openat, 2, O_EXCL}, {SYS_statx, 0, 0}, {SYS_unlinkat, 0, 0},
};

/* A call, as the kernel shows it. */
struct call {
	long number; /* -1: unknown */
	unsigned long arguments[3];
};

/* Returns false if the thread runs. */
static bool read_call(int file, struct call *ret)
{
	char text[256], *end;
	ssize_t bytes = pread(file, text, sizeof(text) - 1, 0);

	ret->number = -1;
	text[bytes > 0 ? bytes : 0] = '\0';
	if (strcmp(text, "running\n") == 0)
		return false;
	long number = strtol(text, &end, 10);
	if (end == text)
		return true;
	ret->number = number;
	for (size_t i = 0; i < sizeof(ret->arguments) / sizeof(*ret->arguments); i++)
		ret->arguments[i] = strtoul(end, &end, 16);
	return true;
}

static void find_call(pid_t thread, struct call *ret)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	char path[48];

	ret->number = -1;
	if (thread <= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)thread);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	for (int i = 0; !read_call(file, ret) && i < YIELDS + PAUSES; i++) {
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
	close(file);
}

enum calling calling_read(pid_t thread)
{
	struct call call;

	find_call(thread, &call);
	for (size_t i = 0; call.number >= 0 && i < sizeof(makes_name) / sizeof(*makes_name); i++) {
		if (makes_name[i] == call.number)
			return CALLING_MAKES_NAME;
	}
	for (size_t i = 0; call.number >= 0 && i < sizeof(goes_on) / sizeof(*goes_on); i++) {
		if (goes_on[i].number == call.number &&
		    (call.arguments[goes_on[i].argument] & goes_on[i].flag) == 0)
			return CALLING_GOES_ON;
	}
	return CALLING_OTHER;
}

static enum calling find(pid_t thread)
{
	const struct warden_request request = {.kind = WARDEN_CALL, .pid = thread};

	if (warden_socket() < 0)
		return calling_read(thread);
	int64_t call = warden_do(&request);
	return call < 0 ? CALLING_OTHER : (enum calling)call;
}

bool calling_goes_on(pid_t thread)
{
	return find(thread) == CALLING_GOES_ON;
}

bool calling_makes_name(pid_t thread)
{
	return find(thread) == CALLING_MAKES_NAME;
}
