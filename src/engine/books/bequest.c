/* SPDX-License-Identifier: Apache-2.0
 *
 * See bequest.h. Loop thread only.
 */
#include "engine/books/bequest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/books/claim.h"
#include "engine/books/lock.h"
#include "engine/books/outbox.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/slots.h"
#include "engine/books/state.h"

/* In parts of the session's timeout: what it takes to tell holders (lock.c), and after how long the
 * host of an heir that is missing is told again, at first; then after twice as long each time, as
 * that may be the address of somebody who has not asked. */
enum { TELLINGS_IN_TIMEOUT = 40, SOON_IN_TIMEOUT = 16 };

static struct bequest *find(const struct claim *claim)
{
	struct bequest *bequest;
	DL_FOREACH (claim->place.lock->bequests, bequest) {
		if (bequest->claim == claim)
			return bequest;
	}
	return NULL;
}

static struct bequest *create(struct claim *claim)
{
	struct bequest *bequest = calloc(1, sizeof(*bequest));
	if (bequest == NULL)
		return NULL;
	bequest->claim = claim;
	DL_APPEND(claim->place.lock->bequests, bequest);
	return bequest;
}

static void end(struct bequest *bequest)
{
	struct lock *lock = bequest->claim->place.lock;

	if (bequest->made)
		claim_mark(bequest->claim);
	if (bequest->bars)
		queue_judge_all(lock);
	DL_DELETE(lock->bequests, bequest);
	free(bequest);
}

void bequest_end(struct claim *claim)
{
	struct bequest *bequest = find(claim);
	if (bequest != NULL)
		end(bequest);
}

/* Whether claims of the lock are bequeathed at all. */
static bool applies(const struct lock *lock)
{
	return lock->engine->has_peers && lock->records == NULL && lock->in_queue.records == 0 &&
	       !slots_are_several(lock);
}

/* Whether a claim of that name is one that may be bequeathed, or an heir, as far as that tells. */
static bool fits(const struct claim_name *parts)
{
	return parts->id.session != 0 && parts->mode == CLAIM_EXCLUSIVE && !parts->record &&
	       claim_recipe_znodes(parts->recipe) == 1;
}

/* Whether both are named as one store names claims, so that it looks for the one as for the other.
 */
static bool are_alike(const struct claim_name *a, const struct claim_name *b)
{
	return (a->slot != 0) == (b->slot != 0) &&
	       (claim_name_number(a->order) < 0) == (claim_name_number(b->order) < 0);
}

static bool is_behind(const struct claim_name *parts, const struct claim_name *front)
{
	return claim_name_compare(parts->order, "", front->order, "") > 0;
}

void bequest_ask(struct claim *claim, struct rival *rival)
{
	char name[CLAIM_NAME_BYTES];

	if (rival->peer == NULL || rival->asked == claim->place.parts.id.number || rival->orphan ||
	    !fits(&rival->place.parts) || !fits(&claim->place.parts) || !applies(claim->place.lock))
		return;
	rival->asked = claim->place.parts.id.number;
	outbox_ask(rival, place_name(&claim->place, name));
}

void bequest_note_asked(struct claim *claim, const char *heir, const struct engine_peer *asker)
{
	struct bequest *bequest = find(claim);
	struct claim_name parts, former;

	if (!claim_name_parse(heir, &parts) || strlen(heir) >= sizeof(bequest->heir) ||
	    !fits(&parts) || !are_alike(&parts, &claim->place.parts) ||
	    !is_behind(&parts, &claim->place.parts) || !applies(claim->place.lock))
		return;
	/* One that comes late. */
	if (bequest != NULL && claim_name_parse(bequest->heir, &former) &&
	    is_behind(&former, &parts))
		return;
	if (bequest == NULL)
		bequest = create(claim);
	if (bequest == NULL)
		return;
	strcpy(bequest->heir, heir);
	bequest->asker = *asker;
	bequest->asked = true;
	bequest->asked_ms = claim->place.lock->engine->now_ms;
}

/* Whether a release of the claim can be told: see bequest.h. */
static bool may_be_made(const struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;
	const struct owner *holder = claim->wishes->owner;

	return engine->store != NULL && engine->store->ops->bequeath != NULL &&
	       !engine->grants.stopping && engine->session.state == STORE_CONNECTED &&
	       fits(&claim->place.parts) && claim->place.slots == 0 && !claim->marker.asked &&
	       !claim->marker.broken && (holder == NULL || (!holder->lost && !holder->is_process));
}

/* The claim of this host that comes next behind the claim; NULL: none waits for it. */
static struct claim *find_local(const struct claim *claim)
{
	struct claim *behind, *found = NULL;
	for (behind = claim_blocked(&claim->place); behind != NULL;
	     behind = claim_blocked_next(behind)) {
		if (claim_asks_and_waits(behind) && fits(&behind->place.parts) &&
		    (found == NULL || place_compare(&behind->place, &found->place) < 0))
			found = behind;
	}
	return found;
}

static bool is_passed(const struct rival *rival, const struct claim *claim)
{
	return rival->heir == claim->place.parts.id.number;
}

/* The nearest rival from that place on, to the front, that the claim may pass; NULL: there is none.
 */
static struct rival *find_passed(const struct claim *claim, struct place *place)
{
	const struct place_queue *queue = &claim->place.lock->queue;

	while (place != NULL && (!place->foreign || !is_passed(rival_of(place), claim)))
		place = place_in_front(queue, place);
	return rival_of(place);
}

static struct rival *next_passed(const struct claim *claim, const struct place *place)
{
	return find_passed(claim, place_in_front(&claim->place.lock->queue, place));
}

bool bequest_passes(const struct claim *claim)
{
	return claim->place.lock->in_queue.foreign > 0 && next_passed(claim, &claim->place) != NULL;
}

/* Names what the heir of the claim may pass. Returns how many there are. */
static size_t list_names(const struct bequest *made, char own[][CLAIM_NAME_BYTES],
			 const char *names[ENGINE_TOLD_MAX])
{
	const struct claim *claim = made->claim;
	const struct rival *passed;
	const struct bequest *other;
	size_t count = 0;

	names[count] = place_name(&claim->place, own[count]);
	count++;
	passed = claim->state == CLAIM_HELD ? next_passed(claim, &claim->place) : NULL;
	for (; passed != NULL && count < ENGINE_TOLD_MAX;
	     passed = next_passed(claim, &passed->place))
		names[count++] = passed->name;
	DL_FOREACH (claim->place.lock->bequests, other) {
		if (other == made || other->claim->state != CLAIM_LEAVING ||
		    count == ENGINE_TOLD_MAX)
			continue;
		names[count] = place_name(&other->claim->place, own[count]);
		count++;
	}
	return count;
}

static void tell(const struct bequest *bequest)
{
	char own[ENGINE_TOLD_MAX][CLAIM_NAME_BYTES];
	const char *names[ENGINE_TOLD_MAX];
	size_t count = list_names(bequest, own, names);

	outbox_tell(bequest->claim->place.lock->engine, bequest->claim->place.lock->path,
		    &bequest->asker, bequest->heir, names, count);
}

/* The next claim of this host may pass what the claim has passed. */
static void leave_to(struct bequest *bequest, const struct claim *local)
{
	const struct claim *claim = bequest->claim;
	struct rival *passed = next_passed(claim, &claim->place);

	for (; passed != NULL; passed = next_passed(claim, &passed->place))
		passed->heir = local->place.parts.id.number;
	claim_name_format_placed(bequest->heir, &local->place.parts);
	bequest->asked = false;
}

/* Who asked so long ago may have gone. */
static void forget_former(const struct claim *claim)
{
	const struct engine *engine = claim->place.lock->engine;
	struct bequest *bequest = find(claim);

	if (bequest != NULL && engine->now_ms - bequest->asked_ms >= engine->session.timeout_ms)
		end(bequest);
}

void bequest_make(struct claim *claim)
{
	struct lock *lock = claim->place.lock;
	const struct claim *local;
	struct claim_name heir;
	struct bequest *bequest;

	if (!applies(lock) || claim->state != CLAIM_HELD || !may_be_made(claim))
		return;
	forget_former(claim);
	bequest = find(claim);
	local = find_local(claim);
	bool first = local != NULL && (bequest == NULL || (claim_name_parse(bequest->heir, &heir) &&
							   is_behind(&heir, &local->place.parts)));
	if (first && !bequest_passes(claim))
		return;
	if (first && bequest == NULL)
		bequest = create(claim);
	if (bequest == NULL)
		return;
	bequest->made = true;
	if (first)
		leave_to(bequest, local);
	else
		tell(bequest);
}

void bequest_inherit(struct claim *claim, const char *const *names, size_t count)
{
	struct lock *lock = claim->place.lock;

	if (!applies(lock) || !fits(&claim->place.parts) || !claim->overseen)
		return;
	for (size_t i = 0; i < count; i++) {
		struct rival *rival = rival_find(lock->queue.first, names[i]);
		if (rival == NULL || rival->orphan || !fits(&rival->place.parts) ||
		    !is_behind(&claim->place.parts, &rival->place.parts))
			continue;
		rival->heir = claim->place.parts.id.number;
		queue_weaken(&rival->place);
	}
}

bool bequest_disclaim(struct claim *claim, const char *heir)
{
	struct bequest *bequest = find(claim);
	bool was_heir = bequest != NULL && strcmp(bequest->heir, heir) == 0;

	if (was_heir)
		end(bequest);
	return was_heir;
}

/* The heir is of this host. */
static bool is_own(const struct bequest *bequest, const struct claim_name *heir)
{
	const struct engine *engine = bequest->claim->place.lock->engine;

	return heir->id.session == claim_id_session(engine->issued.session);
}

/* One of this host that has gone is over. */
static bool is_over(const struct bequest *bequest, const struct claim_name *heir)
{
	return is_own(bequest, heir) &&
	       queue_find_own(bequest->claim->place.lock, bequest->heir) == NULL;
}

/* Who has gone by another host's word still stands in the queue that is known here. */
static bool may_hold_unseen(const struct bequest *bequest, const struct claim *behind)
{
	const struct lock *lock = behind->place.lock;
	struct claim_name heir;

	return bequest->made && claim_name_parse(bequest->heir, &heir) && !is_own(bequest, &heir) &&
	       is_behind(&behind->place.parts, &heir) &&
	       rival_find(lock->queue.first, bequest->heir) == NULL;
}

bool bequest_lets_hold(const struct claim *claim)
{
	struct bequest *bequest;

	DL_FOREACH (claim->place.lock->bequests, bequest) {
		if (!may_hold_unseen(bequest, claim))
			continue;
		bequest->bars = true;
		return false;
	}
	return true;
}

/* Its host answers, if it is over. */
static void tell_again(struct bequest *bequest)
{
	struct engine *engine = bequest->claim->place.lock->engine;

	if (engine->now_ms < bequest->again_ms)
		return;
	bequest->again_ms =
		engine->now_ms + (engine->session.timeout_ms / SOON_IN_TIMEOUT << bequest->words++);
	tell(bequest);
}

void bequest_note_missing(struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	struct bequest *bequest = find(claim);
	int64_t timeout_ms = engine->session.timeout_ms;
	struct claim_name heir;

	if (bequest == NULL)
		return;
	if (!claim_name_parse(bequest->heir, &heir) || is_over(bequest, &heir)) {
		end(bequest);
		return;
	}
	bequest->until_ms = engine->now_ms + timeout_ms + timeout_ms / TELLINGS_IN_TIMEOUT;
	if (is_own(bequest, &heir))
		lock_list(claim->place.lock); /* which shows that it has gone */
}

const char *bequest_heir(struct claim *claim, bool *ret_held_back)
{
	struct engine *engine = claim->place.lock->engine;
	struct bequest *bequest = find(claim);

	*ret_held_back = false;
	if (bequest == NULL)
		return NULL;
	if (bequest->until_ms == 0)
		return bequest->heir;
	if (engine->now_ms >= bequest->until_ms) {
		end(bequest);
		return NULL;
	}
	*ret_held_back = true;
	lock_retry_in(engine, bequest->until_ms - engine->now_ms);
	if (bequest->asked) {
		tell_again(bequest);
		lock_retry_in(engine, bequest->again_ms - engine->now_ms);
	}
	return NULL;
}

int bequest_restore(struct claim *claim, const char *heir)
{
	struct bequest *bequest;
	struct claim_name parts;

	if (strlen(heir) >= sizeof(bequest->heir) || !claim_name_parse(heir, &parts))
		return -EINVAL;
	bequest = create(claim);
	if (bequest == NULL)
		return -ENOMEM;
	strcpy(bequest->heir, heir);
	bequest->made = true;
	return 0;
}
