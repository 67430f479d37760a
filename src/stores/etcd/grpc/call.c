/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the frames of gRPC (a byte that tells of compression, four of the length, the message) and
 * what a status comes from. Must not send. Loop thread.
 */
#include "stores/etcd/grpc/call.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/escape.h"
#include "stores/etcd/grpc/grpc.h"

#define PREFIX_BYTES ((size_t)5)
/* What a header counts beyond its bytes (RFC 9113, 6.5.2). */
#define HEADER_BYTES ((size_t)32)
/* An empty buffer that is larger is freed. */
#define KEPT_BYTES ((size_t)64 * 1024)

static size_t bytes_count(const struct call_bytes *bytes)
{
	return bytes->end - bytes->start;
}

/* Makes room for `more` bytes after the end; what was used is given up. */
static int bytes_reserve(struct call_bytes *bytes, size_t more)
{
	size_t count = bytes_count(bytes), capacity;
	uint8_t *data;

	if (bytes->start > 0) {
		memmove(bytes->data, bytes->data + bytes->start, count);
		bytes->start = 0;
		bytes->end = count;
	}
	if (bytes->capacity - count >= more)
		return 0;
	capacity = bytes->capacity * 2 < count + more ? count + more : bytes->capacity * 2;
	data = realloc(bytes->data, capacity);
	if (data == NULL)
		return -ENOMEM;
	bytes->data = data;
	bytes->capacity = capacity;
	return 0;
}

static void bytes_append(struct call_bytes *bytes, const void *data, size_t count)
{
	if (count > 0)
		memcpy(bytes->data + bytes->end, data, count);
	bytes->end += count;
}

int call_bytes_put(struct call_bytes *bytes, const void *data, size_t count)
{
	if (bytes_reserve(bytes, count) != 0)
		return -ENOMEM;
	bytes_append(bytes, data, count);
	return 0;
}

static void bytes_use(struct call_bytes *bytes, size_t count)
{
	bytes->start += count;
	if (bytes->start == bytes->end)
		bytes->start = bytes->end = 0;
}

/* The length of the message whose prefix begins there. */
static size_t message_bytes(const struct call_bytes *bytes)
{
	uint32_t length;

	memcpy(&length, bytes->data + bytes->start + 1, sizeof(length));
	return be32toh(length);
}

struct grpc_call *call_create(size_t *held)
{
	struct grpc_call *call = calloc(1, sizeof(*call));

	if (call != NULL) {
		call->grpc_status = -1;
		call->held = held;
	}
	return call;
}

void call_destroy(struct grpc_call *call)
{
	free(call->out.data);
	*call->held -= call->in.capacity;
	free(call->in.data);
	free(call);
}

int call_put(struct grpc_call *call, const void *message, size_t bytes)
{
	uint8_t prefix[PREFIX_BYTES] = {0};
	uint32_t length = htobe32((uint32_t)bytes);

	if (bytes > CALL_MESSAGE_BYTES_MAX || bytes_reserve(&call->out, PREFIX_BYTES + bytes) != 0)
		return -ENOMEM;
	memcpy(prefix + 1, &length, sizeof(length));
	bytes_append(&call->out, prefix, sizeof(prefix));
	bytes_append(&call->out, message, bytes);
	return 0;
}

size_t call_take(struct grpc_call *call, uint8_t *buffer, size_t bytes)
{
	size_t count = bytes_count(&call->out);

	if (count > bytes)
		count = bytes;
	if (count > 0)
		memcpy(buffer, call->out.data + call->out.start, count);
	bytes_use(&call->out, count);
	return count;
}

void call_end(struct grpc_call *call, int status, const char *text)
{
	if (call->ended)
		return;
	call->ended = true;
	call->status = status;
	/* The text may be that of the trailers. */
	if (text != call->text)
		snprintf(call->text, sizeof(call->text), "%s", text);
}

/* A number of up to three digits; `otherwise` if it is none. */
static int number_of(const char *value, size_t bytes, int otherwise)
{
	int number = 0;

	if (bytes == 0 || bytes > 3)
		return otherwise;
	for (size_t i = 0; i < bytes; i++) {
		if (!isdigit((unsigned char)value[i]))
			return otherwise;
		number = number * 10 + value[i] - '0';
	}
	return number;
}

bool call_header(struct grpc_call *call, const char *name, size_t name_bytes, const char *value,
		 size_t value_bytes)
{
	static const char type[] = "application/grpc";
#define IS(text) (name_bytes == strlen(text) && memcmp(name, text, strlen(text)) == 0)

	if (call->ended)
		return true;
	call->header_bytes += name_bytes + value_bytes + HEADER_BYTES;
	if (call->header_bytes > CALL_HEADER_BYTES_MAX) {
		call_end(call, GRPC_RESOURCE_EXHAUSTED, "the headers of the answer are too long");
		return false;
	}
	if (IS(":status"))
		call->http_status = number_of(value, value_bytes, 0);
	else if (IS("content-type"))
		call->is_grpc =
			value_bytes >= strlen(type) && memcmp(value, type, strlen(type)) == 0;
	else if (IS("grpc-status"))
		call->grpc_status = number_of(value, value_bytes, GRPC_UNKNOWN);
	else if (IS("grpc-message"))
		escape_decode_lenient(call->text, sizeof(call->text), value, value_bytes);
	return true;
#undef IS
}

/* Whether the message that begins in the buffer can be taken. */
static bool begin_message(struct grpc_call *call)
{
	size_t length = message_bytes(&call->in);
	char text[128];

	if (call->in.data[call->in.start] != 0) {
		call_end(call, GRPC_INTERNAL, "the answer is compressed, which was not asked for");
		return false;
	}
	if (length > CALL_MESSAGE_BYTES_MAX) {
		snprintf(text, sizeof(text), "the answer has %zu bytes, expected at most %zu",
			 length, CALL_MESSAGE_BYTES_MAX);
		call_end(call, GRPC_RESOURCE_EXHAUSTED, text);
		return false;
	}
	return true;
}

/* Makes room for more of what comes. */
static bool hold(struct grpc_call *call, size_t more)
{
	size_t before = call->in.capacity;

	if (before<bytes_count(&call->in) + more && * call->held + more> CALL_HELD_BYTES_MAX) {
		call_end(call, GRPC_RESOURCE_EXHAUSTED, "too much has come that is not complete");
		return false;
	}
	if (bytes_reserve(&call->in, more) != 0) {
		call_end(call, GRPC_RESOURCE_EXHAUSTED, "no memory for the answer");
		return false;
	}
	*call->held += call->in.capacity - before;
	return true;
}

bool call_data(struct grpc_call *call, const uint8_t *data, size_t bytes)
{
	struct call_bytes *in = &call->in;
	size_t count, whole;

	if (call->ended)
		return false;
	if (bytes_count(in) == 0 && in->capacity > KEPT_BYTES) {
		*call->held -= in->capacity;
		free(in->data);
		*in = (struct call_bytes){0};
	}
	if (!hold(call, bytes))
		return false;
	bytes_append(in, data, bytes);
	count = bytes_count(in);
	if (count < PREFIX_BYTES)
		return true;
	if (!begin_message(call))
		return false;
	whole = PREFIX_BYTES + message_bytes(in);
	if (!call->is_stream && count > whole) {
		call_end(call, GRPC_INTERNAL, "more than one answer");
		return false;
	}
	/* At once, so that a long message is not copied again and again. */
	return count >= whole || hold(call, whole - count);
}

const void *call_next(struct grpc_call *call, size_t *bytes)
{
	struct call_bytes *in = &call->in;
	size_t count = bytes_count(in), length;
	const uint8_t *message;

	if (count < PREFIX_BYTES || !begin_message(call))
		return NULL;
	length = message_bytes(in);
	if (count - PREFIX_BYTES < length)
		return NULL;
	message = in->data + in->start + PREFIX_BYTES;
	bytes_use(in, PREFIX_BYTES + length);
	*bytes = length;
	return message;
}

/* http-grpc-status-mapping.md */
static int status_of_http(int status)
{
	switch (status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

/* PROTOCOL-HTTP2.md, "Errors". */
static int status_of_reset(uint32_t error_code)
{
	switch (error_code) {
	case NGHTTP2_REFUSED_STREAM:
		return GRPC_UNAVAILABLE;
	case NGHTTP2_CANCEL:
		return GRPC_CANCELLED;
	case NGHTTP2_ENHANCE_YOUR_CALM:
		return GRPC_RESOURCE_EXHAUSTED;
	case NGHTTP2_INADEQUATE_SECURITY:
		return GRPC_PERMISSION_DENIED;
	default:
		return GRPC_INTERNAL;
	}
}

void call_close(struct grpc_call *call, uint32_t error_code, const char *error_name)
{
	const struct call_bytes *in = &call->in;
	char text[128];

	if (call->grpc_status > GRPC_OK) {
		call_end(call, call->grpc_status, call->text);
	} else if (call->grpc_status == GRPC_OK) {
		bool is_whole = bytes_count(in) >= PREFIX_BYTES &&
				bytes_count(in) - PREFIX_BYTES == message_bytes(in);

		if (call->is_stream || is_whole)
			call_end(call, GRPC_OK, call->text);
		else
			call_end(call, GRPC_INTERNAL, "the answer is not complete");
	} else if (error_code != NGHTTP2_NO_ERROR) {
		snprintf(text, sizeof(text), "the server has reset the call: %s", error_name);
		call_end(call, status_of_reset(error_code), text);
	} else if (call->http_status != 200) {
		snprintf(text, sizeof(text), "HTTP status %d, expected 200", call->http_status);
		call_end(call, status_of_http(call->http_status), text);
	} else if (!call->is_grpc) {
		call_end(call, GRPC_UNKNOWN, "the answer is not gRPC");
	} else {
		call_end(call, GRPC_INTERNAL, "the answer has no status");
	}
}
