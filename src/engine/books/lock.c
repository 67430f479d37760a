/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks: their beginning and end, the lists that they ask the store for, and what is to be tried
 * again. Loop thread only.
 */
#include "engine/books/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/books/moratorium.h"
#include "engine/books/outbox.h"
#include "engine/books/save.h"
#include "engine/books/state.h"

void lock_retry_in(struct engine *engine, int64_t delay_ms)
{
	if (engine->now_ms + delay_ms < engine->retry_ms)
		engine->retry_ms = engine->now_ms + delay_ms;
}

bool lock_may_grant(const struct engine *engine)
{
	const struct store_lease lease = outbox_lease(engine);
	if (engine->grants.stopping || engine->session.state != STORE_CONNECTED || lease.doubtful ||
	    moratorium_lasts(engine))
		return false;
	return books_hold(engine) ? engine->now_ms < lease.end_ms : lease.grants;
}

bool lock_try_grant(struct engine *engine)
{
	bool may = lock_may_grant(engine);
	engine->grants.barred |= !may;
	return may;
}

bool lock_may_log(const struct lock *lock, const char *what, int error)
{
	return log_limit_passes(&lock->engine->refusals, lock->engine->now_ms, what, lock->path,
				strlen(lock->path), error);
}

bool lock_is_taken_so(const struct lock *lock, enum lock_kind kind, enum claim_mode mode)
{
	const char *what = kind == LOCK_KIND_RECORD ? "record lock" : "shared lock";

	if (!slots_are_several(lock) || (kind != LOCK_KIND_RECORD && mode == CLAIM_EXCLUSIVE))
		return true;
	if (lock_may_log(lock, what, -EINVAL))
		log_lock_error(lock->path,
			       "with slots = %lld it is locked exclusively and as a whole only, a "
			       "%s is refused with EINVAL",
			       (long long)slots_count(lock), what);
	return false;
}

bool lock_has_abilities(const struct lock *lock, unsigned abilities)
{
	unsigned missing = abilities & ~lock->engine->abilities;
	const char *what = (missing & STORE_HAS_SLOTS) != 0    ? "slots"
			   : (missing & STORE_HAS_RANGES) != 0 ? "record locks"
			   : (missing & STORE_HAS_SHARED) != 0 ? "shared locks"
			   : (missing & STORE_HAS_QUEUE) != 0  ? "a queue to wait in"
							       : "tokens";

	if (missing != 0 && lock_may_log(lock, what, -ENOLCK))
		log_lock_error(lock->path, "its store has not got %s: refused with ENOLCK", what);
	return missing == 0;
}

void lock_retry_after(struct lock *lock, const char *what, int error)
{
	if (error == -ECONNRESET) {
		lock_retry_in(lock->engine, RETRY_SOON_MS);
		return;
	}
	if (lock_may_log(lock, what, error))
		log_lock_error(lock->path, "%s: %s; trying again", what, strerror(-error));
	lock_retry_in(lock->engine, RETRY_LATER_MS);
}

bool lock_wants_attention(const struct lock *lock)
{
	const struct handoff *handoff;
	if (lock->attention.expected)
		return false;
	DL_FOREACH (lock->handoffs.held, handoff) {
		const struct claim *claim = handoff->claim;
		/* With others of this host behind it, it will not be kept. */
		bool may_be_kept = lock->policy.keep_ms > 0 && claim->place.blocked == NULL;
		if (!handoff->contended && (may_be_kept || claim->wishes->next != NULL))
			return true;
	}
	return false;
}

bool lock_has_uncertain(const struct lock *lock)
{
	const struct claim *claim;
	CLAIMS_FOREACH (lock->unplaced, claim) {
		if (claim->state == CLAIM_UNCERTAIN)
			return true;
	}
	return false;
}

void lock_list(struct lock *lock)
{
	struct engine *engine = lock->engine;
	if (lock->listing.under_way || engine->session.state != STORE_CONNECTED)
		return;
	lock->listing.under_way = true;
	lock->listing.read_since = false;
	/* To look for a claim after the connection broke takes a server that is not behind.
	 * Everything else that a list is for comes after something that this session was told; but
	 * the client of a process that took over was told nothing yet. */
	lock->listing.synced =
		lock->doubts.taken_over || lock_has_uncertain(lock) || lock->tests != NULL;
	lock->listing.sent++;
	lock->attention.asked = lock_wants_attention(lock);
	lock->attention.expected |= lock->attention.asked;
	outbox_list(lock, lock->listing.synced, lock->attention.asked);
}

uint64_t lock_list_anew(struct lock *lock)
{
	uint64_t number = lock->listing.sent + 1;
	lock_list(lock);
	return number;
}

void lock_doubt(struct lock *lock)
{
	lock->doubts.taken_over = true;
	lock->listing.wanted = lock_list_anew(lock);
}

bool lock_is_sure(const struct lock *lock)
{
	return lock->listing.wanted <= lock->listing.done && lock->losses.broken == 0;
}

/* In parts of the session's timeout: how soon a host that is connected hears that its lease is
 * over, and what it takes to tell its holders. */
enum { SIGNS_IN_TIMEOUT = 8, TELLINGS_IN_TIMEOUT = 40 };

void lock_begin_moratorium(struct lock *lock)
{
	int64_t timeout_ms = lock->engine->session.timeout_ms;

	lock->losses.moratorium_ms = lock->engine->now_ms + timeout_ms / SIGNS_IN_TIMEOUT +
				     timeout_ms / TELLINGS_IN_TIMEOUT;
	lock_mark(lock);
	lock->listing.wanted = lock_list_anew(lock);
}

bool lock_in_moratorium(const struct lock *lock)
{
	struct engine *engine = lock->engine;

	if (engine->now_ms >= lock->losses.moratorium_ms)
		return false;
	lock_retry_in(engine, lock->losses.moratorium_ms - engine->now_ms);
	return true;
}

bool lock_has_ends_to_hear(const struct lock *lock)
{
	const struct rival *rival;
	RIVALS_FOREACH (lock->watched, rival) {
		if (rival->sent && !rival->orphan)
			return true;
	}
	return false;
}

struct lock *lock_find(const struct engine *engine, const char *path)
{
	struct lock *lock;
	HASH_FIND(hh, engine->locks, path, strlen(path), lock);
	return lock;
}

/* Else only something that cannot be undone, or a delay, keeps it. */
static bool is_in_use(const struct lock *lock)
{
	return lock->owners > 0 || lock->unplaced != NULL || lock->in_queue.own > 0;
}

static void change_policy(struct lock *lock, const struct lock_policy *policy)
{
	/* An orphan may have waited for long enough by the new one. */
	if (lock->policy.lock_delay_ms != policy->lock_delay_ms ||
	    lock->policy.min_hold_ms != policy->min_hold_ms)
		lock_retry_in(lock->engine, 0);
	lock->policy = *policy;
}

struct lock *lock_open(struct engine *engine, const char *path, const struct lock_policy *policy)
{
	struct lock *lock = lock_find(engine, path);
	size_t length = strlen(path);

	if (lock != NULL && !is_in_use(lock))
		change_policy(lock, policy);
	if (lock != NULL)
		return lock;
	lock = calloc(1, sizeof(*lock) + length + 1);
	if (lock == NULL)
		return NULL;
	lock->engine = engine;
	lock->policy = *policy;
	memcpy(lock->path, path, length + 1);
	HASH_ADD(hh, engine->locks, path[0], length, lock);
	if (lock->hh.tbl == NULL) {
		free(lock);
		return NULL;
	}
	lock->serial = ++engine->issued.serials;
	lock_mark(lock);
	return lock;
}

bool lock_note_mixture(struct lock *lock)
{
	bool is_new = !lock->listing.mixed;

	lock->engine->count.mixed += is_new;
	lock->listing.mixed = true;
	return is_new;
}

void lock_forget_mixture(struct lock *lock)
{
	lock->engine->count.mixed -= lock->listing.mixed;
	lock->listing.mixed = false;
}

void lock_free_if_unused(struct lock *lock)
{
	if (lock->owners > 0 || lock->unplaced != NULL || lock->queue.first != NULL ||
	    lock->leaving != NULL || lock->watched != NULL || lock->overseers != NULL ||
	    lock->tests != NULL || lock->proofs != NULL || lock->listing.under_way ||
	    lock->attention.expected || lock->numbers.worn || lock->losses.orphans_list != 0)
		return;
	if (lock->seeking.prev != NULL)
		DL_DELETE2(lock->engine->searches.wanted, lock, seeking.prev, seeking.next);
	lock_forget_mixture(lock);
	HASH_DEL(lock->engine->locks, lock);
	engine_unmark(lock->engine, &lock->item);
	free(lock);
}
