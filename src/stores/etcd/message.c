/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the limit of memory for one message. Must not know what messages are for.
 */
#include "stores/etcd/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What honest messages take: a key in a watch's event takes about five times its bytes, and what is
 * set aside while it is read. */
enum { TIMES_MAX = 8 };
#define FREE_BYTES ((size_t)256 * 1024)

static void *allocate(void *context, size_t bytes)
{
	size_t *left = context;

	if (bytes > *left)
		return NULL;
	*left -= bytes;
	return malloc(bytes ? bytes : 1);
}

static void release(void *context, void *memory)
{
	free(memory);
}

void *etcd_message_read(const ProtobufCMessageDescriptor *type, const void *bytes, size_t count)
{
	size_t left = TIMES_MAX * count + FREE_BYTES;
	ProtobufCAllocator allocator = {allocate, release, &left};

	return bytes != NULL ? protobuf_c_message_unpack(type, &allocator, count, bytes) : NULL;
}

struct grpc_call *etcd_message_call(struct grpc *grpc, const char *method,
				    const ProtobufCMessage *request, int64_t limit_ms,
				    void (*done)(void *, int, const char *, const void *, size_t),
				    void *context)
{
	size_t bytes = protobuf_c_message_get_packed_size(request);
	uint8_t *packed = malloc(bytes + 1);
	struct grpc_call *call = NULL;

	if (packed != NULL) {
		protobuf_c_message_pack(request, packed);
		call = grpc_call(grpc, method, packed, bytes, limit_ms, done, context);
		explicit_bzero(packed, bytes); /* there may be a password in it */
	}
	free(packed);
	return call;
}

int etcd_message_send(struct grpc_call *stream, const ProtobufCMessage *message)
{
	size_t bytes = protobuf_c_message_get_packed_size(message);
	uint8_t *packed = stream != NULL ? malloc(bytes + 1) : NULL;
	int error = -ENOMEM;

	if (packed != NULL) {
		protobuf_c_message_pack(message, packed);
		error = grpc_stream_send(stream, packed, bytes);
	}
	free(packed);
	return error;
}

bool etcd_message_rest(const Etcd__KeyValue *kv, const struct etcd_key *prefix, const char **ret,
		       size_t *ret_bytes)
{
	if (kv->key.len < prefix->count ||
	    (prefix->count > 0 && memcmp(kv->key.data, prefix->bytes, prefix->count) != 0))
		return false;
	*ret = kv->key.len > 0 ? (const char *)kv->key.data + prefix->count : "";
	*ret_bytes = kv->key.len - prefix->count;
	return true;
}

bool etcd_message_is_key(const Etcd__KeyValue *kv, const struct etcd_key *key)
{
	const char *rest;
	size_t bytes;

	return etcd_message_rest(kv, key, &rest, &bytes) && bytes == 0;
}

const Etcd__KeyValue *etcd_message_data(const Etcd__RangeResponse *found,
					const struct etcd_key *claim)
{
	for (size_t i = 1; i < found->n_kvs; i++) {
		const char *rest;
		size_t bytes;

		if (etcd_message_rest(found->kvs[i], claim, &rest, &bytes) &&
		    etcd_key_is_data_alone(rest, bytes))
			return found->kvs[i];
	}
	return NULL;
}

const char *etcd_message_file(const Etcd__KeyValue *kv, size_t *ret_bytes, int64_t *ret_ms,
			      bool *ret_is_new)
{
	const char *value = kv->value.len > 0 ? (const char *)kv->value.data : "";
	size_t head = etcd_key_file_parse(value, kv->value.len, ret_ms, ret_is_new);

	*ret_bytes = kv->value.len - head;
	return value + head;
}

int64_t etcd_message_revision_after(int64_t revision)
{
	return revision > 0 && revision < INT64_MAX ? revision + 1 : 1;
}
