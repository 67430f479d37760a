/* SPDX-License-Identifier: Apache-2.0
 *
 * The keeper: a process that hardly ever changes, and holds what outlives the container of a
 * daemon. The parent of the daemon (run.h) connects, is given the shelf at once, and sends the
 * whole shelf anew whenever it changes.
 *
 *   state       is left by                          then
 *   served      the end of the connection           alone, or orphaned
 *   orphaned    the end of the daemon, by its       alone
 *               pidfd on the shelf
 *   alone       a connection: it is served          served
 *               the limit: nothing is kept          alone
 *
 * Who connects meanwhile waits in the socket's queue: so two daemons never have the mount. The end
 * of the connection is what the keeper goes by, because in a pid namespace of its own it does not
 * see the daemon's process.
 *
 * While nobody is there who could tell holders of a loss, the keeper ends the mount when they ought
 * to have been told (journal/deadline.h), by closing its descriptor, the last one: each call on a
 * file fails from then on. In any case it does so KEEP_LIMIT_MS after the daemon's end, because
 * calls that wait for an answer cannot be interrupted.
 *
 * Nothing waits for a client, and only root and the keeper's own user are heard (SO_PEERCRED).
 */
#ifndef DLOCKFS_KEEPER_KEEP_H
#define DLOCKFS_KEEPER_KEEP_H

#define KEEP_LIMIT_MS 60000

/* Listens at the path, in place of an earlier keeper. Ends the process by SIGTERM or SIGINT, or
 * returns -errno if the keeper cannot begin. */
int keep_run(const char *path);

#endif
