/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked about a key, and what is answered: of one server, and of all of them.
 */
#ifndef DLOCKFS_STORES_REDIS_VERB_H
#define DLOCKFS_STORES_REDIS_VERB_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a value of ours, and of what is read of others' values: the rest is cut off. */
enum { REDIS_VALUE_BYTES_MAX = 4096 };

/* Each is one atomic step at a server. Where replicas count (replicas.h), TAKE, RENEW and STAMP
 * have happened once enough of them have it, and are ambiguous as long as that is not known. */
enum redis_verb {
	/* Sets the key to the value, which is a new one each time, with an end after ttl_ms, unless
	 * the key is there. A TAKE that is not answered 0 is undone, also where the answer was
	 * lost, before anything else is asked of that server. */
	REDIS_TAKE,
	REDIS_RENEW, /* if the key has the value: it ends after ttl_ms from now on */
	/* If the key has the value: removes it, and tells who listens. Where the answer is lost, or
	 * there is no connection, it is asked again, until ttl_ms are over: then the key has ended
	 * by itself. */
	REDIS_GIVE,
	REDIS_STAMP, /* as REDIS_RENEW, and counts the key's counter up; with one server only */
	REDIS_READ,  /* the value that is there, and its end; has no value and no ttl_ms */
};

enum { REDIS_TTL_NEVER = -1, REDIS_TTL_UNKNOWN = -2 };

/* Whether it may be asked again soon, and be answered otherwise: an error of the service, or of an
 * answer. */
static inline bool verb_may_pass(int error)
{
	return error == -ECONNRESET || error == -ENOTCONN || error == -EAGAIN || error == -EROFS;
}

/* Valid during the call only. */
struct redis_answer {
	/* 0: done. -EEXIST (TAKE): the key is there. -ENOENT: the key is gone or has another value
	 * (RENEW, GIVE, STAMP), or there is none (READ). -EBADMSG: the key is of another type
	 * than the value's dialect has (dialect.h), or READ knows none of that type.
	 * -ECONNRESET is *ambiguous*: it may have happened, or may happen yet. Else it did not
	 * happen: -EACCES (NOAUTH, WRONGPASS, NOPERM), -ENOMEM (OOM), -EROFS (READONLY), -EAGAIN
	 * (LOADING, MASTERDOWN, BUSY, NOREPLICAS, CLUSTERDOWN ...), -EREMOTE (MOVED: a server of a
	 * cluster), -EIO. */
	int error;
	/* TAKE with -EEXIST, READ with 0: the value that is there (of Redisson's hash a field of
	 * it), any bytes, with a NUL behind them. NULL: not known. With -EBADMSG nothing is known
	 * of the holder. */
	const char *holder;
	size_t holder_bytes;
	int64_t ttl_ms; /* TAKE with -EEXIST, READ: until the key ends, or REDIS_TTL_...; else
			   REDIS_TTL_UNKNOWN */
	int64_t stamp;	/* STAMP */
};

#endif
