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
	struct held *prev, *next; /* in filesystem->held */
	struct filesystem *filesystem;
	fuse_req_t req;
	struct kept_request *kept;
	struct user *user; /* with a share of USER_WAITERS */
	uint64_t serial;
	size_t bytes;
	unsigned char request[]; /* as the kernel sent it */
};

static void free_held(struct held *held)
{
	struct filesystem *filesystem = held->filesystem;

	DL_DELETE(filesystem->held, held);
	kept_request_free(filesystem, held->kept);
	user_leave(&filesystem->users, held->user, USER_WAITERS, 1);
	free(held);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	free_held(data);
	fuse_reply_err(req, EINTR);
}

static struct held *create(struct filesystem *filesystem, uid_t uid)
{
	const struct requests *requests = &filesystem->requests;
	struct held *held = NULL;

	if (requests->handled != NULL)
		held = calloc(1, sizeof(*held) + requests->handled_bytes);
	if (held == NULL)
		return NULL;
	held->filesystem = filesystem;
	held->bytes = requests->handled_bytes;
	memcpy(held->request, requests->handled, held->bytes);
	DL_APPEND(filesystem->held, held);
	held->user = user_add(&filesystem->users, uid, USER_WAITERS, 1);
	if (held->user != NULL && kept_request_create(filesystem, &held->kept) == 0)
		return held;
	free_held(held);
	return NULL;
}

bool held_hold(fuse_req_t req, uid_t uid, bool knows_eintr, uint64_t serial)
{
	struct held *held = create(filesystem_of(req), uid);

	if (held == NULL)
		return false;
	held->req = req;
	held->serial = serial;
	if (knows_eintr && fuse_req_interrupted(req))
		on_interrupt(req, held);
	else if (knows_eintr)
		fuse_req_interrupt_func(req, on_interrupt, held);
	return true;
}

uint64_t held_serial(const struct filesystem *filesystem)
{
	return filesystem->held_serial;
}

void held_wake(struct filesystem *filesystem)
{
	filesystem->held_ready = true;
}

/* What it is held by from now on, if anything, comes to the end of the list. */
static void handle_again(struct held *held)
{
	struct filesystem *filesystem = held->filesystem;
	struct fuse_buf buffer = {.size = held->bytes, .mem = malloc(held->bytes)};

	if (buffer.mem == NULL) {
		held_wake(filesystem);
		return;
	}
	memcpy(buffer.mem, held->request, held->bytes);
	filesystem->held_serial = held->serial;
	fuse_reply_none(held->req); /* libfuse makes another one of it */
	free_held(held);
	filesystem_handle(filesystem, &buffer);
	filesystem->held_serial = 0;
	free(buffer.mem);
}

bool held_go_on(struct filesystem *filesystem)
{
	struct held *held;
	size_t count;

	if (!filesystem->held_ready)
		return false;
	filesystem->held_ready = false;
	DL_COUNT(filesystem->held, held, count);
	for (; count > 0 && filesystem->held != NULL; count--)
		handle_again(filesystem->held);
	return true;
}

void held_refuse_all(struct filesystem *filesystem)
{
	while (filesystem->held != NULL) {
		fuse_req_t req = filesystem->held->req;
		free_held(filesystem->held);
		fuse_reply_err(req, EIO);
	}
}
