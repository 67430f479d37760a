/* SPDX-License-Identifier: Apache-2.0
 *
 * Events on their way back to the client: when each is delivered. Single-threaded.
 */
#include <errno.h>

#include <utlist.h>

#include "faulty_client.h"

void faulty_tell(struct faulty *faulty, struct item *item, int64_t delay_ms)
{
	item->at_ms = faulty_now(faulty) + delay_ms;
	if (item->at_ms < faulty->delivery_ms)
		item->at_ms = faulty->delivery_ms;
	faulty->delivery_ms = item->at_ms;
	DL_APPEND(faulty->news, item);
}

void faulty_tell_session(struct faulty *faulty, enum store_session session, int64_t delay_ms)
{
	struct item *item = item_create(NULL, ITEM_SESSION, NULL);

	item->told = session;
	faulty_tell(faulty, item, delay_ms);
}

/* In no order with anything else. */
static void tell_alone(struct faulty *faulty, struct item *item)
{
	item->at_ms = faulty_now(faulty) + faulty_some_delay(faulty);
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
			if (list->kind != ITEM_ATTEND && list->attention == item->attention)
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

struct item *faulty_first_news(const struct faulty *faulty)
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
	else if (faulty->connected && faulty_by_lock(faulty))
		tell_by_lock(faulty, item);
	else if (faulty->connected)
		faulty_tell(faulty, item, faulty_some_delay(faulty));
	else
		DL_APPEND(faulty->fired, item);
}

void faulty_answer_reset(struct faulty *faulty, struct item *item, int64_t delay_ms)
{
	struct item *reset = item_create(NULL, item->kind, item->tag);

	reset->error = -ECONNRESET;
	item->answered = true;
	faulty_tell(faulty, reset, delay_ms);
}
