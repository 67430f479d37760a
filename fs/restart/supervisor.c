/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the messages of sd_notify(3). Loop thread only, or before the loop begins.
 */
#include "restart/supervisor.h"

#include <stdlib.h>

#if HAVE_LIBSYSTEMD

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

void supervisor_forget(void)
{
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	unsetenv("FDSTORE");
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

int64_t supervisor_watchdog_ms(void)
{
	uint64_t limit_us;
	if (sd_watchdog_enabled(0, &limit_us) <= 0)
		return INT64_MAX;
	return limit_us >= 1000 ? (int64_t)(limit_us / 1000) : 1;
}

void supervisor_set_watchdog(int64_t limit_ms)
{
	sd_notifyf(0, "WATCHDOG_USEC=%" PRId64, limit_ms * 1000);
}

void supervisor_ping(void)
{
	sd_notify(0, "WATCHDOG=1");
}

bool supervisor_keeps(void)
{
	const char *most = getenv("FDSTORE");
	return most != NULL && strtol(most, NULL, 10) >= 2 && getenv("NOTIFY_SOCKET") != NULL;
}

/* Without FDPOLL=0 the service manager would watch the mount's descriptor with epoll(7) for its
 * end, and be woken for every request of the kernel (fuse_dev_wake_and_unlock() wakes pollers of
 * all events). */
int supervisor_keep(const char *name, int descriptor)
{
	char message[128];
	snprintf(message, sizeof(message), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	int result = sd_pid_notify_with_fds(0, 0, message, &descriptor, 1);
	return result > 0 ? 0 : result == 0 ? -ENOTCONN : result;
}

void supervisor_release(const char *name)
{
	sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

static struct supervisor_kept *find_kept(struct supervisor_kept *kept, size_t count,
					 const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(kept[i].name, name) == 0 && kept[i].descriptor < 0)
			return &kept[i];
	}
	return NULL;
}

void supervisor_take(struct supervisor_kept *kept, size_t count)
{
	char **names = NULL;
	int number = sd_listen_fds_with_names(1, &names);

	for (size_t i = 0; i < count; i++)
		kept[i].descriptor = -1;
	for (int i = 0; i < number; i++) {
		struct supervisor_kept *found = find_kept(kept, count, names[i]);
		if (found != NULL)
			found->descriptor = SD_LISTEN_FDS_START + i;
		else
			close(SD_LISTEN_FDS_START + i);
		free(names[i]);
	}
	free(names);
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

int64_t supervisor_watchdog_ms(void)
{
	return INT64_MAX;
}

void supervisor_set_watchdog(int64_t limit_ms)
{
	(void)limit_ms;
}

void supervisor_ping(void)
{
}

bool supervisor_keeps(void)
{
	return false;
}

int supervisor_keep(const char *name, int descriptor)
{
	(void)name;
	(void)descriptor;
	return 0;
}

void supervisor_release(const char *name)
{
	(void)name;
}

void supervisor_take(struct supervisor_kept *kept, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kept[i].descriptor = -1;
}

#endif
