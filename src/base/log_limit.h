/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps messages that would come again and again from filling the log: one about the same subject,
 * for the same reason, is written once in LOG_LIMIT_MS, and in that time LOG_LIMIT_LINES different
 * ones. Others are left out; a line says how many so far, once in LOG_LIMIT_MS too. Does not
 * allocate. For one thread, or guarded by the caller.
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
	uint64_t left_out; /* because there was no room */
	uint64_t told;	   /* so many of them were */
	int64_t told_at_ms;
};

/* Whether to write a message about the first bytes of `subject`, of the kind `what`, for this
 * reason; then it counts as written at this time, by any clock that does not go back. Writes the
 * line about those that were left out. */
bool log_limit_passes(struct log_limit *limit, int64_t now_ms, const char *what,
		      const char *subject, size_t subject_bytes, int reason);

#endif
