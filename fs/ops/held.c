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
#include "files/kept_request.h"
#include "files/user.h"

struct held {
	struct held *prev, *next; /* in filesystem->held, or held_until */
	struct filesystem *filesystem;
	fuse_req_t req;
	struct kept_request *kept;
	struct user *user; /* with a share of USER_WAITERS; NULL: the call has one already */
	struct request_pass pass;
	int64_t due_ms; /* 0: when it is woken */
	size_t bytes;
	unsigned char request[]; /* as the kernel sent it */
};

static struct held **list_of(const struct held *held)
{
	struct filesystem *filesystem = held->filesystem;
	return held->due_ms != 0 ? &filesystem->held_until : &filesystem->held;
}

static void free_held(struct held *held)
{
	struct filesystem *filesystem = held->filesystem;

	DL_DELETE(*list_of(held), held);
	kept_request_free(filesystem, held->kept);
	user_leave(&filesystem->users, held->user, USER_WAITERS, 1);
	free(held);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	free_held(data);
	fuse_reply_err(req, EINTR);
}

static int compare(const struct held *a, const struct held *b)
{
	return (a->due_ms > b->due_ms) - (a->due_ms < b->due_ms);
}

/* Most are due later than all others. */
static void enter(struct held *held)
{
	struct held **list = list_of(held);

	if (*list == NULL || (*list)->prev->due_ms <= held->due_ms)
		DL_APPEND(*list, held);
	else
		DL_INSERT_INORDER(*list, held, compare);
}

static struct held *create(fuse_req_t req, int64_t due_ms, bool counted)
{
	struct filesystem *filesystem = filesystem_of(req);
	const struct requests *requests = &filesystem->requests;
	struct held *held = NULL;

	if (requests->handled != NULL)
		held = calloc(1, sizeof(*held) + requests->handled_bytes);
	if (held == NULL)
		return NULL;
	held->filesystem = filesystem;
	held->req = req;
	held->pass = requests->pass;
	held->due_ms = due_ms;
	held->bytes = requests->handled_bytes;
	memcpy(held->request, requests->handled, held->bytes);
	enter(held);
	if (!counted)
		held->user = user_add(&filesystem->users, fuse_req_ctx(req)->uid, USER_WAITERS, 1);
	if ((counted || held->user != NULL) && kept_request_create(filesystem, &held->kept) == 0)
		return held;
	free_held(held);
	return NULL;
}

static bool hold(fuse_req_t req, bool knows_eintr, struct held *held)
{
	if (held == NULL)
		return false;
	if (knows_eintr && fuse_req_interrupted(req))
		on_interrupt(req, held);
	else if (knows_eintr)
		fuse_req_interrupt_func(req, on_interrupt, held);
	return true;
}

bool held_hold(fuse_req_t req, bool knows_eintr, int64_t due_ms)
{
	return hold(req, knows_eintr, create(req, due_ms, false));
}

bool held_hold_counted(fuse_req_t req, bool knows_eintr, int64_t due_ms)
{
	return hold(req, knows_eintr, create(req, due_ms, true));
}

void held_wake(struct filesystem *filesystem)
{
	filesystem->held_ready = true;
}

/* If it is held again, it comes to the end of the list. */
static void handle_again(struct held *held)
{
	struct filesystem *filesystem = held->filesystem;
	struct fuse_buf buffer = {.size = held->bytes, .mem = malloc(held->bytes)};

	if (buffer.mem == NULL) {
		fuse_reply_err(held->req, ENOMEM);
		free_held(held);
		return;
	}
	memcpy(buffer.mem, held->request, held->bytes);
	filesystem->requests.pass = held->pass;
	fuse_reply_none(held->req); /* libfuse makes another one of it */
	free_held(held);
	filesystem_handle(filesystem, &buffer);
	free(buffer.mem);
}

/* As many as there are now. */
static void handle_woken(struct filesystem *filesystem)
{
	struct held *held;
	size_t count;

	filesystem->held_ready = false;
	DL_COUNT(filesystem->held, held, count);
	for (; count > 0 && filesystem->held != NULL; count--)
		handle_again(filesystem->held);
}

bool held_go_on(struct filesystem *filesystem)
{
	bool woken = filesystem->held_ready;
	bool due = held_deadline(filesystem) <= filesystem->now_ms;

	if (woken)
		handle_woken(filesystem);
	while (held_deadline(filesystem) <= filesystem->now_ms)
		handle_again(filesystem->held_until);
	return woken || due;
}

int64_t held_deadline(const struct filesystem *filesystem)
{
	return filesystem->held_until != NULL ? filesystem->held_until->due_ms : INT64_MAX;
}

static void refuse_all(struct held **list)
{
	while (*list != NULL) {
		fuse_req_t req = (*list)->req;
		free_held(*list);
		fuse_reply_err(req, EIO);
	}
}

void held_refuse_all(struct filesystem *filesystem)
{
	refuse_all(&filesystem->held);
	refuse_all(&filesystem->held_until);
}
