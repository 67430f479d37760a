/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of wishes and of what is held, as callers are told: granted, refused, withdrawn, or
 * lost. Loop thread only.
 */
#include "engine/decide.h"

#include <errno.h>

#include "engine/claim.h"
#include "engine/conflict.h"
#include "engine/coverage.h"
#include "engine/lead.h"
#include "engine/lock.h"
#include "engine/record.h"
#include "engine/save.h"
#include "engine/test.h"
#include "engine/wish.h"

/* The process has lost a lock: it holds nothing any more, and its open files are told. */
static void lose_records(struct records *records)
{
	coverage_set_held(records, (struct range_set){0});
	for (size_t i = 0; i < records->files_count; i++)
		owner_lose(records->files[i]);
}

/* The open file has lost a lock: ends what processes ask for through it. */
static void lose_asked_through(const struct owner *file)
{
	struct records *records, *next;
	struct claim *claim, *next_claim;
	HASH_ITER (hh, file->lock->records, records, next) {
		OWNER_FOREACH_SAFE (&records->owner, claim, next_claim) {
			if (claim->state == CLAIM_HELD || claim_coverage(claim)->file != file)
				continue;
			if (claim->wish.asked)
				claim_decide(claim, -EIO);
			else
				claim_withdraw(claim);
		}
	}
}

void owner_lose(struct owner *owner)
{
	struct engine *engine = owner->lock->engine;
	struct records *records = owner->records;
	struct wish *wish, *next;

	if (!owner->lost && records == NULL) {
		owner->lost = true;
		engine->events->on_lost(engine->context, owner->cookie);
	}
	owner->lost = true;
	owner_mark(owner);
	if (records != NULL) {
		lose_records(records);
	} else {
		lose_asked_through(owner);
		proofs_lose_file(owner);
	}
	tests_lose(owner);
	DL_FOREACH_SAFE2 (owner->wishes, wish, next, owner_next) {
		if (wish->asked)
			wish_refuse(wish, -EIO);
		else if (!wish_is_held(wish))
			wish_withdraw(wish);
	}
}

void lock_lose_uncovered(struct lock *lock)
{
	struct records *records, *next;
	HASH_ITER (hh, lock->records, records, next) {
		if (records->held.count > 0 && !coverage_is_complete(records))
			owner_lose(&records->owner);
	}
}

void claim_decide(struct claim *claim, int result)
{
	struct engine *engine = claim->place.lock->engine;
	void *cookie = claim->wish.cookie;

	if (claim->lead != NULL) {
		lead_decided(claim, result);
		return;
	}
	wish_end(&claim->wish);
	if (result != 0)
		claim_withdraw(claim);
	else if (claim->wish.kind == LOCK_KIND_RECORD)
		result = records_grant(claim);
	else
		claim_hold_file(claim);
	engine->events->on_decided(engine->context, cookie, result);
}

void claim_lose(struct claim *claim)
{
	struct owner *owner = claim->owner;
	struct lock *lock = claim->place.lock;
	bool flock = claim->wish.kind != LOCK_KIND_RECORD;
	bool kept = claim_is_kept(claim);

	claim_uncount_held(claim, kept);
	lead_disband(claim);
	claim_end(claim);
	if (kept)
		return;
	owner_lose(owner);
	if (flock)
		lock_lose_uncovered(lock);
}

void wish_withdraw(struct wish *wish)
{
	if (wish->follows)
		lead_unfollow(follower_of(wish));
	else
		lead_withdraw(wish_claim(wish));
}

void wish_refuse(struct wish *wish, int result)
{
	if (wish->follows)
		lead_refuse(follower_of(wish), result);
	else
		claim_decide(wish_claim(wish), result);
}
