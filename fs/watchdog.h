/* SPDX-License-Identifier: Apache-2.0
 *
 * When the service manager gets a ping that the loop runs, and how long it waits for one before it
 * kills the daemon, so that another process goes on with all locks (restart/keeping.h).
 *
 *   nothing is held   as long as WatchdogSec= says
 *   held              an eighth of the shortest session timeout of all stores, if that is less:
 *                     early enough for the next process to prove the session before the lease ends
 *
 * The shorter limit stays for as long as WatchdogSec= after nothing is held any more, so that a
 * lock that is taken often costs no message each time. Without a service manager that waits for
 * pings there is never anything to do. Loop thread only; time comes from the caller.
 */
#ifndef DLOCKFS_WATCHDOG_H
#define DLOCKFS_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct watchdog {
	int64_t unit_ms;  /* WatchdogSec=; INT64_MAX: nobody waits */
	int64_t limit_ms; /* the limit that counts now */
	int64_t ping_ms;  /* when the next ping is due; INT64_MAX: never */
	int64_t held_ms;  /* when something was held last; INT64_MIN: never */
};

/* `unit_ms` is supervisor_watchdog_ms(). */
void watchdog_begin(struct watchdog *watchdog, int64_t unit_ms);

/* The loop runs: pings if a ping is due, and tells the service manager if another limit counts from
 * now on. `timeout_ms` is the shortest session timeout of what is held; INT64_MAX: nothing is held.
 */
void watchdog_advance(struct watchdog *watchdog, int64_t timeout_ms, int64_t now_ms);

/* The loop will not run for a while, as in a stop: WatchdogSec= counts. watchdog_advance() makes it
 * shorter again. */
void watchdog_relax(struct watchdog *watchdog, int64_t now_ms);

#endif
