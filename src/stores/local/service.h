/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the store that keeps claims in this process, for its own files: store.c (the table
 * and the sessions), look.c (what is asked from outside), transfer.c (what is passed on to another
 * process) and service.c (the queues, and what lies there for others to hear).
 *
 * An operation takes effect when it is called; its answer is made then and there and lies in the
 * session's list until dispatch() delivers it. So an answer shows the queue of the moment of its
 * call, and the answers of a session come in the order of its calls. A watch is an answer
 * that lies at the claim it waits for until that claim goes; what it reads of the claim's data
 * meanwhile are answers of their own. An attention is one that lies at a queue until that changes.
 *
 * Single-threaded.
 */
#ifndef DLOCKFS_STORES_LOCAL_SERVICE_H
#define DLOCKFS_STORES_LOCAL_SERVICE_H

/* A hash that cannot grow leaves the new element out, which then has no table. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "journal/journal.h"
#include "stores/local/store.h"

enum answer_kind {
	ANSWER_CONNECTED, /* not to an operation: a session lives */
	ANSWER_PLACED,
	ANSWER_LISTED,
	ANSWER_ATTENDED,
	ANSWER_READ,
	ANSWER_WATCHED,
	ANSWER_AMENDED,
	ANSWER_MARKED,
	ANSWER_WITHDRAWN,
	ANSWER_PROVED,
	ANSWER_LOOKED, /* these three to a struct store_look, _read or _change, which is the tag */
	ANSWER_CLAIM,
	ANSWER_CHANGED,
};

/* A queue as it was at some moment. The names lie behind the entries. */
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
	int32_t sequence;	   /* PLACED */
	char name[CLAIM_NAME_BYTES];
	uint32_t version;	  /* READ */
	char *text;		  /* READ, CLAIM; PROVED: the lock whose claim is gone, or NULL */
	struct store_claim claim; /* CLAIM */
	char **names;		  /* LOOKED */
	size_t names_count;
	int64_t stamp;		    /* PROVED */
	struct answer *prev, *next; /* in local_store.answers, or while it waits in node.watches or
				       queue.attentions */
	struct node *watched;	    /* the claim that a watch waits for, or NULL */
	struct queue *attended;	    /* the queue that an attention waits for, or NULL */
	struct answer *waiting_prev, *waiting_next; /* in local_store.watches */
};

/* A claim in its queue. There may be very many, so it has nothing that can be told otherwise. */
struct node {
	char *text;	  /* behind the name, until it is replaced */
	int64_t since_ms; /* since 1970 */
	uint32_t version; /* how often its text was replaced */
	int32_t sequence;
	uint64_t place; /* in the journal, in the order of coming */
	struct state_item item;
	struct queue *queue;
	struct local_store *store; /* whose session placed it: the present one; NULL: an orphan */
	bool marked;		   /* its marker stands, with the text of the claim */
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
	struct node **nodes; /* the first of them: */
	size_t count;
	struct node **room; /* where they lie */
	size_t room_count;
	struct answer *attentions; /* none without a claim */
	int32_t next_sequence;
	uint64_t places;     /* of claims in the journal, so far */
	struct queue *above; /* NULL: this is that of "", above all locks, which has no claims */
	struct queue *below;
	size_t below_count;
	struct queue *prev, *next; /* in above->below */
	UT_hash_handle hh;	   /* in local_service.queues */
	char path[];
};

struct local_service {
	struct queue *queues;
	struct state_journal *journal; /* NULL: nothing is kept there */
	uint64_t place;		       /* the first number of its items' places */
	uint64_t serials;	       /* of queues, so far */
	struct state_item item;
	int32_t first_sequence;
	int64_t stamp;	   /* the latest */
	uint64_t sessions; /* so far */
};

struct local_store {
	struct store store;
	struct local_service *service;
	uint64_t session; /* its number */
	const struct store_events *events;
	void *context;
	int descriptor;
	bool readable; /* the descriptor is */
	bool lost;     /* the session is over and the next dispatch will say so */
	bool over;     /* the same, and that it is connected again has not been said */
	struct answer connected;
	struct answer *answers;
	struct answer *watches; /* and attentions */
	struct node *nodes;
};

/* Whether it has no claims. */
static inline bool queue_is_empty(const struct queue *queue)
{
	return queue->count == 0;
}

/* The queue of the lock; NULL: neither it nor a lock below has a claim. */
struct queue *queue_find(const struct local_service *service, const char *path);

/* Finds or makes the queue. Returns NULL when out of memory. */
struct queue *queue_open(struct local_service *service, const char *path);

/* The next claim gets that number. */
void queue_set_next(struct queue *queue, int32_t sequence);

/* Frees the queue, and those above it, unless there are claims. */
void queue_remove_if_empty(struct queue *queue);

/* Puts a claim at the end of the queue, and tells those who attend to it. Returns NULL when out of
 * memory; the queue may then be empty. */
struct node *node_create(struct local_store *store, struct queue *queue,
			 const struct claim_name *name, const char *text);

/* The same with this number, which the counter then stands behind. */
struct node *node_restore(struct local_store *store, struct queue *queue, const char *name,
			  const char *text, int32_t sequence);

/* The claim; NULL if none of that name stands. */
struct node *node_find(const struct local_service *service, const char *path, const char *name);

/* The same for an orphan. */
struct node *node_find_orphan(const struct local_service *service, const char *path,
			      const char *name);

/* Replaces the data and tells the watchers. Returns 0, or -ENOMEM and nothing has happened. */
int node_amend(struct node *node, const char *text);

/* Ends the claim and tells its watchers, and those who attend to the queue. With a marker it stays
 * in the queue as an orphan. The queue stays, even if empty. */
void node_remove(struct node *node);

/* Takes the orphan out of its queue, which stays. */
void node_remove_orphan(struct node *node);

/* The queue as it is. Returns NULL when out of memory, or if it is NULL or has no claims. */
struct snapshot *snapshot_create(const struct queue *queue);

/* The answer is to be delivered by the next dispatch(), after those that lie there. */
void answer_queue(struct answer *answer);

void answer_free(struct answer *answer);

/* Whether its asker is answered even if the session is lost. */
bool answer_is_for_outside(const struct answer *answer);

/* What a watch reads of its claim's data. Returns NULL when out of memory. */
struct answer *answer_create_read(const struct answer *watch, const char *text, uint32_t version);

/* Lets a watch lie at the claim, or an attention at a queue that has claims; takes either away from
 * there. */
void watch_start(struct answer *watch, struct node *node);
void attention_start(struct answer *attention, struct queue *queue);
void watch_stop(struct answer *watch);

/* transfer.c: what is written of it has changed, for the journal; a queue's next number and
 * its claims are told apart. */
void service_mark(struct local_service *service);
void queue_mark(struct queue *queue);
void node_mark(struct node *node);

/* It is about to be freed. */
void service_unmark(struct local_service *service, struct state_item *item);

/* Lets the descriptor be readable, or not. */
void store_make_readable(struct local_store *store);
void store_make_unreadable(struct local_store *store);

/* look.c: what answers for the outside deliver, and the functions of the table that ask. */
void local_deliver_outside(const struct answer *answer);
int local_look(struct store *base, struct store_look *look, const char *path);
int local_read(struct store *base, struct store_read *read, const char *path, const char *name);
int local_write(struct store *base, struct store_change *change, const char *path, const char *name,
		const char *text, uint32_t version);
int local_remove(struct store *base, struct store_change *change, const char *path,
		 const char *name);

#endif
