/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state. Two messages with the same hash count as the same.
 */
#include "base/log_limit.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	return hash;
}

/* The index of the line, else that of a free one; LOG_LIMIT_LINES: there is no room. */
static size_t find(const struct log_limit *limit, uint64_t line, int64_t now_ms)
{
	size_t room = LOG_LIMIT_LINES;

	for (size_t i = 0; i < LOG_LIMIT_LINES; i++) {
		if (limit->written[i].line == line)
			return i;
		if (limit->written[i].line == 0 || now_ms - limit->written[i].at_ms >= LOG_LIMIT_MS)
			room = i;
	}
	return room;
}

/* Whether the line may be written; if so, notes that it is. */
static bool note(struct log_limit *limit, uint64_t line, int64_t now_ms)
{
	size_t at = find(limit, line, now_ms);

	if (at == LOG_LIMIT_LINES) {
		limit->left_out++;
		return false;
	}
	if (limit->written[at].line == line && now_ms - limit->written[at].at_ms < LOG_LIMIT_MS)
		return false;
	limit->written[at].line = line;
	limit->written[at].at_ms = now_ms;
	return true;
}

static void tell_left_out(struct log_limit *limit, int64_t now_ms)
{
	if (limit->left_out == limit->told ||
	    (limit->told > 0 && now_ms - limit->told_at_ms < LOG_LIMIT_MS))
		return;
	limit->told = limit->left_out;
	limit->told_at_ms = now_ms;
	log_warning("more than %d different messages in %d s: %" PRIu64 " left out so far",
		    LOG_LIMIT_LINES, LOG_LIMIT_MS / 1000, limit->left_out);
}

bool log_limit_passes(struct log_limit *limit, int64_t now_ms, const char *what,
		      const char *subject, size_t subject_bytes, int reason)
{
	uint64_t line = 0xcbf29ce484222325u;
	bool passes;

	line = hash(line, &reason, sizeof(reason));
	line = hash(line, what, strlen(what) + 1);
	line = hash(line, subject, subject_bytes) | 1;
	passes = note(limit, line, now_ms);
	tell_left_out(limit, now_ms);
	return passes;
}
