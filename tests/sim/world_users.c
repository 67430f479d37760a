/* SPDX-License-Identifier: Apache-2.0
 *
 * What the users of a simulated host do: open, lock, get interrupted, restart, unlock, close.
 * Single-threaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

bool user_holds(const struct user *user)
{
	return user->holds_open || user->holds_flock;
}

static const char *mode_name(enum claim_mode mode)
{
	return mode == CLAIM_EXCLUSIVE ? "exclusively" : "shared";
}

static void on_decided(void *context, void *cookie, int result)
{
	struct host *host = context;
	struct user *user = cookie;

	world_say(host->world, "host %d: user %u decided: %d", host->number, user->number, result);
	if (host->engine == NULL)
		return; /* a crash: nobody is there any more */
	if (!user->waiting) {
		world_fail(host->world, "user %u, who asks for nothing, is decided: %d",
			   user->number, result);
		return;
	}
	user->waiting = false;
	user->wish = NULL;
	if (result != 0) {
		if (!(result == -EIO && user->lost))
			check_refusal(user, result);
		return;
	}
	if (user_holds(user))
		return; /* it had the lock already, and nothing changes */
	user->holds_open = user->kind == LOCK_KIND_OPEN;
	user->holds_flock = user->kind == LOCK_KIND_FLOCK;
	user->flock_mode = user->mode;
	check_grant(user);
}

static void on_lost(void *context, void *owner_cookie)
{
	struct host *host = context;
	struct user *user = owner_cookie;

	world_say(host->world, "host %d: user %u lost", host->number, user->number);
	if (host->engine == NULL)
		return;
	if (user->lost || !user_holds(user))
		world_fail(host->world, "user %u lost what it had not", user->number);
	check_loss(user);
	user->lost = true;
	user->holds_open = false;
	user->holds_flock = false;
}

const struct engine_events user_events = {
	.on_decided = on_decided,
	.on_lost = on_lost,
};

static void user_open(struct host *host, struct user *user)
{
	struct world *world = host->world;

	memset(user, 0, sizeof(*user));
	user->host = host;
	user->number = ++world->users;
	user->lock = (int)prng_below(&world->prng, world->locks_count);
	user->owner = engine_owner_open(host->engine, world_lock(user->lock), &world->policy, user);
	if (user->owner == NULL)
		abort();
	world_say(world, "host %d: user %u opens %s", host->number, user->number,
		  world_lock(user->lock));
}

void user_close(struct user *user)
{
	world_say(user->host->world, "host %d: user %u closes", user->host->number, user->number);
	user->waiting = false;
	engine_owner_close(user->owner);
	memset(user, 0, sizeof(*user));
}

static void user_lock(struct user *user, enum lock_kind kind, enum claim_mode mode, bool waits)
{
	struct world *world = user->host->world;
	struct claim *wish = NULL;
	char text[16];
	int error;

	world_say(world, "host %d: user %u locks %s %s%s%s", user->host->number, user->number,
		  world_lock(user->lock), mode_name(mode), kind == LOCK_KIND_OPEN ? " by open" : "",
		  waits ? "" : " if free");
	user->interrupted = false;
	user->kind = kind;
	user->mode = mode;
	user->waits = waits;
	user->since_ms = world->now_ms;
	if (user->holds_flock && user->flock_mode != mode && !user->holds_open)
		user->holds_flock = false;
	user->excused = check_conflict(user, mode);
	user->waiting = true;
	snprintf(text, sizeof(text), "%u", user->number);
	error = engine_lock(user->owner, kind, mode, waits, text, user, &wish);
	if (error != 0)
		user->waiting = false;
	if (user->waiting)
		user->wish = wish;
	if (error != (user->lost ? -EIO : 0))
		world_fail(world, "locking gives user %u %d", user->number, error);
}

static void user_flock(struct user *user)
{
	struct prng *prng = &user->host->world->prng;

	user_lock(user, LOCK_KIND_FLOCK, prng_chance(prng, 60) ? CLAIM_EXCLUSIVE : CLAIM_SHARED,
		  prng_chance(prng, 70));
}

static void user_unlock(struct user *user)
{
	struct world *world = user->host->world;
	int error;

	world_say(world, "host %d: user %u unlocks", user->host->number, user->number);
	user->interrupted = false;
	user->holds_flock = false;
	error = engine_unlock(user->owner);
	if (error != (user->lost ? -EIO : 0))
		world_fail(world, "unlocking gives user %u %d", user->number, error);
}

static void user_interrupt(struct user *user)
{
	world_say(user->host->world, "host %d: user %u is interrupted", user->host->number,
		  user->number);
	user->waiting = false;
	user->interrupted = user->waits && user->kind == LOCK_KIND_FLOCK;
	engine_cancel(user->wish);
	user->wish = NULL;
}

static bool anybody_waits(const struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++)
		for (int j = 0; j < USERS_MAX; j++)
			if (world->hosts[i].users[j].waiting)
				return true;
	return false;
}

/* Everything comes to an end: who waits goes on waiting, who holds leaves, and anybody else stays
 * as long as others wait, whom he must not be in the way of. */
static void user_finish(struct user *user)
{
	if (user->owner == NULL || user->waiting)
		return;
	if (user->holds_flock && prng_chance(&user->host->world->prng, 30))
		user_unlock(user);
	else if (user_holds(user) || !anybody_waits(user->host->world))
		user_close(user);
}

void user_act(struct host *host, struct user *user)
{
	struct prng *prng = &host->world->prng;
	int64_t dice = prng_below(prng, 100);

	if (host->world->calm) {
		user_finish(user);
	} else if (user->owner == NULL) {
		user_open(host, user);
		if (dice < 25)
			user_lock(user, LOCK_KIND_OPEN, CLAIM_EXCLUSIVE, dice < 15);
		else
			user_flock(user);
	} else if (user->waiting) {
		if (dice < 20)
			user_interrupt(user);
		else if (dice < 25)
			user_close(user);
	} else if (user->interrupted && dice < 60) {
		user_lock(user, user->kind, user->mode, true);
	} else if (dice < 40) {
		user_flock(user);
	} else if (dice < 75) {
		user_unlock(user);
	} else {
		user_close(user);
	}
}
