/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers ask for, and for how long they do. Loop thread only.
 */
#include "engine/wish.h"

#include <string.h>

#include "engine/save.h"

void wish_note_caller(struct wish *wish, const struct engine *engine, enum lock_kind kind,
		      const struct engine_caller *caller)
{
	wish->kind = kind;
	wish->pid = caller->pid;
	wish->uid = caller->uid;
	if (caller->details != NULL)
		memcpy(wish_details(wish), caller->details, engine->events->details_bytes);
}

void wish_ask(struct wish *wish, bool waits, void *cookie)
{
	const struct lock *lock = wish_lock(wish);
	struct engine *engine = lock->engine;
	int64_t limit_ms = CONFIG_FOREVER;

	wish->asked = true;
	wish->waits = waits;
	wish->cookie = cookie;
	wish->grace = GRACE_NONE;
	engine->waiters++;
	wish_mark(wish);
	if (!waits)
		limit_ms = lock->policy.try_limit_ms;
	else if (engine->session != STORE_CONNECTED)
		limit_ms = lock->policy.wait_limit_ms;
	if (limit_ms == CONFIG_FOREVER)
		wish_clear_timer(wish);
	else
		wish_set_timer(wish, engine->now_ms + limit_ms);
}

void wish_end(struct wish *wish)
{
	wish_clear_timer(wish);
	wish->grace = GRACE_NONE;
	if (!wish->asked)
		return;
	wish->asked = false;
	wish_lock(wish)->engine->waiters--;
	wish_mark(wish);
}

void wish_limit(struct wish *wish)
{
	const struct lock *lock = wish_lock(wish);
	const struct engine *engine = lock->engine;

	if (!wish->asked || !wish->waits)
		return;
	if (engine->session == STORE_CONNECTED)
		wish_clear_timer(wish);
	else if (lock->policy.wait_limit_ms != CONFIG_FOREVER && wish->timer.place == 0)
		wish_set_timer(wish, engine->now_ms + lock->policy.wait_limit_ms);
}

void wish_set_timer(struct wish *wish, int64_t due_ms)
{
	timers_set(&wish_lock(wish)->engine->timers, &wish->timer, due_ms);
	wish_mark(wish);
}

void wish_clear_timer(struct wish *wish)
{
	if (wish->timer.place == 0)
		return;
	timers_clear(&wish_lock(wish)->engine->timers, &wish->timer);
	wish_mark(wish);
}
