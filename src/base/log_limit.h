/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps repeated messages from filling the log: a message about the same subject, for the same
 * reason, is written once in LOG_LIMIT_MS, and at most LOG_LIMIT_LINES different ones are written
 * in that time. Others are left out; a line tells how many so far, also once in LOG_LIMIT_MS. Does
 * not allocate. For one thread, or guarded by the caller.
 */
#ifndef DLOCKFS_BASE_LOG_LIMIT_H
#define DLOCKFS_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_LIMIT_MS = 10000, LOG_LIMIT_LINES = 64 };

/* Zero at first. */
struct log_limit {
	struct {
		uint64_t line; /* a hash; 0: free */
		int64_t at_ms;
	} written[LOG_LIMIT_LINES];
	uint64_t left_out; /* for want of room */
	uint64_t told;	   /* how many of them the log has been told of */
	int64_t told_at_ms;
};

/* Whether to write a message about the first bytes of `subject`, of the kind `what`, for this
 * reason. If so, the message counts as written at `now_ms`, by any clock that does not go back.
 * Also writes the line about messages that were left out. */
bool log_limit_passes(struct log_limit *limit, int64_t now_ms, const char *what,
		      const char *subject, size_t subject_bytes, int reason);

#endif
