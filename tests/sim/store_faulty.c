/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of a store_faulty, and what happens next to it. Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "faulty_client.h"

static int64_t moment(const struct faulty *faulty, int64_t clock_ms)
{
	const struct faulty_settings *settings = &faulty->settings;

	if (settings->moment_ms != NULL)
		return settings->moment_ms(settings->context, clock_ms);
	return clock_ms < faulty_now(faulty) ? faulty_now(faulty) : clock_ms;
}

void store_faulty_set_context(struct store *store, void *context)
{
	faulty_of(store)->context = context;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When the next keep-alive is sent, or its answer is late: on a connection that seems to be one. */
static int64_t keep_due(const struct faulty *faulty)
{
	const struct faulty_lease_rules *rules = faulty->lease.rules;

	if (rules->keep == NULL || faulty->killed || faulty->told != STORE_CONNECTED ||
	    (!faulty->connected && faulty->notice_ms == INT64_MAX))
		return INT64_MAX;
	return moment(faulty, rules->next_keep_ms(&faulty->lease, faulty_client_clock(faulty)));
}

/* What the client itself does next. */
static int64_t client_due(const struct faulty *faulty)
{
	const struct item *first = faulty_first_news(faulty);
	int64_t due_ms = earlier(faulty->notice_ms, keep_due(faulty));

	if (faulty->paused)
		return INT64_MAX;
	return first == NULL ? due_ms : earlier(due_ms, first->at_ms);
}

/* A keep-alive is sent, or its answer is late. */
static void keep_alive(struct faulty *faulty)
{
	const struct faulty_lease_rules *rules = faulty->lease.rules;
	int64_t under_way = (int64_t)store_faulty_under_way(&faulty->store);
	struct item *item;
	bool has_proof;

	if (rules->is_keeping(&faulty->lease)) {
		rules->disconnect(&faulty->lease);
		store_faulty_break(&faulty->store,
				   (size_t)prng_below(faulty->settings.prng, under_way + 1),
				   faulty->settings.delay_ms, 0);
		return;
	}
	item = item_create(faulty->session, ITEM_KEEP, NULL);
	item->sent_ms = faulty_client_clock(faulty);
	item->at_ms = faulty_now(faulty) + faulty_some_delay(faulty);
	has_proof = rules->keep(&faulty->lease, item->sent_ms);
	if (faulty->connected)
		session_keep(faulty->session, item);
	else
		item_free(item);
	if (!has_proof)
		faulty_send(faulty, faulty_operation(&faulty->store, ITEM_TOUCH, NULL, NULL, NULL));
}

int64_t store_faulty_due(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	int64_t due_ms = session_due(faulty->session);
	struct session *session;

	DL_FOREACH (faulty->given_up, session)
		due_ms = earlier(due_ms, session_due(session));
	return earlier(due_ms, client_due(faulty));
}

static bool step_given_up(struct faulty *faulty)
{
	struct session *session;

	DL_FOREACH (faulty->given_up, session) {
		if (session_due(session) > faulty_now(faulty))
			continue;
		if (!session->expired)
			session_step(session);
		if (session->expired) {
			DL_DELETE(faulty->given_up, session);
			session_free(session);
		}
		return true;
	}
	return false;
}

static void step_session(struct faulty *faulty)
{
	struct session *session = faulty->session;

	session_step(session);
	/* The servers that know so hang up. */
	if (session->expired && !session->cut_off)
		store_faulty_break(&faulty->store, 0, 0, faulty_some_delay(faulty));
}

bool store_faulty_step(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	int64_t session_ms = session_due(faulty->session);
	int64_t client_ms = client_due(faulty);

	if (step_given_up(faulty))
		return true;
	if (earlier(session_ms, client_ms) > faulty_now(faulty))
		return false;
	if (session_ms <= client_ms)
		step_session(faulty);
	else if (faulty->notice_ms == client_ms)
		faulty_notice(faulty);
	else if (keep_due(faulty) == client_ms)
		keep_alive(faulty);
	else
		faulty_deliver(faulty, faulty_first_news(faulty));
	if (faulty_by_lock(faulty))
		faulty_send_waiting(faulty);
	return true;
}

static bool has_more_than_touches(const struct item *list)
{
	const struct item *item;

	DL_FOREACH (list, item)
		if (item->kind != ITEM_TOUCH && item->kind != ITEM_KEEP)
			return true;
	return false;
}

bool store_faulty_is_quiet(const struct store *store)
{
	const struct faulty *faulty = faulty_of(store);

	return faulty->notice_ms == INT64_MAX && faulty->given_up == NULL &&
	       !has_more_than_touches(faulty->session->sent) &&
	       !has_more_than_touches(faulty->fired) && !has_more_than_touches(faulty->news);
}

bool store_faulty_has_given_up(const struct store *store)
{
	return faulty_of(store)->given_up != NULL;
}

bool store_faulty_is_connected(const struct store *store)
{
	return faulty_of(store)->connected;
}

bool store_faulty_told_connected(const struct store *store)
{
	return faulty_of(store)->told == STORE_CONNECTED;
}

bool store_faulty_is_expired(const struct store *store)
{
	return faulty_of(store)->session->expired;
}

int64_t store_faulty_soonest_end_ms(const struct store *store)
{
	return session_soonest_end_ms(faulty_of(store)->session);
}

bool store_faulty_may_be_over(const struct store *store)
{
	return store_faulty_soonest_end_ms(store) <= faulty_now(faulty_of(store));
}

bool store_faulty_is_cut_off(const struct store *store)
{
	return faulty_of(store)->session->cut_off;
}

/* The table. */

static void on_place(struct store *store, void *tag, const char *path,
		     const struct claim_name *name, const char *text, bool list, void *attention)
{
	struct item *item = faulty_operation(store, ITEM_PLACE, tag, path, NULL);

	item->claim = *name;
	item->text = copy_text(text);
	item->flag = list;
	item->attend = attention != NULL;
	item->attend_tag = attention;
	faulty_send(faulty_of(store), item);
}

static void on_list(struct store *store, void *tag, const char *path, bool sync, bool attend)
{
	struct item *item = faulty_operation(store, ITEM_LIST, tag, path, NULL);

	item->flag = sync;
	item->attend = attend;
	item->attend_tag = tag;
	faulty_send(faulty_of(store), item);
}

static void on_watch(struct store *store, void *tag, const char *path, const char *name)
{
	faulty_send_watch(faulty_of(store), tag, path, name);
}

static void on_amend(struct store *store, void *tag, const char *path, const char *name,
		     const char *text, uint32_t version)
{
	struct item *item = faulty_operation(store, ITEM_AMEND, tag, path, name);

	item->text = copy_text(text);
	item->version = version;
	faulty_send(faulty_of(store), item);
}

static void on_mark(struct store *store, void *tag, const char *path, const char *name,
		    const char *text, int64_t age_ms)
{
	struct item *item = faulty_operation(store, ITEM_MARK, tag, path, name);

	item->text = copy_text(text);
	faulty_send(faulty_of(store), item);
}

static void on_age(struct store *store, void *tag, const char *path, const char *name)
{
	faulty_send(faulty_of(store), faulty_operation(store, ITEM_AGE, tag, path, name));
}

static void on_withdraw(struct store *store, const struct store_told *told, void *tag,
			const char *path, const char *name, int64_t order, bool marker)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = faulty_operation(store, ITEM_WITHDRAW, tag, path, name);

	item->order = order;
	item->flag = marker;
	if (faulty->settings.on_withdrawing != NULL && !faulty->killed)
		faulty->settings.on_withdrawing(faulty->settings.context, path, name);
	faulty_send(faulty, item);
}

static void on_bequeath(struct store *store, const struct store_told *told, void *tag,
			const char *path, const char *name, int64_t order, const char *heir)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = faulty_operation(store, ITEM_WITHDRAW, tag, path, name);

	item->order = order;
	item->text = copy_text(heir);
	if (faulty->settings.on_withdrawing != NULL && !faulty->killed)
		faulty->settings.on_withdrawing(faulty->settings.context, path, name);
	if (faulty->settings.on_bequeathing != NULL && !faulty->killed)
		faulty->settings.on_bequeathing(faulty->settings.context, path, name, heir);
	faulty_send(faulty, item);
}

static void on_hold(struct store *store, void *tag, const char *path, const char *name,
		    const struct claim_name *hold, const char *text, bool marker)
{
	struct item *item = faulty_operation(store, ITEM_HOLD, tag, path, name);

	item->claim = *hold;
	item->text = copy_text(text);
	item->flag = marker;
	faulty_send(faulty_of(store), item);
}

static void on_outlast(struct store *store, const struct store_told *told, void *tag,
		       const char *path, const char *name, uint32_t version)
{
	struct item *item = faulty_operation(store, ITEM_OUTLAST, tag, path, name);

	item->version = version;
	faulty_send(faulty_of(store), item);
}

static void on_prove(struct store *store, void *tag, const struct store_proof *proofs, size_t count)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = faulty_operation(store, ITEM_PROVE, tag, NULL, NULL);
	size_t bytes = 0, znodes = 0;

	for (size_t i = 0; i < count; i++) {
		struct claim_name name = {0};

		if (proofs[i].name != NULL)
			claim_name_parse(proofs[i].name, &name);
		znodes += proofs[i].name != NULL ? claim_recipe_znodes(name.recipe) : 1;
		bytes += 3 * strlen(proofs[i].path) +
			 (proofs[i].name != NULL ? strlen(proofs[i].name) : 0) +
			 (proofs[i].text != NULL ? strlen(proofs[i].text) : 0);
	}
	if (znodes > STORE_PROOFS_MAX ||
	    bytes > (count > 1 ? STORE_PROOFS_BYTES_MAX : STORE_PROOF_BYTES_MAX)) {
		fprintf(stderr, "a proof of %zu claims and %zu bytes\n", count, bytes);
		abort();
	}
	item_keep_proofs(item, proofs, count);
	if (tag == NULL)
		faulty->lease.rules->beat(&faulty->lease, faulty_client_clock(faulty));
	faulty_send(faulty, item);
}

static void on_touch(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	faulty->lease.rules->touch(&faulty->lease, faulty_client_clock(faulty));
	faulty_send(faulty, faulty_operation(store, ITEM_TOUCH, NULL, NULL, NULL));
}

static int ask(struct store *store, enum item_kind kind, void *tag, const char *path,
	       const struct store_step *steps, size_t count)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = files_item(faulty->session, kind, tag, path, steps, count);

	if (!faulty->killed)
		files_note(&faulty->questions, item);
	faulty_send(faulty, item);
	return 0;
}

static int on_alter(struct store *store, struct store_change *change,
		    const struct store_step *steps, size_t count)
{
	return ask(store, ITEM_ALTER, change, NULL, steps, count);
}

static int on_read_file(struct store *store, struct store_read *read, const char *path,
			const char *name)
{
	if (name != NULL)
		abort(); /* that is for views */
	return ask(store, ITEM_FILE, read, path, NULL, 0);
}

static int on_files(struct store *store, struct store_files *files, const char *directory)
{
	return ask(store, ITEM_FILES, files, directory, NULL, 0);
}

static int64_t on_session(const struct store *store)
{
	return (int64_t)store_local_session(faulty_of(store)->session->inner);
}

static void on_lease(struct store *store, int64_t now_ms, struct store_lease *ret)
{
	struct faulty *faulty = faulty_of(store);

	*ret = faulty->lease.rules->describe(&faulty->lease, now_ms);
}

static void on_defer_beat(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	faulty->lease.rules->defer_beat(&faulty->lease, faulty_client_clock(faulty));
}

static void on_doubt(struct store *store, int64_t now_ms)
{
	struct faulty *faulty = faulty_of(store);
	struct servers *servers = &faulty->session->servers;

	faulty->lease.rules->doubt(&faulty->lease, now_ms);
	if (servers->rules->doubt != NULL)
		servers->rules->doubt(servers);
}

static void on_resume(struct store *store, int64_t timeout_ms, int64_t saved_ms, bool doubtful)
{
	struct faulty *faulty = faulty_of(store);

	faulty->lease.rules->resume(&faulty->lease, timeout_ms, saved_ms,
				    faulty_client_clock(faulty), doubtful);
}

/* If there is another server: then all that is under way is lost, whether it takes effect or not.
 */
static void on_nudge(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	int64_t under_way = (int64_t)store_faulty_under_way(store);

	if (!faulty->connected ||
	    !prng_chance(faulty->settings.prng, faulty->settings.nudge_percent))
		return;
	store_faulty_break(store, (size_t)prng_below(faulty->settings.prng, under_way + 1), 0, 0);
	store_faulty_reconnect(store);
}

static bool is_well(const struct faulty *faulty)
{
	const struct session *session = faulty->session;
	return faulty->connected && !session->cut_off && !session->expired;
}

/* When the word that the session is over arrives: often at once, as the client may send it from
 * another thread. */
static int64_t some_close_ms(struct faulty *faulty)
{
	if (!is_well(faulty) || !prng_chance(faulty->settings.prng, 50))
		return INT64_MAX;
	return faulty->arrival_ms +
	       (prng_chance(faulty->settings.prng, 50) ? faulty_some_delay(faulty) : 0);
}

static void give_up(struct faulty *faulty, int64_t close_ms)
{
	struct session *session = faulty->session;
	bool well = is_well(faulty);

	session_give_up(session, close_ms);
	DL_APPEND(faulty->given_up, session);
	faulty_forget(faulty);
	faulty_begin_lease(faulty, faulty->settings.timeout_ms);
	faulty_begin_session(faulty);
	faulty->told = STORE_LOST;
	faulty->notice_ms = INT64_MAX;
	faulty->connected = well;
	faulty->telling = well;
	faulty_listen(faulty);
	if (well)
		faulty_tell_session(faulty, STORE_CONNECTED, faulty_some_delay(faulty));
	if (faulty->settings.on_renewed != NULL)
		faulty->settings.on_renewed(faulty->settings.context);
}

void faulty_give_up(struct faulty *faulty)
{
	give_up(faulty, INT64_MAX);
}

static void on_renew(struct store *store, const struct store_told *told)
{
	struct faulty *faulty = faulty_of(store);

	if (told == NULL)
		abort();
	if (faulty->killed || faulty->told == STORE_LOST)
		return;
	if (faulty->settings.on_renewing != NULL)
		faulty->settings.on_renewing(faulty->settings.context);
	give_up(faulty, some_close_ms(faulty));
}

static int on_descriptor(struct store *store)
{
	return -1; /* time is virtual */
}

static void on_dispatch(struct store *store)
{
	while (store_faulty_step(store))
		;
}

static void on_describe(struct store *store, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "faulty: %s",
		 faulty_of(store)->connected ? "connected" : "not connected");
}

static void on_close(struct store *store, const struct store_told *told)
{
	struct faulty *faulty = faulty_of(store);
	struct session *session, *next;

	DL_FOREACH_SAFE (faulty->given_up, session, next) {
		DL_DELETE(faulty->given_up, session);
		session_free(session);
	}
	session_free(faulty->session);
	faulty_forget_all(faulty);
	files_forget(&faulty->questions);
	free(faulty);
}

static const struct store_ops faulty_ops = {
	.descriptor = on_descriptor,
	.dispatch = on_dispatch,
	.place = on_place,
	.list = on_list,
	.amend = on_amend,
	.watch = on_watch,
	.mark = on_mark,
	.age = on_age,
	.withdraw = on_withdraw,
	.bequeath = on_bequeath,
	.hold = on_hold,
	.outlast = on_outlast,
	.prove = on_prove,
	.alter = on_alter,
	.read = on_read_file,
	.files = on_files,
	.session = on_session,
	.touch = on_touch,
	.lease = on_lease,
	.defer_beat = on_defer_beat,
	.doubt = on_doubt,
	.resume = on_resume,
	.nudge = on_nudge,
	.renew = on_renew,
	.describe = on_describe,
	.close = on_close,
};

const struct faulty_rules faulty_zookeeper = {
	.name = "zookeeper",
	.lease = &faulty_lease_zookeeper,
	.servers = &servers_zookeeper,
	.order_late = STORE_LOCAL_ORDER_LATE, /* it wraps a local store */
	.order_unsure = STORE_LOCAL_ORDER_UNSURE,
};

const struct faulty_rules faulty_etcd = {
	.name = "etcd",
	.lease = &faulty_lease_etcd,
	.servers = &servers_etcd,
	.order_late = INT64_MAX,
	.order_unsure = INT64_MAX,
	.by_lock = true,
	.tells_ends = true,
	.asks_quorum = true,
};

const struct faulty_rules faulty_redis = {
	.name = "redis",
	.lease = &faulty_lease_redis,
	.servers = &servers_redis,
	.order_late = STORE_LOCAL_ORDER_LATE, /* as the claims of a host are in one */
	.order_unsure = STORE_LOCAL_ORDER_UNSURE,
	.asks_quorum = true,
};

int store_faulty_open(struct local_service *service, const struct faulty_settings *settings,
		      const struct store_events *events, void *context, struct store **ret)
{
	struct faulty *faulty = must_have(calloc(1, sizeof(*faulty)));

	faulty->ops = faulty_ops;
	faulty->store.ops = &faulty->ops;
	faulty->service = service;
	faulty->settings = *settings;
	faulty->events = events;
	faulty->context = context;
	faulty->told = STORE_SUSPENDED;
	faulty->notice_ms = INT64_MAX;
	if (settings->rules == NULL)
		faulty->settings.rules = &faulty_zookeeper;
	faulty->ops.order_late = faulty->settings.rules->order_late;
	faulty->ops.order_unsure = faulty->settings.rules->order_unsure;
	faulty->lease.rules = faulty->settings.rules->lease;
	faulty_begin_lease(faulty, 0);
	faulty_begin_session(faulty);
	store_faulty_reconnect(&faulty->store);
	*ret = &faulty->store;
	return 0;
}
