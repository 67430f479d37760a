/* SPDX-License-Identifier: Apache-2.0
 *
 * What the service manager that started the daemon is told (sd_notify(3)): that the mount is
 * usable, that the configuration is being read anew, that the loop still runs, that it stops.
 *
 * Without a service manager, or built without libsystemd, every function does nothing. None blocks
 * for longer than a datagram on a local socket takes.
 */
#ifndef DLOCKFS_SUPERVISOR_H
#define DLOCKFS_SUPERVISOR_H

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

/* How often supervisor_ping() has to be called, in milliseconds: half the time that the service
 * manager waits (WatchdogSec=). INT64_MAX: it does not wait for it. */
int64_t supervisor_ping_interval_ms(void);

/* The loop runs. */
void supervisor_ping(void);

#endif
