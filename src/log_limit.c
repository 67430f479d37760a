/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state. Two lines with the same hash are taken for one.
 */
#include "log_limit.h"

#include <string.h>

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	return hash;
}

bool log_limit_passes(struct log_limit *limit, int64_t now_ms, const char *what,
		      const char *subject, size_t subject_bytes, int reason)
{
	uint64_t line = 0xcbf29ce484222325u;

	line = hash(line, &reason, sizeof(reason));
	line = hash(line, what, strlen(what) + 1);
	line = hash(line, subject, subject_bytes) | 1;
	for (size_t i = 0; i < LOG_LIMIT_LINES; i++) {
		if (limit->written[i].line != line)
			continue;
		if (now_ms - limit->written[i].at_ms < LOG_LIMIT_MS)
			return false;
		limit->written[i].at_ms = now_ms;
		return true;
	}
	limit->written[limit->next].line = line;
	limit->written[limit->next].at_ms = now_ms;
	limit->next = (limit->next + 1) % LOG_LIMIT_LINES;
	return true;
}
