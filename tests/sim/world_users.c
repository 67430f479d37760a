/* SPDX-License-Identifier: Apache-2.0
 *
 * What the users of a simulated host do: open, lock, get interrupted, restart, unlock, close.
 * Single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { SHARED_PROCESSES = 3 }; /* of a host, whichever files they use */
enum { FIRST_OWN_PROCESS = 1000 };

static const char *mode_name(enum claim_mode mode)
{
	return mode == CLAIM_EXCLUSIVE ? "exclusively" : "shared";
}

static void on_decided(void *context, void *cookie, int result)
{
	struct host *host = context;
	struct call *call = cookie;
	struct user *user = call->user;

	if (host->engine == NULL)
		return; /* a crash: nobody is there any more */
	host_note(host);
	world_say(host->world, "host %d: user %u call %u decided: %d", host->number, user->number,
		  call->number, result);
	if (!call->waiting || call->kind == CALL_TEST) {
		world_fail(host->world, "user %u, who asks for nothing, is decided: %d",
			   user->number, result);
		return;
	}
	bool claimed = call->wish != NULL;
	call->waiting = false;
	call->wish = NULL;
	if (result != 0) {
		if (!(result == -EIO && user->lost))
			check_refusal(call, result);
		return;
	}
	if (call->kind != CALL_RECORD && user->holds) {
		term_note_again(user);
		return; /* it had the lock already, and nothing changes */
	}
	check_grant(call, claimed);
	if (host->hurries)
		host->world->ready = (struct ready){.life = host->life, .lock = user->lock};
	host->hurries = false;
	user_note_grant(user);
	if (call->kind == CALL_RECORD) {
		struct process *process = process_find(host, user->lock, call->process);

		if (process == NULL || process->lost)
			world_fail(host->world,
				   "process %" PRIu64 " is granted what it cannot hold",
				   call->process);
		else
			slots_set(&process->held, call->span, slot_of(call->mode));
		if (process != NULL)
			process_note_grant(host, process);
		return;
	}
	user->holds = true;
	user->mode = call->mode;
}

static void on_tested(void *context, void *cookie, int error,
		      const struct engine_conflict *conflict)
{
	struct host *host = context;
	struct call *call = cookie;

	if (host->engine == NULL)
		return;
	host_note(host);
	world_say(host->world, "host %d: user %u call %u is told: %d, %s", host->number,
		  call->user->number, call->number, error,
		  conflict == NULL
			  ? "free"
			  : slots_show(slots_of(conflict->range.span, conflict->range.mode)).text);
	if (!call->waiting || call->kind != CALL_TEST) {
		world_fail(host->world, "user %u, who does not ask, is told of a conflict",
			   call->user->number);
		return;
	}
	call->waiting = false;
	call->wish = NULL;
	check_answer(call, error, conflict);
}

static void on_lost(void *context, void *owner_cookie)
{
	struct host *host = context;
	struct user *user = owner_cookie;
	bool held;

	if (host->engine == NULL)
		return;
	host_note(host);
	world_say(host->world, "host %d: user %u lost", host->number, user->number);
	held = user->holds;
	held |= processes_lose(user);
	if (user->lost || !held)
		world_fail(host->world, "user %u lost what it had not", user->number);
	check_loss(user);
	view_release(user);
	user->lost = true;
	user->holds = false;
	user->broken_ms = 0;
	user->broken = false;
	host_fence(host);
}

static void on_told(void *context)
{
	host_told(context);
}

static void on_revoked(void *context, void *owner_cookie)
{
	struct host *host = context;
	const struct user *user = owner_cookie;

	host_note(host);
	world_say(host->world, "host %d: user %u is asked to let go", host->number, user->number);
	if (slots_are_free(file_slots(user)))
		world_fail(host->world, "user %u is asked for what it has not", user->number);
}

struct caller_text {
	char text[160];
};

static void describe(void *context, const struct engine_caller *caller, enum lock_kind kind,
		     enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	const struct host *host = context;

	strcpy(text, caller->details);
	if (host->world->peers != NULL)
		sprintf(text + strlen(text), "peer=host%d\n", host->number);
}

#define USER_EVENTS                                                                                \
	.details_bytes = sizeof(struct caller_text), .describe = describe,                         \
	.on_decided = on_decided, .on_tested = on_tested, .on_proved = user_on_proved,             \
	.on_lost = on_lost, .on_told = on_told, .on_revoked = on_revoked

const struct engine_events user_events = {USER_EVENTS};
const struct engine_events user_events_of_peers = {
	USER_EVENTS,
	.on_ask = peers_on_ask,
	.on_tell = peers_on_tell,
};

static void user_open(struct host *host, struct user *user)
{
	struct world *world = host->world;
	struct prng *prng = &world->prng;

	memset(user, 0, sizeof(*user));
	user->host = host;
	user->number = ++world->users;
	user->lock = (int)prng_below(prng, world->locks_count);
	user->likes_records = prng_chance(prng, world->records_percent);
	for (int i = 0; i < CALLS_MAX; i++) {
		user->calls[i].user = user;
		user->calls[i].process = 1 + (uint64_t)prng_below(prng, SHARED_PROCESSES);
	}
	if (prng_chance(prng, 30)) /* as of an open file description */
		user->calls[0].process = FIRST_OWN_PROCESS + user->number;
	for (uint64_t i = 0; world->apart && i < CALLS_MAX; i++)
		user->calls[i].process = FIRST_OWN_PROCESS + user->number * CALLS_MAX + i;
	user->owner = engine_owner_open(host->engine, world_lock(user->lock),
					&world->policies[user->lock], user);
	if (user->owner == NULL)
		abort();
	term_open(user);
	user_keep(user);
	world_say(world, "host %d: user %u opens %s, for %" PRIu64 " and %" PRIu64, host->number,
		  user->number, world_lock(user->lock), user->calls[0].process,
		  user->calls[1].process);
}

static void user_flush(struct user *user, uint64_t process)
{
	struct host *host = user->host;

	world_say(host->world, "host %d: process %" PRIu64 " lets go of %s", host->number, process,
		  world_lock(user->lock));
	process_flush(host, user->lock, process);
	user->broken_ms = 0;
	engine_flush(user->owner, process);
}

void user_close(struct user *user)
{
	struct world *world = user->host->world;

	world_say(world, "host %d: user %u closes", user->host->number, user->number);
	if (world->records_percent > 0 && prng_chance(&world->prng, 70))
		for (int i = 0; i < CALLS_MAX; i++)
			user_flush(user, user->calls[i].process);
	for (int i = 0; i < CALLS_MAX; i++)
		user->calls[i].waiting = false;
	questions_forget(user);
	processes_forget_file(user);
	view_release(user);
	engine_owner_close(user->owner);
	user_forget(user);
	memset(user, 0, sizeof(*user));
}

static void call_begin(struct call *call, enum call_kind kind, enum claim_mode mode,
		       struct claim_span span, bool waits)
{
	struct world *world = call->user->host->world;

	call->number = ++world->calls;
	call->interrupted = false;
	call->kind = kind;
	call->mode = mode;
	call->span = span;
	call->slots = slots_of(span, mode);
	call->waits = waits;
	call->since_ms = world->now_ms;
	call->unopposed = false;
	call->circled = false;
	call->excused = call->excused_here = false;
}

/* The call is under way from now on. */
static void call_enter(struct call *call)
{
	if (!call->waits) {
		call->excused = check_conflict(call, false);
		call->excused_here = check_conflict(call, true);
	}
	if (call->kind == CALL_TEST)
		call->unopposed = !check_opposed(call);
	call->waiting = true;
}

static void call_leave(struct call *call, int error)
{
	if (error != 0)
		call->waiting = false;
	if (!call->waiting)
		call->wish = NULL;
}

unsigned user_uid(unsigned number)
{
	return number % 8 == 0;
}

/* What view_standing() reads. */
static struct engine_caller caller_of(const struct call *call, struct caller_text *text)
{
	snprintf(text->text, sizeof(text->text),
		 "format=1\ncall=%u\nuser=%u\nprocess=%" PRIu64 "\nasked=%d %d %" PRId64 "-%" PRId64
		 "\nuid=%u\n",
		 call->number, call->user->number, call->process, (int)call->kind, (int)call->mode,
		 call->span.start, call->span.end, user_uid(call->user->number));
	return (struct engine_caller){
		.pid = (int)call->process,
		.uid = user_uid(call->user->number),
		.details = text,
	};
}

/* The mode in which the lock is taken by who asks for that one. */
static enum claim_mode mode_taken(const struct user *user, enum claim_mode asked)
{
	const struct lock_policy *policy = &user->host->world->policies[user->lock];

	return policy->recipe == CLAIM_CURATOR_MUTEX ? CLAIM_EXCLUSIVE : asked;
}

static void user_lock(struct call *call, enum call_kind kind, enum claim_mode asked, bool waits)
{
	struct user *user = call->user;
	struct world *world = user->host->world;
	enum claim_mode mode = mode_taken(user, asked);
	struct caller_text text;
	struct engine_caller caller;
	int error;

	call_begin(call, kind, mode, CLAIM_SPAN_WHOLE, waits);
	world_say(world, "host %d: user %u locks %s %s%s%s, call %u", user->host->number,
		  user->number, world_lock(user->lock), mode_name(mode),
		  kind == CALL_OPEN ? " by open" : "", waits ? "" : " if free", call->number);
	if (user->holds && user->mode != mode) {
		user->holds = false;
		user->broken_ms = 0;
		view_release(user);
	}
	call_enter(call);
	caller = caller_of(call, &text);
	error = engine_lock(user->owner, kind == CALL_OPEN ? LOCK_KIND_OPEN : LOCK_KIND_FLOCK,
			    asked, waits, &caller, call, &call->wish);
	call_leave(call, error);
	if (error != (user->lost ? -EIO : 0))
		world_fail(world, "locking gives user %u %d", user->number, error);
}

/* Whether the engine may say that there are too many ranges. */
static bool may_be_too_many(const struct world *world)
{
	return world->policy.process_ranges < SLOTS_COUNT * LOCKS_MAX;
}

static void user_lock_range(struct call *call, struct claim_span span, enum claim_mode asked,
			    bool waits)
{
	struct user *user = call->user;
	enum claim_mode mode = mode_taken(user, asked);
	struct host *host = user->host;
	struct process *process = process_find(host, user->lock, call->process);
	struct range range = {span, asked};
	struct caller_text text;
	struct engine_caller caller;
	bool lost = user->lost || (process != NULL && process->lost);
	int error;

	call_begin(call, CALL_RECORD, mode, span, waits);
	world_say(host->world, "host %d: user %u process %" PRIu64 " locks %s of %s%s, call %u",
		  host->number, user->number, call->process, slots_show(call->slots).text,
		  world_lock(user->lock), waits ? "" : " if free", call->number);
	if (!lost)
		process_use(user, call->process);
	call_enter(call);
	caller = caller_of(call, &text);
	error = engine_lock_range(user->owner, call->process, range, waits, &caller, call,
				  &call->wish);
	call_leave(call, error);
	bool refused = may_be_too_many(host->world) || (!waits && engine_drains(host->engine));
	if (error != (lost ? -EIO : 0) && !(error == -ENOLCK && refused))
		world_fail(host->world, "locking a range gives user %u %d", user->number, error);
}

static void user_test_range(struct call *call, struct claim_span span, enum claim_mode asked)
{
	struct user *user = call->user;
	enum claim_mode mode = mode_taken(user, asked);
	struct host *host = user->host;
	const struct process *process = process_find(host, user->lock, call->process);
	struct range range = {span, asked};
	bool lost = user->lost || (process != NULL && process->lost);
	int error;

	call_begin(call, CALL_TEST, mode, span, false);
	world_say(host->world, "host %d: user %u process %" PRIu64 " tests %s of %s, call %u",
		  host->number, user->number, call->process, slots_show(call->slots).text,
		  world_lock(user->lock), call->number);
	call_enter(call);
	error = engine_test_range(user->owner, call->process, range, call, &call->test);
	call_leave(call, error);
	if (error != (lost ? -EIO : 0))
		world_fail(host->world, "testing a range gives user %u %d", user->number, error);
}

void user_test_again(struct user *user)
{
	for (int i = 0; i < CALLS_MAX; i++) {
		struct call *call = &user->calls[i];
		struct range range = {call->span, call->mode};

		if (!call->waiting || call->kind != CALL_TEST)
			continue;
		call->since_ms = user->host->world->now_ms; /* its limit begins anew */
		call_leave(call,
			   engine_test_range(user->owner, call->process, range, call, &call->test));
	}
}

static void user_unlock_range(struct user *user, uint64_t id, struct claim_span span)
{
	struct host *host = user->host;
	struct process *process = process_find(host, user->lock, id);
	bool lost = user->lost || (process != NULL && process->lost);
	int error;

	world_say(host->world, "host %d: user %u process %" PRIu64 " unlocks %s of %s",
		  host->number, user->number, id, slots_show(slots_of(span, CLAIM_SHARED)).text,
		  world_lock(user->lock));
	if (process != NULL && !lost)
		slots_set(&process->held, span, SLOT_FREE);
	user->broken_ms = 0; /* that may be what it has let go */
	error = engine_unlock_range(user->owner, id, span);
	if (error != (lost ? -EIO : 0))
		world_fail(host->world, "unlocking a range gives user %u %d", user->number, error);
}

static void user_flock(struct call *call)
{
	struct prng *prng = &call->user->host->world->prng;

	const struct user *user = call->user;
	const struct world *world = user->host->world;
	bool exclusive = prng_chance(prng, world->exclusive_percent) ||
			 lock_room(user->host->world, user->lock) > 1;

	user_lock(call, CALL_FLOCK, exclusive ? CLAIM_EXCLUSIVE : CLAIM_SHARED,
		  prng_chance(prng, 70));
}

static void user_unlock(struct user *user)
{
	struct world *world = user->host->world;
	int error;

	world_say(world, "host %d: user %u unlocks", user->host->number, user->number);
	for (int i = 0; i < CALLS_MAX; i++)
		if (user->calls[i].kind == CALL_FLOCK)
			user->calls[i].interrupted = false;
	user->holds = false;
	user->broken_ms = 0;
	view_release(user);
	error = engine_unlock(user->owner);
	if (error != (user->lost ? -EIO : 0))
		world_fail(world, "unlocking gives user %u %d", user->number, error);
}

static void user_interrupt(struct call *call)
{
	const struct user *user = call->user;

	world_say(user->host->world, "host %d: user %u call %u is interrupted", user->host->number,
		  user->number, call->number);
	call->waiting = false;
	call->interrupted = call->waits && call->kind != CALL_OPEN;
	if (call->kind == CALL_TEST)
		engine_cancel_test(call->test);
	else
		engine_cancel(call->wish);
	call->wish = NULL;
}

static void user_restart(struct call *call)
{
	if (call->kind == CALL_RECORD)
		user_lock_range(call, call->span, call->mode, true);
	else
		user_lock(call, call->kind, call->mode, true);
}

enum { HELD_UP_MS = 30000 }; /* longer than engines hold claims back that may go on */

static bool anybody_waits(const struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++)
		for (int j = 0; j < USERS_MAX; j++)
			for (int k = 0; k < CALLS_MAX; k++)
				if (world->hosts[i].users[j].calls[k].waiting)
					return true;
	return false;
}

static struct claim_span some_span(struct world *world)
{
	struct prng *prng = &world->prng;
	int first = (int)prng_below(prng, world->crowd), count;

	if (prng_chance(prng, 10))
		return CLAIM_SPAN_WHOLE;
	count = 1 + (int)prng_below(prng, prng_chance(prng, 70) ? 2 : world->crowd);
	return slots_span(first,
			  first + count > world->crowd ? world->crowd - 1 : first + count - 1);
}

/* What a process does that has nothing to wait for: it lets go of its record locks. Returns whether
 * it had any. */
static bool process_finish(struct user *user, uint64_t id)
{
	struct world *world = user->host->world;
	struct prng *prng = &world->prng;
	const struct process *process = process_find(user->host, user->lock, id);

	if (process == NULL || process_waits(user->host, id) || slots_are_free(process->held))
		return false;
	if (prng_chance(prng, 30))
		user_flush(user, id);
	else if (!user->lost)
		user_unlock_range(user, id,
				  prng_chance(prng, 50) ? CLAIM_SPAN_WHOLE : some_span(world));
	return true;
}

/* Whether a holder of the call's lock waits itself, perhaps for what is held back until its claim
 * has gone; or, after some time, for somebody who does. */
static bool is_held_up(const struct call *call)
{
	const struct world *world = call->user->host->world;

	if (world->late_numbers && world->now_ms > world->calm_ms + HELD_UP_MS)
		return true;
	for (int i = 0; world->late_numbers && i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];

		for (int j = 0; host->engine != NULL && j < USERS_MAX; j++) {
			const struct user *user = &host->users[j];

			if (user->owner == NULL || user->lock != call->user->lock || !user->holds)
				continue;
			for (int k = 0; k < CALLS_MAX; k++)
				if (user->calls[k].waiting ||
				    process_waits(host, user->calls[k].process))
					return true;
		}
	}
	return false;
}

/* Everything comes to an end: who waits goes on waiting, who holds leaves, and anybody else stays
 * as long as others wait, whom he must not be in the way of. */
static void user_finish(struct user *user)
{
	struct prng *prng;
	bool waits = false, held = false;

	if (user->owner == NULL)
		return;
	prng = &user->host->world->prng;
	for (int i = 0; i < CALLS_MAX; i++) {
		struct call *call = &user->calls[i];

		if (call->waiting && call->waits && prng_chance(prng, 10) &&
		    (wait_is_hopeless(call) || is_held_up(call)))
			user_interrupt(call);
		held |= process_finish(user, call->process);
		waits |= call->waiting || process_waits(user->host, call->process);
	}
	if (waits || held || user_is_asking(user))
		return;
	if (user->holds && prng_chance(prng, 30))
		user_unlock(user);
	else if (user->holds || !anybody_waits(user->host->world) ||
		 (user->lost && user->host->world->apart))
		user_close(user);
}

/* One of the two processes does something with record locks. */
static void act_on_records(struct call *call)
{
	struct user *user = call->user;
	struct world *world = user->host->world;
	struct prng *prng = &world->prng;
	enum claim_mode mode = prng_chance(prng, 60) ? CLAIM_EXCLUSIVE : CLAIM_SHARED;
	int64_t dice = prng_below(prng, 100);

	if (dice < 55)
		user_lock_range(call, some_span(world), mode,
				prng_chance(prng, world->crowd < SLOTS_COUNT ? 85 : 65));
	else if (dice < 78)
		user_unlock_range(user, call->process, some_span(world));
	else if (dice < 82)
		user_flush(user, call->process);
	else if (dice < 92)
		user_test_range(call, some_span(world), mode);
	else
		user_close(user);
}

static struct call *find_rival(struct user *user, int lock)
{
	for (int i = 0; user->owner != NULL && user->lock == lock && !user->lost && i < CALLS_MAX;
	     i++) {
		struct call *call = &user->calls[i];
		const struct process *process = process_find(user->host, lock, call->process);

		if (!call->waiting && process != NULL && !process->lost &&
		    !slots_are_free(process->held))
			return call;
	}
	return NULL;
}

void users_hurry(struct world *world, struct ready ready)
{
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		for (int j = 0; host_runs(host) && host->life != ready.life && j < USERS_MAX; j++) {
			struct call *call = find_rival(&host->users[j], ready.lock);

			if (call == NULL || !prng_chance(&world->prng, 50))
				continue;
			host_note(host);
			user_lock_range(call, some_span(world), CLAIM_EXCLUSIVE,
					prng_chance(&world->prng, 70));
			return;
		}
	}
}

static void act(struct user *user)
{
	struct world *world = user->host->world;
	struct prng *prng = &world->prng;
	struct call *call = &user->calls[0];
	bool records = world->records_percent > 0 &&
		       user->likes_records != prng_chance(prng, world->change_percent);
	int64_t dice = prng_below(prng, 100);

	if (records)
		call = &user->calls[prng_below(prng, CALLS_MAX)];
	if (prng_chance(prng, world->proof_percent / (slots_are_free(file_slots(user)) ? 8 : 1))) {
		user_prove(user);
	} else if (call->waiting) {
		if (dice < world->impatient_percent)
			user_interrupt(call);
		else if (dice < world->impatient_percent * 5 / 4)
			user_close(user);
	} else if (call->interrupted && dice < 60) {
		user_restart(call);
	} else if (records) {
		act_on_records(call);
	} else if (dice < 40) {
		user_flock(call);
	} else if (dice < 75) {
		user_unlock(user);
	} else {
		user_close(user);
	}
}

void user_act(struct host *host, struct user *user)
{
	struct prng *prng = &host->world->prng;
	int64_t dice;

	host_note(host);
	if (host->world->calm) {
		user_finish(user);
	} else if (user->owner != NULL) {
		act(user);
	} else {
		user_open(host, user);
		dice = prng_below(prng, 100);
		if (user->likes_records)
			act_on_records(&user->calls[0]);
		else if (dice < 25)
			user_lock(&user->calls[0], CALL_OPEN, CLAIM_EXCLUSIVE, dice < 15);
		else
			user_flock(&user->calls[0]);
	}
}
