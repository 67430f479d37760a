/* SPDX-License-Identifier: Apache-2.0
 *
 * F_GETLK: a test asks for a list, reads rivals as far as it has to, and tells the first
 * lock in the order of the queue that conflicts. Of this host, only what is held counts. Loop
 * thread only.
 */
#include "engine/records/test.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/books/decisions.h"
#include "engine/books/grace.h"
#include "engine/books/lock.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/state.h"
#include "engine/records/record.h"

void test_end(struct test *test)
{
	struct lock *lock = test->lock;
	struct engine *engine = lock->engine;

	DL_DELETE(lock->tests, test);
	timers_clear(&engine->agenda.timers, &test->timer);
	free(test);
	engine->count.tests--;
	engine->count.waiters--;
	lock->in_queue.tests--;
	lock->in_queue.own--;
	queue_release(lock);
}

static void answer(struct test *test, int error, const struct engine_conflict *conflict)
{
	decisions_add_test(test->lock->engine, test->cookie, error, conflict);
	test_end(test);
}

/* Whether a claim is of what the test asks for. */
static bool crosses(const struct test *test, const struct place *place)
{
	struct range range = test->range;
	const struct range_set set = {&range, 1, 1};
	return place_conflicts(place, &set);
}

static struct engine_conflict tell_range(const struct records *records, const struct range *range)
{
	return (struct engine_conflict){.range = *range, .pid = records->pid};
}

/* What a process holds may be in several claims, but is told as one range. One that has lost a lock
 * holds nothing any more, but its other claims stand until it lets go. */
static struct engine_conflict tell_records(const struct test *test, const struct claim *claim)
{
	const struct records *records = owner_records(owner_of(claim));
	struct range asked = test->range;
	const struct range *held = range_set_conflict(&records->held, asked.span, asked.mode);
	if (held == NULL)
		held = range_set_conflict(&claim_coverage(claim)->ranges, asked.span, asked.mode);
	return tell_range(records, held);
}

/* The records of the process that asks; NULL: it has none. */
static const struct records *records_of(const struct test *test)
{
	return records_find(test->lock, test->process);
}

/* Whether the process that asks, or an open file of its, is the one that has the claim. */
static bool is_own(const struct test *test, const struct claim *claim)
{
	const struct records *records = records_of(test);
	const struct owner *owner = owner_of(claim);
	if (owner == NULL)
		return false;
	if (owner->is_process)
		return owner_records(owner) == records;
	return owner == test->file || (records != NULL && owners_same_side(owner, &records->owner));
}

/* What another process has locked under a flock of the same open file. */
static bool tell_covered(const struct test *test, struct engine_conflict *ret)
{
	struct records *records, *next;
	struct range range = test->range;
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
static bool tell_held(const struct test *test, const struct claim *claim,
		      struct engine_conflict *ret)
{
	if (claim_coverage(claim) == NULL && owner_took_over(claim) && !owner_of(claim)->lost)
		return tell_covered(test, ret);
	if (claim_coverage(claim) != NULL)
		*ret = tell_records(test, claim);
	else
		*ret = (struct engine_conflict){
			.range = {claim->place.parts.span, claim->place.parts.mode},
			.pid = claim->wishes->pid,
		};
	return true;
}

/* The range of another host's process that conflicts. Returns false if more has to be read. */
static bool tell_foreign(const struct test *test, const struct rival *found,
			 struct engine_conflict *conflict)
{
	struct range range = test->range;
	struct range_set held = {0};
	struct rival *rival;
	bool known = true;

	conflict->range = (struct range){found->place.parts.span, found->place.parts.mode};
	RIVALS_FOREACH (test->lock->queue.first, rival) {
		if (!rivals_same_process(rival, found))
			continue;
		if (rival->known < KNOWN) {
			rival_watch(rival);
			known = false;
		} else if (rival->place.ranges != NULL) {
			(void)range_set_add(&held, rival->place.ranges);
		}
	}
	const struct range *first = range_set_conflict(&held, range.span, range.mode);
	if (first != NULL)
		conflict->range = *first;
	range_set_finish(&held);
	return known;
}

static void set_timer(struct test *test, int64_t due_ms)
{
	if (due_ms == INT64_MAX)
		timers_clear(&test->lock->engine->agenda.timers, &test->timer);
	else
		timers_set(&test->lock->engine->agenda.timers, &test->timer, due_ms);
}

/* Whether the rival may have been released before the test was asked for, and the news of that be
 * on their way (grace.h). Then the test is settled again when they come, or are late. */
static bool may_be_released(struct test *test, struct rival *rival)
{
	const struct lock *lock = test->lock;
	int64_t end_ms = grace_end_ms(lock, test->asked_ms, rival);

	if (rival->orphan || end_ms <= lock->engine->now_ms)
		return false;
	rival_watch(rival);
	set_timer(test, end_ms < test->limit_ms ? end_ms : test->limit_ms);
	return true;
}

/* Whether the claim is held by somebody else of this host, and conflicts. */
static bool is_in_the_way(const struct test *test, const struct claim *claim)
{
	return claim->state == CLAIM_HELD && !claim_is_spare(claim) &&
	       crosses(test, &claim->place) && !is_own(test, claim);
}

/* Answers the test if its answer is known. */
static void settle(struct test *test)
{
	struct engine_conflict conflict = {0};
	struct place *place;

	for (place = test->lock->queue.first; place != NULL; place = place->next) {
		struct rival *rival = rival_of(place);
		if (rival == NULL) {
			if (!is_in_the_way(test, claim_of(place)) ||
			    !tell_held(test, claim_of(place), &conflict))
				continue;
			answer(test, 0, &conflict);
			return;
		}
		if (!crosses(test, place))
			continue;
		if (rival->known == KNOWN_NOT || (place->parts.record && rival->known < KNOWN))
			rival_watch(rival);
		else if (!may_be_released(test, rival) && tell_foreign(test, rival, &conflict))
			answer(test, 0, &conflict);
		return;
	}
	/* What was read is newer than the list, and others may have come before it was so. */
	if (tell_covered(test, &conflict))
		answer(test, 0, &conflict);
	else if (test->lock->listing.read_since)
		test->list_wanted = lock_list_anew(test->lock);
	else
		answer(test, 0, NULL);
}

void tests_look_anew(struct lock *lock)
{
	struct test *test;
	DL_FOREACH (lock->tests, test) {
		test->list_wanted = lock_list_anew(lock);
	}
}

void tests_forget_lists(struct lock *lock)
{
	struct test *test;
	DL_FOREACH (lock->tests, test) {
		test->list_wanted = lock->listing.sent + 1;
	}
}

bool tests_need_list(const struct lock *lock)
{
	const struct test *test;
	DL_FOREACH (lock->tests, test) {
		if (test->list_wanted > lock->listing.done)
			return true;
	}
	return false;
}

void tests_settle(struct lock *lock)
{
	struct test *test, *next;
	if (lock->engine->session.state != STORE_CONNECTED)
		return;
	DL_FOREACH_SAFE (lock->tests, test, next) {
		if (test->list_wanted <= lock->listing.done)
			settle(test);
	}
}

void test_expire(struct test *test)
{
	struct lock *lock = test->lock;

	if (lock->engine->now_ms >= test->limit_ms) {
		answer(test, -ENOLCK, NULL);
		return;
	}
	set_timer(test, test->limit_ms);
	tests_settle(lock);
}

void tests_forget_file(const struct owner *file)
{
	struct test *test, *next;
	DL_FOREACH_SAFE (file->lock->tests, test, next) {
		if (test->file == file)
			test_end(test);
	}
}

void tests_lose(const struct owner *owner)
{
	const struct records *records = owner_records(owner);
	struct test *test, *next;
	DL_FOREACH_SAFE (owner->lock->tests, test, next) {
		if (records != NULL ? test->process == records->process_id : test->file == owner)
			answer(test, -EIO, NULL);
	}
}

/* What this host holds is known without asking. */
static bool tell_own(const struct test *test, struct engine_conflict *ret)
{
	const struct place *place;
	for (place = test->lock->queue.first; place != NULL; place = place->next) {
		const struct claim *claim = claim_of(place);
		if (claim == NULL && crosses(test, place))
			return false; /* perhaps this is the first */
		if (claim != NULL && is_in_the_way(test, claim) && tell_held(test, claim, ret))
			return true;
	}
	return false;
}

static struct test *create(struct owner *file, uint64_t process, struct range range, void *cookie)
{
	struct lock *lock = file->lock;
	struct engine *engine = lock->engine;

	struct test *test = calloc(1, sizeof(*test));
	if (test == NULL)
		return NULL;
	test->timer.on_due = engine->agenda.end_test;
	test->lock = lock;
	test->file = file;
	test->process = process;
	test->range = range;
	test->cookie = cookie;
	test->asked_ms = engine->now_ms;
	test->limit_ms = INT64_MAX;
	DL_APPEND(lock->tests, test);
	engine->count.tests++;
	engine->count.waiters++;
	lock->in_queue.tests++;
	lock->in_queue.own++;
	if (lock->policy.try_limit_ms != CONFIG_FOREVER)
		test->limit_ms = engine->now_ms + lock->policy.try_limit_ms;
	set_timer(test, test->limit_ms);
	return test;
}

int test_begin(struct owner *file, uint64_t process, struct range range, void *cookie,
	       struct test **ret_test)
{
	const struct records *records = records_find(file->lock, process);
	struct engine_conflict conflict;

	range.mode = lock_mode(file->lock, range.mode);
	*ret_test = NULL;
	if (file->lost || (records != NULL && records->owner.lost))
		return -EIO;
	struct test *test = create(file, process, range, cookie);
	if (test == NULL)
		return -ENOMEM;
	*ret_test = test;
	if (tell_own(test, &conflict))
		answer(test, 0, &conflict);
	else
		test->list_wanted = lock_list_anew(file->lock);
	return 0;
}
