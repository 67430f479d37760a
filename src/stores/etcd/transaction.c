/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state. Must not know what transactions are for. Loop thread.
 */
#include "stores/etcd/transaction.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stores/etcd/state.h"

void etcd_transaction_write_epoch(const struct store_etcd *store, char text[ETCD_EPOCH_BYTES])
{
	snprintf(text, ETCD_EPOCH_BYTES, "%016" PRIx64, store->epoch.number);
}

static ProtobufCBinaryData bytes_of(const struct etcd_key *key)
{
	return (ProtobufCBinaryData){.len = key->count, .data = (uint8_t *)key->bytes};
}

static ProtobufCBinaryData text_of(const char *text)
{
	return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
}

void etcd_transaction_init(struct transaction *transaction)
{
	etcd__txn_request__init(&transaction->request);
	transaction->when.count = transaction->then.count = transaction->otherwise.count = 0;
}

static Etcd__Compare *require(struct transaction *transaction, const struct etcd_key *key,
			      Etcd__Compare__Target target)
{
	Etcd__Compare *compare = &transaction->when.compares[transaction->when.count];

	etcd__compare__init(compare);
	compare->result = ETCD__COMPARE__RESULT__EQUAL;
	compare->target = target;
	compare->key = bytes_of(key);
	transaction->when.list[transaction->when.count++] = compare;
	return compare;
}

void etcd_transaction_require_created(struct transaction *transaction, const struct etcd_key *key,
				      int64_t revision)
{
	Etcd__Compare *compare = require(transaction, key, ETCD__COMPARE__TARGET__CREATE);

	compare->target_union_case = ETCD__COMPARE__TARGET_UNION_CREATE_REVISION;
	compare->create_revision = revision;
}

void etcd_transaction_require_version(struct transaction *transaction, const struct etcd_key *key,
				      int64_t version)
{
	Etcd__Compare *compare = require(transaction, key, ETCD__COMPARE__TARGET__VERSION);

	compare->target_union_case = ETCD__COMPARE__TARGET_UNION_VERSION;
	compare->version = version;
}

void etcd_transaction_require_lease(struct transaction *transaction, const struct etcd_key *key,
				    int64_t lease)
{
	Etcd__Compare *compare = require(transaction, key, ETCD__COMPARE__TARGET__LEASE);

	compare->target_union_case = ETCD__COMPARE__TARGET_UNION_LEASE;
	compare->lease = lease;
}

void etcd_transaction_require_value(struct transaction *transaction, const struct etcd_key *key,
				    const char *value)
{
	Etcd__Compare *compare = require(transaction, key, ETCD__COMPARE__TARGET__VALUE);

	compare->target_union_case = ETCD__COMPARE__TARGET_UNION_VALUE;
	compare->value = text_of(value);
}

void etcd_transaction_require_session(struct transaction *transaction,
				      const struct store_etcd *store)
{
	etcd_transaction_write_epoch(store, transaction->epoch);
	etcd_transaction_require_value(transaction, &store->epoch.key, transaction->epoch);
	etcd_transaction_range(&transaction->otherwise, &store->epoch.key, NULL);
}

void etcd_transaction_require_session_to_read(struct transaction *transaction,
					      const struct store_etcd *store)
{
	if (!store->epoch.is_keyless) {
		etcd_transaction_require_session(transaction, store);
		return;
	}
	etcd_transaction_require_created(transaction, &store->epoch.key, 0);
	etcd_transaction_range(&transaction->otherwise, &store->epoch.key, NULL);
}

static struct transaction_step *add(struct transaction_branch *branch)
{
	struct transaction_step *step = &branch->steps[branch->count];

	etcd__request_op__init(&step->op);
	branch->list[branch->count++] = &step->op;
	return step;
}

Etcd__RangeRequest *etcd_transaction_range(struct transaction_branch *branch,
					   const struct etcd_key *key, const struct etcd_key *end)
{
	struct transaction_step *step = add(branch);

	etcd__range_request__init(&step->range);
	step->range.key = bytes_of(key);
	if (end != NULL)
		step->range.range_end = bytes_of(end);
	step->op.request_case = ETCD__REQUEST_OP__REQUEST_RANGE;
	step->op.range = &step->range;
	return &step->range;
}

Etcd__PutRequest *etcd_transaction_put(struct transaction_branch *branch,
				       const struct etcd_key *key, const char *text, int64_t lease)
{
	struct transaction_step *step = add(branch);

	etcd__put_request__init(&step->put);
	step->put.key = bytes_of(key);
	step->put.value = text_of(text);
	step->put.lease = lease;
	step->op.request_case = ETCD__REQUEST_OP__REQUEST_PUT;
	step->op.put = &step->put;
	return &step->put;
}

void etcd_transaction_delete(struct transaction_branch *branch, const struct etcd_key *key,
			     const struct etcd_key *end)
{
	struct transaction_step *step = add(branch);

	etcd__delete_range_request__init(&step->delete_range);
	step->delete_range.key = bytes_of(key);
	if (end != NULL)
		step->delete_range.range_end = bytes_of(end);
	step->op.request_case = ETCD__REQUEST_OP__REQUEST_DELETE_RANGE;
	step->op.delete_range = &step->delete_range;
}

void etcd_transaction_change(struct transaction *transaction, const struct etcd_named *claim,
			     const struct etcd_key *data, const struct etcd_key *end,
			     const char *text, uint32_t version, int64_t lease)
{
	etcd_transaction_require_created(transaction, &claim->key, claim->order);
	if (version != STORE_ANY_VERSION)
		etcd_transaction_require_version(transaction, data, version);
	etcd_transaction_put(&transaction->then, data, text, lease);
	etcd_transaction_range(&transaction->otherwise, &claim->key, end)->keys_only = true;
}

struct grpc_call *
etcd_transaction_send(struct transaction *transaction, struct grpc *grpc, int64_t limit_ms,
		      void (*done)(void *, int, const char *, const void *, size_t), void *context)
{
	Etcd__TxnRequest *request = &transaction->request;

	request->n_compare = transaction->when.count;
	request->compare = transaction->when.list;
	request->n_success = transaction->then.count;
	request->success = transaction->then.list;
	request->n_failure = transaction->otherwise.count;
	request->failure = transaction->otherwise.list;
	return etcd_message_call(grpc, ETCD_TRANSACTION_METHOD, &request->base, limit_ms, done,
				 context);
}

const Etcd__RangeResponse *etcd_transaction_found(const Etcd__TxnResponse *answer, size_t step)
{
	if (step >= answer->n_responses ||
	    answer->responses[step]->response_case != ETCD__RESPONSE_OP__RESPONSE_RANGE)
		return NULL;
	return answer->responses[step]->range;
}

bool etcd_transaction_was_late(struct store_etcd *store, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, 0);
	char epoch[ETCD_EPOCH_BYTES];

	etcd_transaction_write_epoch(store, epoch);
	if (found != NULL && found->n_kvs == 1 && found->kvs[0]->value.len == strlen(epoch) &&
	    memcmp(found->kvs[0]->value.data, epoch, strlen(epoch)) == 0)
		return false;
	grpc_leave(store->grpc);
	return true;
}

bool etcd_transaction_was_late_to_read(struct store_etcd *store, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, 0);

	if (!store->epoch.is_keyless)
		return etcd_transaction_was_late(store, answer);
	if (found != NULL && found->n_kvs == 0)
		return false;
	grpc_leave(store->grpc); /* the key is there again */
	return true;
}
