/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns nothing. Loop thread only.
 */
#include "stores/redis/call.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

struct redis_call *redis_call_copy(const struct redis_call *call)
{
	size_t name_bytes = bytes_of(call->name), text_bytes = bytes_of(call->text);
	struct redis_call *copy = malloc(sizeof(*copy) + name_bytes + text_bytes);

	if (copy == NULL)
		return NULL;
	char *strings = (char *)(copy + 1);
	*copy = *call;
	if (call->name != NULL)
		copy->name = memcpy(strings, call->name, name_bytes);
	if (call->text != NULL)
		copy->text = memcpy(strings + name_bytes, call->text, text_bytes);
	return copy;
}

void redis_call_make(struct store_redis *store, const char *path, const struct redis_call *call)
{
	struct store *home = store->queues.home;
	const struct store_ops *ops = home->ops;

	switch (call->kind) {
	case CALL_PLACE:
		ops->place(home, call->tag, path, &call->claim, call->text, call->list,
			   call->attention);
		break;
	case CALL_LIST:
		ops->list(home, call->tag, path, call->sync, call->attend);
		break;
	case CALL_LOOK:
		if (ops->look(home, call->tag, path) < 0)
			redis_starve(store);
		break;
	case CALL_AMEND:
		ops->amend(home, call->tag, path, call->name, call->text, call->version);
		break;
	case CALL_WATCH:
		ops->watch(home, call->tag, path, call->name);
		break;
	case CALL_MARK:
		ops->mark(home, call->tag, path, call->name, call->text, call->age_ms);
		break;
	case CALL_WITHDRAW:
		ops->withdraw(home, call->told, call->tag, path, call->name, call->order,
			      call->marker);
		break;
	case CALL_PROVE:
		assert(false);
		break;
	}
	redis_wake(store->service);
}

/* What the servers say beside that is for the log. */
void redis_call_refuse(const struct store_redis *store, const struct redis_call *call, int error)
{
	struct store_look *look = call->tag;

	if (error != -EACCES && error != -ECONNRESET)
		error = -EIO;
	if (call->kind == CALL_PLACE)
		store->events->on_placed(store->context, call->tag, error, NULL, 0, 0, NULL, 0);
	else if (call->kind == CALL_LIST)
		store->events->on_listed(store->context, call->tag, error, NULL, 0);
	else
		look->done(look, error, NULL, 0, NULL, 0);
}
