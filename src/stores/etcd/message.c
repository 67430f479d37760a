/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the limit of memory for one message. Must not know what it is for.
 */
#include "stores/etcd/message.h"

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

	return protobuf_c_message_unpack(type, &allocator, count, bytes);
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

int64_t etcd_message_revision_after(int64_t revision)
{
	return revision > 0 && revision < INT64_MAX ? revision + 1 : 1;
}
