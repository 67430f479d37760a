/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the handles of ZooKeeper's client library, and the thread that makes and closes them. Must
 * not know locks, nor call the store, but for finish().
 *
 * `mutex` guards everything below it in struct zookeeper_keeper. While it is held, the client
 * library is not called; callbacks hold it only for a moment.
 */
#include "stores/zookeeper/session.h"

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

#include "base/log.h"
#include "stores/zookeeper/client.h"
#include "stores/zookeeper/servers.h"
#include "stores/zookeeper/socket.h"

#define RETRY_MS       1000 /* between attempts to make a handle */
#define UNREACHABLE_MS 5000 /* until a session that never connected is worth a warning */
#define SASL_LOOK_MS   1000 /* how often to check whether SASL has failed */

struct zookeeper_keeper {
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
	bool several;	/* the handle knows several addresses */

	bool stopping;
	bool stopped;
	bool abandoned; /* zookeeper_keeper_stop() does not wait any more: the thread frees
			   everything */
	void (*finish)(void *context);
	void *finish_context;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for a change. Returns at the latest at the given time; INT64_MAX: only for a change. */
static void wait_until(struct zookeeper_keeper *keeper, int64_t until_ms)
{
	struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};

	if (until_ms == INT64_MAX)
		pthread_cond_wait(&keeper->changed, &keeper->mutex);
	else
		pthread_cond_timedwait(&keeper->changed, &keeper->mutex, &until);
}

struct zookeeper_mailbox *zookeeper_keeper_mailbox(struct zookeeper_keeper *keeper)
{
	return &keeper->mailbox;
}

/* Asks the socket for the server's address: zoo_get_current_server() returns one static buffer for
 * all threads. */
static void get_server(zhandle_t *handle, char *server, size_t server_bytes)
{
	struct sockaddr_storage address;
	socklen_t address_bytes = sizeof(address);
	char host[48], port[8];

	if (!zookeeper_get_connected_host(handle, (struct sockaddr *)&address, &address_bytes) ||
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

static void post_state(struct zookeeper_keeper *keeper, struct zookeeper_state *message)
{
	pthread_mutex_lock(&keeper->mutex);
	if (message->state == ZOO_CONNECTED_STATE)
		message->session->connected_once = true;
	zookeeper_mailbox_post(&keeper->mailbox, &message->message);
	pthread_mutex_unlock(&keeper->mutex);
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
	if (message && refused)
		message->state = ZOO_AUTH_FAILED_STATE;
	if (message && (code == ZOK || refused))
		post_state(session->keeper, message);
	else if (message)
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
	const struct secret *digest = session->keeper->access.digest.secret;
	int code = ZOK;

	if (session->accepted)
		return true;
	for (const char *line = digest ? secret_next(digest, session->introduced) : NULL;
	     line && code == ZOK; line = secret_next(digest, line)) {
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

/* The handle's watcher, on ZooKeeper's completion thread, possibly before zookeeper_init2() has
 * returned: so the state message contains the handle. */
static void on_session_event(zhandle_t *handle, int type, int state, const char *path,
			     void *context)
{
	struct zookeeper_session *session = context;
	struct zookeeper_keeper *keeper = session->keeper;
	struct zookeeper_state *message;

	if (type != ZOO_SESSION_EVENT)
		return;
	message = make_state(session);
	if (!message) {
		zookeeper_mailbox_starve(&keeper->mailbox);
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
	}
	if (state != ZOO_CONNECTED_STATE || introduce(session, handle, message))
		post_state(keeper, message);
}

static void on_handle_failed(struct zookeeper_keeper *keeper, int error)
{
	keeper->newest = NULL;
	keeper->retry_at_ms = now_ms() + RETRY_MS;
	if (error == keeper->last_error)
		return;
	keeper->last_error = error;
	errno = error;
	if (error == ENOENT)
		log_warning("no ZooKeeper server of %s is known by that name; trying again every "
			    "%d s",
			    keeper->servers, RETRY_MS / 1000);
	else
		log_warning("cannot begin a session with ZooKeeper at %s: %m; trying again every "
			    "%d s",
			    keeper->servers, RETRY_MS / 1000);
}

/* Called and left with the mutex held. */
static void make_session(struct zookeeper_keeper *keeper)
{
	struct zookeeper_session *session = calloc(1, sizeof(*session));
	zhandle_t *handle = NULL;
	char *servers;
	bool several = false;
	int error = ENOMEM;

	if (!session) {
		on_handle_failed(keeper, ENOMEM);
		return;
	}
	session->closed.kind = MESSAGE_CLOSED;
	session->keeper = keeper;
	session->goes_on = keeper->moves;
	/* Set before the handle exists: the session may be declared over before zookeeper_init2()
	 * has returned. */
	keeper->newest = session;
	keeper->wanted = false;
	pthread_mutex_unlock(&keeper->mutex);

	servers = zookeeper_servers_list(keeper->servers, &several);
	if (servers) {
		handle = zookeeper_client_open(
			keeper->client, servers, on_session_event, keeper->timeout_ms,
			keeper->has_former ? &keeper->former : NULL, session);
		error = errno;
	}
	free(servers);
	/* Without this the client looks the names up in each turn of its own loop, and when a
	 * result differs it drops the connection without answering requests under way. */
	if (handle)
		zoo_set_servers_resolution_delay(handle, -1);

	pthread_mutex_lock(&keeper->mutex);
	session->handle = handle;
	if (!handle) {
		free(session);
		keeper->wanted = true;
		on_handle_failed(keeper, error ? error : EIO);
		return;
	}
	keeper->several = several;
	keeper->has_former = keeper->moves = false;
	keeper->last_error = 0;
	keeper->warn_at_ms = now_ms() + UNREACHABLE_MS;
}

static void on_settled(int code, const struct Stat *stat, const void *context)
{
	struct zookeeper_session *session = (struct zookeeper_session *)context;
	struct zookeeper_keeper *keeper = session->keeper;

	pthread_mutex_lock(&keeper->mutex);
	session->settled = true;
	pthread_cond_broadcast(&keeper->changed);
	pthread_mutex_unlock(&keeper->mutex);
}

/* Waits until everything sent before is answered. zookeeper_close() shuts the socket as soon as any
 * answer can be read; the kernel then resets the connection if there are more, and the server may
 * see the reset before it has read the request to close: claims would last until the session
 * expires. */
static bool settle(struct zookeeper_keeper *keeper, struct zookeeper_session *session)
{
	int64_t limit_ms = now_ms() + ZOOKEEPER_SETTLE_LIMIT_MS;
	bool settled;

	if (zoo_state(session->handle) != ZOO_CONNECTED_STATE ||
	    zoo_aexists(session->handle, "/", 0, on_settled, session) != ZOK)
		return false;
	pthread_mutex_lock(&keeper->mutex);
	while (!session->settled && now_ms() < limit_ms)
		wait_until(keeper, limit_ms);
	settled = session->settled;
	pthread_mutex_unlock(&keeper->mutex);
	return settled;
}

/* Called and left with the mutex held. */
static void close_session(struct zookeeper_keeper *keeper, struct zookeeper_session *session)
{
	bool leaves_claims = keeper->stopping && session->connected_once;

	pthread_mutex_unlock(&keeper->mutex);
	if (session->moved)
		zookeeper_socket_refuse(&keeper->socket, true); /* or it would end the session */
	else if (!is_unrecoverable(session->handle) && !settle(keeper, session) && leaves_claims)
		log_warning("ZooKeeper does not answer: locks held here may stay taken until the "
			    "session expires");
	zookeeper_close(session->handle);
	if (session->moved)
		zookeeper_socket_refuse(&keeper->socket, false);
	pthread_mutex_lock(&keeper->mutex);
	zookeeper_mailbox_post(&keeper->mailbox, &session->closed);
}

/* When SASL fails, the client ends its threads without any callback. Called with the mutex held, as
 * zoo_state() only reads a member of the handle. */
static void look_for_failed_sasl(struct zookeeper_keeper *keeper)
{
	struct zookeeper_session *session = keeper->newest;
	struct zookeeper_state *message;

	if (!session || !session->handle || session->failure_told ||
	    zoo_state(session->handle) != ZOO_AUTH_FAILED_STATE)
		return;
	message = calloc(1, sizeof(*message));
	if (!message)
		return; /* until the next check */
	message->message.kind = MESSAGE_STATE;
	message->session = session;
	message->handle = session->handle;
	message->state = ZOO_AUTH_FAILED_STATE;
	session->failure_told = true;
	zookeeper_mailbox_post(&keeper->mailbox, &message->message);
}

/* Waits for something to do; warns if a session is not connected for long. */
static void wait_for_work(struct zookeeper_keeper *keeper)
{
	bool unreached = keeper->newest && !keeper->newest->connected_once;
	int64_t until_ms = INT64_MAX;

	if (unreached && keeper->warn_at_ms <= now_ms()) {
		keeper->warn_at_ms = INT64_MAX;
		log_warning("cannot reach ZooKeeper at %s yet; trying on", keeper->servers);
	}
	if (unreached)
		until_ms = keeper->warn_at_ms;
	if (keeper->wanted)
		until_ms = keeper->retry_at_ms;
	if (keeper->access.sasl_mechanism) {
		look_for_failed_sasl(keeper);
		if (until_ms > now_ms() + SASL_LOOK_MS)
			until_ms = now_ms() + SASL_LOOK_MS;
	}
	wait_until(keeper, until_ms);
}

static void finish_keeper(struct zookeeper_keeper *keeper)
{
	zookeeper_socket_remove(&keeper->socket);
	keeper->finish(keeper->finish_context);
	zookeeper_mailbox_finish(&keeper->mailbox);
	pthread_cond_destroy(&keeper->changed);
	pthread_mutex_destroy(&keeper->mutex);
	zookeeper_client_destroy(keeper->client);
	store_access_finish(&keeper->access);
	free(keeper->servers);
	free(keeper);
}

static void *run(void *context)
{
	struct zookeeper_keeper *keeper = context;
	struct zookeeper_session *session;
	bool abandoned;

	zookeeper_socket_name_thread(&keeper->socket);
	pthread_mutex_lock(&keeper->mutex);
	while (!keeper->stopping) {
		bool closes_first = keeper->moves && keeper->over;

		if (keeper->wanted && !closes_first && keeper->retry_at_ms <= now_ms()) {
			make_session(keeper);
		} else if (keeper->over) {
			session = keeper->over;
			LL_DELETE(keeper->over, session);
			close_session(keeper, session);
		} else {
			wait_for_work(keeper);
		}
	}
	/* The one in use first: others wait for its locks. */
	if (keeper->newest)
		LL_PREPEND(keeper->over, keeper->newest);
	while ((session = keeper->over)) {
		LL_DELETE(keeper->over, session);
		close_session(keeper, session);
	}
	keeper->stopped = true;
	abandoned = keeper->abandoned;
	pthread_cond_broadcast(&keeper->changed);
	pthread_mutex_unlock(&keeper->mutex);
	if (abandoned)
		finish_keeper(keeper);
	return NULL;
}

void zookeeper_keeper_break(struct zookeeper_keeper *keeper)
{
	bool several;

	pthread_mutex_lock(&keeper->mutex);
	several = keeper->several;
	pthread_mutex_unlock(&keeper->mutex);
	zookeeper_socket_break(&keeper->socket, several);
}

void zookeeper_keeper_renew(struct zookeeper_keeper *keeper, struct zookeeper_session *over,
			    int delay_ms)
{
	pthread_mutex_lock(&keeper->mutex);
	LL_APPEND(keeper->over, over);
	keeper->newest = NULL;
	keeper->has_former = keeper->moves = false;
	keeper->wanted = true;
	keeper->retry_at_ms = now_ms() + delay_ms;
	pthread_cond_broadcast(&keeper->changed);
	pthread_mutex_unlock(&keeper->mutex);
}

void zookeeper_keeper_move(struct zookeeper_keeper *keeper, struct zookeeper_session *over,
			   const clientid_t *id)
{
	pthread_mutex_lock(&keeper->mutex);
	LL_APPEND(keeper->over, over);
	keeper->newest = NULL;
	keeper->former = *id;
	keeper->has_former = keeper->moves = true;
	keeper->wanted = true;
	keeper->retry_at_ms = now_ms();
	pthread_cond_broadcast(&keeper->changed);
	pthread_mutex_unlock(&keeper->mutex);
}

static int start_thread(struct zookeeper_keeper *keeper)
{
	pthread_condattr_t attributes;
	sigset_t all, former;
	int error;

	pthread_mutex_init(&keeper->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&keeper->changed, &attributes);
	pthread_condattr_destroy(&attributes);

	/* The client's threads inherit the mask from the thread that makes the handle. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &former);
	error = pthread_create(&keeper->thread, NULL, run, keeper);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	return -error;
}

int zookeeper_keeper_start(const char *servers, int timeout_ms, const struct store_access *access,
			   const clientid_t *id, struct zookeeper_keeper **ret)
{
	struct zookeeper_keeper *keeper = calloc(1, sizeof(*keeper));
	int result = -ENOMEM;

	if (!keeper)
		return -ENOMEM;
	keeper->timeout_ms = timeout_ms;
	keeper->wanted = true;
	if (id) {
		keeper->former = *id;
		keeper->has_former = true;
	}
	keeper->servers = strdup(servers);
	if (!keeper->servers || store_access_copy(&keeper->access, access) < 0)
		goto free_servers;
	result = zookeeper_client_create(&keeper->access, &keeper->client);
	if (result < 0)
		goto free_servers;
	result = zookeeper_mailbox_init(&keeper->mailbox);
	if (result < 0)
		goto free_servers;
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	zookeeper_socket_add(&keeper->socket);
	result = start_thread(keeper);
	if (result < 0)
		goto remove_socket;
	*ret = keeper;
	return 0;

remove_socket:
	zookeeper_socket_remove(&keeper->socket);
	zookeeper_mailbox_finish(&keeper->mailbox);
free_servers:
	zookeeper_client_destroy(keeper->client);
	store_access_finish(&keeper->access);
	free(keeper->servers);
	free(keeper);
	return result;
}

void zookeeper_keeper_stop(struct zookeeper_keeper *keeper, int limit_ms, void (*finish)(void *),
			   void *context)
{
	int64_t until_ms = now_ms() + limit_ms;
	pthread_t thread = keeper->thread;
	bool stopped;

	pthread_mutex_lock(&keeper->mutex);
	keeper->finish = finish;
	keeper->finish_context = context;
	keeper->stopping = true;
	pthread_cond_broadcast(&keeper->changed);
	while (!keeper->stopped && now_ms() < until_ms)
		wait_until(keeper, until_ms);
	stopped = keeper->stopped;
	keeper->abandoned = !stopped;
	pthread_mutex_unlock(&keeper->mutex);

	/* From here on, unless it stopped in time, the thread may free the keeper at any moment. */
	if (stopped) {
		pthread_join(thread, NULL);
		finish_keeper(keeper);
	} else {
		pthread_detach(thread);
		log_warning("ending the ZooKeeper session takes too long: not waited for");
	}
}
