/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns copies of requests. Loop thread only.
 */
#include "files/kept_request.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/request.h"
#include "files/user.h"
#include "journal/journal.h"
#include "kernel/request.h"

struct kept_request {
	struct state_item item;		  /* first */
	struct kept_request *prev, *next; /* in requests->kept */
	uint64_t serial;
	struct user *user; /* with what a long one counts for; NULL: nothing */
	uint32_t bytes;
	bool begun;
	unsigned char text[]; /* as the kernel sent it */
};

static void write_line(const void *request, size_t bytes, bool begun, FILE *out)
{
	state_begin(out, "request");
	state_bytes(out, "bytes", request, bytes);
	state_flag(out, "begun", begun);
	state_end(out);
}

void kept_request_write(const void *request, size_t bytes, FILE *out)
{
	write_line(request, bytes, false, out);
}

static struct state_place place(const struct state_item *item)
{
	const struct kept_request *request = (const struct kept_request *)item;
	return (struct state_place){{STATE_PLACE_REQUEST, request->serial}};
}

static void save(const struct state_item *item, FILE *out)
{
	const struct kept_request *request = (const struct kept_request *)item;
	write_line(request->text, request->bytes, request->begun, out);
}

static void mark(struct filesystem *filesystem, struct kept_request *request)
{
	static const struct state_kind kind = {place, save};
	state_journal_mark(filesystem->journal, &request->item, &kind);
}

/* Returns NULL when out of memory. */
static struct kept_request *create(struct filesystem *filesystem, const void *text, size_t bytes,
				   bool begun)
{
	struct kept_request *request = calloc(1, sizeof(*request) + bytes);

	if (request == NULL)
		return NULL;
	size_t shares = user_shares_of_request(bytes);
	if (shares > 0)
		request->user =
			user_add(filesystem->users, request_header(text).uid, USER_WAITERS, shares);
	if (shares > 0 && request->user == NULL) {
		free(request);
		return NULL;
	}
	request->serial = ++filesystem->requests->last_serial;
	request->begun = begun;
	request->bytes = (uint32_t)bytes;
	memcpy(request->text, text, bytes);
	DL_APPEND(filesystem->requests->kept, request);
	mark(filesystem, request);
	return request;
}

int kept_request_create(struct filesystem *filesystem, struct kept_request **ret)
{
	const struct requests *requests = filesystem->requests;

	*ret = NULL;
	if (requests->handled == NULL)
		return 0;
	*ret = create(filesystem, requests->handled, requests->handled_bytes,
		      kept_request_has_begun(requests->resumed));
	return *ret != NULL ? 0 : -ENOMEM;
}

void kept_request_begin(struct filesystem *filesystem, struct kept_request *request)
{
	if (request == NULL || request->begun)
		return;
	request->begun = true;
	mark(filesystem, request);
}

bool kept_request_has_begun(const struct kept_request *request)
{
	return request != NULL && request->begun;
}

int kept_request_restore(struct filesystem *filesystem, struct state_reader *in)
{
	size_t bytes;
	const void *text = state_get_bytes(in, "bytes", &bytes);

	if (bytes < sizeof(struct fuse_in_header) || bytes > REQUEST_BYTES_MAX)
		return state_refuse(in, "bytes", "a request");
	bool begun = state_find_flag(in, "begun");
	return create(filesystem, text, bytes, begun) != NULL ? 0 : state_starve(in);
}

void kept_request_resume_all(struct filesystem *filesystem)
{
	struct requests *requests = filesystem->requests;
	const struct kept_request *request;
	size_t count;

	/* To handle a request may keep it once more, at the end of the list. */
	DL_COUNT(requests->kept, request, count);
	for (; count > 0; count--) {
		struct kept_request *first = requests->kept;
		struct fuse_buf buffer = {.mem = first->text, .size = first->bytes};
		requests->resumed = first;
		request_handle(filesystem, &buffer);
		requests->resumed = NULL;
		kept_request_free(filesystem, first);
	}
}

void kept_request_free(struct filesystem *filesystem, struct kept_request *request)
{
	if (request == NULL)
		return;
	state_journal_remove(filesystem->journal, &request->item);
	DL_DELETE(filesystem->requests->kept, request);
	user_leave(filesystem->users, request->user, USER_WAITERS,
		   user_shares_of_request(request->bytes));
	free(request);
}

void kept_request_save_all(const struct requests *requests, FILE *out)
{
	const struct kept_request *request;

	DL_FOREACH (requests->kept, request) {
		save(&request->item, out);
	}
}
