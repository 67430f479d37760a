/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the ZooKeeper store, for its own files: store_zookeeper.c (the table, the session
 * and amend()), zookeeper_place.c, zookeeper_delete.c, zookeeper_list.c, zookeeper_watch.c,
 * zookeeper_prove.c and zookeeper_look.c (the others), zookeeper_root.c (the znode above all) and
 * zookeeper_operation.c (what they share).
 *
 * An operation makes one or more requests at once. Until all of them are answered it belongs to
 * ZooKeeper's completion thread, whose callbacks fill in the answers; the last of them posts the
 * operation, and from then on it is the loop's thread's alone. It is freed when its event has been
 * delivered, or, if its session was lost, when that session's handle is closed and nothing can call
 * back any more.
 */
#ifndef DLOCKFS_ZOOKEEPER_OPERATION_H
#define DLOCKFS_ZOOKEEPER_OPERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "log_limit.h"
#include "store.h"
#include "store_statistics.h"
#include "zookeeper_session.h"

struct names {
	size_t count;
	char text[]; /* one after the other, each with its NUL */
};

struct prove; /* zookeeper_prove.c */

/* A claim and its companion, for requests that are about both; and what the client library writes
 * to until they are answered. */
struct pair {
	zoo_op_t ops[2]; /* of the companion, of the claim */
	zoo_op_result_t results[2];
	char *companion;  /* its znode (place: without its number) */
	char *created[2]; /* the znodes as the server has named them */
	bool apart;	  /* each is asked for by itself, */
	int code;	  /* and this is the answer about the companion */
};

struct operation {
	struct zookeeper_message message;
	struct operation *prev, *next; /* in its session */
	struct store_zookeeper *store;
	struct zookeeper_session *session; /* NULL: there was none, nothing was sent */
	uint64_t generation;
	void *tag;
	enum store_operation kind;
	int64_t sent_us; /* when it was started; 0: it is counted already */
	/* Called when all requests are answered: delivers the event, or makes more requests. */
	void (*conclude)(struct operation *operation);
	char *path;   /* znode of the claim (place: without its number), or of the lock (list) */
	bool outside; /* its asker is answered even if its session is lost; nobody else is */
	bool keep;    /* the client library may still call back: freed with the session only */
	atomic_int waited; /* for so many answers */

	/* Answers: */
	int code; /* of the request that matters; ZCONNECTIONLOSS if none was made */
	int list_code;
	struct names *names;

	char *text; /* place(), amend() and write(): to be written; watch() and read(): what was */

	/* read() and write() */
	size_t text_bytes;
	struct Stat stat;
	int32_t version;

	/* place() */
	bool list;
	unsigned retries;
	unsigned containers;	   /* how many to create along, the lock's own and some above it */
	int top_code;		   /* of the first of them */
	atomic_int container_code; /* what keeps one of them from existing, or ZOK */
	bool numbered;		   /* the claim was given the number: */

	/* place() and withdraw() */
	int32_t sequence;

	/* place(), withdraw() and remove(), of a claim that has a companion; or NULL */
	struct pair *pair;

	/* prove(): what is to stand; the client library writes here until it is answered */
	struct prove *prove;

	/* list() */
	bool attend;

	/* the root */
	bool exposed; /* others may do more than read there, and should not */

	void *memory; /* what else belongs to it, from malloc(3); or NULL */

	/* watch() */
	bool watched; /* it was set up once */

	/* watch(), once it is set up, and list() while its queue is attended to */
	UT_hash_handle hh;
	struct operation *same; /* more of the same path, or more watches that are lost */
};

struct store_zookeeper {
	struct store store; /* first */
	const struct store_events *events;
	void *context;
	struct store_statistics *statistics; /* NULL: nobody wants any */
	struct zookeeper_keeper *keeper;
	char *servers;
	char *root;
	struct ACL acl_entries[2];
	struct ACL_vector acl; /* of all that is created */
	bool is_guarded;       /* it does not let others do everything */
	bool prepares_root;    /* the root is being seen to in this session, or has been */
	bool told_exposed;     /* the log says that others may do too much */
	const char *trouble;   /* why nothing can be locked, or NULL; a constant */
	const char *refusal;   /* the trouble if the servers do not accept us */
	bool refused;	       /* they did not: the session is to be given up */

	enum store_session told; /* what the engine knows */
	uint64_t generation; /* grows with each session lost; events of former ones are discarded */
	struct zookeeper_session *session; /* NULL until connected */
	zhandle_t *handle;		   /* its handle */
	struct operation *watches;	   /* set up, by path */
	struct operation *lost_watches;	   /* to be set up anew */
	size_t watches_sent;		   /* so many of them are being set up */
	struct operation *attentions;	   /* set up, by path */

	struct log_limit refusals; /* what the log says of them */

	char server[64];
	clientid_t id;	/* of the session; client_id 0: there is none */
	bool resuming;	/* it is another process's, and has not been connected here yet */
	bool abandoned; /* nor will it be: it was given up before */
	int timeout_ms;
};

/* As operation_create(), but out of memory only the operation is not made. */
struct operation *operation_new(struct store_zookeeper *store, enum store_operation kind, void *tag,
				void (*conclude)(struct operation *), const char *path,
				const char *name);

/* Makes an operation on the claim `name` of the lock `path`, or on the lock itself if that is NULL,
 * or on the server's root if both are. Out of memory, it returns NULL, and the session is given up:
 * the only answer that needs no memory. */
struct operation *operation_create(struct store_zookeeper *store, enum store_operation kind,
				   void *tag, void (*conclude)(struct operation *),
				   const char *path, const char *name);

/* The znode of the claim `name` of the lock, or of the lock if that is NULL. To be freed; NULL: out
 * of memory. */
char *operation_znode(const struct store_zookeeper *store, const char *path, const char *name);

/* The same ending, for an operation that was not started yet and lacks memory. */
void operation_starve(struct operation *operation);

/* Makes the first requests by send(), or answers -ECONNRESET if there is no session to make them
 * in, or it has not been connected yet. */
void operation_start(struct operation *operation, void (*send)(struct operation *));

/* Counts how the operation has ended, once, and how long it took since it was started. */
void operation_count(struct operation *operation, int error);

/* Takes what a request returned when it was made. A refused one is answered by that, with the code
 * in *ret_code unless that is NULL. */
void operation_made(struct operation *operation, int code, int *ret_code);

/* One answer less to wait for. To be called last by each callback. */
void operation_answered(struct operation *operation);

/* The end of an operation whose event has been delivered. */
void operation_release(struct operation *operation);

void operation_free(struct operation *operation);

/* ZooKeeper's code as -errno; what is not a lost connection is logged: "cannot create /path: why",
 * but not again and again for the same lock.
 */
int operation_error(const struct operation *operation, int code, const char *doing);

/* Where the last `components` components of `path` begin: a slash, which the caller overwrites with
 * NUL for the time of a call. */
char *operation_cut(char *path, unsigned components);

/* The completion of a get-children request, on ZooKeeper's thread. */
void operation_on_children(int code, const struct String_vector *strings, const void *data);

/* The claims among the names, in the order of the queue; they point into `names`. Returns an
 * array that the caller frees, or NULL when out of memory. */
struct store_entry *operation_parse_queue(const struct names *names, size_t *ret_count);

/* Whether a queue that reached this number is to start anew before its numbers run out. */
bool operation_wears_out_counter(int32_t sequence);

/* Lets the operation be about the claim's companion, too, whose name is told (place: without its
 * number). Returns false when out of memory. */
bool operation_add_companion(struct operation *operation, const char *path, const char *name);

/* Whether the claim has a companion, and how that is called. */
bool operation_find_companion(const char *name, char companion[CLAIM_NAME_BYTES]);

/* place() of the table. */
void zookeeper_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		     const char *text, bool list);

/* list() of the table. */
void zookeeper_list(struct store *base, void *tag, const char *path, bool sync, bool attend);

/* Tells those who attend to a queue of what MESSAGE_QUEUE says. */
void zookeeper_deliver_change(struct store_zookeeper *store, struct zookeeper_message *message);

/* The connection is lost: takes the attentions from the client, and tells that there may be
 * changes. */
void zookeeper_lose_attentions(struct store_zookeeper *store);

/* The session is connected: creates the root where it is missing, and sees whether locks can be
 * created below. What is wrong is logged. */
void zookeeper_prepare_root(struct store_zookeeper *store);

/* watch() of the table. */
void zookeeper_watch(struct store *base, void *tag, const char *path, const char *name);

/* MESSAGE_WATCH: tells those who watch the path. */
void zookeeper_deliver_watch(struct store_zookeeper *store, struct zookeeper_message *message);

/* The connection is lost: takes the watches from the client. */
void zookeeper_lose_watches(struct store_zookeeper *store);

/* Sets up what was lost. When the connection is back, before the engine is told. */
void zookeeper_resume_watches(struct store_zookeeper *store);

/* The session is over. */
void zookeeper_forget_watches(struct store_zookeeper *store);

/* zookeeper_delete.c: withdraw() and remove() of the table. */
void zookeeper_withdraw(struct store *base, void *tag, const char *path, const char *name,
			int32_t sequence);
int zookeeper_remove(struct store *base, struct store_change *change, const char *path,
		     const char *name);

/* prove() of the table. */
void zookeeper_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count);

/* look(), read() and write() of the table. */
int zookeeper_look(struct store *base, struct store_look *look, const char *path);
int zookeeper_read(struct store *base, struct store_read *read, const char *path, const char *name);
int zookeeper_write(struct store *base, struct store_change *change, const char *path,
		    const char *name, const char *text, uint32_t version);

/* Makes an operation that is answered to the asker whatever happens. Returns NULL when out of
 * memory. */
struct operation *zookeeper_ask(struct store *base, enum store_operation kind, void *asker,
				void (*conclude)(struct operation *), const char *path,
				const char *name);

/* The answer to store_change of zookeeper_ask(). */
void zookeeper_conclude_change(struct operation *operation);

/* Frees what the operation has for that, if anything. */
void zookeeper_prove_free(struct operation *operation);

#endif
