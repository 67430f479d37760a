/* SPDX-License-Identifier: Apache-2.0
 *
 * What the service manager that started the daemon is told (sd_notify(3)): that the mount is
 * usable, that the configuration is being read anew, that the loop still runs, that it stops; and
 * the descriptors that it keeps, beyond the daemon's end, for the next one (FDSTORE=1).
 *
 * Without a service manager, or built without libsystemd, every function does nothing. None blocks
 * for longer than a datagram on a local socket takes.
 */
#ifndef DLOCKFS_RESTART_SUPERVISOR_H
#define DLOCKFS_RESTART_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The process that was started goes to the background: the service manager, if any, is not to hear
 * from it. Before threads exist. */
void supervisor_forget(void);

/* The mount is usable, or the configuration has been read. `status` is one line for `systemctl
 * status`. */
void supervisor_ready(const char *status);

/* The configuration is being read anew, or another program takes over; supervisor_ready() follows
 * in any case, perhaps from that. */
void supervisor_reloading(void);

void supervisor_stopping(void);

/* How long the service manager waits for a ping before it kills the daemon (WatchdogSec=), in
 * milliseconds. INT64_MAX: it does not wait for any. */
int64_t supervisor_watchdog_ms(void);

/* It waits so long from now on, in this process (WATCHDOG_USEC=; systemd from version 233 on). */
void supervisor_set_watchdog(int64_t limit_ms);

/* The loop runs. */
void supervisor_ping(void);

/* Whether the service manager keeps descriptors: the environment has FDSTORE, with a number above
 * 1. systemd sets it from version 254 on, dlockfs.service by itself. */
bool supervisor_keeps(void);

/* Lets a copy of the descriptor be kept, under a name of letters. Returns 0 or -errno. */
int supervisor_keep(const char *name, int descriptor);

/* What is kept under the name is not to be kept any more. It is closed when the service manager
 * gets to it. */
void supervisor_release(const char *name);

/* A descriptor that was kept for this process. The others of that name are closed. */
struct supervisor_kept {
	const char *name;
	int descriptor; /* -1: there was none */
};

/* Fills in the descriptors, which are the caller's from now on and are closed by execve(2); what
 * has another name is closed, and the environment tells of none any more. To be called once, before
 * threads exist. */
void supervisor_take(struct supervisor_kept *kept, size_t count);

#endif
