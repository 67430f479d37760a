/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of simulated users whether what they have locked is still held, the tokens that they
 * are told, and claims that somebody takes away by hand, which only such questions, heartbeats, and
 * watches bring to light. Single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "world.h"

/* What is so now belongs to what may be answered. */
static void note(struct question *question)
{
	const struct user *user = question->user;
	struct slots held = file_slots(user);

	question->kept = slots_common(question->kept, held);
	if (slots_are_free(held))
		question->held_nothing = true;
	else if (!question->stood)
		question->stood = view_supports(view_of(user->host->world, user->lock), user);
}

void user_note_grant(struct user *user)
{
	user->grants++;
}

void process_note_grant(struct host *host, const struct process *process)
{
	for (int i = 0; i < USERS_MAX; i++)
		if (process->files[i])
			user_note_grant(&host->users[i]);
}

/* Whether two files of one life of a host have a process in common: then a token may be for the
 * same hold. */
static bool may_be_one(const struct told *told, const struct user *user)
{
	for (int i = 0; told->life == user->host->life && i < CALLS_MAX; i++)
		for (int j = 0; j < CALLS_MAX; j++)
			if (told->processes[i] == user->calls[j].process)
				return true;
	return false;
}

/* Whether a part was let go, and got again, for which the last token was good. */
static bool is_held_anew(const struct user *user, struct slots held)
{
	for (int i = 0; i < SLOTS_COUNT; i++)
		if (user->told_kept.slot[i] != SLOT_FREE)
			held.slot[i] = SLOT_FREE;
	return slots_conflict(user->told, held);
}

/* Whether processes may have handed on a flock that was released: to whom, the model does not know,
 * and it counts as a grant. */
static bool may_be_handed_on(const struct user *user)
{
	const struct world *world = user->host->world;

	for (size_t i = 0; world->records_percent > 0 && i < world->standings_count; i++) {
		const struct standing *standing = &world->standings[i];

		if (standing->life == user->host->life && standing->lock == user->lock &&
		    standing->released)
			return true;
	}
	return false;
}

static void check_token(const struct question *question, uint64_t token)
{
	const struct user *user = question->user;
	struct world *world = user->host->world;

	if (token == 0)
		world_fail(world, "user %u is told no token", user->number);
	if (token < user->token)
		world_fail(world, "user %u is told token %" PRIu64 " after %" PRIu64, user->number,
			   token, user->token);
	if (token == user->token && is_held_anew(user, question->kept))
		world_fail(world, "user %u is told token %" PRIu64 " of what it held before",
			   user->number, token);
	if (user->token != 0 && token != user->token && user->grants == user->token_grants &&
	    !may_be_handed_on(user))
		world_fail(world,
			   "user %u is told token %" PRIu64 " after %" PRIu64
			   ", and nothing was granted to it",
			   user->number, token, user->token);
	for (size_t i = 0; i < world->tolds_count && user->broken_ms == 0 && !user->broken; i++) {
		const struct told *told = &world->tolds[i];

		if (told->lock == user->lock && told->user != user->number &&
		    told->number == engine_slot(user->owner) && told->token >= token &&
		    slots_conflict(told->slots, question->kept) && !may_be_one(told, user))
			world_fail(world,
				   "user %u is told token %" PRIu64 " of %s, but user %u had been "
				   "told %" PRIu64,
				   user->number, token, world_lock(user->lock), told->user,
				   told->token);
	}
}

static void note_token(const struct question *question, uint64_t token)
{
	struct user *user = question->user;
	struct world *world = user->host->world;
	struct told *told;

	if (world->tolds_count == world->tolds_capacity) {
		world->tolds_capacity = world->tolds_capacity * 2 + 64;
		world->tolds = reallocarray(world->tolds, world->tolds_capacity, sizeof(*told));
		if (world->tolds == NULL)
			abort();
	}
	told = &world->tolds[world->tolds_count++];
	*told = (struct told){
		.token = token,
		.lock = user->lock,
		.life = user->host->life,
		.user = user->number,
		.slots = question->kept,
		.number = engine_slot(user->owner),
	};
	for (int i = 0; i < CALLS_MAX; i++)
		told->processes[i] = user->calls[i].process;
	/* What was granted while it was asked, it may be too old for. */
	user->token = token;
	user->token_grants = question->grants;
	user->told = user->told_kept = question->kept;
}

static void check_proved(const struct question *question, int error, uint64_t token)
{
	const struct user *user = question->user;
	struct world *world = user->host->world;
	bool good = false;

	if (error == 0)
		good = question->stood || (question->held_nothing && !question->token);
	else if (error == -EIO)
		good = user->lost;
	else if (error == -ENODATA)
		good = question->held_nothing && question->token;
	if (!good)
		world_fail(world, "user %u, who asks whether it holds %s, is told %d", user->number,
			   world_lock(user->lock), error);
	if (error == 0 && question->token)
		check_token(question, token);
}

void user_on_proved(void *context, void *cookie, int error, uint64_t token)
{
	struct host *host = context;
	struct question *question = cookie;

	if (host->engine == NULL)
		return;
	host_note(host);
	if (!question->asked) {
		world_fail(host->world, "somebody who does not ask is told %d of what it holds",
			   error);
		return;
	}
	world_say(host->world, "host %d: user %u question %u is answered: %d, token %" PRIu64,
		  host->number, question->user->number, question->number, error, token);
	note(question);
	question->asked = false;
	question->proof = NULL;
	check_proved(question, error, token);
	if (error == 0 && question->token)
		note_token(question, token);
}

static void ask(struct user *user, struct question *question)
{
	struct world *world = user->host->world;
	struct proof *proof = NULL;
	int error;

	*question = (struct question){
		.user = user,
		.number = ++world->questions,
		.token = prng_chance(&world->prng, 60),
		.asked = true,
		.kept = file_slots(user),
		.grants = user->grants,
		.since_ms = world->now_ms,
	};
	world_say(world, "host %d: user %u asks whether it holds %s%s, question %u",
		  user->host->number, user->number, world_lock(user->lock),
		  question->token ? ", and for its token" : "", question->number);
	note(question);
	error = engine_prove(user->owner, question->token, question, &proof);
	if (error != 0)
		question->asked = false;
	else if (question->asked)
		question->proof = proof;
	if (error != (user->lost ? -EIO : 0))
		world_fail(world, "asking whether it holds gives user %u %d", user->number, error);
}

void user_prove(struct user *user)
{
	struct world *world = user->host->world;
	struct question *question = &user->questions[prng_below(&world->prng, QUESTIONS_MAX)];

	if (!question->asked) {
		ask(user, question);
	} else if (prng_chance(&world->prng, 30)) {
		world_say(world, "host %d: user %u question %u is interrupted", user->host->number,
			  user->number, question->number);
		question->asked = false;
		engine_cancel_proof(question->proof);
		question->proof = NULL;
	}
}

void questions_again(struct user *user)
{
	for (int i = 0; i < QUESTIONS_MAX; i++) {
		struct question *question = &user->questions[i];
		struct proof *proof = NULL;

		if (!question->asked)
			continue;
		question->proof = NULL;
		if (engine_prove(user->owner, question->token, question, &proof) < 0)
			question->asked = false;
		else if (question->asked)
			question->proof = proof;
	}
}

void questions_forget(struct user *user)
{
	for (int i = 0; i < QUESTIONS_MAX; i++)
		user->questions[i].asked = false;
}

bool user_is_asking(const struct user *user)
{
	for (int i = 0; i < QUESTIONS_MAX; i++)
		if (user->questions[i].asked)
			return true;
	return false;
}

struct user *standing_user(struct world *world, const struct standing *standing)
{
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		for (int j = 0;
		     host->engine != NULL && host->life == standing->life && j < USERS_MAX; j++)
			if (host->users[j].owner != NULL && host->users[j].number == standing->user)
				return &host->users[j];
	}
	return NULL;
}

/* When a claim was taken away: 0 would be never. */
static int64_t moment(const struct world *world)
{
	return world->now_ms > 0 ? world->now_ms : 1;
}

/* Somebody asks the holder of a claim for it, who may take his time: that it goes on to nobody else
 * is up to his host. */
static void revoke(struct world *world, int lock, const char *name)
{
	world_say(world, "somebody asks for %s of %s", name, world_lock(lock));
	world->foreign->ops->amend(world->foreign, NULL, world_lock(lock), name,
				   "format=1\nrevoke=somebody\n", STORE_ANY_VERSION);
	world->foreign->ops->dispatch(world->foreign);
}

void world_break_claim(struct world *world, int lock, const struct view_claim *claim)
{
	const struct view *view = view_of(world, lock);
	struct user *user = claim->standing != NULL ? standing_user(world, claim->standing) : NULL;

	if (claim->standing != NULL)
		claim->standing->broken = true;
	/* Who has let go without a connection has a claim that still stands. */
	if (user != NULL && claim->standing->granted && !claim->standing->released &&
	    !slots_are_free(file_slots(user)))
		user->broken_ms = moment(world);
	if (user != NULL && world->apart)
		user->broken = true;
	/* Numbers of an empty queue start over: not below those of who does not know yet. */
	if (view->count > 0)
		local_service_set_first_order(world->service,
					      view->claims[view->count - 1].parts.order + 1000);
	world->foreign->ops->withdraw(world->foreign, nobody_is_told(), NULL, world_lock(lock),
				      claim->name, claim->parts.order, false);
	world->foreign->ops->dispatch(world->foreign);
	view_forget(world);
}

void world_break(struct world *world)
{
	int lock = (int)prng_below(&world->prng, world->locks_count);
	const struct view *view = view_of(world, lock);
	const struct view_claim *claim;
	struct user *user;

	if (view->count == 0)
		return;
	claim = &view->claims[prng_below(&world->prng, (int64_t)view->count)];
	if (claim->standing == NULL)
		return;
	if (lock_has_handoff(world, lock) && prng_chance(&world->prng, 40)) {
		revoke(world, lock, claim->name);
		return;
	}
	user = standing_user(world, claim->standing);
	if (world->apart && (user == NULL || user->lost || !claim->standing->granted ||
			     claim->standing->withdrawing))
		return;
	world_say(world, "somebody takes %s of %s away", claim->name, world_lock(lock));
	world_break_claim(world, lock, claim);
}

bool user_note_broken(const struct call *call)
{
	struct user *user = call->user;
	struct world *world = user->host->world;

	for (size_t i = 0; i < world->standings_count; i++) {
		struct standing *standing = &world->standings[i];

		if (!standing->broken || standing->withdrawing ||
		    standing->life != user->host->life || standing->lock != user->lock)
			continue;
		if (lock_has_handoff(world, user->lock) && !is_record(call->kind)
			    ? !is_record(standing->kind) && handoff_may_be_of(standing, call)
			    : !standing->granted && standing->user == user->number) {
			handoff_note_user(standing, call);
			user->broken_ms = moment(world);
			return true;
		}
	}
	return false;
}

bool process_is_broken(const struct host *host, const struct process *process)
{
	for (int i = 0; i < USERS_MAX; i++)
		if (process->files[i] && host->users[i].broken)
			return true;
	return false;
}

void check_proofs(struct user *user)
{
	const struct host *host = user->host;
	struct world *world = host->world;

	for (int i = 0; i < QUESTIONS_MAX; i++)
		if (user->questions[i].asked)
			note(&user->questions[i]);
	if (user->token != 0)
		user->told_kept = slots_common(user->told_kept, file_slots(user));
	if (user->broken_ms != 0 && world->refused_percent == 0 &&
	    world->now_ms - user->broken_ms > TIMEOUT_MS &&
	    world->now_ms - host->well_ms > TIMEOUT_MS)
		world_fail(world, "user %u does not hear that its claim was taken away",
			   user->number);
}

void check_quiet_proofs(const struct user *user)
{
	for (int i = 0; i < QUESTIONS_MAX; i++)
		if (user->questions[i].asked)
			world_fail(user->host->world, "user %u, question %u, is not answered",
				   user->number, user->questions[i].number);
}
