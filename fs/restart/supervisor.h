/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemon tells the service manager that started it (sd_notify(3)): that the mount is
 * usable, that the configuration is being read anew, that the loop runs, that the daemon stops; and
 * the descriptors that the service manager keeps, beyond the daemon's end, for the next one
 * (FDSTORE=1).
 *
 * Without a service manager, or built without libsystemd, every function does nothing. None blocks
 * for longer than a datagram on a local socket takes.
 */
#ifndef DLOCKFS_RESTART_SUPERVISOR_H
#define DLOCKFS_RESTART_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The process goes to the background: from now on the functions do nothing. To be called before
 * threads exist. */
void supervisor_forget(void);

/* The mount is usable, or the configuration has been read. `status` is one line for `systemctl
 * status`. */
void supervisor_ready(const char *status);

/* The configuration is being read anew, or another program takes over. supervisor_ready() follows
 * in any case, perhaps by the other program. */
void supervisor_reloading(void);

void supervisor_stopping(void);

/* How long the service manager waits for a ping before the daemon is killed (WatchdogSec=), in
 * milliseconds. INT64_MAX: the service manager waits for no ping. */
int64_t supervisor_watchdog_ms(void);

/* Sets supervisor_watchdog_ms(), for this process (WATCHDOG_USEC=; systemd from version 233 on). */
void supervisor_set_watchdog(int64_t limit_ms);

/* The loop runs. */
void supervisor_ping(void);

/* Whether the service manager keeps descriptors: the environment has FDSTORE, with a number above
 * 1. systemd sets it from version 254 on, dlockfs.service by itself. */
bool supervisor_keeps(void);

/* Lets a copy of the descriptor be kept, under a name of letters. Returns 0 or -errno. */
int supervisor_keep(const char *name, int descriptor);

/* The descriptors under the name are not to be kept any more. The service manager closes them when
 * it reads the message. */
void supervisor_release(const char *name);

/* A descriptor that was kept for this process. Further ones of the same name are closed. */
struct supervisor_kept {
	const char *name;
	int descriptor; /* -1: there was none */
};

/* Fills in the descriptors, which the caller owns from now on, and which are closed by execve(2).
 * Descriptors of other names are closed, and the environment variables are removed. To be called
 * once, before threads exist. */
void supervisor_take(struct supervisor_kept *kept, size_t count);

#endif
