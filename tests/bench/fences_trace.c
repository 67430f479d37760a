/* SPDX-License-Identifier: Apache-2.0
 *
 * For LD_PRELOAD into the daemon: when it tells of losses, a line in the file FENCES_TRACE for each
 * turn of the loop in which any poll(2) was woken: how many, how many signals were sent, and the
 * microseconds from the begin of the turn, in which nothing was decided yet, to the last of either;
 * how much processor time these took; the microseconds to the end of the turn; and how much
 * processor time the system calls took by which they were woken and signalled.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/platform.h"

static int64_t began_us, told_us, began_cpu_us, told_cpu_us;
static unsigned int polls, signals;
static int64_t calls_ns;

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t read_us(clockid_t clock)
{
	return read_ns(clock) / 1000;
}

static void note(int64_t *time_us, int64_t *cpu_us)
{
	*time_us = read_us(CLOCK_MONOTONIC);
	*cpu_us = read_us(CLOCK_THREAD_CPUTIME_ID);
}

static void report(void)
{
	const char *path = getenv("FENCES_TRACE");
	int file = path != NULL && polls > 0 ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;

	if (file >= 0) {
		dprintf(file, "%u %u %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", polls,
			signals, told_us - began_us, told_cpu_us - began_cpu_us,
			read_us(CLOCK_MONOTONIC) - began_us, calls_ns / 1000);
		close(file);
	}
	polls = signals = 0;
	calls_ns = 0;
}

__attribute__((visibility("default"))) int epoll_wait(int set, struct epoll_event *events, int most,
						      int limit_ms)
{
	bool is_loop = limit_ms != 0;

	if (is_loop)
		report();
	long count = syscall(SYS_epoll_pwait, set, events, most, limit_ms, NULL, 0);
	if (is_loop)
		note(&began_us, &began_cpu_us);
	return (int)count;
}

__attribute__((visibility("default"))) ssize_t writev(int file, const struct iovec *parts,
						      int count)
{
	struct fuse_out_header header = {.unique = 1};

	if (count > 0 && parts[0].iov_len == sizeof(header))
		memcpy(&header, parts[0].iov_base, sizeof(header));
	int64_t before_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
	ssize_t written = syscall(SYS_writev, file, parts, count);
	if (header.unique == 0 && header.error == FUSE_NOTIFY_POLL) {
		calls_ns += read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
		polls++;
		note(&told_us, &told_cpu_us);
	}
	return written;
}

__attribute__((visibility("default"))) int pidfd_send_signal(int pidfd, int number, siginfo_t *info,
							     unsigned int flags)
{
	int64_t before_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
	long result = syscall(SYS_pidfd_send_signal, pidfd, number, info, flags);

	if (number != 0) {
		calls_ns += read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
		signals++;
		note(&told_us, &told_cpu_us);
	}
	return (int)result;
}
