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
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/net/tls.h"
#include "stores/redis/health.h"
#include "stores/redis/lock.h"
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
		store->lease.beat_ms = INT64_MIN;
	store->events->on_session(store->context, is_open ? STORE_CONNECTED : STORE_SUSPENDED,
				  store->rules.ttl_ms);
}

/* The claims have gone, and what was asked: the keys go too. */
static void give_up(struct store_redis *store)
{
	store->session.is_home_open = store->session.is_told = false;
	redis_locks_abandon(store);
	redis_proofs_forget(store);
}

static void renew(struct store *base, const struct store_told *told)
{
	struct store_redis *store = store_redis_from(base);
	struct store *home = store->queues.home;

	assert(told != NULL);
	home->ops->renew(home, told);
	give_up(store);
	redis_wake(store->service);
}

/* The queues lose their session when there is no memory; who holds is told before the keys go. */
static void on_session(void *owner, enum store_session session)
{
	struct store_redis *store = owner;

	if (session == STORE_CONNECTED) {
		store->session.is_home_open = true;
		tell_session(store);
	} else if (session == STORE_LOST) {
		store->session.is_home_open = store->session.is_told = false;
		redis_locks_forget(store);
		redis_proofs_forget(store);
		store->events->on_session(store->context, STORE_LOST, 0);
	}
}

/* Events of the servers */

static void on_connected(void *context, const char *server)
{
	struct store_redis *store = context;

	(void)server;
	outage_end(&store->session.outage, "redis", clock_now_ms());
	redis_locks_resume(store);
	tell_session(store);
}

static void on_lost(void *context, const char *why)
{
	struct store_redis *store = context;

	outage_failed(&store->session.outage, "redis", why, clock_now_ms());
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

/* What was asked meanwhile is told. */
static void on_turn(void *context)
{
	redis_proofs_conclude(context);
}

static const struct redis_events service_events = {
	.on_connected = on_connected,
	.on_lost = on_lost,
	.on_hint = on_hint,
	.on_turn = on_turn,
};

/* Locks: what the engine asks becomes calls, what views ask is passed on to the queues */

/* Of a lock that nobody here wants the servers alone know who has it: `opens` if that is asked. */
static void call_lock(struct store *base, const char *path, bool opens,
		      const struct redis_call *call)
{
	struct store_redis *store = store_redis_from(base);
	struct redis_lock *lock =
		opens ? redis_lock_open(store, path) : redis_lock_find(store, path);

	if (lock != NULL)
		redis_lock_call(lock, call);
	else if (opens)
		redis_starve(store);
	else
		redis_call_make(store, path, call);
}

static void place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		  const char *text, bool list, void *attention)
{
	call_lock(base, path, true,
		  &(struct redis_call){.kind = CALL_PLACE,
				       .tag = tag,
				       .claim = *name,
				       .text = text,
				       .list = list,
				       .attention = attention});
}

static void list(struct store *base, void *tag, const char *path, bool sync, bool attend)
{
	call_lock(base, path, sync,
		  &(struct redis_call){
			  .kind = CALL_LIST, .tag = tag, .sync = sync, .attend = attend});
}

static void amend(struct store *base, void *tag, const char *path, const char *name,
		  const char *text, uint32_t version)
{
	call_lock(base, path, false,
		  &(struct redis_call){.kind = CALL_AMEND,
				       .tag = tag,
				       .name = name,
				       .text = text,
				       .version = version});
}

static void watch(struct store *base, void *tag, const char *path, const char *name)
{
	call_lock(base, path, false,
		  &(struct redis_call){.kind = CALL_WATCH, .tag = tag, .name = name});
}

static void mark(struct store *base, void *tag, const char *path, const char *name,
		 const char *text, int64_t age_ms)
{
	call_lock(base, path, false,
		  &(struct redis_call){.kind = CALL_MARK,
				       .tag = tag,
				       .name = name,
				       .text = text,
				       .age_ms = age_ms});
}

static void withdraw(struct store *base, const struct store_told *told, void *tag, const char *path,
		     const char *name, int64_t order, bool marker)
{
	assert(told != NULL);
	call_lock(base, path, false,
		  &(struct redis_call){.kind = CALL_WITHDRAW,
				       .tag = tag,
				       .told = told,
				       .name = name,
				       .order = order,
				       .marker = marker});
}

/* The queues of this host, which answer with the next dispatch(). */
static struct store *home_of(struct store *base)
{
	redis_wake(store_redis_from(base)->service);
	return store_redis_from(base)->queues.home;
}

/* Of a lock that nobody here wants, the servers are asked, if they can be. */
static int look(struct store *base, struct store_look *look, const char *path)
{
	struct store_redis *store = store_redis_from(base);
	bool asks = *path != '\0' && redis_is_connected(store->service);
	struct redis_lock *lock = asks ? redis_lock_open(store, path) : NULL;

	if (lock == NULL || lock->key.gate || !key_must_wait(&lock->key, false))
		return home_of(base)->ops->look(home_of(base), look, path);
	redis_lock_call(lock, &(struct redis_call){.kind = CALL_LOOK, .tag = look});
	return 0;
}

static int read_claim(struct store *base, struct store_read *read, const char *path,
		      const char *name)
{
	return home_of(base)->ops->read(home_of(base), read, path, name);
}

static bool is_gate(struct store *base, const char *path, const char *name)
{
	const struct redis_lock *lock = redis_lock_find(store_redis_from(base), path);

	return lock != NULL && redis_gate_is(&lock->gate, name);
}

/* Nobody would read what is written to a gate. */
static int write_claim(struct store *base, struct store_change *change, const char *path,
		       const char *name, const char *text, uint32_t version)
{
	if (is_gate(base, path, name))
		return -EOPNOTSUPP;
	return home_of(base)->ops->write(home_of(base), change, path, name, text, version);
}

static int remove_claim(struct store *base, struct store_change *change, const char *path,
			const char *name, uint64_t session)
{
	if (is_gate(base, path, name))
		return -EOPNOTSUPP;
	return home_of(base)->ops->remove(home_of(base), change, path, name, session);
}

static int files(struct store *base, struct store_files *files, const char *directory)
{
	(void)base;
	(void)files;
	(void)directory;
	return -EOPNOTSUPP;
}

static int alter(struct store *base, struct store_change *change, const struct store_step *steps,
		 size_t count)
{
	(void)base;
	(void)change;
	(void)steps;
	(void)count;
	return -EOPNOTSUPP;
}

/* The loop */

static int descriptor(struct store *base)
{
	return redis_descriptor(store_redis_from(base)->service);
}

static bool is_due(const struct store *base)
{
	return redis_is_due(((const struct store_redis *)base)->service);
}

static void dispatch(struct store *base)
{
	redis_dispatch(store_redis_from(base)->service);
}

/* The lease */

/* As long as the engine takes claims for standing that have gone nothing is granted; the next
 * heartbeat, which is due at once, tells. */
static void lease(struct store *base, int64_t now_ms, struct store_lease *ret)
{
	const struct store_redis *store = store_redis_from(base);

	redis_lease_tell(&store->lease, now_ms, ret);
	if (store->losses > 0) {
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
	store_redis_from(base)->lease.doubt_ms = now_ms;
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
	const struct store_redis *store = (const struct store_redis *)base;

	redis_warn(store->service, say, context);
	redis_locks_warn(store, say, context);
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
	store_access_finish(&store->access);
	free(store->address);
	free(store->prefix);
	free(store);
}

/* No question of a view is answered any more. */
static void close_store(struct store *base, const struct store_told *told)
{
	struct store_redis *store = store_redis_from(base);

	redis_locks_forget(store);
	redis_proofs_forget(store);
	if (told != NULL) {
		give_up(store);
		redis_finish(store->service, CLOSE_LIMIT_MS);
	}
	redis_locks_free(store);
	free_store(store, told);
}

static const struct store_ops store_redis_ops = {
	.descriptor = descriptor,
	.dispatch = dispatch,
	.is_due = is_due,
	.place = place,
	.list = list,
	.amend = amend,
	.watch = watch,
	.mark = mark,
	.withdraw = withdraw,
	.prove = redis_proof_send,
	.lease = lease,
	.defer_beat = defer_beat,
	.doubt = doubt,
	.resume = resume,
	.look = look,
	.read = read_claim,
	.write = write_claim,
	.remove = remove_claim,
	.files = files,
	.alter = alter,
	.nudge = nudge,
	.renew = renew,
	.describe = describe,
	.trouble = trouble,
	.warn = warn,
	.session = redis_save_session,
	.save_session = redis_save_flag,
	.save_claims = redis_save_claims,
	.restore_claims = redis_save_restore,
	.keep_claims = redis_save_keep,
	.has_statistics = true,
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
	error = store_local_open(queues->service, store->events, store->context, &queues->home);
	if (error == 0)
		error = store_local_open(queues->service, NULL, NULL, &queues->strangers);
	if (error == 0) {
		store_local_embed(queues->home, on_session, store);
		store_local_hide(queues->strangers);
	}
	return error;
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
		.url = options->rehearsal ? NULL : options->url,
		.access = &store->access,
		.statistics = options->statistics,
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
	if (error == 0)
		error = redis_create(&servers, &service_events, store, &store->service);
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
	store->rules.ttl_ms = options->session_timeout_ms;
	store->rules.contention = *options->contention;
	redis_lease_init(&store->lease, options->session_timeout_ms);
	int error = open_all(store, options);
	if (error != 0) {
		free_store(store, NULL);
		return error;
	}
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
	.ask = redis_health,
	.open = open_store,
	.check_files = tls_check_files,
	.restore_session = restore_session,
};
