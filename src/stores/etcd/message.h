/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads what servers of etcd send, as if an enemy had written it. A message that is read takes no
 * more memory than a few times its own bytes, whatever is in it: two bytes can ask for a structure
 * of a hundred. None of the messages contains itself, so nothing is read to a depth that a server
 * chooses. What numbers and keys in it say is for the callers to check.
 *
 * Pure, but for memory; any thread.
 */
#ifndef DLOCKFS_STORES_ETCD_MESSAGE_H
#define DLOCKFS_STORES_ETCD_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/grpc/grpc.h"
#include "stores/etcd/keys.h"

/* grpc_call() with a message, which is given as its `base`. */
struct grpc_call *etcd_message_call(struct grpc *grpc, const char *method,
				    const ProtobufCMessage *request, int64_t limit_ms,
				    void (*done)(void *, int, const char *, const void *, size_t),
				    void *context);

/* grpc_stream_send(), likewise. Returns 0, or -ENOMEM if there is no memory, or no stream. */
int etcd_message_send(struct grpc_call *stream, const ProtobufCMessage *message);

/* The message of that type, such as etcd__txn_response__descriptor; to be freed as protobuf-c says,
 * without an allocator. NULL: there are no bytes (`bytes` is NULL), they are no such message, or
 * out of memory. */
void *etcd_message_read(const ProtobufCMessageDescriptor *type, const void *bytes, size_t count);

/* What follows the prefix in the key, and how many bytes; never NULL with a true result. Returns
 * false if the key does not begin so, as no honest server answers. */
bool etcd_message_rest(const Etcd__KeyValue *kv, const struct etcd_key *prefix, const char **ret,
		       size_t *ret_bytes);

/* Whether it is that key. */
bool etcd_message_is_key(const Etcd__KeyValue *kv, const struct etcd_key *key);

/* Among the keys behind the first one the data of the claim or marker; NULL: there are none. */
const Etcd__KeyValue *etcd_message_data(const Etcd__RangeResponse *found,
					const struct etcd_key *claim);

/* The value of a file's key, as keys.h has it: where the text begins, and its bytes in *ret_bytes.
 */
const char *etcd_message_file(const Etcd__KeyValue *kv, size_t *ret_bytes, int64_t *ret_ms,
			      bool *ret_is_new);

/* The revision after that one; 1 after what no server counts to. */
int64_t etcd_message_revision_after(int64_t revision);

#endif
