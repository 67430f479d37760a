/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine tells, of its locks and claims, to who shows them to people. These functions only
 * look. Loop thread only.
 */
#include "engine/engine.h"

#include "engine/books/delay.h"
#include "engine/books/lock.h"
#include "engine/books/rival.h"
#include "engine/books/state.h"

struct engine_counts engine_counts(const struct engine *engine)
{
	return (struct engine_counts){
		.locks = HASH_COUNT(engine->locks),
		.holders = engine->count.holders,
		.waiters = engine->count.waiters,
		.kept = engine->count.kept,
		.by_message = engine->count.by_message,
		.by_store = engine->count.by_store,
	};
}

/* The first of a list of engine->ages. */
static bool tell_oldest(const struct engine *engine, const struct wish *wish,
			struct engine_oldest *ret)
{
	if (wish == NULL)
		return false;
	*ret = (struct engine_oldest){
		.path = wish_lock(wish)->path,
		.pid = wish->pid,
		.age_ms = engine->now_ms - wish->since_ms,
	};
	return true;
}

bool engine_oldest_holder(const struct engine *engine, struct engine_oldest *ret)
{
	return tell_oldest(engine, engine->ages.held, ret);
}

bool engine_oldest_waiter(const struct engine *engine, struct engine_oldest *ret)
{
	return tell_oldest(engine, engine->ages.waiting, ret);
}

void engine_each_own(const struct engine *engine, const char *path,
		     void (*visit)(void *context, const char *claim, bool held), void *context)
{
	const struct lock *lock = lock_find(engine, path);
	const struct claim *claim;
	char text[CLAIM_NAME_BYTES];

	if (lock == NULL || lock->in_queue.own == 0)
		return;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		visit(context, place_name(&claim->place, text), claim->state == CLAIM_HELD);
	}
}

/* The users of one claim. */
static void visit_users(const struct claim *claim,
			void (*visit)(void *context, const char *claim, enum engine_use use,
				      const char *text),
			void *context)
{
	const struct wish *wish;
	bool first = true;
	char name_text[CLAIM_NAME_BYTES], text[ENGINE_TEXT_BYTES];
	const char *name = place_name(&claim->place, name_text);

	DL_FOREACH (claim->wishes, wish) {
		bool kept = wish->owner == NULL;
		if (kept) {
			visit(context, name, ENGINE_KEPT, NULL);
		} else if (wish->asked || wish_is_held(wish)) {
			wish_describe(wish, text);
			visit(context, name, first ? ENGINE_USES : ENGINE_FOLLOWS, text);
		}
		first &= !kept && !wish->asked && !wish_is_held(wish);
	}
}

void engine_each_user(const struct engine *engine, const char *path,
		      void (*visit)(void *context, const char *claim, enum engine_use use,
				    const char *text),
		      void *context)
{
	const struct lock *lock = lock_find(engine, path);
	const struct claim *claim;

	if (lock == NULL || (lock->handoffs.waiting == NULL && lock->handoffs.held == NULL))
		return;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		if (claim->handoff != NULL)
			visit_users(claim, visit, context);
	}
}

static enum engine_worn_wait what_is_awaited(const struct lock *lock)
{
	if (lock->numbers.listed == 0)
		return ENGINE_AWAITS_SERVERS;
	return lock->numbers.listed == lock->numbers.listed_orphans ? ENGINE_AWAITS_DELAY
								    : ENGINE_AWAITS_CLAIMS;
}

static size_t count_held_back(const struct lock *lock)
{
	const struct claim *claim;
	size_t count = 0;

	CLAIMS_FOREACH (lock->unplaced, claim) {
		count += claim->state == CLAIM_WANTED && claim_first_asked(claim) != NULL;
	}
	return count;
}

void engine_each_worn(const struct engine *engine,
		      void (*visit)(void *context, const struct engine_worn *worn), void *context)
{
	const struct lock *lock = engine->count.worn > 0 ? engine->locks : NULL;

	for (; lock != NULL; lock = lock->hh.next) {
		struct engine_worn worn = {
			.path = lock->path,
			.number = claim_name_number(lock->numbers.late_order),
			.known_ms = engine->now_ms - lock->numbers.worn_since_ms,
			.held_back = count_held_back(lock),
			.awaits = what_is_awaited(lock),
		};
		if (lock->numbers.worn && lock->numbers.late_order != 0)
			visit(context, &worn);
	}
}

void engine_each_mixed(const struct engine *engine, void (*visit)(void *context, const char *path),
		       void *context)
{
	const struct lock *lock = engine->count.mixed > 0 ? engine->locks : NULL;

	for (; lock != NULL; lock = lock->hh.next) {
		if (lock->listing.mixed)
			visit(context, lock->path);
	}
}

bool engine_find_orphan(const struct engine *engine, const char *path, const char *name,
			struct engine_orphan *ret)
{
	const struct rival *orphan = NULL;
	const struct lock *lock = lock_find(engine, path);
	if (lock != NULL)
		orphan = rival_find(lock->queue.first, name);
	if (lock != NULL && (orphan == NULL || !orphan->orphan))
		orphan = rival_find(lock->watched, name);
	if (orphan == NULL || !orphan->orphan)
		return false;
	ret->known_ms = engine->now_ms - orphan->lost_ms;
	ret->left_ms = lock_heeds_orphan(lock, &orphan->place.parts) ? delay_left_ms(orphan) : -1;
	return true;
}
