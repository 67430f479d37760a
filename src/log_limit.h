/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a message that would come again and again from filling the log: one about the same
 * subject, for the same reason, is written once in LOG_LIMIT_MS. Of different ones the latest
 * LOG_LIMIT_LINES are remembered. Does not allocate. For one thread, or guarded by the caller.
 */
#ifndef DLOCKFS_LOG_LIMIT_H
#define DLOCKFS_LOG_LIMIT_H

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
	size_t next; /* to be forgotten */
};

/* Whether to write a message about the first bytes of `subject`, of the kind `what`, for this
 * reason; then it counts as written at this time, by any clock that does not go back. */
bool log_limit_passes(struct log_limit *limit, int64_t now_ms, const char *what,
		      const char *subject, size_t subject_bytes, int reason);

#endif
