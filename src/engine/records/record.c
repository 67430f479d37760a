/* SPDX-License-Identifier: Apache-2.0
 *
 * Record locks: what processes hold, by the rules of fcntl(2).
 *
 * `held` is the truth for the process: a set of ranges. What is held more takes a new claim, which
 * is granted in its turn; a process with many claims asks for the next range with a sparse one that
 * covers all it holds. Which claims stand for what is held is coverage.c's business.
 *
 * Loop thread only.
 */
#include "engine/records/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/decisions.h"
#include "engine/books/drain.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/save.h"
#include "engine/books/wish.h"
#include "engine/records/coverage.h"

/* A process that has so many claims on a file gathers them in one with its next. Where the former
 * ones have to stay all the same, or that one waits, it has twice as many before the next one
 * gathers all again, and so on: the ranges of all claims together are not the square of what is
 * held. */
enum { CLAIMS_MAX = 16 };

/* The books of processes */

static struct process *find_or_create_process(struct engine *engine, uint64_t id)
{
	struct process *process;
	HASH_FIND(hh, engine->processes, &id, sizeof(id), process);
	if (process != NULL)
		return process;
	process = calloc(1, sizeof(*process));
	if (process == NULL)
		return NULL;
	process->id = id;
	process->number = owner_next_number(engine);
	HASH_ADD(hh, engine->processes, id, sizeof(process->id), process);
	if (process->hh.tbl == NULL) {
		free(process);
		return NULL;
	}
	return process;
}

static void free_process_if_unused(struct engine *engine, struct process *process)
{
	if (process->records != NULL)
		return;
	HASH_DEL(engine->processes, process);
	free(process);
}

struct records *records_open(struct lock *lock, uint64_t process_id)
{
	struct records *records = records_find(lock, process_id);
	if (records != NULL)
		return records;
	struct process *process = find_or_create_process(lock->engine, process_id);
	if (process == NULL)
		return NULL;
	records = calloc(1, sizeof(*records));
	if (records == NULL) {
		free_process_if_unused(lock->engine, process);
		return NULL;
	}
	records->process_id = process_id;
	records->owner.lock = lock;
	records->owner.number = process->number;
	records->owner.is_process = true;
	records->process = process;
	HASH_ADD(hh, lock->records, process_id, sizeof(records->process_id), records);
	if (records->hh.tbl == NULL) {
		free_process_if_unused(lock->engine, process);
		free(records);
		return NULL;
	}
	DL_APPEND2(process->records, records, process_prev, process_next);
	return records;
}

bool records_process_holds(const struct process *process)
{
	const struct records *records;
	DL_FOREACH2 (process->records, records, process_next) {
		if (records->held.count > 0)
			return true;
	}
	return false;
}

void records_free(struct records *records)
{
	struct lock *lock = records->owner.lock;
	struct process *process = records->process;
	coverage_set_held(records, (struct range_set){0});
	HASH_DEL(lock->records, records);
	DL_DELETE2(process->records, records, process_prev, process_next);
	free_process_if_unused(lock->engine, process);
	engine_unmark(lock->engine, &records->owner.item);
	free(records->files);
	free(records);
}

int records_add_file(struct records *records, struct owner *file)
{
	if (owners_same_side(&records->owner, file))
		return 0;
	if (records->files_count == records->files_capacity) {
		size_t capacity = records->files_capacity * 2 + 1;
		struct owner **files =
			reallocarray(records->files, capacity, sizeof(struct owner *));
		if (files == NULL)
			return -ENOMEM;
		records->files = files;
		records->files_capacity = capacity;
	}
	records->files[records->files_count++] = file;
	owner_mark(&records->owner);
	/* It matters to nobody, unless something was asked for through the file itself. */
	if (file->wishes != NULL)
		queue_judge_all(file->lock);
	return 0;
}

struct records *records_find(const struct lock *lock, uint64_t process_id)
{
	struct records *records;
	HASH_FIND(hh, lock->records, &process_id, sizeof(process_id), records);
	return records;
}

bool records_cover(const struct claim *claim)
{
	return coverage_includes(owner_records(owner_of(claim)), claim_coverage(claim)->asked);
}

/* What the process holds, and the range. */
static int add_range(const struct records *records, struct range range, struct range_set *ret)
{
	int error = range_set_copy(&records->held, ret);
	if (error == 0) {
		error = range_set_lock(ret, range.span, range.mode);
		if (error != 0)
			range_set_finish(ret);
	}
	return error;
}

/* The process holds this from now on, as its claims and flocks cover it. Returns 0 or -ENOMEM. */
static int grant_covered(struct records *records, struct range_set held)
{
	owner_note_grant(&records->owner);
	return coverage_change(records, held);
}

int records_grant(struct claim *claim)
{
	struct records *records = owner_records(owner_of(claim));
	bool covered = records_cover(claim);
	struct range_set held;
	int error = add_range(records, claim_coverage(claim)->asked, &held);

	if (error == 0 && covered)
		error = grant_covered(records, held);
	if (error != 0 || covered) {
		claim_withdraw(claim);
		return error;
	}
	bool overlaps = claim->place.parts.sparse ||
			range_set_conflict(&records->held, claim->place.parts.span,
					   CLAIM_EXCLUSIVE) != NULL;
	coverage_set_held(records, held);
	claim_hold(claim);
	queue_judge_onlookers(claim);
	coverage_tidy(claim, overlaps);
	return 0;
}

/* Calls */

/* Whether the process may hold that instead of what it holds: not more ranges than it is allowed,
 * or not more than now. To release a part may take it to twice as many. */
static bool is_within_limits(const struct records *records, const struct range_set *held,
			     bool releases)
{
	const struct lock *lock = records->owner.lock;
	const struct engine *engine = lock->engine;
	size_t times = releases ? 2 : 1;
	if (held->count <= records->held.count)
		return true;
	size_t more = held->count - records->held.count;
	return records->process->ranges + more <= times * (size_t)lock->policy.process_ranges &&
	       lock->in_queue.held_ranges + more <= times * (size_t)lock->policy.file_ranges &&
	       (engine->events->may_hold == NULL ||
		engine->events->may_hold(engine->context, records->files[0]->cookie, more,
					 releases));
}

static struct claim *find_lingering(const struct owner *owner, struct range range)
{
	const struct wish *wish;
	OWNER_FOREACH (owner, wish) {
		const struct coverage *coverage = claim_coverage(wish->claim);
		if (wish->asked || wish_is_held(wish) || coverage == NULL)
			continue;
		const struct range *asked = &coverage->asked;
		if (asked->span.start == range.span.start && asked->span.end == range.span.end &&
		    asked->mode == range.mode)
			return wish->claim;
	}
	return NULL;
}

/* Ends a wish for record locks, or what it was granted, without a decision. */
static void drop(struct wish *wish)
{
	wish_end(wish);
	claim_withdraw(wish->claim);
}

/* Calls of the process that were interrupted are not restarted if it asks for something else: to
 * other hosts it would seem to wait for that, too, and for itself. */
static void end_lingering(const struct owner *owner)
{
	struct wish *wish, *next;
	OWNER_FOREACH_SAFE (owner, wish, next) {
		if (!wish->asked && !wish_is_held(wish) && claim_coverage(wish->claim) != NULL)
			drop(wish);
	}
}

static bool is_to_gather(const struct owner *owner)
{
	size_t held = 0, least = CLAIMS_MAX;
	bool gathered = false;
	const struct wish *wish;

	OWNER_FOREACH (owner, wish) {
		held += wish_is_held(wish);
		if (!wish->claim->place.parts.sparse)
			continue;
		/* The first one has replaced the others, as a rule. */
		if (gathered && least < SIZE_MAX / 2)
			least *= 2;
		gathered = true;
	}
	return held >= least;
}

/* Makes the claim cover all that the process holds, too, so that it can replace the others. */
static void gather(struct claim *claim)
{
	struct coverage *coverage = claim_coverage(claim);
	const struct records *records = owner_records(owner_of(claim));
	struct range_set all;

	if (!is_to_gather(&records->owner) || add_range(records, coverage->asked, &all) < 0)
		return;
	range_set_finish(&coverage->ranges);
	coverage->ranges = all;
	claim->place.parts.span = range_set_span(&all);
	claim->place.parts.mode = range_set_mode(&all);
	claim->place.parts.sparse = true;
}

static int ask(struct records *records, struct owner *file, struct range range, bool waits,
	       const struct engine_caller *caller, void *cookie, struct wish **ret_wish)
{
	struct owner *owner = &records->owner;
	struct claim *claim = waits ? find_lingering(owner, range) : NULL;

	if (!waits && drain_refuses(owner))
		return -ENOLCK;
	if (!waits && conflict_is_here(owner, range)) {
		decisions_add(file->lock->engine, DECIDED, cookie, -EWOULDBLOCK);
		return 0;
	}
	if (claim == NULL) {
		end_lingering(owner);
		claim = claim_create_for(owner, LOCK_KIND_RECORD, range, false, caller);
		if (claim == NULL)
			return -ENOMEM;
		gather(claim);
	}
	claim_coverage(claim)->file = file;
	*ret_wish = claim->wishes;
	claim_ask(claim->wishes, waits, cookie);
	return 0;
}

int records_lock_range(struct records *records, struct owner *file, struct range range, bool waits,
		       const struct engine_caller *caller, void *cookie, struct wish **ret_wish)
{
	struct range_set held;

	if (add_range(records, range, &held) < 0)
		return -ENOMEM;
	bool within = is_within_limits(records, &held, false);
	if (!within || !coverage_includes(records, range)) {
		range_set_finish(&held);
		return within ? ask(records, file, range, waits, caller, cookie, ret_wish)
			      : -ENOLCK;
	}
	if (grant_covered(records, held) < 0)
		return -ENOMEM;
	decisions_add(file->lock->engine, DECIDED, cookie, 0);
	return 0;
}

int records_unlock_range(struct records *records, struct claim_span span)
{
	struct range_set held;
	int error = range_set_copy(&records->held, &held);

	if (error != 0)
		return error;
	error = range_set_unlock(&held, span);
	if (error == 0 && !is_within_limits(records, &held, true))
		error = -ENOLCK;
	if (error == 0)
		return coverage_change(records, held);
	range_set_finish(&held);
	return error;
}

void records_end(struct records *records, const struct owner *file)
{
	struct wish *wish, *next;

	coverage_set_held(records, (struct range_set){0});
	OWNER_FOREACH_SAFE (&records->owner, wish, next) {
		if (claim_coverage(wish->claim) == NULL)
			coverage_pass_on(wish->claim);
		else if (!wish->asked || claim_coverage(wish->claim)->file == file)
			drop(wish);
	}
	coverage_release(records);
}

static void forget_file(struct records *records, const struct owner *file)
{
	for (size_t i = 0; i < records->files_count; i++) {
		if (records->files[i] != file)
			continue;
		coverage_account(records, -(ptrdiff_t)records->held.count);
		records->files_count--;
		memmove(&records->files[i], &records->files[i + 1],
			(records->files_count - i) * sizeof(*records->files));
		coverage_account(records, (ptrdiff_t)records->held.count);
		owner_mark(&records->owner);
		return;
	}
}

void records_forget_file(struct owner *file)
{
	struct records *records, *next;
	struct wish *wish, *next_wish;
	HASH_ITER (hh, file->lock->records, records, next) {
		OWNER_FOREACH_SAFE (&records->owner, wish, next_wish) {
			if (claim_coverage(wish->claim) != NULL && !wish_is_held(wish) &&
			    claim_coverage(wish->claim)->file == file)
				drop(wish);
		}
		forget_file(records, file);
		if (records->files_count > 0)
			continue;
		records_end(records, file);
		records_free(records);
	}
}
