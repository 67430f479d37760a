/* SPDX-License-Identifier: Apache-2.0
 *
 * The parent of a daemon, in the daemon's container: what systemd is for a service that has it keep
 * descriptors, but that a keeper (keep.h) has these, too, and gives them to the next parent.
 *
 *   the daemon ends with 0    so does this process
 *   it is killed, fails, or   another one goes on with what is kept, RUN_PAUSE_MS later; after
 *   is silent (watchdog)      RUN_FAILURES in a row that were never ready, or if nothing is kept,
 *                             this process ends with its status
 *   it is not ready when      it is killed, and nothing is kept: the mount ends, as by the keeper
 *   holders ought to have     (keep.h), and this process
 *   been told
 *   SIGTERM                   the daemon leaves all to the next one (SIGUSR1), which the keeper
 *                             gives it to; if the keeper does not have all, as SIGINT
 *   SIGINT                    the daemon unmounts, and releases all locks (SIGTERM)
 *   SIGHUP, SIGUSR1, SIGUSR2  are passed on
 *
 * Before it starts a daemon it waits until no other parent has the turn, and for the keeper to give
 * what it keeps. Without a keeper nothing can be kept elsewhere: then it begins anew, and looks for
 * one.
 */
#ifndef DLOCKFS_KEEPER_RUN_H
#define DLOCKFS_KEEPER_RUN_H

#define RUN_PAUSE_MS	100
#define RUN_FAILURES	15
#define RUN_START_MS	60000 /* until a daemon that goes on is ready */
#define RUN_WATCHDOG_MS 20000 /* as WatchdogSec= of etc/systemd/dlockfs.service.in */

/* Returns the exit status. */
int run_command(const char *keeper, char *const *command);

#endif
