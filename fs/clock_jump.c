/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns a timer on the wall clock that never fires. Loop thread only.
 */
#include "clock_jump.h"

#include <errno.h>
#include <limits.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* A smaller difference may be the time between reading the two clocks. A pause so short does not
 * matter to a lease, which ends a fortieth of the session timeout early (stores/zookeeper/lease.h).
 */
enum { LEAST_MS = 10 };

static int64_t read_ahead_ms(void)
{
	return clock_wall_ms() - clock_boot_ms();
}

int clock_jump_init(struct clock_jump *jump)
{
	const struct itimerspec never = {.it_value.tv_sec = LONG_MAX};

	jump->timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (jump->timer < 0)
		return -errno;
	if (timerfd_settime(jump->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never,
			    NULL) < 0) {
		int error = -errno;
		clock_jump_finish(jump);
		return error;
	}
	jump->ahead_ms = read_ahead_ms();
	return 0;
}

void clock_jump_finish(struct clock_jump *jump)
{
	if (jump->timer >= 0)
		close(jump->timer);
	jump->timer = -1;
}

bool clock_jump_seen(struct clock_jump *jump, int64_t *ret_ms)
{
	uint64_t times;
	bool set = read(jump->timer, &times, sizeof(times)) < 0 && errno == ECANCELED;
	int64_t ahead_ms = read_ahead_ms();
	int64_t by_ms = ahead_ms - jump->ahead_ms;
	bool far = by_ms <= -LEAST_MS || by_ms >= LEAST_MS;

	/* If the clock was set just after the timer was read, the next call sees it. */
	if (set || !far)
		jump->ahead_ms = ahead_ms;
	if (set && far)
		*ret_ms = by_ms;
	return set && far;
}
