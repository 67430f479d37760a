/* SPDX-License-Identifier: Apache-2.0
 *
 * Record locks: what processes hold, by the rules of fcntl(2), and which claims stand for it.
 *
 * `held` is the truth for the process: a set of ranges. For others, each piece of it is covered by
 * a claim in the queue, or by a flock of an open file through which the process has locked. What is
 * held more takes a new claim, which is granted in its turn; what is held less makes claims cover
 * less, or go. After a grant, older claims that it makes needless go, unless others stand between:
 * they may wait for them. A process with many claims asks for the next range with a sparse one that
 * covers all it holds.
 *
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine_state.h"

/* A process that has so many claims on a file gathers them in one with its next. */
enum { CLAIMS_MAX = 16 };

/* The books of processes */

struct records *records_find(const struct lock *lock, uint64_t process_id)
{
	struct records *records;
	HASH_FIND(hh, lock->records, &process_id, sizeof(process_id), records);
	return records;
}

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
	process->number = ++engine->owner_number % CLAIM_OWNERS;
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

static struct records *find_or_create(struct lock *lock, uint64_t process_id)
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
	records->owner.records = records;
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

bool process_holds(const struct process *process)
{
	const struct records *records;
	DL_FOREACH2 (process->records, records, process_next) {
		if (records->held.count > 0)
			return true;
	}
	return false;
}

/* The process holds this from now on; the set is taken over. */
static void set_held(struct records *records, struct range_set held)
{
	struct lock *lock = records->owner.lock;
	lock->ranges += held.count - records->held.count;
	records->process->ranges += held.count - records->held.count;
	range_set_finish(&records->held);
	records->held = held;
}

/* Frees what has no claims any more. */
static void free_records(struct records *records)
{
	struct lock *lock = records->owner.lock;
	struct process *process = records->process;
	set_held(records, (struct range_set){0});
	HASH_DEL(lock->records, records);
	DL_DELETE2(process->records, records, process_prev, process_next);
	free_process_if_unused(lock->engine, process);
	free(records->files);
	free(records);
}

/* From now on the process and the open file are one. */
static int add_file(struct records *records, struct owner *file)
{
	struct claim *claim;
	if (owners_are_one(&records->owner, file))
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
	DL_FOREACH (file->lock->queue, claim) {
		queue_unsettle(claim);
	}
	return 0;
}

void records_lose(struct records *records)
{
	struct claim *test, *next;

	set_held(records, (struct range_set){0});
	for (size_t i = 0; i < records->files_count; i++)
		owner_lose(records->files[i]);
	DL_FOREACH_SAFE (records->owner.lock->tests, test, next) {
		if (test->coverage->process_id == records->process_id)
			claim_decide(test, -EIO);
	}
}

void records_lose_file(const struct owner *file)
{
	struct records *records, *next;
	struct claim *claim, *next_claim;
	HASH_ITER (hh, file->lock->records, records, next) {
		DL_FOREACH_SAFE2 (records->owner.claims, claim, next_claim, owner_next) {
			if (claim->state == CLAIM_HELD || claim->coverage->file != file)
				continue;
			if (claim->asked)
				claim_decide(claim, -EIO);
			else
				claim_withdraw(claim);
		}
	}
}

const struct range_set *engine_ranges(const struct owner *file, uint64_t process)
{
	const struct records *records = records_find(file->lock, process);
	return records != NULL && records->held.count > 0 ? &records->held : NULL;
}

/* What covers what */

static bool is_held_flock(const struct claim *claim)
{
	return claim->state == CLAIM_HELD && claim->kind != LOCK_KIND_RECORD;
}

/* Adds what the owner's claims, but for one, cover. Returns 0 or -ENOMEM. */
static int add_coverage(const struct owner *owner, const struct claim *but, struct range_set *set)
{
	const struct claim *claim;
	int error = 0;
	DL_FOREACH2 (owner->claims, claim, owner_next) {
		if (claim == but || claim->state != CLAIM_HELD || error != 0)
			continue;
		struct range whole = {claim->parts.span, claim->parts.mode};
		struct range_set span = {&whole, 1, 1};
		error = range_set_add(set,
				      claim->coverage != NULL ? &claim->coverage->ranges : &span);
	}
	return error;
}

/* Whether something of what the process holds is covered by no other claim than this one; NULL: by
 * none at all. Without memory to tell, it is. */
static bool is_needed(const struct records *records, const struct claim *claim)
{
	struct range_set set = {0};
	int error = add_coverage(&records->owner, claim, &set);
	for (size_t i = 0; error == 0 && i < records->files_count; i++)
		error = add_coverage(records->files[i], claim, &set);
	bool needed = error != 0 || !range_set_contains(&set, &records->held);
	range_set_finish(&set);
	return needed;
}

void records_lose_uncovered(struct lock *lock)
{
	struct records *records, *next;
	HASH_ITER (hh, lock->records, records, next) {
		if (records->held.count > 0 && is_needed(records, NULL))
			owner_lose(&records->owner);
	}
}

/* Whether the process may have locked under the flock. Once that was handed over, nobody knows for
 * whom. */
static bool may_cover(const struct claim *flock, const struct records *records)
{
	return flock->owner->records != NULL || owners_are_one(&records->owner, flock->owner);
}

struct owner *records_heir(const struct claim *flock)
{
	struct lock *lock = flock->lock;
	struct records *records, *next;
	HASH_ITER (hh, lock->records, records, next) {
		if (&records->owner != flock->owner && may_cover(flock, records) &&
		    is_needed(records, flock))
			return &records->owner;
	}
	return NULL;
}

/* Whether another process than `but`, whose locks the flock may cover, holds what conflicts. */
static bool flock_covers_others(const struct claim *flock, const struct owner *but,
				const struct range_set *ranges)
{
	struct records *records, *next;
	HASH_ITER (hh, flock->lock->records, records, next) {
		if (&records->owner != but && may_cover(flock, records) &&
		    range_sets_conflict(&records->held, ranges))
			return true;
	}
	return false;
}

bool records_are_in_the_way(const struct claim *a, const struct claim *b)
{
	const struct claim *flock = is_held_flock(a) ? a : b;
	const struct claim *record = is_held_flock(a) ? b : a;
	return is_held_flock(flock) && record->coverage != NULL &&
	       flock_covers_others(flock, record->owner, &record->coverage->ranges);
}

/* Whether one of the owner's flocks, or an open, covers the range, and nobody else who has locked
 * under it is in the way. */
static bool flock_covers(const struct owner *owner, const struct owner *process, struct range range)
{
	const struct range_set ranges = {&range, 1, 1};
	const struct claim *claim;
	DL_FOREACH2 (owner->claims, claim, owner_next) {
		if (is_held_flock(claim) && claim->parts.mode >= range.mode &&
		    !flock_covers_others(claim, process, &ranges))
			return true;
	}
	return false;
}

/* Whether the process can have the range at once. */
static bool is_covered(const struct records *records, struct range range)
{
	if (range_set_covers(&records->held, range.span, range.mode) ||
	    flock_covers(&records->owner, &records->owner, range))
		return true;
	for (size_t i = 0; i < records->files_count; i++) {
		if (flock_covers(records->files[i], &records->owner, range))
			return true;
	}
	return false;
}

bool records_cover(const struct claim *claim)
{
	return is_covered(claim->owner->records, claim->coverage->asked);
}

/* Changes */

static void forget_next(struct owner *owner)
{
	struct claim *claim;
	DL_FOREACH2 (owner->claims, claim, owner_next) {
		if (claim->coverage != NULL)
			range_set_finish(&claim->coverage->next);
	}
}

/* Works out what each claim has to cover once the process holds that. Returns 0 or -ENOMEM. */
static int prepare(struct owner *owner, const struct range_set *held)
{
	struct claim *claim;
	DL_FOREACH2 (owner->claims, claim, owner_next) {
		if (claim->state != CLAIM_HELD || claim->coverage == NULL)
			continue;
		if (range_set_intersect(&claim->coverage->ranges, held, &claim->coverage->next) <
		    0) {
			forget_next(owner);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Whether an older claim of the owner covers all that this one has to. */
static bool is_repeated(const struct claim *claim)
{
	const struct claim *other;
	DL_FOREACH2 (claim->owner->claims, other, owner_next) {
		if (other->state == CLAIM_HELD && other->coverage != NULL &&
		    claims_compare(other, claim) < 0 &&
		    range_set_contains(&other->coverage->next, &claim->coverage->next))
			return true;
	}
	return false;
}

/* Makes the claims cover what was prepared. */
static void commit(struct owner *owner)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE2 (owner->claims, claim, next, owner_next) {
		struct coverage *coverage = claim->coverage;
		if (claim->state != CLAIM_HELD || coverage == NULL ||
		    range_sets_equal(&coverage->next, &coverage->ranges))
			continue;
		if (coverage->next.count == 0 || is_repeated(claim))
			claim_withdraw(claim);
	}
	DL_FOREACH_SAFE2 (owner->claims, claim, next, owner_next) {
		struct coverage *coverage = claim->coverage;
		if (claim->state != CLAIM_HELD)
			continue;
		if (coverage == NULL) {
			if (!is_needed(owner->records, claim))
				claim_release(claim);
			continue;
		}
		bool changed = !range_sets_equal(&coverage->next, &coverage->ranges);
		range_set_finish(&coverage->ranges);
		coverage->ranges = coverage->next;
		coverage->next = (struct range_set){0};
		if (changed) {
			queue_weaken(claim);
			claim_amend(claim);
		}
	}
}

/* Who waits behind a flock may wait for the record locks that it covers. */
static void weaken_flocks(const struct records *records)
{
	struct claim *claim;
	bool found = false;
	DL_FOREACH (records->owner.lock->queue, claim) {
		if (!is_held_flock(claim) || !may_cover(claim, records))
			continue;
		queue_weaken(claim);
		found = true;
	}
	if (!found)
		return;
	/* Others who have locked through the file wait for that, behind whomever. */
	DL_FOREACH (records->owner.lock->queue, claim) {
		if (claim->parts.record)
			queue_unsettle(claim);
	}
}

/* Wishes may have lost their anchor. */
static void unsettle_anchored(const struct lock *lock)
{
	struct claim *claim;
	DL_FOREACH (lock->queue, claim) {
		if (claim->parts.anchored)
			queue_unsettle(claim);
	}
}

/* The process holds this from now on, and nothing more; the set is taken over. Returns 0 or
 * -ENOMEM: then nothing has changed, and the set is freed. */
static int change_held(struct records *records, struct range_set held)
{
	if (prepare(&records->owner, &held) < 0) {
		range_set_finish(&held);
		return -ENOMEM;
	}
	set_held(records, held);
	commit(&records->owner);
	weaken_flocks(records);
	if (records->held.count == 0)
		unsettle_anchored(records->owner.lock);
	return 0;
}

/* Whether nobody stands between two claims of one owner, the older one first. */
static bool are_neighbours(const struct claim *older, const struct claim *claim)
{
	const struct claim *between;
	for (between = older->next; between != NULL && between != claim; between = between->next) {
		if (between->owner != claim->owner &&
		    claim_span_overlaps(between->parts.span, older->parts.span))
			return false;
	}
	return between == claim;
}

/* Ends older claims of the owner that the new one makes needless. */
static void tidy(struct claim *claim)
{
	struct owner *owner = claim->owner;
	struct range_set held;
	struct claim *older, *next;

	/* A part of what the claim covers may have been given up while it waited, and what was
	 * exclusive may be shared now. Without memory, claims cover too much until the next change.
	 */
	if (range_set_copy(&owner->records->held, &held) == 0)
		(void)change_held(owner->records, held);
	DL_FOREACH_SAFE2 (owner->claims, older, next, owner_next) {
		if (older == claim || older->state != CLAIM_HELD || older->coverage == NULL ||
		    claims_compare(older, claim) > 0)
			continue;
		if (range_set_contains(&claim->coverage->ranges, &older->coverage->ranges) &&
		    are_neighbours(older, claim))
			claim_withdraw(older);
	}
	/* Other threads of the process may wait, and now for themselves. */
	for (struct records *other = owner->records->process->records; other != NULL;
	     other = other->process_next) {
		DL_FOREACH2 (other->owner.claims, older, owner_next) {
			queue_unsettle(older);
		}
	}
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

int records_grant(struct claim *claim)
{
	struct records *records = claim->owner->records;
	bool covered = records_cover(claim);
	struct range_set held;
	int error = add_range(records, claim->coverage->asked, &held);

	if (error == 0 && covered)
		error = change_held(records, held);
	if (error != 0 || covered) {
		claim_withdraw(claim);
		return error;
	}
	set_held(records, held);
	claim_hold(claim);
	tidy(claim);
	return 0;
}

/* Calls */

/* Whether the process may hold one range more, or does not with this one. Without memory to tell,
 * it may not. */
static bool is_within_limits(const struct records *records, struct range range)
{
	const struct lock *lock = records->owner.lock;
	struct range_set held;

	if (add_range(records, range, &held) < 0)
		return false;
	size_t more = held.count > records->held.count ? held.count - records->held.count : 0;
	range_set_finish(&held);
	return more == 0 ||
	       (records->process->ranges + more <= (size_t)lock->policy.process_ranges &&
		lock->ranges + more <= (size_t)lock->policy.file_ranges);
}

static struct claim *find_lingering(const struct owner *owner, struct range range)
{
	struct claim *claim;
	DL_FOREACH2 (owner->claims, claim, owner_next) {
		if (claim->asked || claim->state == CLAIM_HELD || claim->coverage == NULL)
			continue;
		const struct range *asked = &claim->coverage->asked;
		if (asked->span.start == range.span.start && asked->span.end == range.span.end &&
		    asked->mode == range.mode)
			return claim;
	}
	return NULL;
}

/* Makes the claim cover all that the process holds, too, so that it can replace the others. */
static void gather(struct claim *claim)
{
	struct coverage *coverage = claim->coverage;
	const struct records *records = claim->owner->records;
	struct range_set all;
	size_t held = 0;
	const struct claim *other;

	DL_FOREACH2 (claim->owner->claims, other, owner_next) {
		held += other->state == CLAIM_HELD;
	}
	if (held < CLAIMS_MAX || add_range(records, coverage->asked, &all) < 0)
		return;
	range_set_finish(&coverage->ranges);
	coverage->ranges = all;
	claim->parts.span = range_set_span(&all);
	claim->parts.mode = range_set_mode(&all);
	claim->parts.sparse = true;
}

static int ask(struct records *records, struct owner *file, struct range range, bool waits,
	       const struct engine_caller *caller, void *cookie, struct claim **ret_claim)
{
	struct owner *owner = &records->owner;
	struct engine *engine = file->lock->engine;
	struct claim *claim = waits ? find_lingering(owner, range) : NULL;

	if (!is_within_limits(records, range))
		return -ENOLCK;
	if (!waits && would_wait_here(owner, range)) {
		engine->events->on_decided(engine->context, cookie, -EWOULDBLOCK);
		return 0;
	}
	if (claim == NULL) {
		claim = claim_create(owner, LOCK_KIND_RECORD, range, caller);
		if (claim == NULL)
			return -ENOMEM;
		gather(claim);
	}
	claim->coverage->file = file;
	*ret_claim = claim;
	wish(claim, waits, cookie);
	return 0;
}

int engine_lock_range(struct owner *file, uint64_t process, struct range range, bool waits,
		      const struct engine_caller *caller, void *cookie, struct claim **ret_claim)
{
	struct lock *lock = file->lock;
	struct engine *engine = lock->engine;
	int error = 0;

	*ret_claim = NULL;
	if (file->lost)
		return -EIO;
	struct records *records = find_or_create(lock, process);
	if (records == NULL)
		return -ENOMEM;
	if (records->owner.lost) {
		error = -EIO;
	} else if (add_file(records, file) < 0) {
		error = -ENOMEM;
	} else if (is_covered(records, range)) {
		struct range_set held;
		error = add_range(records, range, &held);
		if (error == 0)
			error = change_held(records, held);
		if (error == 0)
			engine->events->on_decided(engine->context, cookie, 0);
	} else {
		error = ask(records, file, range, waits, caller, cookie, ret_claim);
	}
	if (error == 0)
		records->pid = caller->pid;
	engine_settle(engine);
	return error;
}

int engine_unlock_range(struct owner *file, uint64_t process, struct claim_span span)
{
	struct records *records = records_find(file->lock, process);
	struct range_set held;
	int error;

	if (file->lost || (records != NULL && records->owner.lost))
		return -EIO;
	if (records == NULL)
		return 0;
	error = range_set_copy(&records->held, &held);
	if (error == 0) {
		error = range_set_unlock(&held, span);
		if (error == 0)
			error = change_held(records, held);
		else
			range_set_finish(&held);
	}
	engine_settle(file->lock->engine);
	return error;
}

/* Ends all claims of the process: those held, those that linger, and the wishes made through this
 * open file. Frees what is left of it, if nothing is. */
static void end_records(struct records *records, const struct owner *file)
{
	struct claim *claim, *next;

	set_held(records, (struct range_set){0});
	DL_FOREACH_SAFE2 (records->owner.claims, claim, next, owner_next) {
		if (claim->coverage == NULL)
			claim_release(claim);
		else if (claim->state == CLAIM_HELD || !claim->asked ||
			 claim->coverage->file == file)
			claim_withdraw(claim);
	}
	weaken_flocks(records);
	unsettle_anchored(records->owner.lock);
}

void engine_flush(struct owner *file, uint64_t process)
{
	struct records *records = records_find(file->lock, process);
	if (records == NULL)
		return;
	end_records(records, NULL);
	if (records->owner.claims == NULL)
		free_records(records);
	engine_settle(file->lock->engine);
}

static void forget_file(struct records *records, const struct owner *file)
{
	for (size_t i = 0; i < records->files_count; i++) {
		if (records->files[i] != file)
			continue;
		records->files[i] = records->files[--records->files_count];
		return;
	}
}

void records_forget_file(struct owner *file)
{
	struct records *records, *next;
	struct claim *claim, *next_claim;
	HASH_ITER (hh, file->lock->records, records, next) {
		DL_FOREACH_SAFE2 (records->owner.claims, claim, next_claim, owner_next) {
			if (claim->coverage != NULL && claim->state != CLAIM_HELD &&
			    claim->coverage->file == file)
				claim_withdraw(claim);
		}
		forget_file(records, file);
		if (records->files_count > 0)
			continue;
		end_records(records, file);
		free_records(records);
	}
}
