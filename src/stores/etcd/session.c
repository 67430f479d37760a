/* SPDX-License-Identifier: Apache-2.0
 *
 * The session: a lease of etcd, its key with the epoch (operation.h), and keep-alives.
 *
 *   SESSION_NONE       it is lost, which was told; renew() is awaited
 *   SESSION_WANTED     a connection is awaited, or the time to try again
 *   SESSION_ASKED      authenticated; then the lease is granted and the key is put, or a keep-alive
 *                      of the former lease is answered and the epoch is raised
 *   SESSION_CONNECTED  told to the engine
 *
 * Where the servers have no space for the epoch (epoch.c), the session is connected nevertheless,
 * and tries to raise the epoch every ETCD_REFUSED_MS.
 *
 * Loop thread only.
 */
#include "stores/etcd/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "stores/etcd/batch.h"
#include "stores/etcd/farewell.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

#define AUTHENTICATE "/etcdserverpb.Auth/Authenticate"
#define GRANT	     "/etcdserverpb.Lease/LeaseGrant"
#define KEEP_ALIVE   "/etcdserverpb.Lease/LeaseKeepAlive"

/* In parts of the session's timeout: how long a keep-alive may go without its answer; and how long
 * after the end of its stream it is opened anew. */
enum { SILENCES_IN_TIMEOUT = 4, PAUSES_IN_TIMEOUT = 16 };

enum { RETRY_MS = 500, TOKEN_BYTES_MAX = 16 * 1024 };

static const char not_accepted[] = "the servers do not accept who we are";
static const char no_space[] = "the servers have no space left";
static const char proxied[] = "what answers keep-alives is no etcd, but stands in front of it";
static const char refused[] = "the servers refuse to keep a session";

/* The steps call one another as answers come. */
static void keep_alive(struct store_etcd *store);

static void tell(struct store_etcd *store, enum store_session session)
{
	store->events->on_session(store->context, session, store->lease.timeout_ms);
}

static void forget_calls(struct store_etcd *store)
{
	if (store->session.asking != NULL)
		grpc_cancel(store->session.asking);
	if (store->keeper.stream != NULL)
		grpc_cancel(store->keeper.stream);
	store->session.asking = store->keeper.stream = NULL;
	store->keeper.is_awaited = false;
	store->keeper.sent_ms = INT64_MIN;
	etcd_lease_disconnect(&store->lease);
	store->session.retry_ms = INT64_MAX;
}

/* There is no session any more. */
static void drop_session(struct store_etcd *store)
{
	forget_calls(store);
	etcd_seek_end(store);
	etcd_batches_drop(store);
	etcd_operations_drop(store);
	etcd_stream_drop(store);
	etcd_watches_drop(store);
	free(store->epoch.key.bytes);
	store->epoch.key = (struct etcd_key){0};
	store->session.lease_id = 0;
	store->epoch.number = 0;
	store->session.resumed = store->epoch.is_keyless = false;
	etcd_lease_begin(&store->lease, store->lease.timeout_ms);
	store->session.step = SESSION_NONE;
}

void etcd_session_lose(struct store_etcd *store)
{
	if (store->session.step == SESSION_NONE)
		return;
	if (store->session.resumed ||
	    store->session.is_starved) /* else nothing was ever done in it */
		log_error("etcd lease %016" PRIx64 " is %s", (uint64_t)store->session.lease_id,
			  store->session.is_starved ? "given up, out of memory" : "over");
	store->session.former_lease = store->session.lease_id; /* it may live */
	store->session.told = NULL;
	drop_session(store);
	tell(store, STORE_LOST);
}

/* Not to be waited for. */
static void revoke_former(struct store_etcd *store)
{
	Etcd__LeaseRevokeRequest request = ETCD__LEASE_REVOKE_REQUEST__INIT;

	assert(store->session.told || store->session.former_lease == 0);
	if (store->session.former_lease == 0 || !grpc_is_connected(store->grpc))
		return;
	request.id = store->session.former_lease;
	store->session.former_lease = 0;
	etcd_message_call(store->grpc, ETCD_REVOKE_METHOD, &request.base, 0, NULL, NULL);
	etcd_wake(store);
}

bool etcd_session_is_refused(const struct store_etcd *store)
{
	return store->session.step == SESSION_WANTED && store->session.trouble == no_space &&
	       store->session.retry_ms != INT64_MAX && grpc_is_connected(store->grpc);
}

void etcd_session_give_up(struct store_etcd *store, const struct store_told *told)
{
	assert(told);
	store->session.told = told;
	if (store->session.step == SESSION_CONNECTED ||
	    (store->session.step != SESSION_NONE && store->session.lease_id != 0)) {
		store->session.former_lease = store->session.lease_id;
		drop_session(store);
	}
	if (store->session.step != SESSION_NONE)
		return;
	store->session.step = SESSION_WANTED;
	revoke_former(store);
	/* A server that ends sessions again and again at once is not asked all the time. */
	store->session.retry_ms = clock_now_ms();
	if (store->session.retry_ms < store->session.leased_ms + RETRY_MS)
		store->session.retry_ms = store->session.leased_ms + RETRY_MS;
	etcd_wake(store);
}

/* What is wrong, for as long as it is; logged once. */
static void note_trouble(struct store_etcd *store, const char *trouble, const char *text)
{
	if (store->session.trouble != trouble)
		log_error("etcd at %s: %s (%s); trying again every %d s", store->servers, trouble,
			  text, ETCD_REFUSED_MS / 1000);
	store->session.trouble = trouble;
	store->session.retry_ms = clock_now_ms() + ETCD_REFUSED_MS;
}

static void note_refusal(struct store_etcd *store, const char *trouble, const char *text)
{
	note_trouble(store, trouble, text);
	store->session.step = SESSION_WANTED;
}

/* On another connection. */
static void try_again(struct store_etcd *store)
{
	store->session.retry_ms = clock_now_ms() + RETRY_MS;
	if (grpc_is_connected(store->grpc))
		grpc_leave(store->grpc);
}

/* A step was not answered, or refused. */
static void fail_step(struct store_etcd *store, int status, const char *text)
{
	if (store->session.step == SESSION_CONNECTED) { /* and without its key */
		store->session.retry_ms = clock_now_ms() + ETCD_REFUSED_MS;
		return;
	}
	store->session.step = SESSION_WANTED;
	switch (etcd_meaning(store, status, text)) {
	case ETCD_DENIED:
		note_refusal(store, not_accepted, text);
		break;
	case ETCD_STRANGER:
		/* Users may have changed since we said who we are: that is said once more. */
		if (store->session.is_stranger)
			note_refusal(store, not_accepted, text);
		else
			try_again(store);
		store->session.is_stranger = true;
		break;
	case ETCD_FULL:
		note_refusal(store, no_space, text);
		break;
	case ETCD_BUSY:
	case ETCD_LEASE_TAKEN: /* another number is drawn */
		store->session.retry_ms = clock_now_ms() + RETRY_MS;
		break;
	case ETCD_LONG:
	case ETCD_TOO_LARGE:
	case ETCD_WRONG:
	case ETCD_NO_USERS:
		note_refusal(store, refused, text);
		break;
	case ETCD_DONE:
	case ETCD_IN_DOUBT:
	case ETCD_LEASE_GONE:
		try_again(store);
		break;
	}
}

static void ask(struct store_etcd *store, const char *method, const ProtobufCMessage *request,
		void (*done)(void *, int, const char *, const void *, size_t))
{
	store->session.step = SESSION_ASKED;
	store->session.retry_ms = INT64_MAX;
	if (!etcd_epoch_ask(store, method, request, done))
		fail_step(store, GRPC_CANCELLED, "");
}

/* The last step */

static void finish(struct store_etcd *store)
{
	bool is_told = store->session.step == SESSION_CONNECTED;

	store->session.is_stranger = false;
	outage_end(&store->session.outage, "etcd", clock_now_ms());
	if (store->epoch.is_keyless && !store->epoch.read_only)
		note_trouble(store, no_space, "what is held stays held");
	else
		store->session.trouble = NULL;
	if (is_told)
		return;
	store->session.step = SESSION_CONNECTED;
	store->session.resumed = true;
	tell(store, STORE_CONNECTED);
	if (store->session.step == SESSION_CONNECTED)
		etcd_watches_begin_lost(store);
}

static void on_epoch(struct store_etcd *store, int status, const char *text)
{
	if (status != GRPC_OK)
		fail_step(store, status, text);
	else if (store->session.step == SESSION_CONNECTED)
		finish(store);
	else
		keep_alive(store); /* what was answered is the proof for that */
}

static void raise_epoch(struct store_etcd *store)
{
	if (store->session.step != SESSION_CONNECTED)
		store->session.step = SESSION_ASKED;
	store->session.retry_ms = INT64_MAX;
	etcd_epoch_raise(store, on_epoch);
}

/* The lease */

static void on_granted(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__LeaseGrantResponse *answer;

	store->session.asking = NULL;
	answer = etcd_message_read(&etcd__lease_grant_response__descriptor, bytes, count);
	if (answer != NULL && answer->id > 0 && answer->ttl > 0 && answer->ttl <= ETCD_TTL_MAX_S &&
	    etcd_key_of_session(&store->epoch.key, store->root, answer->id)) {
		store->session.lease_id = answer->id;
		store->epoch.number = 0;
		store->session.resumed = false;
		etcd_lease_begin(&store->lease, answer->ttl * 1000);
		etcd_lease_note_grant(&store->lease, store->epoch.asked_ms);
		raise_epoch(store);
	} else {
		fail_step(store, status == GRPC_OK ? GRPC_CANCELLED : status, text);
	}
	etcd__lease_grant_response__free_unpacked(answer, NULL);
}

static void ask_for_lease(struct store_etcd *store)
{
	Etcd__LeaseGrantRequest request = ETCD__LEASE_GRANT_REQUEST__INIT;

	if (getrandom(&request.id, sizeof(request.id), 0) != sizeof(request.id))
		request.id = 0; /* the server draws one */
	request.id &= INT64_MAX;
	request.ttl = store->ttl_s;
	store->session.leased_ms = clock_now_ms();
	ask(store, GRANT, &request.base, on_granted);
}

/* Finds the former lease again: a keep-alive tells whether it lives. Then comes the epoch, which is
 * a proof, and its sign. */
static void find_lease(struct store_etcd *store)
{
	store->session.step = SESSION_ASKED;
	store->session.retry_ms = INT64_MAX;
	keep_alive(store);
}

static void authenticated(struct store_etcd *store)
{
	revoke_former(store);
	if (store->session.lease_id != 0)
		find_lease(store);
	else
		ask_for_lease(store);
}

/* What can be a header's value. */
static bool is_token(const char *token)
{
	size_t bytes = strlen(token);

	for (size_t i = 0; i < bytes; i++) {
		if (token[i] <= ' ' || token[i] > '~')
			return false;
	}
	return bytes <= TOKEN_BYTES_MAX;
}

static void on_authenticated(void *context, int status, const char *text, const void *bytes,
			     size_t count)
{
	struct store_etcd *store = context;
	Etcd__AuthenticateResponse *answer = NULL;

	store->session.asking = NULL;
	/* Servers without users take everybody. */
	if (etcd_meaning(store, status, text) == ETCD_NO_USERS) {
		authenticated(store);
		return;
	}
	answer = etcd_message_read(&etcd__authenticate_response__descriptor, bytes, count);
	if (answer != NULL && is_token(answer->token) &&
	    grpc_set_token(store->grpc, answer->token) == 0)
		authenticated(store);
	else
		fail_step(store, status == GRPC_OK ? GRPC_CANCELLED : status, text);
	etcd__authenticate_response__free_unpacked(answer, NULL);
}

static void authenticate(struct store_etcd *store)
{
	Etcd__AuthenticateRequest request = ETCD__AUTHENTICATE_REQUEST__INIT;

	request.name = store->access.user;
	request.password = (char *)secret_next(store->access.password.secret, NULL);
	grpc_set_token(store->grpc, NULL);
	ask(store, AUTHENTICATE, &request.base, on_authenticated);
}

/* Begins, or begins again, if there is a connection. */
static void begin(struct store_etcd *store)
{
	if (store->session.step != SESSION_WANTED || !grpc_is_connected(store->grpc))
		return;
	if (store->access.user != NULL)
		authenticate(store);
	else
		authenticated(store);
}

/* Keep-alives */

/* A keep-alive was answered in time: the next step, if the session is not connected yet. */
static void go_on(struct store_etcd *store)
{
	if (store->session.step != SESSION_ASKED || store->session.asking != NULL)
		return;
	if (store->lease.rests.sent_ms == INT64_MIN)
		raise_epoch(store);
	else
		finish(store);
}

/* What answers keep-alives proves nothing. */
static void refuse_proxy(struct store_etcd *store)
{
	grpc_cancel(store->keeper.stream);
	store->keeper.stream = NULL;
	store->keeper.is_awaited = false;
	if (store->session.step == SESSION_ASKED)
		note_refusal(store, proxied, "connect to the members themselves");
	else
		grpc_leave(store->grpc);
}

static void on_kept(void *context, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__LeaseKeepAliveResponse *answer =
		etcd_message_read(&etcd__lease_keep_alive_response__descriptor, bytes, count);
	bool is_member = answer == NULL || etcd_keeper_is_member(store, answer);
	bool is_answer = answer != NULL && answer->header != NULL && is_member &&
			 answer->id == store->session.lease_id;
	bool is_over = is_answer && (answer->ttl <= 0 || answer->ttl > ETCD_TTL_MAX_S);
	bool is_kept = is_answer && !is_over && store->keeper.is_awaited;
	int64_t former_ms = store->lease.heard_ms;

	if (is_answer)
		etcd_leader_note(&store->leader, answer->header->raft_term, clock_now_ms());
	if (!is_member)
		refuse_proxy(store);
	if (is_kept) {
		store->keeper.is_awaited = false;
		etcd_note_seen(store, answer->header);
		etcd_seek_end(store);
		if (store->lease.timeout_ms == 0)
			etcd_lease_begin(&store->lease, answer->ttl * 1000);
		is_over = !etcd_lease_note_sign(&store->lease, clock_now_ms(),
						answer->header->member_id);
	}
	etcd__lease_keep_alive_response__free_unpacked(answer, NULL);
	store->session.is_over = store->session.is_over || is_over;
	if (store->lease.heard_ms > former_ms) {
		store->events->on_renewed(store->context);
		store->events->on_touched(store->context);
	}
	if (is_kept && !is_over)
		go_on(store);
}

static void on_keeper_ended(void *context, int status, const char *text)
{
	struct store_etcd *store = context;

	store->keeper.stream = NULL;
	store->keeper.is_awaited = false;
	if (store->session.step == SESSION_ASKED && store->session.asking == NULL)
		fail_step(store, status, text);
	else if (etcd_meaning(store, status, text) == ETCD_STRANGER)
		grpc_leave(store->grpc);
}

static void keep_alive(struct store_etcd *store)
{
	bool has_proof = etcd_lease_send_sign(&store->lease);

	if (store->keeper.stream == NULL) {
		store->keeper.stream =
			grpc_stream(store->grpc, KEEP_ALIVE, on_kept, on_keeper_ended, store);
		etcd_keeper_test(store);
	}
	store->keeper.sent_ms = clock_now_ms();
	store->keeper.is_awaited = etcd_keeper_send(store, store->session.lease_id);
	etcd_seek_sent(store);
	if (!has_proof && store->session.step == SESSION_CONNECTED)
		etcd_touch(store);
	etcd_wake(store);
}

static bool keeps(const struct store_etcd *store)
{
	return store->session.lease_id != 0 && store->keeper.sent_ms != INT64_MIN &&
	       store->lease.timeout_ms > 0 && grpc_is_connected(store->grpc);
}

/* When the next keep-alive is due, or its answer is late. */
static int64_t next_keep_ms(const struct store_etcd *store)
{
	int64_t timeout_ms = store->lease.timeout_ms;

	if (!keeps(store))
		return INT64_MAX;
	if (store->keeper.is_awaited)
		return store->keeper.sent_ms + timeout_ms / SILENCES_IN_TIMEOUT;
	if (store->session.step != SESSION_CONNECTED)
		return INT64_MAX;
	if (store->keeper.stream == NULL)
		return store->keeper.sent_ms + timeout_ms / PAUSES_IN_TIMEOUT;
	if (etcd_lease_lacks_sign(&store->lease, clock_now_ms()))
		return INT64_MIN;
	return store->keeper.sent_ms + etcd_lease_keep_alive_ms(&store->lease);
}

/* The leader */

static void on_term(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__TxnResponse *answer =
		etcd_message_read(&etcd__txn_response__descriptor, bytes, count);

	if (answer != NULL && answer->header != NULL)
		etcd_leader_note(&store->leader, answer->header->raft_term, clock_now_ms());
	etcd__txn_response__free_unpacked(answer, NULL);
}

/* While something waits for an answer: looks for another leader (leader.h), and leaves the server
 * if what was asked was dropped. */
static void look_for_leader(struct store_etcd *store, int64_t now_ms)
{
	switch (etcd_leader_step(&store->leader, grpc_waits_since_ms(store->grpc), now_ms)) {
	case ETCD_LEADER_WAIT:
		break;
	case ETCD_LEADER_ASK: /* by a transaction of nothing */
		grpc_call(store->grpc, ETCD_TRANSACTION_METHOD, "", 0, 0, on_term, store);
		etcd_wake(store);
		break;
	case ETCD_LEADER_LEAVE:
		grpc_leave(store->grpc);
		break;
	}
}

int64_t etcd_session_next_ms(const struct store_etcd *store)
{
	const int64_t times_ms[] = {
		next_keep_ms(store),
		etcd_stream_next_ms(store),
		etcd_watches_are_due(store) ? INT64_MIN : INT64_MAX,
		etcd_leader_next_ms(&store->leader, grpc_waits_since_ms(store->grpc)),
		etcd_space_next_ms(store),
		store->seek.due_ms,
	};
	int64_t next_ms = store->session.retry_ms;

	for (size_t i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++)
		next_ms = times_ms[i] < next_ms ? times_ms[i] : next_ms;
	return next_ms;
}

void etcd_session_on_time(struct store_etcd *store)
{
	int64_t now_ms = clock_now_ms();

	if (store->session.retry_ms <= now_ms) {
		store->session.retry_ms = INT64_MAX;
		if (store->session.step == SESSION_CONNECTED)
			raise_epoch(store);
		else
			begin(store);
	}
	etcd_seek_on_time(store, now_ms);
	if (next_keep_ms(store) <= now_ms) {
		if (store->keeper.is_awaited)
			grpc_leave(store->grpc);
		else
			keep_alive(store);
	}
	look_for_leader(store, now_ms);
	etcd_stream_on_time(store, now_ms);
	etcd_watches_begin_lost(store);
	etcd_space_on_time(store, now_ms);
}

/* The connection */

void etcd_session_connected(struct store_etcd *store, const char *server)
{
	snprintf(store->session.server, sizeof(store->session.server), "%s", server);
	etcd_leader_begin(&store->leader);
	etcd_seek_connected(store);
	etcd_space_connected(store);
	begin(store);
}

void etcd_session_disconnected(struct store_etcd *store)
{
	enum session_step step = store->session.step;

	*store->session.server = '\0';
	forget_calls(store);
	if (step == SESSION_NONE)
		return;
	etcd_seek_lost(store);
	store->session.step = SESSION_WANTED;
	if (step != SESSION_CONNECTED)
		return;
	etcd_stream_disconnected(store);
	tell(store, STORE_SUSPENDED);
}

void etcd_session_start(struct store_etcd *store)
{
	store->session.step = SESSION_WANTED;
	forget_calls(store);
	begin(store);
}

void etcd_session_close(struct store_etcd *store, const struct store_told *told, int64_t limit_ms)
{
	int64_t lease = told != NULL ? store->session.lease_id : 0;

	drop_session(store); /* nothing else is to be answered any more */
	if (lease != 0)
		etcd_farewell(store, lease, clock_now_ms() + limit_ms);
}
