/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is under way between a client and its session at the service: operations that have not
 * arrived (`sent`), watches that stand (`watching`), the ends of watches that a broken connection
 * holds back (`fired`) and events that have not come (`news`). An operation is one object that
 * moves through these lists, and at last is the event that answers it.
 *
 * The session proper is a store_local; what it answers comes back at once, because it is
 * dispatched behind each operation. Single-threaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "faulty_item.h"
#include "store_faulty.h"

struct faulty {
	struct store store;
	struct store *inner;
	struct faulty_settings settings;
	const struct store_events *events;
	void *context;

	bool connected;		 /* the wire is */
	bool killed;		 /* the client is dead */
	bool expired;		 /* the service has ended the session, the client does not know */
	bool telling;		 /* CONNECTED or LOST is in the news since the last reconnect */
	enum store_session told; /* what the client knows */
	int64_t notice_ms;	 /* when the client sees that the connection is broken */
	int64_t expire_ms;	 /* when the service ends the session */
	int64_t arrival_ms;	 /* nothing arrives earlier than what was sent before it */
	int64_t delivery_ms;	 /* nothing is delivered earlier than what came before it */

	struct item *sent, *watching, *fired, *news;
};

static struct faulty *faulty_of(const struct store *store)
{
	return (struct faulty *)store;
}

static int64_t now(const struct faulty *faulty)
{
	return *faulty->settings.now_ms;
}

static int64_t some_delay(struct faulty *faulty)
{
	return prng_below(faulty->settings.prng, faulty->settings.delay_ms + 1);
}

/* Puts an event on its way back. */
static void tell(struct faulty *faulty, struct item *item, int64_t delay_ms)
{
	item->at_ms = now(faulty) + delay_ms;
	if (item->at_ms < faulty->delivery_ms)
		item->at_ms = faulty->delivery_ms;
	faulty->delivery_ms = item->at_ms;
	DL_APPEND(faulty->news, item);
}

static void tell_session(struct faulty *faulty, enum store_session session, int64_t delay_ms)
{
	struct item *item = item_create(faulty, ITEM_SESSION, NULL);

	item->session = session;
	tell(faulty, item, delay_ms);
}

/* The inner store answers: onto the way back, or nowhere if nobody waits for it any more. Returns
 * whether somebody does; the caller may still add to the answer. */
static bool answer(struct item *item, int error)
{
	struct faulty *faulty = item->faulty;

	if (item->answered) {
		item_free(item);
		return false;
	}
	item->error = error;
	if (faulty->connected)
		tell(faulty, item, some_delay(faulty));
	else
		DL_APPEND(faulty->fired, item);
	return true;
}

static void on_inner_session(void *context, enum store_session session)
{
	/* It is this store that tells of sessions. */
}

static void on_inner_placed(void *context, void *tag, int error, const char *name, int32_t sequence,
			    const struct store_entry *entries, size_t count)
{
	struct item *item = tag;
	const struct faulty_settings *settings = &item->faulty->settings;

	if (error == 0 && settings->on_standing != NULL)
		settings->on_standing(settings->context, item->path, name, item->text);
	if (!answer(item, error))
		return;
	item->name = copy_text(name);
	item->sequence = sequence;
	if (entries != NULL && !prng_chance(settings->prng, settings->unlisted_percent))
		item_keep_entries(item, entries, count);
}

static void on_inner_listed(void *context, void *tag, int error, const struct store_entry *entries,
			    size_t count)
{
	if (answer(tag, error))
		item_keep_entries(tag, entries, count);
}

static void on_inner_watched(void *context, void *tag, int error)
{
	struct item *item = tag;

	DL_DELETE(item->faulty->watching, item);
	answer(item, error);
}

static void on_inner_withdrawn(void *context, void *tag, int error)
{
	answer(tag, error);
}

static const struct store_events inner_events = {
	.on_session = on_inner_session,
	.on_placed = on_inner_placed,
	.on_listed = on_inner_listed,
	.on_watched = on_inner_watched,
	.on_withdrawn = on_inner_withdrawn,
};

/* An operation arrives at the service. */
static void arrive(struct faulty *faulty, struct item *item)
{
	const struct store_ops *inner = faulty->inner->ops;

	DL_DELETE(faulty->sent, item);
	if (prng_chance(faulty->settings.prng, faulty->settings.refused_percent)) {
		answer(item, -EIO);
		return;
	}
	switch (item->kind) {
	case ITEM_SESSION:
		abort();
	case ITEM_PLACE:
		inner->place(faulty->inner, item, item->path, item->id, item->mode, item->text,
			     item->flag);
		break;
	case ITEM_LIST:
		inner->list(faulty->inner, item, item->path, item->flag);
		break;
	case ITEM_WATCH:
		item->sure_at_ms = now(faulty) + some_delay(faulty);
		DL_APPEND(faulty->watching, item);
		inner->watch(faulty->inner, item, item->path, item->name);
		break;
	case ITEM_WITHDRAW:
		inner->withdraw(faulty->inner, item, item->path, item->name, item->sequence);
		break;
	}
	inner->dispatch(faulty->inner);
}

/* The client learns that an operation failed, while its effect may be still to come. */
static void answer_reset(struct faulty *faulty, struct item *item, int64_t delay_ms)
{
	struct item *reset = item_create(faulty, item->kind, item->tag);

	reset->error = -ECONNRESET;
	item->answered = true;
	tell(faulty, reset, delay_ms);
}

/* Events that have not reached the client when the connection breaks never do: it sees its
 * operations fail, and the ends of watches come again later. */
static void lose_news(struct faulty *faulty)
{
	struct item *item, *next;

	DL_FOREACH_SAFE (faulty->news, item, next) {
		item->at_ms = INT64_MAX;
		if (item->error == -ECONNRESET)
			continue;
		if (item->kind == ITEM_SESSION) {
			DL_DELETE(faulty->news, item);
			item_free(item);
		} else if (item->kind == ITEM_WATCH && item->sure_at_ms <= now(faulty)) {
			DL_DELETE(faulty->news, item);
			DL_APPEND(faulty->fired, item);
		} else {
			item->error = -ECONNRESET;
		}
	}
	faulty->telling = false;
}

void store_faulty_break(struct store *store, size_t effective, int64_t late_ms, int64_t notice_ms)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item;

	if (!faulty->connected)
		return;
	faulty->connected = false;
	faulty->notice_ms = now(faulty) + notice_ms;
	if (!faulty->expired)
		faulty->expire_ms = now(faulty) + faulty->settings.timeout_ms;
	lose_news(faulty);
	DL_FOREACH (faulty->watching, item) {
		if (item->sure_at_ms > now(faulty) && !item->answered) {
			answer_reset(faulty, item, 0);
			faulty->news->prev->at_ms = INT64_MAX;
		}
	}
	DL_FOREACH (faulty->sent, item) {
		if (effective == 0 || faulty->expired) {
			item->at_ms = INT64_MAX;
			continue;
		}
		effective--;
		item->at_ms += late_ms == 0 ? 0 : prng_below(faulty->settings.prng, late_ms);
		if (item->prev->next != NULL && item->at_ms < item->prev->at_ms)
			item->at_ms = item->prev->at_ms;
	}
}

/* The client sees that the connection is broken. */
static void notice(struct faulty *faulty)
{
	bool first = prng_chance(faulty->settings.prng, 50);
	bool tells = faulty->told == STORE_CONNECTED;
	struct item *item, *next;

	faulty->notice_ms = INT64_MAX;
	faulty->delivery_ms = now(faulty);
	DL_FOREACH (faulty->news, item)
		item->at_ms = now(faulty);
	if (tells && first) {
		tell_session(faulty, STORE_SUSPENDED, 0);
		item = faulty->news->prev;
		DL_DELETE(faulty->news, item);
		DL_PREPEND(faulty->news, item);
	}
	DL_FOREACH_SAFE (faulty->sent, item, next) {
		if (!item->answered)
			answer_reset(faulty, item, 0);
		if (item->at_ms == INT64_MAX) {
			DL_DELETE(faulty->sent, item);
			item_free(item);
		}
	}
	if (tells && !first)
		tell_session(faulty, STORE_SUSPENDED, 0);
}

/* Forgets the operations that were called in the session that is over. */
static void forget(struct faulty *faulty)
{
	items_free(&faulty->sent);
	items_free(&faulty->watching);
	items_free(&faulty->fired);
	items_free(&faulty->news);
}

static void expire(struct faulty *faulty)
{
	struct item *item, *next;

	faulty->expire_ms = INT64_MAX;
	faulty->expired = true;
	store_local_expire(faulty->inner);
	/* Its watches are gone there; no answer will come for these. */
	items_free(&faulty->watching);
	DL_FOREACH_SAFE (faulty->sent, item, next) {
		if (item->answered) {
			DL_DELETE(faulty->sent, item);
			item_free(item);
		} else {
			item->at_ms = INT64_MAX;
		}
	}
}

void store_faulty_expire(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	if (faulty->expired)
		return;
	store_faulty_break(store, 0, 0, some_delay(faulty));
	expire(faulty);
}

void store_faulty_reconnect(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item, *next;

	if (faulty->connected || faulty->killed)
		return;
	if (faulty->notice_ms != INT64_MAX)
		notice(faulty);
	faulty->connected = true;
	faulty->expire_ms = INT64_MAX;
	faulty->telling = true;
	if (faulty->expired) {
		forget(faulty);
		tell_session(faulty, STORE_LOST, some_delay(faulty));
		tell_session(faulty, STORE_CONNECTED, some_delay(faulty));
		return;
	}
	DL_FOREACH_SAFE (faulty->sent, item, next)
		if (item->answered)
			arrive(faulty, item);
	tell_session(faulty, STORE_CONNECTED, some_delay(faulty));
	while ((item = faulty->fired) != NULL) {
		DL_DELETE(faulty->fired, item);
		tell(faulty, item, some_delay(faulty));
	}
	faulty->arrival_ms = now(faulty) + some_delay(faulty);
	DL_FOREACH (faulty->sent, item)
		item->at_ms = faulty->arrival_ms;
}

void store_faulty_kill(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	store_faulty_break(store, (size_t)prng_below(faulty->settings.prng, 4),
			   faulty->settings.delay_ms, 0);
	notice(faulty);
	faulty->killed = true;
	items_free(&faulty->news);
}

/* Delivers an event. The callback may call operations. */
static void deliver(struct faulty *faulty, struct item *item)
{
	const struct store_events *events = faulty->events;
	void *context = faulty->context;

	DL_DELETE(faulty->news, item);
	switch (item->kind) {
	case ITEM_SESSION:
		faulty->told = item->session;
		if (item->session == STORE_LOST) {
			faulty->expired = false;
			faulty->inner->ops->dispatch(faulty->inner);
		}
		events->on_session(context, item->session);
		break;
	case ITEM_PLACE:
		events->on_placed(context, item->tag, item->error, item->name, item->sequence,
				  item->entries, item->count);
		break;
	case ITEM_LIST:
		events->on_listed(context, item->tag, item->error, item->entries, item->count);
		break;
	case ITEM_WATCH:
		events->on_watched(context, item->tag, item->error);
		break;
	case ITEM_WITHDRAW:
		events->on_withdrawn(context, item->tag, item->error);
		break;
	}
	item_free(item);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t store_faulty_due(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	int64_t due_ms = earlier(faulty->notice_ms, faulty->expire_ms);

	/* Another session may have ended a claim that this one watches. */
	if (!faulty->expired)
		faulty->inner->ops->dispatch(faulty->inner);
	if (faulty->sent != NULL)
		due_ms = earlier(due_ms, faulty->sent->at_ms);
	if (faulty->news != NULL)
		due_ms = earlier(due_ms, faulty->news->at_ms);
	return due_ms;
}

bool store_faulty_step(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	int64_t due_ms = store_faulty_due(store);

	if (due_ms > now(faulty))
		return false;
	if (faulty->sent != NULL && faulty->sent->at_ms == due_ms)
		arrive(faulty, faulty->sent);
	else if (faulty->notice_ms == due_ms)
		notice(faulty);
	else if (faulty->expire_ms == due_ms)
		expire(faulty);
	else
		deliver(faulty, faulty->news);
	return true;
}

size_t store_faulty_under_way(const struct store *store)
{
	const struct item *item;
	size_t count;

	DL_COUNT(faulty_of(store)->sent, item, count);
	return count;
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
	return faulty_of(store)->expired;
}

/* The table. */

/* Puts an operation on its way: to the service, or nowhere. */
static void send(struct faulty *faulty, struct item *item)
{
	const struct faulty_settings *settings = &faulty->settings;

	if (faulty->killed || (faulty->expired && faulty->telling)) {
		item_free(item); /* nothing is sent in a session that is known to be over */
	} else if (faulty->connected) {
		item->at_ms = now(faulty) + some_delay(faulty);
		if (item->at_ms < faulty->arrival_ms)
			item->at_ms = faulty->arrival_ms;
		faulty->arrival_ms = item->at_ms;
		DL_APPEND(faulty->sent, item);
	} else if (faulty->notice_ms == INT64_MAX &&
		   !prng_chance(settings->prng, settings->wait_percent)) {
		answer_reset(faulty, item, some_delay(faulty));
		item_free(item);
	} else {
		item->at_ms = INT64_MAX;
		DL_APPEND(faulty->sent, item);
	}
	if (settings->on_operation != NULL)
		settings->on_operation(settings->context, &faulty->store);
}

static struct item *operation(struct store *store, enum item_kind kind, void *tag, const char *path,
			      const char *name)
{
	struct item *item = item_create(faulty_of(store), kind, tag);

	item->path = copy_text(path);
	item->name = copy_text(name);
	return item;
}

static void on_place(struct store *store, void *tag, const char *path, struct claim_id id,
		     enum claim_mode mode, const char *text, bool list)
{
	struct item *item = operation(store, ITEM_PLACE, tag, path, NULL);

	item->id = id;
	item->mode = mode;
	item->text = copy_text(text);
	item->flag = list;
	send(faulty_of(store), item);
}

static void on_list(struct store *store, void *tag, const char *path, bool sync)
{
	struct item *item = operation(store, ITEM_LIST, tag, path, NULL);

	item->flag = sync;
	send(faulty_of(store), item);
}

static void on_watch(struct store *store, void *tag, const char *path, const char *name)
{
	send(faulty_of(store), operation(store, ITEM_WATCH, tag, path, name));
}

static void on_withdraw(struct store *store, void *tag, const char *path, const char *name,
			int32_t sequence)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = operation(store, ITEM_WITHDRAW, tag, path, name);

	item->sequence = sequence;
	if (faulty->settings.on_withdrawing != NULL && !faulty->killed)
		faulty->settings.on_withdrawing(faulty->settings.context, path, name);
	send(faulty, item);
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

static void on_close(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	faulty->inner->ops->close(faulty->inner);
	forget(faulty);
	free(faulty);
}

static const struct store_ops faulty_ops = {
	.descriptor = on_descriptor,
	.dispatch = on_dispatch,
	.place = on_place,
	.list = on_list,
	.watch = on_watch,
	.withdraw = on_withdraw,
	.describe = on_describe,
	.close = on_close,
};

int store_faulty_open(struct local_service *service, const struct faulty_settings *settings,
		      const struct store_events *events, void *context, struct store **ret)
{
	struct faulty *faulty = must_have(calloc(1, sizeof(*faulty)));
	int error;

	faulty->store.ops = &faulty_ops;
	faulty->settings = *settings;
	faulty->events = events;
	faulty->context = context;
	faulty->told = STORE_SUSPENDED;
	faulty->notice_ms = INT64_MAX;
	faulty->expire_ms = INT64_MAX;
	error = store_local_open(service, &inner_events, faulty, &faulty->inner);
	if (error < 0) {
		free(faulty);
		return error;
	}
	faulty->inner->ops->dispatch(faulty->inner);
	store_faulty_reconnect(&faulty->store);
	*ret = &faulty->store;
	return 0;
}
