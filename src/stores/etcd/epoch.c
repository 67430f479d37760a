/* SPDX-License-Identifier: Apache-2.0
 *
 * Raises the epoch in the session's key (operation.h), by one attempt after the other: what was
 * sent before cannot be carried out after that.
 *
 * Servers that have no space left refuse the epoch, as all that puts a key, but carry out what
 * deletes and reads (applierV3Capped.Txn and quotaKVServer.Txn of etcd 3.4 to 3.7: by the cost of
 * what is put). A session that was there before goes on without its key then:
 *
 *   the session's key     the attempt                            when it is carried out
 *   has a lower epoch     put the epoch                          the key has this epoch
 *     refused             delete the key if its epoch is lower   there is no key: "keyless"
 *   is not there,
 *     keyless             put the epoch if there is no key       the key has this epoch
 *     refused             none but to look for a key             keyless
 *     else                none                                   the session is lost
 *
 * Each attempt has an epoch that is greater than those before, and whatever writes compares the
 * session's key with that of the latest one. So what was sent on a former connection is not carried
 * out any more: the comparison of a value fails where there is no key
 * (applierV3backend.applyCompare). An attempt whose answer is lost may be carried out later. It
 * cannot delete a key that a later one has put, as that has a greater epoch; and what it puts has
 * an epoch that nothing compares, and is found by the next attempt, or by the next heartbeat. One
 * that was refused for want of space may have been carried out, too (quotaApplierV3.Txn).
 *
 * A store that is only read has no key either: its one attempt looks whether there is one.
 *
 * Without its key the session writes nothing, so that there is nothing which might come late when
 * it connects anew, keyless again.
 *
 * What answers the first attempt on a connection also shows whether the service has *gone back*, as
 * to a backup: its revision is below what this host has seen, or its cluster is another one. Then
 * the session ends, whatever it is; and the mark below is taken away, as others may not notice.
 *
 * And whether the root is *settled*: whoever finds it empty cannot know whether it has always been.
 * So there is a mark below it. A host that finds none grants nothing for a session timeout, and
 * then puts the mark, unless it is told that the root is new.
 *
 * Loop thread only.
 */
#include "stores/etcd/epoch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

/* No session gets there; what is kept over a restart is a signed number. */
#define EPOCH_MAX ((uint64_t)INT64_MAX / 2)

/* In parts of the session's timeout: how long an answer is awaited. */
enum { SILENCES_IN_TIMEOUT = 4 };

static void put_epoch(struct store_etcd *store);
static void delete_key(struct store_etcd *store);
static void look_for_key(struct store_etcd *store);

/* To be called before the session asks something. Returns how long the answer is awaited. */
static int64_t begin_to_ask(struct store_etcd *store)
{
	store->epoch.asked_ms = clock_now_ms();
	store->epoch.asked_seen = store->epoch.seen;
	return store->ttl_s * 1000 / SILENCES_IN_TIMEOUT;
}

bool etcd_epoch_ask(struct store_etcd *store, const char *method, const ProtobufCMessage *request,
		    void (*done)(void *, int, const char *, const void *, size_t))
{
	int64_t limit_ms = begin_to_ask(store);

	store->session.asking =
		etcd_message_call(store->grpc, method, request, limit_ms, done, store);
	etcd_wake(store);
	return store->session.asking != NULL;
}

/* Puts the mark, or takes it away. Not to be waited for. */
static void change_mark(struct store_etcd *store, bool settled)
{
	struct transaction transaction;
	struct etcd_key mark;

	if (store->epoch.read_only || !etcd_key_of_mark(&mark, store->root))
		return;
	etcd_transaction_init(&transaction);
	if (settled)
		etcd_transaction_put(&transaction.then, &mark, "", 0);
	else
		etcd_transaction_delete(&transaction.then, &mark, NULL);
	if (grpc_is_connected(store->grpc))
		etcd_transaction_send(&transaction, store->grpc, 0, NULL, NULL);
	etcd_wake(store);
	free(mark.bytes);
}

void etcd_settle(struct store *base)
{
	change_mark(store_etcd_from(base), true);
}

static void forbid_grants(struct store_etcd *store, enum store_moratorium why)
{
	store->events->on_moratorium(store->context, why, clock_now_ms() + store->lease.timeout_ms);
}

/* Whether the service has gone back, by the linearizable answer to what is asked. */
static bool has_gone_back(struct store_etcd *store, const Etcd__Header *header)
{
	bool is_other = store->epoch.cluster != 0 && header->cluster_id != store->epoch.cluster;
	bool has = is_other || header->revision < store->epoch.asked_seen;

	tokens_note(&store->tokens.known, store->epoch.asked_seen);
	if (has) {
		log_error("etcd at %s is at revision %" PRId64 "%s, and was at %" PRId64
			  " before: the session is given up",
			  store->session.server, header->revision,
			  is_other ? " of another cluster" : "", store->epoch.asked_seen);
		forbid_grants(store, STORE_SET_BACK);
		change_mark(store, false);
		store->epoch.seen = 0;
	}
	store->epoch.cluster = header->cluster_id;
	etcd_note_seen(store, header);
	return has;
}

/* The attempt, which was carried out, has read the mark. */
static void judge_mark(struct store_etcd *store, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, 1);

	bool is_there = found == NULL || found->n_kvs > 0;

	if (!is_there && store->epoch.new_root)
		change_mark(store, true);
	else if (!is_there)
		forbid_grants(store, STORE_NEW_ROOT);
	store->epoch.new_root = false;
}

static void end(struct store_etcd *store, int status, const char *text)
{
	store->epoch.done(store, status, text);
}

static void end_well(struct store_etcd *store, const Etcd__TxnResponse *answer)
{
	etcd_leader_note(&store->leader, answer->header->raft_term, clock_now_ms());
	etcd_lease_note_proof(&store->lease, store->epoch.asked_ms, answer->header->member_id);
	end(store, GRPC_OK, "");
}

static void lose_key(struct store_etcd *store)
{
	log_error("etcd: the key of the session was taken away");
	store->session.is_over = true;
}

/* Reads the answer to an attempt. Returns false if there is none, which was told. */
static bool read_attempt(struct store_etcd *store, int status, const char *text, const void *bytes,
			 size_t count, Etcd__TxnResponse **ret)
{
	if (etcd_meaning(store, status, text) == ETCD_LEASE_GONE) {
		store->session.is_over = true;
		return false;
	}
	*ret = etcd_message_read(&etcd__txn_response__descriptor, bytes, count);
	if (*ret != NULL && (*ret)->header != NULL) {
		if (!has_gone_back(store, (*ret)->header) || !store->session.resumed)
			return true;
		store->session.is_over = true;
		etcd__txn_response__free_unpacked(*ret, NULL);
		return false;
	}
	etcd__txn_response__free_unpacked(*ret, NULL);
	end(store, status == GRPC_OK ? GRPC_CANCELLED : status, text);
	return false;
}

/* The epoch in the key that an attempt has found. Returns false if there is none. */
static bool find_epoch(const Etcd__TxnResponse *answer, uint64_t *ret)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, 0);
	char text[ETCD_EPOCH_BYTES] = {0};

	if (found == NULL || found->n_kvs != 1 || found->kvs[0]->value.len != ETCD_EPOCH_BYTES - 1)
		return false;
	memcpy(text, found->kvs[0]->value.data, ETCD_EPOCH_BYTES - 1);
	*ret = strtoull(text, NULL, 16);
	return *ret < EPOCH_MAX;
}

/* Asks for what the transaction does, on the condition that the key has a lower epoch, or that
 * there is none; else for the key. */
static void attempt(struct store_etcd *store, struct transaction *transaction, bool makes_key,
		    void (*done)(void *, int, const char *, const void *, size_t))
{
	int64_t limit_ms = begin_to_ask(store);

	if (makes_key) {
		etcd_transaction_require_created(transaction, &store->epoch.key, 0);
		etcd_transaction_range(&transaction->otherwise, &store->epoch.key, NULL);
	} else {
		etcd_transaction_require_session(transaction, store);
		transaction->when.compares[0].result = ETCD__COMPARE__RESULT__LESS;
	}
	store->session.asking =
		etcd_transaction_send(transaction, store->grpc, limit_ms, done, store);
	etcd_wake(store);
	if (store->session.asking == NULL)
		end(store, GRPC_CANCELLED, "");
}

/* With space */

static void on_put(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__TxnResponse *answer;

	store->session.asking = NULL;
	if (etcd_meaning(store, status, text) == ETCD_FULL && store->session.resumed &&
	    store->session.step != SESSION_CONNECTED) {
		store->epoch.makes_key = store->epoch.is_keyless;
		store->epoch.is_keyless = true;
		delete_key(store);
		return;
	}
	if (!read_attempt(store, status, text, bytes, count, &answer))
		return;
	if (answer->succeeded) {
		store->epoch.is_keyless = false;
		judge_mark(store, answer);
		etcd_tokens_note(store, answer, 2);
		etcd_tokens_raise(store, answer->header->revision);
		end_well(store, answer);
	} else if (find_epoch(answer, &store->epoch.number)) {
		/* Whoever raised it further meanwhile, for this session, went before. */
		store->session.resumed = true;
		store->epoch.makes_key = false;
		put_epoch(store);
	} else if (store->epoch.is_keyless && !store->epoch.makes_key) {
		store->epoch.makes_key = true;
		put_epoch(store);
	} else {
		lose_key(store);
	}
	etcd__txn_response__free_unpacked(answer, NULL);
}

static void put_epoch(struct store_etcd *store)
{
	struct transaction transaction;
	struct etcd_key mark = {0}, tokens = {0};
	char epoch[ETCD_EPOCH_BYTES];

	store->epoch.number++;
	etcd_transaction_write_epoch(store, epoch);
	etcd_transaction_init(&transaction);
	etcd_transaction_put(&transaction.then, &store->epoch.key, epoch, store->session.lease_id);
	if (etcd_key_of_mark(&mark, store->root) && etcd_key_of_tokens(&tokens, store->root)) {
		etcd_transaction_range(&transaction.then, &mark, NULL);
		etcd_transaction_range(&transaction.then, &tokens, NULL);
		attempt(store, &transaction, store->epoch.makes_key, on_put);
	} else {
		end(store, GRPC_CANCELLED, "");
	}
	free(mark.bytes);
	free(tokens.bytes);
}

void etcd_epoch_raise(struct store_etcd *store,
		      void (*done)(struct store_etcd *store, int status, const char *text))
{
	store->epoch.done = done;
	if (store->epoch.read_only) {
		store->epoch.is_keyless = store->epoch.makes_key = true;
		look_for_key(store);
		return;
	}
	/* The first one makes the key; a former attempt may have made it, or may do so later. */
	store->epoch.makes_key = !store->session.resumed || store->epoch.is_keyless;
	put_epoch(store);
}

/* Without */

static void on_deleted(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__TxnResponse *answer;

	store->session.asking = NULL;
	if (!read_attempt(store, status, text, bytes, count, &answer))
		return;
	if (answer->succeeded)
		end_well(store, answer);
	else if (find_epoch(answer, &store->epoch.number))
		delete_key(store);
	else if (store->epoch.makes_key)
		end_well(store, answer);
	else
		lose_key(store);
	etcd__txn_response__free_unpacked(answer, NULL);
}

static void delete_key(struct store_etcd *store)
{
	struct transaction transaction;

	store->epoch.number++;
	etcd_transaction_init(&transaction);
	etcd_transaction_delete(&transaction.then, &store->epoch.key, NULL);
	attempt(store, &transaction, false, on_deleted);
}

static void look_for_key(struct store_etcd *store)
{
	struct transaction transaction;

	store->epoch.number++;
	etcd_transaction_init(&transaction);
	attempt(store, &transaction, false, on_deleted);
}
