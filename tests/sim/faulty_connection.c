/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's connection and its session, and what becomes of operations, events and watches when
 * one of them ends. Single-threaded.
 */
#include <errno.h>

#include <utlist.h>

#include "faulty_client.h"

void faulty_begin_lease(struct faulty *faulty, int64_t timeout_ms)
{
	faulty->lease.rules->begin(&faulty->lease, timeout_ms, faulty_client_clock(faulty));
}

void faulty_listen(struct faulty *faulty)
{
	session_set_silent(faulty->session, !faulty->connected || faulty->paused);
}

/* The same, but when it notices the broken connection. */
static void answer_reset_at_notice(struct faulty *faulty, struct item *item)
{
	if (item->answered)
		return;
	faulty_answer_reset(faulty, item, 0);
	faulty->news->prev->at_ms = INT64_MAX;
}

/* What asked for the attention is answered otherwise: the client does not know of it. */
static bool is_unknown(const struct faulty *faulty, const struct item *attention)
{
	const struct item *item;

	DL_FOREACH (faulty->news, item)
		if (item->kind != ITEM_ATTEND && item->attention == attention->attention)
			return item->error == -ECONNRESET;
	return false;
}

/* The data of a claim may change unseen from now on. */
static void tell_unseen(struct faulty *faulty, const struct item *watch)
{
	struct item *item;

	if (watch->sure_at_ms > faulty_now(faulty))
		return; /* nothing was told of it yet */
	item = item_create(NULL, ITEM_CHANGED, watch->tag);
	item->path = copy_text(watch->path);
	item->name = copy_text(watch->name);
	item->at_ms = INT64_MAX;
	DL_APPEND(faulty->news, item);
}

/* The store sets the watch up again when there is a connection. */
static void watch_again(struct faulty *faulty, const struct item *watch)
{
	struct item *item = item_create(faulty->session, ITEM_WATCH, watch->tag);

	item->path = copy_text(watch->path);
	item->name = copy_text(watch->name);
	item->at_ms = item->sure_at_ms = INT64_MAX;
	DL_APPEND(faulty->session->sent, item);
}

/* A store that sets watches up again loses an event. Returns whether the item was one. */
static bool lose_watched(struct faulty *faulty, struct item *item)
{
	if (item->kind == ITEM_ATTEND && !is_unknown(faulty, item))
		return true; /* it is told that there is no more to be told */
	if (item->kind == ITEM_CHANGED && item->text == NULL)
		return true;
	if (item->kind != ITEM_WATCH && item->kind != ITEM_READ && item->kind != ITEM_CHANGED)
		return false;
	DL_DELETE(faulty->news, item);
	if (item->kind == ITEM_WATCH) {
		tell_unseen(faulty, item);
		watch_again(faulty, item);
	}
	item_free(item);
	return true;
}

/* The same for what stands: nobody hears of that any more. */
static void lose_watching(struct faulty *faulty)
{
	struct item *item, *told;

	DL_FOREACH (faulty->session->watching, item) {
		if (item->answered)
			continue;
		item->answered = true;
		if (item->kind == ITEM_WATCH) {
			tell_unseen(faulty, item);
			watch_again(faulty, item);
		} else if (!is_unknown(faulty, item)) {
			told = item_create(NULL, ITEM_ATTEND, item->tag);
			told->attention = item->attention;
			told->at_ms = INT64_MAX;
			DL_APPEND(faulty->news, told);
		}
	}
}

/* Of a file's watch that stands the client is told at once that it is lost; it is set up again when
 * it can be. */
static void lose_file_watch(struct faulty *faulty, struct item *watch)
{
	watch->answered = true;
	tell_unseen(faulty, watch);
}

/* What is under way may be carried out, or not; nobody hears of it. */
static void lose_sent(struct faulty *faulty, bool effective, int64_t late_ms)
{
	struct prng *prng = faulty->settings.prng;
	struct item *item;

	DL_FOREACH (faulty->session->sent, item) {
		if (item->answered)
			continue;
		if (item->kind == ITEM_WATCH) {
			item->at_ms = INT64_MAX;
			continue;
		}
		answer_reset_at_notice(faulty, item);
		if (item->behind || !effective || prng_chance(prng, 50))
			item->at_ms = INT64_MAX;
		else if (item->at_ms != INT64_MAX)
			item->at_ms += late_ms == 0 ? 0 : prng_below(prng, late_ms);
	}
}

/* Events that have not reached the client when the connection breaks never do: it sees its
 * operations fail, and what happens to watched claims comes again later. */
static void lose_news(struct faulty *faulty)
{
	struct item *item, *next;

	DL_FOREACH_SAFE (faulty->news, item, next) {
		if (faulty->paused && item->at_ms <= faulty_now(faulty))
			continue; /* it is here, and will be read first */
		item->at_ms = INT64_MAX;
		if (item->error == -ECONNRESET)
			continue;
		if (faulty_by_lock(faulty) && lose_watched(faulty, item))
			continue;
		if (item->kind == ITEM_SESSION || item->kind == ITEM_KEEP) {
			DL_DELETE(faulty->news, item);
			item_free(item);
		} else if (item->kind == ITEM_ATTEND) {
			DL_DELETE(faulty->news, item);
			if (is_unknown(faulty, item))
				item_free(item);
			else
				DL_APPEND(faulty->fired, item);
		} else if (item->kind == ITEM_READ) {
			if (item->sure_at_ms <= faulty_now(faulty))
				continue; /* it is here, as the watch is sure */
			/* The watch itself is answered: here, or where it stands. */
			DL_DELETE(faulty->news, item);
			item_free(item);
		} else if ((item->kind == ITEM_WATCH || item->kind == ITEM_CHANGED) &&
			   item->sure_at_ms <= faulty_now(faulty)) {
			DL_DELETE(faulty->news, item);
			DL_APPEND(faulty->fired, item);
		} else {
			if (item->kind == ITEM_CHANGED)
				item->kind = ITEM_WATCH;
			item->error = -ECONNRESET;
		}
	}
	faulty->telling = false;
}

void store_faulty_break(struct store *store, size_t effective, int64_t late_ms, int64_t notice_ms)
{
	struct faulty *faulty = faulty_of(store);
	struct session *session = faulty->session;
	struct item *item;

	if (!faulty->connected)
		return;
	faulty->connected = false;
	faulty->notice_ms = faulty_now(faulty) + notice_ms;
	lose_news(faulty);
	if (faulty_by_lock(faulty))
		lose_watching(faulty);
	DL_FOREACH (session->watching, item) {
		if (faulty_by_lock(faulty))
			break;
		if (item->kind == ITEM_ATTEND)
			item->answered |= is_unknown(faulty, item);
		else if (item->sure_at_ms > faulty_now(faulty))
			answer_reset_at_notice(faulty, item);
		else if (item->name == NULL && !item->answered)
			lose_file_watch(faulty, item);
	}
	if (session->cut_off)
		session_cut_off(session, false);
	session_lose_server(session);
	session_lag(session);
	faulty_listen(faulty);
	if (faulty_by_lock(faulty)) {
		lose_sent(faulty, effective > 0 && !session->expired, late_ms);
		return;
	}
	DL_FOREACH (session->sent, item) {
		answer_reset_at_notice(faulty, item);
		if (effective == 0 || session->expired) {
			item->at_ms = INT64_MAX;
			continue;
		}
		effective--;
		item->at_ms += late_ms == 0 ? 0 : prng_below(faulty->settings.prng, late_ms);
		if (item->prev->next != NULL && item->at_ms < item->prev->at_ms)
			item->at_ms = item->prev->at_ms;
	}
}

/* The stream has ended. */
static void end_keep_alives(struct faulty *faulty)
{
	if (faulty->lease.rules->disconnect != NULL)
		faulty->lease.rules->disconnect(&faulty->lease);
}

void faulty_notice(struct faulty *faulty)
{
	bool first = prng_chance(faulty->settings.prng, 50);
	bool tells = faulty->told == STORE_CONNECTED;
	struct item *item, *next;

	faulty->notice_ms = INT64_MAX;
	faulty->delivery_ms = faulty_now(faulty);
	end_keep_alives(faulty);
	items_free(&faulty->unclaimed);
	items_free(&faulty->gone);
	faulty->stream_ms = faulty_now(faulty);
	DL_FOREACH (faulty->news, item)
		item->at_ms = faulty_now(faulty);
	if (tells && first) {
		faulty_tell_session(faulty, STORE_SUSPENDED, 0);
		item = faulty->news->prev;
		DL_DELETE(faulty->news, item);
		DL_PREPEND(faulty->news, item);
	}
	DL_FOREACH_SAFE (faulty->session->sent, item, next) {
		if (item->kind == ITEM_WATCH && faulty_by_lock(faulty))
			continue;
		if (!item->answered)
			faulty_answer_reset(faulty, item, 0);
		if (item->at_ms == INT64_MAX) {
			DL_DELETE(faulty->session->sent, item);
			item_free(item);
		}
	}
	if (tells && !first)
		faulty_tell_session(faulty, STORE_SUSPENDED, 0);
}

void faulty_forget_all(struct faulty *faulty)
{
	items_free(&faulty->fired);
	items_free(&faulty->news);
	items_free(&faulty->unclaimed);
	items_free(&faulty->gone);
}

void faulty_forget(struct faulty *faulty)
{
	struct item *reset;

	faulty_forget_all(faulty);
	for (size_t i = 0; (reset = files_reset(faulty->questions, i)) != NULL; i++)
		faulty_tell(faulty, reset, 0);
}

void faulty_begin_session(struct faulty *faulty)
{
	faulty->session = session_create(faulty->service, faulty, &faulty->settings);
	faulty->arrival_ms = faulty_now(faulty);
	if (faulty->lease.rules->grant != NULL)
		faulty->lease.rules->grant(&faulty->lease, faulty->settings.timeout_ms,
					   faulty_client_clock(faulty));
}

void store_faulty_expire(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	if (faulty->session->expired)
		return;
	store_faulty_break(store, 0, 0, faulty_some_delay(faulty));
	session_expire(faulty->session);
}

void store_faulty_reconnect(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item, *next;

	if (faulty->connected || faulty->killed)
		return;
	if (faulty->notice_ms != INT64_MAX)
		faulty_notice(faulty);
	faulty->connected = true;
	faulty->connecting_ms = faulty_client_clock(faulty);
	faulty->telling = true;
	faulty->session->servers.rules->connect(&faulty->session->servers);
	faulty_listen(faulty);
	if (faulty->session->expired) {
		items_free(&faulty->session->sent);
		faulty_forget(faulty);
		faulty_tell_session(faulty, STORE_LOST, faulty_some_delay(faulty));
		faulty_tell_session(faulty, STORE_CONNECTED, faulty_some_delay(faulty));
		return;
	}
	DL_FOREACH_SAFE (faulty->session->sent, item, next) {
		if (!item->answered)
			continue;
		/* What compares no epoch may come later yet. */
		if (faulty_by_lock(faulty) && item->kind == ITEM_WITHDRAW &&
		    prng_chance(faulty->settings.prng, 50))
			item->at_ms = faulty_now(faulty) + prng_below(faulty->settings.prng,
								      faulty->settings.timeout_ms);
		else
			session_arrive(faulty->session, item);
	}
	faulty_tell_session(faulty, STORE_CONNECTED, faulty_some_delay(faulty));
	while ((item = faulty->fired) != NULL) {
		DL_DELETE(faulty->fired, item);
		faulty_tell(faulty, item, faulty_some_delay(faulty));
	}
	faulty->arrival_ms = faulty_now(faulty) + faulty_some_delay(faulty);
	if (faulty_by_lock(faulty))
		return; /* watches are sent when the client knows */
	DL_FOREACH (faulty->session->sent, item)
		item->at_ms = faulty->arrival_ms;
}

void store_faulty_elect(struct store *store, int64_t notice_ms)
{
	struct faulty *faulty = faulty_of(store);
	int64_t under_way = (int64_t)store_faulty_under_way(store);
	struct session *session;

	faulty->session->servers.rules->elect(&faulty->session->servers);
	DL_FOREACH (faulty->given_up, session)
		session->servers.rules->elect(&session->servers);
	/* etcd's members keep their clients. */
	if (!faulty->session->cut_off &&
	    (faulty->lease.rules->keep == NULL || prng_chance(faulty->settings.prng, 50)))
		store_faulty_break(store, (size_t)prng_below(faulty->settings.prng, under_way + 1),
				   0, notice_ms);
}

void store_faulty_cut_off(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	if (!faulty->connected || faulty->session->expired)
		return;
	session_cut_off(faulty->session, true);
	faulty_listen(faulty);
}

void store_faulty_heal(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	session_keep_up(faulty->session);
	if (!faulty->session->cut_off)
		return;
	session_cut_off(faulty->session, false);
	if (faulty->session->expired)
		store_faulty_break(store, 0, 0, faulty_some_delay(faulty));
	else
		faulty_listen(faulty);
}

bool store_faulty_glimpse(struct store *store)
{
	return session_glimpse(faulty_of(store)->session);
}

void store_faulty_pause(struct store *store, bool paused)
{
	struct faulty *faulty = faulty_of(store);

	faulty->paused = paused;
	faulty_listen(faulty);
}

void store_faulty_kill(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	store_faulty_break(store, (size_t)prng_below(faulty->settings.prng, 4),
			   faulty->settings.delay_ms, 0);
	faulty_notice(faulty);
	faulty->killed = true;
	items_free(&faulty->news);
	files_forget(&faulty->questions);
}

void store_faulty_succeed(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	int64_t under_way = (int64_t)store_faulty_under_way(store);

	store_faulty_break(store, (size_t)prng_below(faulty->settings.prng, under_way + 1),
			   faulty->settings.delay_ms, 0);
	session_orphan(faulty->session);
	faulty_forget_all(faulty);
	files_forget(&faulty->questions);
	faulty->notice_ms = INT64_MAX;
	faulty->told = STORE_SUSPENDED;
	faulty->telling = false;
	faulty_begin_lease(faulty, 0);
}
