/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on their way to the service: what is sent when, and what waits. Single-threaded.
 */
#include <string.h>

#include <utlist.h>

#include "faulty_client.h"

/* Whether the two are of one lock, and so one after the other. Watches and proofs are in no order.
 */
static bool are_in_order(const struct item *a, const struct item *b)
{
	static const bool in_order[ITEM_CLOSE + 1] = {
		[ITEM_PLACE] = true, [ITEM_LIST] = true, [ITEM_AMEND] = true,
		[ITEM_MARK] = true,  [ITEM_AGE] = true,	 [ITEM_WITHDRAW] = true,
		[ITEM_HOLD] = true,
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
		faulty_answer_reset(faulty, item, 0);
		item_free(item);
		return;
	}
	item->behind = has_to_wait(faulty, item);
	item->at_ms = INT64_MAX;
	if (faulty->connected && faulty->told == STORE_CONNECTED && !item->behind)
		item->at_ms = faulty_now(faulty) + faulty_some_delay(faulty);
	DL_APPEND(faulty->session->sent, item);
}

void faulty_send_waiting(struct faulty *faulty)
{
	struct item *item;

	DL_FOREACH (faulty->session->sent, item) {
		if (item->answered || item->at_ms != INT64_MAX || !faulty->connected ||
		    faulty->told != STORE_CONNECTED || faulty->session->expired ||
		    has_to_wait(faulty, item))
			continue;
		item->behind = false;
		item->sent_ms = faulty_client_clock(faulty);
		item->at_ms = faulty_now(faulty) + faulty_some_delay(faulty);
	}
}

/* It is answered whatever becomes of its session. */
static bool is_question(const struct item *item)
{
	return item->kind == ITEM_ALTER || item->kind == ITEM_FILE || item->kind == ITEM_FILES;
}

void faulty_send(struct faulty *faulty, struct item *item)
{
	const struct faulty_settings *settings = &faulty->settings;
	enum item_kind item_kind = item->kind;

	item->sent_ms = faulty_client_clock(faulty);
	if (faulty->killed || (faulty->session->expired && faulty->telling)) {
		/* nothing is sent in a session that is known to be over */
		if (is_question(item) && !faulty->killed)
			faulty_answer_reset(faulty, item, 0);
		item_free(item);
	} else if (faulty_by_lock(faulty)) {
		send_by_lock(faulty, item);
	} else if (faulty->connected) {
		item->at_ms = faulty_now(faulty) + faulty_some_delay(faulty);
		if (item->at_ms < faulty->arrival_ms)
			item->at_ms = faulty->arrival_ms;
		faulty->arrival_ms = item->at_ms;
		DL_APPEND(faulty->session->sent, item);
	} else if (faulty->notice_ms == INT64_MAX &&
		   !prng_chance(settings->prng, settings->wait_percent)) {
		faulty_answer_reset(faulty, item, faulty_some_delay(faulty));
		item_free(item);
	} else {
		item->at_ms = INT64_MAX;
		DL_APPEND(faulty->session->sent, item);
	}
	if (settings->on_operation != NULL && item_kind != ITEM_TOUCH)
		settings->on_operation(settings->context, &faulty->store);
}

struct item *faulty_operation(struct store *store, enum item_kind kind, void *tag, const char *path,
			      const char *name)
{
	struct item *item = item_create(faulty_of(store)->session, kind, tag);

	item->path = copy_text(path);
	item->name = copy_text(name);
	return item;
}

void faulty_send_watch(struct faulty *faulty, void *tag, const char *path, const char *name)
{
	struct item *item = faulty_operation(&faulty->store, ITEM_WATCH, tag, path, name);

	item->sure_at_ms = INT64_MAX;
	faulty_send(faulty, item);
}

size_t store_faulty_under_way(const struct store *store)
{
	const struct item *item;
	size_t count;

	DL_COUNT(faulty_of(store)->session->sent, item, count);
	return count;
}

bool store_faulty_is_behind(const struct store *store)
{
	const struct item *item;

	DL_FOREACH (faulty_of(store)->session->sent, item)
		if (item->behind)
			return true;
	return false;
}
