/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"

#include "restart/supervisor.h"

enum { LIMITS_IN_TIMEOUT = 8, PINGS_IN_LIMIT = 2 };

void watchdog_begin(struct watchdog *watchdog, int64_t unit_ms)
{
	*watchdog = (struct watchdog){
		.unit_ms = unit_ms,
		.limit_ms = unit_ms,
		.ping_ms = unit_ms == INT64_MAX ? INT64_MAX : 0,
		.held_ms = INT64_MIN,
	};
}

static void set_limit(struct watchdog *watchdog, int64_t limit_ms, int64_t now_ms)
{
	watchdog->limit_ms = limit_ms;
	supervisor_set_watchdog(limit_ms);
	watchdog->ping_ms = now_ms; /* the limit counts from the latest ping */
}

/* The limit that is to count now. */
static int64_t find_limit(const struct watchdog *watchdog, int64_t timeout_ms, int64_t now_ms)
{
	int64_t short_ms = timeout_ms / LIMITS_IN_TIMEOUT;

	if (timeout_ms != INT64_MAX)
		return short_ms < watchdog->unit_ms ? short_ms : watchdog->unit_ms;
	if (watchdog->held_ms != INT64_MIN && now_ms < watchdog->held_ms + watchdog->unit_ms)
		return watchdog->limit_ms;
	return watchdog->unit_ms;
}

void watchdog_advance(struct watchdog *watchdog, int64_t timeout_ms, int64_t now_ms)
{
	if (watchdog->unit_ms == INT64_MAX)
		return;
	if (timeout_ms != INT64_MAX)
		watchdog->held_ms = now_ms;
	int64_t limit_ms = find_limit(watchdog, timeout_ms, now_ms);
	if (limit_ms != watchdog->limit_ms)
		set_limit(watchdog, limit_ms, now_ms);
	if (now_ms < watchdog->ping_ms)
		return;
	supervisor_ping();
	int64_t interval_ms = watchdog->limit_ms / PINGS_IN_LIMIT;
	watchdog->ping_ms = now_ms + (interval_ms > 0 ? interval_ms : 1);
}

void watchdog_relax(struct watchdog *watchdog, int64_t now_ms)
{
	if (watchdog->unit_ms != INT64_MAX && watchdog->limit_ms != watchdog->unit_ms)
		set_limit(watchdog, watchdog->unit_ms, now_ms);
}
