/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in the service's queues, read from the service itself, through a session of its own
 * that places nothing; whose a claim is was written down when it came to stand. Single-threaded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim/data.h"
#include "world.h"

/* The observer's ears. The tag of a watch is the number of the claim, from 1. */

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
}

static void on_done(void *context, void *tag, int error)
{
}

struct standing *view_standing_of(const struct world *world, const char *name)
{
	for (size_t i = world->standings_count; i-- > 0;)
		if (strcmp(world->standings[i].name, name) == 0)
			return &world->standings[i];
	return NULL;
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct view *view = ((struct world *)context)->listed;

	if (count > CLAIMS_MAX)
		abort();
	view->count = count;
	for (size_t i = 0; i < count; i++) {
		snprintf(view->claims[i].name, NAME_BYTES, "%s", entries[i].name);
		view->claims[i].parts = entries[i].claim;
		view->claims[i].standing = entries[i].claim.id.session == CLAIM_HOLD_SESSION
						   ? NULL
						   : view_standing_of(context, entries[i].name);
		view->claims[i].orphan = entries[i].orphan;
	}
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	struct world *world = context;
	struct standing *standing = &world->standings[(uintptr_t)tag - 1];
	struct claim_data data;

	if (claim_data_parse(text, &data) < 0)
		abort();
	if (standing->says_waits && !data.waits)
		world->ready = (struct ready){.life = standing->life, .lock = standing->lock};
	standing->says_waits = data.waits;
	standing->requeue = data.requeue;
	if (data.has_ranges)
		standing->covered = slots_of_set(&data.ranges);
	if (data.has_holds)
		standing->holds = slots_of_set(&data.holds);
	standing->has_holds |= data.has_holds;
	claim_data_finish(&data);
}

static void on_watched(void *context, void *tag, int error)
{
	struct world *world = context;
	struct standing *standing = &world->standings[(uintptr_t)tag - 1];

	standing->gone = true;
	if (standing->granted && !standing->withdrawing && !standing->turned)
		standing->lost_ms = world->now_ms;
}

static const struct store_events observer_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_read = on_read,
	.on_watched = on_watched,
	.on_amended = on_done,
	.on_withdrawn = on_done,
};

void view_init(struct world *world)
{
	if (store_local_open(world->service, &observer_events, world, &world->observer) < 0)
		abort();
}

void view_finish(struct world *world)
{
	world->observer->ops->close(world->observer, nobody_is_told());
	free(world->standings);
}

void view_forget(struct world *world)
{
	memset(world->views_good, 0, sizeof(world->views_good));
}

struct view *view_of(struct world *world, int lock)
{
	const struct store_ops *ops = world->observer->ops;

	for (; world->observed_count < world->standings_count; world->observed_count++) {
		const struct standing *standing = &world->standings[world->observed_count];

		ops->watch(world->observer, (void *)(uintptr_t)(world->observed_count + 1),
			   world_lock(standing->lock), standing->name);
	}
	if (!world->views_good[lock]) {
		world->listed = &world->views[lock];
		ops->list(world->observer, NULL, world_lock(lock), true, false);
		ops->dispatch(world->observer);
		world->views_good[lock] = true;
	}
	return &world->views[lock];
}

static int lock_number(const char *path)
{
	for (int lock = 0; lock < LOCKS_MAX; lock++)
		if (strcmp(world_lock(lock), path) == 0)
			return lock;
	abort();
}

void view_parse(const char *text, struct standing *standing)
{
	unsigned long long process;
	unsigned kind, mode;
	int64_t start, end;

	if (sscanf(text,
		   "format=1\ncall=%u\nuser=%u\nprocess=%llu\nasked=%u %u %" SCNd64 "-%" SCNd64,
		   &standing->call, &standing->user, &process, &kind, &mode, &start, &end) != 7)
		abort();
	standing->process = process;
	standing->kind = kind;
	standing->asked = slots_of((struct claim_span){start, end}, mode);
}

void view_standing(void *context, bool over, const char *path, const char *name, const char *text)
{
	struct host *host = context;
	struct world *world = host->world;
	struct standing *standing;
	struct claim_name parts;

	if (world->standings_count == world->standings_capacity) {
		world->standings_capacity = world->standings_capacity * 2 + 64;
		world->standings = reallocarray(world->standings, world->standings_capacity,
						sizeof(*world->standings));
		if (world->standings == NULL)
			abort();
	}
	standing = &world->standings[world->standings_count++];
	memset(standing, 0, sizeof(*standing));
	if (strlen(name) >= NAME_BYTES || !claim_name_parse(name, &parts))
		abort();
	view_parse(text, standing);
	standing->uid = user_uid(standing->user);
	snprintf(standing->name, sizeof(standing->name), "%s", name);
	standing->lock = lock_number(path);
	standing->life = over ? 0 : host->life;
	standing->session = parts.id.session;
	standing->former = standing->life;
	for (size_t i = 0; over && i < world->standings_count; i++)
		if (world->standings[i].session == standing->session &&
		    world->standings[i].former > 0)
			standing->former = world->standings[i].former;
	standing->since_ms = world->now_ms;
	standing->covered = slots_of(parts.span, parts.mode);
	world_say(world, "host %d: claim %s of user %u stands", host->number, name, standing->user);
	view_forget(world);
}

void view_withdrawing(void *context, const char *path, const char *name)
{
	struct host *host = context;
	struct standing *standing = view_standing_of(host->world, name);

	world_say(host->world, "host %d: withdraws %s", host->number, name);
	if (standing == NULL)
		world_fail(host->world, "host %d withdraws %s, which never stood", host->number,
			   name);
	else if (standing->life != host->life && !standing->gone)
		world_fail(host->world, "host %d withdraws %s, which is not its own", host->number,
			   name);
	/* Else it is a marker, which outlives the claim: its host may not know that this has gone.
	 */
	if (standing != NULL && standing->life == host->life && !standing->gone &&
	    standing->granted && !standing->released && !is_record(standing->kind))
		world_fail(host->world, "host %d withdraws %s before user %u is told", host->number,
			   name, standing->user);
	if (standing != NULL && standing->life == host->life) {
		standing->withdrawing = true;
		standing->withdrawn = host->world->step;
	}
	if (standing != NULL)
		hold_note_withdrawn(host->world, standing);
	/* It was taken away by hand, and its host has not heard of that. */
	if (standing != NULL && standing->life == host->life)
		standing->lost_ms = 0;
}

bool call_is_under_way(const struct host *host, unsigned number)
{
	for (int i = 0; i < USERS_MAX; i++)
		for (int j = 0; j < CALLS_MAX; j++)
			if (host->users[i].calls[j].waiting &&
			    host->users[i].calls[j].number == number)
				return true;
	return false;
}

/* Whether the claim may be that of the call: made for it, or by an earlier call of which it is the
 * restart. */
static bool may_be_of(struct standing *standing, const struct call *call)
{
	const struct host *host = call->user->host;

	if (standing == NULL || standing->gone || standing->life != host->life ||
	    (standing->withdrawing && !call->refused) ||
	    is_record(standing->kind) != is_record(call->kind))
		return false;
	if (!is_record(call->kind) && lock_has_handoff(host->world, standing->lock))
		return handoff_may_be_of(standing, call);
	if (standing->granted || standing->kind != call->kind ||
	    !slots_equal(standing->asked, call->slots))
		return false;
	if (standing->call == call->number)
		return true;
	return !call_is_under_way(host, standing->call) &&
	       (call->kind == CALL_RECORD ? standing->process == call->process
					  : standing->user == call->user->number);
}

const struct view_claim *view_find_next(const struct view *view, const struct call *call,
					const struct view_claim *after)
{
	const struct view_claim *claim = after == NULL ? view->claims : after + 1;

	for (; claim < view->claims + view->count; claim++)
		if (may_be_of(claim->standing, call))
			return claim;
	return NULL;
}

const struct view_claim *view_find(const struct view *view, const struct call *call)
{
	const struct view_claim *claim = NULL, *found = NULL;

	while ((claim = view_find_next(view, call, claim)) != NULL) {
		found = claim;
		if (claim->standing->call == call->number ||
		    (call->waiting && handoff_is_followed(claim->standing, call)))
			break;
	}
	return found;
}

bool view_has_precedence(const struct view_claim *claim, const struct view_claim *over)
{
	const struct standing *standing = claim->standing;

	if (!claim->parts.anchored || over->parts.id.session == 0 ||
	    claim_name_compare(claim->parts.anchor, "", over->parts.order, "") >= 0 ||
	    claim_name_compare(over->parts.order, over->name, claim->parts.order, claim->name) >= 0)
		return false;
	if (standing == NULL || !standing->has_holds || over->standing == NULL)
		return claim_span_overlaps(claim->parts.anchor_span, over->parts.span);
	if (over->parts.sparse)
		return slots_conflict(standing->holds, over->standing->covered);
	return slots_conflict(standing->holds, slots_of(over->parts.span, CLAIM_EXCLUSIVE));
}

static const struct user *user_of(const struct host *host, unsigned number)
{
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL && host->users[i].number == number)
			return &host->users[i];
	return NULL;
}

void view_release(const struct user *user)
{
	struct world *world = user->host->world;

	for (size_t i = 0; i < world->standings_count; i++) {
		struct standing *standing = &world->standings[i];

		if (standing->user == user->number && standing->granted &&
		    !is_record(standing->kind))
			standing->released = true;
	}
}

bool standing_is_own(const struct standing *standing, const struct call *call)
{
	const struct host *host = call->user->host;
	const struct user *user = user_of(host, handoff_user(host, standing));

	if (is_record(standing->kind) && is_record(call->kind))
		return standing->process == call->process;
	if (is_record(standing->kind))
		return process_uses(host, standing->process, call->user);
	if (standing->released)
		return false;
	return user == call->user ||
	       (is_record(call->kind) && user != NULL && process_uses(host, call->process, user));
}

/* What claims at the service cover for the process. */
static struct slots supported(const struct view *view, const struct host *host,
			      const struct process *process)
{
	struct slots slots = {{0}};

	for (size_t i = 0; i < view->count; i++) {
		const struct standing *standing = view->claims[i].standing;
		const struct user *user;

		if (standing == NULL || standing->gone || standing->life != host->life ||
		    !standing->granted || standing->withdrawing)
			continue;
		user = user_of(host, standing->user);
		if (is_record(standing->kind)
			    ? standing->process == process->id
			    : standing->released ||
				      (user != NULL && process->files[user - host->users]))
			slots = slots_union(slots, standing->covered);
	}
	return slots;
}

/* Whether the claim stands that the open file itself holds by. */
static bool is_supported(const struct view *view, const struct user *user)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct standing *standing = view->claims[i].standing;

		if (standing != NULL && !standing->gone && standing->life == user->host->life &&
		    standing->user == user->number && !is_record(standing->kind) &&
		    standing->granted && !standing->released)
			return true;
	}
	return false;
}

bool view_supports(const struct view *view, const struct user *user)
{
	const struct host *host = user->host;

	if (user->holds && !is_supported(view, user))
		return false;
	for (int i = 0; i < PROCESSES_MAX; i++) {
		const struct process *process = &host->processes[i];

		if (process->known && process->files[user - host->users] &&
		    !slots_contain(supported(view, host, process), process->held))
			return false;
	}
	return true;
}
