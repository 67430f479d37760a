/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the store that keeps claims in this process, for its own files: store.c (the table
 * and the sessions), look.c (questions from outside), files.c (lock files), restore.c
 * and save.c (all that, for another process) and service.c (the queues, and the watches on them).
 *
 * An operation takes effect when it is called. Its answer is made at that moment, and waits in the
 * session's list until dispatch() delivers it. So an answer shows the queue at the moment of its
 * call, and the answers of a session come in the order of its calls. A watch is an answer that
 * waits in the list of its claim until the claim goes; when the claim's data is read meanwhile,
 * that is an answer of its own. An attention is an answer that waits in the list of its queue until
 * the queue changes.
 *
 * Single-threaded.
 */
#ifndef DLOCKFS_STORES_LOCAL_SERVICE_H
#define DLOCKFS_STORES_LOCAL_SERVICE_H

/* A hash that cannot grow leaves the new element out, which then has no table. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "journal/fields.h"
#include "journal/journal.h"
#include "stores/local/store.h"

enum answer_kind {
	ANSWER_CONNECTED, /* of no operation: a session lives */
	ANSWER_PLACED,
	ANSWER_LISTED,
	ANSWER_ATTENDED,
	ANSWER_READ,
	ANSWER_WATCHED,
	ANSWER_AMENDED,
	ANSWER_MARKED,
	ANSWER_AGED,
	ANSWER_HOLD,
	ANSWER_WITHDRAWN,
	ANSWER_PROVED,
	/* These to a struct store_look, _read, _change or _files, which is the tag: */
	ANSWER_LOOKED,
	ANSWER_CLAIM,
	ANSWER_CHANGED,
	ANSWER_FILES,
};

/* A queue as it was at some moment. The names are in the same block, behind the entries. */
struct snapshot {
	size_t count;
	struct store_entry entries[];
};

struct answer {
	enum answer_kind kind;
	int error;
	void *tag;
	struct local_store *store;
	struct snapshot *snapshot; /* PLACED, LISTED, LOOKED; may be NULL */
	int64_t order, after;	   /* PLACED */
	char name[CLAIM_NAME_BYTES];
	uint32_t version; /* READ */
	char *text;	  /* READ, CLAIM, AGED; PROVED: the lock whose claim is gone, or NULL */
	struct store_claim claim; /* CLAIM */
	char **names;		  /* LOOKED, FILES */
	size_t names_count;
	int64_t stamp;		    /* PROVED */
	int64_t age_ms;		    /* AGED */
	struct answer *prev, *next; /* in local_store.answers, or in `waits` */
	struct answer **waits;	    /* where it waits: node.watches, file.watches, or
				       queue.attentions; NULL: it does not */
	struct answer *waiting_prev, *waiting_next; /* in local_store.watches */
};

/* What mark() has left. */
struct local_marker {
	int64_t since_ms; /* by the service's clock */
	char text[];
};

/* A claim in its queue. There may be very many, so the struct has no member that can be computed.
 */
struct node {
	char *text;	  /* behind the name, until it is replaced */
	int64_t since_ms; /* since 1970 */
	uint32_t version; /* how often its text was replaced */
	int64_t order;
	uint64_t place; /* in the journal, in the order of placing */
	struct state_item item;
	struct queue *queue;
	struct local_store *store;   /* of the session that placed it; NULL: an orphan, or */
	bool is_hold;		     /* a hold */
	struct local_marker *marker; /* that stands; NULL: none does */
	struct answer *watches;
	struct node *store_prev, *store_next; /* in local_store.nodes */
	char name[];
};

/* In the order of claim_name_compare(): claims join at the end with the next number, but for those
 * with the last one. Lives as long as it has a claim, or one of a lock below. */
struct queue {
	struct local_service *service;
	struct state_item item;
	uint64_t serial;
	struct node **nodes; /* the first claim: */
	size_t count;
	struct node **room; /* the array that they are in */
	size_t room_count;
	struct answer *attentions; /* none without a claim */
	int64_t next_order;
	uint64_t places;     /* of claims in the journal, so far */
	struct queue *above; /* NULL: this is that of "", above all locks, which has no claims */
	struct queue *below;
	size_t below_count;
	struct queue *prev, *next; /* in above->below */
	UT_hash_handle hh;	   /* in local_service.queues */
	char path[];
};

/* A lock file. Its path is the kernel's. */
struct file {
	UT_hash_handle hh; /* in local_service.files */
	struct state_item item;
	uint64_t serial; /* its place in the journal */
	struct local_service *service;
	struct local_store *store; /* of the session that it ends with; NULL: it is kept */
	struct file *store_prev, *store_next;
	char *text;
	int64_t since_ms, changed_ms; /* since 1970 */
	uint32_t version;	      /* how often its text was replaced */
	struct answer *watches;
	char path[];
};

struct local_service {
	struct queue *queues;
	struct file *files;
	struct state_journal *journal; /* NULL: nothing is kept there */
	uint64_t place;		       /* the first number of its items' places */
	uint64_t serials;	       /* of queues and files, so far */
	struct state_item item;
	int64_t first_order;
	int64_t revision, revision_step; /* 0: orders are not revisions */
	int64_t stamp;			 /* the latest */
	uint64_t sessions;		 /* so far */
	const int64_t *clock_ms;	 /* NULL: it is the machine's */
};

struct local_store {
	struct store store;
	struct local_service *service;
	bool owns_service;
	bool hidden;	  /* its claims are not saved */
	uint64_t session; /* its number */
	const struct store_events *events;
	void *context;
	void (*on_session)(void *owner, enum store_session session); /* NULL: as other events */
	void *owner;
	int descriptor; /* -1: none */
	bool readable;	/* the descriptor is readable */
	bool lost;	/* the session is over, and the next dispatch() reports it */
	bool over;	/* the session is over, and a new one has not been reported yet */
	struct answer connected;
	struct answer *answers;
	struct answer *watches; /* and attentions */
	struct node *nodes;
	struct file *files;
};

/* Whether it has no claims. */
static inline bool queue_is_empty(const struct queue *queue)
{
	return queue->count == 0;
}

static inline bool node_is_orphan(const struct node *node)
{
	return node->store == NULL && !node->is_hold;
}

/* The queue of the lock; NULL: neither it nor a lock below has a claim. */
struct queue *queue_find(const struct local_service *service, const char *path);

/* Finds or makes the queue. Returns NULL when out of memory. */
struct queue *queue_open(struct local_service *service, const char *path);

/* The next claim gets that order. */
void queue_set_next(struct queue *queue, int64_t order);

/* Frees the queue, and those above it, unless they have claims. */
void queue_remove_if_empty(struct queue *queue);

/* Puts a claim at the end of the queue, and reports the change to those who attend to the queue.
 * *ret_after is as for on_placed(). Returns NULL when out of memory; the queue may then be empty.
 */
struct node *node_create(struct local_store *store, struct queue *queue,
			 const struct claim_name *name, const char *text, int64_t *ret_after);

/* Puts a claim of this order into the queue; the counter goes on behind that order. */
struct node *node_restore(struct local_store *store, struct queue *queue, const char *name,
			  const char *text, int64_t order);

/* The claim of that name; NULL: there is none. */
struct node *node_find(const struct local_service *service, const char *path, const char *name);

/* The orphan of that name; NULL: there is none. */
struct node *node_find_orphan(const struct local_service *service, const char *path,
			      const char *name);

/* Replaces the data, and reports that to the claim's watches. Returns 0, or -ENOMEM with nothing
 * changed. */
int node_amend(struct node *node, const char *text);

/* Leaves a marker with that text at the claim; the time of one that stands is kept. Returns 0, or
 * -ENOMEM with nothing changed. */
int node_mark_holder(struct node *node, const char *text);

/* Turns the claim into a hold, of that name where orders are no revisions, and reports that.
 * Returns 0, or -ENOMEM with nothing changed. */
int node_turn(struct node *node, const struct claim_name *hold, const char *text);

/* For how long the marker stands. */
int64_t node_marker_age_ms(const struct node *node);

/* Ends the claim, and reports that to its watches, and to those who attend to the queue. A claim
 * with a marker stays in the queue as an orphan. A queue without claims goes. */
void node_remove(struct node *node, bool withdrawn);

/* Takes the orphan out of its queue. A queue without claims goes. */
void node_remove_orphan(struct node *node);

/* No session is left: takes all orphans out of their queues. */
void orphans_free(struct local_service *service);

/* The queue as it is. Returns NULL when out of memory, or if it is NULL or has no claims. */
struct snapshot *snapshot_create(const struct queue *queue);

/* Puts the answer at the end of the session's list: the next dispatch() delivers it. */
void answer_queue(struct answer *answer);

void answer_free(struct answer *answer);

/* Whether the answer is delivered even if the session is lost. */
bool answer_is_for_outside(const struct answer *answer);

/* An answer to a question, which is in the session's list already; NULL: out of memory. Its error
 * is set if there is no session: then nothing is to be done. */
struct answer *answer_ask(struct store *base, enum answer_kind kind, void *asker);

/* The answer shows a claim, but for its data, which are the text. */
void answer_show(struct answer *answer, const char *text, const struct store_claim *claim);

/* The answer by which a watch reports its claim's data. Returns NULL when out of memory. */
struct answer *answer_create_read(const struct answer *watch, const char *text, uint32_t version);

/* Puts an answer into a list where it waits: watches of a claim or of a file, or attentions of a
 * queue that has claims; and takes it out. */
void answer_wait(struct answer *answer, struct answer **list);
void answer_leave(struct answer *answer);

/* All that waits in the list is answered. */
void answer_give_all(struct answer **list, int error);

/* files.c */

/* The file of that path, in the form of claim/file_path.h, if it is of that session; NULL: there is
 * none, or no memory to look. */
struct file *file_find_own(const struct local_store *store, const char *path);

/* Replaces the text. Returns 0, or -ENOMEM with nothing changed. */
int file_replace(struct file *file, const char *text);

/* A new file of the session, by the kernel's path. Returns NULL when out of memory, or if there is
 * one. */
struct file *file_create(struct local_store *store, const char *path, const char *text);

/* From now on the file ends with no session. */
void file_keep(struct file *file);

/* The service ends: kept files, too. */
void files_free(struct local_service *service);

/* The session of the files is over. */
void files_end(struct local_store *store);

/* Fills in the answer of read(). */
void files_read(struct answer *answer, const char *path);

/* Begins the watch, or answers it. */
void files_watch(struct answer *watch, const char *path);

/* The table's functions. */
int local_files(struct store *base, struct store_files *files, const char *directory);
int local_alter(struct store *base, struct store_change *change, const struct store_step *steps,
		size_t count);

/* save.c: marks for the journal what has changed: the service, a queue's next number, a claim, or a
 * file. */
void service_mark(struct local_service *service);
void queue_mark(struct queue *queue);
void node_mark(struct node *node);
void file_mark(struct file *file);

/* The item is about to be freed. */
void service_unmark(struct local_service *service, struct state_item *item);

/* What save.c and restore.c have of a struct file. */
extern const struct field local_file_fields[];

/* save.c and restore.c: the table's functions for claims that end with the process. */
void local_save(const struct store *base, FILE *out);
int local_restore(struct store *base, struct state_reader *in);
void local_keep(struct store *base, struct state_journal *journal, uint64_t place);

/* Lets the descriptor be readable, or not. */
void store_make_readable(struct local_store *store);
void store_make_unreadable(struct local_store *store);

/* look.c: delivers answers to questions from outside. */
void local_deliver_outside(const struct answer *answer);

/* The table's functions that ask. */
int local_look(struct store *base, struct store_look *look, const char *path);
int local_read(struct store *base, struct store_read *read, const char *path, const char *name);
int local_write(struct store *base, struct store_change *change, const char *path, const char *name,
		const char *text, uint32_t version);
int local_remove(struct store *base, struct store_change *change, const char *path,
		 const char *name, uint64_t session);

#endif
