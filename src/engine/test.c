/* SPDX-License-Identifier: Apache-2.0
 *
 * F_GETLK: a test is a claim that never stands in a queue. It asks for a list, reads foreign claims
 * as far as it has to, and tells the first lock in the order of the queue that conflicts. Of this
 * host, only what is held counts. Loop thread only.
 */
#include "engine/test.h"

#include <errno.h>

#include "engine/claim.h"
#include "engine/conflict.h"
#include "engine/lock.h"
#include "engine/record.h"
#include "engine/rival.h"

static struct engine_conflict tell_range(const struct records *records, const struct range *range)
{
	return (struct engine_conflict){.range = *range, .pid = records->pid};
}

/* What a process holds may be in several claims, but is told as one range. One that has lost a lock
 * holds nothing any more, but its other claims stand until it lets go. */
static struct engine_conflict tell_records(const struct claim *test, const struct claim *claim)
{
	const struct records *records = claim->owner->records;
	struct range asked = claim_coverage(test)->asked;
	const struct range *held = range_set_conflict(&records->held, asked.span, asked.mode);
	if (held == NULL)
		held = range_set_conflict(&claim_coverage(claim)->ranges, asked.span, asked.mode);
	return tell_range(records, held);
}

/* The records of the process that asks; NULL: it has none. */
static const struct records *records_of(const struct claim *test)
{
	return records_find(test->lock, claim_coverage(test)->process_id);
}

/* Whether the process that asks, or an open file of its, is the one that has the claim. */
static bool is_own(const struct claim *test, const struct claim *claim)
{
	const struct records *records = records_of(test);
	const struct owner *owner = claim->owner;
	if (owner == NULL)
		return false;
	if (owner->records != NULL)
		return owner->records == records;
	return owner == test->owner || (records != NULL && owners_are_one(owner, &records->owner));
}

/* What another process has locked under a flock of the same open file. */
static bool tell_covered(const struct claim *test, struct engine_conflict *ret)
{
	struct records *records, *next;
	struct range range = claim_coverage(test)->asked;
	HASH_ITER (hh, test->lock->records, records, next) {
		const struct range *held =
			range_set_conflict(&records->held, range.span, range.mode);
		if (records == records_of(test) || held == NULL)
			continue;
		*ret = tell_range(records, held);
		return true;
	}
	return false;
}

/* What is held by a claim of this host and conflicts. Returns false if nothing is. */
static bool tell_held(const struct claim *test, const struct claim *claim,
		      struct engine_conflict *ret)
{
	if (claim_coverage(claim) == NULL && claim_was_handed_over(claim) && !claim->owner->lost)
		return tell_covered(test, ret);
	if (claim_coverage(claim) != NULL)
		*ret = tell_records(test, claim);
	else
		*ret = (struct engine_conflict){
			.range = {claim->place.parts.span, claim->place.parts.mode},
			.pid = claim->pid,
		};
	return true;
}

/* The range of another host's process that conflicts. Returns false if more has to be read. */
static bool tell_foreign(const struct claim *test, struct claim *found,
			 struct engine_conflict *conflict)
{
	struct range range = claim_coverage(test)->asked;
	struct range_set held = {0};
	struct claim *claim;
	bool known = true;

	conflict->range = (struct range){found->place.parts.span, found->place.parts.mode};
	for (claim = claim_of(test->lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		if (claim->state != CLAIM_FOREIGN || !claims_are_one_process(claim, found))
			continue;
		if (!claim->read) {
			rival_watch(claim);
			known = false;
		} else if (claim_coverage(claim) != NULL) {
			(void)range_set_add(&held, &claim_coverage(claim)->ranges);
		}
	}
	const struct range *first = range_set_conflict(&held, range.span, range.mode);
	if (first != NULL)
		conflict->range = *first;
	range_set_finish(&held);
	return known;
}

/* Answers the test if its answer is known. */
static void settle(struct claim *test)
{
	struct engine_conflict conflict = {0};
	struct claim *claim;

	for (claim = claim_of(test->lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		if ((claim->state != CLAIM_FOREIGN && claim->state != CLAIM_HELD) ||
		    claim_is_kept(claim) || !places_cross(&claim->place, &test->place) ||
		    is_own(test, claim))
			continue;
		if (claim->state == CLAIM_FOREIGN &&
		    (claim_may_be_none(claim) || (claim->place.parts.record && !claim->read))) {
			rival_watch(claim);
			return;
		}
		if (claim->state == CLAIM_FOREIGN) {
			if (tell_foreign(test, claim, &conflict))
				test_answer(test, 0, &conflict);
			return;
		}
		if (!tell_held(test, claim, &conflict))
			continue;
		test_answer(test, 0, &conflict);
		return;
	}
	/* What was read is newer than the list, and others may have come before it was so. */
	if (tell_covered(test, &conflict))
		test_answer(test, 0, &conflict);
	else if (test->lock->read_since)
		test->list_wanted = lock_list_anew(test->lock);
	else
		test_answer(test, 0, NULL);
}

void tests_look_anew(struct lock *lock)
{
	struct claim *test;
	for (test = claim_of(lock->tests); test != NULL; test = claim_next(test)) {
		test->list_wanted = lock_list_anew(lock);
	}
}

void tests_settle(struct lock *lock)
{
	struct claim *test, *next;
	if (lock->engine->session != STORE_CONNECTED)
		return;
	for (test = claim_of(lock->tests); test != NULL; test = next) {
		next = claim_next(test);
		if (test->list_wanted <= lock->lists_done)
			settle(test);
	}
}

/* What this host holds is known without asking. */
static bool tell_own(const struct claim *test, struct engine_conflict *ret)
{
	const struct claim *claim;
	for (claim = claim_of(test->lock->queue.first); claim != NULL; claim = claim_next(claim)) {
		if (claim->state == CLAIM_FOREIGN && places_cross(&claim->place, &test->place))
			return false; /* perhaps this is the first */
		if (claim->state != CLAIM_HELD || claim_is_kept(claim) ||
		    !places_cross(&claim->place, &test->place) || is_own(test, claim))
			continue;
		if (tell_held(test, claim, ret))
			return true;
	}
	return false;
}

int test_begin(struct owner *file, uint64_t process, struct range range, void *cookie,
	       struct claim **ret_claim)
{
	static const struct engine_caller nobody = {.pid = 0};
	struct lock *lock = file->lock;
	struct records *records = records_find(lock, process);
	struct engine_conflict conflict;

	range.mode = lock_mode(lock, range.mode);
	*ret_claim = NULL;
	if (file->lost || (records != NULL && records->owner.lost))
		return -EIO;
	struct claim *test = claim_create(file, LOCK_KIND_RECORD, range, &nobody);
	if (test == NULL)
		return -ENOMEM;
	DL_DELETE(lock->unplaced, &test->place);
	claim_coverage(test)->file = file;
	claim_coverage(test)->process_id = process;
	test->state = CLAIM_TESTING;
	DL_APPEND(lock->tests, &test->place);
	lock->tests_count++;
	lock->own_in_queue++;
	*ret_claim = test;
	claim_ask(test, false, cookie);
	if (tell_own(test, &conflict))
		test_answer(test, 0, &conflict);
	else
		test->list_wanted = lock_list_anew(lock);
	return 0;
}
