/* SPDX-License-Identifier: Apache-2.0
 *
 * What must be true in the simulated world. Single-threaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum {
	CLOCKS_DIFFER_MS = 4, /* over the limit of a call that does not wait */
	QUIET_CLAIMS = 100,   /* more than are placed again for those who wait, which is 30 or so */
};

/* Tells who has what and what stands in the queues. */
static void tell_host(const struct host *host)
{
	for (int i = 0; i < PROCESSES_MAX; i++) {
		const struct process *process = &host->processes[i];

		if (process->known)
			world_say(host->world, "host %d: process %llu of %s%s: %s", host->number,
				  (unsigned long long)process->id, world_lock(process->lock),
				  process->lost ? ", lost" : "", slots_show(process->held).text);
	}
	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *user = &host->users[i];

		if (user->owner == NULL)
			continue;
		world_say(host->world, "host %d: user %u of %s%s: %s", host->number, user->number,
			  world_lock(user->lock), user->lost ? ", lost" : "",
			  slots_show(user_slots(user)).text);
		for (int j = 0; j < CALLS_MAX; j++)
			if (user->calls[j].waiting)
				world_say(host->world, "    process %llu, call %u, waits for %s",
					  (unsigned long long)user->calls[j].process,
					  user->calls[j].number,
					  slots_show(user->calls[j].slots).text);
	}
}

static void tell(struct world *world)
{
	view_forget(world);
	for (int i = 0; i < world->hosts_count; i++)
		if (world->hosts[i].engine != NULL)
			tell_host(&world->hosts[i]);
	for (int lock = 0; lock < world->locks_count; lock++) {
		const struct view *view = view_of(world, lock);

		for (size_t i = 0; i < view->count; i++) {
			const struct standing *standing = view->claims[i].standing;

			world_say(world, "%s: %s", world_lock(lock), view->claims[i].name);
			if (standing != NULL)
				world_say(world, "    life %u user %u call %u%s%s%s: %s",
					  standing->life, standing->user, standing->call,
					  standing->granted ? ", granted" : "",
					  standing->released ? ", released" : "",
					  standing->withdrawing ? ", withdrawing" : "",
					  slots_show(standing->covered).text);
		}
	}
}

void world_fail(struct world *world, const char *format, ...)
{
	va_list arguments;

	if (world->failed)
		return; /* the first contradiction is the one to look at */
	world->failed = true;
	printf("sim: seed %llu step %ld at %lld ms: ", (unsigned long long)world->seed, world->step,
	       (long long)world->now_ms);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	if (world->verbose)
		tell(world);
}

/* Whether the claim was taken away by hand, and was released by the call's host, before that heard
 * of it. */
static bool was_released(const struct standing *standing, const struct call *call)
{
	return standing->life == call->user->host->life &&
	       (standing->released || standing->withdrawing);
}

/* Whether a grant must not pass by a claim that stands in front. One of its own host that is held
 * stands for what the model knows: that is check_exclusion()'s business. */
static bool must_respect(const struct call *call, const struct view_claim *own,
			 const struct view_claim *front)
{
	const struct standing *standing = front->standing;
	bool passes = view_has_precedence(own, front);

	if (standing == NULL)
		return slots_conflict(slots_of(front->parts.span, front->parts.mode), call->slots);
	if (front->orphan)
		return slots_conflict(standing->covered, call->slots) &&
		       !was_released(standing, call) &&
		       (call->user->host->world->policies[standing->lock].lock_delay_ms > 0 ||
			call->user->host->world->policies[standing->lock].min_hold_ms > 0 ||
			front->parts.least_ms > 0);
	if (standing->life != call->user->host->life)
		return slots_conflict(standing->covered, call->slots) &&
		       !peers_passed(call->user->host->world, front->name, own->name) &&
		       (standing->granted || !(passes || standing->requeue));
	if (standing->withdrawing || standing->granted || standing_is_own(standing, call))
		return false;
	return slots_conflict(standing->asked, call->slots) && !passes && !standing->requeue;
}

/* The first claim that it must not pass by; NULL: there is none. */
static const struct view_claim *find_respected(const struct call *call, const struct view *view,
					       const struct view_claim *own)
{
	if (lock_room(call->user->host->world, call->user->lock) > 1)
		return room_find_respected(call, view, own);
	for (const struct view_claim *front = view->claims; front < own; front++)
		if (must_respect(call, own, front))
			return front;
	return NULL;
}

/* Whether the call can be granted without a claim: the process holds as much, or a flock of an open
 * file that it has locked through stands. A host whose clock stood still has what it had, and what
 * that covers, until it knows better. */
static bool is_covered(const struct call *call)
{
	struct host *host = call->user->host;
	const struct world *world = host->world;
	const struct process *process = process_find(host, call->user->lock, call->process);

	if (call->kind != CALL_RECORD || process == NULL)
		return false;
	if (slots_contain(process->held, call->slots))
		return true;
	for (int i = 0; i < USERS_MAX; i++)
		if (process->files[i] && slots_contain(user_slots(&host->users[i]), call->slots))
			return true;
	for (size_t i = 0; i < world->standings_count; i++) {
		const struct standing *standing = &world->standings[i];

		if (standing->lock == call->user->lock && standing->life == host->life &&
		    standing->released && !standing->withdrawing &&
		    (!standing->gone || machine_is_misled(host)) &&
		    slots_contain(standing->covered, call->slots))
			return true;
	}
	return false;
}

/* Whether a claim was just withdrawn that the call, which is covered, could have been granted by.
 */
static bool is_withdrawn(const struct call *call, const struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct standing *standing = view->claims[i].standing;

		if (standing != NULL && standing->withdrawing && !standing->granted &&
		    standing->withdrawn == call->user->host->world->step &&
		    standing->life == call->user->host->life && standing->kind == call->kind &&
		    standing->process == call->process && slots_equal(standing->asked, call->slots))
			return true;
	}
	return false;
}

/* By a clock that may be too fast, and of a limit that is read in whole milliseconds. */
static int64_t delay_at_least(int64_t delay_ms)
{
	return delay_ms * 98 / 100 - CLOCKS_DIFFER_MS;
}

/* Nobody is granted what conflicts with what a holder has lost, before the delay is over. */
static void check_delay(const struct call *call)
{
	struct world *world = call->user->host->world;
	int lock = call->user->lock, room = lock_room(world, lock);
	int64_t delay_ms = delay_at_least(world->policies[lock].lock_delay_ms);

	for (size_t i = 0; i < world->standings_count; i++) {
		const struct standing *standing = &world->standings[i];

		/* Where several may hold, who was lost takes up room, as others do; and a number.
		 */
		if (standing->lock == lock && standing->lost_ms > 0 &&
		    (room == 1 || standing->number == engine_slot(call->user->owner)) &&
		    !was_released(standing, call) && world->now_ms - standing->lost_ms < delay_ms &&
		    slots_conflict(standing->covered, call->slots))
			world_fail(world, "user %u got %s %lld ms after the holder of %s was lost",
				   call->user->number, world_lock(lock),
				   (long long)(world->now_ms - standing->lost_ms), standing->name);
	}
}

/* A grant is right if the claim stands, and no claim that the user must respect stands in front of
 * it. */
void check_grant(struct call *call, bool claimed)
{
	const struct user *user = call->user;
	struct world *world = user->host->world;
	const struct view *view = view_of(world, user->lock);
	const struct view_claim *own = view_find(view, call), *front;

	check_drain(call);
	if (user->lost)
		world_fail(world, "user %u got %s through a file that has lost it", user->number,
			   world_lock(user->lock));
	if (is_covered(call)) {
		if (claimed && own != NULL && !is_withdrawn(call, view))
			own->standing->granted = true;
		return;
	}
	if (!store_faulty_told_connected(user->host->store))
		world_fail(world, "user %u got %s without the store", user->number,
			   world_lock(user->lock));
	if (store_faulty_may_be_over(user->host->store))
		world_fail(world, "user %u got %s in a session that may be over", user->number,
			   world_lock(user->lock));
	if (own == NULL && world_is_forgotten(call))
		world_fail(world,
			   "user %u got %s by a claim that was gone before what it waited for",
			   user->number, world_lock(user->lock));
	if (own == NULL && user_note_broken(call))
		return;
	if (own == NULL) {
		world_fail(world, "user %u got %s without a claim", user->number,
			   world_lock(user->lock));
		return;
	}
	front = find_respected(call, view, own);
	for (const struct view_claim *other = NULL;
	     front != NULL && (other = view_find_next(view, call, other)) != NULL;) {
		if (find_respected(call, view, other) != NULL)
			continue;
		own = other;
		front = NULL;
	}
	if (front != NULL)
		world_fail(world, "user %u got %s while %s stands in front of %s", user->number,
			   world_lock(user->lock), front->name, own->name);
	check_delay(call);
	if (!is_record(call->kind))
		term_note_grant(call);
	check_told(call, own->standing);
	own->standing->granted = true;
	own->standing->number = engine_slot(user->owner);
	handoff_note_grant(call, own);
}

/* One that waits to go on is in the way of others of its kind, whoever they are. */
static bool is_surely_own(const struct standing *standing, const struct call *call)
{
	return standing_is_own(standing, call) &&
	       (is_record(call->kind) || !handoff_waits(call->user->host->world, standing));
}

/* Whether a claim is a reason for the call to wait, wherever it stands. It counts with all that its
 * name says; for a test, which is told what is there, with what it covers. */
static bool is_reason(const struct call *call, const struct view_claim *claim)
{
	const struct standing *standing = claim->standing;
	struct slots slots = slots_of(claim->parts.span, claim->parts.mode);

	if (claim->orphan)
		return slots_conflict(slots, call->slots);
	if (standing != NULL && standing->life == call->user->host->life &&
	    (standing->withdrawing ||
	     (is_surely_own(standing, call) && !term_rests(call->user->host->world, claim))))
		return false;
	/* Who only looks is not told more than that somebody has it. */
	if (handoff_is_idle(call->user->host->world, standing) &&
	    (call->kind != CALL_TEST || standing->life == call->user->host->life))
		return false;
	if (standing != NULL && call->kind == CALL_TEST)
		slots = standing->covered;
	return slots_conflict(slots, call->slots);
}

static bool is_of_host(const struct host *host, const struct view_claim *claim)
{
	return claim->standing != NULL && claim->standing->life == host->life;
}

/* What is counted twice, as a claim and as a call, makes this milder where several may hold. */
bool check_conflict(const struct call *call, bool here)
{
	struct host *host = call->user->host;
	const struct view *view = view_of(host->world, call->user->lock);
	int count = 0, room = lock_room(host->world, call->user->lock);

	for (size_t i = 0; i < view->count; i++)
		count += (!here || is_of_host(host, &view->claims[i])) &&
			 is_reason(call, &view->claims[i]);
	for (int i = 0; i < PROCESSES_MAX; i++)
		count += process_opposes(host, &host->processes[i], call);
	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *other = &host->users[i];

		count += user_opposes(other, call);
		for (int j = 0;
		     other->owner != NULL && other->lock == call->user->lock && j < CALLS_MAX;
		     j++) {
			const struct call *wish = &other->calls[j];

			count += (wish->waiting || wish->interrupted) && wish->kind != CALL_TEST &&
				 slots_conflict(wish->slots, call->slots) &&
				 !calls_are_one(wish, call);
		}
	}
	return count >= room;
}

bool check_opposed(const struct call *call)
{
	struct world *world = call->user->host->world;
	const struct view *view = view_of(world, call->user->lock);

	for (size_t i = 0; i < view->count; i++)
		if (view->claims[i].standing == NULL && is_reason(call, &view->claims[i]))
			return true;
	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];

		if (host->engine == NULL || store_faulty_may_be_over(host->store))
			continue;
		for (int j = 0; j < PROCESSES_MAX; j++)
			if (!process_is_broken(host, &host->processes[j]) &&
			    process_opposes(host, &host->processes[j], call))
				return true;
		for (int j = 0; j < USERS_MAX; j++)
			if (user_opposes(&host->users[j], call))
				return true;
	}
	return false;
}

static void note_reasons(struct call *call)
{
	struct user *user = call->user;

	if (!call->waiting)
		return;
	if (!call->waits && !call->excused)
		call->excused = check_conflict(call, false);
	if (!call->waits && !call->excused_here)
		call->excused_here = check_conflict(call, true);
	if (call->kind == CALL_TEST && !call->unopposed)
		call->unopposed = !check_opposed(call);
	if (call->waits && call->kind == CALL_RECORD && !call->circled && !user->lost)
		call->circled = wait_is_circle(call);
}

/* Whether who is about to be refused holds the lock, where the last number has been reached. */
static bool holds_besides(const struct call *call)
{
	struct world *world = call->user->host->world;
	const struct view *view = view_of(world, call->user->lock);

	for (size_t i = 0; world->late_numbers && i < view->count; i++) {
		const struct standing *standing = view->claims[i].standing;

		if (standing != NULL && standing->granted &&
		    standing->life == call->user->host->life &&
		    view->claims[view->count - 1].parts.order >= STORE_LOCAL_ORDER_UNSURE)
			return true;
	}
	return false;
}

/* Another host's release may be on its way for so long, or until the call's limit. */
static void check_grace(const struct call *call)
{
	const struct user *user = call->user;
	struct world *world = user->host->world;
	int64_t grace_ms = world->policies[user->lock].try_grace_ms;

	if (grace_ms > world->policy.try_limit_ms)
		grace_ms = world->policy.try_limit_ms;
	if (!call->excused_here && !world->late_numbers &&
	    world->now_ms - call->since_ms < grace_ms - CLOCKS_DIFFER_MS)
		world_fail(world, "user %u is refused %s, which may be free at once", user->number,
			   world_lock(user->lock));
}

void check_refusal(struct call *call, int result)
{
	const struct user *user = call->user;
	struct world *world = user->host->world;

	call->waiting = call->refused = true; /* as it was when this was decided */
	note_reasons(call);
	call->waiting = call->refused = false;
	if (result == -EDEADLK && call->kind == CALL_RECORD && call->waits) {
		if (!call->circled)
			world_fail(world, "user %u is told that it waits for itself", user->number);
		return;
	}
	if (result == -ENOLCK && holds_besides(call))
		return;
	if (call->waits && (result != -ENOLCK || (world->policy.wait_limit_ms == CONFIG_FOREVER &&
						  world->refused_percent == 0)))
		world_fail(world, "user %u, who waits for %s, is refused it: %d", user->number,
			   world_lock(user->lock), result);
	if (!call->waits && result != -EWOULDBLOCK && result != -ENOLCK)
		world_fail(world, "user %u is refused %s: %d", user->number, world_lock(user->lock),
			   result);
	if (result == -EWOULDBLOCK)
		check_grace(call);
	/* Who keeps a claim may not be reached. */
	if (result == -EWOULDBLOCK && !call->excused &&
	    !(world->policies[user->lock].keep_ms > 0 &&
	      world->now_ms - call->since_ms >= world->policy.try_limit_ms - CLOCKS_DIFFER_MS))
		world_fail(world, "user %u is refused %s, which nobody wants", user->number,
			   world_lock(user->lock));
}

static bool process_lost(const struct call *call)
{
	const struct process *process =
		process_find(call->user->host, call->user->lock, call->process);
	return process != NULL && process->lost;
}

void check_answer(struct call *call, int error, const struct engine_conflict *conflict)
{
	const struct user *user = call->user;
	struct world *world = user->host->world;

	call->waiting = true;
	note_reasons(call);
	call->waiting = false;
	if (error != 0) {
		if (error != -ENOLCK && !(error == -EIO && (user->lost || process_lost(call))))
			world_fail(world, "the test of user %u gives %d", user->number, error);
	} else if (conflict == NULL) {
		if (!call->unopposed)
			world_fail(world, "user %u is told that %s is free", user->number,
				   world_lock(user->lock));
	} else if (!slots_conflict(slots_of(conflict->range.span, conflict->range.mode),
				   call->slots)) {
		world_fail(world, "user %u is told of what does not conflict", user->number);
	} else if (!call->excused) {
		world_fail(world, "user %u is told that %s is not free", user->number,
			   world_lock(user->lock));
	}
}

void check_loss(const struct user *user)
{
	const struct host *host = user->host;
	struct world *world = host->world;
	int64_t well_ms = host->well_ms;

	if (term_is_over(user))
		return;
	/* From then on only the host itself breaks its connections. */
	if (world->calm && world->calm_ms < well_ms)
		well_ms = world->calm_ms;
	if (user->broken_ms == 0 && !user->broken && world->refused_percent == 0 &&
	    world->now_ms - well_ms > TIMEOUT_MS)
		world_fail(world, "user %u lost %s for no reason", user->number,
			   world_lock(user->lock));
	if (host->journal != NULL && world->break_percent == 0 && !host_has_lost_session(host))
		world_fail(world, "user %u lost %s, though its session lives", user->number,
			   world_lock(user->lock));
}

static void check_user(struct world *world, struct user *user)
{
	bool holds = user->holds;

	if (user->owner == NULL)
		return;
	check_term(user);
	if (engine_owner_holds(user->owner) != holds)
		world_fail(world, "user %u and the engine disagree whether it holds %s",
			   user->number, world_lock(user->lock));
	check_proofs(user);
	for (int i = 0; i < CALLS_MAX; i++) {
		struct call *call = &user->calls[i];

		note_reasons(call);
		if (call->waiting && !call->waits && host_runs(user->host) &&
		    world->now_ms - call->since_ms >
			    world->policy.try_limit_ms * (10000 + world->clock_drift) / 10000 +
				    CLOCKS_DIFFER_MS + world->fence_ms)
			world_fail(world, "user %u, who does not wait, waits for %s", user->number,
				   world_lock(user->lock));
	}
}

/* Whether all files through which the process has locked have lost a lock. That was told, and the
 * next loss is not. */
static bool only_has_lost_files(const struct host *host, const struct process *process)
{
	for (int i = 0; i < USERS_MAX; i++)
		if (process->files[i] && !host->users[i].lost)
			return false;
	return true;
}

static void check_process(struct host *host, struct process *process)
{
	for (int i = 0; process->known && i < USERS_MAX; i++) {
		const struct user *user = &host->users[i];
		struct slots held;

		if (!process->files[i])
			continue;
		if (process->lost && !user->lost)
			world_fail(host->world, "process %llu lost %s, but user %u was not told",
				   (unsigned long long)process->id, world_lock(process->lock),
				   user->number);
		held = slots_of_set(engine_ranges(user->owner, process->id));
		if (slots_are_free(held) && !slots_are_free(process->held) &&
		    only_has_lost_files(host, process)) {
			process->lost = true;
			process->held = held;
		}
		if (!process->lost && !slots_equal(held, process->held))
			world_fail(host->world,
				   "host %d: process %llu holds %s of %s, by the engine %s",
				   host->number, (unsigned long long)process->id,
				   slots_show(process->held).text, world_lock(process->lock),
				   slots_show(held).text);
	}
}

/* Who has a lock, or a part of it, and believes so. */
struct holder {
	const struct host *host;
	const struct process *process; /* or: */
	const struct user *user;
	struct slots slots;
};

static bool are_one(const struct holder *a, const struct holder *b)
{
	if (a->host != b->host || (a->process == NULL) == (b->process == NULL))
		return false;
	return a->process != NULL ? a->process->files[b->user - a->host->users]
				  : b->process->files[a->user - b->host->users];
}

/* Adds who has the lock on a host. Returns how many that are. */
static int find_holders(const struct host *host, int lock, struct holder *holders)
{
	int count = 0;

	for (int i = 0; i < PROCESSES_MAX; i++) {
		const struct process *process = &host->processes[i];

		if (process->known && !process->lost && process->lock == lock &&
		    !slots_are_free(process->held) && !process_is_broken(host, process))
			holders[count++] = (struct holder){host, process, NULL, process->held};
	}
	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *user = &host->users[i];

		if (user->owner != NULL && user->lock == lock && user->holds &&
		    user->broken_ms == 0)
			holders[count++] = (struct holder){host, NULL, user, user_slots(user)};
	}
	return count;
}

/* The claim by which a foreign client has the lock, who goes by the names of all that stand in
 * front; NULL: none does. */
static const struct view_claim *find_foreign_holder(const struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_claim *claim = &view->claims[i];
		bool exclusive = claim->parts.mode == CLAIM_EXCLUSIVE;

		if (claim->standing == NULL && (i == 0 || !exclusive))
			return claim;
		if (exclusive)
			return NULL;
	}
	return NULL;
}

/* No more than may hold the lock do, and no two have one number. */
static void check_room(struct world *world, int lock, const struct holder *holders, int count,
		       bool foreign)
{
	bool used[CLAIMS_MAX] = {false};

	if (count + foreign > lock_room(world, lock))
		world_fail(world, "%d have %s, which only %d may", count + foreign,
			   world_lock(lock), lock_room(world, lock));
	for (int i = 0; i < count; i++)
		check_number(holders[i].user, used);
}

/* Nobody can ask on a host that is paused; the first thing that it does when it goes on is to look
 * at the clock, and then it is asked. One whose clock stood still is not, for a while: nobody can
 * tell it how long that was. What it is granted meanwhile is check_grant()'s business. */
static void check_exclusion(struct world *world, int lock)
{
	const struct view_claim *foreign = find_foreign_holder(view_of(world, lock));
	struct holder holders[HOSTS_MAX * (PROCESSES_MAX + USERS_MAX)];
	int count = 0;

	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];
		int more;

		if (!host_runs(host) || machine_is_misled(host))
			continue;
		more = find_holders(host, lock, holders + count);
		if (more > 0 && store_faulty_may_be_over(host->store))
			world_fail(world, "host %d has %s in a session that may be over", i,
				   world_lock(lock));
		count += more;
	}
	if (lock_room(world, lock) > 1) {
		check_room(world, lock, holders, count, foreign != NULL);
		return;
	}
	for (int i = 0; foreign != NULL && i < count; i++)
		if (slots_conflict(holders[i].slots,
				   slots_of(CLAIM_SPAN_WHOLE, foreign->parts.mode)))
			world_fail(world, "host %d and a foreign client both have %s: %s, %s",
				   holders[i].host->number, world_lock(lock),
				   slots_show(holders[i].slots).text, foreign->name);
	for (int i = 0; i < count; i++)
		for (int j = 0; j < i; j++)
			if (slots_conflict(holders[i].slots, holders[j].slots) &&
			    !are_one(&holders[i], &holders[j]))
				world_fail(world, "hosts %d and %d both have %s: %s, %s",
					   holders[j].host->number, holders[i].host->number,
					   world_lock(lock), slots_show(holders[j].slots).text,
					   slots_show(holders[i].slots).text);
}

/* When nobody does anything, claims may give way to each other, but not again and again. */
static void check_placings(struct world *world)
{
	if (world->quiet_ms > 0 && world->standings_count - world->calm_standings > QUIET_CLAIMS)
		world_fail(world, "claims are placed again and again");
}

void check_step(struct world *world)
{
	view_forget(world);
	check_placings(world);
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		if (host->engine == NULL)
			continue;
		engine_check_invariants(host->engine);
		check_lease(host);
		for (int j = 0; j < USERS_MAX; j++)
			check_user(world, &host->users[j]);
		for (int j = 0; j < PROCESSES_MAX; j++)
			check_process(host, &host->processes[j]);
	}
	for (int lock = 0; lock < world->locks_count; lock++)
		check_exclusion(world, lock);
	check_handoffs(world);
}

/* Whether a claim is a reason for one of a call to wait when all is quiet: one that is not held and
 * goes before it, or one whose holder the model does not know. What others hold is
 * check_opposed()'s business. */
static bool is_in_front(const struct call *call, const struct view_claim *own,
			const struct view_claim *claim)
{
	const struct standing *standing = claim->standing;

	if (claim->orphan)
		return slots_conflict(slots_of(claim->parts.span, claim->parts.mode), call->slots);
	if (standing != NULL &&
	    (standing->withdrawing || (standing->granted && !standing->released) ||
	     (standing->life == call->user->host->life && !standing->released &&
	      is_surely_own(standing, call))))
		return false;
	if (!slots_conflict(slots_of(claim->parts.span, claim->parts.mode), call->slots))
		return false;
	if (handoff_is_idle(call->user->host->world, standing))
		return false;
	if (standing == NULL || standing->released)
		return true;
	return claim < own ? !view_has_precedence(own, claim) : view_has_precedence(claim, own);
}

/* New claims of the lock may wait until its queue is empty, which it is not yet. */
static bool are_held_back(const struct world *world, const struct view *view)
{
	return world->late_numbers && view->count > 0;
}

static void check_quiet_call(const struct call *call)
{
	const struct user *user = call->user;
	struct world *world = user->host->world;
	const struct view *view = view_of(world, user->lock);
	const struct view_claim *own = view_find(view, call);

	int in_front = 0, room = lock_room(world, user->lock);

	if (!call->waiting || (room == 1 && check_opposed(call)) ||
	    (own == NULL && are_held_back(world, view)))
		return;
	/* Its holder may have lost it just now, though nobody does anything. */
	if (term_may_end(world, user->lock))
		return;
	for (size_t i = 0; own != NULL && i < view->count; i++)
		in_front += &view->claims[i] != own &&
			    (room > 1 ? &view->claims[i] < own
				      : is_in_front(call, own, &view->claims[i]));
	if (in_front >= room)
		return;
	world_fail(world, "user %u waits for %s, call %u, which is free", user->number,
		   world_lock(user->lock), call->number);
}

void check_quiet(struct world *world)
{
	view_forget(world);
	for (int i = 0; i < world->hosts_count; i++) {
		for (int j = 0; world->hosts[i].engine != NULL && j < USERS_MAX; j++) {
			const struct user *user = &world->hosts[i].users[j];

			if (user->owner == NULL)
				continue;
			check_quiet_proofs(user);
			for (int k = 0; k < CALLS_MAX; k++)
				check_quiet_call(&user->calls[k]);
		}
	}
}

void check_end(struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];
		struct engine_counts counts;

		for (int j = 0; j < USERS_MAX; j++) {
			if (host->users[j].owner != NULL)
				world_fail(world, "user %u was forgotten, waiting for %s",
					   host->users[j].number, world_lock(host->users[j].lock));
		}
		if (host->engine == NULL)
			continue;
		counts = engine_counts(host->engine);
		if (counts.locks + counts.holders + counts.waiters > 0)
			world_fail(world, "host %d has %zu locks, %zu holders, %zu waiters left", i,
				   counts.locks, counts.holders, counts.waiters);
	}
	view_forget(world);
	for (int lock = 0; lock < world->locks_count; lock++) {
		const struct view *view = view_of(world, lock);

		/* Nobody has asked for the lock since. */
		for (size_t i = 0; i < view->count; i++)
			if (!view->claims[i].orphan)
				world_fail(world, "claim %s of %s is left behind",
					   view->claims[i].name, world_lock(lock));
	}
}
