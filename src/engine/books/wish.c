/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers ask for, and for how long they do. Loop thread only.
 */
#include "engine/books/wish.h"

#include <stdlib.h>
#include <string.h>

#include "engine/books/save.h"
#include "engine/books/state.h"

struct wish *wish_create(struct claim *claim, struct owner *owner, enum lock_kind kind,
			 const struct engine_caller *caller)
{
	struct engine *engine = claim->place.lock->engine;
	size_t details_bytes = engine->events->details_bytes;
	struct wish *wish = calloc(1, sizeof(*wish) + details_bytes);
	if (wish == NULL)
		return NULL;
	wish->claim = claim;
	wish->timer.on_due = engine->agenda.end_wish;
	wish->serial = ++engine->issued.serials;
	wish->kind = kind;
	if (caller != NULL) {
		wish->pid = caller->pid;
		wish->uid = caller->uid;
		if (caller->details != NULL)
			memcpy(wish_details(wish), caller->details, details_bytes);
	}
	DL_APPEND(claim->wishes, wish);
	engine->count.wishes++;
	wish_set_owner(wish, owner);
	return wish;
}

void wish_free(struct wish *wish)
{
	struct claim *claim = wish->claim;
	struct engine *engine = claim->place.lock->engine;

	wish_end(wish);
	wish_set_owner(wish, NULL);
	DL_DELETE(claim->wishes, wish);
	engine_unmark(engine, &wish->item);
	engine->count.wishes--;
	free(wish);
}

void wish_move(struct wish *wish, struct claim *claim)
{
	DL_DELETE(wish->claim->wishes, wish);
	wish->claim = claim;
	DL_APPEND(claim->wishes, wish);
	wish_mark(wish);
}

void wish_put_first(struct wish *wish)
{
	struct claim *claim = wish->claim;

	wish_end(wish);
	DL_DELETE(claim->wishes, wish);
	DL_PREPEND(claim->wishes, wish);
	engine_unmark(claim->place.lock->engine,
		      &wish->item); /* saved with the claim from now on */
	claim_mark(claim);
}

void wish_set_owner(struct wish *wish, struct owner *owner)
{
	if (wish->owner != NULL)
		DL_DELETE2(wish->owner->wishes, wish, owner_prev, owner_next);
	wish->owner = owner;
	if (owner != NULL)
		DL_APPEND2(owner->wishes, wish, owner_prev, owner_next);
	wish_mark(wish);
}

void wish_ask(struct wish *wish, bool waits, void *cookie)
{
	const struct lock *lock = wish_lock(wish);
	struct engine *engine = lock->engine;

	wish->asked = true;
	wish->since_ms = engine->now_ms;
	wish->waits = waits;
	wish->cookie = cookie;
	wish->grace = GRACE_NONE;
	engine->count.waiters++;
	DL_APPEND2(engine->ages.waiting, wish, age_prev, age_next);
	wish_mark(wish);
	wish_clear_timer(wish);
	if (waits)
		wish_limit(wish);
	else if (lock->policy.try_limit_ms != CONFIG_FOREVER)
		wish_set_timer(wish, engine->now_ms + lock->policy.try_limit_ms);
}

void wish_end(struct wish *wish)
{
	struct engine *engine = wish_lock(wish)->engine;

	wish_clear_timer(wish);
	wish->grace = GRACE_NONE;
	if (!wish->asked)
		return;
	wish->asked = false;
	engine->count.waiters--;
	DL_DELETE2(engine->ages.waiting, wish, age_prev, age_next);
	wish_mark(wish);
}

void wish_limit(struct wish *wish)
{
	const struct lock *lock = wish_lock(wish);
	const struct engine *engine = lock->engine;

	if (!wish->asked || !wish->waits)
		return;
	if (engine->session.state == STORE_CONNECTED)
		wish_clear_timer(wish);
	else if (lock->policy.wait_limit_ms != CONFIG_FOREVER && !timer_is_set(&wish->timer))
		wish_set_timer(wish, engine->now_ms + lock->policy.wait_limit_ms);
}

void wish_set_timer(struct wish *wish, int64_t due_ms)
{
	timers_set(&wish_lock(wish)->engine->agenda.timers, &wish->timer, due_ms);
	wish_mark(wish);
}

void wish_clear_timer(struct wish *wish)
{
	if (!timer_is_set(&wish->timer))
		return;
	timers_clear(&wish_lock(wish)->engine->agenda.timers, &wish->timer);
	wish_mark(wish);
}

void wish_describe(const struct wish *wish, char text[ENGINE_TEXT_BYTES])
{
	const struct claim *claim = wish->claim;
	const struct engine *engine = claim->place.lock->engine;
	enum claim_mode mode = claim_coverage(claim) != NULL ? claim_coverage(claim)->asked.mode
							     : claim->place.parts.mode;
	const struct engine_caller caller = wish_caller(wish);
	engine->events->describe(engine->context, &caller, (enum lock_kind)wish->kind, mode, text);
}

const char *wish_words(const struct wish *wish, char words[CLAIM_DATA_WHO_BYTES])
{
	char text[ENGINE_TEXT_BYTES];

	wish_describe(wish, text);
	claim_data_words(text, words);
	return words;
}

/* Until when the claim rests, for its data; 0: it does not, or that is not told. */
static int64_t rest_of(const struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;

	if (!claim_rests(claim) || engine->events->wall_ms == NULL)
		return 0;
	int64_t left_ms = claim->least_ms - engine->now_ms;
	return (engine->events->wall_ms(engine->context) + left_ms + 999) / 1000;
}

char *wish_format_data(const struct claim *claim)
{
	struct claim_data data = {
		.waits = claim->place.says_waits,
		.waits_for = claim->place.waits_for,
		.keeps = claim->place.says_keep,
		.rest = rest_of(claim),
		.slots = claim->place.slots,
		.slot = slots_number(&claim->place),
		.trip_ms = round_trip_shortest_ms(&claim->place.lock->engine->session.round_trip),
	};
	char text[ENGINE_TEXT_BYTES];
	if (data.trip_ms > CLAIM_DATA_TRIP_MAX_MS)
		data.trip_ms = CLAIM_DATA_TRIP_MAX_MS;
	if (claim_coverage(claim) != NULL) {
		data.has_ranges = true;
		data.ranges = claim_coverage(claim)->ranges;
	}
	if (claim->place.holds != NULL) {
		data.has_holds = true;
		data.holds = *claim->place.holds;
	}
	wish_describe(claim->wishes, text);
	return claim_data_format(text, &data);
}
