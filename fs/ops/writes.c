/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state. Loop thread only.
 */
#include "ops/writes.h"

#include "files/filesystem.h"
#include "files/request.h"
#include "files/user.h"
#include "files/user_writes.h"
#include "ops/held.h"

/* What is handled again has been let in. */
static bool has_paid(const struct requests *requests)
{
	return requests->pass.has_paid || requests->resumed != NULL;
}

/* Who may wait for nothing more is refused by what the call is for. */
static bool may_wait(const struct filesystem *filesystem, uid_t uid)
{
	const struct user *user = user_find(filesystem->users, uid);
	int64_t limit = user_limit(filesystem->config, USER_WAITERS);

	return user == NULL || user->counts[USER_WAITERS] < (size_t)limit;
}

static bool hold_until(fuse_req_t req, int64_t due_ms)
{
	struct filesystem *filesystem = filesystem_of(req);

	if (due_ms == 0 || !may_wait(filesystem, fuse_req_ctx(req)->uid) ||
	    !held_hold(req, true, due_ms))
		return false;
	filesystem->users->writes->delayed++;
	return true;
}

/* When the latest write of the user, which has not waited, would have been allowed. */
static int64_t later(fuse_req_t req)
{
	struct filesystem *filesystem = filesystem_of(req);

	if (has_paid(filesystem->requests))
		return 0;
	filesystem->requests->pass.has_paid = true;
	return user_writes_end(filesystem, fuse_req_ctx(req)->uid);
}

bool writes_hold(fuse_req_t req)
{
	struct filesystem *filesystem = filesystem_of(req);

	if (has_paid(filesystem->requests))
		return false;
	filesystem->requests->pass.has_paid = true;
	return hold_until(req, user_writes_add(filesystem, fuse_req_ctx(req)->uid));
}

void writes_count(fuse_req_t req)
{
	struct filesystem *filesystem = filesystem_of(req);

	if (!has_paid(filesystem->requests))
		user_writes_add(filesystem, fuse_req_ctx(req)->uid);
}

bool writes_hold_later(fuse_req_t req)
{
	return hold_until(req, later(req));
}

bool writes_hold_opening(fuse_req_t req, bool counted)
{
	int64_t due_ms = later(req);

	if (due_ms == 0 ||
	    !(counted ? held_hold_counted(req, true, due_ms) : held_hold(req, true, due_ms)))
		return false;
	filesystem_of(req)->users->writes->delayed++;
	return true;
}
