/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store tells the engine in answer to what was sent. An ambiguous answer
 * (-ECONNRESET) is never taken as success or failure: a claim that may have been placed is looked
 * for under its unique id in a list made after a sync, a withdrawal is sent again until it is done.
 * Loop thread only.
 */
#include "engine_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim_data.h"
#include "engine_claim.h"
#include "engine_lead.h"
#include "engine_merge.h"
#include "engine_outbox.h"
#include "engine_proof.h"
#include "engine_queue.h"
#include "engine_save.h"
#include "engine_session.h"
#include "engine_steer.h"
#include "engine_test.h"
#include "log.h"

/* How soon to send again what met a lost connection while the session seems well, and what the
 * store refused. */
enum { RETRY_SOON_MS = 100, RETRY_LATER_MS = 1000 };

/* Whoever is refused may ask again at once. */
static bool may_log(const struct lock *lock, const char *what, int error)
{
	return log_limit_passes(&lock->engine->refusals, lock->engine->now_ms, what, lock->path,
				strlen(lock->path), error);
}

void lock_retry_after(struct lock *lock, const char *what, int error)
{
	if (error == -ECONNRESET) {
		engine_retry_in(lock->engine, RETRY_SOON_MS);
		return;
	}
	if (may_log(lock, what, error))
		log_lock_error(lock->path, "%s: %s; trying again", what, strerror(-error));
	engine_retry_in(lock->engine, RETRY_LATER_MS);
}

/* To look for a claim after the connection broke takes a server that is not behind. Everything else
 * that a list is for comes after something that this session was told; but the client of a process
 * that took over was told nothing yet. */
static bool is_looking(const struct lock *lock)
{
	const struct claim *claim;
	if (lock->taken_over)
		return true;
	DL_FOREACH (lock->unplaced, claim) {
		if (claim->state == CLAIM_UNCERTAIN)
			return true;
	}
	return false;
}

void lock_list(struct lock *lock)
{
	struct engine *engine = lock->engine;
	if (lock->listing || engine->session != STORE_CONNECTED)
		return;
	lock->listing = true;
	lock->read_since = false;
	lock->synced = is_looking(lock) || lock->tests != NULL;
	lock->lists_sent++;
	lock->attending = leads_want_attention(lock);
	lock->attended |= lock->attending;
	engine_list(lock, lock->synced, lock->attending);
}

uint64_t lock_list_anew(struct lock *lock)
{
	uint64_t number = lock->lists_sent + 1;
	lock_list(lock);
	return number;
}

/* The list in which a claim's cycle is to be seen again; 0: it is not in one. */
static uint64_t cycle_list(const struct claim *claim)
{
	return claim->coverage != NULL ? claim->coverage->cycle_list : 0;
}

bool lock_is_sure(const struct lock *lock)
{
	return lock->list_wanted <= lock->lists_done;
}

static bool needs_list(const struct lock *lock)
{
	const struct claim *claim;
	if (!lock_is_sure(lock) && lock->own_in_queue > 0)
		return true;
	DL_FOREACH (lock->unplaced, claim) {
		if (claim->state == CLAIM_UNCERTAIN)
			return true;
	}
	DL_FOREACH (lock->queue, claim) {
		if (claim->state == CLAIM_QUEUED || claim->list_wanted > lock->lists_done ||
		    cycle_list(claim) > lock->lists_done)
			return true;
	}
	DL_FOREACH (lock->tests, claim) {
		if (claim->list_wanted > lock->lists_done)
			return true;
	}
	return lock->missing || proofs_need_list(lock) || leads_want_attention(lock);
}

void lock_resume(struct lock *lock)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE (lock->leaving, claim, next) {
		claim_withdraw(claim);
	}
	DL_FOREACH (lock->unplaced, claim) {
		claim_place(claim);
	}
	DL_FOREACH (lock->queue, claim) {
		if (claim->amended)
			claim_amend(claim);
		if (claim->state == CLAIM_FOREIGN && claim->blocked != NULL)
			claim_watch(claim);
		else if (claim->state == CLAIM_WAITING &&
			 (claim->blocker == NULL || claim->parts.record))
			queue_unsettle(claim);
	}
	leads_settle(lock);
	if (needs_list(lock))
		lock_list(lock);
	tests_settle(lock);
	proofs_resume(lock);
}

void lock_free_if_unused(struct lock *lock)
{
	if (lock->owners > 0 || lock->unplaced != NULL || lock->queue != NULL ||
	    lock->leaving != NULL || lock->watched != NULL || lock->orders != NULL ||
	    lock->tests != NULL || lock->proofs != NULL || lock->listing || lock->attended)
		return;
	HASH_DEL(lock->engine->locks, lock);
	engine_unmark(lock->engine, &lock->item);
	free(lock->keeper);
	free(lock);
}

/* The claim stands in the queue with this number; makes it QUEUED. */
static void take_place(struct claim *claim, int32_t sequence)
{
	DL_DELETE(claim->lock->unplaced, claim);
	claim->parts.sequence = sequence;
	claim->state = CLAIM_QUEUED;
	claim_mark(claim);
	queue_insert(claim);
}

static void place_failed(struct claim *claim, int error)
{
	struct lock *lock = claim->lock;
	if (error == -ECONNRESET) {
		claim->state = CLAIM_UNCERTAIN;
		lock_list(lock);
		return;
	}
	if (may_log(lock, "claim", error))
		log_lock_error(lock->path, "the store refuses the claim: %s", strerror(-error));
	claim->state = CLAIM_WANTED; /* it stands nowhere: nothing to withdraw */
	claim_mark(claim);
	if (claim->asked)
		claim_decide(claim, error == -ENOMEM ? -ENOMEM : -ENOLCK);
	else
		claim_withdraw(claim);
}

/* Those that had to wait until fewer are under way. */
static void place_next(struct lock *lock)
{
	struct claim *claim;
	DL_FOREACH (lock->unplaced, claim) {
		if (claim->state == CLAIM_WANTED && claim->owner != NULL) {
			claim_place(claim);
			return;
		}
	}
}

static void on_placed(void *context, void *tag, int error, const char *name, int32_t sequence,
		      const struct store_entry *entries, size_t count)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->lock;

	lock->placing_with_list -= claim->sent;
	if (error != 0) {
		place_failed(claim, error);
	} else {
		engine_proved_alive(engine, claim->sent_ms);
		take_place(claim, sequence);
		bool stale = entries == NULL && claim_needs_news(claim);
		bool adjacent =
			lock->known && !stale &&
			(uint32_t)sequence ==
				(uint32_t)lock->known_to + claim_recipe_znodes(claim->parts.recipe);
		if (adjacent) {
			lock->known_to = sequence;
			claim->state = CLAIM_WAITING;
			claim->fresh = entries != NULL;
			queue_unsettle(claim);
		}
		if (claim->owner == NULL)
			claim_withdraw(claim);
		if (entries != NULL)
			queue_merge(lock, entries, count);
		else if (!adjacent)
			lock_list(lock);
		leads_settle(lock);
	}
	lock->placing--; /* not before: who asks meanwhile comes behind those that had to wait */
	place_next(lock);
	engine_settle(engine);
	lock_free_if_unused(lock);
}

/* A synced list tells of every claim whose place() was answered ambiguously: those that it does not
 * show were not placed. Operations and their answers keep their order, so it took effect after each
 * of them. */
static void resolve_uncertain(struct lock *lock)
{
	struct claim *claim, *next;
	DL_FOREACH_SAFE (lock->unplaced, claim, next) {
		if (claim->state != CLAIM_UNCERTAIN)
			continue;
		if (claim->owner == NULL) {
			DL_DELETE(lock->unplaced, claim);
			claim_free(claim);
		} else {
			claim_start_over(claim);
			claim_place(claim);
		}
	}
}

/* Claims that waited for the list, to be sure of what they see. What they wrote before it was sent
 * is there, or has failed. */
static void refresh(struct lock *lock)
{
	struct claim *claim;
	DL_FOREACH (lock->queue, claim) {
		if (cycle_list(claim) > 0 && cycle_list(claim) <= lock->lists_done)
			queue_unsettle(claim);
		/* What the lock was not sure of. */
		if (claim->state == CLAIM_WAITING && claim->blocker == NULL)
			queue_unsettle(claim);
		if (claim->list_wanted == 0 || claim->list_wanted > lock->lists_done)
			continue;
		claim->list_wanted = 0;
		claim->fresh = !claim->amended && !claim->amending;
		queue_unsettle(claim);
	}
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct engine *engine = context;
	struct lock *lock = tag;

	lock->listing = false;
	if (error != 0 && lock->attending)
		lock->attended = false;
	if (error != 0) {
		if (needs_list(lock))
			lock_retry_after(lock, "list of claims", error);
	} else {
		lock->lists_done = lock->lists_sent;
		queue_merge(lock, entries, count);
		if (lock->synced) {
			lock->taken_over = false;
			resolve_uncertain(lock);
		}
		refresh(lock);
		if (lock->missing)
			engine_hurry_beat(engine); /* there may be more of them */
		lock->missing = false;
		leads_settle(lock);
		if (needs_list(lock))
			lock_list(lock);
	}
	engine_settle(engine);
	tests_settle(lock);
	proofs_resume(lock);
	lock_free_if_unused(lock);
}

static void on_changed(void *context, void *tag)
{
	struct engine *engine = context;
	struct lock *lock = tag;

	lock->attended = false;
	if (leads_want_attention(lock))
		lock_list(lock);
	engine_settle(engine);
	lock_free_if_unused(lock);
}

static bool is_in(const struct claim *list, const struct claim *wanted)
{
	const struct claim *claim;
	DL_FOREACH (list, claim) {
		if (claim == wanted)
			return true;
	}
	return false;
}

/* What a foreign claim covers is known to be less than its name says. Returns 0 or -ENOMEM. */
static int note_ranges(struct claim *claim, const struct range_set *told)
{
	struct range_set name = {0}, ranges = {0};
	struct coverage *coverage = claim->coverage;
	int error = range_set_lock(&name, claim->parts.span, claim->parts.mode);

	if (error == 0)
		error = range_set_intersect(&name, told, &ranges);
	if (error == 0 && coverage == NULL)
		coverage = calloc(1, sizeof(*coverage));
	range_set_finish(&name);
	if (error == 0 && ranges.count == 0) {
		/* No claim covers nothing: whoever wrote that does not keep to the rules. */
		if (coverage != claim->coverage)
			free(coverage);
		return 0;
	}
	if (error != 0 || coverage == NULL) {
		range_set_finish(&ranges);
		return -ENOMEM;
	}
	range_set_finish(&coverage->ranges);
	coverage->ranges = ranges;
	claim->coverage = coverage;
	return 0;
}

static int note_data(struct claim *claim, const char *text)
{
	struct claim_data data;
	int error = claim_data_parse(text, &data);
	if (error != 0)
		return error;
	claim->says_waits = data.waits;
	claim->says_keep = data.keeps;
	claim->waits_for = data.waits_for;
	if (!data.has_ranges)
		return 0;
	if (claim->parts.record)
		error = note_ranges(claim, &data.ranges);
	range_set_finish(&data.ranges);
	return error;
}

static void on_read(void *context, void *tag, const char *text)
{
	struct engine *engine = context;
	struct claim *claim = tag, *waiting;
	struct lock *lock = claim->lock;

	claim->read = false;
	if (text == NULL)
		return;
	if (claim->orders) {
		orders_read(claim, text);
		engine_settle(engine);
		lock_free_if_unused(lock);
		return;
	}
	if (note_data(claim, text) < 0) {
		log_lock_error(lock->path, "out of memory to read claim %s", claim->name);
		return; /* it covers what its name says, until it says something else */
	}
	claim->read = lock->read_since = true;
	queue_weaken(claim);
	/* Who looks for a cycle looks further than at what blocks it. */
	DL_FOREACH (lock->queue, waiting) {
		if (waiting->asked && waiting->parts.record)
			queue_unsettle(waiting);
	}
	engine_settle(engine);
	tests_settle(lock);
	lock_free_if_unused(lock);
}

static void on_amended(void *context, void *tag, int error)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->lock;

	claim->amending = false;
	claim_mark(claim);
	if (claim->state == CLAIM_LEAVING)
		return; /* its withdrawal may have been sent */
	if (claim->state <= CLAIM_UNCERTAIN) {
		/* This was about its former place. */
		if (claim->state == CLAIM_WANTED && claim->owner == NULL)
			claim_withdraw(claim);
		lock_free_if_unused(lock);
		return;
	}
	if (error != 0) {
		claim->amended = true;
		lock_retry_after(lock, "change of a claim", error);
	} else if (claim->amended) {
		claim_amend(claim);
	}
	queue_unsettle(claim);
	engine_settle(engine);
}

/* Who has Curator's write lock can turn it into a read lock, from version 5.5 on: a claim that is
 * made with the same number. So one may have come in front of claims of ours. It came before this
 * one went, so a list from now on shows it. */
static bool may_be_downgraded(const struct claim *claim)
{
	return claim->parts.id.session == 0 && claim->parts.recipe == CLAIM_CURATOR_RW &&
	       claim->parts.mode == CLAIM_EXCLUSIVE;
}

static void on_watched(void *context, void *tag, int error)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->lock;

	claim->sent = claim->read = false;
	if (claim->orders) {
		orders_end(claim, error);
		DL_DELETE(lock->orders, claim);
		claim_free(claim);
	} else if (is_in(lock->watched, claim)) {
		DL_DELETE(lock->watched, claim);
		claim_free(claim);
	} else if (error == 0) {
		if (may_be_downgraded(claim))
			lock->list_wanted = lock_list_anew(lock);
		queue_end_look_ahead(claim);
		queue_remove(claim);
		claim_free(claim);
		tests_look_anew(lock);
	} else if (claim->blocked != NULL || claim->parts.record) {
		lock_retry_after(lock, "watch of the claim in front", error);
	}
	engine_settle(engine);
	lock_free_if_unused(lock);
}

static void on_withdrawn(void *context, void *tag, int error)
{
	struct engine *engine = context;
	struct claim *claim = tag;
	struct lock *lock = claim->lock;

	claim->sent = false;
	if (error == 0) {
		engine_proved_alive(engine, claim->sent_ms);
		DL_DELETE(lock->leaving, claim);
		claim_free(claim);
	} else {
		lock_retry_after(lock, "withdrawal of a claim", error);
	}
	engine_settle(engine);
	lock_free_if_unused(lock);
}

const struct store_events engine_store_events = {
	.on_session = engine_on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_watched,
	.on_amended = on_amended,
	.on_withdrawn = on_withdrawn,
	.on_proved = engine_on_proved,
};
