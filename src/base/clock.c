/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns how long the host has slept, as far as was seen.
 */
#include "base/clock.h"

#include <stdatomic.h>

#define MS_NS 1000000LL

/* What must not be late is that near when the kernel's timers are trusted with all that is left. */
#define NEAR_MS 32

/* Ten years: whatever is that far is looked at again before. */
#define FAR_MS (10 * 365 * 86400000LL)

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return clock_ns_of(now);
}

/* CLOCK_BOOTTIME is CLOCK_MONOTONIC and the time of all suspends, which only grows. A thread that
 * is held up between reading the two sees less than that: so the most that any thread saw is right,
 * and the clock never goes back. A thread for which less is right than that was held up before the
 * last line, and sees what time it was then.
 */
static int64_t slept_ns(void)
{
	static _Atomic int64_t most_ns = INT64_MIN; /* negative: as in some time namespaces */
	int64_t boot_ns = read_ns(CLOCK_BOOTTIME);
	int64_t seen_ns = boot_ns - read_ns(CLOCK_MONOTONIC);
	int64_t known_ns = atomic_load(&most_ns);

	while (known_ns < seen_ns)
		if (atomic_compare_exchange_weak(&most_ns, &known_ns, seen_ns))
			return seen_ns;
	return known_ns;
}

static int64_t now_ns(void)
{
	int64_t slept = slept_ns();

	return slept + read_ns(CLOCK_MONOTONIC_RAW);
}

int64_t clock_now_ms(void)
{
	return now_ns() / MS_NS;
}

int64_t clock_now_us(void)
{
	return now_ns() / 1000;
}

int64_t clock_boot_ms(void)
{
	return read_ns(CLOCK_BOOTTIME) / MS_NS;
}

int64_t clock_boot_at_ns(int64_t time_ms)
{
	int64_t boot_ns = read_ns(CLOCK_BOOTTIME); /* first: a thread that is held up here asks for
						      an earlier time */
	int64_t now = now_ns();

	if (time_ms > now / MS_NS + FAR_MS)
		time_ms = now / MS_NS + FAR_MS;
	if (time_ms < now / MS_NS - FAR_MS)
		time_ms = now / MS_NS - FAR_MS;
	return boot_ns + time_ms * MS_NS - now;
}

int64_t clock_look_ms(int64_t due_ms, int64_t now_ms)
{
	int64_t left_ms = due_ms != INT64_MAX && due_ms > now_ms ? due_ms - now_ms : 0;

	return left_ms > NEAR_MS ? due_ms - left_ms / 2 : due_ms;
}

int64_t clock_awake_ms(void)
{
	return read_ns(CLOCK_MONOTONIC) / MS_NS;
}

int64_t clock_wall_ms(void)
{
	return read_ns(CLOCK_REALTIME) / MS_NS;
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
