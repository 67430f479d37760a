/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the client's end: what it knows of its session, the events of watches that a broken
 * connection holds back (`fired`) and events that have not come (`news`). Operations that have not
 * arrived and watches that stand are the session's (faulty_session.c), those of sessions that were
 * given up too. An operation is one object that moves through these lists, and at last is the event
 * that answers it. Single-threaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "faulty_files.h"
#include "faulty_lease.h"
#include "faulty_session.h"
#include "unclaimed.h"

struct faulty {
	struct store store;
	struct store_ops ops;
	struct local_service *service;
	struct session *session;
	struct session *given_up;
	struct faulty_settings settings;
	const struct store_events *events;
	void *context;
	struct faulty_lease lease;

	bool connected;		 /* the wire is */
	bool killed;		 /* the client is dead */
	bool paused;		 /* the client does not run */
	bool telling;		 /* CONNECTED or LOST is in the news since the last reconnect */
	enum store_session told; /* what the client knows */
	int64_t notice_ms;	 /* when the client sees that the connection is broken */
	int64_t arrival_ms;	 /* nothing arrives earlier than what was sent before it */
	int64_t delivery_ms;	 /* nothing is delivered earlier than what came before it */
	int64_t stream_ms;	 /* the same for events of watches, if they have a stream */
	uint64_t made;		 /* so many answers and events */

	struct item *fired, *news;
	struct file_question *questions; /* about files that outlive close, not answered */
	struct item *unclaimed;		 /* watches: what is known to be no claim, */
	struct item *gone;		 /* or was told to be gone */
};

static struct faulty *faulty_of(const struct store *store)
{
	return (struct faulty *)store;
}

static int64_t now(const struct faulty *faulty)
{
	return *faulty->settings.now_ms;
}

static int64_t client_clock(const struct faulty *faulty)
{
	const struct faulty_settings *settings = &faulty->settings;

	return settings->clock_ms != NULL ? settings->clock_ms(settings->context) : now(faulty);
}

static int64_t moment(const struct faulty *faulty, int64_t clock_ms)
{
	const struct faulty_settings *settings = &faulty->settings;

	if (settings->moment_ms != NULL)
		return settings->moment_ms(settings->context, clock_ms);
	return clock_ms < now(faulty) ? now(faulty) : clock_ms;
}

/* Nothing is known of the next session yet. */
static void begin_lease(struct faulty *faulty, int64_t timeout_ms)
{
	faulty->lease.rules->begin(&faulty->lease, timeout_ms, client_clock(faulty));
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
	struct item *item = item_create(NULL, ITEM_SESSION, NULL);

	item->told = session;
	tell(faulty, item, delay_ms);
}

static bool by_lock(const struct faulty *faulty)
{
	return faulty->settings.rules->by_lock;
}

/* In no order with anything else. */
static void tell_alone(struct faulty *faulty, struct item *item)
{
	item->at_ms = now(faulty) + some_delay(faulty);
	DL_APPEND(faulty->news, item);
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* An answer comes by itself: that to the next operation on the lock, which is sent after it, comes
 * later. Events of watches come by a stream: a watch is put there when the client knows what there
 * was before. */
static void tell_by_lock(struct faulty *faulty, struct item *item)
{
	const struct item *list;
	int64_t since_ms = 0;

	tell_alone(faulty, item);
	if (item->kind == ITEM_ATTEND) {
		DL_FOREACH (faulty->news, list)
			if (list->kind == ITEM_LIST && list->attention == item->attention)
				since_ms = list->at_ms;
	} else if (item->kind == ITEM_CHANGED ||
		   (item->kind == ITEM_WATCH && item->sure_at_ms != INT64_MAX)) {
		since_ms = item->sure_at_ms;
	} else {
		return;
	}
	item->at_ms = later(item->at_ms, later(since_ms, faulty->stream_ms));
	faulty->stream_ms = item->at_ms;
}

/* What is delivered next. */
static struct item *first_news(const struct faulty *faulty)
{
	struct item *item, *first = NULL;

	DL_FOREACH (faulty->news, item)
		if (first == NULL || item->at_ms < first->at_ms)
			first = item;
	return first;
}

void faulty_answered(struct faulty *faulty, struct item *item)
{
	item->made = ++faulty->made;
	if (item->kind == ITEM_KEEP)
		tell_alone(faulty, item);
	else if (faulty->connected && by_lock(faulty))
		tell_by_lock(faulty, item);
	else if (faulty->connected)
		tell(faulty, item, some_delay(faulty));
	else
		DL_APPEND(faulty->fired, item);
}

/* The client pings only as long as nothing is wrong. */
static void listen(struct faulty *faulty)
{
	session_set_silent(faulty->session, !faulty->connected || faulty->paused);
}

/* The client learns that an operation failed, while its effect may be still to come. */
static void answer_reset(struct faulty *faulty, struct item *item, int64_t delay_ms)
{
	struct item *reset = item_create(NULL, item->kind, item->tag);

	reset->error = -ECONNRESET;
	item->answered = true;
	tell(faulty, reset, delay_ms);
}

/* The same, but when it notices the broken connection. */
static void answer_reset_at_notice(struct faulty *faulty, struct item *item)
{
	if (item->answered)
		return;
	answer_reset(faulty, item, 0);
	faulty->news->prev->at_ms = INT64_MAX;
}

/* The list that asked for the attention is answered otherwise: the client does not know of it. */
static bool is_unknown(const struct faulty *faulty, const struct item *attention)
{
	const struct item *item;

	DL_FOREACH (faulty->news, item)
		if (item->kind == ITEM_LIST && item->attention == attention->attention)
			return item->error == -ECONNRESET;
	return false;
}

/* The data of a claim may change unseen from now on. */
static void tell_unseen(struct faulty *faulty, const struct item *watch)
{
	struct item *item;

	if (watch->sure_at_ms > now(faulty))
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
		if (faulty->paused && item->at_ms <= now(faulty))
			continue; /* it is here, and will be read first */
		item->at_ms = INT64_MAX;
		if (item->error == -ECONNRESET)
			continue;
		if (by_lock(faulty) && lose_watched(faulty, item))
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
			if (item->sure_at_ms <= now(faulty))
				continue; /* it is here, as the watch is sure */
			/* The watch itself is answered: here, or where it stands. */
			DL_DELETE(faulty->news, item);
			item_free(item);
		} else if ((item->kind == ITEM_WATCH || item->kind == ITEM_CHANGED) &&
			   item->sure_at_ms <= now(faulty)) {
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
	faulty->notice_ms = now(faulty) + notice_ms;
	lose_news(faulty);
	if (by_lock(faulty))
		lose_watching(faulty);
	DL_FOREACH (session->watching, item) {
		if (by_lock(faulty))
			break;
		if (item->kind == ITEM_ATTEND)
			item->answered |= is_unknown(faulty, item);
		else if (item->sure_at_ms > now(faulty))
			answer_reset_at_notice(faulty, item);
		else if (item->name == NULL && !item->answered)
			lose_file_watch(faulty, item);
	}
	if (session->cut_off)
		session_cut_off(session, false);
	session_lose_server(session);
	session_lag(session);
	listen(faulty);
	if (by_lock(faulty)) {
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

/* The client sees that the connection is broken. */
static void notice(struct faulty *faulty)
{
	bool first = prng_chance(faulty->settings.prng, 50);
	bool tells = faulty->told == STORE_CONNECTED;
	struct item *item, *next;

	faulty->notice_ms = INT64_MAX;
	faulty->delivery_ms = now(faulty);
	end_keep_alives(faulty);
	items_free(&faulty->unclaimed);
	items_free(&faulty->gone);
	faulty->stream_ms = now(faulty);
	DL_FOREACH (faulty->news, item)
		item->at_ms = now(faulty);
	if (tells && first) {
		tell_session(faulty, STORE_SUSPENDED, 0);
		item = faulty->news->prev;
		DL_DELETE(faulty->news, item);
		DL_PREPEND(faulty->news, item);
	}
	DL_FOREACH_SAFE (faulty->session->sent, item, next) {
		if (item->kind == ITEM_WATCH && by_lock(faulty))
			continue;
		if (!item->answered)
			answer_reset(faulty, item, 0);
		if (item->at_ms == INT64_MAX) {
			DL_DELETE(faulty->session->sent, item);
			item_free(item);
		}
	}
	if (tells && !first)
		tell_session(faulty, STORE_SUSPENDED, 0);
}

static void forget_all(struct faulty *faulty)
{
	items_free(&faulty->fired);
	items_free(&faulty->news);
	items_free(&faulty->unclaimed);
	items_free(&faulty->gone);
}

/* The client forgets what was called in the session that is over, but for questions. */
static void forget(struct faulty *faulty)
{
	struct item *reset;

	forget_all(faulty);
	for (size_t i = 0; (reset = files_reset(faulty->questions, i)) != NULL; i++)
		tell(faulty, reset, 0);
}

static void begin_session(struct faulty *faulty)
{
	faulty->session = session_create(faulty->service, faulty, &faulty->settings);
	faulty->arrival_ms = now(faulty);
	if (faulty->lease.rules->grant != NULL)
		faulty->lease.rules->grant(&faulty->lease, faulty->settings.timeout_ms,
					   client_clock(faulty));
}

void store_faulty_expire(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	if (faulty->session->expired)
		return;
	store_faulty_break(store, 0, 0, some_delay(faulty));
	session_expire(faulty->session);
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
	faulty->telling = true;
	faulty->session->servers.rules->connect(&faulty->session->servers);
	listen(faulty);
	if (faulty->session->expired) {
		items_free(&faulty->session->sent);
		forget(faulty);
		tell_session(faulty, STORE_LOST, some_delay(faulty));
		tell_session(faulty, STORE_CONNECTED, some_delay(faulty));
		return;
	}
	DL_FOREACH_SAFE (faulty->session->sent, item, next) {
		if (!item->answered)
			continue;
		/* What compares no epoch may come later yet. */
		if (by_lock(faulty) && item->kind == ITEM_WITHDRAW &&
		    prng_chance(faulty->settings.prng, 50))
			item->at_ms = now(faulty) + prng_below(faulty->settings.prng,
							       faulty->settings.timeout_ms);
		else
			session_arrive(faulty->session, item);
	}
	tell_session(faulty, STORE_CONNECTED, some_delay(faulty));
	while ((item = faulty->fired) != NULL) {
		DL_DELETE(faulty->fired, item);
		tell(faulty, item, some_delay(faulty));
	}
	faulty->arrival_ms = now(faulty) + some_delay(faulty);
	if (by_lock(faulty))
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
	listen(faulty);
}

void store_faulty_heal(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	session_keep_up(faulty->session);
	if (!faulty->session->cut_off)
		return;
	session_cut_off(faulty->session, false);
	if (faulty->session->expired)
		store_faulty_break(store, 0, 0, some_delay(faulty));
	else
		listen(faulty);
}

void store_faulty_pause(struct store *store, bool paused)
{
	struct faulty *faulty = faulty_of(store);

	faulty->paused = paused;
	listen(faulty);
}

void store_faulty_kill(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	store_faulty_break(store, (size_t)prng_below(faulty->settings.prng, 4),
			   faulty->settings.delay_ms, 0);
	notice(faulty);
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
	forget_all(faulty);
	files_forget(&faulty->questions);
	faulty->notice_ms = INT64_MAX;
	faulty->told = STORE_SUSPENDED;
	faulty->telling = false;
	begin_lease(faulty, 0);
}

void store_faulty_set_context(struct store *store, void *context)
{
	faulty_of(store)->context = context;
}

/* Whether the two are of one lock, and so one after the other. Watches and proofs are in no order.
 */
static bool are_in_order(const struct item *a, const struct item *b)
{
	static const bool in_order[ITEM_CLOSE + 1] = {
		[ITEM_PLACE] = true, [ITEM_LIST] = true,     [ITEM_AMEND] = true,
		[ITEM_MARK] = true,  [ITEM_WITHDRAW] = true,
	};

	return in_order[a->kind] && in_order[b->kind] && a->path != NULL && b->path != NULL &&
	       strcmp(a->path, b->path) == 0;
}

/* Whether the answer to another one is awaited first. */
static bool has_to_wait(const struct faulty *faulty, const struct item *item)
{
	const struct item *other;

	DL_FOREACH (faulty->news, other)
		if (are_in_order(item, other))
			return true;
	DL_FOREACH (faulty->session->sent, other) {
		if (other == item)
			return false;
		if (!other->answered && are_in_order(item, other))
			return true;
	}
	return false;
}

static void send_by_lock(struct faulty *faulty, struct item *item)
{
	if (faulty->told != STORE_CONNECTED && item->kind != ITEM_WATCH) {
		answer_reset(faulty, item, 0);
		item_free(item);
		return;
	}
	item->behind = has_to_wait(faulty, item);
	item->at_ms = INT64_MAX;
	if (faulty->connected && faulty->told == STORE_CONNECTED && !item->behind)
		item->at_ms = now(faulty) + some_delay(faulty);
	DL_APPEND(faulty->session->sent, item);
}

/* Sends what waited for an answer, or for a connection. */
static void send_waiting(struct faulty *faulty)
{
	struct item *item;

	DL_FOREACH (faulty->session->sent, item) {
		if (item->answered || item->at_ms != INT64_MAX || !faulty->connected ||
		    faulty->told != STORE_CONNECTED || faulty->session->expired ||
		    has_to_wait(faulty, item))
			continue;
		item->behind = false;
		item->sent_ms = client_clock(faulty);
		item->at_ms = now(faulty) + some_delay(faulty);
	}
}

/* It is answered whatever becomes of its session. */
static bool is_question(const struct item *item)
{
	return item->kind == ITEM_ALTER || item->kind == ITEM_FILE || item->kind == ITEM_FILES;
}

/* Puts an operation on its way: to the service, or nowhere. */
static void send(struct faulty *faulty, struct item *item)
{
	const struct faulty_settings *settings = &faulty->settings;
	enum item_kind item_kind = item->kind;

	item->sent_ms = client_clock(faulty);
	if (faulty->killed || (faulty->session->expired && faulty->telling)) {
		/* nothing is sent in a session that is known to be over */
		if (is_question(item) && !faulty->killed)
			answer_reset(faulty, item, 0);
		item_free(item);
	} else if (by_lock(faulty)) {
		send_by_lock(faulty, item);
	} else if (faulty->connected) {
		item->at_ms = now(faulty) + some_delay(faulty);
		if (item->at_ms < faulty->arrival_ms)
			item->at_ms = faulty->arrival_ms;
		faulty->arrival_ms = item->at_ms;
		DL_APPEND(faulty->session->sent, item);
	} else if (faulty->notice_ms == INT64_MAX &&
		   !prng_chance(settings->prng, settings->wait_percent)) {
		answer_reset(faulty, item, some_delay(faulty));
		item_free(item);
	} else {
		item->at_ms = INT64_MAX;
		DL_APPEND(faulty->session->sent, item);
	}
	if (settings->on_operation != NULL && item_kind != ITEM_TOUCH)
		settings->on_operation(settings->context, &faulty->store);
}

static struct item *operation(struct store *store, enum item_kind kind, void *tag, const char *path,
			      const char *name)
{
	struct item *item = item_create(faulty_of(store)->session, kind, tag);

	item->path = copy_text(path);
	item->name = copy_text(name);
	return item;
}

static void send_watch(struct faulty *faulty, void *tag, const char *path, const char *name)
{
	struct item *item = operation(&faulty->store, ITEM_WATCH, tag, path, name);

	item->sure_at_ms = INT64_MAX;
	send(faulty, item);
}

/* What the answer says of the lease, which is told first. */
static void note_answer(struct faulty *faulty, const struct item *item)
{
	static const enum store_operation operations[] = {
		[ITEM_PLACE] = STORE_PLACE, [ITEM_LIST] = STORE_LIST,
		[ITEM_WATCH] = STORE_WATCH, [ITEM_AMEND] = STORE_AMEND,
		[ITEM_MARK] = STORE_MARK,   [ITEM_WITHDRAW] = STORE_WITHDRAW,
		[ITEM_PROVE] = STORE_PROVE, [ITEM_TOUCH] = STORE_TOUCH,
		[ITEM_ALTER] = STORE_ALTER, [ITEM_FILE] = STORE_READ,
		[ITEM_FILES] = STORE_FILES,
	};
	int64_t now_ms = client_clock(faulty);
	struct store_lease lease;

	if (item->kind == ITEM_SESSION || item->kind == ITEM_ATTEND || item->kind == ITEM_READ ||
	    item->kind == ITEM_CHANGED || item->kind == ITEM_KEEP)
		return; /* no answers */
	if (!faulty->lease.rules->note(&faulty->lease, operations[item->kind], item->error,
				       item->sent_ms, now_ms, item->term))
		return;
	lease = faulty->lease.rules->describe(&faulty->lease, now_ms);
	faulty->events->on_renewed(faulty->context, lease.end_ms);
}

/* A list shows what the stream has yet to tell: that comes first. */
static void tell_listed(struct faulty *faulty, const struct item *list)
{
	struct item *item, *next;

	for (item = faulty->news; item != NULL; item = next) {
		next = item->next;
		if (item->kind != ITEM_CHANGED || item->flag || item->made > list->made ||
		    item->text == NULL || strcmp(item->path, list->path) != 0)
			continue;
		item->flag = true;
		faulty->events->on_read(faulty->context, item->tag, NULL, 0);
		next = faulty->news;
	}
}

/* The other way round: what the stream has told is not shown any more. */
static void leave_out_gone(struct faulty *faulty, struct item *list)
{
	const struct item *gone;
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct store_entry entry = list->entries[i];

		DL_FOREACH (faulty->gone, gone)
			if (!entry.orphan && strcmp(gone->name, entry.name) == 0)
				break;
		if (gone != NULL &&
		    local_service_has_orphan(faulty->service, gone->path, entry.name))
			entry.orphan = true;
		else if (gone != NULL) {
			free((char *)entry.name);
			continue;
		}
		list->entries[count++] = entry;
	}
	list->count = count;
}

/* Delivers an event. The callback may call operations. */
static void deliver(struct faulty *faulty, struct item *item)
{
	const struct store_events *events = faulty->events;
	void *context = faulty->context;

	DL_DELETE(faulty->news, item);
	unclaimed_leave_out(faulty->unclaimed, item);
	leave_out_gone(faulty, item);
	note_answer(faulty, item);
	if (item->kind == ITEM_LIST && item->error == 0 && by_lock(faulty))
		tell_listed(faulty, item);
	switch (item->kind) {
	case ITEM_SESSION:
		faulty->told = item->told;
		if (item->told == STORE_LOST) {
			session_free(faulty->session);
			begin_lease(faulty, faulty->settings.timeout_ms);
			begin_session(faulty);
			listen(faulty);
		}
		if (item->told == STORE_CONNECTED)
			faulty->lease.rules->connect(&faulty->lease, faulty->settings.timeout_ms);
		events->on_session(context, item->told, faulty->settings.timeout_ms);
		break;
	case ITEM_PLACE:
		events->on_placed(context, item->tag, item->error, item->name, item->order,
				  item->after, item->entries, item->count);
		break;
	case ITEM_LIST:
		events->on_listed(context, item->tag, item->error, item->entries, item->count);
		break;
	case ITEM_ATTEND:
		events->on_changed(context, item->tag);
		break;
	case ITEM_READ:
		events->on_read(context, item->tag, item->text, item->version);
		break;
	case ITEM_CHANGED:
		if (!item->flag)
			events->on_read(context, item->tag, NULL, 0);
		if (!by_lock(faulty))
			send_watch(faulty, item->tag, item->path, item->name);
		else if (item->text != NULL)
			events->on_read(context, item->tag, item->text, item->version);
		break;
	case ITEM_WATCH:
		if (item->error == -ENXIO) {
			DL_APPEND(faulty->unclaimed, item);
			events->on_watched(context, item->tag, item->error);
			return;
		}
		if (by_lock(faulty) && item->error == 0 && item->name != NULL) {
			DL_APPEND(faulty->gone, item);
			events->on_watched(context, item->tag, 0);
			return;
		}
		events->on_watched(context, item->tag, item->error);
		break;
	case ITEM_AMEND:
		events->on_amended(context, item->tag, item->error);
		break;
	case ITEM_MARK:
		events->on_marked(context, item->tag, item->error);
		break;
	case ITEM_WITHDRAW:
		events->on_withdrawn(context, item->tag, item->error);
		break;
	case ITEM_PROVE:
		events->on_proved(context, item->tag, item->error, item->path, item->stamp);
		break;
	case ITEM_TOUCH:
		events->on_touched(context, item->error);
		break;
	case ITEM_ALTER:
	case ITEM_FILE:
	case ITEM_FILES:
		files_deliver(&faulty->questions, item);
		break;
	case ITEM_KEEP:
		faulty->lease.rules->kept(&faulty->lease, item->sent_ms, client_clock(faulty),
					  item->term);
		break;
	case ITEM_CLOSE:
		abort();
	}
	item_free(item);
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
	return moment(faulty, rules->next_keep_ms(&faulty->lease));
}

/* What the client itself does next. */
static int64_t client_due(const struct faulty *faulty)
{
	const struct item *first = first_news(faulty);
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

	if (rules->is_keeping(&faulty->lease)) {
		rules->disconnect(&faulty->lease);
		store_faulty_break(&faulty->store,
				   (size_t)prng_below(faulty->settings.prng, under_way + 1),
				   faulty->settings.delay_ms, 0);
		return;
	}
	item = item_create(faulty->session, ITEM_KEEP, NULL);
	item->sent_ms = client_clock(faulty);
	item->at_ms = now(faulty) + some_delay(faulty);
	rules->keep(&faulty->lease, item->sent_ms);
	if (faulty->connected)
		session_keep(faulty->session, item);
	else
		item_free(item);
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
		if (session_due(session) > now(faulty))
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
		store_faulty_break(&faulty->store, 0, 0, some_delay(faulty));
}

bool store_faulty_step(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	int64_t session_ms = session_due(faulty->session);
	int64_t client_ms = client_due(faulty);

	if (step_given_up(faulty))
		return true;
	if (earlier(session_ms, client_ms) > now(faulty))
		return false;
	if (session_ms <= client_ms)
		step_session(faulty);
	else if (faulty->notice_ms == client_ms)
		notice(faulty);
	else if (keep_due(faulty) == client_ms)
		keep_alive(faulty);
	else
		deliver(faulty, first_news(faulty));
	if (by_lock(faulty))
		send_waiting(faulty);
	return true;
}

size_t store_faulty_under_way(const struct store *store)
{
	const struct item *item;
	size_t count;

	DL_COUNT(faulty_of(store)->session->sent, item, count);
	return count;
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

bool store_faulty_is_behind(const struct store *store)
{
	const struct item *item;

	DL_FOREACH (faulty_of(store)->session->sent, item)
		if (item->behind)
			return true;
	return false;
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
	return store_faulty_soonest_end_ms(store) <= now(faulty_of(store));
}

bool store_faulty_is_cut_off(const struct store *store)
{
	return faulty_of(store)->session->cut_off;
}

/* The table. */

static void on_place(struct store *store, void *tag, const char *path,
		     const struct claim_name *name, const char *text, bool list)
{
	struct item *item = operation(store, ITEM_PLACE, tag, path, NULL);

	item->claim = *name;
	item->text = copy_text(text);
	item->flag = list;
	send(faulty_of(store), item);
}

static void on_list(struct store *store, void *tag, const char *path, bool sync, bool attend)
{
	struct item *item = operation(store, ITEM_LIST, tag, path, NULL);

	item->flag = sync;
	item->attend = attend;
	send(faulty_of(store), item);
}

static void on_watch(struct store *store, void *tag, const char *path, const char *name)
{
	send_watch(faulty_of(store), tag, path, name);
}

static void on_amend(struct store *store, void *tag, const char *path, const char *name,
		     const char *text, uint32_t version)
{
	struct item *item = operation(store, ITEM_AMEND, tag, path, name);

	item->text = copy_text(text);
	item->version = version;
	send(faulty_of(store), item);
}

static void on_mark(struct store *store, void *tag, const char *path, const char *name,
		    const char *text)
{
	struct item *item = operation(store, ITEM_MARK, tag, path, name);

	item->text = copy_text(text);
	send(faulty_of(store), item);
}

static void on_withdraw(struct store *store, void *tag, const char *path, const char *name,
			int64_t order, bool marker)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = operation(store, ITEM_WITHDRAW, tag, path, name);

	item->order = order;
	item->flag = marker;
	if (faulty->settings.on_withdrawing != NULL && !faulty->killed)
		faulty->settings.on_withdrawing(faulty->settings.context, path, name);
	send(faulty, item);
}

static void on_prove(struct store *store, void *tag, const struct store_proof *proofs, size_t count)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = operation(store, ITEM_PROVE, tag, NULL, NULL);
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
	if (znodes > STORE_PROOFS_MAX || bytes > STORE_PROOF_BYTES_MAX) {
		fprintf(stderr, "a proof of %zu claims and %zu bytes\n", count, bytes);
		abort();
	}
	item_keep_proofs(item, proofs, count);
	if (tag == NULL)
		faulty->lease.rules->beat(&faulty->lease, client_clock(faulty));
	send(faulty, item);
}

static void on_touch(struct store *store)
{
	struct faulty *faulty = faulty_of(store);

	faulty->lease.rules->touch(&faulty->lease, client_clock(faulty));
	send(faulty, operation(store, ITEM_TOUCH, NULL, NULL, NULL));
}

static int ask(struct store *store, enum item_kind kind, void *tag, const char *path,
	       const struct store_step *steps, size_t count)
{
	struct faulty *faulty = faulty_of(store);
	struct item *item = files_item(faulty->session, kind, tag, path, steps, count);

	if (!faulty->killed)
		files_note(&faulty->questions, item);
	send(faulty, item);
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

	faulty->lease.rules->defer_beat(&faulty->lease, client_clock(faulty));
}

static void on_doubt(struct store *store, int64_t now_ms)
{
	struct faulty *faulty = faulty_of(store);

	faulty->lease.rules->doubt(&faulty->lease, now_ms);
}

static void on_resume(struct store *store, int64_t timeout_ms, int64_t saved_ms, bool doubtful)
{
	struct faulty *faulty = faulty_of(store);

	faulty->lease.rules->resume(&faulty->lease, timeout_ms, saved_ms, client_clock(faulty),
				    doubtful);
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

static void on_renew(struct store *store)
{
	struct faulty *faulty = faulty_of(store);
	struct session *session = faulty->session;
	bool well = faulty->connected && !session->cut_off && !session->expired;
	bool closes = well && prng_chance(faulty->settings.prng, 50);

	if (faulty->killed || faulty->told == STORE_LOST)
		return;
	session_give_up(session, closes ? faulty->arrival_ms + some_delay(faulty) : INT64_MAX);
	DL_APPEND(faulty->given_up, session);
	forget(faulty);
	begin_lease(faulty, faulty->settings.timeout_ms);
	begin_session(faulty);
	faulty->told = STORE_LOST;
	faulty->notice_ms = INT64_MAX;
	faulty->connected = well;
	faulty->telling = well;
	listen(faulty);
	if (well)
		tell_session(faulty, STORE_CONNECTED, some_delay(faulty));
	if (faulty->settings.on_renewed != NULL)
		faulty->settings.on_renewed(faulty->settings.context);
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
	struct session *session, *next;

	DL_FOREACH_SAFE (faulty->given_up, session, next) {
		DL_DELETE(faulty->given_up, session);
		session_free(session);
	}
	session_free(faulty->session);
	forget_all(faulty);
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
	.withdraw = on_withdraw,
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
	begin_lease(faulty, 0);
	begin_session(faulty);
	store_faulty_reconnect(&faulty->store);
	*ret = &faulty->store;
	return 0;
}
