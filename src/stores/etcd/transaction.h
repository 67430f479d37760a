/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of transactions, of the epoch and of values: what operations say to the servers. For the
 * etcd store's own files.
 */
#ifndef DLOCKFS_STORES_ETCD_TRANSACTION_H
#define DLOCKFS_STORES_ETCD_TRANSACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/grpc/grpc.h"
#include "stores/etcd/keys.h"
#include "stores/store.h"

struct store_etcd;

#define ETCD_TRANSACTION_METHOD "/etcdserverpb.KV/Txn"
#define ETCD_REVOKE_METHOD	"/etcdserverpb.Lease/LeaseRevoke"

/* Of an epoch as text: sixteen hexadecimal digits, so that a later epoch is the greater text. */
#define ETCD_EPOCH_BYTES 17

/* Writes the session's epoch as text. */
void etcd_transaction_write_epoch(const struct store_etcd *store, char text[ETCD_EPOCH_BYTES]);

enum { TRANSACTION_MAX = 2 * STORE_PROOFS_MAX + 2 };

struct transaction_step {
	Etcd__RequestOp op;
	union {
		Etcd__RangeRequest range;
		Etcd__PutRequest put;
		Etcd__DeleteRangeRequest delete_range;
	};
};

/* What is done, in one of the two cases. */
struct transaction_branch {
	size_t count;
	struct transaction_step steps[TRANSACTION_MAX];
	Etcd__RequestOp *list[TRANSACTION_MAX];
};

struct transaction {
	Etcd__TxnRequest request;
	struct {
		size_t count;
		Etcd__Compare compares[TRANSACTION_MAX];
		Etcd__Compare *list[TRANSACTION_MAX];
	} when;
	struct transaction_branch then, otherwise;
	char epoch[ETCD_EPOCH_BYTES];
};

/* About 50 KB, for the stack. The keys and texts are not copied. */
void etcd_transaction_init(struct transaction *transaction);

/* Only in this session, and with its present epoch; else the first step of the other branch shows
 * the session's key. */
void etcd_transaction_require_session(struct transaction *transaction,
				      const struct store_etcd *store);

/* Likewise, for a transaction that writes no key: where the session's key was deleted for want of
 * space, the transaction is carried out only without that key. */
void etcd_transaction_require_session_to_read(struct transaction *transaction,
					      const struct store_etcd *store);

/* Only if the key was created by that revision; 0: if there is no such key. */
void etcd_transaction_require_created(struct transaction *transaction, const struct etcd_key *key,
				      int64_t revision);

/* Only if the key was written so often since it was created; 0: if there is no such key. */
void etcd_transaction_require_version(struct transaction *transaction, const struct etcd_key *key,
				      int64_t version);

/* Only if the key has that lease. */
void etcd_transaction_require_lease(struct transaction *transaction, const struct etcd_key *key,
				    int64_t lease);

/* Only if that is the key's value. */
void etcd_transaction_require_value(struct transaction *transaction, const struct etcd_key *key,
				    const char *value);

/* Steps: a read, or a deletion, of the key, or (`end` not NULL) of all from it up to that one; and
 * a write. The results are for what else is to be said of the step. At most TRANSACTION_MAX. */
Etcd__RangeRequest *etcd_transaction_range(struct transaction_branch *branch,
					   const struct etcd_key *key, const struct etcd_key *end);
Etcd__PutRequest *etcd_transaction_put(struct transaction_branch *branch,
				       const struct etcd_key *key, const char *text, int64_t lease);
void etcd_transaction_delete(struct transaction_branch *branch, const struct etcd_key *key,
			     const struct etcd_key *end);

/* Writes new data of a claim, with that lease, if the claim stands and its data were changed so
 * often (STORE_ANY_VERSION: or more, or less); else the other branch shows the claim's keys up to
 * `end`. */
void etcd_transaction_change(struct transaction *transaction, const struct etcd_named *claim,
			     const struct etcd_key *data, const struct etcd_key *end,
			     const char *text, uint32_t version, int64_t lease);

/* Sends all that was said, as grpc_call() does. NULL: out of memory, or not connected. */
struct grpc_call *
etcd_transaction_send(struct transaction *transaction, struct grpc *grpc, int64_t limit_ms,
		      void (*done)(void *, int, const char *, const void *, size_t), void *context);

/* The keys that the step of that number found; NULL: the step does not read. */
const Etcd__RangeResponse *etcd_transaction_found(const Etcd__TxnResponse *answer, size_t step);

/* Whether a transaction that required the session was not carried out because of that. Then the
 * connection is left, and the session found again on the next one. */
bool etcd_transaction_was_late(struct store_etcd *store, const Etcd__TxnResponse *answer);
bool etcd_transaction_was_late_to_read(struct store_etcd *store, const Etcd__TxnResponse *answer);

#endif
