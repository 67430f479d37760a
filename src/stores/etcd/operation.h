/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the etcd store, for its own files: store.c (the table), session.c (leases, and what
 * is told of them), epoch.c, operation.c (how operations go to the servers and come back), batch.c
 * (which of them share a transaction), slots.c (which keys are in use), place.c, withdraw.c,
 * space.c, queue.c (list), claim.c (amend, mark, prove), watch.c, look.c, files.c and names.c. The
 * form of transactions is in transaction.h.
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

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/alarm.h"
#include "base/log_limit.h"
#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/grpc/grpc.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/leader.h"
#include "stores/etcd/lease.h"
#include "stores/etcd/message.h"
#include "stores/etcd/refusal.h"
#include "stores/statistics.h"
#include "stores/store.h"
#include "stores/tokens.h"

#define ETCD_TTL_MAX_S	300  /* lease.h has the reason */
#define ETCD_REFUSED_MS 5000 /* until the next attempt when the servers reject the identity */

struct batch;
struct gone;
struct lane;
struct slots;
struct transaction; /* transaction.h */
struct transaction_branch;
struct names;
struct file_request; /* files.c */
struct file_turn;
struct watch;

enum { OPERATION_KEYS = 8 };

struct operation;

/* Which of them share a transaction (batch.c). */
enum operation_batch { BATCH_NONE, BATCH_WITHDRAWALS, BATCH_PLACES, BATCHES };

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
	struct operation *prev, *next; /* in its lane, or in the store's list of others */
	struct operation *failed_prev, *failed_next;
	struct operation *ready_prev, *ready_next;
	struct store_etcd *store;
	struct lane *lane; /* NULL: it is in none */
	const struct operation_kind *kind;
	void *tag;
	struct grpc_call *call;
	int64_t sent_ms; /* of clock_now_ms() */
	int64_t began_us;
	bool is_failed;	   /* it is in the store's list of those */
	int failure;	   /* what it is to be answered then */
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

/* The operations of a lock, of which the first is under way; but most withdrawals. */
struct lane {
	char *path;
	struct operation *operations;
	size_t withdrawals;
	struct gone *gone; /* claims that are not to be seen any more: their withdrawal was called,
			      or a watch has reported their end while a list is under way */
	UT_hash_handle hh;
};

enum session_step {
	SESSION_NONE,	   /* renew() is awaited, */
	SESSION_WANTED,	   /* or a connection, or the time for another attempt */
	SESSION_ASKED,	   /* who we are is told, the lease is asked for or found again */
	SESSION_CONNECTED, /* told */
};

struct seeker;

struct store_etcd {
	struct store store; /* first */
	const struct store_events *events;
	void *context;
	struct store_statistics *statistics; /* NULL: none are kept */
	const struct store_access *access;
	struct store_access own_access; /* what `access` points to */
	char *servers, *root;
	int64_t ttl_s; /* to ask for */
	struct grpc *grpc;
	struct seeker *seeker;
	int64_t seek_ms; /* when the answer to a keep-alive is late; INT64_MAX: none is awaited */
	int poll;	 /* an epoll(7) descriptor of those of grpc and the seeker, and: */
	int wake;	 /* an eventfd(2): there are operations that failed at once, or calls to be
		      written; */
	struct alarm alarm; /* for etcd_session_next_ms() */

	/* The session */
	enum session_step step;
	int64_t lease_id;	       /* 0: there is none */
	int64_t former_lease;	       /* to be revoked when there is a connection; 0: none */
	const struct store_told *told; /* by the latest renew(), which comes before that; NULL: it
					  has not come yet */
	struct etcd_key session_key;
	uint64_t epoch;
	struct etcd_lease lease;
	struct etcd_leader leader;
	int64_t asked_ms; /* when the lease was asked for */
	bool resumed;	  /* it is to be found again, not asked for */
	bool is_keyless;  /* the session's key may be deleted, for want of space (epoch.c) */
	bool is_stranger; /* the servers have not taken who we said we were, this time */
	bool makes_key;	  /* the attempt under way takes it that there is none; that which deletes
			     it, that there may be none */
	void (*on_epoch)(struct store_etcd *store, int status, const char *text); /* of epoch.c */
	int64_t seen;	    /* the greatest revision that this host has seen there, */
	int64_t asked_seen; /* that when what is asked was sent, */
	uint64_t cluster;   /* and of which cluster; 0: none */
	struct store_tokens tokens;
	int64_t tokens_version; /* of the key of their offset; 0: there is none */
	bool raising;		/* they are being raised */
	int tokens_error;	/* why the last one was refused, -errno; 0: it was not */
	bool new_root;		/* as in struct store_options, until the first session */
	struct grpc_call *asking;
	struct grpc_call *keeper; /* the stream of keep-alives; NULL: to be opened */
	int64_t test_lease;  /* the stream is asked for first, which nobody has; 0: it was answered
			      */
	int64_t kept_ms;     /* when the latest keep-alive was sent; INT64_MIN: none was */
	bool keeping;	     /* it is not answered yet */
	int64_t leased_ms;   /* when the last lease was asked for */
	int64_t retry_ms;    /* when to try again what was refused; INT64_MAX: not */
	const char *trouble; /* a constant; NULL: none is known */
	char server[64];     /* "" if there is no connection */

	struct store_space space; /* as it was told last */
	bool asks_space;	  /* it is being asked for, */
	int64_t space_ms;	  /* or then; INT64_MAX: there was no connection yet */

	/* Operations */
	struct lane *lanes;		  /* by path */
	struct slots *slots;		  /* by path */
	struct file_turn *turns;	  /* by path */
	uint64_t claims_session;	  /* of the ids of the claims that were placed last */
	struct operation *others;	  /* which are in no lane */
	struct operation *failed;	  /* to be answered by the next dispatch() */
	struct operation *ready[BATCHES]; /* to be sent by it */
	struct batch *batches;		  /* which are under way */
	struct log_limit refusals;
	bool is_awake;	       /* `wake` is written to */
	bool told_unreachable; /* the log says that there is no connection */
	bool is_over;	       /* the session is to be lost by dispatch(), */
	bool is_starved;       /* for want of memory */

	/* Watches (watch.c) */
	struct grpc_call *watcher; /* the stream; NULL: to be opened */
	struct watch *watches;	   /* by their id */
	struct watch *lost;	   /* to be set up, in their order */
	struct watch *read;	   /* those that are being read */
	int64_t watch_ids;
	size_t watches_read;	   /* how many are being read */
	int64_t progress_ms;	   /* when the stream's progress was asked for last, */
	int64_t asked_progress_ms; /* and the same until it is answered; then INT64_MAX */
};

static inline struct store_etcd *store_etcd_from(struct store *store)
{
	return (struct store_etcd *)store;
}

static inline enum etcd_meaning etcd_meaning(const struct store_etcd *store, int status,
					     const char *text)
{
	return etcd_meaning_of(status, text, store->access->user);
}

/* The session is told to be connected, and what is asked in it can be sent: not while the server
 * ends the connection, and only answers what it was asked before. */
static inline bool etcd_session_is_open(const struct store_etcd *store)
{
	return store->step == SESSION_CONNECTED && grpc_is_connected(store->grpc);
}

/* An answer, or a watch, has shown the service as it was then. */
static inline void etcd_note_seen(struct store_etcd *store, const Etcd__Header *header)
{
	if (header->revision > store->seen)
		store->seen = header->revision;
}

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

/* Has it wait, in no lane, for etcd_operation_send_again(). */
void etcd_operation_hold(struct operation *operation);

/* Makes the request once more, for example with what the answer to the first one told. */
void etcd_operation_send_again(struct operation *operation);

/* Counts and frees it, and sends the next one of its lane. */
void etcd_operation_end(struct operation *operation, int error);

/* Reads the answer to a transaction that was sent then. Returns 0 or -EIO; *ret is to be freed in
 * both cases, unless it is NULL. */
int etcd_answer_read(struct store_etcd *store, int64_t sent_ms, const void *bytes, size_t count,
		     Etcd__TxnResponse **ret);

/* Answers it with that by the next dispatch(). */
void etcd_operation_fail(struct operation *operation, int error);

/* The operation goes out with others of its kind, by etcd_batches_send(). */
void etcd_operation_wait_for_others(struct operation *operation);

/* Frees the keys of say(). */
void etcd_operation_forget_said(struct operation *operation);

/* Frees one that was not started. */
void etcd_operation_free(struct operation *operation);

/* Frees all operations without an event. Those from outside (look.c, files.c) go on, but alter() is
 * answered -ECONNRESET. */
void etcd_operations_drop(struct store_etcd *store);

/* The others, too. */
void etcd_operations_forget_outside(struct store_etcd *store);

/* Concludes those that failed at once. */
void etcd_operations_conclude_failed(struct store_etcd *store);

/* Makes dispatch() come soon. */
void etcd_store_wake(struct store_etcd *store);

/* Out of memory: gives the session up, soon. */
void etcd_store_starve(struct store_etcd *store);

/* What an answer of a server means for the one who asked: 0, -ECONNRESET, -EACCES, -EIO; what is
 * refused is logged, at most so often. May end the connection or the session. */
int etcd_error(struct store_etcd *store, int status, const char *text, const char *doing,
	       const char *path);

/* Claims that a watch has reported as gone, while lists of the lock are under way. */
void etcd_lane_note_gone(struct store_etcd *store, const char *path, const char *name);

/* From its withdrawal on, a claim is left out of lists, unless the withdrawal was refused. The
 * first returns false when out of memory. */
bool etcd_lane_begin_withdrawal(struct store_etcd *store, const char *path, const char *name);
void etcd_lane_end_withdrawal(struct store_etcd *store, const char *path, const char *name,
			      bool is_gone);

/* Whether an operation on that claim is in the lane. */
bool etcd_lane_is_about(struct store_etcd *store, const char *path, const char *name);

bool etcd_queue_has_gone(struct store_etcd *store, const char *path, const char *name);

/* batch.c */

/* Sends what is ready, at the end of a turn of the loop. */
void etcd_batches_send(struct store_etcd *store);
/* Without an event. Their operations are to be dropped then. */
void etcd_batches_drop(struct store_etcd *store);

/* slots.c */

/* Takes the least slot that is free; 0: there is none, or no memory. */
uint16_t etcd_slot_take(struct store_etcd *store, const char *path);
/* It is in use. Returns false when out of memory. */
bool etcd_slot_note(struct store_etcd *store, const char *path, uint16_t slot);
void etcd_slot_give(struct store_etcd *store, const char *path, uint16_t slot);
void etcd_slots_drop(struct store_etcd *store);

/* farewell.c */

/* Ends the lease, which may take until then, if there is a connection. */
void etcd_farewell(struct store_etcd *store, int64_t lease, int64_t until_ms);

/* session.c */

/* Begins a session, or goes on with one, as soon as there is a connection. */
void etcd_session_start(struct store_etcd *store);
/* There is a connection to the server, "HOST:PORT"; or none any more. */
void etcd_session_connected(struct store_etcd *store, const char *server);
void etcd_session_disconnected(struct store_etcd *store);
/* The session is over, or is_starved: drops all that belongs to it, and tells STORE_LOST. */
void etcd_session_lose(struct store_etcd *store);
/* renew() of the table: the same without an event, and begins another one. */
void etcd_session_give_up(struct store_etcd *store, const struct store_told *told);
/* Does what is due, and says when that is, by clock_now_ms() (INT64_MAX: never): attempts,
 * keep-alives, and what watch.c has to do. */
void etcd_session_on_time(struct store_etcd *store);
int64_t etcd_session_next_ms(const struct store_etcd *store);
/* seek.c: looks for a link while the present one is in doubt. To be called when there is a
 * connection, and when there is none any more; when a keep-alive is sent; and when one is answered,
 * or nothing depends on the link any more. */
int etcd_seek_init(struct store_etcd *store);
void etcd_seek_connected(struct store_etcd *store);
void etcd_seek_lost(struct store_etcd *store);
void etcd_seek_sent(struct store_etcd *store);
void etcd_seek_end(struct store_etcd *store);
void etcd_seek_on_time(struct store_etcd *store, int64_t now_ms); /* due at store->seek_ms */

/* The servers answer, but have no space for a session: they are asked again after a while. */
bool etcd_session_is_refused(const struct store_etcd *store);
/* Ends it, which may take as long as that. */
void etcd_session_close(struct store_etcd *store, const struct store_told *told, int64_t limit_ms);

/* keeper.c */

/* Sends a keep-alive. Returns false if there is no stream, or no memory. */
bool etcd_keeper_send(struct store_etcd *store, int64_t lease);
/* The stream is new: asks whether it is a member that answers on it. */
void etcd_keeper_test(struct store_etcd *store);
/* Whether the answer is one of a member. */
bool etcd_keeper_is_member(struct store_etcd *store, const Etcd__LeaseKeepAliveResponse *answer);

/* term.c */

/* While something waits for an answer: looks for another leader, and leaves the server if what was
 * asked was dropped; and when that is due, by clock_now_ms() (INT64_MAX: never). */
void etcd_term_on_time(struct store_etcd *store, int64_t now_ms);
int64_t etcd_term_next_ms(const struct store_etcd *store);

/* space.c */

void etcd_space_init(struct store_etcd *store);
/* There is a connection. */
void etcd_space_connected(struct store_etcd *store);
/* Asks for the space when that is due; and when it is. */
void etcd_space_on_time(struct store_etcd *store, int64_t now_ms);
int64_t etcd_space_next_ms(const struct store_etcd *store);
/* space() of the table. */
void etcd_space(const struct store *base, struct store_space *ret);

/* epoch.c */

/* Raises the epoch. done() is called when it is, or the key is deleted for want of space
 * (is_keyless), with GRPC_OK, or else with the status that a server has answered; but not if the
 * session is_over, nor after a grpc_cancel() of `asking`. */
void etcd_epoch_raise(struct store_etcd *store,
		      void (*done)(struct store_etcd *store, int status, const char *text));
/* settle() of the table. */
void etcd_settle(struct store *base);

/* The step of the answer has read the offset of tokens. */
void etcd_tokens_note(struct store_etcd *store, const Etcd__TxnResponse *answer, size_t step);

/* Raises the offset, if the service, at that revision, is below the floor. Not to be waited for. */
void etcd_tokens_raise(struct store_etcd *store, int64_t revision);

/* The token of the change that the answer tells of, which was noted. Returns 0; -ECONNRESET: the
 * change is to be made again; -EACCES: the offset is to be raised, and may not be, which was
 * logged. */
int etcd_tokens_make(struct store_etcd *store, const Etcd__TxnResponse *answer, int64_t *ret);
/* Asks what `asking` is then. Returns false when out of memory. */
bool etcd_session_ask(struct store_etcd *store, const char *method, const void *message,
		      size_t bytes, void (*done)(void *, int, const char *, const void *, size_t));

/* queue.c */

void etcd_list(struct store *base, void *tag, const char *path, bool sync, bool attend);

/* The queue, from the answers about its claims and its markers, in its order: to be freed by
 * etcd_queue_free(). Claims that were reported as gone are left out. Returns 0 or -ENOMEM. */
struct queue {
	struct store_entry *entries;
	size_t count;
};
int etcd_queue_parse(const struct operation *operation, const Etcd__RangeResponse *claims,
		     const Etcd__RangeResponse *markers, struct queue *ret);
void etcd_queue_free(struct queue *queue);

/* The greatest order of a claim that has a marker, whether it stands or is an orphan; 0: none. */
int64_t etcd_queue_latest_marked(const struct operation *operation,
				 const Etcd__RangeResponse *markers);

/* Adds what shows the queue to a transaction. */
void etcd_queue_range(struct transaction_branch *branch, const struct operation *operation,
		      const struct etcd_key ends[2]);
bool etcd_queue_keys(struct operation *operation, struct etcd_key ends[2]);

/* names.c */

struct names {
	char **list;
	size_t count, room;
};

/* The operation's names are those below its path: the first page of keys begins there. Returns
 * false when out of memory. */
bool etcd_names_begin(struct operation *operation);

/* Adds one, unless it is the last one there. Returns false when out of memory. */
bool etcd_names_add(struct names *names, const char *name, size_t bytes);

/* The next page of keys begins with those bytes and that character behind them. Returns 0, -ENOMEM,
 * or -EIO if that is not behind where this page begins, or there are too many names. */
int etcd_names_turn_page(struct operation *operation, const uint8_t *key, size_t bytes, char next);

/* Those of an operation, and the list. */
void etcd_names_free(struct operation *operation);

/* The others */

void etcd_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		const char *text, bool list, void *attention);
void etcd_amend(struct store *base, void *tag, const char *path, const char *name, const char *text,
		uint32_t version);
void etcd_mark(struct store *base, void *tag, const char *path, const char *name, const char *text);
void etcd_withdraw(struct store *base, const struct store_told *told, void *tag, const char *path,
		   const char *name, int64_t order, bool marker);
void etcd_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count);

/* Sends an empty transaction to the quorum: its answer is a proof (lease.h). */
void etcd_touch(struct store_etcd *store);
int etcd_look(struct store *base, struct store_look *look, const char *path);
int etcd_read(struct store *base, struct store_read *read, const char *path, const char *name);
int etcd_write(struct store *base, struct store_change *change, const char *path, const char *name,
	       const char *text, uint32_t version);
int etcd_remove(struct store *base, struct store_change *change, const char *path, const char *name,
		uint64_t session);

/* Writes new data of a claim. */
void etcd_change(struct transaction *transaction, const struct etcd_named *claim,
		 const struct etcd_key *data, const struct etcd_key *end, const char *text,
		 uint32_t version, int64_t lease);

/* files.c */

int etcd_read_file(struct store *base, struct store_read *read, const char *path);
int etcd_files(struct store *base, struct store_files *files, const char *directory);
int etcd_alter(struct store *base, struct store_change *change, const struct store_step *steps,
	       size_t count);

/* watch.c */

void etcd_watch(struct store *base, void *tag, const char *path, const char *name);

/* on_changed() follows when the queue changes after that revision. */
void etcd_watches_attend(struct store_etcd *store, void *tag, const char *path, int64_t revision);

/* A list shows how the data of claims that are watched were changed by then. The keys of the queue
 * begin with the prefix. */
void etcd_watches_note_listed(struct store_etcd *store, const char *path,
			      const Etcd__RangeResponse *claims, const struct etcd_key *prefix);

/* The session is told to be connected: sets up what was lost. */
void etcd_watches_connected(struct store_etcd *store);
/* The connection, or the stream, is lost: who attends to a queue is told that it may have changed,
 * and the watches are lost. */
void etcd_watches_disconnected(struct store_etcd *store);
/* The session is over: drops all, without an event. */
void etcd_watches_drop(struct store_etcd *store);
/* Asks for the stream's progress when that is due, without an answer sets the stream up anew; and
 * when that is. */
void etcd_watches_on_time(struct store_etcd *store, int64_t now_ms);
int64_t etcd_watches_next_ms(const struct store_etcd *store);

#endif
