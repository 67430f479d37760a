/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the words of sd_notify(3). Loop's thread, and before it starts.
 */
#include "supervisor.h"

#include <stdlib.h>

#if HAVE_LIBSYSTEMD

#include <inttypes.h>
#include <systemd/sd-daemon.h>
#include <time.h>

void supervisor_forget(void)
{
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void supervisor_ready(const char *status)
{
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void supervisor_reloading(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		   (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

void supervisor_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

int64_t supervisor_ping_interval_ms(void)
{
	uint64_t limit_us;
	if (sd_watchdog_enabled(0, &limit_us) <= 0)
		return INT64_MAX;
	return limit_us >= 4000 ? (int64_t)(limit_us / 2000) : 1;
}

void supervisor_ping(void)
{
	sd_notify(0, "WATCHDOG=1");
}

#else

void supervisor_forget(void)
{
}

void supervisor_ready(const char *status)
{
	(void)status;
}

void supervisor_reloading(void)
{
}

void supervisor_stopping(void)
{
}

int64_t supervisor_ping_interval_ms(void)
{
	return INT64_MAX;
}

void supervisor_ping(void)
{
}

#endif
