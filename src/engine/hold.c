/* SPDX-License-Identifier: Apache-2.0
 *
 * See hold.h. Loop thread only.
 */
#include "engine/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/books/claim.h"
#include "engine/books/decisions.h"
#include "engine/books/lock.h"
#include "engine/books/outbox.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/state.h"
#include "engine/books/wish.h"
#include "engine/engine.h"
#include "engine/settle.h"

/* Holds of others */

static bool is_hold(const struct rival *rival)
{
	return rival->place.parts.hold && rival->place.parts.id.session == CLAIM_HOLD_SESSION &&
	       !rival->orphan;
}

static int64_t left_ms(const struct rival *rival)
{
	return rival->read_ms + rival->for_ms - rival->place.lock->engine->now_ms;
}

static bool ends(const struct rival *rival)
{
	return is_hold(rival) && rival->known == KNOWN_OURS && rival->for_ms > 0;
}

void hold_note_read(const struct rival *rival)
{
	struct lock *lock = rival->place.lock;

	/* Where a hold has the claim's name, a list tells that it is one. */
	if (rival->for_ms > 0 && rival->place.parts.hold && !rival->orphan && !is_hold(rival))
		lock->listing.wanted = lock_list_anew(lock);
	if (ends(rival) && !rival->amending)
		lock_retry_in(lock->engine, left_ms(rival) > 0 ? left_ms(rival) : 0);
}

void hold_note_listed(struct rival *rival)
{
	if (!is_hold(rival))
		return;
	rival_watch(rival);
	hold_note_read(rival);
}

static void take_away(struct place *list)
{
	struct rival *rival;

	RIVALS_FOREACH (list, rival) {
		struct engine *engine = rival->place.lock->engine;

		if (!ends(rival) || rival->amending)
			continue;
		if (left_ms(rival) > 0) {
			lock_retry_in(engine, left_ms(rival));
		} else if (engine->session.state == STORE_CONNECTED) {
			rival->amending = true;
			outbox_outlast(rival);
		}
	}
}

void hold_resume(struct lock *lock)
{
	struct rival *rival;

	RIVALS_FOREACH (lock->queue.first, rival) {
		hold_note_listed(rival);
	}
	take_away(lock->queue.first);
	take_away(lock->watched);
}

/* Claims of ours */

void hold_send(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	struct holding *holding = claim->holding;

	/* What is under way has to be answered while the claim can be told by it. */
	if (holding == NULL || holding->sent || claim->data.amending || claim->marker.marking ||
	    engine->session.state != STORE_CONNECTED)
		return;
	char *text = wish_format_data(claim), *whole = NULL;
	if (text != NULL)
		whole = malloc(strlen(text) + strlen(holding->lines) + 1);
	if (whole != NULL) {
		strcpy(stpcpy(whole, text), holding->lines);
		holding->sent = holding->tried = true;
		outbox_hold(claim, &holding->id, whole);
	} else {
		lock_retry_in(engine, RETRY_MEMORY_MS);
	}
	free(whole);
	free(text);
}

/* The claim, in no list any more, is a hold. */
static void conclude(struct claim *claim)
{
	struct holding *holding = claim->holding;

	claim_uncount_held(claim, claim_is_kept(claim));
	claim_disband(claim);
	if (holding != NULL)
		claim_tell_holding(claim, 0);
	if (holding != NULL && holding->sent)
		claim_park(claim);
	else
		claim_free(claim);
}

void hold_answered(struct claim *claim, int error)
{
	struct lock *lock = claim->place.lock;

	claim->holding->sent = false;
	if (claim->state == CLAIM_LEAVING) {
		claim_unpark(claim);
	} else if (error == 0) {
		/* The list shows the hold. */
		lock->listing.wanted = lock_list_anew(lock);
		queue_remove(&claim->place);
		conclude(claim);
	} else if (error == -ENOENT) {
		lock->doubts.missing = true;
		lock_list(lock);
		lock_retry_in(lock->engine, RETRY_SOON_MS);
	} else if (error == -ECONNRESET) {
		lock_retry_in(lock->engine, RETRY_SOON_MS);
	} else {
		claim_tell_holding(claim, error);
		claim_free_holding(claim);
		if (claim->data.amended)
			claim_amend(claim);
	}
}

static bool has_hold_of_order(const struct place *list, int64_t order)
{
	const struct rival *rival;

	RIVALS_FOREACH (list, rival) {
		if (rival->place.parts.order == order && is_hold(rival))
			return true;
	}
	return false;
}

/* The queue is known no more if that was the last claim of ours in it, but each hold in it is
 * watched.
 */
bool hold_explains(struct claim *claim)
{
	const struct lock *lock = claim->place.lock;
	int64_t order = claim->place.parts.order;

	if (!claim->place.parts.hold || (!has_hold_of_order(lock->queue.first, order) &&
					 !has_hold_of_order(lock->watched, order)))
		return false;
	conclude(claim);
	return true;
}

bool hold_may_explain(const struct claim *claim)
{
	return claim->holding != NULL && claim->holding->tried;
}

int engine_hold(struct owner *owner, const char *hold_owner, const char *lines, void *cookie)
{
	struct claim *claim = owner->lost ? NULL : owner_held_but(owner, NULL);
	struct holding *holding;

	if (owner->lost)
		return -EIO;
	if ((owner->lock->engine->abilities & STORE_HAS_HOLDS) == 0)
		return -EOPNOTSUPP;
	if (claim == NULL)
		return -ENODATA;
	if (!claim->place.parts.hold)
		return -EINVAL;
	if (claim->holding != NULL)
		return -EALREADY;
	holding = calloc(1, sizeof(*holding) + strlen(lines) + 1);
	if (holding == NULL)
		return -ENOMEM;
	holding->cookie = cookie;
	holding->id = claim_id_of_hold(hold_owner);
	strcpy(holding->lines, lines);
	claim->holding = holding;
	hold_send(claim);
	settle_changed(owner->lock->engine);
	return 0;
}
