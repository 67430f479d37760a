/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps one session with ZooKeeper: makes it, makes the next one when it is over, ends it. And the
 * mailbox in which everything that ZooKeeper has to say is brought to the loop's thread.
 *
 * Three kinds of thread meet here. The loop's thread takes messages and never blocks. The
 * keeper's own thread makes and ends sessions, which may take seconds. ZooKeeper's threads (two per
 * session) call back: a callback copies, posts a message and returns.
 *
 * A session ends in two steps. The loop's thread declares it over: from then on it makes no
 * calls with its handle and discards its messages. The keeper then closes the handle, after which
 * no callback comes any more, and posts MESSAGE_CLOSED: the last message of the session. Only then
 * may what the session's callbacks know of be freed.
 */
#ifndef DLOCKFS_ZOOKEEPER_SESSION_H
#define DLOCKFS_ZOOKEEPER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <zookeeper/zookeeper.h>

#include "store_access.h"

/* How long the end of a session waits for what is under way. */
#define ZOOKEEPER_SETTLE_LIMIT_MS 400

struct zookeeper_keeper;
struct operation; /* of zookeeper_operation.h */

enum zookeeper_message_kind {
	MESSAGE_STATE,	   /* struct zookeeper_state: a session's connection changed */
	MESSAGE_OPERATION, /* a request is answered; the struct is the store's */
	MESSAGE_WATCH,	   /* a watched znode changed; the struct is the store's */
	MESSAGE_QUEUE,	   /* one whose children are attended to; likewise */
	MESSAGE_STARVED,   /* a message could not be allocated: the session cannot be relied on */
	MESSAGE_CLOSED,	   /* struct zookeeper_session: to be freed now */
};

/* The first member of everything that is posted. */
struct zookeeper_message {
	struct zookeeper_message *prev, *next;
	enum zookeeper_message_kind kind;
};

struct zookeeper_state {
	struct zookeeper_message message;
	struct zookeeper_session *session;
	zhandle_t *handle;
	int state; /* ZOO_CONNECTED_STATE and so on */
	clientid_t id;
	/* With ZOO_CONNECTED_STATE: */
	int timeout_ms;
	char server[64];
};

struct zookeeper_session {
	struct zookeeper_message closed; /* first, so that MESSAGE_CLOSED leads back here */
	struct zookeeper_keeper *keeper;
	/* The loop's thread: */
	bool over;
	struct operation *operations; /* freed with the session at the latest */
	/* The keeper: */
	zhandle_t *handle;
	bool connected_once;
	bool settled;
	bool failure_told;
	struct zookeeper_session *next;
	/* ZooKeeper's thread: of the first change. It needs no memory, so that a session that is
	 * connected is known, and can be given up when memory is short. */
	struct zookeeper_state first_state;
	bool first_used;
	const char *introduced; /* the last line of the digest that the client has been given */
	bool accepted;		/* by a server, once */
	struct zookeeper_state *unanswered; /* to be posted when the server has taken them */
};

/* Starts the keeper's thread, with all signals blocked, which makes the first session, or goes on
 * with the one of that id (NULL: none). All is copied. Of a session ZOO_CONNECTED_STATE is posted
 * when a server has accepted who it is. Returns 0 or -errno. */
int zookeeper_keeper_start(const char *servers, int timeout_ms, const struct store_access *access,
			   const clientid_t *id, struct zookeeper_keeper **ret);

/* Readable when there are messages. */
int zookeeper_keeper_descriptor(const struct zookeeper_keeper *keeper);

/* Posts a message. Any thread; does not block, does not fail. */
void zookeeper_keeper_post(struct zookeeper_keeper *keeper, struct zookeeper_message *message);

/* Posts MESSAGE_STARVED, unless one is waiting already. As zookeeper_keeper_post(). */
void zookeeper_keeper_starve(struct zookeeper_keeper *keeper);

/* MESSAGE_STARVED has been taken, and is in no list any more. Before it is acted on, so that what
 * is starved from then on is told again. */
void zookeeper_keeper_reset_starved(struct zookeeper_keeper *keeper);

/* Takes all messages, in the order in which they were posted: a list for utlist.h's DL macros. */
struct zookeeper_message *zookeeper_keeper_take(struct zookeeper_keeper *keeper);

/* The end of MESSAGE_STATE. */
void zookeeper_state_free(struct zookeeper_state *message);

/* Breaks the keeper's connections to servers, also one that is being made: the client goes on to
 * the next server at once, where it would wait for two thirds of the session timeout. Connections
 * that stand to servers of other keepers stay; those that another keeper is just making, or has to
 * the same server, may have to be made again. Does not block. */
void zookeeper_keeper_break(const struct zookeeper_keeper *keeper);

/* Asks for a new session in place of one that is over, which is closed then; the new one is made
 * after so long. Does not block. */
void zookeeper_keeper_renew(struct zookeeper_keeper *keeper, struct zookeeper_session *over,
			    int delay_ms);

/* Ends the session and the keeper. Waits for that as long as `limit_ms`. When all sessions are
 * closed and their MESSAGE_CLOSED posted, calls finish(context), which takes the last messages;
 * then frees the keeper. That is done before this returns, or, when the limit is over, later by the
 * keeper's thread. */
void zookeeper_keeper_stop(struct zookeeper_keeper *keeper, int limit_ms, void (*finish)(void *),
			   void *context);

#endif
