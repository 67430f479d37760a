/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of wishes and of what is held, as callers are told: granted, refused, withdrawn, or
 * lost. Loop thread only.
 */
#include "engine/decide.h"

#include <errno.h>

#include "engine/books/bequest.h"
#include "engine/books/claim.h"
#include "engine/books/decisions.h"
#include "engine/books/drain.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/save.h"
#include "engine/books/wish.h"
#include "engine/handoff.h"
#include "engine/proof.h"
#include "engine/records/coverage.h"
#include "engine/records/record.h"
#include "engine/records/test.h"
#include "engine/turnstile.h"

static void lose_owner(struct owner *owner, enum engine_loss loss);

/* The process has lost a lock: it holds nothing any more, and its open files are told. */
static void lose_records(struct records *records, enum engine_loss loss)
{
	coverage_set_held(records, (struct range_set){0});
	for (size_t i = 0; i < records->files_count; i++)
		lose_owner(records->files[i], loss);
}

/* The open file has lost a lock: ends what processes ask for through it. */
static void lose_asked_through(const struct owner *file)
{
	struct records *records, *next;
	struct wish *wish, *next_wish;
	HASH_ITER (hh, file->lock->records, records, next) {
		OWNER_FOREACH_SAFE (&records->owner, wish, next_wish) {
			if (!wish_is_held(wish) && claim_coverage(wish->claim)->file == file)
				decide_refuse_wish(wish, -EIO);
		}
	}
}

static void note_lost(struct owner *owner, enum engine_loss loss)
{
	if (!owner->lost && !owner->is_process)
		decisions_add(owner->lock->engine, LOST, owner->cookie, 0);
	if (!owner->lost)
		owner->loss = loss;
	owner->lost = true;
	owner_mark(owner);
}

void decide_note_lost(const struct lock *lock, enum engine_loss loss)
{
	const struct records *records;
	const struct claim *claim;

	CLAIMS_FOREACH (lock->queue.first, claim) {
		struct owner *owner = claim->state == CLAIM_HELD ? owner_of(claim) : NULL;
		if (owner != NULL && !owner->is_process)
			note_lost(owner, loss);
	}
	for (records = lock->records; records != NULL; records = records->hh.next) {
		for (size_t i = 0; records->held.count > 0 && i < records->files_count; i++)
			note_lost(records->files[i], loss);
	}
}

static void lose_owner(struct owner *owner, enum engine_loss loss)
{
	struct records *records = owner_records(owner);
	struct wish *wish, *next;

	note_lost(owner, loss);
	if (records != NULL) {
		lose_records(records, loss);
	} else {
		lose_asked_through(owner);
		proofs_lose_file(owner);
	}
	tests_lose(owner);
	DL_FOREACH_SAFE2 (owner->wishes, wish, next, owner_next) {
		if (!wish_is_held(wish))
			decide_refuse_wish(wish, -EIO);
	}
}

void decide_lose_lock(struct owner *owner, bool flock, enum engine_loss loss)
{
	struct records *records, *next;

	lose_owner(owner, loss);
	HASH_ITER (hh, owner->lock->records, records, next) {
		if (flock && records->held.count > 0 && !coverage_is_complete(records))
			lose_owner(&records->owner, loss);
	}
}

/* Counts by which way it was known that those of other hosts have released. */
static void note_way(const struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;

	if (!claim->rivaled || !engine->has_peers)
		return;
	if (bequest_passes(claim))
		engine->count.by_message++;
	else
		engine->count.by_store++;
}

void decide_grant(struct claim *claim)
{
	struct wish *wish = claim_first_asked(claim);
	struct engine *engine = claim->place.lock->engine;
	void *cookie = wish->cookie;

	if (!claim->place.parts.record) {
		note_way(claim);
		turnstile_let_in(claim);
		handoff_give(claim, wish);
		if (claim->place.lock->handoffs.held != NULL)
			handoff_go_on(claim);
		return;
	}
	wish_end(wish);
	decisions_add(engine, DECIDED, cookie, records_grant(claim));
}

static void tell_refused(const struct wish *wish, int result)
{
	if (wish->asked)
		decisions_add(wish_lock(wish)->engine, DECIDED, wish->cookie, result);
}

void decide_refuse(struct claim *claim, int result)
{
	while (claim->wishes != NULL) {
		tell_refused(claim->wishes, result);
		wish_free(claim->wishes);
	}
	claim_withdraw(claim);
}

void decide_refuse_hasty(struct claim *claim, int result)
{
	struct wish *wish, *next;
	size_t patient = 0;

	DL_FOREACH (claim->wishes, wish) {
		patient += !wish->asked || wish->waits;
	}
	if (patient == 0) {
		decide_refuse(claim, result);
		return;
	}
	DL_FOREACH_SAFE (claim->wishes, wish, next) {
		if (!wish->asked || wish->waits)
			continue;
		tell_refused(wish, result);
		wish_free(wish);
	}
	queue_judge(claim);
}

void decide_refuse_drained(const struct lock *lock)
{
	struct claim *claim, *next;

	if (!lock->engine->grants.draining)
		return;
	CLAIMS_FOREACH_SAFE (lock->unplaced, claim, next) {
		const struct wish *asked = claim_first_asked(claim);
		if (claim->state == CLAIM_WANTED && asked != NULL && !asked->waits &&
		    drain_holds_back(claim))
			decide_refuse_hasty(claim, -ENOLCK);
	}
}

void decide_lose(struct claim *claim, enum engine_loss loss)
{
	struct owner *owner = owner_of(claim);
	bool flock = !claim->place.parts.record;

	claim_uncount_held(claim, owner == NULL);
	claim_disband(claim);
	claim_end(claim);
	if (owner != NULL)
		decide_lose_lock(owner, flock, loss);
}

void decide_withdraw_wish(struct wish *wish)
{
	struct claim *claim = wish->claim;

	if (wish_is_held(wish)) {
		claim_withdraw(claim);
		return;
	}
	wish_free(wish);
	handoff_go_on(claim);
}

void decide_refuse_wish(struct wish *wish, int result)
{
	tell_refused(wish, result);
	decide_withdraw_wish(wish);
}
