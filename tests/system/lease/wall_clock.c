/* SPDX-License-Identifier: Apache-2.0
 *
 * For LD_PRELOAD: the clocks of a machine that are not right. The file that TEST_WALL_CLOCK names
 * has two numbers, in seconds: so much the wall clock is ahead, and (0 if it is missing) so long
 * all clocks, the wall clock too, have stood still, as those of a virtual machine that was paused.
 * When the file is replaced by another one with another first number the wall clock was set, of
 * which the kernel tells who has a timer with TFD_TIMER_CANCEL_ON_SET.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { DESCRIPTORS = 64, NS = 1000000000 };

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret);
EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone);
EXPORT time_t time(time_t *ret);
EXPORT int timerfd_create(int clock, int flags);
EXPORT int timerfd_settime(int descriptor, int flags, const struct itimerspec *new,
			   struct itimerspec *old);
EXPORT ssize_t read(int descriptor, void *data, size_t bytes);

struct wrong {
	long long ahead_ns, behind_ns;
};

/* Timers, by their descriptors. */
static struct {
	enum { NONE, ON_MACHINE, ON_WALL } kind;
	long long ahead_ns; /* as was known to who reads it last */
} timers[DESCRIPTORS];

static struct wrong wrong_by(void)
{
	const char *path = getenv("TEST_WALL_CLOCK");
	char text[64] = "", *end;
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct wrong wrong = {0};
	ssize_t got;

	if (file < 0)
		return wrong;
	got = syscall(SYS_read, file, text, sizeof(text) - 1);
	close(file);
	text[got > 0 ? got : 0] = '\0';
	wrong.ahead_ns = (long long)(strtod(text, &end) * NS);
	wrong.behind_ns = (long long)(strtod(end, NULL) * NS);
	return wrong;
}

static void add(struct timespec *time, long long ns)
{
	long long all = time->tv_sec * (long long)NS + time->tv_nsec + ns;

	time->tv_sec = all / NS;
	time->tv_nsec = all % NS;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int result = (int)syscall(SYS_clock_gettime, clock, ret);
	struct wrong wrong;

	if (result != 0)
		return result;
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		wrong = wrong_by();
		add(ret, wrong.ahead_ns - wrong.behind_ns);
		break;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_BOOTTIME:
		add(ret, -wrong_by().behind_ns);
		break;
	}
	return 0;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	ret->tv_sec = now.tv_sec;
	ret->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}

/* One on the wall clock never fires here; it is readable when the file is replaced. */
int timerfd_create(int clock, int flags)
{
	const char *path = getenv("TEST_WALL_CLOCK");
	char folder[PATH_MAX] = "";
	int descriptor;

	if (clock != CLOCK_REALTIME || !path) {
		descriptor = (int)syscall(SYS_timerfd_create, clock, flags);
	} else {
		strncpy(folder, path, sizeof(folder) - 1);
		descriptor = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (descriptor >= 0)
			inotify_add_watch(descriptor, dirname(folder), IN_MOVED_TO);
	}
	if (descriptor >= 0 && descriptor < DESCRIPTORS) {
		timers[descriptor].kind = clock == CLOCK_REALTIME ? ON_WALL : ON_MACHINE;
		timers[descriptor].ahead_ns = wrong_by().ahead_ns;
	}
	return descriptor;
}

static int kind_of(int descriptor)
{
	return descriptor >= 0 && descriptor < DESCRIPTORS ? timers[descriptor].kind : NONE;
}

int timerfd_settime(int descriptor, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec due = *new;
	bool is_set = due.it_value.tv_sec != 0 || due.it_value.tv_nsec != 0;

	if (kind_of(descriptor) == ON_WALL)
		return 0;
	if (kind_of(descriptor) == ON_MACHINE && is_set && (flags & TFD_TIMER_ABSTIME))
		add(&due.it_value, wrong_by().behind_ns);
	return (int)syscall(SYS_timerfd_settime, descriptor, flags, &due, old);
}

ssize_t read(int descriptor, void *data, size_t bytes)
{
	char events[4096];
	long long ahead_ns;

	if (kind_of(descriptor) != ON_WALL)
		return syscall(SYS_read, descriptor, data, bytes);
	while (syscall(SYS_read, descriptor, events, sizeof(events)) > 0)
		;
	ahead_ns = wrong_by().ahead_ns;
	errno = ahead_ns == timers[descriptor].ahead_ns ? EAGAIN : ECANCELED;
	timers[descriptor].ahead_ns = ahead_ns;
	return -1;
}
