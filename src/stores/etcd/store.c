/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the etcd store, its opening and its end. Loop thread only.
 */
#include "stores/etcd/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "journal/fields.h"
#include "stores/etcd/health.h"
#include "stores/etcd/batch.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/net/tls.h"
#include "stores/seeker.h"

enum {
	CLOSE_LIMIT_MS = 2000,
	IDLE_MS_MIN = 1000,
};

/* What another process goes on with. */
struct saved_session {
	int64_t lease; /* 0: there is none */
	uint64_t epoch;
	bool is_keyless;
	int64_t seen;
	int64_t token_floor;
	uint64_t cluster;
};

static int store_etcd_descriptor(struct store *base)
{
	return store_etcd_from(base)->loop.poll;
}

static void store_etcd_dispatch(struct store *base)
{
	struct store_etcd *store = store_etcd_from(base);
	uint64_t count;

	store->loop.is_awake = false;
	while (read(store->loop.wake, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	alarm_rang(&store->loop.alarm);
	seeker_dispatch(store->seek.seeker);
	grpc_dispatch(store->grpc);
	etcd_operations_conclude_failed(store);
	if (store->session.is_over)
		etcd_session_lose(store);
	store->session.is_starved = store->session.is_over = false;
	etcd_session_on_time(store);
	etcd_batches_send(store);
	grpc_flush(store->grpc);
	alarm_set(&store->loop.alarm, etcd_session_next_ms(store));
}

/* The lease */

static void store_etcd_lease(struct store *base, int64_t now_ms, struct store_lease *ret)
{
	const struct etcd_lease *lease = &store_etcd_from(base)->lease;

	*ret = (struct store_lease){
		.end_ms = etcd_lease_end(lease),
		.proven_ms = lease->heard_ms,
		.saved_ms = lease->heard_ms,
		.grants = etcd_lease_grants(lease, now_ms),
		.doubtful = etcd_lease_is_doubtful(lease),
		.beat_ms = etcd_lease_next_beat(lease),
		.touch_ms = INT64_MAX,
	};
}

/* What places a claim is answered by the quorum, as a heartbeat is. */
static void defer_beat(struct store *base)
{
	etcd_lease_note_beat(&store_etcd_from(base)->lease, clock_now_ms());
}

static void doubt(struct store *base, int64_t now_ms)
{
	struct store_etcd *store = store_etcd_from(base);

	etcd_lease_doubt(&store->lease, now_ms);
	etcd_wake(store);
}

static void resume(struct store *base, int64_t timeout_ms, int64_t saved_ms, bool doubtful)
{
	etcd_lease_resume(&store_etcd_from(base)->lease, timeout_ms, saved_ms, clock_now_ms(),
			  doubtful);
}

static void nudge(struct store *base)
{
	struct store_etcd *store = store_etcd_from(base);

	if (etcd_session_is_refused(store))
		return; /* they have answered, and are asked again soon */
	grpc_leave(store->grpc);
	etcd_wake(store);
}

static void renew(struct store *base, const struct store_told *told)
{
	etcd_session_give_up(store_etcd_from(base), told);
}

static void describe(struct store *base, char *text, size_t text_bytes)
{
	const struct store_etcd *store = store_etcd_from(base);
	const char *root = *store->root ? store->root : "/";
	const char *but = store->session.trouble != NULL ? ": " : "";
	const char *trouble = store->session.trouble != NULL ? store->session.trouble : "";

	if (store->session.step == SESSION_CONNECTED)
		snprintf(text, text_bytes,
			 "etcd://%s%s connected to %s, lease %016" PRIx64 ", timeout %" PRId64
			 " ms%s%s",
			 store->servers, root, store->session.server,
			 (uint64_t)store->session.lease_id, store->lease.timeout_ms, but, trouble);
	else
		snprintf(text, text_bytes, "etcd://%s%s not connected%s%s%s", store->servers, root,
			 store->session.lease_id == 0 && store->session.trouble == NULL ? " yet"
											: "",
			 but, trouble);
}

static const char *trouble(struct store *base)
{
	return store_etcd_from(base)->session.trouble;
}

/* Restart */

static int64_t session(const struct store *base)
{
	return ((const struct store_etcd *)base)->session.lease_id;
}

static int64_t seen(const struct store *base)
{
	return ((const struct store_etcd *)base)->epoch.seen;
}

static const struct field seen_fields[] = {
	{"seen", FIELD_NUMBER(struct saved_session, seen, 0, INT64_MAX)},
	{"token_floor", FIELD_NUMBER(struct saved_session, token_floor, 0, INT64_MAX), FIELD_OR(0)},
	{"cluster", FIELD_UNSIGNED(struct saved_session, cluster, UINT64_MAX)},
	{0},
};

static const struct field session_fields[] = {
	{"session", FIELD_NUMBER(struct saved_session, lease, 1, INT64_MAX)},
	{"epoch", FIELD_UNSIGNED(struct saved_session, epoch, INT64_MAX)},
	{"keyless", FIELD_FLAG(struct saved_session, is_keyless)},
	{0},
};

static void save_session(const struct store *base, FILE *out)
{
	const struct store_etcd *store = (const struct store_etcd *)base;

	const struct saved_session saved = {
		.lease = store->session.lease_id,
		.epoch = store->epoch.number,
		.is_keyless = store->epoch.is_keyless,
		.seen = store->epoch.seen,
		.token_floor = tokens_floor(&store->tokens.known, store->epoch.seen),
		.cluster = store->epoch.cluster,
	};

	state_flag(out, "etcd", true);
	fields_save(seen_fields, &saved, out);
	if (saved.lease != 0)
		fields_save(session_fields, &saved, out);
}

static void *restore_session(struct state_reader *in)
{
	struct saved_session *saved;

	saved = calloc(1, sizeof(*saved));
	if (saved == NULL) {
		state_starve(in);
		return NULL;
	}
	fields_restore(seen_fields, saved, in);
	if (state_has(in, "session"))
		fields_restore(session_fields, saved, in);
	return saved;
}

/* The end */

static void free_store(struct store_etcd *store)
{
	grpc_destroy(store->grpc);
	seeker_destroy(store->seek.seeker);
	if (store->loop.poll >= 0)
		close(store->loop.poll);
	if (store->loop.wake >= 0)
		close(store->loop.wake);
	alarm_finish(&store->loop.alarm);
	store_access_finish(&store->access);
	free(store->epoch.key.bytes);
	free(store->servers);
	free(store->root);
	free(store);
}

static void store_etcd_close(struct store *base, const struct store_told *told)
{
	struct store_etcd *store = store_etcd_from(base);

	etcd_session_close(store, told, CLOSE_LIMIT_MS);
	etcd_operations_forget_outside(store);
	free_store(store);
}

static const struct store_ops store_etcd_ops = {
	.descriptor = store_etcd_descriptor,
	.dispatch = store_etcd_dispatch,
	.place = etcd_place,
	.list = etcd_list,
	.amend = etcd_amend,
	.watch = etcd_watch,
	.mark = etcd_mark,
	.age = etcd_age,
	.withdraw = etcd_withdraw,
	.bequeath = etcd_withdraw_for,
	.prove = etcd_prove,
	.lease = store_etcd_lease,
	.defer_beat = defer_beat,
	.doubt = doubt,
	.resume = resume,
	.look = etcd_look,
	.read = etcd_read,
	.write = etcd_write,
	.remove = etcd_remove,
	.files = etcd_files,
	.alter = etcd_alter,
	.nudge = nudge,
	.renew = renew,
	.describe = describe,
	.trouble = trouble,
	.space = etcd_space,
	.first_version = 1,
	.settle = etcd_settle,
	.session = session,
	.seen = seen,
	.save_session = save_session,
	.has_statistics = true,
	.order_late = INT64_MAX,
	.order_unsure = INT64_MAX,
	.close = store_etcd_close,
};

/* The connection */

static void on_connected(void *context, const char *server)
{
	etcd_session_connected(context, server);
}

static void on_disconnected(void *context, const char *why)
{
	struct store_etcd *store = context;

	outage_failed(&store->session.outage, "etcd", why, clock_now_ms());
	etcd_session_disconnected(store);
}

static const struct grpc_events grpc_events = {
	.on_connected = on_connected,
	.on_disconnected = on_disconnected,
};

static int make_descriptors(struct store_etcd *store)
{
	struct epoll_event event = {.events = EPOLLIN};

	store->loop.poll = epoll_create1(EPOLL_CLOEXEC);
	store->loop.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (alarm_init(&store->loop.alarm) < 0 || store->loop.poll < 0 || store->loop.wake < 0)
		return -errno;
	const int descriptors[] = {store->loop.wake, store->loop.alarm.descriptor,
				   seeker_descriptor(store->seek.seeker),
				   grpc_descriptor(store->grpc)};
	for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++) {
		if (epoll_ctl(store->loop.poll, EPOLL_CTL_ADD, descriptors[i], &event) < 0)
			return -errno;
	}
	return 0;
}

static int store_etcd_open(const struct store_options *options, const struct store_events *events,
			   void *context, struct store **ret)
{
	const struct saved_session *saved = options->session;
	struct store_etcd *store = calloc(1, sizeof(*store));
	struct grpc_options connection;
	int error = -ENOMEM;

	if (store == NULL)
		return -ENOMEM;
	store->store.ops = &store_etcd_ops;
	store->events = events;
	store->context = context;
	store->statistics = options->statistics;
	store->loop.poll = store->loop.wake = -1;
	store->loop.alarm = ALARM_NONE;
	etcd_stream_init(&store->stream);
	store->ttl_s = (options->session_timeout_ms + 999) / 1000;
	if (store->ttl_s > ETCD_TTL_MAX_S)
		store->ttl_s = ETCD_TTL_MAX_S;
	store->servers = strdup(options->url->servers);
	store->root = strdup(options->url->root);
	etcd_lease_begin(&store->lease, 0);
	etcd_leader_begin(&store->leader);
	etcd_space_init(store);
	if (store->servers == NULL || store->root == NULL ||
	    store_access_copy(&store->access, options->access) < 0)
		goto fail;
	store->epoch.new_root = options->new_root;
	store->epoch.read_only = options->read_only;
	if (saved != NULL) {
		store->epoch.seen = saved->seen;
		store->tokens.known.floor = saved->token_floor;
		store->epoch.cluster = saved->cluster;
	}
	if (saved != NULL && saved->lease != 0) {
		store->session.lease_id = saved->lease;
		store->epoch.number = saved->epoch;
		store->epoch.is_keyless = saved->is_keyless;
		store->session.resumed = true;
		if (!etcd_key_of_session(&store->epoch.key, store->root, saved->lease))
			goto fail;
	}
	connection = (struct grpc_options){
		.servers = store->servers,
		.access = &store->access,
		.idle_ms = options->session_timeout_ms / 8 > IDLE_MS_MIN
				   ? options->session_timeout_ms / 8
				   : IDLE_MS_MIN,
	};
	error = etcd_seek_init(store);
	if (!error)
		error = grpc_create(&connection, &grpc_events, store, &store->grpc);
	if (!error)
		error = make_descriptors(store);
	if (error)
		goto fail;
	etcd_session_start(store);
	*ret = &store->store;
	return 0;
fail:
	free_store(store);
	return error;
}

const struct store_kind store_etcd_kind = {
	.scheme = STORE_SCHEME_ETCD,
	.abilities = STORE_HAS_QUEUE | STORE_HAS_SHARED | STORE_HAS_RANGES | STORE_HAS_STAMPS |
		     STORE_HAS_CLIENTS | STORE_HAS_FILES | STORE_HAS_KEPT | STORE_HAS_SLOTS,
	.is_remote = true,
	.ask = etcd_health,
	.open = store_etcd_open,
	.check_files = tls_check_files,
	.restore_session = restore_session,
};
