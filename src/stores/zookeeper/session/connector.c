/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the handles of ZooKeeper's client library, and the thread that makes and closes them. Must
 * not know locks, nor call the store, but for finish().
 *
 * `mutex` guards everything below it in struct zookeeper_connector. While it is held, the client
 * library is not called; callbacks hold it only for a moment.
 */
#include "stores/zookeeper/session/connector.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/zookeeper/session/client.h"
#include "stores/zookeeper/session/failure.h"
#include "stores/zookeeper/session/servers.h"

#define RETRY_MS       1000 /* between attempts to make a handle */
#define UNREACHABLE_MS 5000 /* until a session that never connected is worth a warning */
#define SASL_LOOK_MS   1000 /* how often to check whether SASL has failed */

struct zookeeper_connector {
	struct zookeeper_socket socket;
	char *servers;
	int timeout_ms;
	clientid_t former; /* the session with which the next handle goes on: */
	bool has_former;
	bool moves; /* the session of a handle of this process, which is to be closed first */
	struct store_access access;
	struct zookeeper_client *client;
	struct zookeeper_mailbox mailbox;
	pthread_t thread;
	pthread_cond_t changed;
	pthread_mutex_t mutex;

	struct zookeeper_session *newest; /* being made or in use */
	struct zookeeper_session *over;	  /* to be closed */
	bool wanted;			  /* a new session is to be made */
	int64_t retry_at_ms;
	int64_t warn_at_ms;
	int last_error; /* of the latest attempt to make a handle */
	int handles;	/* that are not closed: all of them have the one socket */
	bool several;	/* the handle knows several addresses */

	bool stopping;
	const struct store_told *told; /* stopping: that the newest session may be ended */
	bool stopped;
	bool abandoned; /* zookeeper_connector_stop() does not wait any more: the thread frees
			   everything */
	void (*finish)(void *context);
	void *finish_context;
};

/* Waits for a change. Returns at the latest at the given time; INT64_MAX: only for a change. */
static void wait_until(struct zookeeper_connector *connector, int64_t until_ms)
{
	struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};

	if (until_ms == INT64_MAX)
		pthread_cond_wait(&connector->changed, &connector->mutex);
	else
		pthread_cond_timedwait(&connector->changed, &connector->mutex, &until);
}

struct zookeeper_mailbox *zookeeper_connector_mailbox(struct zookeeper_connector *connector)
{
	return &connector->mailbox;
}

/* Asks the socket for the server's address: zoo_get_current_server() returns one static buffer for
 * all threads. */
static void get_server(zhandle_t *handle, char *server, size_t server_bytes)
{
	struct sockaddr_storage address;
	socklen_t address_bytes = sizeof(address);
	char host[48], port[8];

	if (zookeeper_get_connected_host(handle, (struct sockaddr *)&address, &address_bytes) ==
		    NULL ||
	    getnameinfo((struct sockaddr *)&address, address_bytes, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(server, server_bytes, "a server");
	else
		snprintf(server, server_bytes, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

static struct zookeeper_state *make_state(struct zookeeper_session *session)
{
	if (session->first_used)
		return calloc(1, sizeof(struct zookeeper_state));
	session->first_used = true;
	return &session->first_state;
}

void zookeeper_state_free(struct zookeeper_state *message)
{
	if (message != &message->session->first_state)
		free(message);
}

static void post_state(struct zookeeper_connector *connector, struct zookeeper_state *message)
{
	pthread_mutex_lock(&connector->mutex);
	if (message->state == ZOO_CONNECTED_STATE) {
		message->session->connected_once = true;
		zookeeper_failure_end();
	}
	zookeeper_mailbox_post(&connector->mailbox, &message->message);
	pthread_mutex_unlock(&connector->mutex);
}

/* On ZooKeeper's completion thread, or on the thread that closes the handle. With an answer the
 * server has accepted this host's identity; or it requires another scheme (enforce.auth.enabled),
 * and closes the connection; or the connection is lost, and a change of the session's state
 * follows. */
static void on_introduced(int code, const void *context)
{
	struct zookeeper_session *session = (struct zookeeper_session *)context;
	struct zookeeper_state *message = session->unanswered;
	bool refused = code == ZSESSIONCLOSEDREQUIRESASLAUTH;

	session->unanswered = NULL;
	session->accepted = session->accepted || code == ZOK;
	if (message != NULL && refused)
		message->state = ZOO_AUTH_FAILED_STATE;
	if (message != NULL && (code == ZOK || refused))
		post_state(session->connector, message);
	else if (message != NULL)
		zookeeper_state_free(message);
}

static void on_looked(int code, const struct Stat *stat, const void *context)
{
	on_introduced(code, context);
}

/* ZNOAUTH is an answer, too: the host may not read the root. */
static void on_checked(int code, const void *context)
{
	on_introduced(code == ZNOAUTH ? ZOK : code, context);
}

/* Sends a request whose answer shows that the server has accepted this host's identity. When a
 * session goes on with a new handle, the server may be behind what the session has seen: then the
 * request is a transaction, as in prove.c, which the server answers only once it knows everything
 * before it. */
static int ask(struct zookeeper_session *session, zhandle_t *handle)
{
	if (!session->goes_on)
		return zoo_aexists(handle, "/", 0, on_looked, session);
	zoo_check_op_init(&session->check, "/", -1);
	return zoo_amulti(handle, 1, &session->check, &session->result, on_checked, session);
}

/* Sends the identity of this host, if it has one, when the session is connected for the first time;
 * at each later connection the client repeats that by itself, before anything else. It cannot be
 * done earlier: between two attempts to connect the client does not accept it. The request that
 * follows makes the client send it at once, and its answer shows that a server has accepted it.
 * Returns false if the message is to be posted with that answer, or was freed, because the
 * connection is lost already. */
static bool introduce(struct zookeeper_session *session, zhandle_t *handle,
		      struct zookeeper_state *message)
{
	const struct secret *digest = session->connector->access.digest.secret;
	int code = ZOK;

	if (session->accepted)
		return true;
	for (const char *line = digest != NULL ? secret_next(digest, session->introduced) : NULL;
	     line != NULL && code == ZOK; line = secret_next(digest, line)) {
		code = zoo_add_auth(handle, "digest", line, (int)strlen(line), NULL, NULL);
		if (code == ZOK)
			session->introduced = line;
	}
	session->unanswered = message;
	if (code == ZOK)
		code = ask(session, handle);
	if (code == ZOK)
		return false;
	session->unanswered = NULL;
	if (code == ZINVALIDSTATE) {
		zookeeper_state_free(message);
		return false;
	}
	message->state = ZOO_AUTH_FAILED_STATE; /* out of memory */
	return true;
}

/* Not known while a handle that is to be closed may still try to connect, nor by what it has tried;
 * nor with SASL, whose libraries may connect to others on the same threads. */
static int64_t connected_since(struct zookeeper_connector *connector)
{
	bool is_alone;

	pthread_mutex_lock(&connector->mutex);
	is_alone = connector->handles == 1 && connector->access.sasl_mechanism == NULL;
	pthread_mutex_unlock(&connector->mutex);
	return is_alone ? zookeeper_socket_since(&connector->socket) : INT64_MIN;
}

/* The handle's watcher, on ZooKeeper's completion thread, possibly before zookeeper_init2() has
 * returned: so the state message contains the handle. */
static void on_session_event(zhandle_t *handle, int type, int state, const char *path,
			     void *context)
{
	struct zookeeper_session *session = context;
	struct zookeeper_connector *connector = session->connector;
	struct zookeeper_state *message;

	if (type != ZOO_SESSION_EVENT)
		return;
	message = make_state(session);
	if (message == NULL) {
		zookeeper_mailbox_starve(&connector->mailbox);
		return;
	}
	message->message.kind = MESSAGE_STATE;
	message->session = session;
	message->handle = handle;
	message->state = state;
	message->id = *zoo_client_id(handle);
	if (state == ZOO_CONNECTED_STATE) {
		message->timeout_ms = zoo_recv_timeout(handle);
		get_server(handle, message->server, sizeof(message->server));
		message->since_ms = connected_since(connector);
	}
	if (state != ZOO_CONNECTED_STATE || introduce(session, handle, message))
		post_state(connector, message);
}

/* `error` is an errno, or one of getaddrinfo(3), which are negative: no address is known. */
static void on_handle_failed(struct zookeeper_connector *connector, int error)
{
	connector->newest = NULL;
	connector->retry_at_ms = clock_awake_ms() + RETRY_MS;
	if (error == connector->last_error)
		return;
	connector->last_error = error;
	errno = error;
	if (error < 0)
		log_warning("no address of a ZooKeeper server of %s can be found: %s; trying again "
			    "every %d s",
			    connector->servers, gai_strerror(error), RETRY_MS / 1000);
	else
		log_warning("cannot begin a session with ZooKeeper at %s: %m; trying again every "
			    "%d s",
			    connector->servers, RETRY_MS / 1000);
}

/* Called and left with the mutex held. */
static void make_session(struct zookeeper_connector *connector)
{
	struct zookeeper_session *session = calloc(1, sizeof(*session));
	zhandle_t *handle = NULL;
	char *servers;
	bool several = false;
	int error = ENOMEM, unknown = 0;

	if (session == NULL) {
		on_handle_failed(connector, ENOMEM);
		return;
	}
	session->closed.kind = MESSAGE_CLOSED;
	session->connector = connector;
	session->goes_on = connector->moves;
	/* Set before the handle exists: the session may be declared over before zookeeper_init2()
	 * has returned. */
	connector->newest = session;
	connector->wanted = false;
	connector->handles++;
	pthread_mutex_unlock(&connector->mutex);

	servers = zookeeper_servers_list(connector->servers, &several, &unknown);
	if (servers != NULL) {
		handle = zookeeper_client_open(
			connector->client, servers, on_session_event, connector->timeout_ms,
			connector->has_former ? &connector->former : NULL, session);
		error = errno;
	}
	free(servers);
	/* Without this the client looks the names up in each turn of its own loop, and when a
	 * result differs it drops the connection without answering requests under way. */
	if (handle != NULL)
		zoo_set_servers_resolution_delay(handle, -1);

	pthread_mutex_lock(&connector->mutex);
	session->handle = handle;
	if (handle == NULL) {
		free(session);
		connector->handles--;
		connector->wanted = true;
		on_handle_failed(connector, unknown ? unknown : error ? error : EIO);
		return;
	}
	connector->several = several;
	connector->has_former = connector->moves = false;
	connector->last_error = 0;
	connector->warn_at_ms = clock_awake_ms() + UNREACHABLE_MS;
}

static void on_settled(int code, const struct Stat *stat, const void *context)
{
	struct zookeeper_session *session = (struct zookeeper_session *)context;
	struct zookeeper_connector *connector = session->connector;

	pthread_mutex_lock(&connector->mutex);
	session->settled = true;
	pthread_cond_broadcast(&connector->changed);
	pthread_mutex_unlock(&connector->mutex);
}

/* Waits until everything sent before is answered. zookeeper_close() shuts the socket as soon as any
 * answer can be read; the kernel then resets the connection if there are more, and the server may
 * see the reset before it has read the request to close: claims would last until the session
 * expires. */
static bool settle(struct zookeeper_connector *connector, struct zookeeper_session *session)
{
	int64_t limit_ms = clock_awake_ms() + ZOOKEEPER_SETTLE_LIMIT_MS;
	bool settled;

	if (zoo_state(session->handle) != ZOO_CONNECTED_STATE ||
	    zoo_aexists(session->handle, "/", 0, on_settled, session) != ZOK)
		return false;
	pthread_mutex_lock(&connector->mutex);
	while (!session->settled && clock_awake_ms() < limit_ms)
		wait_until(connector, limit_ms);
	settled = session->settled;
	pthread_mutex_unlock(&connector->mutex);
	return settled;
}

/* Called and left with the mutex held. */
static void close_session(struct zookeeper_connector *connector, struct zookeeper_session *session)
{
	bool leaves_claims = connector->stopping && session->connected_once;
	bool lives_on = session->moved || (session->connected_once && session->told == NULL);

	pthread_mutex_unlock(&connector->mutex);
	if (lives_on)
		zookeeper_socket_refuse(&connector->socket, true); /* or it would end the session */
	else if (!is_unrecoverable(session->handle) && !settle(connector, session) && leaves_claims)
		log_warning("ZooKeeper does not answer: locks held here may stay taken until the "
			    "session expires");
	zookeeper_close(session->handle);
	if (lives_on)
		zookeeper_socket_refuse(&connector->socket, false);
	zookeeper_socket_forget_since(&connector->socket);
	pthread_mutex_lock(&connector->mutex);
	connector->handles--;
	zookeeper_mailbox_post(&connector->mailbox, &session->closed);
}

/* When SASL fails, the client ends its threads without any callback. Called with the mutex held, as
 * zoo_state() only reads a member of the handle. */
static void look_for_failed_sasl(struct zookeeper_connector *connector)
{
	struct zookeeper_session *session = connector->newest;
	struct zookeeper_state *message;

	if (session == NULL || session->handle == NULL || session->failure_told ||
	    zoo_state(session->handle) != ZOO_AUTH_FAILED_STATE)
		return;
	message = calloc(1, sizeof(*message));
	if (message == NULL)
		return; /* until the next check */
	message->message.kind = MESSAGE_STATE;
	message->session = session;
	message->handle = session->handle;
	message->state = ZOO_AUTH_FAILED_STATE;
	session->failure_told = true;
	zookeeper_mailbox_post(&connector->mailbox, &message->message);
}

/* Waits for something to do; warns if a session is not connected for long. */
static void wait_for_work(struct zookeeper_connector *connector)
{
	bool unreached = connector->newest != NULL && !connector->newest->connected_once;
	int64_t until_ms = INT64_MAX;

	if (unreached && connector->warn_at_ms <= clock_awake_ms()) {
		connector->warn_at_ms = INT64_MAX;
		log_warning("cannot reach ZooKeeper at %s yet; trying on", connector->servers);
	}
	if (unreached)
		until_ms = connector->warn_at_ms;
	if (connector->wanted)
		until_ms = connector->retry_at_ms;
	if (connector->access.sasl_mechanism != NULL) {
		look_for_failed_sasl(connector);
		if (until_ms > clock_awake_ms() + SASL_LOOK_MS)
			until_ms = clock_awake_ms() + SASL_LOOK_MS;
	}
	wait_until(connector, until_ms);
}

static void finish_connector(struct zookeeper_connector *connector)
{
	zookeeper_socket_remove(&connector->socket);
	connector->finish(connector->finish_context);
	zookeeper_mailbox_finish(&connector->mailbox);
	pthread_cond_destroy(&connector->changed);
	pthread_mutex_destroy(&connector->mutex);
	zookeeper_client_destroy(connector->client);
	store_access_finish(&connector->access);
	free(connector->servers);
	free(connector);
}

static void *run(void *context)
{
	struct zookeeper_connector *connector = context;
	struct zookeeper_session *session;
	bool abandoned;

	zookeeper_socket_name_thread(&connector->socket);
	pthread_mutex_lock(&connector->mutex);
	while (!connector->stopping) {
		bool closes_first = connector->moves && connector->over != NULL;

		if (connector->wanted && !closes_first &&
		    connector->retry_at_ms <= clock_awake_ms()) {
			make_session(connector);
		} else if (connector->over != NULL) {
			session = connector->over;
			LL_DELETE(connector->over, session);
			close_session(connector, session);
		} else {
			wait_for_work(connector);
		}
	}
	/* The one in use first: others wait for its locks. */
	if (connector->newest != NULL) {
		connector->newest->told = connector->told;
		LL_PREPEND(connector->over, connector->newest);
	}
	while ((session = connector->over) != NULL) {
		LL_DELETE(connector->over, session);
		close_session(connector, session);
	}
	connector->stopped = true;
	abandoned = connector->abandoned;
	pthread_cond_broadcast(&connector->changed);
	pthread_mutex_unlock(&connector->mutex);
	if (abandoned)
		finish_connector(connector);
	return NULL;
}

void zookeeper_connector_break(struct zookeeper_connector *connector, bool avoid)
{
	bool several;

	pthread_mutex_lock(&connector->mutex);
	several = connector->several;
	pthread_mutex_unlock(&connector->mutex);
	zookeeper_socket_break(&connector->socket, avoid && several);
}

const struct zookeeper_socket *
zookeeper_connector_socket(const struct zookeeper_connector *connector)
{
	return &connector->socket;
}

/* Called with the mutex held. */
static void replace(struct zookeeper_connector *connector, struct zookeeper_session *over,
		    int delay_ms)
{
	LL_APPEND(connector->over, over);
	connector->newest = NULL;
	connector->wanted = true;
	connector->retry_at_ms = clock_awake_ms() + delay_ms;
	pthread_cond_broadcast(&connector->changed);
}

void zookeeper_connector_renew(struct zookeeper_connector *connector,
			       struct zookeeper_session *over, const struct store_told *told,
			       int delay_ms)
{
	pthread_mutex_lock(&connector->mutex);
	over->told = told;
	connector->has_former = connector->moves = false;
	replace(connector, over, delay_ms);
	pthread_mutex_unlock(&connector->mutex);
}

void zookeeper_connector_move(struct zookeeper_connector *connector, struct zookeeper_session *over,
			      const clientid_t *id)
{
	pthread_mutex_lock(&connector->mutex);
	connector->former = *id;
	connector->has_former = connector->moves = true;
	replace(connector, over, 0);
	pthread_mutex_unlock(&connector->mutex);
}

static int start_thread(struct zookeeper_connector *connector)
{
	pthread_condattr_t attributes;
	sigset_t all, former;
	int error;

	pthread_mutex_init(&connector->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&connector->changed, &attributes);
	pthread_condattr_destroy(&attributes);

	/* The client's threads inherit the mask from the thread that makes the handle. */
	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* the thread's own: of a filter (seccomp(2)) */
	pthread_sigmask(SIG_SETMASK, &all, &former);
	error = pthread_create(&connector->thread, NULL, run, connector);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	return -error;
}

int zookeeper_connector_start(const char *servers, int timeout_ms,
			      const struct store_access *access, const clientid_t *id,
			      struct zookeeper_connector **ret)
{
	struct zookeeper_connector *connector = calloc(1, sizeof(*connector));
	int result = -ENOMEM;

	if (connector == NULL)
		return -ENOMEM;
	connector->timeout_ms = timeout_ms;
	connector->wanted = true;
	if (id != NULL) {
		connector->former = *id;
		connector->has_former = true;
	}
	connector->servers = strdup(servers);
	if (connector->servers == NULL || store_access_copy(&connector->access, access) < 0)
		goto free_servers;
	result = zookeeper_client_create(&connector->access, &connector->client);
	if (result < 0)
		goto free_servers;
	result = zookeeper_mailbox_init(&connector->mailbox);
	if (result < 0)
		goto free_servers;
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	zookeeper_socket_add(&connector->socket);
	result = start_thread(connector);
	if (result < 0)
		goto remove_socket;
	*ret = connector;
	return 0;

remove_socket:
	zookeeper_socket_remove(&connector->socket);
	zookeeper_mailbox_finish(&connector->mailbox);
free_servers:
	zookeeper_client_destroy(connector->client);
	store_access_finish(&connector->access);
	free(connector->servers);
	free(connector);
	return result;
}

void zookeeper_connector_stop(struct zookeeper_connector *connector, const struct store_told *told,
			      int limit_ms, void (*finish)(void *), void *context)
{
	int64_t until_ms = clock_awake_ms() + limit_ms;
	pthread_t thread = connector->thread;
	bool stopped;

	pthread_mutex_lock(&connector->mutex);
	connector->finish = finish;
	connector->finish_context = context;
	connector->told = told;
	connector->stopping = true;
	pthread_cond_broadcast(&connector->changed);
	while (!connector->stopped && clock_awake_ms() < until_ms)
		wait_until(connector, until_ms);
	stopped = connector->stopped;
	connector->abandoned = !stopped;
	pthread_mutex_unlock(&connector->mutex);

	/* From here on, unless it stopped in time, the thread may free the connector at any moment.
	 */
	if (stopped) {
		pthread_join(thread, NULL);
		finish_connector(connector);
	} else {
		pthread_detach(thread);
		log_warning("ending the ZooKeeper session takes too long: not waited for");
	}
}
