/* SPDX-License-Identifier: Apache-2.0
 *
 * For LD_PRELOAD: a host whose clocks that nobody sets run slow or fast. They show TEST_CLOCK_RATE
 * times the time that has passed since the machine was started, so 0.98 is a clock that is slow by
 * 2 %. With a word behind the number, as 0.98slewed, the oscillator is right and NTP slews the
 * clocks: CLOCK_MONOTONIC_RAW shows the time that has passed. All processes of the host see the
 * same clock: the daemon gives the variable on to its guard.
 *
 * What waits by such a clock waits as long as that shows: timers, and the timeouts of poll(2),
 * epoll_wait(2) and nanosleep(2). The wall clock is right.
 */
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NS     1e9

enum { DESCRIPTORS = 64 };

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret);
EXPORT int timerfd_create(int clock, int flags);
EXPORT int timerfd_settime(int descriptor, int flags, const struct itimerspec *new,
			   struct itimerspec *old);
EXPORT int poll(struct pollfd *files, nfds_t count, int timeout_ms);
EXPORT int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms);
EXPORT int nanosleep(const struct timespec *duration, struct timespec *left);

static bool is_on_wall[DESCRIPTORS]; /* the timer of that descriptor */

static double rate(void)
{
	const char *text = getenv("TEST_CLOCK_RATE");
	return text != NULL ? strtod(text, NULL) : 1;
}

static bool is_slewed(void)
{
	const char *text = getenv("TEST_CLOCK_RATE");
	return text != NULL && strstr(text, "slewed") != NULL;
}

static struct timespec scaled(const struct timespec *time, double by)
{
	double all = ceil(((double)time->tv_sec * NS + (double)time->tv_nsec) * by);
	double seconds = floor(all / NS);

	return (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)(all - seconds * NS)};
}

static int scaled_ms(int timeout_ms)
{
	return timeout_ms > 0 ? (int)ceil(timeout_ms / rate()) : timeout_ms;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int result = (int)syscall(SYS_clock_gettime, clock, ret);

	switch (clock) {
	case CLOCK_MONOTONIC_RAW:
		if (is_slewed())
			break;
		/* fallthrough */
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		if (result == 0)
			*ret = scaled(ret, rate());
	}
	return result;
}

int timerfd_create(int clock, int flags)
{
	int descriptor = (int)syscall(SYS_timerfd_create, clock, flags);

	if (descriptor >= 0 && descriptor < DESCRIPTORS)
		is_on_wall[descriptor] = clock == CLOCK_REALTIME;
	return descriptor;
}

int timerfd_settime(int descriptor, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct itimerspec due = *new;

	if (descriptor < 0 || descriptor >= DESCRIPTORS || !is_on_wall[descriptor])
		due.it_value = scaled(&new->it_value, 1 / rate());
	return (int)syscall(SYS_timerfd_settime, descriptor, flags, &due, old);
}

int poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
	return (int)syscall(SYS_poll, files, count, scaled_ms(timeout_ms));
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
	return (int)syscall(SYS_epoll_wait, epoll, events, count, scaled_ms(timeout_ms));
}

int nanosleep(const struct timespec *duration, struct timespec *left)
{
	struct timespec longer = scaled(duration, 1 / rate());
	return (int)syscall(SYS_nanosleep, &longer, left);
}
