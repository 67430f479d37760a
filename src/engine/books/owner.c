/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "engine/books/owner.h"

#include "engine/books/save.h"
#include "engine/books/state.h"

uint32_t owner_next_number(struct engine *engine)
{
	engine_mark(engine);
	return 1 + (uint32_t)(engine->issued.owner++ % (CLAIM_OWNERS - 1));
}

struct owner *owner_of(const struct claim *claim)
{
	const struct wish *wish = claim->wishes;
	if (claim->handoff != NULL && claim->state != CLAIM_HELD)
		wish = claim_first_asked(claim);
	return wish != NULL ? wish->owner : NULL;
}

struct owner *owner_side(const struct claim *claim)
{
	return claim->handoff != NULL && claim->state != CLAIM_HELD ? NULL : owner_of(claim);
}

bool owners_same_side(const struct owner *a, const struct owner *b)
{
	if (a == NULL || b == NULL)
		return false;
	if (a == b)
		return true;
	const struct records *records = a->is_process ? owner_records(a) : owner_records(b);
	const struct owner *file = a->is_process ? b : a;
	if (records == NULL || file->is_process)
		return false;
	for (size_t i = 0; i < records->files_count; i++) {
		if (records->files[i] == file)
			return true;
	}
	return false;
}

bool owner_took_over(const struct claim *claim)
{
	const struct owner *owner = owner_of(claim);
	return owner != NULL && owner->is_process && claim_coverage(claim) == NULL;
}

bool owner_side_holds(const struct claim *claim)
{
	const struct claim *held;
	CLAIMS_FOREACH (claim->place.lock->queue.first, held) {
		if (held->state == CLAIM_HELD &&
		    owners_same_side(owner_of(held), owner_side(claim)))
			return true;
	}
	return false;
}

struct claim *owner_held_but(const struct owner *owner, const struct claim *claim)
{
	struct wish *wish;
	OWNER_FOREACH (owner, wish) {
		if (wish->claim != claim && wish_is_held(wish))
			return wish->claim;
	}
	return NULL;
}

void owner_note_grant(struct owner *owner)
{
	struct engine *engine = owner->lock->engine;

	owner->granted = ++engine->issued.grants;
	engine_mark(engine);
	owner_mark(owner);
}
