/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alarm.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

int alarm_init(struct alarm *alarm)
{
	*alarm = ALARM_NONE;
	alarm->descriptor = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	return alarm->descriptor < 0 ? -errno : 0;
}

void alarm_finish(struct alarm *alarm)
{
	if (alarm->descriptor >= 0)
		close(alarm->descriptor);
	*alarm = ALARM_NONE;
}

void alarm_set(struct alarm *alarm, int64_t due_ms)
{
	struct itimerspec due = {0};

	if (due_ms == alarm->due_ms)
		return;
	alarm->due_ms = due_ms;
	if (due_ms != INT64_MAX) {
		/* A past time fires at once; zero would mean never. */
		due.it_value.tv_sec = due_ms > 0 ? due_ms / 1000 : 0;
		due.it_value.tv_nsec = due_ms > 0 ? due_ms % 1000 * 1000000 : 1;
	}
	timerfd_settime(alarm->descriptor, TFD_TIMER_ABSTIME, &due, NULL);
}

bool alarm_rang(struct alarm *alarm)
{
	uint64_t times;

	if (read(alarm->descriptor, &times, sizeof(times)) != (ssize_t)sizeof(times))
		return false;
	alarm->due_ms = INT64_MAX;
	return true;
}
