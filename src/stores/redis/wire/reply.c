/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns hiredis' reader, and the one reply that it is filling. Must not do I/O. Loop thread.
 */
#include "stores/redis/wire/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

/* What an array announces, in hiredis' function. */
#if HIREDIS_MAJOR >= 1
typedef size_t announced_t;
#else
typedef int announced_t;
#endif

struct reply_reader {
	redisReader *reader;
	struct reply reply;
};

static struct reply_reader *reader_of(const redisReadTask *task)
{
	return task->privdata;
}

/* The value that the task fills in; NULL: there is no room. Each task is counted once, before what
 * is in it. */
static struct reply_value *place(const redisReadTask *task, enum reply_kind kind)
{
	struct reply *reply = &reader_of(task)->reply;
	struct reply_value *value = &reply->value;

	if (task->parent != NULL) {
		if (task->parent->parent != NULL || reply->count == REPLY_ELEMENTS_MAX)
			return NULL;
		value = &reply->elements[reply->count++];
	}
	value->kind = kind;
	return value;
}

static void *on_string(const redisReadTask *task, char *text, size_t bytes)
{
	struct reply_value *value = place(task, task->type == REDIS_REPLY_ERROR	   ? REPLY_ERROR
						: task->type == REDIS_REPLY_STATUS ? REPLY_STATUS
										   : REPLY_STRING);

	if (value == NULL)
		return NULL;
	value->text = malloc(bytes + 1);
	if (value->text == NULL)
		return NULL;
	memcpy(value->text, text, bytes);
	value->text[bytes] = '\0';
	value->bytes = bytes;
	return value;
}

static void *on_array(const redisReadTask *task, announced_t announced)
{
	return task->parent == NULL && announced <= REPLY_ELEMENTS_MAX ? place(task, REPLY_ARRAY)
								       : NULL;
}

static void *on_integer(const redisReadTask *task, long long integer)
{
	struct reply_value *value = place(task, REPLY_INTEGER);

	if (value != NULL)
		value->integer = integer;
	return value;
}

static void *on_nil(const redisReadTask *task)
{
	return place(task, REPLY_NIL);
}

/* The objects that hiredis is given are parts of the reader. */
static void on_free(void *object)
{
	(void)object;
}

static void clear(struct reply *reply)
{
	free(reply->value.text);
	for (size_t i = 0; i < reply->count; i++)
		free(reply->elements[i].text);
	*reply = (struct reply){0};
}

struct reply_reader *reply_reader_create(void)
{
	/* Not those of RESP 3, which is not asked for. */
	static redisReplyObjectFunctions functions = {
		.createString = on_string,
		.createArray = on_array,
		.createInteger = on_integer,
		.createNil = on_nil,
		.freeObject = on_free,
	};
	struct reply_reader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		return NULL;
	reader->reader = redisReaderCreateWithFunctions(&functions);
	if (reader->reader == NULL) {
		free(reader);
		return NULL;
	}
	reader->reader->privdata = reader;
	return reader;
}

void reply_reader_destroy(struct reply_reader *reader)
{
	if (reader == NULL)
		return;
	redisReaderFree(reader->reader);
	clear(&reader->reply);
	free(reader);
}

int reply_reader_give(struct reply_reader *reader, const char *data, size_t bytes)
{
	if (reader->reader->err)
		return -EPROTO;
	if (reader->reader->len - reader->reader->pos + bytes > REPLY_BYTES_MAX)
		return -EPROTO;
	return redisReaderFeed(reader->reader, data, bytes) == REDIS_OK ? 0 : -ENOMEM;
}

int reply_reader_take(struct reply_reader *reader, const struct reply **ret)
{
	void *object = NULL;

	/* Of a reply that is still to be completed nothing must go. */
	if (reader->reader->ridx == -1)
		clear(&reader->reply);
	if (redisReaderGetReply(reader->reader, &object) != REDIS_OK)
		return -EPROTO;
	*ret = object != NULL ? &reader->reply : NULL;
	return 0;
}
