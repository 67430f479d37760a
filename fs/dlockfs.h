/* SPDX-License-Identifier: Apache-2.0
 *
 * The ioctl(2) calls of dlockfs's lock files, which programs can use besides the usual calls.
 */
#ifndef DLOCKFS_H
#define DLOCKFS_H

#include <stdint.h>
#include <sys/ioctl.h>

/* The fencing token of the lock that was taken through this open file, by flock(2), exclusive open
 * or record locks, by any process:
 *
 *     uint64_t token;
 *     if (ioctl(fd, DLOCKFS_IOC_TOKEN, &token) < 0)
 *             err(1, "the lock is lost");
 *
 * A token is greater than every token of a lock of the same name that conflicts and was granted
 * before, on any host. Send the token with each request to the service that the lock protects; the
 * service has to refuse a request whose token is smaller than one it has seen. Then a holder that
 * was stopped, and lost its lock without knowing, can do no harm.
 *
 * Tokens of the store local: begin with the time of day at which the daemon was started, in
 * nanoseconds: a daemon that is started after the clock was set back may begin below former tokens.
 *
 * The token stays the same until something new is granted through the open file. Each call writes
 * to, or asks, a majority of the servers: an answer shows that the lock is held. If another thread
 * releases the lock and locks anew during the call, the token is of a lock that was held at some
 * moment of the call, never of one that was released before the call. The token of the lock before
 * is smaller, and is refused once another holder has come in between.
 *
 * Fails with EIO: the lock is lost, close the file; ENODATA: nothing is locked through this open
 * file; EINTR: a signal; EACCES: the servers do not let the claim be read or changed; EMSGSIZE: it
 * is longer than they take; ENOTTY: this is no file of dlockfs. */
#define DLOCKFS_IOC_TOKEN _IOR(0xDF, 1, uint64_t)

/* When the lease ends that protects the locks of this open file, unless it is renewed until then,
 * in milliseconds of CLOCK_BOOTTIME; INT64_MAX if it cannot end. A program that is told of no later
 * end until then has to stop using what the lock protects, even if the descriptor does not report a
 * loss: the daemon hangs.
 *
 * The daemon's own clock is not slewed, but CLOCK_BOOTTIME may be (adjtimex(2)): a program that
 * waits until then may be late by as much of the time that was left, by a tenth at most. So it
 * should ask again before that, or count what is left by CLOCK_MONOTONIC_RAW.
 *
 * The answer comes from the daemon's memory. Fails as DLOCKFS_IOC_TOKEN, but for EACCES. */
#define DLOCKFS_IOC_LEASE _IOR(0xDF, 4, int64_t)

/* The number of the slot by which the lock is held that was taken through this open file, where the
 * configuration lets several hold it (`slots` of dlockfs.ini(5)): from 0 on, below `slots`, and of
 * no other holder on any host while the lock is held.
 *
 * The answer comes from the daemon's memory. Fails as DLOCKFS_IOC_LEASE; ENODATA also where only
 * one may hold the lock, and if that was so when it was asked for. */
#define DLOCKFS_IOC_SLOT _IOR(0xDF, 5, uint64_t)

/* Steering from outside: for descriptors of MOUNT/.dlockfs/locks/NAME, open for reading; the caller
 * need not hold anything. `claim` is the value of "claim=" on a line of that file, with its %XX
 * decoded, and a zero behind it.
 *
 * REVOKE asks the holder, on any host, to release the lock: the holder's descriptor reports
 * POLLPRI. BREAK takes the claim away: a holder has lost the lock, as if with its session; a
 * waiting call waits anew, at the end of the queue. Root may do both, and the user whose claim it
 * is, on any host, and the `owner` that dlockfs.ini(5) gives the lock. dlockctl(1) does.
 *
 * Fail with ENOENT: the claim is gone; EACCES or EPERM: not allowed, to this user or by the
 * servers; EINVAL: the claim waits, and so cannot be asked; EIO or ETIMEDOUT: the store does not
 * answer; EINTR: a signal; ENOTTY: this is no file of .dlockfs/locks.
 *
 * The line of a lock file (`style = file`) has such a value, too. BREAK removes
 * the file, REVOKE sends the process that made it the signal of `on_revoke`. Besides the above they
 * fail with ENOTEMPTY: a directory with names in it; EREMOTE: another host made the file; ESRCH:
 * the process has ended, or is not known; EOPNOTSUPP: no signal is set. */
struct dlockfs_steer {
	char claim[256];
};
#define DLOCKFS_IOC_REVOKE _IOW(0xDF, 2, struct dlockfs_steer)
#define DLOCKFS_IOC_BREAK  _IOW(0xDF, 3, struct dlockfs_steer)

#endif
