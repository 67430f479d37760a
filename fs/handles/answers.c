/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the answers between libfuse and the kernel.
 */
#include "handles/answers.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/transfer.h"
#include "files/filesystem.h"
#include "files/shard.h"
#include "handles/handle.h"
#include "journal/journal.h"
#include "kernel/request.h"

/* How many bytes the number of the open file takes that an answer tells of. */
#define NUMBER_BYTES sizeof(uint64_t)

struct answers {
	bool collects;
	bool tells;	 /* one of those that were collected tells of a lock */
	uint64_t number; /* of the open file that the next answer tells of; 0: of none */
	char *bytes;	 /* one answer behind the other */
	size_t used, capacity;
	struct iovec *list; /* each in bytes, once they are to be sent: what the kernel gets, and
			       behind it the number, if there is one */
	size_t count, list_capacity;
};

/* Makes room for an answer of `length` bytes. Returns where to put it; NULL: out of memory. */
static char *make_room(struct answers *answers, size_t length)
{
	if (answers->count == answers->list_capacity) {
		size_t wanted = answers->list_capacity > 0 ? answers->list_capacity * 2 : 16;
		struct iovec *grown = reallocarray(answers->list, wanted, sizeof(*answers->list));
		if (grown == NULL)
			return NULL;
		answers->list = grown;
		answers->list_capacity = wanted;
	}
	if (answers->capacity - answers->used < length) {
		size_t wanted = answers->used + length + 4096;
		char *grown = realloc(answers->bytes, wanted * 2);
		if (grown == NULL)
			return NULL;
		answers->bytes = grown;
		answers->capacity = wanted * 2;
	}
	return answers->bytes + answers->used;
}

static void collect(struct answers *answers, const struct iovec *parts, int count, char *at)
{
	struct iovec *answer = &answers->list[answers->count++];

	answer->iov_len = 0;
	for (int i = 0; i < count; i++) {
		memcpy(at + answer->iov_len, parts[i].iov_base, parts[i].iov_len);
		answer->iov_len += parts[i].iov_len;
	}
	if (answers->number != 0) {
		memcpy(at + answer->iov_len, &answers->number, NUMBER_BYTES);
		answer->iov_len += NUMBER_BYTES;
		answers->tells = true;
	}
	answers->used += answer->iov_len;
}

static ssize_t write_answer(int descriptor, struct iovec *parts, int count, void *userdata)
{
	const struct filesystem *filesystem = userdata;
	struct answers *answers = filesystem->answers;
	struct fuse_out_header header;
	size_t length = 0;

	memcpy(&header, parts[0].iov_base, sizeof(header));
	for (int i = 0; i < count; i++)
		length += parts[i].iov_len;
	/* Notifications, the only ones that other threads write, have no number. */
	if (header.unique == 0)
		return writev(descriptor, parts, count);
	char *at = answers->collects ? make_room(answers, length + NUMBER_BYTES) : NULL;
	if (at != NULL)
		collect(answers, parts, count, at);
	answers->number = 0;
	return at != NULL ? (ssize_t)length : writev(descriptor, parts, count);
}

static ssize_t read_request(int descriptor, void *buffer, size_t bytes, void *userdata)
{
	(void)userdata;
	return read(descriptor, buffer, bytes < REQUEST_BYTES_MAX ? bytes : REQUEST_BYTES_MAX);
}

int answers_begin(struct filesystem *filesystem)
{
	static const struct fuse_custom_io io = {.read = read_request, .writev = write_answer};
	struct answers *answers = calloc(1, sizeof(*answers));

	if (answers == NULL)
		return -ENOMEM;
	answers->collects = true;
	filesystem->answers = answers;
	int error = fuse_session_custom_io(filesystem->session, &io,
					   fuse_session_fd(filesystem->session));
	if (error != 0)
		answers_finish(filesystem);
	return error;
}

void answers_tell_of(const struct handle *handle)
{
	struct answers *answers = handle->filesystem->answers;

	if (answers != NULL)
		answers->number = handle->number;
}

bool answers_tell(const struct filesystem *filesystem)
{
	return filesystem->answers != NULL && filesystem->answers->tells;
}

static bool is_fenced(struct filesystem *filesystem, const void *number_bytes)
{
	uint64_t number;
	memcpy(&number, number_bytes, NUMBER_BYTES);
	const struct handle *handle = handle_of_number(filesystem->handles, number);
	return handle != NULL && handle->fenced;
}

static void send(struct filesystem *filesystem, const struct iovec *answer)
{
	const char *bytes = answer->iov_base;
	size_t length = answer->iov_len;
	struct fuse_out_header header = {0};

	if (length >= sizeof(header))
		memcpy(&header, bytes, sizeof(header));
	if (header.len >= sizeof(header) && header.len + NUMBER_BYTES == length) {
		length = header.len;
		if (is_fenced(filesystem, bytes + length)) {
			header.error = -EIO;
			header.len = length = sizeof(header);
			bytes = (const char *)&header;
		}
	}
	/* ENOENT: nobody waits for the answer any more. */
	if (write(fuse_session_fd(filesystem->session), bytes, length) < 0 && errno != ENOENT &&
	    errno != ENODEV)
		log_error("answering the kernel: %m");
}

void answers_send_again(struct filesystem *filesystem, const struct iovec *answers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		send(filesystem, &answers[i]);
}

static void send_collected(struct filesystem *filesystem, uint64_t handled)
{
	struct answers *answers = filesystem->answers;
	char *at = answers->bytes;

	for (size_t i = 0; i < answers->count; i++) {
		answers->list[i].iov_base = at;
		at += answers->list[i].iov_len;
	}
	if (filesystem->journal != NULL)
		state_journal_commit(filesystem->journal, handled, answers->list, answers->count);
	answers_send_again(filesystem, answers->list, answers->count);
	answers->count = 0;
	answers->used = 0;
	answers->tells = false;
}

void answers_send(struct filesystem *filesystem, uint64_t handled)
{
	if (filesystem->answers != NULL && filesystem->answers->collects)
		send_collected(filesystem, handled);
	for (size_t i = 0; filesystem->journal != NULL && i < filesystem->shards->count; i++)
		engine_send(filesystem->shards->list[i].engine);
}

void answers_end(struct filesystem *filesystem)
{
	if (filesystem->answers != NULL)
		filesystem->answers->collects = false;
}

void answers_finish(struct filesystem *filesystem)
{
	struct answers *answers = filesystem->answers;

	if (answers == NULL)
		return;
	free(answers->bytes);
	free(answers->list);
	free(answers);
	filesystem->answers = NULL;
}
