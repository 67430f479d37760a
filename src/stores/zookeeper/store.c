/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the operations of stores/store.h into requests to ZooKeeper and the answers into events.
 * Owns the operations under way and the watches; session/connector.c owns sessions, threads and the
 * mailbox.
 *
 * Everything runs on the loop's thread, except the callbacks under "Answers", which run on
 * ZooKeeper's.
 *
 * Facts about the client library (3.8) that this rests on:
 * - Answers, watch events and session events come on one thread, in the order in which the server
 *   sent them; the end of a connection comes before the answers of requests that failed by it.
 * - Requests may be made in any state from any thread. Without a connection they are queued and
 *   fail with the next failed attempt to connect. After an expiry they may never be answered.
 * - A watch is known to the client only once the get that set it up is answered with ZOK.
 */
#include "stores/zookeeper/store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "journal/fields.h"
#include "stores/seeker.h"
#include "stores/zookeeper/health.h"
#include "stores/zookeeper/operation.h"
#include "stores/zookeeper/session/client.h"
#include "stores/zookeeper/session/servers.h"

#define CLOSE_LIMIT_MS 2000

static const char not_accepted[] = "the servers do not accept who we are";
static const char not_told[] = "the servers ask who we are, expected digest_file, tls_certificate "
			       "or sasl_mechanism";

/* What another process goes on with. */
struct saved_session {
	clientid_t id; /* client_id 0: there is none */
	int64_t seen;
	int64_t token_floor;
};

static struct store_zookeeper *from_store(struct store *store)
{
	return (struct store_zookeeper *)store;
}

/* amend() */

static void conclude_amend(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error = 0;

	if (operation->code == ZMARSHALLINGERROR)
		error = -ENOMEM;
	else if (operation->code == ZBADVERSION)
		error = -ESTALE;
	else if (operation->code != ZNONODE)
		error = operation_error(operation, operation->code, "cannot set");
	operation_note_end(operation, error);
	store->events->on_amended(store->context, operation->tag, error);
	operation_release(operation);
}

static void store_zookeeper_amend(struct store *base, void *tag, const char *path, const char *name,
				  const char *text, uint32_t version)
{
	struct operation *operation =
		operation_create(from_store(base), STORE_AMEND, tag, conclude_amend, path, name);

	if (operation == NULL)
		return;
	operation->version = (int32_t)version;
	operation->text = strdup(text);
	if (operation->text == NULL) {
		operation_starve(operation);
		return;
	}
	operation_start(operation, operation_set);
}

/* The session */

/* renew() is yet to come. */
static void leave_to_renew(struct store_zookeeper *store, struct zookeeper_session *session)
{
	session->over = true;
	store->giving_up.session = session;
}

static void on_connected(struct store_zookeeper *store, const struct zookeeper_state *state)
{
	/* The session was given up before it was connected: the connector can be told only now. */
	if (store->giving_up.abandoned) {
		store->giving_up.abandoned = false;
		if (store->giving_up.told != NULL)
			zookeeper_connection_end(store, state->session);
		else
			leave_to_renew(store, state->session);
		return;
	}
	store->resuming = false;
	store->session = state->session;
	store->handle = state->handle;
	store->id = state->id;
	store->timeout_ms = state->timeout_ms;
	lease_connect(&store->lease, store->timeout_ms, state->since_ms);
	zookeeper_seek_note_server(store);
	zookeeper_seek_answered(store);
	memcpy(store->server, state->server, sizeof(store->server));
	zookeeper_watch_resume(store);
	if (store->trouble == store->refusal)
		store->trouble = NULL;
	if (!store->root_state.prepared)
		zookeeper_root_prepare(store);
	if (store->root_state.names_known || store->root_state.barred != ZOK)
		zookeeper_connection_made(store);
}

/* The servers do not accept this host's identity, which is logged once. The store tries again for
 * ever: the servers may be configured to accept it. */
static void on_refused(struct store_zookeeper *store)
{
	if (store->trouble != store->refusal)
		log_error("ZooKeeper at %s: %s; trying again every %d s", store->servers,
			  store->refusal, REFUSED_MS / 1000);
	store->trouble = store->refusal;
}

static void deliver_state(struct store_zookeeper *store, const struct zookeeper_state *state)
{
	struct zookeeper_session *session = state->session;

	if (store->resuming)
		store->session = session;
	if (state->state == ZOO_CONNECTED_STATE) {
		on_connected(store, state);
	} else if (state->state == ZOO_EXPIRED_SESSION_STATE ||
		   state->state == ZOO_AUTH_FAILED_STATE) {
		store->resuming = store->giving_up.abandoned = false;
		if (state->state == ZOO_AUTH_FAILED_STATE)
			on_refused(store);
		else
			log_error("ZooKeeper session 0x%" PRIx64 " has expired",
				  (uint64_t)state->id.client_id);
		if (session == store->session)
			zookeeper_connection_lose(store);
		else
			zookeeper_connection_end(store, session);
	} else if (session == store->session && store->told == STORE_CONNECTED) {
		zookeeper_connection_suspended(store);
		zookeeper_seek_lost(store);
		zookeeper_watch_lose(store);
		zookeeper_list_lose(store);
	}
}

/* The handle is closed. The client does not answer all that was asked if the session is over. */
static void free_session(struct zookeeper_session *session)
{
	while (session->operations != NULL)
		operation_free(session->operations);
	if (session->unanswered != NULL)
		zookeeper_state_free(session->unanswered);
	free(session);
}

/* Frees a message without delivering it. */
static void discard(struct zookeeper_message *message)
{
	switch (message->kind) {
	case MESSAGE_OPERATION:
		if (((struct operation *)message)->session == NULL)
			operation_free((struct operation *)message);
		break;
	case MESSAGE_STATE:
		zookeeper_state_free((struct zookeeper_state *)message);
		break;
	case MESSAGE_EVENT:
		free(message);
		break;
	case MESSAGE_STARVED:
		break;
	case MESSAGE_CLOSED:
		free_session((struct zookeeper_session *)message);
		break;
	}
}

/* Whether the operation is to be answered even though its session's handle is closed. */
static bool is_unanswered(const struct operation *operation)
{
	bool lives =
		operation->session->moved && operation->generation == operation->store->generation;
	return operation->outside || (lives && operation->sent_us);
}

/* The handle is closed: answers the operations that ZooKeeper will not answer any more. */
static void answer_rest(struct zookeeper_session *session)
{
	struct operation *operation, *next;

	DL_FOREACH_SAFE (session->operations, operation, next) {
		bool unanswered = is_unanswered(operation);

		operation_note_end(operation, -ECONNRESET);
		if (!unanswered)
			continue;
		operation->outside = false;
		operation->code = operation->list_code = ZCONNECTIONLOSS;
		operation->conclude(operation);
	}
}

/* Takes watches that are to be set up anew out of the session whose handle is closed. */
static void keep_watches(struct zookeeper_session *session)
{
	struct operation *operation, *next;

	DL_FOREACH_SAFE (session->operations, operation, next) {
		if (operation->watched && operation->generation == operation->store->generation)
			operation_detach(operation);
	}
}

/* The root is none of the znodes of claims and queues. */
static void deliver_event(struct store_zookeeper *store, const struct znode_event *event)
{
	if (!strcmp(event->path, *store->root ? store->root : "/")) {
		if (event->session == store->session)
			zookeeper_root_changed(store);
		return;
	}
	if (event->type == ZOO_DELETED_EVENT || event->type == ZOO_CHANGED_EVENT)
		zookeeper_watch_changed(store, event->path, event->type == ZOO_DELETED_EVENT);
	if (event->type == ZOO_DELETED_EVENT || event->type == ZOO_CHILD_EVENT)
		zookeeper_list_changed(store, event->path);
}

static void deliver(struct store_zookeeper *store, struct zookeeper_message *message)
{
	struct operation *operation = (struct operation *)message;
	struct zookeeper_state *state = (struct zookeeper_state *)message;
	const struct znode_event *event = (const struct znode_event *)message;

	switch (message->kind) {
	case MESSAGE_OPERATION:
		if (operation->generation == store->generation || operation->outside) {
			operation->outside = false; /* it may be kept: not to be answered again */
			operation->conclude(operation);
			return;
		}
		operation_note_end(operation, -ECONNRESET);
		break;
	case MESSAGE_EVENT:
		if (!event->session->over)
			deliver_event(store, event);
		break;
	case MESSAGE_STATE:
		if (!state->session->over)
			deliver_state(store, state);
		break;
	case MESSAGE_STARVED:
		zookeeper_mailbox_reset_starved(zookeeper_connector_mailbox(store->connector));
		log_error("out of memory: the ZooKeeper session is given up");
		zookeeper_connection_lose(store);
		break;
	case MESSAGE_CLOSED:
		answer_rest((struct zookeeper_session *)message);
		if (((struct zookeeper_session *)message)->moved)
			keep_watches((struct zookeeper_session *)message);
		break;
	}
	discard(message);
}

static void store_zookeeper_dispatch(struct store *base)
{
	struct store_zookeeper *store = from_store(base);
	struct zookeeper_message *messages =
		zookeeper_mailbox_take(zookeeper_connector_mailbox(store->connector));
	struct zookeeper_message *message;

	while ((message = messages) != NULL) {
		DL_DELETE(messages, message);
		deliver(store, message);
	}
	seeker_dispatch(store->seek.seeker);
	if (store->refused && store->session != NULL) {
		on_refused(store);
		zookeeper_connection_lose(store);
	}
	store->refused = false;
	if (store->root_state.wanted)
		zookeeper_root_prepare(store);
}

static int store_zookeeper_descriptor(struct store *base)
{
	return from_store(base)->poll;
}

static void store_zookeeper_describe(struct store *base, char *text, size_t text_bytes)
{
	struct store_zookeeper *store = from_store(base);
	const char *root = *store->root ? store->root : "/";
	const char *trouble = store->trouble != NULL ? store->trouble : "";
	const char *but = store->trouble != NULL ? ": " : "";

	if (store->told == STORE_CONNECTED)
		snprintf(text, text_bytes,
			 "zookeeper://%s%s connected to %s, session 0x%" PRIx64
			 ", timeout %d ms%s%s",
			 store->servers, root, store->server, (uint64_t)store->id.client_id,
			 store->timeout_ms, but, trouble);
	else
		snprintf(text, text_bytes, "zookeeper://%s%s not connected%s%s%s", store->servers,
			 root, store->id.client_id == 0 && !store->trouble ? " yet" : "", but,
			 trouble);
}

static const char *store_zookeeper_trouble(struct store *base)
{
	return from_store(base)->trouble;
}

static void tend(struct store *base, int64_t now_ms)
{
	zookeeper_idle_tend(from_store(base), now_ms);
	zookeeper_space_tend(from_store(base), now_ms);
}

static int64_t tend_ms(const struct store *base)
{
	const struct store_zookeeper *store = (const struct store_zookeeper *)base;
	int64_t idle_ms = zookeeper_idle_tend_ms(store);
	int64_t space_ms = zookeeper_space_tend_ms(store);

	return idle_ms < space_ms ? idle_ms : space_ms;
}

static void free_store(struct store_zookeeper *store)
{
	seeker_destroy(store->seek.seeker);
	if (store->poll >= 0)
		close(store->poll);
	free(store->servers);
	free(store->root);
	free(store);
}

/* Called when all sessions are closed, possibly on the connector's thread after close() has
 * returned.
 */
static void finish_store(void *context)
{
	struct store_zookeeper *store = context;
	struct zookeeper_message *messages =
		zookeeper_mailbox_take(zookeeper_connector_mailbox(store->connector));
	struct zookeeper_message *message;

	zookeeper_watch_forget(store);
	zookeeper_above_free(store);
	zookeeper_idle_free(store);
	HASH_CLEAR(hh, store->attentions);
	while ((message = messages) != NULL) {
		DL_DELETE(messages, message);
		discard(message);
	}
	free_store(store);
}

static void store_zookeeper_close(struct store *base, const struct store_told *told)
{
	struct store_zookeeper *store = from_store(base);

	zookeeper_seek_end(store);
	zookeeper_connector_stop(store->connector, told, CLOSE_LIMIT_MS, finish_store, store);
}

static int64_t store_zookeeper_session(const struct store *base)
{
	return ((const struct store_zookeeper *)base)->id.client_id;
}

static int64_t store_zookeeper_seen(const struct store *base)
{
	return ((const struct store_zookeeper *)base)->seen;
}

static const struct field seen_fields[] = {
	{"seen", FIELD_NUMBER(struct saved_session, seen, 0, INT64_MAX)},
	{"token_floor", FIELD_NUMBER(struct saved_session, token_floor, 0, INT64_MAX), FIELD_OR(0)},
	{0},
};

/* By id and password any process can go on with a session. */
static void save_session(const struct store *base, FILE *out)
{
	const struct store_zookeeper *store = (const struct store_zookeeper *)base;

	const struct saved_session saved = {
		.seen = store->seen,
		.token_floor = tokens_floor(&store->tokens, store->seen),
	};

	state_flag(out, "zookeeper", true);
	fields_save(seen_fields, &saved, out);
	if (store->id.client_id == 0)
		return;
	state_number(out, "session", store->id.client_id);
	state_bytes(out, "password", store->id.passwd, sizeof(store->id.passwd));
}

static void *restore_session(struct state_reader *in)
{
	struct saved_session *saved;
	size_t bytes;
	const void *password;

	saved = calloc(1, sizeof(*saved));
	if (saved == NULL) {
		state_starve(in);
		return NULL;
	}
	fields_restore(seen_fields, saved, in);
	if (!state_has(in, "session"))
		return saved;
	password = state_get_bytes(in, "password", &bytes);
	saved->id.client_id = state_get_number(in, "session", INT64_MIN, INT64_MAX);
	if (bytes == sizeof(saved->id.passwd))
		memcpy(saved->id.passwd, password, bytes);
	else
		state_refuse(in, "password", "16 bytes");
	return saved;
}

static const struct store_ops store_zookeeper_ops = {
	.descriptor = store_zookeeper_descriptor,
	.dispatch = store_zookeeper_dispatch,
	.place = zookeeper_place,
	.list = zookeeper_list,
	.amend = store_zookeeper_amend,
	.watch = zookeeper_watch,
	.mark = zookeeper_mark,
	.age = zookeeper_age,
	.withdraw = zookeeper_delete_own,
	.bequeath = zookeeper_delete_for,
	.prove = zookeeper_prove,
	.touch = zookeeper_touch,
	.lease = zookeeper_touch_lease,
	.defer_beat = zookeeper_touch_defer,
	.doubt = zookeeper_touch_doubt,
	.resume = zookeeper_touch_resume,
	.look = zookeeper_look,
	.read = zookeeper_look_read,
	.write = zookeeper_look_write,
	.remove = zookeeper_delete_any,
	.files = zookeeper_files,
	.alter = zookeeper_files_alter,
	.nudge = zookeeper_connection_nudge,
	.renew = zookeeper_connection_renew,
	.tend = tend,
	.tend_ms = tend_ms,
	.describe = store_zookeeper_describe,
	.trouble = store_zookeeper_trouble,
	.space = zookeeper_space,
	.settle = zookeeper_root_settle,
	.session = store_zookeeper_session,
	.seen = store_zookeeper_seen,
	.save_session = save_session,
	.has_statistics = true,
	.order_late = ORDER_LATE,
	.order_unsure = INT32_MAX,
	.close = store_zookeeper_close,
};

static void set_acl(struct store_zookeeper *store, enum store_acl acl)
{
	/* "auth" stands for the identity that the session has proved. */
	const struct ACL all = {ZOO_PERM_ALL, ZOO_ANYONE_ID_UNSAFE};
	const struct ACL creator = {ZOO_PERM_ALL, ZOO_AUTH_IDS};
	const struct ACL readers = {ZOO_PERM_READ, ZOO_ANYONE_ID_UNSAFE};

	store->rights.acl.data = store->rights.entries;
	store->rights.acl.count = acl == STORE_ACL_CREATOR ? 2 : 1;
	store->rights.entries[0] = acl == STORE_ACL_OPEN ? all : creator;
	store->rights.entries[1] = readers;
	store->rights.is_guarded = acl != STORE_ACL_OPEN;
}

static int watch_descriptor(const struct store_zookeeper *store, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(store->poll, EPOLL_CTL_ADD, descriptor, &event) < 0 ? -errno : 0;
}

static int make_descriptors(struct store_zookeeper *store)
{
	int error = zookeeper_seek_init(store);

	if (error)
		return error;
	store->poll = epoll_create1(EPOLL_CLOEXEC);
	return store->poll < 0 ? -errno
			       : watch_descriptor(store, seeker_descriptor(store->seek.seeker));
}

static int store_zookeeper_open(const struct store_options *options,
				const struct store_events *events, void *context,
				struct store **ret)
{
	const struct saved_session *saved = options->session;
	struct store_zookeeper *store = calloc(1, sizeof(*store));
	int timeout_ms =
		options->session_timeout_ms < INT_MAX ? (int)options->session_timeout_ms : INT_MAX;
	int result = -ENOMEM;

	if (store == NULL)
		return -ENOMEM;
	store->store.ops = &store_zookeeper_ops;
	store->events = events;
	store->context = context;
	store->statistics = options->statistics;
	set_acl(store, store_access_acl(options->access));
	store->refusal = store_access_has_identity(options->access) ? not_accepted : not_told;
	store->told = STORE_SUSPENDED;
	store->poll = -1;
	store->space.names = -1;
	lease_begin(&store->lease, 0, clock_now_ms()); /* no session of the store is older */
	store->servers = zookeeper_servers_show(options->url->servers);
	store->root = strdup(options->url->root);
	store->root_state.is_new = options->new_root;
	store->root_state.read_only = options->read_only;
	if (saved != NULL) {
		store->seen = saved->seen;
		store->tokens.floor = saved->token_floor;
		store->id = saved->id;
		store->resuming = saved->id.client_id != 0;
	}
	if (store->servers != NULL && store->root != NULL)
		result = make_descriptors(store);
	if (result == 0)
		result = zookeeper_connector_start(store->servers, timeout_ms, options->access,
						   store->resuming ? &store->id : NULL,
						   &store->connector);
	if (result < 0) {
		free_store(store);
		return result;
	}
	if (watch_descriptor(store, zookeeper_connector_mailbox(store->connector)->descriptor) <
	    0) {
		zookeeper_connector_stop(store->connector, NULL, CLOSE_LIMIT_MS, finish_store,
					 store);
		return -ENOMEM;
	}
	*ret = &store->store;
	return 0;
}

const struct store_kind store_zookeeper_kind = {
	.scheme = STORE_SCHEME_ZOOKEEPER,
	.abilities = STORE_HAS_QUEUE | STORE_HAS_SHARED | STORE_HAS_RANGES | STORE_HAS_STAMPS |
		     STORE_HAS_CLIENTS | STORE_HAS_FILES | STORE_HAS_KEPT | STORE_HAS_SLOTS,
	.is_remote = true,
	.has_acl = true,
#ifdef HAVE_ZOOKEEPER_TLS
	.check_files = zookeeper_client_check,
#endif
#if defined(HAVE_ETCD) || defined(HAVE_REDIS)
	.ask = zookeeper_health,
#endif
	.open = store_zookeeper_open,
	.restore_session = restore_session,
};
