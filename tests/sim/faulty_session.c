/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_session.h. Single-threaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../told.h"
#include "faulty_files.h"
#include "faulty_session.h"
#include "unclaimed.h"

static int64_t now(const struct session *session)
{
	return *session->settings->now_ms;
}

/* What the answer shows. */
static void show_queue(struct item *item, const struct store_entry *entries, size_t count)
{
	item_keep_entries(item, entries, count);
	unclaimed_add(item->session->settings->unclaimed, item);
}

/* The inner store answers: onto the way back, or nowhere if nobody waits for it any more. */
bool session_answer(struct item *item, int error)
{
	if (item->answered) {
		item_free(item);
		return false;
	}
	item->error = error;
	faulty_answered(item->session->faulty, item);
	return true;
}

static void on_session(void *context, enum store_session told, int64_t timeout_ms)
{
	/* It is faulty_connection.c that tells of sessions. */
}

/* A list was not shown: nobody hears of the attention that came with it. */
static void forget_attention(struct session *session, uint64_t number)
{
	struct item *item;

	DL_FOREACH (session->watching, item)
		item->answered |= item->kind == ITEM_ATTEND && item->attention == number;
}

/* What else the item asks for, if somebody is going to hear its answer; NULL: nothing. */
static struct item *attention_of(struct session *session, struct item *asks)
{
	struct item *item;

	if (!asks->attend || asks->answered)
		return NULL;
	item = item_create(session, ITEM_ATTEND, asks->attend_tag);
	item->path = copy_text(asks->path);
	item->attention = asks->attention = ++session->attentions;
	return item;
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct session *session = context;
	const struct faulty_settings *settings = session->settings;
	struct item *item = tag;

	if (error == 0 && settings->on_standing != NULL)
		settings->on_standing(settings->context, session->over, item->path, name,
				      item->text);
	if (!session_answer(item, error))
		return;
	item->name = copy_text(name);
	item->order = order;
	item->after = after;
	if (entries != NULL && !prng_chance(settings->prng, settings->unlisted_percent))
		show_queue(item, entries, count);
	else if (item->attention != 0)
		forget_attention(session, item->attention);
}

/* Whether the queue is still what the stale server said. */
static bool is_as_told(const struct item *told, const struct store_entry *entries, size_t count)
{
	if (told->count != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(told->entries[i].name, entries[i].name) != 0 ||
		    told->entries[i].orphan != entries[i].orphan)
			return false;
	return true;
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct item *item = tag;

	if (item->kind == ITEM_ATTEND)
		item->flag = item->flag && !is_as_told(item, entries, count);
	else if (session_answer(item, error))
		show_queue(item, entries, count);
}

static void on_changed(void *context, void *tag)
{
	struct session *session = context;
	struct item *item = tag;

	DL_DELETE(session->watching, item);
	session_answer(item, 0);
}

/* As with ZooKeeper, a watch tells once that there is new data: then it is set up again, which
 * brings the data. */
static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	struct item *watch = tag, *item;
	bool first = watch->sure_at_ms == INT64_MAX;

	if (watch->answered)
		return;
	if (watch->text != NULL) {
		/* The stale server has told this already, unless it was written since: the same
		 * text counts as new, as it does for ZooKeeper. */
		bool told = watch->version == version && strcmp(watch->text, text) == 0;

		free(watch->text);
		watch->text = NULL;
		if (told)
			return;
	}
	item = item_create(watch->session, first ? ITEM_READ : ITEM_CHANGED, watch->tag);
	item->path = copy_text(watch->path);
	item->name = copy_text(watch->name);
	item->sure_at_ms = watch->sure_at_ms;
	item->version = version;
	if (first || watch->session->settings->rules->by_lock)
		item->text = copy_text(text);
	else
		watch->answered = true;
	faulty_answered(watch->session->faulty, item);
	if (first)
		watch->sure_at_ms = item->sure_at_ms = item->at_ms;
}

static void on_watched(void *context, void *tag, int error)
{
	struct session *session = context;
	struct item *item = tag;

	DL_DELETE(session->watching, item);
	if (error == -EOWNERDEAD && !session->settings->rules->tells_ends)
		error = 0;
	session_answer(item, error);
}

static void on_amended(void *context, void *tag, int error)
{
	session_answer(tag, error);
}

static void on_marked(void *context, void *tag, int error)
{
	session_answer(tag, error);
}

static void on_aged(void *context, void *tag, int error, int64_t age_ms, const char *text)
{
	struct item *item = tag;

	item->age_ms = age_ms;
	item->text = copy_text(text);
	session_answer(item, error);
}

static void on_withdrawn(void *context, void *tag, int error)
{
	session_answer(tag, error);
}

static void on_hold(void *context, void *tag, int error)
{
	struct session *session = context;
	const struct faulty_settings *settings = session->settings;
	struct item *item = tag;

	if (error == 0 && settings->on_turned != NULL)
		settings->on_turned(settings->context, item->path, item->name);
	session_answer(item, error);
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	struct item *item = tag;

	item->path = copy_text(missing);
	item->stamp = stamp;
	session_answer(item, error);
}

static const struct store_events inner_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_watched,
	.on_amended = on_amended,
	.on_marked = on_marked,
	.on_aged = on_aged,
	.on_withdrawn = on_withdrawn,
	.on_hold = on_hold,
	.on_proved = on_proved,
};

struct session *session_create(struct local_service *service, struct faulty *faulty,
			       const struct faulty_settings *settings)
{
	struct session *session = must_have(calloc(1, sizeof(*session)));

	session->service = service;
	session->faulty = faulty;
	session->settings = settings;
	session->servers.rules = settings->rules->servers;
	session->servers.rules->begin(&session->servers, settings);
	if (store_local_open(service, &inner_events, session, &session->inner) < 0)
		abort();
	session->inner->ops->dispatch(session->inner);
	return session;
}

void session_free(struct session *session)
{
	session->inner->ops->close(session->inner, nobody_is_told());
	items_free(&session->sent);
	items_free(&session->watching);
	items_free(&session->known);
	session_drop_keep(session);
	free(session);
}

int64_t session_soonest_end_ms(struct session *session)
{
	return session->expired ? INT64_MIN : session->servers.rules->soonest_ms(&session->servers);
}

void session_set_silent(struct session *session, bool silent)
{
	session->servers.rules->set_silent(&session->servers, silent);
}

void session_lose_server(struct session *session)
{
	const struct faulty_settings *settings = session->settings;

	session->servers.rules->disconnect(&session->servers, prng_chance(settings->prng, 50));
	session_drop_keep(session);
}

/* When the service ends it; that a session has ended which the client has given up is due at once.
 */
static int64_t expiry_ms(struct session *session)
{
	if (session->expired)
		return session->over ? now(session) : INT64_MAX;
	return session->servers.rules->expiry_ms(&session->servers);
}

void session_keep(struct session *session, struct item *item)
{
	session_drop_keep(session);
	session->keep = item;
}

void session_drop_keep(struct session *session)
{
	if (session->keep != NULL)
		item_free(session->keep);
	session->keep = NULL;
}

/* It arrives. A member that has nobody to ask keeps it. One that knows that the lease is over says
 * so, and the client hears of that otherwise. */
static void arrive_keep(struct session *session)
{
	struct item *item = session->keep;

	item->member = session->servers.rules->keep(&session->servers);
	if (item->member == 0 || (session->expired && !session->cut_off)) {
		item->at_ms = INT64_MAX;
		return;
	}
	session->keep = NULL;
	faulty_answered(session->faulty, item);
}

void session_expire(struct session *session)
{
	struct item *item, *next;

	session->expired = true;
	store_local_expire(session->inner);
	/* Its watches are gone there; no answer will come for these. */
	items_free(&session->watching);
	DL_FOREACH_SAFE (session->sent, item, next) {
		if (item->answered) {
			DL_DELETE(session->sent, item);
			item_free(item);
		} else {
			item->at_ms = INT64_MAX;
		}
	}
}

/* What a server knows that is cut off and does not hear of anything. */

static void on_known_listed(void *context, void *tag, int error, const struct store_entry *entries,
			    size_t count)
{
	item_keep_entries(tag, entries, count);
}

static void on_known_read(void *context, void *tag, const char *text, uint32_t version)
{
	struct item *item = tag;

	item->text = copy_text(text);
	item->version = version;
}

static const struct store_events known_events = {
	.on_session = on_session,
	.on_listed = on_known_listed,
	.on_read = on_known_read,
};

static struct item *know(struct session *session, enum item_kind kind, const char *path,
			 const char *name)
{
	struct item *item = item_create(session, kind, NULL);

	item->path = copy_text(path);
	item->name = copy_text(name);
	DL_APPEND(session->known, item);
	return item;
}

static void know_queue(void *context, const char *path)
{
	struct session *session = context;
	struct item *queue = know(session, ITEM_LIST, path, NULL);
	struct store *observer;

	if (store_local_open(session->service, &known_events, NULL, &observer) < 0)
		abort();
	observer->ops->list(observer, queue, path, true, false);
	observer->ops->dispatch(observer);
	for (size_t i = 0; i < queue->count; i++) {
		const char *name = queue->entries[i].name;

		if (queue->entries[i].orphan)
			continue;
		observer->ops->watch(observer, know(session, ITEM_READ, path, name), path, name);
	}
	observer->ops->dispatch(observer);
	observer->ops->close(observer, nobody_is_told());
}

static struct item *known(const struct session *session, enum item_kind kind, const char *path,
			  const char *name)
{
	struct item *item;

	DL_FOREACH (session->known, item)
		if (item->kind == kind && strcmp(item->path, path) == 0 &&
		    (name == NULL || strcmp(item->name, name) == 0))
			return item;
	return NULL;
}

/* What the server was asked to attend to while it was stale: it tells at once if the queue has
 * changed. */
static void attend_in_earnest(struct session *session, struct item *item)
{
	const struct store_ops *inner = session->inner->ops;

	inner->list(session->inner, item, item->path, false, false);
	inner->dispatch(session->inner);
	if (item->flag)
		on_changed(session, item);
	else
		inner->list(session->inner, item, item->path, false, true);
}

/* Shows the session everything up to now. */
static void catch_up(struct session *session)
{
	struct item *item, *next;

	items_free(&session->known);
	if (session->expired)
		return;
	session->inner->ops->dispatch(session->inner);
	DL_FOREACH_SAFE (session->watching, item, next) {
		if (!item->flag)
			continue;
		if (item->kind == ITEM_ATTEND) {
			attend_in_earnest(session, item);
			continue;
		}
		item->flag = false;
		session->inner->ops->watch(session->inner, item, item->path, item->name);
	}
	session->inner->ops->dispatch(session->inner);
	if (session->stale)
		local_service_each(session->service, know_queue, session);
	if (session->stale)
		files_know(session);
}

void session_cut_off(struct session *session, bool cut_off)
{
	session->lags = false;
	session->cut_off = cut_off;
	session->servers.rules->cut_off(&session->servers, cut_off);
	session->stale =
		cut_off && prng_chance(session->settings->prng, session->settings->stale_percent);
	if (!cut_off && session->keep != NULL)
		session->keep->at_ms = now(session);
	catch_up(session);
}

static struct item *first_sent(const struct session *session)
{
	struct item *item, *first = session->sent;

	DL_FOREACH (session->sent, item)
		if (item->at_ms < first->at_ms)
			first = item;
	return first;
}

bool session_glimpse(struct session *session)
{
	struct item *item;

	if (!session->cut_off || session->expired || session->servers.rules->glimpse == NULL ||
	    !session->servers.rules->glimpse(&session->servers))
		return false;
	while ((item = first_sent(session)) != NULL && item->at_ms <= now(session))
		session_arrive(session, item);
	return true;
}

void session_lag(struct session *session)
{
	session->lags = session->stale =
		!session->expired &&
		prng_chance(session->settings->prng, session->settings->stale_percent);
	catch_up(session);
}

void session_keep_up(struct session *session)
{
	if (!session->lags)
		return;
	session->lags = session->stale = false;
	catch_up(session);
}

/* Where watches do not tell in the order of the service, the attention to what is placed ends at
 * once (faulty_deliver.c). */
static void arrive_place(struct session *session, struct item *item)
{
	bool in_order = !session->settings->rules->by_lock;
	struct item *attention = in_order ? attention_of(session, item) : NULL;

	if (attention != NULL)
		DL_APPEND(session->watching, attention);
	session->inner->ops->place(session->inner, item, item->path, &item->claim, item->text,
				   item->flag, attention);
}

static void arrive_list(struct session *session, struct item *item)
{
	const struct store_ops *inner = session->inner->ops;
	struct item *attention = attention_of(session, item);

	inner->list(session->inner, item, item->path, item->flag, false);
	if (attention == NULL)
		return;
	DL_APPEND(session->watching, attention);
	inner->list(session->inner, attention, attention->path, false, true);
}

/* A list or a watch arrives at a server that does not hear of anything. */
static void arrive_stale(struct session *session, struct item *item)
{
	const struct item *found =
		item->kind == ITEM_LIST ? known(session, ITEM_LIST, item->path, NULL)
		: item->name != NULL	? known(session, ITEM_READ, item->path, item->name)
					: files_known(session, item->path);

	if (item->kind == ITEM_LIST) {
		const struct store_entry *entries = found == NULL ? NULL : found->entries;
		size_t count = found == NULL ? 0 : found->count;
		struct item *attention = attention_of(session, item);

		if (session_answer(item, 0))
			show_queue(item, entries, count);
		if (attention == NULL)
			return;
		DL_APPEND(session->watching, attention);
		attention->flag = true;
		item_keep_entries(attention, entries, count);
	} else if (found == NULL) {
		session_answer(item, 0);
	} else {
		DL_APPEND(session->watching, item);
		on_read(session, item, found->text, found->version);
		item->flag = true;
		item->text = copy_text(found->text);
		item->version = found->version;
	}
}

void session_arrive(struct session *session, struct item *item)
{
	const struct store_ops *inner = session->inner->ops;

	DL_DELETE(session->sent, item);
	/* What comes late from a broken connection was noted nowhere that is known. */
	if (!item->answered)
		item->member = session->servers.rules->note(
			&session->servers, item->kind == ITEM_PROVE || item->kind == ITEM_TOUCH);
	if (item->kind != ITEM_CLOSE &&
	    prng_chance(session->settings->prng, session->settings->refused_percent)) {
		session_answer(item, -EIO);
		return;
	}
	if (item->kind == ITEM_WATCH && item->name != NULL &&
	    unclaimed_find(session->settings->unclaimed, item->path, item->name)) {
		session_answer(item, -ENXIO);
		return;
	}
	if (session->stale) {
		if (item->kind == ITEM_WATCH || (item->kind == ITEM_LIST && !item->flag)) {
			arrive_stale(session, item);
			return;
		}
		if (files_are_read(item)) {
			files_arrive_stale(session, item);
			return;
		}
		if (session->lags && !item->answered)
			session_keep_up(session);
		else
			catch_up(session);
	}
	switch (item->kind) {
	case ITEM_SESSION:
	case ITEM_ATTEND:
	case ITEM_READ:
	case ITEM_CHANGED:
	case ITEM_KEEP:
		abort();
	case ITEM_PLACE:
		arrive_place(session, item);
		break;
	case ITEM_LIST:
		arrive_list(session, item);
		break;
	case ITEM_WATCH:
		DL_APPEND(session->watching, item);
		inner->watch(session->inner, item, item->path, item->name);
		break;
	case ITEM_AMEND:
		inner->amend(session->inner, item, item->path, item->name, item->text,
			     item->version);
		break;
	case ITEM_MARK:
		inner->mark(session->inner, item, item->path, item->name, item->text, 0);
		break;
	case ITEM_AGE:
		inner->age(session->inner, item, item->path, item->name);
		break;
	case ITEM_WITHDRAW:
		if (item->text != NULL) {
			inner->bequeath(session->inner, nobody_is_told(), item, item->path,
					item->name, item->order, item->text);
			break;
		}
		inner->withdraw(session->inner, nobody_is_told(), item, item->path, item->name,
				item->order, item->flag);
		break;
	case ITEM_HOLD:
		inner->hold(session->inner, item, item->path, item->name, &item->claim, item->text,
			    item->flag);
		break;
	case ITEM_OUTLAST:
		inner->outlast(session->inner, nobody_is_told(), item, item->path, item->name,
			       item->version);
		break;
	case ITEM_PROVE:
		inner->prove(session->inner, item, item->proofs, item->proofs_count);
		break;
	case ITEM_ALTER:
	case ITEM_FILE:
	case ITEM_FILES:
		files_arrive(session, item);
		break;
	case ITEM_TOUCH:
		session_answer(item, 0);
		return;
	case ITEM_CLOSE:
		item_free(item);
		session_expire(session);
		return;
	}
	inner->dispatch(session->inner);
}

void session_orphan(struct session *session)
{
	struct item *item, *next;

	DL_FOREACH (session->watching, item)
		item->answered = true;
	DL_FOREACH_SAFE (session->sent, item, next) {
		item->answered = true;
		if (item->at_ms == INT64_MAX) {
			DL_DELETE(session->sent, item);
			item_free(item);
		}
	}
}

void session_give_up(struct session *session, int64_t close_ms)
{
	struct item *item;

	session->over = true;
	session_orphan(session);
	session_drop_keep(session);
	if (close_ms != INT64_MAX) {
		item = item_create(session, ITEM_CLOSE, NULL);
		item->at_ms = close_ms;
		DL_APPEND(session->sent, item);
	}
	session_set_silent(session, true);
}

/* When the first operation under way arrives. A server that is cut off keeps a write, and so what
 * comes behind it. */
static int64_t arrival_due(const struct session *session)
{
	const struct item *item = first_sent(session);

	if (item == NULL || session->expired ||
	    (session->cut_off &&
	     (session->settings->rules->asks_quorum ||
	      (item->kind != ITEM_LIST && item->kind != ITEM_WATCH && !files_are_read(item)))))
		return INT64_MAX;
	return item->at_ms;
}

int64_t session_due(struct session *session)
{
	int64_t keep_ms = session->keep != NULL ? session->keep->at_ms : INT64_MAX;
	int64_t arrival_ms, end_ms = expiry_ms(session);

	if (keep_ms < end_ms)
		end_ms = keep_ms;
	/* Another session may have changed or ended a claim that this one watches. */
	if (!session->expired && !session->stale)
		session->inner->ops->dispatch(session->inner);
	arrival_ms = arrival_due(session);
	return arrival_ms < end_ms ? arrival_ms : end_ms;
}

void session_step(struct session *session)
{
	int64_t arrival_ms = arrival_due(session), end_ms = expiry_ms(session);
	int64_t keep_ms = session->keep != NULL ? session->keep->at_ms : INT64_MAX;
	const struct servers_rules *rules = session->servers.rules;

	if (keep_ms <= now(session) && keep_ms <= arrival_ms && keep_ms <= end_ms)
		arrive_keep(session);
	else if (arrival_ms != INT64_MAX && arrival_ms <= end_ms)
		session_arrive(session, first_sent(session));
	else if (end_ms <= now(session) &&
		 (session->over || rules->put_off == NULL || !rules->put_off(&session->servers)))
		session_expire(session);
}
