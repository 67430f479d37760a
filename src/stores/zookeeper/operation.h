/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the ZooKeeper store, for its own files: store.c (the table and amend()),
 * connection.c (what is told of the session), place.c, delete.c, list.c, watch.c, mark.c, age.c,
 * prove.c, look.c and files.c (the others), idle.c and space.c (what nobody asks for), root.c (the
 * znode above all) with tokens.c, seek.c (links), queue.c (what a list shows), and operation.c,
 * multi.c and error.c (what they share). Below them is session/, which has the client library's
 * handles.
 *
 * An operation makes one or more requests at once. Until all of them are answered it belongs to
 * ZooKeeper's completion thread, whose callbacks fill in the answers; the last of them posts the
 * operation, and from then on it is the loop's thread's alone. It is freed when its event has been
 * delivered, or, if its session was lost, when that session's handle is closed and nothing can call
 * back any more.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_OPERATION_H
#define DLOCKFS_STORES_ZOOKEEPER_OPERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/log_limit.h"
#include "base/rate.h"
#include "claim/znode_path.h"
#include "stores/statistics.h"
#include "stores/store.h"
#include "stores/tokens.h"
#include "stores/zookeeper/lease.h"
#include "stores/zookeeper/session/packets.h"
#include "stores/zookeeper/session/connector.h"

#define REFUSED_MS 5000 /* until the next attempt when the servers reject the identity */

/* Stands below the root, and is no lock: see root.c. */
#define ZOOKEEPER_SETTLED ".dlockfs-settled"

/* Likewise, and has kept files below it (claim/runs.h). */
#define ZOOKEEPER_PRIVATE ".dlockfs"

/* As a code: the request was not made, for its length (packets.h). */
#define ZOOKEEPER_TOO_LONG 1

struct names {
	size_t count;
	char text[]; /* one after the other, each with its NUL */
};

/* A znode that is watched, or its children, changed. */
struct znode_event {
	struct zookeeper_message message; /* MESSAGE_EVENT */
	struct zookeeper_session *session;
	int type; /* ZOO_DELETED_EVENT and so on */
	char path[];
};

struct seeker;
struct above; /* above.c */
struct idle;  /* idle.c */

/* A claim and its companion, or its heir, for requests about both; and the memory to which the
 * client library writes until they are answered. */
struct pair {
	zoo_op_t ops[2]; /* of the companion, of the claim */
	zoo_op_result_t results[2];
	char *companion;  /* the znode of that one (place: without its number) */
	char *created[2]; /* the znodes as the server has named them */
	bool apart;	  /* each is asked for by itself */
	int code;	  /* `apart`: the answer about the companion */
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
	/* Called when all requests are answered: delivers the event, or makes further requests. */
	void (*conclude)(struct operation *operation);
	char *path;   /* znode of the claim (place: without its number), or of the lock (list) */
	bool outside; /* it is answered even if its session is lost, which others are not */
	bool keep;    /* the client library may still call back: freed with the session only */
	atomic_int waited; /* the number of answers that are outstanding */

	/* Answers: */
	int code; /* of the main request; ZCONNECTIONLOSS if none was made */
	int list_code;
	struct names *names;

	size_t packet_bytes; /* of the path and the data that are sent; 0: no data are sent */

	char *text; /* place(), amend() and write(): the data to write; watch() and read(): the data
		       that was read */

	struct Stat stat; /* of the znode: as read, listed, or looked at above a lock */

	/* read(), watch(), amend() and write() */
	size_t text_bytes;
	int32_t version;

	int64_t order; /* withdraw() */

	/* place(), withdraw() and remove(), of a claim that has a companion; or NULL */
	struct pair *pair;

	/* mark(), age(), and withdraw() of a claim that has a marker: its znode; or NULL */
	char *marker;
	int marker_code; /* withdraw() */

	bool attend;  /* list() */
	bool of_root; /* prepares the root, or is about its data: it may be asked before all else */

	/* What only operations of its kind have, where the client library may write until they are
	 * answered: a block from malloc(3), and what finish() frees; or NULL */
	void *memory;
	void (*finish)(struct operation *operation);

	/* watch() */
	bool watched;	/* it was set up at least once */
	bool unclaimed; /* the watched znode is no claim, which was reported */

	/* watch(), once it is set up, and list() and place() while their queue is attended to */
	UT_hash_handle hh;
	struct operation *same; /* more of the same path, or more watches that are lost */
};

/* Containers that this host has made (idle.c). */
struct idle_set {
	struct idle *by_path;
	struct idle *due;    /* containers that nobody may use, the longest unused one first */
	struct idle *busy;   /* all other containers */
	struct rate removed; /* how often a container was removed */
	int64_t next_ms;     /* when the next one may be removed */
	uint64_t generation; /* of the session in which the containers are known */
};

/* Watches of claims and files (watch.c). */
struct watch_set {
	struct operation *by_path; /* watches that are set up */
	struct operation *lost;	   /* watches that are to be set up anew */
	size_t sent;		   /* how many watches are being set up anew */
	size_t unclaimed;	   /* watches on znodes that are named like claims and are none */
};

/* The znode above all locks (root.c). A new session begins with nothing known, but for is_new,
 * read_only, tokens_error and told_exposed. */
struct root_state {
	bool is_new;	   /* as in struct store_options, until the root was prepared once */
	bool read_only;	   /* as there */
	bool names_known;  /* names are known to be encoded as here */
	int barred;	   /* ZOK; or why the encoding cannot be found out: every operation is
			      answered with this code */
	bool prepares;	   /* the root is being prepared, */
	bool changed;	   /* and has changed since the preparation began; */
	bool wanted;	   /* it is to be prepared again; */
	bool prepared;	   /* the root was prepared */
	bool tokens_known; /* the offset is that of stamps which come now (tokens.c) */
	int tokens_error;  /* why tokens could not be raised, -errno; 0: not known */
	bool told_exposed; /* the log says that others may do too much */
};

/* How many names there are directly below the root (space.c). */
struct root_space {
	int64_t names;	 /* as was read last; -1: not known */
	bool asks;	 /* the number is being read */
	int64_t next_ms; /* when it is to be read next, clock_now_ms(); 0: not planned yet */
};

/* What is created may be used by whom. */
struct rights {
	struct ACL entries[2];
	struct ACL_vector acl;
	bool is_guarded; /* the ACL does not let others do everything */
};

/* The search for a link (seek.c). */
struct seek {
	struct seeker *seeker;
	bool hurries;	     /* the connection was broken, as there is a link for a new one */
	int64_t answered_ms; /* when something was answered last, or the session was connected */
};

/* Sessions that are given up (connection.c). */
struct giving_up {
	struct zookeeper_session *session; /* that renew() is to end; NULL: there is none */
	bool abandoned; /* the session under way will not be connected: it was given up before */
	const struct store_told *told; /* by the latest renew(); NULL: STORE_LOST was told since, or
					  it was never called */
};

struct store_zookeeper {
	struct store store; /* first */
	const struct store_events *events;
	void *context;
	struct store_statistics *statistics; /* NULL: none are kept */
	struct zookeeper_connector *connector;
	char *servers;
	char *root;
	int poll;	     /* the descriptor of the store: the mailbox's and the seeker's */
	const char *trouble; /* why nothing can be locked, or NULL; a constant */
	const char *refusal; /* the trouble if the servers do not accept this host's identity */
	bool refused;	     /* they did not accept it: the session is to be given up */

	/* The session: */
	enum store_session told;	   /* its state as reported to the engine */
	uint64_t generation;		   /* grows with each session lost; events of former ones
					      are discarded */
	struct zookeeper_session *session; /* NULL until connected */
	zhandle_t *handle;		   /* of `session` */
	clientid_t id;			   /* client_id 0: there is none */
	bool resuming; /* it was another process's or another handle's, and has not been connected
			  by this one yet */
	int timeout_ms;
	struct lease lease;
	char server[64];
	int64_t suspended_us; /* since when it has no connection, by histogram_now_us() */
	int64_t seen;	      /* a zxid that the service has reached, as far as is known; 0: none */
	struct store_tokens tokens;

	/* What its files know: */
	struct rights rights;
	struct root_state root_state;
	struct root_space space;
	struct watch_set watches;
	struct operation *attentions; /* set up, by path (list.c) */
	struct above *above;	      /* the containers above locks, by path */
	struct idle_set idle;
	struct packets packets;
	struct log_limit refusals; /* limits their messages in the log */
	struct seek seek;
	struct giving_up giving_up;
};

/* As operation_create(), but out of memory they only return NULL. The second one is on the znode
 * itself. */
struct operation *operation_new(struct store_zookeeper *store, enum store_operation kind, void *tag,
				void (*conclude)(struct operation *), const char *path,
				const char *name);
struct operation *operation_new_at(struct store_zookeeper *store, enum store_operation kind,
				   void *tag, void (*conclude)(struct operation *),
				   const char *znode);

/* Makes an operation on the claim `name` of the lock `path`, or on the lock itself if that is NULL,
 * or on the server's root if both are. Out of memory, it returns NULL, and the session is given up,
 * which is the only answer that needs no memory. */
struct operation *operation_create(struct store_zookeeper *store, enum store_operation kind,
				   void *tag, void (*conclude)(struct operation *),
				   const char *path, const char *name);

/* The znode of the claim `name` of the lock, or of the lock if that is NULL. To be freed; NULL: out
 * of memory. */
char *operation_znode(const struct store_zookeeper *store, const char *path, const char *name);

/* Whether the operation is on the root, above all locks: the root is no lock, so it has no claims.
 */
bool operation_is_above_all(const struct operation *operation);

/* Whether what has that name below the operation's znode is no lock and no file. */
bool operation_is_reserved(const struct operation *operation, const char *name);

/* Gives the session up, out of memory, and frees an operation that was not started yet. */
void operation_starve(struct operation *operation);

/* Adds a watch, or an attention, to those by path: store->watches.by_path, store->attentions.
 * Out of memory, the session is given up. */
void operation_join(struct operation **by_path, struct operation *operation);

/* Makes the first requests by send(), or answers -ECONNRESET if there is no session to make them
 * in, or it has not been connected yet. */
void operation_start(struct operation *operation, void (*send)(struct operation *));

/* Puts the operation into the list of the store's session; and takes it out. */
void operation_attach(struct operation *operation);
void operation_detach(struct operation *operation);

/* The operation has ended with that error, which its event has: notes what that says of the lease,
 * and counts it in the statistics, once, with the time since it was started. */
void operation_note_end(struct operation *operation, int error);

/* This host has seen what the service did by then, of which the stat tells. */
void operation_note_seen(const struct operation *operation, const struct Stat *stat);

/* zoo_amulti(), for operation_made(), with the operation as the context of `done`. Returns
 * ZCONNECTIONLOSS, too, when there is no connection: `done` is not called then. */
int operation_multi(struct operation *operation, int count, const zoo_op_t *ops,
		    zoo_op_result_t *results, void_completion_t done);

/* Takes the return value of the call that made a request. If the client library has refused the
 * request, that counts as its answer, with the code in *ret_code unless that is NULL. */
void operation_made(struct operation *operation, int code, int *ret_code);

/* One answer less to wait for. To be called last by each callback. */
void operation_answered(struct operation *operation);

/* Completions, on ZooKeeper's thread. That of a request which is answered by a code only, the
 * operation's; and that of a get, whose data go to the operation's text, with a NUL behind them:
 * ZMARSHALLINGERROR if there is no memory for that. */
void operation_on_done(int code, const void *data);
void operation_on_data(int code, const char *value, int value_bytes, const struct Stat *stat,
		       const void *data);

/* Copies the data as operation_on_data() does. Returns ZOK or ZMARSHALLINGERROR. */
int operation_copy_data(struct operation *operation, const char *value, int value_bytes);

/* Those of requests that nobody waits for: they do nothing. */
void operation_on_ignored(int code, const void *data);
void operation_on_ignored_text(int code, const char *text, const void *data);
void operation_on_ignored_stat(int code, const struct Stat *stat, const void *data);

/* The watcher of all watches, on ZooKeeper's thread, with the session as its context: so the client
 * reports session events once and not for each watch, and a late event finds no freed memory. */
void operation_on_event(zhandle_t *handle, int type, int state, const char *path, void *context);

/* For operation_start(): asks whether the operation's path exists, and for its stat; for the names
 * below it; or sets its data to the text, if it has that version. */
void operation_look(struct operation *operation);
void operation_ask_children(struct operation *operation);
void operation_set(struct operation *operation);

/* Makes one request that the leader answers by way of the server: a sync. */
void operation_sync(struct operation *operation);

/* The end of an operation whose event has been delivered. */
void operation_release(struct operation *operation);

void operation_free(struct operation *operation);

/* ZooKeeper's code as -errno. Any error but a lost connection is logged: "cannot create /path:
 * why", but not again and again for the same lock.
 */
int operation_error(const struct operation *operation, int code, const char *doing);

/* The slash before the last `components` components of `path`, which the caller overwrites with NUL
 * for the time of a call. */
char *operation_cut(char *path, unsigned components);

/* The completion of a get-children request, on ZooKeeper's thread. */
void operation_on_children(int code, const struct String_vector *strings, const struct Stat *stat,
			   const void *data);

/* Whether a znode ends with a session, as a claim does. The owner of containers and of znodes with
 * a time to live has special values (EphemeralType): a container is told apart; a znode with a time
 * to live is taken for one of a session of server 255, to be on the safe side. */
bool operation_is_ephemeral(const struct Stat *stat);

/* On ZooKeeper's thread. Replaces *ret, which is NULL or to be freed, by a copy of the names.
 * Returns ZOK; or ZRUNTIMEINCONSISTENCY, of what is no list of names, or ZSYSTEMERROR, out of
 * memory: then *ret is as it was. */
int operation_copy_names(const struct String_vector *strings, struct names **ret);

/* Adds the claim's companion to the operation, by its name (place: without its number). Returns
 * false when out of memory. */
bool operation_add_companion(struct operation *operation, const char *path, const char *name);

/* Whether the claim has a companion, and the companion's name. */
bool operation_find_companion(const char *name, char companion[CLAIM_NAME_BYTES]);

/* Adds the claim's marker to the operation. Returns false when out of memory. */
bool operation_add_marker(struct operation *operation, const char *path, const char *name);

/* queue.c */

/* Whether the znode at this path is named like a claim, and known to be none. */
bool zookeeper_queue_is_unclaimed(const struct store_zookeeper *store, const char *path);

/* The claims and orphans among the names of the lock at `path`, in the order of the queue, without
 * names that are known to be no claims. The entries point into `names`. Returns an array that the
 * caller frees, or NULL when out of memory. */
struct store_entry *zookeeper_queue_parse(const struct store_zookeeper *store, const char *path,
					  const struct names *names, size_t *ret_count);

/* From this order on new claims are held back. Clients that do not hold back, and place 5,000
 * claims a second, need 15 hours for the 2^28 numbers that are left. */
#define ORDER_LATE (INT32_MAX - (INT32_C(1) << 28) + 1)

/* Whether a queue that reached this order is to start anew before its numbers run out. */
bool zookeeper_queue_wears_out(int64_t order);

/* The order that the next claim of the lock's znode gets. */
int64_t zookeeper_queue_next_order(const struct Stat *stat);

/* place() of the table. */
void zookeeper_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		     const char *text, bool list, void *attention);

/* The levels above a znode that an operation creates where they are missing: containers but for the
 * root and what is above it. */
struct levels {
	struct operation *operation;
	unsigned count;	  /* the lowest ones, one request for each */
	atomic_uint made; /* which of them were missing: a bit for each depth */
	int top_code;	  /* of the uppermost one */
	atomic_int code;  /* why one could not be created, but for want of a level above; or ZOK */
};

/* place.c: how many levels there are above the znode; and makes the requests. The path is as before
 * afterwards. */
unsigned zookeeper_place_levels(const char *path);
void zookeeper_place_above(struct levels *levels, char *path);

/* list() of the table. */
void zookeeper_list(struct store *base, void *tag, const char *path, bool sync, bool attend);

/* renew.c: the list shows no claims. Starts the queue's numbers anew, if most of them are used up
 * and it is possible. Returns whether the list is made again after that, by `send`. */
bool zookeeper_renew_queue(struct operation *operation, void (*send)(struct operation *));

/* above.c: whether the claim must not be placed now, so that the numbers of a lock above can start
 * anew. */
bool zookeeper_above_pauses(struct operation *operation);

/* idle.c, which removes containers that are idle: notes the containers that were made above the
 * claim of the operation, between the root and the claim, at so many levels; notes that a claim of
 * that path has come or gone; and its parts of tend() and tend_ms() of the table. */
#define ZOOKEEPER_MADE_LEVELS 32
void zookeeper_idle_note(const struct levels *levels, unsigned depth, unsigned root);
void zookeeper_idle_use(struct store_zookeeper *store, const char *path);
void zookeeper_idle_tend(struct store_zookeeper *store, int64_t now_ms);
int64_t zookeeper_idle_tend_ms(const struct store_zookeeper *store);

/* space.c: their parts of tend() and tend_ms(), and space(), of the table. */
void zookeeper_space_tend(struct store_zookeeper *store, int64_t now_ms);
int64_t zookeeper_space_tend_ms(const struct store_zookeeper *store);
void zookeeper_space(const struct store *base, struct store_space *ret);

/* Each at the end of the store. */
void zookeeper_idle_free(struct store_zookeeper *store);
void zookeeper_above_free(struct store_zookeeper *store);

/* Asks for the children of a lock's znode; with `attend` the session hears of their next change.
 * Returns what the client library does. */
int zookeeper_list_ask(struct operation *operation, const char *path, bool attend);

/* The operation has the answer to that, for the lock's znode that its path is, and is over but for
 * reporting the change. */
void zookeeper_list_attend(struct operation *operation);

/* Reports the change of the queue of that znode to those who attend to it. */
void zookeeper_list_changed(struct store_zookeeper *store, const char *path);

/* The connection is lost: takes the attentions from the client, and reports that the queues may
 * have changed. */
void zookeeper_list_lose(struct store_zookeeper *store);

/* The session is connected, or the root has changed: creates the root where it is missing, finds
 * out how names are encoded below it (before that the session is not reported as connected), and
 * checks whether locks can be created there. Faults are logged. */
void zookeeper_root_prepare(struct store_zookeeper *store);

/* settle() of the table. */
void zookeeper_root_settle(struct store *base);

/* The root was read; NULL: it is not there. */
void zookeeper_tokens_read(struct store_zookeeper *store, const char *data, size_t bytes);

/* Raises the offset of tokens, if the service is below the floor: it has come as far as `zxid`, and
 * the root has that data. Not waited for; what becomes of it is read with the root. */
void zookeeper_tokens_raise(struct store_zookeeper *store, const char *data, size_t bytes,
			    int32_t version, int64_t zxid);

/* The token of a change, by its stamp. Returns 0; -ECONNRESET: the change is to be made again;
 * -EACCES, -EIO: the offset is to be raised, and cannot be, which was logged. */
int zookeeper_tokens_make(struct store_zookeeper *store, int64_t stamp, int64_t *ret);

/* The root's data was written, or the root was deleted, or created. */
void zookeeper_root_changed(struct store_zookeeper *store);

/* The trouble that the root has an unknown version of names. */
extern const char zookeeper_unknown_names[];

/* connection.c: reports that the session is connected, unless that was done. */
void zookeeper_connection_made(struct store_zookeeper *store);

/* Gives the session up, and reports its loss. The claims that the engine knows may stand until it
 * calls renew(): the servers may not know yet that the session is over. */
void zookeeper_connection_lose(struct store_zookeeper *store);

/* The connection of the session is lost. */
void zookeeper_connection_suspended(struct store_zookeeper *store);

/* No more requests are made in the session, which has ended or was given up. The connector begins
 * another one, and ends this one unless that may free what somebody holds. */
void zookeeper_connection_end(struct store_zookeeper *store, struct zookeeper_session *session);

/* seek.c: looks for a link while the present one is in doubt. To be called at the end of the
 * connection, when a sync is sent, and when something is answered; and when nothing depends on the
 * link any more. */
int zookeeper_seek_init(struct store_zookeeper *store);
void zookeeper_seek_lost(struct store_zookeeper *store);
void zookeeper_seek_sent(struct store_zookeeper *store);
void zookeeper_seek_answered(struct store_zookeeper *store);
void zookeeper_seek_end(struct store_zookeeper *store);

/* Adds the server that the client library tries now, or is connected to. */
void zookeeper_seek_note_server(struct store_zookeeper *store);

/* nudge() and renew() of the table. */
void zookeeper_connection_nudge(struct store *base);
void zookeeper_connection_renew(struct store *base, const struct store_told *told);

/* watch() of the table. */
void zookeeper_watch(struct store *base, void *tag, const char *path, const char *name);

/* Reports that the znode has gone, or that its data changed, to those who watch it. */
void zookeeper_watch_changed(struct store_zookeeper *store, const char *path, bool gone);

/* The connection is lost: takes the watches from the client. */
void zookeeper_watch_lose(struct store_zookeeper *store);

/* Sets the lost watches up again. To be called when the connection is back, before that is reported
 * to the engine. */
void zookeeper_watch_resume(struct store_zookeeper *store);

/* The session is over. */
void zookeeper_watch_forget(struct store_zookeeper *store);

/* mark() of the table. */
void zookeeper_mark(struct store *base, void *tag, const char *path, const char *name,
		    const char *text, int64_t age_ms);
void zookeeper_age(struct store *base, void *tag, const char *path, const char *name);

/* delete.c: withdraw(), bequeath() and remove() of the table. */
void zookeeper_delete_own(struct store *base, const struct store_told *told, void *tag,
			  const char *path, const char *name, int64_t order, bool marker);
void zookeeper_delete_for(struct store *base, const struct store_told *told, void *tag,
			  const char *path, const char *name, int64_t order, const char *heir);
int zookeeper_delete_any(struct store *base, struct store_change *change, const char *path,
			 const char *name, uint64_t session);

/* prove() of the table. */
void zookeeper_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count);

/* files.c: whose the ephemeral znode of a lock file is. */
struct zookeeper_owner {
	struct operation *operation;
	int code;
	int64_t session;
};

/* Asks for it, by one request, whose answer goes to *owner. */
void zookeeper_files_ask_owner(struct operation *operation, const char *path,
			       struct zookeeper_owner *owner);

/* ZOK: the file is of this session; ZNONODE: it is not, or there is none; another code: why that is
 * not known. */
int zookeeper_files_judge_owner(const struct zookeeper_owner *owner);

/* files.c: files() and alter() of the table. */
int zookeeper_files(struct store *base, struct store_files *files, const char *directory);
int zookeeper_files_alter(struct store *base, struct store_change *change,
			  const struct store_step *steps, size_t count);

/* touch.c: touch(), lease() and what else of the table is about the lease. */
void zookeeper_touch(struct store *base);
void zookeeper_touch_lease(struct store *base, int64_t now_ms, struct store_lease *ret);
void zookeeper_touch_defer(struct store *base);
void zookeeper_touch_doubt(struct store *base, int64_t now_ms);
void zookeeper_touch_resume(struct store *base, int64_t timeout_ms, int64_t saved_ms,
			    bool doubtful);

/* look(), read() and write() of the table. */
int zookeeper_look(struct store *base, struct store_look *look, const char *path);
int zookeeper_look_read(struct store *base, struct store_read *read, const char *path,
			const char *name);
int zookeeper_look_write(struct store *base, struct store_change *change, const char *path,
			 const char *name, const char *text, uint32_t version);

/* Makes an operation that is answered even if the session is lost. Returns NULL when out of memory.
 */
struct operation *zookeeper_look_ask(struct store *base, enum store_operation kind, void *asker,
				     void (*conclude)(struct operation *), const char *path,
				     const char *name);

/* The answer to store_change of zookeeper_look_ask(). */
void zookeeper_look_conclude(struct operation *operation);

#endif
