/* SPDX-License-Identifier: Apache-2.0
 *
 * What daemons of other hosts ask and tell: see books/bequest.h. Loop thread only.
 */
#include <string.h>

#include "engine/books/bequest.h"
#include "engine/books/claim.h"
#include "engine/books/lock.h"
#include "engine/books/outbox.h"
#include "engine/books/queue.h"
#include "engine/engine.h"
#include "engine/settle.h"

void engine_peer_asked(struct engine *engine, const char *path, const char *name, const char *heir,
		       const struct engine_peer *asker)
{
	struct lock *lock = lock_find(engine, path);
	struct claim *claim = lock != NULL ? queue_find_own(lock, name) : NULL;

	if (claim != NULL)
		bequest_note_asked(claim, heir, asker);
}

/* A claim of ours that leaves. */
static struct claim *find_leaving(const struct lock *lock, const char *name)
{
	char own[CLAIM_NAME_BYTES];
	struct claim *claim;

	CLAIMS_FOREACH (lock->leaving, claim) {
		if (strcmp(place_name(&claim->place, own), name) == 0)
			return claim;
	}
	return NULL;
}

/* Whether nobody of this host holds by a claim of that name, which stands in no queue of ours, and
 * never will: it was given to one of this session, and is not on its way there. */
static bool is_over(const struct engine *engine, const struct lock *lock,
		    const struct claim_name *parts)
{
	const struct claim *claim;

	if (parts->id.session != claim_id_session(engine->issued.session))
		return false;
	CLAIMS_FOREACH (lock != NULL ? lock->unplaced : NULL, claim) {
		if (claim->place.parts.id.number == parts->id.number)
			return false;
	}
	return true;
}

/* The heir of a claim of ours, which leaves, is over: nobody is to be waited for. */
static void go_on(struct claim *claim, const char *heir)
{
	if (bequest_disclaim(claim, heir))
		claim_withdraw(claim); /* unless that is under way */
}

void engine_peer_told(struct engine *engine, const char *path, const char *name,
		      const char *const *names, size_t count, const struct engine_peer *from)
{
	struct lock *lock = lock_find(engine, path);
	struct claim *claim = lock != NULL ? queue_find_own(lock, name) : NULL;
	struct claim *leaving = lock != NULL ? find_leaving(lock, name) : NULL;
	struct claim_name parts, told;

	if (count == 0 || !claim_name_parse(name, &parts) || !claim_name_parse(names[0], &told))
		return;
	bool from_behind = claim_name_compare(told.order, "", parts.order, "") > 0;
	if (claim != NULL && !from_behind)
		bequest_inherit(claim, names, count);
	else if (leaving != NULL && from_behind)
		go_on(leaving, names[0]);
	else if (!from_behind && is_over(engine, lock, &parts))
		outbox_tell(engine, path, from, names[0], &name, 1);
	if (lock != NULL)
		settle_lock(lock);
	else
		outbox_conclude(engine);
}
