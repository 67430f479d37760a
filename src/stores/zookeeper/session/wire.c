/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is known of one connection: see wire.h. Must not know the store. Reads the requests,
 * which the client library has made, as far as their answers depend on them.
 */
#include "stores/zookeeper/session/wire.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <zookeeper/proto.h>
#include <zookeeper/zookeeper.h>

enum {
	XID_EVENT = -1,
	XID_PING = -2,
	XID_AUTH = -4,
	XID_WATCHES = -8,

	OP_ERROR = -1, /* in the result of a transaction */

	EVENT_FIRST = 1, /* created, deleted, changed, children */
	EVENT_LAST = 4,

	PASSWORD_BYTES = 16,
	INTRODUCTION_BYTES = 37, /* of the answer to the first frame */
	HEADER_BYTES = 16,	 /* of all other answers */
};

#define TIME_MAX_MS (INT64_C(1) << 50) /* since 1970 */

struct zookeeper_request {
	int32_t xid, type;
	size_t count;	/* of the operations of a transaction, */
	int32_t *types; /* and theirs */
};

/* What of a frame was not read yet. */
struct reader {
	const unsigned char *at;
	size_t left;
	bool bad; /* it was shorter than it says, or has what it must not have */
};

void zookeeper_wire_init(struct zookeeper_wire *wire)
{
	memset(wire, 0, sizeof(*wire));
}

static void drop_request(struct zookeeper_wire *wire)
{
	free(wire->requests[wire->first].types);
	wire->first = (wire->first + 1) % wire->room;
	wire->count--;
}

void zookeeper_wire_finish(struct zookeeper_wire *wire)
{
	while (wire->count > 0)
		drop_request(wire);
	free(wire->requests);
	free(wire->out.frame);
	free(wire->in.frame);
}

/* To read */

/* Returns where they are, or NULL. */
static const unsigned char *read_bytes(struct reader *reader, size_t bytes)
{
	const unsigned char *at = reader->at;

	if (reader->bad || bytes > reader->left) {
		reader->bad = true;
		return NULL;
	}
	reader->at += bytes;
	reader->left -= bytes;
	return at;
}

static int32_t read_int(struct reader *reader)
{
	const unsigned char *at = read_bytes(reader, sizeof(int32_t));
	uint32_t value = 0;

	if (at != NULL)
		memcpy(&value, at, sizeof(value));
	return (int32_t)be32toh(value);
}

static int64_t read_long(struct reader *reader)
{
	const unsigned char *at = read_bytes(reader, sizeof(int64_t));
	uint64_t value = 0;

	if (at != NULL)
		memcpy(&value, at, sizeof(value));
	return (int64_t)be64toh(value);
}

static bool read_flag(struct reader *reader)
{
	const unsigned char *at = read_bytes(reader, 1);

	return at != NULL && *at != 0;
}

/* A NULL is bad. Its end is not marked. */
static const char *read_string(struct reader *reader, size_t *ret_bytes)
{
	int32_t bytes = read_int(reader);

	if (bytes < 0)
		reader->bad = true;
	*ret_bytes = reader->bad ? 0 : (size_t)bytes;
	return (const char *)read_bytes(reader, *ret_bytes);
}

static int32_t read_count(struct reader *reader)
{
	int32_t count = read_int(reader);

	if (count < 0)
		reader->bad = true;
	return reader->bad ? 0 : count;
}

static void skip_path(struct reader *reader)
{
	size_t bytes;
	const char *path = read_string(reader, &bytes);

	if (reader->bad || bytes == 0 || path[0] != '/' || memchr(path, '\0', bytes) != NULL)
		reader->bad = true;
}

/* The name of a child. */
static void skip_name(struct reader *reader)
{
	size_t bytes;
	const char *name = read_string(reader, &bytes);

	if (reader->bad || bytes == 0 || memchr(name, '/', bytes) != NULL ||
	    memchr(name, '\0', bytes) != NULL)
		reader->bad = true;
}

static void skip_names(struct reader *reader)
{
	int32_t count = read_count(reader);

	for (int32_t i = 0; i < count && !reader->bad; i++)
		skip_name(reader);
}

/* A NULL, of the length -1, is what a znode without data has. */
static void skip_data(struct reader *reader)
{
	int32_t bytes = read_int(reader);

	if (bytes < -1)
		reader->bad = true;
	else if (bytes > 0)
		read_bytes(reader, (size_t)bytes);
}

static void skip_time(struct reader *reader)
{
	int64_t time_ms = read_long(reader);

	if (time_ms < 0 || time_ms > TIME_MAX_MS)
		reader->bad = true;
}

static void skip_stat(struct reader *reader)
{
	read_long(reader); /* of its creation, and of its last change */
	read_long(reader);
	skip_time(reader);
	skip_time(reader);
	read_int(reader); /* versions */
	read_int(reader);
	read_int(reader);
	read_long(reader); /* owner */
	read_int(reader);  /* length, children */
	read_int(reader);
	read_long(reader);
}

static void skip_acl(struct reader *reader)
{
	int32_t count = read_count(reader);
	size_t bytes;

	for (int32_t i = 0; i < count && !reader->bad; i++) {
		read_int(reader);
		read_string(reader, &bytes);
		read_string(reader, &bytes);
	}
}

/* Returns false if no answer to requests of that type is known. */
static bool skip_result(struct reader *reader, int32_t type)
{
	switch (type) {
	case ZOO_DELETE_OP:
	case ZOO_CHECK_OP:
	case ZOO_CLOSE_OP:
		return true;
	case ZOO_CREATE_OP:
	case ZOO_CREATE_CONTAINER_OP:
	case ZOO_SYNC_OP:
		skip_path(reader);
		return true;
	case ZOO_EXISTS_OP:
	case ZOO_SETDATA_OP:
		skip_stat(reader);
		return true;
	case ZOO_GETDATA_OP:
		skip_data(reader);
		skip_stat(reader);
		return true;
	case ZOO_GETACL_OP:
		skip_acl(reader);
		skip_stat(reader);
		return true;
	case ZOO_GETCHILDREN_OP:
		skip_names(reader);
		return true;
	case ZOO_GETCHILDREN2_OP:
		skip_names(reader);
		skip_stat(reader);
		return true;
	case ZOO_SASL_OP:
		skip_data(reader);
		return true;
	default:
		return false;
	}
}

/* Requests, which the client library has made */

static bool add_request(struct zookeeper_wire *wire, const struct zookeeper_request *request)
{
	if (wire->count == wire->room) {
		size_t room = wire->room ? 2 * wire->room : 16;
		struct zookeeper_request *requests = calloc(room, sizeof(*requests));

		if (requests == NULL)
			return false;
		for (size_t i = 0; i < wire->count; i++)
			requests[i] = wire->requests[(wire->first + i) % wire->room];
		free(wire->requests);
		wire->requests = requests;
		wire->room = room;
		wire->first = 0;
	}
	wire->requests[(wire->first + wire->count++) % wire->room] = *request;
	return true;
}

static void skip_operation(struct reader *reader, int32_t type)
{
	size_t bytes;

	read_string(reader, &bytes);
	if (type == ZOO_CREATE_OP || type == ZOO_CREATE_CONTAINER_OP || type == ZOO_SETDATA_OP)
		skip_data(reader);
	if (type == ZOO_CREATE_OP || type == ZOO_CREATE_CONTAINER_OP)
		skip_acl(reader);
	read_int(reader); /* flags, or the version */
}

/* Returns how many operations the transaction has; their types go to `types`, unless it is NULL. */
static size_t read_operations(struct reader reader, int32_t *types)
{
	size_t count = 0;

	for (;;) {
		int32_t type = read_int(&reader);
		bool done = read_flag(&reader);

		read_int(&reader);
		if (done || reader.bad)
			return count;
		skip_operation(&reader, type);
		if (types != NULL)
			types[count] = type;
		count++;
	}
}

static bool note_operations(struct zookeeper_request *request, const struct reader *reader)
{
	request->count = read_operations(*reader, NULL);
	request->types = calloc(request->count + 1, sizeof(*request->types));
	if (request->types != NULL)
		read_operations(*reader, request->types);
	return request->types != NULL;
}

/* In three lists. */
static uint64_t count_watches(struct reader *reader)
{
	uint64_t count = 0;

	read_long(reader);
	for (int list = 0; list < 3; list++) {
		int32_t more = read_count(reader);
		size_t bytes;

		for (int32_t i = 0; i < more && !reader->bad; i++, count++)
			read_string(reader, &bytes);
	}
	return count;
}

static bool sets_watch(int32_t type, const struct reader *reader)
{
	return (type == ZOO_EXISTS_OP || type == ZOO_GETDATA_OP || type == ZOO_GETCHILDREN_OP ||
		type == ZOO_GETCHILDREN2_OP) &&
	       reader->left > 0 && reader->at[reader->left - 1] != 0;
}

static void note_introduction(struct zookeeper_wire *wire, struct reader *reader)
{
	read_int(reader);  /* version of the protocol */
	read_long(reader); /* what the client has seen */
	read_int(reader);  /* timeout */
	wire->session = read_long(reader);
	wire->introduced = true;
}

static void note_request(struct zookeeper_wire *wire, struct reader *reader)
{
	struct zookeeper_request request = {.xid = read_int(reader)};

	request.type = read_int(reader);
	switch (request.xid) {
	case XID_PING:
		wire->pings++;
		return;
	case XID_AUTH:
		wire->auths++;
		return;
	case XID_WATCHES:
		wire->watch_lists++;
		wire->watches += count_watches(reader);
		return;
	default:
		break;
	}
	wire->watches += sets_watch(request.type, reader);
	if ((request.type == ZOO_MULTI_OP && !note_operations(&request, reader)) ||
	    !add_request(wire, &request)) {
		free(request.types);
		wire->starved = true;
	}
}

static const char *note_frame(struct zookeeper_wire *wire, struct reader *reader)
{
	if (wire->introduced)
		note_request(wire, reader);
	else
		note_introduction(wire, reader);
	return NULL;
}

/* Answers */

static const char *check_introduction(struct zookeeper_wire *wire, struct reader *reader)
{
	wire->accepted = true;
	read_int(reader); /* version of the protocol */
	int32_t timeout_ms = read_int(reader);
	int64_t session = read_long(reader);
	int32_t password_bytes = read_int(reader);
	read_bytes(reader, PASSWORD_BYTES);
	bool read_only = read_flag(reader);

	if (reader->bad || password_bytes != PASSWORD_BYTES || read_only ||
	    (session == 0 && wire->session == 0))
		return "the answer that begins the session";
	/* A session that is over has none. */
	if (session != 0 &&
	    (timeout_ms < ZOOKEEPER_TIMEOUT_MIN_MS || timeout_ms > ZOOKEEPER_TIMEOUT_MAX_MS))
		return "the timeout of the session";
	return NULL;
}

static const char *check_event(struct zookeeper_wire *wire, struct reader *reader)
{
	int32_t type = read_int(reader);

	read_int(reader); /* state */
	skip_path(reader);
	if (reader->bad || type < EVENT_FIRST || type > EVENT_LAST)
		return "an event";
	if (wire->watches == 0)
		return "an event that nothing waited for";
	wire->watches--;
	return NULL;
}

static const char *check_transaction(const struct zookeeper_request *request, struct reader *reader)
{
	static const char wrong[] = "the answer to a transaction";
	size_t count = 0, failures = 0;
	bool reason = false;

	for (;;) {
		int32_t type = read_int(reader);
		bool done = read_flag(reader);
		int32_t error = read_int(reader);

		if (done || reader->bad)
			break;
		if (count == request->count)
			return wrong;
		if (type == OP_ERROR) {
			error = read_int(reader);
			failures++;
			reason |= error != ZOK && error != ZRUNTIMEINCONSISTENCY;
		} else if (error != ZOK || !skip_result(reader, request->types[count])) {
			return wrong;
		}
		count++;
	}
	if (reader->bad || count != request->count || (failures > 0 && failures != count) ||
	    (failures > 0) != reason)
		return wrong;
	return NULL;
}

static const char *check_result(const struct zookeeper_request *request, struct reader *reader)
{
	if (request->type == ZOO_MULTI_OP)
		return check_transaction(request, reader);
	if (!skip_result(reader, request->type) || reader->bad)
		return "the answer to a request";
	return NULL;
}

static const char *check_awaited(unsigned *awaited)
{
	if (*awaited == 0)
		return "an answer that nothing waited for";
	--*awaited;
	return NULL;
}

static const char *check_answer(struct zookeeper_wire *wire, struct reader *reader)
{
	int32_t xid, error;
	const char *wrong;

	if (wire->starved)
		return "an answer that there is no memory to check";
	if (!wire->accepted)
		return check_introduction(wire, reader);
	xid = read_int(reader);
	read_long(reader); /* the newest transaction */
	error = read_int(reader);
	switch (xid) {
	case XID_EVENT:
		return check_event(wire, reader);
	case XID_PING:
		return check_awaited(&wire->pings);
	case XID_AUTH:
		return check_awaited(&wire->auths);
	case XID_WATCHES:
		return check_awaited(&wire->watch_lists);
	default:
		break;
	}
	if (wire->count == 0 || wire->requests[wire->first].xid != xid)
		return "an answer that nothing waited for";
	wrong = error == ZOK ? check_result(&wire->requests[wire->first], reader) : NULL;
	drop_request(wire);
	return wrong;
}

/* Frames */

typedef const char *(*take_fn)(struct zookeeper_wire *wire, struct reader *reader);

/* Takes up to `count` bytes of the present frame; returns how many. *ret_wrong is what take() says
 * of the frame, once it is whole. */
static size_t take_part(struct zookeeper_wire *wire, struct zookeeper_frames *frames,
			const unsigned char *bytes, size_t count, take_fn take,
			const char **ret_wrong)
{
	size_t have = frames->have - sizeof(frames->prefix);
	size_t part = frames->bytes - have < count ? frames->bytes - have : count;
	struct reader reader = {.at = bytes, .left = frames->bytes};

	if (part < frames->bytes) {
		if (frames->frame == NULL)
			frames->frame = malloc(frames->bytes);
		if (frames->frame == NULL) {
			*ret_wrong = "a frame for which there is no memory";
			return count;
		}
		memcpy(frames->frame + have, bytes, part);
		reader.at = frames->frame;
	}
	frames->have += part;
	if (have + part == frames->bytes) {
		*ret_wrong = take(wire, &reader);
		free(frames->frame);
		frames->frame = NULL;
		frames->have = 0;
	}
	return part;
}

/* Takes up to `count` bytes of the length in front of the present frame; returns how many. */
static size_t take_prefix(struct zookeeper_frames *frames, const unsigned char *bytes, size_t count)
{
	size_t part = sizeof(frames->prefix) - frames->have;
	uint32_t length;

	if (part > count)
		part = count;
	memcpy(frames->prefix + frames->have, bytes, part);
	frames->have += part;
	memcpy(&length, frames->prefix, sizeof(length));
	frames->bytes = be32toh(length);
	return part;
}

static bool is_length_right(const struct zookeeper_wire *wire, size_t bytes)
{
	if (!wire->accepted)
		return bytes == INTRODUCTION_BYTES;
	return bytes >= HEADER_BYTES && bytes <= ZOOKEEPER_FRAME_MAX_BYTES;
}

/* Takes the next bytes of a stream. Returns NULL; or what is wrong with them. */
static const char *take_bytes(struct zookeeper_wire *wire, struct zookeeper_frames *frames,
			      const void *bytes, size_t count, take_fn take)
{
	const unsigned char *at = bytes, *end = at + count;
	const char *wrong = NULL;

	while (at < end && wrong == NULL) {
		size_t left = (size_t)(end - at);

		if (frames->have >= sizeof(frames->prefix)) {
			at += take_part(wire, frames, at, left, take, &wrong);
			continue;
		}
		at += take_prefix(frames, at, left);
		if (frames == &wire->in && frames->have == sizeof(frames->prefix) &&
		    !is_length_right(wire, frames->bytes))
			wrong = "the length of an answer";
	}
	return wrong;
}

void zookeeper_wire_sent(struct zookeeper_wire *wire, const void *bytes, size_t count)
{
	if (take_bytes(wire, &wire->out, bytes, count, note_frame) != NULL)
		wire->starved = true;
}

const char *zookeeper_wire_received(struct zookeeper_wire *wire, const void *bytes, size_t count)
{
	return take_bytes(wire, &wire->in, bytes, count, check_answer);
}
