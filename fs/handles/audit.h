/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit, [mount] audit: a line in the log, and fields in the journal, for each lock that is
 * granted, refused, released or lost on this host, and for each fencing token that is told. A lock
 * that was granted while the audit was off has no line for its end. What is over the limit for each
 * user (files/user_lines.h) has none either, but is counted.
 *
 * Where the audit is off, each function here costs a look at the configuration. Where it is on,
 * nothing waits for the log (base/log_queue.h). Loop thread only.
 */
#ifndef DLOCKFS_HANDLES_AUDIT_H
#define DLOCKFS_HANDLES_AUDIT_H

#include <fuse_lowlevel.h>

#include "config/config.h"
#include "engine/engine.h"
#include "files/filesystem.h"

struct handle;
struct state_reader;

static inline bool audit_is_on(const struct filesystem *filesystem)
{
	return filesystem->config->audit;
}

/* A call for a lock through an open file. */
struct audit_call {
	fuse_req_t req;
	enum lock_kind kind;
	const struct fuse_lk_in *lock; /* of flock(2) and fcntl(2); NULL: it is not known */
	int64_t since_us;	       /* the request, as histogram_now_us() */
};

/* The call is decided, 0 or -errno. To be called if the audit is on, and before the answer, which
 * ends the request. */
void audit_decided(struct handle *handle, const struct audit_call *call, int result);

/* A call for a lock was refused without being parked. To be called before the answer. */
void audit_refused(fuse_req_t req, const char *path, enum lock_kind kind, int error);

/* Nothing is held by flock or exclusive open any more. */
void audit_released_file(struct handle *handle);

/* The owner of record locks has released its ranges in the span; `all`: the owner holds no range of
 * the lock any more. */
void audit_released_range(struct handle *handle, uint64_t owner, struct claim_span span, bool all);

/* The owner holds no range of the lock any more. */
void audit_released_ranges(struct handle *handle, uint64_t owner);

/* The open file is closed: what is still noted for the open file is released; or lost, if the open
 * file was fenced. */
void audit_closed(struct handle *handle);

/* What was locked through the open file is lost. */
void audit_lost(struct handle *handle);

/* Somebody asks for what is held through the open file. */
void audit_revoked(struct handle *handle);

/* The fencing token of what is held through the open file is told to the caller. */
void audit_told(fuse_req_t req, struct handle *handle, uint64_t token);

/* Writes a line for each user of whom lines were left out for long enough; `all`: for each user of
 * whom any were left out. */
void audit_tell_left_out(struct filesystem *filesystem, bool all);

/* The configuration has been read anew: where the audit is off, notes are dropped. */
void audit_reload(struct filesystem *filesystem);

/* Notes what the text `audit` of the present line says of the open file, if the audit is on. */
void audit_restore(struct handle *handle, struct state_reader *in);

#endif
