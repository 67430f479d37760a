/* SPDX-License-Identifier: Apache-2.0
 *
 * Events are delivered: the caller hears of them. Single-threaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "faulty_client.h"
#include "unclaimed.h"

/* What the answer says of the lease, which is told first. */
static void note_answer(struct faulty *faulty, const struct item *item)
{
	static const enum store_operation operations[] = {
		[ITEM_PLACE] = STORE_PLACE,	  [ITEM_LIST] = STORE_LIST,
		[ITEM_WATCH] = STORE_WATCH,	  [ITEM_AMEND] = STORE_AMEND,
		[ITEM_MARK] = STORE_MARK,	  [ITEM_AGE] = STORE_READ,
		[ITEM_WITHDRAW] = STORE_WITHDRAW, [ITEM_PROVE] = STORE_PROVE,
		[ITEM_TOUCH] = STORE_TOUCH,	  [ITEM_ALTER] = STORE_ALTER,
		[ITEM_FILE] = STORE_READ,	  [ITEM_FILES] = STORE_FILES,
		[ITEM_HOLD] = STORE_MARK,	  [ITEM_OUTLAST] = STORE_WITHDRAW,
	};
	if (item->kind == ITEM_SESSION || item->kind == ITEM_ATTEND || item->kind == ITEM_READ ||
	    item->kind == ITEM_CHANGED || item->kind == ITEM_KEEP)
		return; /* no answers */
	if (faulty->lease.rules->note(&faulty->lease, operations[item->kind], item->error,
				      item->sent_ms, faulty_client_clock(faulty), item->member))
		faulty->events->on_renewed(faulty->context);
}

static int64_t proven_ms(struct faulty *faulty)
{
	return faulty->lease.rules->describe(&faulty->lease, faulty_client_clock(faulty)).proven_ms;
}

/* As etcd's session.c does. */
static void deliver_keep(struct faulty *faulty, const struct item *item)
{
	const struct store_events *events = faulty->events;
	int64_t former_ms = proven_ms(faulty);

	if (!faulty->lease.rules->kept(&faulty->lease, item->sent_ms, faulty_client_clock(faulty),
				       item->member)) {
		faulty_give_up(faulty);
		events->on_session(faulty->context, STORE_LOST, faulty->settings.timeout_ms);
	} else if (proven_ms(faulty) > former_ms) {
		events->on_renewed(faulty->context);
		events->on_touched(faulty->context);
	}
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

void faulty_deliver(struct faulty *faulty, struct item *item)
{
	const struct store_events *events = faulty->events;
	void *context = faulty->context;

	DL_DELETE(faulty->news, item);
	unclaimed_leave_out(faulty->unclaimed, item);
	leave_out_gone(faulty, item);
	note_answer(faulty, item);
	if (item->kind == ITEM_LIST && item->error == 0 && faulty_by_lock(faulty))
		tell_listed(faulty, item);
	switch (item->kind) {
	case ITEM_SESSION:
		faulty->told = item->told;
		if (item->told == STORE_LOST) {
			session_free(faulty->session);
			faulty_begin_lease(faulty, faulty->settings.timeout_ms);
			faulty_begin_session(faulty);
			faulty_listen(faulty);
		}
		if (item->told == STORE_CONNECTED)
			faulty->lease.rules->connect(&faulty->lease, faulty->settings.timeout_ms,
						     faulty->connecting_ms);
		events->on_session(context, item->told, faulty->settings.timeout_ms);
		break;
	case ITEM_PLACE:
		if (faulty_by_lock(faulty) && item->attend && item->error == 0 &&
		    item->entries != NULL)
			events->on_changed(context, item->attend_tag);
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
		if (!faulty_by_lock(faulty))
			faulty_send_watch(faulty, item->tag, item->path, item->name);
		else if (item->text != NULL)
			events->on_read(context, item->tag, item->text, item->version);
		break;
	case ITEM_WATCH:
		if (item->error == -ENXIO) {
			DL_APPEND(faulty->unclaimed, item);
			events->on_watched(context, item->tag, item->error);
			return;
		}
		if (faulty_by_lock(faulty) && item->name != NULL &&
		    (item->error == 0 || item->error == -EOWNERDEAD)) {
			DL_APPEND(faulty->gone, item);
			events->on_watched(context, item->tag, item->error);
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
	case ITEM_AGE:
		events->on_aged(context, item->tag, item->error, item->age_ms, item->text);
		break;
	case ITEM_HOLD:
		events->on_hold(context, item->tag, item->error);
		break;
	case ITEM_OUTLAST:
	case ITEM_WITHDRAW:
		events->on_withdrawn(context, item->tag, item->error);
		break;
	case ITEM_PROVE:
		events->on_proved(context, item->tag, item->error, item->path, item->stamp);
		break;
	case ITEM_TOUCH:
		if (faulty->lease.rules->touch != NULL)
			events->on_touched(context);
		break;
	case ITEM_ALTER:
	case ITEM_FILE:
	case ITEM_FILES:
		files_deliver(&faulty->questions, item);
		break;
	case ITEM_KEEP:
		deliver_keep(faulty, item);
		break;
	case ITEM_CLOSE:
		abort();
	}
	item_free(item);
}
