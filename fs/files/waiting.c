/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what all requests that wait have. Loop thread only.
 */
#include "files/waiting.h"

#include <errno.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/kept_request.h"

int waiting_count(struct filesystem *filesystem, const struct waiting_kind *kind,
		  struct waiting *waiting, uid_t uid, size_t amount)
{
	if (user_add(filesystem->users, uid, kind->share, amount) == NULL)
		return -ENOMEM;
	waiting->uid = uid;
	waiting->shares += (uint32_t)amount;
	return 0;
}

void waiting_uncount(struct filesystem *filesystem, const struct waiting_kind *kind,
		     struct waiting *waiting)
{
	struct users *users = filesystem->users;

	if (waiting->shares > 0)
		user_leave(users, user_find(users, waiting->uid), kind->share, waiting->shares);
	waiting->shares = 0;
}

int waiting_hold(const struct waiting_kind *kind, struct waiting *waiting, fuse_req_t req)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct kept_request *kept = NULL;

	/* One thread reads all requests, so no interrupt comes between this and the last step; and
	 * libfuse must not find the request answered when fuse_req_interrupt_func() returns. */
	if (kind->on_interrupt != NULL && fuse_req_interrupted(req))
		return -EINTR;
	if (!kind->saves_itself && kept_request_create(filesystem, &kept) != 0)
		return -ENOMEM;
	waiting_answered(filesystem, kind, waiting);
	if (!kind->saves_itself)
		waiting->kept = kept;
	waiting->req = req;
	if (kind->on_interrupt != NULL)
		fuse_req_interrupt_func(req, kind->on_interrupt, waiting);
	return 0;
}

void waiting_answered(struct filesystem *filesystem, const struct waiting_kind *kind,
		      struct waiting *waiting)
{
	waiting->req = NULL;
	if (kind->saves_itself)
		return;
	kept_request_free(filesystem, waiting->kept);
	waiting->kept = NULL;
}

void waiting_end(struct filesystem *filesystem, const struct waiting_kind *kind,
		 struct waiting *waiting)
{
	waiting_answered(filesystem, kind, waiting);
	waiting_uncount(filesystem, kind, waiting);
}

void waiting_refuse_all(struct waiting *list, const struct waiting_kind *kind, int error)
{
	struct waiting *waiting, *next;

	DL_FOREACH_SAFE (list, waiting, next) {
		kind->refuse(waiting, error);
	}
}

void waiting_advance(struct waiting *list, const struct waiting_kind *kind, int64_t now_ms)
{
	struct waiting *waiting, *next;

	DL_FOREACH_SAFE (list, waiting, next) {
		if (kind->deadline(waiting) <= now_ms)
			kind->advance(waiting);
	}
}

int64_t waiting_deadline(const struct waiting *list, const struct waiting_kind *kind)
{
	const struct waiting *waiting;
	int64_t first_ms = INT64_MAX;

	DL_FOREACH (list, waiting) {
		int64_t deadline_ms = kind->deadline(waiting);
		if (deadline_ms < first_ms)
			first_ms = deadline_ms;
	}
	return first_ms;
}
