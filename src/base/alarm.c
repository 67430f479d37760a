/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alarm.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

/* The alarm is so much later than it should, in parts of the time until then: a rate that is wrong
 * by as much as an oscillator's, which NTP corrects, does not wake anybody twice. */
#define PARTS_LATER 2048

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
	int64_t due_ns, left_ns;

	if (due_ms == alarm->due_ms)
		return;
	alarm->due_ms = due_ms;
	if (due_ms != INT64_MAX) {
		due_ns = clock_boot_at_ns(due_ms);
		left_ns = due_ns - clock_boot_ms() * 1000000;
		if (left_ns > 0)
			due_ns += left_ns / PARTS_LATER;
		/* A past time fires at once; zero would mean never. */
		due.it_value = clock_time_of(due_ns > 0 ? due_ns : 1);
	}
	timerfd_settime(alarm->descriptor, TFD_TIMER_ABSTIME, &due, NULL);
}

void alarm_advance(struct alarm *alarm, int64_t due_ms)
{
	if (due_ms < alarm->due_ms)
		alarm_set(alarm, due_ms);
}

bool alarm_rang(struct alarm *alarm)
{
	uint64_t times;

	if (read(alarm->descriptor, &times, sizeof(times)) != (ssize_t)sizeof(times))
		return false;
	alarm->due_ms = INT64_MAX;
	return true;
}
