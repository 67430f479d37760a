/* SPDX-License-Identifier: Apache-2.0
 *
 * An operation is a transaction of etcd (KV.Txn), or a part of one that it shares with others of
 * its kind (batch.c); reads are transactions without writes, so they are linearizable. Requests on
 * one connection are carried out in no order. So there is a *lane* for each lock, in which one
 * operation is under way at a time, and the others wait in the order in which they were called. A
 * withdrawal waits only for those on the same claim: whatever else it overtakes, or is carried out
 * before it though it was called later, changes nothing but claims that stand, by their create
 * revisions; and no list shows a claim any more whose withdrawal was called.
 * Lock files are in no lane: files.c has their order.
 *
 * A request whose answer did not come may be carried out later, also on behalf of a connection that
 * is lost: nothing that is read on the next connection tells. So a session has a key with its
 * *epoch*, a number that is raised when the store connects anew, before anything else is asked; and
 * whatever writes compares it. What was sent before cannot be carried out after that. A request
 * that a server gives up itself, for want of an answer from the others, ends the connection, too.
 * Servers that have no space left take no key. Then the session's key is deleted instead: what
 * writes compares an epoch that is nowhere, until the key can be put again (epoch.c).
 */
#ifndef DLOCKFS_STORES_ETCD_OPERATION_H
#define DLOCKFS_STORES_ETCD_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/keys.h"
#include "stores/statistics.h"
#include "stores/store.h"

struct file_request; /* files.c */
struct grpc_call;
struct lane;  /* lane.h */
struct names; /* names.h */
struct operation;
struct store_etcd;  /* state.h */
struct transaction; /* transaction.h */

enum { OPERATION_KEYS = 8 };

/* Which of them share a transaction (batch.c). */
enum operation_batch { BATCH_NONE, BATCH_WITHDRAWALS, BATCH_PLACES, BATCH_READS, BATCHES };

/* What is asked, one constant for each call. */
struct operation_kind {
	enum store_operation counts_as;
	const char *doing; /* "cannot place", for the log */
	/* Adds the operation to a transaction, which has no other one if the operation is `alone`.
	 * Keys and texts have to last until the transaction is sent: `said` is for keys. Returns 0;
	 * -ENOMEM; or what else is the answer without a request. */
	int (*say)(struct operation *operation, struct transaction *transaction);
	/* Delivers the event. The answer is there if error is 0. Frees the operation, or sends it
	 * again. */
	void (*conclude)(struct operation *operation, int error, const Etcd__TxnResponse *answer);
	void (*finish)(struct operation *operation); /* frees what it has besides; or NULL */
	enum operation_batch batch;
	/* Asked from outside of the engine: when the session is over the operation goes on; an
	 * alteration is answered then. */
	bool is_outside;
};

/* A claim that is to stand, with the keys that are said of it. */
struct proved {
	struct etcd_named claim;
	struct etcd_key data, end;
};

struct operation {
	struct operation *prev, *next;	       /* in its lane, or in operations.others */
	struct operation *due_prev, *due_next; /* in operations.failed, or operations.ready */
	struct store_etcd *store;
	struct lane *lane; /* NULL: it is in none */
	const struct operation_kind *kind;
	void *tag;
	struct grpc_call *call;
	int64_t sent_ms; /* of clock_now_ms() */
	int64_t began_us;
	int failure;	   /* it is in operations.failed, to be answered that; 0: it is not */
	bool alone;	   /* it is to have a transaction of its own */
	size_t step;	   /* its first one in the transaction */
	char *path, *name; /* of the lock, and of the claim */
	char *text;	   /* to be written */
	char *value;	   /* of the key, with the text */
	struct etcd_named claim;
	struct etcd_key queue, markers; /* what the keys of all claims and markers begin with */
	struct etcd_key said[OPERATION_KEYS]; /* other keys in its request */
	uint32_t version;
	bool list;		 /* place(): with the queue; list(): attend */
	bool marked;		 /* withdraw(): with the marker */
	int64_t lease;		 /* write(): of the claim */
	struct claim_name parts; /* place() */
	void *attention;	 /* of place(); or NULL */
	int64_t attention_id;	 /* of list(); 0: none */
	unsigned retries;
	/* look() */
	struct etcd_key next_page;
	struct names *names;
	struct file_request *file; /* it is about files, asked from outside in this session */
	/* prove() */
	struct store_proof *proofs; /* of one block */
	struct proved *proved;
	size_t count;
};

struct etcd_operations {
	struct lane *lanes;		  /* by path */
	uint64_t claims_session;	  /* of the ids of the claims that were placed last */
	struct operation *others;	  /* which are in no lane */
	struct operation *failed;	  /* to be answered by the next dispatch() */
	struct operation *ready[BATCHES]; /* to be sent by the next dispatch() */
};

/* Makes an operation. conclude() is called once for it by dispatch(), unless the session is lost
 * before that. NULL: out of memory; an operation of the engine then gives the session up, as there
 * is no other answer that needs no memory. */
struct operation *etcd_operation_create(struct store_etcd *store, const struct operation_kind *kind,
					void *tag, const char *path, const char *name);

/* Makes an operation of the engine about the claim `name`, likewise. */
struct operation *etcd_operation_create_about(struct store_etcd *store,
					      const struct operation_kind *kind, void *tag,
					      const char *path, const char *name, const char *text);

/* Sends the operation, behind those of its lock if it is to be in a lane. */
void etcd_operation_start(struct operation *operation, bool in_lane);

/* Has the operation wait, in no lane, for etcd_operation_send(). */
void etcd_operation_hold(struct operation *operation);

/* Makes the request of an operation that was held; or once more, for example with what the answer
 * to the first request told. */
void etcd_operation_send(struct operation *operation);

/* The operation goes out with others of its kind, by etcd_batches_send(). */
void etcd_operation_wait_for_others(struct operation *operation);

/* Has the next dispatch() answer the operation with that error, which is not 0. */
void etcd_operation_fail(struct operation *operation, int error);

/* Counts the operation and frees it, and sends the next one of its lane. */
void etcd_operation_end(struct operation *operation, int error);

/* Reads the answer to a transaction that was sent then. Returns 0 or -EIO; *ret is to be freed in
 * both cases. */
int etcd_operation_read_answer(struct store_etcd *store, int64_t sent_ms, const void *bytes,
			       size_t count, Etcd__TxnResponse **ret);

/* Frees the keys that say() has made. */
void etcd_operation_forget_said(struct operation *operation);

/* Frees an operation that was not started. NULL is fine. */
void etcd_operation_free(struct operation *operation);

/* Concludes those that have failed at once so far. */
void etcd_operations_conclude_failed(struct store_etcd *store);

/* Frees the engine's operations without an event. Those from outside (look.c, files.c) go on, but
 * alter() is answered -ECONNRESET. */
void etcd_operations_drop(struct store_etcd *store);

/* Frees those from outside, too. */
void etcd_operations_forget_outside(struct store_etcd *store);

#endif
