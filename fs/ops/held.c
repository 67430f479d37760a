/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns requests that are held. Loop thread only.
 */
#include "ops/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/request.h"
#include "files/waiting.h"
#include "ops/calls.h"

struct held {
	struct waiting waiting; /* first; in calls->held or held_until. It counts for nobody if
				   its call does already */
	struct filesystem *filesystem;
	struct request_pass pass;
	int64_t due_ms; /* 0: when it is woken */
	size_t bytes;
	unsigned char request[]; /* as the kernel sent it */
};

static struct held *held_of(struct waiting *waiting)
{
	return (struct held *)waiting; /* its first member */
}

static struct waiting **list_of(const struct held *held)
{
	struct filesystem *filesystem = held->filesystem;
	return held->due_ms != 0 ? &filesystem->calls->held_until : &filesystem->calls->held;
}

static void free_held(struct held *held)
{
	DL_DELETE(*list_of(held), &held->waiting);
	waiting_end(held->filesystem, &held_kind, &held->waiting);
	free(held);
}

static void refuse(struct waiting *waiting, int error)
{
	fuse_req_t req = waiting->req;

	free_held(held_of(waiting));
	fuse_reply_err(req, -error);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	refuse(data, -EINTR);
}

const struct waiting_kind held_kind = {.share = USER_WAITERS, .refuse = refuse};

/* That of a request whose call knows EINTR. */
static const struct waiting_kind interruptible_kind = {
	.share = USER_WAITERS, .on_interrupt = on_interrupt, .refuse = refuse};

static int compare(const struct waiting *a, const struct waiting *b)
{
	int64_t a_ms = ((const struct held *)a)->due_ms, b_ms = ((const struct held *)b)->due_ms;
	return (a_ms > b_ms) - (a_ms < b_ms);
}

/* Most are due later than all others. */
static void enter(struct held *held)
{
	struct filesystem *filesystem = held->filesystem;
	struct waiting **list = list_of(held), *waiting = &held->waiting;

	if (held->due_ms != 0)
		timers_advance(&filesystem->due.timers, &filesystem->due.held, held->due_ms);
	if (*list == NULL || compare((*list)->prev, waiting) <= 0)
		DL_APPEND(*list, waiting);
	else
		DL_INSERT_INORDER(*list, waiting, compare);
}

static struct held *create(struct filesystem *filesystem, int64_t due_ms)
{
	const struct requests *requests = filesystem->requests;
	struct held *held = NULL;

	if (requests->handled != NULL)
		held = calloc(1, sizeof(*held) + requests->handled_bytes);
	if (held == NULL)
		return NULL;
	held->filesystem = filesystem;
	held->pass = requests->pass;
	held->due_ms = due_ms;
	held->bytes = requests->handled_bytes;
	memcpy(held->request, requests->handled, held->bytes);
	enter(held);
	return held;
}

static bool hold(fuse_req_t req, bool knows_eintr, int64_t due_ms, bool counted)
{
	const struct waiting_kind *kind = knows_eintr ? &interruptible_kind : &held_kind;
	struct filesystem *filesystem = filesystem_of(req);
	struct held *held = create(filesystem, due_ms);
	int error = 0;

	if (held == NULL)
		return false;
	if (!counted)
		error = waiting_count(filesystem, kind, &held->waiting, fuse_req_ctx(req)->uid, 1);
	if (error == 0)
		error = waiting_hold(kind, &held->waiting, req);
	if (error == 0)
		return true;
	free_held(held);
	if (error == -EINTR)
		fuse_reply_err(req, EINTR);
	return error == -EINTR;
}

bool held_hold(fuse_req_t req, bool knows_eintr, int64_t due_ms)
{
	return hold(req, knows_eintr, due_ms, false);
}

bool held_hold_counted(fuse_req_t req, bool knows_eintr, int64_t due_ms)
{
	return hold(req, knows_eintr, due_ms, true);
}

void held_wake(struct filesystem *filesystem)
{
	filesystem->calls->held_ready = true;
}

/* If it is held again, it comes to the end of the list. */
static void handle_again(struct held *held)
{
	struct filesystem *filesystem = held->filesystem;
	struct fuse_buf buffer = {.size = held->bytes, .mem = malloc(held->bytes)};

	if (buffer.mem == NULL) {
		refuse(&held->waiting, -ENOMEM);
		return;
	}
	memcpy(buffer.mem, held->request, held->bytes);
	filesystem->requests->pass = held->pass;
	fuse_reply_none(held->waiting.req); /* libfuse makes another one of it */
	free_held(held);
	request_handle(filesystem, &buffer);
	free(buffer.mem);
}

/* As many as there are now. */
static void handle_woken(struct filesystem *filesystem)
{
	struct waiting **list = &filesystem->calls->held, *waiting;
	size_t count;

	filesystem->calls->held_ready = false;
	DL_COUNT(*list, waiting, count);
	for (; count > 0 && *list != NULL; count--)
		handle_again(held_of(*list));
}

void held_go_on(struct filesystem *filesystem)
{
	if (filesystem->calls->held_ready)
		handle_woken(filesystem);
}

void held_end(struct timer *timer)
{
	struct filesystem *filesystem = TIMER_WHOLE(timer, struct filesystem, due.held);
	struct waiting *first;

	while ((first = filesystem->calls->held_until) != NULL &&
	       held_of(first)->due_ms <= filesystem->now_ms)
		handle_again(held_of(first));
	if (first != NULL)
		timers_set(&filesystem->due.timers, timer, held_of(first)->due_ms);
}
