/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

static int64_t read_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_now_ms(void)
{
	return read_ms(CLOCK_BOOTTIME);
}

int64_t clock_awake_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
	return read_ms(CLOCK_REALTIME);
}

#define NS_PER_S    INT64_C(1000000000)
#define SECONDS_MAX (INT64_MAX / NS_PER_S - 1)

int64_t clock_ns_of(struct timespec time)
{
	int64_t seconds = time.tv_sec;

	if (seconds > SECONDS_MAX)
		seconds = SECONDS_MAX;
	if (seconds < -SECONDS_MAX)
		seconds = -SECONDS_MAX;
	return seconds * NS_PER_S + time.tv_nsec;
}

struct timespec clock_time_of(int64_t ns)
{
	struct timespec time = {ns / NS_PER_S, ns % NS_PER_S};

	if (time.tv_nsec < 0) {
		time.tv_sec--;
		time.tv_nsec += NS_PER_S;
	}
	return time;
}
