/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the store of Redis, its session, its opening and its end. Loop thread only.
 */
#include "stores/redis/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/net/tls.h"
#include "stores/redis/call.h"
#include "stores/redis/lock.h"
#include "stores/redis/outside.h"
#include "stores/redis/proof.h"
#include "stores/redis/save.h"

enum {
	CLOSE_LIMIT_MS = 2000,
	IDLE_MS_MIN = 1000,
	IDLES_IN_TIMEOUT = 8,
	REPLICAS_IN_TIMEOUT = 16,
	REPLICAS_MS_MAX = 1000,
	DISKS_MS_MAX = 2000, /* more than what passes between two fsync(2) of a server */
};

/* The session: that of the queues, while the servers answer. */

static void tell_session(struct store_redis *store)
{
	bool is_open = store->session.is_home_open && redis_is_connected(store->service);

	if (is_open == store->session.is_told)
		return;
	store->session.is_told = is_open;
	if (is_open)
		redis_lease_hurry(&store->lease);
	store->events->on_session(store->context, is_open ? STORE_CONNECTED : STORE_SUSPENDED,
				  store->rules.ttl_ms);
}

/* The claims have gone, and what was asked: the keys go too. */
static void give_up(struct store_redis *store)
{
	store->session.is_home_open = store->session.is_told = false;
	redis_proofs_forget(store);
	redis_locks_abandon(store);
}

static void renew(struct store *base, const struct store_told *told)
{
	struct store_redis *store = store_redis_from(base);
	struct store *home = store->queues.home;

	assert(told != NULL);
	home->ops->renew(home, told);
	give_up(store);
	redis_wake(store);
}

/* Events of the queues */

static struct store_redis *store_of(void *context)
{
	return context;
}

/* The queues lose their session when there is no memory; who holds is told before the keys go. */
static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	struct store_redis *store = store_of(context);

	(void)timeout_ms;
	if (session == STORE_CONNECTED) {
		store->session.is_home_open = true;
		tell_session(store);
	} else if (session == STORE_LOST) {
		store->session.is_home_open = store->session.is_told = false;
		redis_proofs_forget(store);
		store->events->on_session(store->context, STORE_LOST, 0);
	}
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct store_redis *store = store_of(context);

	if (error != 0)
		redis_locks_recount(store);
	store->events->on_placed(store->context, tag, error, name, order, after, entries, count);
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	store_of(context)->events->on_listed(store_of(context)->context, tag, error, entries,
					     count);
}

static void on_changed(void *context, void *tag)
{
	store_of(context)->events->on_changed(store_of(context)->context, tag);
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	store_of(context)->events->on_read(store_of(context)->context, tag, text, version);
}

static void on_watched(void *context, void *tag, int error)
{
	store_of(context)->events->on_watched(store_of(context)->context, tag, error);
}

static void on_amended(void *context, void *tag, int error)
{
	store_of(context)->events->on_amended(store_of(context)->context, tag, error);
}

static void on_marked(void *context, void *tag, int error)
{
	store_of(context)->events->on_marked(store_of(context)->context, tag, error);
}

static void on_withdrawn(void *context, void *tag, int error)
{
	store_of(context)->events->on_withdrawn(store_of(context)->context, tag, error);
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	(void)context;
	(void)stamp; /* the queues' own: that of the servers counts */
	redis_proof_found(tag, error, missing);
}

static const struct store_events queue_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_watched,
	.on_amended = on_amended,
	.on_marked = on_marked,
	.on_withdrawn = on_withdrawn,
	.on_proved = on_proved,
};

static void on_strangers_session(void *context, enum store_session session, int64_t timeout_ms)
{
	(void)context;
	(void)session;
	(void)timeout_ms;
}

/* Nothing is asked in that session. */
static const struct store_events stranger_events = {.on_session = on_strangers_session};

/* Events of the servers */

static void on_connected(void *context, const char *server)
{
	struct store_redis *store = context;

	(void)server;
	store->session.told_unreachable = false;
	redis_locks_resume(store);
	tell_session(store);
}

static void on_lost(void *context, const char *why)
{
	struct store_redis *store = context;

	if (!store->session.told_unreachable &&
	    log_limit_passes(&store->refusals, clock_now_ms(), "connection", why, strlen(why), 0))
		log_warning("redis: %s; trying on", why);
	store->session.told_unreachable = true;
	redis_locks_suspend(store);
	tell_session(store);
}

static void on_hint(void *context, const char *key)
{
	struct store_redis *store = context;
	size_t prefix = strlen(store->prefix);
	struct redis_lock *lock = strncmp(key, store->prefix, prefix) == 0
					  ? redis_lock_find(store, key + prefix)
					  : NULL;

	if (lock == NULL)
		return;
	key_hint(&lock->key, clock_now_ms());
	redis_lock_settle(lock);
}

static const struct redis_events service_events = {
	.on_connected = on_connected,
	.on_lost = on_lost,
	.on_hint = on_hint,
};

/* The loop */

static int descriptor(struct store *base)
{
	return store_redis_from(base)->loop.poll;
}

static void dispatch(struct store *base)
{
	struct store_redis *store = store_redis_from(base);
	struct store *home = store->queues.home, *strangers = store->queues.strangers;
	uint64_t count;

	store->loop.is_awake = false;
	while (read(store->loop.wake, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	alarm_rang(&store->loop.alarm);
	redis_dispatch(store->service);
	timers_run(&store->loop.timers, clock_now_ms());
	redis_proofs_conclude(store);
	home->ops->dispatch(home);
	strangers->ops->dispatch(strangers);
	redis_flush(store->service);
	alarm_set(&store->loop.alarm, timers_due(&store->loop.timers));
}

/* The lease */

/* As long as a loss is not told, the engine takes claims for standing that have gone: nothing is
 * granted, and the next heartbeat, which is due at once, tells. */
static void lease(struct store *base, int64_t now_ms, struct store_lease *ret)
{
	const struct store_redis *store = store_redis_from(base);

	redis_lease_tell(&store->lease, now_ms, ret);
	if (store->lost > 0) {
		ret->doubtful = true;
		ret->grants = false;
	}
}

/* A claim that is placed renews nothing. */
static void defer_beat(struct store *base)
{
	(void)base;
}

static void doubt(struct store *base, int64_t now_ms)
{
	redis_lease_doubt(&store_redis_from(base)->lease, now_ms);
}

/* The keys say themselves from when on they count. */
static void resume(struct store *base, int64_t timeout_ms, int64_t saved_ms, bool doubtful)
{
	(void)timeout_ms;
	(void)saved_ms;
	if (doubtful)
		doubt(base, clock_now_ms());
}

static void nudge(struct store *base)
{
	redis_nudge(store_redis_from(base)->service);
	redis_wake(store_redis_from(base));
}

static void describe(struct store *base, char *text, size_t text_bytes)
{
	const struct store_redis *store = store_redis_from(base);
	size_t bytes = (size_t)snprintf(text, text_bytes, "%s: ", store->address);

	if (bytes < text_bytes)
		redis_describe(store->service, text + bytes, text_bytes - bytes);
}

static const char *trouble(struct store *base)
{
	return redis_trouble(store_redis_from(base)->service);
}

static void warn(const struct store *base, void (*say)(void *context, const char *text),
		 void *context)
{
	redis_warn(((const struct store_redis *)base)->service, say, context);
}

/* The end */

static void close_queues(struct redis_queues *queues, const struct store_told *told)
{
	if (queues->home != NULL)
		queues->home->ops->close(queues->home, told);
	if (queues->strangers != NULL)
		queues->strangers->ops->close(queues->strangers, NULL);
	local_service_destroy(queues->service);
}

static void free_store(struct store_redis *store, const struct store_told *told)
{
	redis_destroy(store->service);
	close_queues(&store->queues, told);
	if (store->loop.poll >= 0)
		close(store->loop.poll);
	if (store->loop.wake >= 0)
		close(store->loop.wake);
	alarm_finish(&store->loop.alarm);
	store_access_finish(&store->access);
	free(store->address);
	free(store->prefix);
	free(store);
}

/* No question of a view is answered any more. */
static void close_store(struct store *base, const struct store_told *told)
{
	struct store_redis *store = store_redis_from(base);

	redis_proofs_forget(store);
	if (told != NULL) {
		give_up(store);
		redis_flush(store->service);
		redis_finish(store->service, CLOSE_LIMIT_MS);
	}
	redis_locks_free(store);
	free_store(store, told);
}

static const struct store_ops store_redis_ops = {
	.descriptor = descriptor,
	.dispatch = dispatch,
	.place = redis_call_place,
	.list = redis_call_list,
	.amend = redis_call_amend,
	.watch = redis_call_watch,
	.mark = redis_call_mark,
	.withdraw = redis_call_withdraw,
	.prove = redis_proof_send,
	.lease = lease,
	.defer_beat = defer_beat,
	.doubt = doubt,
	.resume = resume,
	.look = redis_outside_look,
	.read = redis_outside_read,
	.write = redis_outside_write,
	.remove = redis_outside_remove,
	.files = redis_outside_files,
	.alter = redis_outside_alter,
	.nudge = nudge,
	.renew = renew,
	.describe = describe,
	.trouble = trouble,
	.warn = warn,
	.session = redis_save_session,
	.seen = redis_save_seen,
	.save_session = redis_save_flag,
	.save_claims = redis_save_claims,
	.restore_claims = redis_save_restore,
	.keep_claims = redis_save_keep,
	.order_late = STORE_LOCAL_ORDER_LATE,
	.order_unsure = STORE_LOCAL_ORDER_UNSURE,
	.close = close_store,
};

/* The opening */

static int open_queues(struct store_redis *store)
{
	struct redis_queues *queues = &store->queues;
	uint64_t random;
	int error;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	queues->gate_session = claim_id_session(random);
	store->rules.random = random;
	queues->service = local_service_create();
	if (queues->service == NULL)
		return -ENOMEM;
	local_service_set_first_order(queues->service, 1);
	error = store_local_open(queues->service, &queue_events, store, &queues->home);
	if (error == 0)
		error = store_local_open(queues->service, &stranger_events, store,
					 &queues->strangers);
	if (error == 0)
		store_local_hide(queues->strangers);
	return error;
}

static int open_loop(struct store_redis *store)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct store *home = store->queues.home;

	store->loop.poll = epoll_create1(EPOLL_CLOEXEC);
	store->loop.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (alarm_init(&store->loop.alarm) < 0 || store->loop.poll < 0 || store->loop.wake < 0)
		return -errno;
	const int descriptors[] = {store->loop.wake, store->loop.alarm.descriptor,
				   home->ops->descriptor(home),
				   store->service != NULL ? redis_descriptor(store->service) : -1};
	for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++) {
		if (descriptors[i] >= 0 &&
		    epoll_ctl(store->loop.poll, EPOLL_CTL_ADD, descriptors[i], &event) < 0)
			return -errno;
	}
	return 0;
}

/* "/dlockfs" begins keys with "dlockfs/", "" with nothing. */
static char *make_prefix(const char *root)
{
	const char *begin = *root == '/' ? root + 1 : root;
	char *prefix = malloc(strlen(begin) + 2);

	if (prefix != NULL)
		strcpy(stpcpy(prefix, begin), *begin != '\0' ? "/" : "");
	return prefix;
}

static int open_all(struct store_redis *store, const struct store_options *options)
{
	int64_t idle_ms = options->session_timeout_ms / IDLES_IN_TIMEOUT;
	int64_t replicas_ms = options->session_timeout_ms / REPLICAS_IN_TIMEOUT;
	int64_t replicas_ms_max = options->on_disk ? DISKS_MS_MAX : REPLICAS_MS_MAX;
	const struct redis_options servers = {
		.url = options->url,
		.access = &store->access,
		.idle_ms = idle_ms > IDLE_MS_MIN ? idle_ms : IDLE_MS_MIN,
		.replicas =
			{
				.count = options->replicas,
				.on_disk = options->on_disk,
				.limit_ms = replicas_ms < replicas_ms_max ? replicas_ms
									  : replicas_ms_max,
			},
	};
	int error = -ENOMEM;

	if (gethostname(store->host, sizeof(store->host) - 1) < 0)
		return -errno;
	store->prefix = make_prefix(options->url->root);
	if (asprintf(&store->address, "%s%s://%s%s", options->url->has_tls ? "rediss" : "redis",
		     store_url_has_sentinels(options->url) ? "+sentinel" : "",
		     options->url->servers, options->url->root) < 0) {
		store->address = NULL;
		return -ENOMEM;
	}
	if (store->prefix == NULL || store_access_copy(&store->access, options->access) < 0)
		return -ENOMEM;
	error = open_queues(store);
	if (error == 0 && !options->rehearsal)
		error = redis_create(&servers, &service_events, store, &store->service);
	if (error == 0)
		error = open_loop(store);
	return error;
}

static int open_store(const struct store_options *options, const struct store_events *events,
		      void *context, struct store **ret)
{
	struct store_redis *store = calloc(1, sizeof(*store));

	if (store == NULL)
		return -ENOMEM;
	store->store.ops = &store_redis_ops;
	store->events = events;
	store->context = context;
	store->loop.poll = store->loop.wake = -1;
	store->loop.alarm = ALARM_NONE;
	store->rules.ttl_ms = options->session_timeout_ms;
	store->rules.contention = *options->contention;
	redis_lease_init(&store->lease, options->session_timeout_ms);
	int error = open_all(store, options);
	if (error != 0) {
		free_store(store, NULL);
		return error;
	}
	redis_wake(store);
	*ret = &store->store;
	return 0;
}

/* There is nothing beside the claims: the keys are saved with them. */
static void *restore_session(struct state_reader *in)
{
	(void)in;
	return NULL;
}

/* Servers that do not know each other have no counter in common. */
static unsigned lacks(const struct store_url *url)
{
	bool is_one = strchr(url->servers, ',') == NULL || store_url_has_sentinels(url);

	return is_one ? 0 : STORE_HAS_STAMPS;
}

const struct store_kind store_redis_kind = {
	.scheme = STORE_SCHEME_REDIS,
	.abilities = STORE_HAS_QUEUE | STORE_HAS_SHARED | STORE_HAS_RANGES | STORE_HAS_STAMPS |
		     STORE_HAS_CLIENTS,
	.lacks = lacks,
	.is_remote = true,
	.keeps_claims = true,
	.open = open_store,
	.check_files = tls_check_files,
	.restore_session = restore_session,
};
