/* SPDX-License-Identifier: Apache-2.0
 *
 * What must be true in the simulated world. The truth is read from the service itself, through a
 * session of its own that places nothing; whose a claim is was written down when it came to stand.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { CLOCKS_DIFFER_MS = 4 }; /* over the limit of a call that does not wait */

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
}

/* The observer's ears. */

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
}

static void on_placed(void *context, void *tag, int error, const char *name, int32_t sequence,
		      const struct store_entry *entries, size_t count)
{
}

static void on_done(void *context, void *tag, int error)
{
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct lock_view *view = &((struct world *)context)->view;

	if (count > sizeof(view->claims) / sizeof(view->claims[0]))
		abort();
	view->count = count;
	for (size_t i = 0; i < count; i++) {
		snprintf(view->claims[i].name, NAME_BYTES, "%s", entries[i].name);
		view->claims[i].mode = entries[i].mode;
	}
}

static const struct store_events observer_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_watched = on_done,
	.on_withdrawn = on_done,
};

void check_init(struct world *world)
{
	if (store_local_open(world->service, &observer_events, world, &world->observer) < 0)
		abort();
}

void check_finish(struct world *world)
{
	world->observer->ops->close(world->observer);
	free(world->records);
}

/* The queue of a lock as it is now. */
static const struct lock_view *look_at(struct world *world, int lock)
{
	const struct store_ops *ops = world->observer->ops;

	ops->list(world->observer, NULL, world_lock(lock), true);
	ops->dispatch(world->observer);
	return &world->view;
}

void check_standing(void *context, bool over, const char *path, const char *name, const char *text)
{
	struct host *host = context;
	struct world *world = host->world;
	struct record *record;

	if (world->records_count == world->records_capacity) {
		world->records_capacity = world->records_capacity * 2 + 64;
		world->records = reallocarray(world->records, world->records_capacity,
					      sizeof(*world->records));
		if (world->records == NULL)
			abort();
	}
	record = &world->records[world->records_count++];
	memset(record, 0, sizeof(*record));
	snprintf(record->name, sizeof(record->name), "%s", name);
	record->user = (unsigned)strtoul(text, NULL, 10);
	record->life = over ? 0 : host->life;
	world_say(world, "host %d: claim %s of user %u stands", host->number, name, record->user);
}

static struct record *find_record(const struct world *world, const char *name)
{
	for (size_t i = world->records_count; i-- > 0;)
		if (strcmp(world->records[i].name, name) == 0)
			return &world->records[i];
	return NULL;
}

void check_withdrawing(void *context, const char *path, const char *name)
{
	struct host *host = context;
	struct record *record = find_record(host->world, name);

	world_say(host->world, "host %d: withdraws %s", host->number, name);
	if (record == NULL)
		world_fail(host->world, "host %d withdraws %s, which never stood", host->number,
			   name);
	else if (record->life != host->life)
		world_fail(host->world, "host %d withdraws %s, which is not its own", host->number,
			   name);
	else
		record->withdrawing = true;
}

static bool modes_conflict(enum claim_mode a, enum claim_mode b)
{
	return a == CLAIM_EXCLUSIVE || b == CLAIM_EXCLUSIVE;
}

/* Whether a claim in the queue is one that this user must respect. Its own never is, and one of its
 * own host's is not from when its end was asked for. */
static bool must_respect(const struct user *user, const struct record *record)
{
	if (record == NULL || record->life != user->host->life)
		return true; /* a foreign client's, or of a session that was given up */
	return record->user != user->number && !record->withdrawing;
}

/* A grant is right if the claim stands, and no claim that the user must respect stands in front of
 * it. This is mutual exclusion and the order of the queue in one. */
void check_grant(struct user *user)
{
	struct world *world = user->host->world;
	const struct lock_view *view;
	size_t own;

	if (!store_faulty_told_connected(user->host->store))
		world_fail(world, "user %u got %s without the store", user->number,
			   world_lock(user->lock));
	if (store_faulty_may_be_over(user->host->store))
		world_fail(world, "user %u got %s in a session that may be over", user->number,
			   world_lock(user->lock));
	view = look_at(world, user->lock);
	for (own = view->count; own-- > 0;) {
		const struct record *record = find_record(world, view->claims[own].name);

		if (record != NULL && record->user == user->number &&
		    record->life == user->host->life && !record->withdrawing)
			break;
	}
	if (own == (size_t)-1) {
		world_fail(world, "user %u got %s without a claim", user->number,
			   world_lock(user->lock));
		return;
	}
	for (size_t i = 0; i < own; i++) {
		if (modes_conflict(view->claims[i].mode, view->claims[own].mode) &&
		    must_respect(user, find_record(world, view->claims[i].name)))
			world_fail(world, "user %u got %s while %s stands in front of %s",
				   user->number, world_lock(user->lock), view->claims[i].name,
				   view->claims[own].name);
	}
}

bool check_conflict(const struct user *user, enum claim_mode mode)
{
	struct world *world = user->host->world;
	const struct lock_view *view = look_at(world, user->lock);

	for (size_t i = 0; i < view->count; i++) {
		if (modes_conflict(view->claims[i].mode, mode) &&
		    must_respect(user, find_record(world, view->claims[i].name)))
			return true;
	}
	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *other = &user->host->users[i];

		if (other == user || other->owner == NULL || other->lock != user->lock)
			continue;
		if (user_holds(other) ||
		    ((other->waiting || other->interrupted) && modes_conflict(other->mode, mode)))
			return true;
	}
	return false;
}

void check_refusal(struct user *user, int result)
{
	struct world *world = user->host->world;

	if (user->waits && (result != -ENOLCK || (world->policy.wait_limit_ms == CONFIG_FOREVER &&
						  world->refused_percent == 0)))
		world_fail(world, "user %u, who waits for %s, is refused it: %d", user->number,
			   world_lock(user->lock), result);
	if (result == -EWOULDBLOCK && !user->excused && !check_conflict(user, user->mode))
		world_fail(world, "user %u is refused %s, which nobody wants", user->number,
			   world_lock(user->lock));
}

void check_loss(const struct user *user)
{
	const struct host *host = user->host;
	struct world *world = host->world;

	if (world->refused_percent == 0 && world->now_ms - host->well_ms > TIMEOUT_MS)
		world_fail(world, "user %u lost %s for no reason", user->number,
			   world_lock(user->lock));
}

static void check_user(struct world *world, struct user *user)
{
	bool holds = user_holds(user);

	if (user->owner == NULL)
		return;
	if (engine_owner_holds(user->owner) != holds)
		world_fail(world, "user %u and the engine disagree whether it holds %s",
			   user->number, world_lock(user->lock));
	if (!user->waiting || user->waits)
		return;
	if (!user->excused)
		user->excused = check_conflict(user, user->mode);
	if (host_runs(user->host) &&
	    world->now_ms - user->since_ms > world->policy.try_limit_ms + CLOCKS_DIFFER_MS)
		world_fail(world, "user %u, who does not wait, waits for %s", user->number,
			   world_lock(user->lock));
}

/* Who has the lock and believes so. Nobody can ask on a host that is paused; the first thing that
 * it does when it goes on is to look at the clock, and then it is asked. */
static void check_exclusion(struct world *world, int lock)
{
	const struct user *exclusive = NULL, *shared = NULL;

	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];

		for (int j = 0; j < USERS_MAX && host_runs(host); j++) {
			const struct user *user = &host->users[j];

			if (user->owner == NULL || user->lock != lock || !user_holds(user))
				continue;
			if (store_faulty_may_be_over(host->store))
				world_fail(world, "user %u has %s in a session that may be over",
					   user->number, world_lock(lock));
			if (exclusive != NULL)
				shared = user;
			if (user->holds_open || user->flock_mode == CLAIM_EXCLUSIVE)
				exclusive = user;
			else
				shared = user;
			if (exclusive != NULL && shared != NULL && exclusive != shared)
				world_fail(world, "users %u and %u both have %s", exclusive->number,
					   shared->number, world_lock(lock));
		}
	}
}

void check_step(struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		if (host->engine == NULL)
			continue;
		engine_check_invariants(host->engine);
		for (int j = 0; j < USERS_MAX; j++)
			check_user(world, &host->users[j]);
	}
	for (int lock = 0; lock < world->locks_count; lock++)
		check_exclusion(world, lock);
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
	for (int lock = 0; lock < world->locks_count; lock++) {
		if (!local_service_is_empty(world->service, world_lock(lock)))
			world_fail(world, "claim %s of %s is left behind",
				   look_at(world, lock)->claims[0].name, world_lock(lock));
	}
}
