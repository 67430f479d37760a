/* SPDX-License-Identifier: Apache-2.0
 *
 * See delay.h. Loop thread only.
 */
#include "engine/delay.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/conflict.h"
#include "engine/lock.h"
#include "engine/outbox.h"
#include "engine/queue.h"
#include "engine/rival.h"
#include "engine/save.h"

enum { LOOK_MS = 1000 }; /* how soon to look again whether a former session's claims stand */

static bool is_used(const struct lock *lock)
{
	return lock->policy.lock_delay_ms > 0;
}

/* The text of a marker is that of its claim, so that people see who was lost. */
static void ask_for_marker(struct claim *claim)
{
	struct engine *engine = claim->lock->engine;

	if (claim->marking || claim->marker == MARKER_STANDS || engine->session != STORE_CONNECTED)
		return;
	char *text = claim_format_data(claim);
	if (text == NULL) {
		engine_retry_in(engine, RETRY_MEMORY_MS);
		return;
	}
	claim->marker = MARKER_ASKED;
	claim->marking = true;
	claim_mark(claim);
	engine_mark_holder(claim, text);
	free(text);
}

bool delay_lets_hold(struct claim *claim)
{
	if (!is_used(claim->lock) || claim->marker == MARKER_STANDS)
		return true;
	ask_for_marker(claim);
	return false;
}

void delay_prepare(struct claim *claim)
{
	if (is_used(claim->lock) && claim_blocker(claim)->state == CLAIM_HELD && claim->asked)
		ask_for_marker(claim);
}

void delay_marked(struct claim *claim, int error)
{
	struct lock *lock = claim->lock;

	claim->marking = false;
	claim_mark(claim);
	if (claim->marker != MARKER_ASKED || claim->state == CLAIM_LEAVING)
		return; /* this was about its former place, or it is on its way out */
	if (error == 0) {
		claim->marker = MARKER_STANDS;
	} else if (error == -ENOENT) {
		lock->missing = true;
		lock_list(lock);
	} else {
		lock_retry_after(lock, "marker of a claim", error);
	}
	queue_unsettle(claim);
}

/* How long an orphan stays. Whoever sets no delay does not wait for it, but others may. */
static int64_t stay_ms(const struct lock *lock)
{
	return is_used(lock) ? lock->policy.lock_delay_ms : CONFIG_LOCK_DELAY_MAX_MS;
}

void delay_note_orphan(struct claim *claim)
{
	struct lock *lock = claim->lock;

	if (claim->orphan)
		return;
	claim->orphan = claim->seen = true;
	claim->read = true; /* it covers what its name says, or was read before */
	claim->says_waits = claim->says_keep = false;
	claim->place.parts.id =
		(struct claim_id){0}; /* of nobody who could be asked for anything */
	claim->delay_end_ms = lock->engine->now_ms + stay_ms(lock);
	engine_retry_in(lock->engine, stay_ms(lock));
	if (!is_used(lock))
		return;
	log_lock_warning(lock->path,
			 "the holder of claim %s was lost: nobody gets the lock for %lld ms",
			 claim->place.name, (long long)lock->policy.lock_delay_ms);
	/* Who went before it, because it waited, or was to ask for it, does not any more. */
	queue_unsettle_all(lock);
}

void delay_change_policy(struct lock *lock, const struct lock_policy *policy)
{
	int64_t former_ms = stay_ms(lock);
	struct claim *claim;

	lock->policy = *policy;
	if (stay_ms(lock) == former_ms)
		return;
	for (claim = claim_of(lock->watched); claim != NULL; claim = claim_next(claim)) {
		if (claim->orphan)
			claim->delay_end_ms += stay_ms(lock) - former_ms;
	}
	engine_retry_in(lock->engine, 0);
}

void delay_look(struct lock *lock)
{
	if (!is_used(lock))
		return;
	lock->orphans_list = lock_list_anew(lock);
	lock->list_wanted = lock->orphans_list;
}

void delay_break(struct claim *claim)
{
	if (claim->marker == MARKER_NONE)
		return;
	claim->marker = MARKER_NONE; /* it stays */
	claim->broken = true;
	claim->lock->broken++;
}

void delay_broken(struct claim *claim)
{
	if (!claim->broken)
		return;
	claim->broken = false;
	claim->lock->broken--;
	delay_look(claim->lock);
}

static void take_away(struct place *list)
{
	struct claim *claim;

	for (claim = claim_of(list); claim != NULL; claim = claim_next(claim)) {
		struct engine *engine = claim->lock->engine;

		if (!claim->orphan || claim->sent)
			continue;
		if (claim->delay_end_ms > engine->now_ms) {
			engine_retry_in(engine, claim->delay_end_ms - engine->now_ms);
		} else if (engine->session == STORE_CONNECTED) {
			claim->sent = true;
			engine_withdraw(claim);
		}
	}
}

void delay_resume(struct lock *lock)
{
	take_away(lock->queue.first);
	take_away(lock->watched);
	if (lock->orphans_list > lock->lists_done)
		lock_list(lock);
}

static bool may_leave_orphan(const struct claim *claim)
{
	return claim->orphan || claim->broken || claim->marker != MARKER_NONE;
}

void delay_lose_session(struct lock *lock)
{
	const struct place *lists[] = {lock->watched, lock->leaving, lock->queue.first};
	const struct claim *claim;
	bool looks = lock->orphans_list != 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		for (claim = claim_of(lists[i]); claim != NULL; claim = claim_next(claim)) {
			if (!may_leave_orphan(claim))
				continue;
			looks = true;
			if (!claim->orphan)
				lock->former_session = claim->place.parts.id.session;
		}
	}
	if (looks)
		lock->orphans_list = lock->lists_sent + 1;
}

/* Whether a claim of the former session stands: the service may not know yet that it is over. */
static bool former_stands(const struct lock *lock, const struct store_entry *entries, size_t count)
{
	for (size_t i = 0; i < count && lock->former_session != 0; i++) {
		if (!entries[i].orphan && entries[i].claim.id.session == lock->former_session)
			return true;
	}
	return false;
}

void delay_listed(struct lock *lock, int error, const struct store_entry *entries, size_t count)
{
	if (lock->orphans_list == 0)
		return;
	if (error == 0 && lock->orphans_list > lock->lists_done) {
		lock_list(lock); /* that one was sent too early */
	} else if (error == 0 && !former_stands(lock, entries, count)) {
		lock->orphans_list = 0;
	} else {
		lock->orphans_list = lock->lists_sent + 1;
		engine_retry_in(lock->engine, LOOK_MS);
	}
}

void delay_stop(struct lock *lock)
{
	struct claim *claim;

	for (claim = claim_of(lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		if (claim->state == CLAIM_HELD && !claim_is_kept(claim))
			claim->marker = MARKER_NONE; /* it stays */
	}
}

bool engine_find_orphan(const struct engine *engine, const char *path, const char *name,
			struct engine_orphan *ret)
{
	const struct claim *orphan = NULL;
	const struct lock *lock = lock_find(engine, path);
	if (lock != NULL)
		orphan = rival_find(lock->queue.first, name);
	if (lock != NULL && (orphan == NULL || !orphan->orphan))
		orphan = rival_find(lock->watched, name);
	if (orphan == NULL || !orphan->orphan)
		return false;
	int64_t left_ms = orphan->delay_end_ms - engine->now_ms;
	ret->known_ms = stay_ms(lock) - left_ms;
	ret->left_ms = !is_used(lock) ? -1 : left_ms > 0 ? left_ms : 0;
	return true;
}
