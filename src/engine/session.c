/* SPDX-License-Identifier: Apache-2.0
 *
 * The session and its lease, of which the store knows until when it is certain: what is held while
 * the session is known to live, fenced when that is not known any more, and queued anew in the next
 * session.
 *
 *   SAFE      connected, lease holds     wishes are granted
 *   JEOPARDY  lease holds, but is not    holders keep their locks, nothing is granted
 *             connected, or in doubt
 *   LOST      lease has ended, or the    holders are fenced, waiters queue anew
 *             store says that the
 *             session is over
 *
 * Loop thread only.
 */
#include "engine/session.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "engine/books/claim.h"
#include "engine/books/decisions.h"
#include "engine/books/delay.h"
#include "engine/books/lock.h"
#include "engine/books/moratorium.h"
#include "engine/books/numbers.h"
#include "engine/books/outbox.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/save.h"
#include "engine/books/state.h"
#include "engine/books/wish.h"
#include "engine/decide.h"
#include "engine/engine.h"
#include "engine/handoff.h"
#include "engine/overseer.h"
#include "engine/proof.h"
#include "engine/records/coverage.h"
#include "engine/records/test.h"
#include "engine/steer.h"

/* The store is nudged when nothing has come from it for a quarter of the timeout: early enough to
 * renew the lease on another way. That way may be no better, or the same once more: so after a
 * nudge that cost a connection the next one comes after a sixteenth, while the lease still lasts.
 * A nudge loses the answer that is on its way, though: where round trips take longer than a
 * sixteenth, none comes before the answer is late by them. But who was stopped finds the answers of
 * that time only after a look, for which a fortieth is left. */
enum { NUDGES_IN_TIMEOUT = 4, HURRIED_NUDGES_IN_TIMEOUT = 16, LOOKS_IN_TIMEOUT = 40 };

/* A lease that is shorter than heartbeats make it, because they began just now or the connection
 * did, is to be renewed on another way as well: nudges come so long before its end. */
enum { RENEWALS_IN_TIMEOUT = 5 };

/* Why what is held goes with the session. */
static enum engine_loss loss_of(const struct engine *engine)
{
	return engine->grants.stopping ? ENGINE_LOSS_STOPPED : ENGINE_LOSS_SESSION;
}

/* Nothing will be heard of what was sent. */
static void forget_amendments(struct place *list)
{
	struct claim *claim;
	CLAIMS_FOREACH (list, claim) {
		claim->data.amending = claim->data.amended = claim->marker.marking = false;
		claim_mark(claim);
	}
}

/* The session of a lock's claims is over, and all that was sent in it is void. */
static void lose_session(struct lock *lock)
{
	struct place *unplaced = lock->unplaced;
	struct place *lost = NULL;
	struct claim *claim, *next;
	char words[CLAIM_DATA_WHO_BYTES];

	lock->unplaced = NULL;
	lock->listing.under_way = lock->attention.expected = lock->attention.unchanged = false;
	lock->attention.claim = NULL;
	lock->placing.count = lock->placing.with_list = 0;
	lock->doubts.missing = lock->doubts.taken_over = false;
	lock->listing.wanted = 0;
	lock->losses.broken = 0;
	delay_lose_session(lock);
	proofs_forget_sent(lock);
	forget_amendments(lock->leaving);
	forget_amendments(lock->queue.first);
	forget_amendments(unplaced);
	claim_free_places(&lock->leaving);
	/* In the queue's order first, then in the order of asking: that is how they will queue
	 * anew. */
	lock->in_queue.own++;
	CLAIMS_FOREACH_SAFE (lock->queue.first, claim, next) {
		queue_remove(&claim->place);
		if (claim->state == CLAIM_HELD)
			DL_APPEND(lost, &claim->place);
		else
			DL_APPEND(lock->unplaced, &claim->place);
	}
	lock->in_queue.own = lock->in_queue.tests;
	lock->in_queue.foreign = lock->in_queue.foreign_records = 0;
	lock->in_queue.records = lock->in_queue.anchored = 0;
	lock->queue.found = NULL;
	claim_free_places(&lock->queue.first);
	claim_free_places(&lock->watched);
	claim_free_places(&lock->overseers);
	lock->listing.known = false;
	DL_CONCAT(lock->unplaced, unplaced);
	CLAIMS_FOREACH_SAFE (lock->unplaced, claim, next) {
		claim->serial = ++lock->engine->issued.serials;
		claim_start_over(claim);
		if (claim_first_asked(claim) == NULL)
			claim_withdraw(claim);
	}
	/* First, because one that is lost must not be given up by what follows from another. */
	CLAIMS_FOREACH (lost, claim) {
		claim_disband(claim);
	}
	CLAIMS_FOREACH_SAFE (lost, claim, next) {
		if (!claim_is_kept(claim) && !lock->engine->grants.stopping)
			log_lock_error(lock->path, "lock lost with the session by %s",
				       wish_words(claim->wishes, words));
		DL_DELETE(lost, &claim->place);
		decide_lose(claim, loss_of(lock->engine));
	}
	tests_forget_lists(lock);
}

static void limit_list(struct place *list)
{
	struct claim *claim;
	struct wish *wish;
	CLAIMS_FOREACH (list, claim) {
		DL_FOREACH (claim->wishes, wish) {
			wish_limit(wish);
		}
	}
}

static void limit_waits(const struct lock *lock)
{
	limit_list(lock->unplaced);
	limit_list(lock->queue.first);
}

void session_begin_silence(struct engine *engine)
{
	struct lock *lock;

	engine->session.suspended_ms = engine->now_ms;
	engine_mark(engine);
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next)
		limit_waits(lock);
}

/* Session numbers follow each other as in splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_session_number(uint64_t number)
{
	number += 0x9e3779b97f4a7c15u;
	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
	return number ^ (number >> 31);
}

/* Who holds is told before anything else is done, which takes as long again. Nothing that is told
 * later, of what depended on a lock that is lost, was asked of the store before. */
static void tell_holders(struct engine *engine)
{
	struct lock *lock, *next;

	HASH_ITER (hh, engine->locks, lock, next) {
		decide_note_lost(lock, loss_of(engine));
	}
	decisions_tell(engine);
}

static void lose_all(struct engine *engine)
{
	struct lock *lock, *next;
	engine->session.beat_under_way = false;
	outbox_forget(engine);
	engine->tenant.kind->lose_session(engine->tenant.context);
	tell_holders(engine);
	engine->issued.session = next_session_number(engine->issued.session);
	HASH_ITER (hh, engine->locks, lock, next) {
		lose_session(lock);
	}
}

static void change_session(struct engine *engine, enum store_session session)
{
	struct lock *lock, *next;

	engine_mark(engine);
	engine->session.state = session;
	engine->session.suspended_ms = engine->now_ms;
	engine->session.connections += session == STORE_CONNECTED;
	engine->session.lost += session == STORE_LOST;
	if (session != STORE_SUSPENDED)
		engine->session.silence.hurried = false;
	if (session == STORE_LOST)
		lose_all(engine);
	if (session == STORE_CONNECTED)
		engine->grants.barred = false;
	HASH_ITER (hh, engine->locks, lock, next) {
		if (session == STORE_CONNECTED) {
			lock->doubts.unseen = lock->in_queue.own > 0;
			session_resume_lock(lock);
		}
		limit_waits(lock);
	}
	if (session == STORE_CONNECTED)
		engine->tenant.kind->resume(engine->tenant.context);
}

void session_changed(struct engine *engine, enum store_session session, int64_t timeout_ms)
{
	if (session == STORE_CONNECTED)
		engine->session.timeout_ms = timeout_ms;
	change_session(engine, session);
	if (session == STORE_LOST)
		outbox_renew(engine);
}

void session_lose_all(struct engine *engine)
{
	engine->session.state = STORE_LOST;
	lose_all(engine);
}

void session_acknowledged(struct engine *engine, int64_t sent_ms)
{
	round_trip_note(&engine->session.round_trip, engine->now_ms, engine->now_ms - sent_ms);
}

bool engine_doubt(struct engine *engine, int64_t now_ms)
{
	outbox_doubt_lease(engine, now_ms);
	engine->session.doubts++;
	engine->session.doubt_ms = now_ms;
	engine->agenda.stirs++;
	engine_mark(engine);
	return outbox_lease(engine).doubtful;
}

bool session_lease_is_over(const struct engine *engine)
{
	return books_hold(engine) && engine->now_ms >= engine_lease_end(engine);
}

/* Since when there is no answer to what is asked, or no connection; INT64_MAX: all is well. */
static int64_t silent_since(const struct engine *engine)
{
	if (engine->session.timeout_ms == 0)
		return INT64_MAX;
	if (engine->session.state == STORE_SUSPENDED)
		return engine->session.suspended_ms;
	return engine->session.state == STORE_CONNECTED && engine->session.beat_under_way
		       ? engine->session.beat_sent_ms
		       : INT64_MAX;
}

void session_fence(struct engine *engine)
{
	size_t count = engine->count.holders + engine->tenant.held;
	int64_t since_ms = silent_since(engine);
	char silence[80] = "";

	if (since_ms != INT64_MAX)
		snprintf(silence, sizeof(silence), ", and nothing was answered for %lld ms",
			 (long long)(engine->now_ms - since_ms));
	log_error("the newest proof that the session lives is %lld ms old%s: giving it up, %zu "
		  "lock%s lost",
		  (long long)(engine->now_ms - outbox_lease(engine).proven_ms), silence, count,
		  count == 1 ? " is" : "s are");
	change_session(engine, STORE_LOST);
	outbox_renew_now(engine);
}

/* How long a silence is at least before the store is nudged. */
static int64_t patience_ms(const struct engine *engine)
{
	int64_t sixteenth_ms = engine->session.timeout_ms / HURRIED_NUDGES_IN_TIMEOUT;
	int64_t answer_ms = round_trip_one_ms(&engine->session.round_trip);
	return answer_ms > sixteenth_ms ? answer_ms : sixteenth_ms;
}

/* When it will have been silent for too long. */
static int64_t silent_too_long(const struct engine *engine)
{
	int64_t since_ms = silent_since(engine);
	if (since_ms == INT64_MAX)
		return INT64_MAX;
	if (since_ms < engine->session.silence.nudged_ms)
		since_ms = engine->session.silence.nudged_ms;
	int64_t timeout_ms = engine->session.timeout_ms;
	int64_t soon_ms = since_ms + patience_ms(engine);
	int64_t nudge_ms = since_ms + timeout_ms / NUDGES_IN_TIMEOUT;
	if (engine->session.state == STORE_CONNECTED) {
		if (!books_hold(engine))
			return nudge_ms;
		int64_t urgent_ms = engine_lease_end(engine) - timeout_ms / RENEWALS_IN_TIMEOUT;
		if (soon_ms < urgent_ms)
			soon_ms = urgent_ms;
	} else if (!engine->session.silence.hurried) {
		return nudge_ms;
	}
	return soon_ms < nudge_ms ? soon_ms : nudge_ms;
}

void session_nudge_silent(struct engine *engine)
{
	if (silent_too_long(engine) > engine->now_ms) {
		engine->session.silence.nudge_ms = INT64_MAX;
	} else if (engine->session.silence.nudge_ms == INT64_MAX) {
		engine->session.silence.nudge_ms =
			engine->now_ms + engine->session.timeout_ms / LOOKS_IN_TIMEOUT;
	} else if (engine->session.silence.nudge_ms <= engine->now_ms) {
		engine->session.silence.nudge_ms = INT64_MAX;
		engine->session.silence.nudged_ms = engine->now_ms;
		engine->session.silence.hurried = engine->session.state == STORE_CONNECTED;
		outbox_nudge(engine);
	}
}

/* Whether anybody counts on the store. */
static bool is_in_use(const struct engine *engine)
{
	return engine->count.claims > 0 || engine->count.tests > 0 || engine->tenant.held > 0 ||
	       engine->tenant.wanted > 0;
}

static bool needs_beat(const struct engine *engine)
{
	return is_in_use(engine) && engine->session.state == STORE_CONNECTED &&
	       !engine->session.beat_under_way;
}

/* When the next heartbeat is due. One in the millisecond of a doubt would not dispel that, and be
 * in the way of one that does. */
static int64_t next_beat_ms(const struct engine *engine)
{
	return engine->session.beat_wanted ? engine->session.doubt_ms + 1
					   : outbox_lease(engine).beat_ms;
}

void session_beat(struct engine *engine)
{
	if (!needs_beat(engine) || next_beat_ms(engine) > engine->now_ms)
		return;
	engine->session.beat_under_way = true;
	engine->session.beat_wanted = false;
	engine->session.beat_sent_ms = engine->now_ms;
	steer_oversee(engine);
	proofs_send_beat(engine);
}

void session_touch(struct engine *engine)
{
	if (engine->session.state == STORE_CONNECTED &&
	    outbox_lease(engine).touch_ms <= engine->now_ms)
		outbox_send_touch(engine);
}

void session_hurry_beat(struct engine *engine)
{
	engine->session.beat_wanted = true;
}

void session_beaten(struct engine *engine, int error, const char *missing)
{
	struct lock *lock = NULL;

	engine->session.beat_under_way = false;
	if (error == 0 || error == -ENOENT || error == -EACCES)
		session_acknowledged(engine, engine->session.beat_sent_ms);
	/* What was shown together with that was not shown. Where rights are missing it would be the
	 * same again, and the others would never have their turn. */
	if (error != 0 && error != -EACCES)
		engine->session.beat_round++;
	if (error == -ENOENT && !engine->tenant.kind->missed(engine->tenant.context, missing))
		lock = lock_find(engine, missing);
	if (lock != NULL) {
		lock->doubts.missing = true;
		lock_list(lock);
	}
}

int64_t session_deadline(const struct engine *engine)
{
	const struct store_lease lease = outbox_lease(engine);
	const int64_t nudge_ms = engine->session.silence.nudge_ms;
	const int64_t times_ms[] = {
		books_hold(engine) ? lease.end_ms : INT64_MAX,
		engine->session.state == STORE_CONNECTED ? lease.touch_ms : INT64_MAX,
		needs_beat(engine) ? next_beat_ms(engine) : INT64_MAX,
	};
	int64_t first_ms = nudge_ms != INT64_MAX ? nudge_ms : silent_too_long(engine);

	for (size_t i = 0; i < sizeof(times_ms) / sizeof(*times_ms); i++)
		first_ms = times_ms[i] < first_ms ? times_ms[i] : first_ms;
	return first_ms;
}

int64_t engine_lease_end(const struct engine *engine)
{
	return outbox_lease(engine).end_ms;
}

int64_t engine_held_lease(const struct engine *engine, int64_t *ret_timeout_ms)
{
	bool told = engine->session.state == STORE_LOST && !engine->decisions.lost;

	*ret_timeout_ms = engine->session.timeout_ms;
	return books_hold(engine) && !told ? engine_lease_end(engine) : INT64_MAX;
}

struct engine_status engine_status(const struct engine *engine)
{
	const struct store_lease lease = outbox_lease(engine);
	struct engine_status status = {
		.session = engine->session.state,
		.timeout_ms = engine->session.timeout_ms,
		.lease_left_ms = -1,
		.doubtful = lease.doubtful,
		.moratorium_left_ms = -1,
		.moratorium = engine->moratorium.why,
		.setbacks = engine->moratorium.setbacks,
		.sessions_lost = engine->session.lost,
		.reconnects = engine->session.connections > 0 ? engine->session.connections - 1 : 0,
	};

	if (moratorium_lasts(engine))
		status.moratorium_left_ms = engine->moratorium.until_ms - engine->now_ms;
	if (is_in_use(engine) && lease.end_ms != INT64_MAX)
		status.lease_left_ms =
			lease.end_ms > engine->now_ms ? lease.end_ms - engine->now_ms : 0;
	return status;
}

bool session_needs_list(const struct lock *lock)
{
	const struct claim *claim;
	if (lock->listing.wanted > lock->listing.done && lock->in_queue.own > 0)
		return true;
	if (lock_has_uncertain(lock))
		return true;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		if (claim->state == CLAIM_QUEUED || claim->list_wanted > lock->listing.done ||
		    coverage_cycle_list(claim) > lock->listing.done)
			return true;
	}
	return lock->doubts.missing || tests_need_list(lock) || proofs_need_list(lock) ||
	       lock_wants_attention(lock) || numbers_need_list(lock);
}

/* Sends what a claim that stands in the queue wants sent. */
static void resume(struct claim *claim)
{
	overseer_read_stale(claim);
	if (claim->data.amended)
		claim_amend(claim);
	if (claim->state == CLAIM_WAITING &&
	    (claim->place.blocker == NULL || queue_may_be_in_cycle(claim) ||
	     slots_are_several(claim->place.lock)))
		queue_judge(claim);
}

void session_resume_lock(struct lock *lock)
{
	struct claim *claim, *next;
	struct place *place;
	lock->numbers.put_off = false;
	CLAIMS_FOREACH_SAFE (lock->leaving, claim, next) {
		claim_withdraw(claim);
	}
	decide_refuse_drained(lock);
	CLAIMS_FOREACH (lock->unplaced, claim) {
		claim_place(claim);
	}
	for (place = lock->queue.first; place != NULL; place = place->next) {
		if (!place->foreign)
			resume(claim_of(place));
		else if (place->blocked != NULL)
			rival_watch(rival_of(place));
	}
	delay_resume(lock);
	if (lock->handoffs.held != NULL)
		handoffs_settle(lock);
	if (session_needs_list(lock))
		lock_list(lock);
	numbers_resume(lock);
	tests_settle(lock);
	proofs_resume(lock);
}
