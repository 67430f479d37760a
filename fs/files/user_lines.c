/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the counts of lines. Loop thread only.
 */
#include "files/user_lines.h"

#include <inttypes.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "files/user.h"

/* journald takes, as it is set by default, 10,000 lines in 30 s of a service, and leaves out what
 * is over that whoever it is about: one user may have a third of it. */
static const struct rate_limit limits[USER_LINES_KINDS] = {
	[USER_LINES_EVENTS] = {.per_second = 2, .at_once = 100},
	[USER_LINES_AUDIT] = {.per_second = 100, .at_once = 1000},
};

static bool is_unused(struct user_lines_share *share, int64_t now_ms)
{
	for (int kind = 0; kind < USER_LINES_KINDS; kind++) {
		if (share->left_out[kind] > 0 ||
		    !rate_is_unused(&share->rates[kind], &limits[kind], now_ms))
			return false;
	}
	return true;
}

static struct user_lines_share *find(struct user_lines *lines, uid_t uid, int64_t now_ms)
{
	struct user_lines_share *free = &lines->shares[USER_LINES_USERS];

	for (int i = 0; i < USER_LINES_USERS; i++) {
		struct user_lines_share *share = &lines->shares[i];
		if (share->taken && share->uid == uid)
			return share;
		if (free == &lines->shares[USER_LINES_USERS] && is_unused(share, now_ms))
			free = share;
	}
	free->taken = true;
	free->uid = uid;
	return free;
}

bool user_lines_pass(struct filesystem *filesystem, uid_t uid, enum user_lines_kind kind)
{
	struct user_lines *lines = filesystem->users->lines;

	if (!user_is_limited(uid))
		return true;
	struct user_lines_share *share = find(lines, uid, filesystem->now_ms);
	if (rate_take(&share->rates[kind], &limits[kind], filesystem->now_ms))
		return true;
	if (share->left_out[kind]++ == 0)
		share->since_ms[kind] = filesystem->now_ms;
	timers_advance(&filesystem->due.timers, &filesystem->due.lines,
		       share->since_ms[kind] + USER_LINES_TELL_MS);
	return false;
}

bool user_lines_next(struct filesystem *filesystem, enum user_lines_kind kind, bool all, uid_t *uid,
		     uint64_t *count)
{
	for (int i = 0; i <= USER_LINES_USERS; i++) {
		struct user_lines_share *share = &filesystem->users->lines->shares[i];
		int64_t due_ms = share->since_ms[kind] + USER_LINES_TELL_MS;

		if (share->left_out[kind] == 0 || (!all && due_ms > filesystem->now_ms))
			continue;
		*uid = share->uid;
		*count = share->left_out[kind];
		share->left_out[kind] = 0;
		return true;
	}
	return false;
}

void user_lines_tell(struct filesystem *filesystem, bool all)
{
	uint64_t count;
	uid_t uid;

	while (user_lines_next(filesystem, USER_LINES_EVENTS, all, &uid, &count))
		log_warning("user %u: and %" PRIu64 " more messages were left out", uid, count);
}

int64_t user_lines_deadline(const struct user_lines *lines)
{
	int64_t first_ms = INT64_MAX;

	for (int i = 0; i <= USER_LINES_USERS; i++) {
		const struct user_lines_share *share = &lines->shares[i];
		for (int kind = 0; kind < USER_LINES_KINDS; kind++) {
			int64_t due_ms = share->since_ms[kind] + USER_LINES_TELL_MS;
			if (share->left_out[kind] > 0 && due_ms < first_ms)
				first_ms = due_ms;
		}
	}
	return first_ms;
}
