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

/* Times for what is locked next through this open file, by flock(2):
 *
 * `least_ms` as `min_hold` of dlockfs.ini(5): from the grant on, nobody else on any host gets the
 * lock for so long, however the hold ends. Also hosts without that key keep to it.
 * `most_ms` as `max_hold`: after so long the lock is lost. 0: none. Where the configuration says
 * something, too, the longer of the least times counts, and the shorter of the longest ones.
 *
 * What is locked already, or asked for by a call under way, stays as it was. A later call replaces
 * both times. Record locks, and an exclusive open, which has asked for its lock before, have none.
 *
 * Fails with EIO: the lock is lost; EINVAL: no such times; ENOMEM. */
struct dlockfs_term {
	int64_t least_ms; /* DLOCKFS_LEAST_MAX_MS at most, which is a day */
	int64_t most_ms;  /* DLOCKFS_MOST_MAX_MS at most, 30 days */
};
#define DLOCKFS_LEAST_MAX_MS (INT64_C(24) * 60 * 60 * 1000)
#define DLOCKFS_MOST_MAX_MS  (30 * DLOCKFS_LEAST_MAX_MS)
#define DLOCKFS_IOC_TERM     _IOW(0xDF, 11, struct dlockfs_term)

/* The runs of a job that the lock guards. They are kept in the store, beside the locks, and outlive
 * hosts and daemons; dlockctl(1) run with --once or --every writes them. All three fail with
 * EOPNOTSUPP in a store that keeps nothing, and with EIO if the store does not answer, or the lock
 * is lost.
 *
 * RUNS tells the latest ones, also to who holds nothing: a line for each, the latest last, as
 * "start=1795305254123 took=50 every=60000 status=0 token=4711 uid=0 host=web1 key=2026-11-29",
 * with a zero behind the last. `every` and `key` may be missing, values are encoded with %XX. That
 * is one read of the store. */
struct dlockfs_runs {
	char text[16000];
};
#define DLOCKFS_IOC_RUNS _IOR(0xDF, 8, struct dlockfs_runs)

/* Since when the lock is held through this open file, in milliseconds since 1970: when its token
 * was made, by the servers' clock. The token is to be asked for first. In a store whose servers
 * tell no time, etcd and local, it is the present time of this host. ENODATA: nothing is locked
 * through this open file. */
#define DLOCKFS_IOC_HELD_SINCE _IOR(0xDF, 9, int64_t)

/* Adds a run, in one transaction with the proof that the lock is still held through this open file.
 * It need not be added again: one that is there stays, also after EINTR. ENODATA: nothing is locked
 * through this open file; EINVAL: no such status, or times. */
struct dlockfs_run {
	int64_t start_ms; /* as HELD_SINCE has told */
	int64_t took_ms;  /* how long the command was under way */
	int64_t every_ms; /* the job's period; 0: none */
	uint64_t token;	  /* as DLOCKFS_IOC_TOKEN has told */
	int32_t status;	  /* 0: it has succeeded; to 255 */
	char key[68]; /* what it was for, 64 bytes at most, and a zero; empty: nothing special */
};
#define DLOCKFS_IOC_RAN _IOW(0xDF, 10, struct dlockfs_run)

/* A lock that outlives its holder, its daemon and its host: a *hold*, which stands until somebody
 * gives it back (DLOCKFS_IOC_HOLD_FOR), breaks it, or its time is over. dlockctl(1) hold makes one.
 *
 * MAY_HOLD says that what is locked next through this open file, by flock(2) in exclusive mode, may
 * become one. EOPNOTSUPP: the store has no holds, or the recipe curator-any is configured, or the
 * directory has `style = file`; EIO: the lock is lost; EPERM: the caller is neither root nor the
 * user as whom the daemon runs, nor the configured owner of the lock.
 *
 * HOLD makes it one. After success nothing is locked through the open file any more, and its lock
 * is the hold's. The hold keeps the slot that DLOCKFS_IOC_SLOT tells, and is in the way of whom the
 * lock was in the way of, at each moment. EIO: the lock was lost, and may be a hold; EINTR: it may
 * be one, too: the queue tells. ENODATA: nothing is locked through this open file; EINVAL: it was
 * locked without MAY_HOLD, or `owner` is empty or has no zero, or `for_ms` makes no sense;
 * EALREADY: it is under way; EACCES, EMSGSIZE: the servers do not take it, and it is locked as
 * before. */
#define DLOCKFS_IOC_MAY_HOLD _IO(0xDF, 12)
struct dlockfs_hold {
	char owner[128]; /* whose it is, as any text, and a zero behind it */
	int64_t for_ms;	 /* after so long it is over; 0: never; a year at most */
	uint64_t token;	 /* as DLOCKFS_IOC_TOKEN has told; 0: it was not asked for. For people */
};
#define DLOCKFS_IOC_HOLD _IOW(0xDF, 13, struct dlockfs_hold)

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

/* For a descriptor of MOUNT/.dlockfs/status, open for reading. 1: this host grants nothing new from
 * now on, also after a restart of the daemon, until it is told otherwise, is stopped or booted
 * anew. Who holds goes on; calls that wait do so without a place in a queue; others fail with
 * ENOLCK. 0: it grants again. dlockctl(1) drain and undrain do that.
 *
 * Fails with EPERM: the caller is neither root nor the user as whom the daemon runs; EINVAL:
 * another number. */
#define DLOCKFS_IOC_DRAIN _IOW(0xDF, 15, int32_t)
/* The same for a hold, which BREAK takes away, too: `for_ms` is its time from now on, 0: for ever,
 * or -1: it is given back. Fails with EINVAL also if the claim is no hold. */
struct dlockfs_hold_for {
	char claim[256];
	int64_t for_ms;
};
#define DLOCKFS_IOC_HOLD_FOR _IOW(0xDF, 14, struct dlockfs_hold_for)

#endif
