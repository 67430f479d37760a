/* SPDX-License-Identifier: Apache-2.0
 *
 * Owners and their wishes, and the passing of time. Loop thread only.
 */
#include "engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/books/claim.h"
#include "engine/books/conflict.h"
#include "engine/books/decisions.h"
#include "engine/books/delay.h"
#include "engine/books/drain.h"
#include "engine/books/grace.h"
#include "engine/books/lock.h"
#include "engine/books/moratorium.h"
#include "engine/books/outbox.h"
#include "engine/books/owner.h"
#include "engine/books/save.h"
#include "engine/books/queue.h"
#include "engine/books/seek.h"
#include "engine/books/slots.h"
#include "engine/books/wish.h"
#include "engine/decide.h"
#include "engine/handoff.h"
#include "engine/proof.h"
#include "engine/records/record.h"
#include "engine/records/test.h"
#include "engine/session.h"
#include "engine/settle.h"
#include "engine/steer.h"

enum { PLACING_MAX = 500 };

void engine_set_placing_max(struct engine *engine, size_t claims)
{
	engine->limits.placing = claims;
}

void engine_set_proofs_max(struct engine *engine, size_t znodes)
{
	engine->limits.proofs = znodes;
}

void engine_set_store(struct engine *engine, struct store *store)
{
	engine->store = store;
}

void engine_set_abilities(struct engine *engine, unsigned abilities)
{
	engine->abilities = abilities;
}

void engine_set_peers(struct engine *engine, bool has_peers)
{
	engine->has_peers = has_peers;
}

void engine_stop(struct engine *engine)
{
	struct lock *lock;

	engine->grants.stopping = true;
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next)
		delay_stop(lock);
}

/* What is kept is given back. */
static void drain_lock(struct lock *lock)
{
	queue_judge_all(lock);
	if (lock->handoffs.held != NULL)
		handoffs_settle(lock);
	decide_refuse_drained(lock);
}

void engine_drain(struct engine *engine, bool drains)
{
	struct lock *lock, *next;

	if (engine->grants.draining == drains)
		return;
	engine->grants.draining = drains;
	engine_mark(engine);
	HASH_ITER (hh, engine->locks, lock, next) {
		if (drains)
			drain_lock(lock);
		else
			session_resume_lock(lock);
	}
	settle_all(engine);
}

bool engine_drains(const struct engine *engine)
{
	return engine->grants.draining;
}

const struct store_told *engine_end(struct engine *engine)
{
	engine_stop(engine);
	session_lose_all(engine);
	decisions_tell(engine);
	return decisions_told_all(engine);
}

void engine_destroy(struct engine *engine)
{
	struct lock *lock, *next;
	if (engine == NULL)
		return;
	HASH_ITER (hh, engine->locks, lock, next) {
		assert(lock->owners == 0 && lock->records == NULL && lock->tests == NULL);
		proofs_forget_sent(lock);
		HASH_DEL(engine->locks, lock);
		claim_free_places(&lock->unplaced);
		claim_free_places(&lock->queue.first);
		claim_free_places(&lock->leaving);
		claim_free_places(&lock->watched);
		claim_free_places(&lock->overseers);
		engine_unmark(engine, &lock->item);
		free(lock);
	}
	outbox_forget(engine);
	engine->tenant.kind->destroy(engine->tenant.context);
	engine_unmark(engine, &engine->item);
	free(engine->decisions.list);
	free(engine);
}

static void retry(struct engine *engine)
{
	struct lock *lock, *next;
	engine->retry_ms = INT64_MAX;
	HASH_ITER (hh, engine->locks, lock, next) {
		session_resume_lock(lock);
	}
	engine->tenant.kind->resume(engine->tenant.context);
}

/* A call that does not wait did so for a claim that might have been one that nobody uses. */
static int result_of_time(const struct wish *wish)
{
	const struct lock *lock = wish_lock(wish);
	bool kept = lock->policy.keep_ms > 0 && rival_of(wish->claim->place.blocker) != NULL;
	return kept && !wish->waits && lock->engine->session.state == STORE_CONNECTED ? -EWOULDBLOCK
										      : -ENOLCK;
}

static void end_test(struct timer *timer)
{
	struct test *test = TIMER_WHOLE(timer, struct test, timer);
	struct lock *lock = test->lock;

	test_expire(test);
	settle_lock(lock);
}

static void end_wish(struct timer *timer)
{
	struct wish *wish = TIMER_WHOLE(timer, struct wish, timer);
	struct lock *lock = wish_lock(wish);

	if (wish_is_held(wish) && wish->owner != NULL)
		steer_expire(wish->claim);
	else if (!grace_expire(wish))
		decide_refuse_wish(wish, result_of_time(wish));
	settle_lock(lock);
}

struct engine *engine_create(const struct engine_events *events, void *context,
			     uint64_t session_seed)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	if (engine == NULL)
		return NULL;
	engine->events = events;
	engine->context = context;
	engine->session.state = STORE_SUSPENDED;
	engine->issued.session = session_seed;
	engine->session.doubt_ms = INT64_MIN;
	engine->moratorium.until_ms = INT64_MIN;
	engine->session.silence.nudged_ms = INT64_MIN;
	engine->session.silence.nudge_ms = INT64_MAX;
	engine->session.beat_round = 1;
	engine->retry_ms = INT64_MAX;
	engine->limits.placing = PLACING_MAX;
	engine->limits.proofs = STORE_PROOFS_MAX;
	engine->abilities = STORE_HAS_ALL;
	engine->has_peers = events->on_ask != NULL;
	engine->tenant.kind = &tenant_none;
	engine->agenda.end_wish = end_wish;
	engine->agenda.end_test = end_test;
	engine->agenda.stirs = 1;
	return engine;
}

/* Whoever holds is told before the log is written, which may take its time. */
static void give_up_session(struct engine *engine)
{
	log_hold();
	session_fence(engine);
	settle_all(engine);
	log_resume();
}

void engine_stir(struct engine *engine)
{
	engine->agenda.stirs++;
}

uint64_t engine_stirs(const struct engine *engine)
{
	return engine->agenda.stirs;
}

/* When the engine is to be looked at next, but for its timers. */
static int64_t next_look(const struct engine *engine)
{
	const int64_t times_ms[] = {
		engine->retry_ms,
		engine->searches.wanted != NULL ? engine->searches.refill_ms : INT64_MAX,
		engine->moratorium.until_ms != INT64_MIN ? engine->moratorium.until_ms : INT64_MAX,
	};
	int64_t first_ms = session_deadline(engine);

	if (engine->session.suspended_ms == INT64_MIN ||
	    (engine->grants.barred && lock_may_grant(engine)))
		return engine->now_ms;
	for (size_t i = 0; i < sizeof(times_ms) / sizeof(*times_ms); i++)
		first_ms = times_ms[i] < first_ms ? times_ms[i] : first_ms;
	return first_ms;
}

int64_t engine_deadline(struct engine *engine)
{
	int64_t timer_ms = timers_due(&engine->agenda.timers);

	if (engine->agenda.looked_at != engine->agenda.stirs)
		engine->agenda.look_ms = next_look(engine);
	engine->agenda.looked_at = engine->agenda.stirs;
	return engine->agenda.look_ms < timer_ms ? engine->agenda.look_ms : timer_ms;
}

void engine_advance(struct engine *engine, int64_t now_ms)
{
	engine->now_ms = now_ms;
	if (engine_deadline(engine) > now_ms)
		return;
	if (engine->session.suspended_ms == INT64_MIN)
		session_begin_silence(engine);
	if (session_lease_is_over(engine))
		give_up_session(engine);
	moratorium_end(engine);
	timers_run(&engine->agenda.timers, now_ms);
	if (engine->retry_ms <= now_ms) {
		retry(engine);
		settle_changed(engine);
	}
	session_beat(engine);
	session_touch(engine);
	session_nudge_silent(engine);
	settle_changed(engine);
}

struct owner *engine_owner_open(struct engine *engine, const char *path,
				const struct lock_policy *policy, void *cookie)
{
	struct owner *owner = calloc(1, sizeof(*owner));
	if (owner == NULL)
		return NULL;
	owner->lock = lock_open(engine, path, policy);
	if (owner->lock == NULL) {
		free(owner);
		return NULL;
	}
	owner->lock->owners++;
	owner->cookie = cookie;
	owner->number = owner_next_number(engine);
	return owner;
}

void engine_owner_close(struct owner *owner)
{
	struct lock *lock = owner->lock;
	struct wish *wish, *next;

	/* Its wishes first: what it releases is not for them. */
	OWNER_FOREACH_SAFE (owner, wish, next) {
		if (!wish_is_held(wish))
			decide_withdraw_wish(wish);
	}
	OWNER_FOREACH_SAFE (owner, wish, next) {
		handoff_release(wish->claim);
	}
	records_forget_file(owner);
	proofs_forget_file(owner);
	tests_forget_file(owner);
	engine_unmark(lock->engine, &owner->item);
	free(owner);
	lock->owners--;
	settle_lock(lock);
}

/* Ends what interrupted calls of the owner left lingering, except a wish that a restarted call with
 * these arguments can take up; that one is returned. It says whose it is, and another caller (NULL:
 * none) makes one of its own. */
static struct wish *take_up_lingering(struct owner *owner, enum lock_kind kind,
				      enum claim_mode mode, bool waits,
				      const struct engine_caller *caller)
{
	struct wish *wish, *next, *found = NULL;
	OWNER_FOREACH_SAFE (owner, wish, next) {
		if (wish->asked || wish_is_held(wish))
			continue;
		if (found == NULL && waits && wish->kind == kind &&
		    wish->claim->place.parts.mode == mode && wish->pid == caller->pid &&
		    wish->uid == caller->uid)
			found = wish;
		else
			decide_withdraw_wish(wish);
	}
	return found;
}

/* A new wish for a lock. NULL: out of memory. */
static struct wish *create_wish(struct owner *owner, enum lock_kind kind, struct range range,
				bool waits, const struct engine_caller *caller)
{
	if (handoff_applies(owner->lock) && owner->term.least_ms == 0 && !owner->term.holds)
		return handoff_join(owner, kind, range.mode, waits, caller);
	struct claim *claim = claim_create_for(owner, kind, range, false, caller);
	return claim != NULL ? claim->wishes : NULL;
}

/* What a wish takes of the store. */
static unsigned wanted_abilities(const struct lock *lock, enum claim_mode mode, bool waits)
{
	return (mode == CLAIM_SHARED ? STORE_HAS_SHARED : 0) | (waits ? STORE_HAS_QUEUE : 0) |
	       (slots_are_several(lock) ? STORE_HAS_SLOTS : 0);
}

int engine_lock(struct owner *owner, enum lock_kind kind, enum claim_mode mode, bool waits,
		const struct engine_caller *caller, void *cookie, struct wish **ret_wish)
{
	struct engine *engine = owner->lock->engine;
	int error = 0;

	mode = lock_mode(owner->lock, mode);
	struct range whole = {CLAIM_SPAN_WHOLE, mode};
	*ret_wish = NULL;
	if (owner->lost)
		return -EIO;
	bool fits = lock_is_taken_so(owner->lock, kind, mode);
	if (!fits || !lock_has_abilities(owner->lock, wanted_abilities(owner->lock, mode, waits))) {
		decisions_add(engine, DECIDED, cookie, fits ? -ENOLCK : -EINVAL);
		settle_changed(engine);
		return 0;
	}
	struct wish *wish = take_up_lingering(owner, kind, mode, waits, caller);
	struct claim *held = owner_held_but(owner, NULL);
	bool has = held != NULL && held->place.parts.mode == mode;
	if (!has && held != NULL)
		handoff_release(held);
	if (!has && !waits && drain_refuses(owner)) {
		decisions_add(engine, DECIDED, cookie, -ENOLCK);
	} else if (has || (!waits && conflict_is_here(owner, whole))) {
		decisions_add(engine, DECIDED, cookie, has ? 0 : -EWOULDBLOCK);
	} else {
		if (wish == NULL)
			wish = create_wish(owner, kind, whole, waits, caller);
		error = wish != NULL ? 0 : -ENOMEM;
		*ret_wish = wish;
		if (wish != NULL) {
			claim_ask(wish, waits, cookie);
			if (wish->claim->handoff != NULL || owner->lock->handoffs.held != NULL)
				handoff_go_on(wish->claim);
		}
	}
	settle_changed(engine);
	return error;
}

/* Whether the place of an interrupted call is kept. Not if its process holds record locks: others
 * could believe that it waits for them, in a cycle. */
static bool may_linger(const struct wish *wish)
{
	const struct records *records = owner_records(wish->owner);
	return wish->kind != LOCK_KIND_OPEN && wish->waits &&
	       wish_lock(wish)->policy.linger_ms > 0 &&
	       (records == NULL || !records_process_holds(records->process));
}

void engine_cancel(struct wish *wish)
{
	struct lock *lock = wish_lock(wish);
	struct engine *engine = lock->engine;

	assert(wish->asked);
	if (may_linger(wish)) {
		wish_end(wish);
		wish_set_timer(wish, engine->now_ms + lock->policy.linger_ms);
		handoff_go_on(wish->claim);
	} else {
		decide_withdraw_wish(wish);
	}
	settle_lock(lock);
}

int engine_unlock(struct owner *owner)
{
	if (owner->lost)
		return -EIO;
	take_up_lingering(owner, LOCK_KIND_FLOCK, CLAIM_SHARED, false, NULL);
	struct claim *held = owner_held_but(owner, NULL);
	if (held != NULL)
		handoff_release(held);
	settle_changed(owner->lock->engine);
	return 0;
}

void engine_set_term(struct owner *owner, int64_t least_ms, int64_t most_ms)
{
	owner->term.least_ms = (int32_t)least_ms;
	owner->term.most_ms = (uint32_t)most_ms;
	owner_mark(owner);
	take_up_lingering(owner, LOCK_KIND_FLOCK, CLAIM_SHARED, false, NULL);
	settle_changed(owner->lock->engine);
}

void engine_set_holds(struct owner *owner)
{
	owner->term.holds = true;
	owner_mark(owner);
	take_up_lingering(owner, LOCK_KIND_FLOCK, CLAIM_SHARED, false, NULL);
	settle_changed(owner->lock->engine);
}

enum engine_loss engine_file_loss(const struct owner *file)
{
	return file->loss;
}

bool engine_owner_holds(const struct owner *owner)
{
	return owner_held_but(owner, NULL) != NULL;
}

int engine_slot(const struct owner *owner)
{
	const struct claim *held = owner_held_but(owner, NULL);
	return held != NULL ? slots_number(&held->place) : -1;
}

void engine_change_slots(struct engine *engine,
			 struct lock_policy (*policy)(void *context, const char *path),
			 void *context)
{
	struct lock *lock;

	for (lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		lock->policy.slots = policy(context, lock->path).slots;
		lock_forget_mixture(lock);
		queue_judge_all(lock);
	}
	settle_changed(engine);
}

const struct range_set *engine_ranges(const struct owner *file, uint64_t process)
{
	const struct records *records = records_find(file->lock, process);
	return records != NULL && records->held.count > 0 ? &records->held : NULL;
}

int engine_clear(struct engine *engine, const char *path, const struct lock_policy *policy)
{
	struct lock *lock = lock_open(engine, path, policy);

	if (lock == NULL)
		return -ENOMEM;
	lock->losses.orphans_list = lock_list_anew(lock);
	return 0;
}

int engine_lock_range(struct owner *file, uint64_t process, struct range range, bool waits,
		      const struct engine_caller *caller, void *cookie, struct wish **ret_wish)
{
	int error;

	range.mode = lock_mode(file->lock, range.mode);
	*ret_wish = NULL;
	if (file->lost)
		return -EIO;
	if (!lock_is_taken_so(file->lock, LOCK_KIND_RECORD, range.mode))
		return -EINVAL;
	if (!lock_has_abilities(file->lock,
				STORE_HAS_RANGES | wanted_abilities(file->lock, range.mode, waits)))
		return -ENOLCK;
	struct records *records = records_open(file->lock, process);
	if (records == NULL)
		return -ENOMEM;
	if (records->owner.lost)
		error = -EIO;
	else if (records_add_file(records, file) < 0)
		error = -ENOMEM;
	else
		error = records_lock_range(records, file, range, waits, caller, cookie, ret_wish);
	if (error == 0 && records->pid != caller->pid) {
		records->pid = caller->pid;
		owner_mark(&records->owner);
	}
	settle_changed(file->lock->engine);
	return error;
}

int engine_unlock_range(struct owner *file, uint64_t process, struct claim_span span)
{
	struct records *records = records_find(file->lock, process);

	if (file->lost || (records != NULL && records->owner.lost))
		return -EIO;
	if (records == NULL)
		return 0;
	int error = records_unlock_range(records, span);
	settle_changed(file->lock->engine);
	return error;
}

void engine_flush(struct owner *file, uint64_t process)
{
	struct records *records = records_find(file->lock, process);
	if (records == NULL)
		return;
	records_end(records, NULL);
	if (records->owner.wishes == NULL)
		records_free(records);
	settle_changed(file->lock->engine);
}

int engine_test_range(struct owner *file, uint64_t process, struct range range, void *cookie,
		      struct test **ret_test)
{
	if (!lock_is_taken_so(file->lock, LOCK_KIND_RECORD, range.mode))
		return -EINVAL;
	if (!lock_has_abilities(file->lock, STORE_HAS_RANGES))
		return -ENOLCK;
	int error = test_begin(file, process, range, cookie, ret_test);

	if (error == 0)
		settle_changed(file->lock->engine);
	return error;
}

void engine_cancel_test(struct test *test)
{
	struct lock *lock = test->lock;

	test_end(test);
	settle_lock(lock);
}
