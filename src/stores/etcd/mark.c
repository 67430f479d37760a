/* SPDX-License-Identifier: Apache-2.0
 *
 * mark() and age() of the etcd store. Loop thread only.
 *
 * etcd tells no times. So a marker whose age will matter has a *clock*: a lease that is granted
 * right before the marker is written, goes with nothing, and is never renewed. Its id and its time
 * to live stand in a key beside the marker. What the leader says is left of the lease, in whole
 * seconds, which it rounds down, tells the age; and when it says that there is no such lease, the
 * marker is as old as that was to live.
 *
 * A new leader lets each lease live for its whole time again (lessor.Promote): then the age seems
 * less than it is, never more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "stores/etcd/keys.h"
#include "stores/etcd/message.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

#define GRANT	     "/etcdserverpb.Lease/LeaseGrant"
#define TIME_TO_LIVE "/etcdserverpb.Lease/LeaseTimeToLive"

enum { DATA, MARKER, CLOCK }; /* the keys that are said */

#define CLOCK_BYTES 64

static bool say_keys(struct operation *operation)
{
	struct etcd_key *said = operation->said;

	return etcd_key_of_marker(&said[MARKER], operation->store->root, operation->path,
				  &operation->claim.parts) &&
	       etcd_key_of_data(&said[DATA], &said[MARKER]) &&
	       etcd_key_of_clock(&said[CLOCK], &said[MARKER]);
}

/* mark() */

static int say_mark(struct operation *operation, struct transaction *transaction)
{
	const struct etcd_named *claim = &operation->claim;
	struct etcd_key *said = operation->said;

	if (!say_keys(operation))
		return -ENOMEM;
	etcd_transaction_require_session(transaction, operation->store);
	etcd_transaction_require_created(transaction, &claim->key, claim->order);
	etcd_transaction_put(&transaction->then, &said[MARKER], operation->name, 0);
	etcd_transaction_put(&transaction->then, &said[DATA], operation->text, 0);
	if (operation->value != NULL)
		etcd_transaction_put(&transaction->then, &said[CLOCK], operation->value, 0);
	return 0;
}

static void tell_marked(struct operation *operation, int error)
{
	struct store_etcd *store = operation->store;

	store->events->on_marked(store->context, operation->tag, error);
	etcd_operation_end(operation, error);
}

static void conclude_mark(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	if (!error && !answer->succeeded)
		error = etcd_transaction_was_late(operation->store, answer) ? -ECONNRESET : -ENOENT;
	tell_marked(operation, error);
}

/* The clock runs: the marker can be written. */
static void on_granted(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct operation *operation = context;
	Etcd__LeaseGrantResponse *answer =
		etcd_message_read(&etcd__lease_grant_response__descriptor, bytes, count);
	struct etcd_clock clock = {0};
	int error =
		etcd_error(operation->store, status, text, operation->kind->doing, operation->path);

	operation->call = NULL;
	operation->asks = false;
	if (answer != NULL)
		clock = (struct etcd_clock){.lease = answer->id, .ttl_s = answer->ttl};
	etcd__lease_grant_response__free_unpacked(answer, NULL);
	if (error == 0 && (clock.lease <= 0 || clock.ttl_s <= 0))
		error = -EIO;
	if (error == 0 &&
	    asprintf(&operation->value, "%" PRId64 " %" PRId64, clock.lease, clock.ttl_s) < 0) {
		operation->value = NULL;
		error = -ENOMEM;
	}
	if (error == 0)
		etcd_operation_send(operation);
	else
		tell_marked(operation, error);
}

static struct grpc_call *ask_for_clock(struct operation *operation)
{
	Etcd__LeaseGrantRequest request = ETCD__LEASE_GRANT_REQUEST__INIT;

	if (getrandom(&request.id, sizeof(request.id), 0) != sizeof(request.id))
		request.id = 0; /* the server draws one */
	request.id &= INT64_MAX;
	request.ttl = operation->clock.ttl_s;
	return etcd_message_call(operation->store->grpc, GRANT, &request.base, 0, on_granted,
				 operation);
}

static const struct operation_kind mark = {
	STORE_MARK,    "cannot mark a claim of", say_mark,
	conclude_mark, .ask = ask_for_clock,	 .batch = BATCH_NONE};

void etcd_mark(struct store *base, void *tag, const char *path, const char *name, const char *text,
	       int64_t age_ms)
{
	struct operation *operation =
		etcd_operation_create_about(store_etcd_from(base), &mark, tag, path, name, text);

	if (operation == NULL)
		return;
	/* The seconds that are rounded away on the way back. */
	operation->clock.ttl_s = age_ms / 1000 + 2;
	operation->asks = age_ms > 0;
	etcd_operation_start(operation, true);
}

/* age() */

static int say_age(struct operation *operation, struct transaction *transaction)
{
	struct etcd_key *said = operation->said;

	if (!say_keys(operation))
		return -ENOMEM;
	etcd_transaction_require_session_to_read(transaction, operation->store);
	etcd_transaction_range(&transaction->then, &said[MARKER], NULL);
	etcd_transaction_range(&transaction->then, &said[CLOCK], NULL);
	etcd_transaction_range(&transaction->then, &said[DATA], NULL);
	return 0;
}

static void tell_age(struct operation *operation, int error, int64_t age_ms)
{
	struct store_etcd *store = operation->store;

	store->events->on_aged(store->context, operation->tag, error, age_ms,
			       error == 0 ? operation->value : NULL);
	etcd_operation_end(operation, error);
}

/* Whether the marker is that of the claim: another one may have its key by now. */
static bool is_marker(const struct operation *operation, const Etcd__RangeResponse *found)
{
	return found != NULL && found->n_kvs == 1 &&
	       found->kvs[0]->value.len == strlen(operation->name) &&
	       memcmp(found->kvs[0]->value.data, operation->name, strlen(operation->name)) == 0;
}

static bool read_clock(const Etcd__RangeResponse *found, struct etcd_clock *ret)
{
	char text[CLOCK_BYTES];

	if (found == NULL || found->n_kvs != 1 || found->kvs[0]->value.len >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)found->kvs[0]->value.len,
		 (const char *)found->kvs[0]->value.data);
	return sscanf(text, "%" SCNd64 " %" SCNd64, &ret->lease, &ret->ttl_s) == 2 &&
	       ret->lease > 0 && ret->ttl_s > 0 && ret->ttl_s <= INT32_MAX;
}

/* The data of the marker; NULL: out of memory. */
static char *read_data(const Etcd__RangeResponse *found)
{
	if (found == NULL || found->n_kvs != 1)
		return strdup("");
	return strndup((const char *)found->kvs[0]->value.data, found->kvs[0]->value.len);
}

/* A marker without a clock is of any age. */
static void conclude_age(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	if (!error && !answer->succeeded) {
		(void)etcd_transaction_was_late_to_read(operation->store, answer);
		error = -ECONNRESET;
	}
	if (!error && !is_marker(operation, etcd_transaction_found(answer, 0)))
		error = -ENOENT;
	if (!error) {
		free(operation->value);
		operation->value = read_data(etcd_transaction_found(answer, 2));
		error = operation->value != NULL ? 0 : -ENOMEM;
	}
	if (error || !read_clock(etcd_transaction_found(answer, 1), &operation->clock)) {
		tell_age(operation, error, 0);
		return;
	}
	operation->asks = true;
	etcd_operation_send(operation);
}

static void on_left(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct operation *operation = context;
	Etcd__LeaseTimeToLiveResponse *answer =
		etcd_message_read(&etcd__lease_time_to_live_response__descriptor, bytes, count);
	int error =
		etcd_error(operation->store, status, text, operation->kind->doing, operation->path);
	int64_t age_s = 0;

	operation->call = NULL;
	if (answer != NULL)
		age_s = operation->clock.ttl_s - (answer->ttl < 0 ? 0 : answer->ttl + 1);
	else if (error == 0)
		error = -EIO;
	etcd__lease_time_to_live_response__free_unpacked(answer, NULL);
	tell_age(operation, error, age_s > 0 ? age_s * 1000 : 0);
}

static struct grpc_call *ask_for_left(struct operation *operation)
{
	Etcd__LeaseTimeToLiveRequest request = ETCD__LEASE_TIME_TO_LIVE_REQUEST__INIT;

	request.id = operation->clock.lease;
	return etcd_message_call(operation->store->grpc, TIME_TO_LIVE, &request.base, 0, on_left,
				 operation);
}

static const struct operation_kind age = {STORE_READ,
					  "cannot tell the age of a marker of",
					  say_age,
					  conclude_age,
					  .ask = ask_for_left,
					  .batch = BATCH_NONE};

void etcd_age(struct store *base, void *tag, const char *path, const char *name)
{
	struct operation *operation =
		etcd_operation_create_about(store_etcd_from(base), &age, tag, path, name, NULL);

	if (operation != NULL)
		etcd_operation_start(operation, true);
}
