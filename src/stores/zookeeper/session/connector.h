/* SPDX-License-Identifier: Apache-2.0
 *
 * The connector makes a session with ZooKeeper, makes the next one when that is over, and ends it.
 *
 * Three kinds of thread meet here. The loop's thread takes messages and never blocks. The
 * connector's own thread makes and ends sessions, which may take seconds. ZooKeeper's threads (two
 * per session) call back: a callback copies, posts a message and returns.
 *
 * A session ends in two steps. The loop's thread declares it over: from then on it makes no calls
 * with its handle and discards its messages. The connector then closes the handle, after which no
 * callback comes any more, and posts MESSAGE_CLOSED: the last message of the session. Only then may
 * memory be freed that the session's callbacks use.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_CONNECTOR_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_CONNECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <zookeeper/zookeeper.h>

#include "config/access.h"
#include "stores/zookeeper/session/mailbox.h"
#include "stores/zookeeper/session/socket.h"

/* How long the end of a session waits for requests under way. */
#define ZOOKEEPER_SETTLE_LIMIT_MS 400

struct zookeeper_connector;
struct operation; /* of operation.h */

struct zookeeper_state {
	struct zookeeper_message message;
	struct zookeeper_session *session;
	zhandle_t *handle;
	int state; /* ZOO_CONNECTED_STATE and so on */
	clientid_t id;
	/* With ZOO_CONNECTED_STATE: */
	int timeout_ms;
	char server[64];
	int64_t since_ms; /* no connection over which something can be answered from now on was
			     begun before that, clock_now_ms(); INT64_MIN: nothing is known */
};

struct zookeeper_session {
	struct zookeeper_message closed; /* first, so that MESSAGE_CLOSED leads back here */
	struct zookeeper_connector *connector;
	/* The loop's thread: */
	bool over;
	struct operation *operations; /* freed with the session at the latest */
	/* The connector: */
	zhandle_t *handle;
	bool connected_once;
	bool settled;
	bool failure_told;
	bool moved; /* goes on with another handle; set by the loop's thread with `over` */
	const struct store_told *told; /* that it may be ended; set by the loop's thread, too */
	bool goes_on;		       /* it is such another handle */
	struct zookeeper_session *next;
	/* ZooKeeper's thread: the message of the first change. It needs no allocation, so that a
	 * connected session is known, and can be given up when memory is short. */
	struct zookeeper_state first_state;
	bool first_used;
	const char *introduced; /* the last line of the digest that the client has been given */
	bool accepted;		/* a server has accepted the identity at least once */
	zoo_op_t check;		/* of a session that has moved: see introduce() */
	zoo_op_result_t result;
	struct zookeeper_state *unanswered; /* to be posted when the server has answered */
};

/* Starts the connector's thread, with all signals blocked. The thread makes the first session, or
 * goes on with that of the given id (NULL: none). Everything is copied. ZOO_CONNECTED_STATE of a
 * session is posted when a server has accepted this host's identity. Returns 0 or -errno. */
int zookeeper_connector_start(const char *servers, int timeout_ms,
			      const struct store_access *access, const clientid_t *id,
			      struct zookeeper_connector **ret);

/* The mailbox to which everything of its sessions is posted. */
struct zookeeper_mailbox *zookeeper_connector_mailbox(struct zookeeper_connector *connector);

/* Frees a MESSAGE_STATE. */
void zookeeper_state_free(struct zookeeper_state *message);

/* Breaks the connector's connection to a server, or the attempt to make one: the client turns to
 * another server at once, instead of waiting for two thirds of the session timeout; with `avoid` it
 * does not come back to this one, if there is another one. Connections of other connectors stay.
 * Does not block. */
void zookeeper_connector_break(struct zookeeper_connector *connector, bool avoid);

/* Of that connection, or attempt. Does not block. */
const struct zookeeper_socket *
zookeeper_connector_socket(const struct zookeeper_connector *connector);

/* Asks for a new session in place of one that is over, whose handle is then closed; the new one is
 * made after that delay. A session that was connected is ended by that only with the proof that its
 * holders were told; NULL: there is none. Does not block. */
void zookeeper_connector_renew(struct zookeeper_connector *connector,
			       struct zookeeper_session *over, const struct store_told *told,
			       int delay_ms);

/* The session, which has no connection, goes on with a new handle, in a struct zookeeper_session of
 * its own; `over` is the former one, whose handle is closed before that without ending the session.
 * ZOO_CONNECTED_STATE of the new one is posted once its server knows everything that the former one
 * has seen. Does not block. */
void zookeeper_connector_move(struct zookeeper_connector *connector, struct zookeeper_session *over,
			      const clientid_t *id);

/* Ends the connector, and the session as zookeeper_connector_renew() does, and waits for that up to
 * `limit_ms`. When all sessions are
 * closed and their MESSAGE_CLOSED posted, finish(context) is called, which takes the last messages;
 * then the connector is freed. Both happen before this function returns or, when the limit is over,
 * later on the connector's thread. */
void zookeeper_connector_stop(struct zookeeper_connector *connector, const struct store_told *told,
			      int limit_ms, void (*finish)(void *), void *context);

#endif
