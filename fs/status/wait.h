/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests in .dlockfs that wait for a store, or for all of them. For each store a request has a
 * view under way, or waits for its turn (turn.h), or, while there is no connection, for the time of
 * the next attempt. Loop thread only.
 */
#ifndef DLOCKFS_STATUS_WAIT_H
#define DLOCKFS_STATUS_WAIT_H

#include <fuse_lowlevel.h>

#include "files/waiting.h"

extern const struct waiting_kind status_waiting;

enum status_wait_kind {
	STATUS_WAIT_OPEN,
	STATUS_WAIT_JOBS,  /* an OPEN, too */
	STATUS_WAIT_HOSTS, /* likewise */
	STATUS_WAIT_OPENDIR,
	STATUS_WAIT_LOOKUP,
};

/* Parks the request until the store has answered. OPEN needs the text of the queue of `lock` (NULL:
 * of all locks, for which each store is asked), JOBS the runs of all jobs, HOSTS the hosts of each
 * store, the other kinds what exists at the lock's path. LOOKUP is answered with a node of the path
 * below the mount. `info` is that of OPEN and OPENDIR.
 *
 * A signal ends the wait with EINTR, a store that does not answer for a while with ETIMEDOUT. Where
 * other stores have answered, the text has a line in place of that store's locks:
 * "lock=PREFIX/ error=ETIMEDOUT". HOSTS has a line for each store in front of its hosts:
 *
 *     store=zookeeper root=/dlockfs settings=2f0c6a4be1d37a55 prefix=cron
 *
 * with the number of this host's settings that have to be alike on all (config/alike.h), with
 * told=no if the store does not tell which hosts it has, and with error= as above. */
void status_wait(fuse_req_t req, enum status_wait_kind kind, const char *path, const char *lock,
		 const struct fuse_file_info *info);

#endif
