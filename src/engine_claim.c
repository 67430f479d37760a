/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of one claim of ours, as drawn in engine_state.h: it is asked for, placed, decided, and
 * withdrawn. What stands in front of it is engine_queue.c's business. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_state.h"

struct claim *claim_create(struct owner *owner, enum lock_kind kind, enum claim_mode mode,
			   const char *text)
{
	struct lock *lock = owner->lock;
	struct engine *engine = lock->engine;
	if (timers_reserve(&engine->timers, engine->claims + 1) < 0)
		return NULL;
	struct claim *claim = calloc(1, sizeof(*claim));
	if (claim == NULL)
		return NULL;
	claim->text = strdup(text);
	if (claim->text == NULL) {
		free(claim);
		return NULL;
	}
	claim->lock = lock;
	claim->owner = owner;
	claim->kind = kind;
	claim->mode = mode;
	DL_APPEND2(owner->claims, claim, owner_prev, owner_next);
	engine->claims++;
	claim_start_over(claim);
	DL_APPEND(lock->unplaced, claim);
	return claim;
}

static void detach_owner(struct claim *claim)
{
	struct owner *owner = claim->owner;
	if (owner == NULL)
		return;
	DL_DELETE2(owner->claims, claim, owner_prev, owner_next);
	if (owner->open == claim)
		owner->open = NULL;
	if (owner->flock == claim)
		owner->flock = NULL;
	claim->owner = NULL;
}

static void end_wish(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	timers_clear(&engine->timers, &claim->timer);
	if (claim->asked) {
		claim->asked = false;
		engine->waiters--;
	}
}

void claim_free(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (claim->state != CLAIM_FOREIGN) {
		end_wish(claim);
		detach_owner(claim);
		engine->claims--;
	}
	free(claim->name);
	free(claim->text);
	free(claim);
}

void claim_ask(struct claim *claim, bool waits, void *cookie)
{
	struct lock *lock = claim->lock;
	struct engine *engine = lock->engine;
	int64_t limit_ms = CONFIG_FOREVER;

	claim->asked = true;
	claim->waits = waits;
	claim->cookie = cookie;
	engine->waiters++;
	if (!waits)
		limit_ms = lock->policy.try_limit_ms;
	else if (engine->session != STORE_CONNECTED)
		limit_ms = lock->policy.wait_limit_ms;
	if (limit_ms == CONFIG_FOREVER)
		timers_clear(&engine->timers, &claim->timer);
	else
		timers_set(&engine->timers, &claim->timer, engine->now_ms + limit_ms);
}

void claim_start_over(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	free(claim->name);
	claim->name = NULL;
	claim->state = CLAIM_WANTED;
	claim->id.session = engine->session_number;
	claim->id.number = ++engine->claim_number;
}

/* A write is sent, which is as good as a heartbeat. */
static void note_sent(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	claim->sent_ms = engine->now_ms;
	lease_beat(&engine->lease, engine->now_ms);
}

void claim_place(struct claim *claim)
{
	struct lock *lock = claim->lock;
	struct engine *engine = lock->engine;
	if (claim->state != CLAIM_WANTED || engine->session != STORE_CONNECTED)
		return;
	/* One list serves all claims that are placed together. A wish that does not wait is decided
	 * by what the queue is now, so it always brings its own. */
	bool list = !claim->waits || (!lock->known && lock->placing_with_list == 0);
	claim->state = CLAIM_PLACING;
	claim->sent = list;
	note_sent(claim);
	lock->placing_with_list += list;
	engine->store->ops->place(engine->store, claim, lock->path, claim->id, claim->mode,
				  claim->text, list);
}

static void send_withdraw(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (claim->sent || engine->session != STORE_CONNECTED)
		return;
	claim->sent = true;
	note_sent(claim);
	engine->store->ops->withdraw(engine->store, claim, claim->lock->path, claim->name,
				     claim->sequence);
}

void claim_watch(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	if (claim->sent || engine->session != STORE_CONNECTED)
		return;
	claim->sent = true;
	engine->store->ops->watch(engine->store, claim, claim->lock->path, claim->name);
}

static void leave_queue(struct claim *claim)
{
	struct lock *lock = claim->lock;
	queue_remove(claim);
	claim->state = CLAIM_LEAVING;
	claim->sent = false;
	DL_APPEND(lock->leaving, claim);
	send_withdraw(claim);
}

void claim_withdraw(struct claim *claim)
{
	struct lock *lock = claim->lock;
	end_wish(claim);
	detach_owner(claim);
	switch (claim->state) {
	case CLAIM_WANTED:
		DL_DELETE(lock->unplaced, claim);
		claim_free(claim);
		break;
	case CLAIM_PLACING:
	case CLAIM_UNCERTAIN:
		/* Abandoned: without an owner it is withdrawn as soon as its place is known. */
		break;
	case CLAIM_HELD:
		lock->engine->holders--;
		leave_queue(claim);
		break;
	case CLAIM_QUEUED:
	case CLAIM_WAITING:
		leave_queue(claim);
		break;
	case CLAIM_LEAVING:
		send_withdraw(claim);
		break;
	case CLAIM_FOREIGN:
		break;
	}
}

static void hold(struct claim *claim)
{
	struct owner *owner = claim->owner;
	struct claim **slot = claim->kind == LOCK_KIND_OPEN ? &owner->open : &owner->flock;

	claim->state = CLAIM_HELD;
	claim->lock->engine->holders++;
	free(claim->text);
	claim->text = NULL;
	/* Two threads may ask through one open file at once: the later grant converts the lock. */
	if (*slot != NULL)
		claim_withdraw(*slot);
	*slot = claim;
	/* Wishes that do not wait may have looked on, to see whether this one gets the lock. */
	struct claim *next;
	DL_FOREACH2 (claim->blocked, next, blocked_next) {
		if (next->asked && !next->waits)
			queue_unsettle(next);
	}
}

void claim_decide(struct claim *claim, int result)
{
	struct engine *engine = claim->lock->engine;
	void *cookie = claim->cookie;

	end_wish(claim);
	if (result == 0)
		hold(claim);
	else
		claim_withdraw(claim);
	engine->events->on_decided(engine->context, cookie, result);
}

void claim_lose(struct claim *claim)
{
	struct owner *owner = claim->owner;
	struct engine *engine = claim->lock->engine;

	owner->lost = true;
	engine->holders--;
	claim_free(claim);
	engine->events->on_lost(engine->context, owner->cookie);

	struct claim *other, *next;
	DL_FOREACH_SAFE2 (owner->claims, other, next, owner_next) {
		if (other->asked)
			claim_decide(other, -EIO);
		else if (other->state != CLAIM_HELD)
			claim_withdraw(other);
	}
}
