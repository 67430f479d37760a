/* SPDX-License-Identifier: Apache-2.0
 *
 * The mailbox by which ZooKeeper's answers and events reach the loop's thread. Any thread, unless a
 * function says otherwise; nothing here blocks.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_MAILBOX_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>

enum zookeeper_message_kind {
	MESSAGE_STATE,	   /* struct zookeeper_state: a session's connection changed */
	MESSAGE_OPERATION, /* a request is answered; the struct is the store's */
	MESSAGE_EVENT,	   /* a watched znode changed; the struct is the store's */
	MESSAGE_STARVED,   /* a message could not be allocated: the session cannot be relied on */
	MESSAGE_CLOSED,	   /* struct zookeeper_session: to be freed now */
};

/* The first member of every struct that is posted. */
struct zookeeper_message {
	struct zookeeper_message *prev, *next;
	enum zookeeper_message_kind kind;
};

struct zookeeper_mailbox {
	int descriptor; /* readable when there are messages */
	pthread_mutex_t mutex;
	struct zookeeper_message *messages;
	struct zookeeper_message starved;
	bool starved_posted; /* the message is in the list, or was taken and not yet reset */
};

/* Returns 0, or -errno with nothing to finish. Before there are other threads, and after. */
int zookeeper_mailbox_init(struct zookeeper_mailbox *mailbox);
void zookeeper_mailbox_finish(struct zookeeper_mailbox *mailbox);

/* Posts a message. Does not fail. */
void zookeeper_mailbox_post(struct zookeeper_mailbox *mailbox, struct zookeeper_message *message);

/* Posts MESSAGE_STARVED, unless one is waiting already. Does not fail. */
void zookeeper_mailbox_starve(struct zookeeper_mailbox *mailbox);

/* MESSAGE_STARVED has been taken, and is in no list any more. To be called before acting on it, so
 * that memory that runs out after that is reported again. */
void zookeeper_mailbox_reset_starved(struct zookeeper_mailbox *mailbox);

/* Takes all messages, in the order in which they were posted: a list for utlist.h's DL macros. */
struct zookeeper_message *zookeeper_mailbox_take(struct zookeeper_mailbox *mailbox);

#endif
