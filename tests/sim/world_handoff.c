/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks whose policy lets a claim of flock or open pass from call to call on one host, and be kept
 * while nobody uses it: for which call a claim stands now, and what other hosts may expect.
 *
 * Which claim it is that a call waits or holds by is known to its engine alone, and asked there;
 * whether it may is judged by what stands in the service's queue. Single-threaded.
 */
#include <string.h>

#include "world.h"

/* The time after which an engine knows of what has come to stand behind its claim, if all is well:
 * the event, and two lists one after the other. */
static int64_t hearing_ms(const struct world *world)
{
	return 5 * world->delay_ms + 10;
}

bool lock_has_handoff(const struct world *world, int lock)
{
	const struct lock_policy *policy = &world->policies[lock];

	return (policy->handoff > 0 || policy->keep_ms > 0) && lock_room(world, lock) == 1;
}

static bool has_handoff(const struct world *world, const struct standing *standing)
{
	return !is_record(standing->kind) && lock_has_handoff(world, standing->lock);
}

/* The host of that life; NULL: it is not there any more, or cannot be asked. */
static const struct host *host_of(const struct world *world, const struct standing *standing)
{
	for (int i = 0; standing->life > 0 && i < world->hosts_count; i++)
		if (world->hosts[i].life == standing->life)
			return host_runs(&world->hosts[i]) ? &world->hosts[i] : NULL;
	return NULL;
}

struct kept {
	const char *claim;
	bool found;
};

static void look_for_kept(void *context, const char *claim, enum engine_use use, const char *text)
{
	struct kept *kept = context;

	if (strcmp(claim, kept->claim) == 0)
		kept->found = use == ENGINE_KEPT; /* and nobody follows */
}

/* Whether nobody uses the claim, nor waits for it on its host. */
static bool is_kept(const struct host *host, const struct standing *standing)
{
	struct kept kept = {standing->name, false};

	engine_each_user(host->engine, world_lock(standing->lock), look_for_kept, &kept);
	return kept.found;
}

/* Reads from the engine who holds or last held by the claim, or who has asked for it. */
static void refresh(const struct host *host, struct standing *standing)
{
	struct engine_caller caller;

	if (engine_claim_caller(host->engine, world_lock(standing->lock), standing->name, &caller))
		view_parse(caller.details, standing);
}

/* Whether a call that was made before is this one, restarted, or is this one itself. */
static bool may_be(const struct host *host, const struct standing *said, const struct call *call)
{
	return said->call == call->number ||
	       (said->user == call->user->number && !call_is_under_way(host, said->call));
}

struct search {
	const char *claim;
	const struct call *call;
	bool found;
	/* The first of those who wait, and asked before that number for what conflicts. */
	unsigned before, first;
};

static void look_for_call(void *context, const char *claim, enum engine_use use, const char *text)
{
	struct search *search = context;
	struct standing said;

	if (text == NULL || strcmp(claim, search->claim) != 0)
		return;
	view_parse(text, &said);
	search->found |= may_be(search->call->user->host, &said, search->call);
	if (said.call < search->before && search->first == 0 &&
	    slots_conflict(said.asked, search->call->slots))
		search->first = said.call;
}

static struct search search(const struct call *call, const struct standing *standing,
			    unsigned before)
{
	struct search search = {.claim = standing->name, .call = call, .before = before};

	engine_each_user(call->user->host->engine, world_lock(standing->lock), look_for_call,
			 &search);
	return search;
}

bool handoff_is_followed(const struct standing *standing, const struct call *call)
{
	return search(call, standing, 0).found;
}

bool handoff_may_be_of(struct standing *standing, const struct call *call)
{
	const struct host *host = call->user->host;

	if ((standing->granted && !standing->released) ||
	    !slots_equal(standing->asked, call->slots))
		return false;
	if (call->waiting && handoff_is_followed(standing, call))
		return true;
	refresh(host, standing);
	return !is_kept(host, standing) && may_be(host, standing, call);
}

bool handoff_waits(const struct world *world, const struct standing *standing)
{
	return has_handoff(world, standing) && !standing->granted;
}

struct first {
	const char *claim;
	unsigned user;
};

static void note_first(void *context, const char *claim, enum engine_use use, const char *text)
{
	struct first *first = context;
	struct standing said;

	if (text == NULL || first->user != 0 || strcmp(claim, first->claim) != 0)
		return;
	view_parse(text, &said);
	first->user = said.user;
}

unsigned handoff_user(const struct host *host, const struct standing *standing)
{
	struct first first = {.claim = standing->name};

	if (handoff_waits(host->world, standing))
		engine_each_user(host->engine, world_lock(standing->lock), note_first, &first);
	return first.user != 0 ? first.user : standing->user;
}

/* Whether nothing has been wrong with the host for as long as it takes to hear. */
static bool is_well(const struct host *host)
{
	return host_runs(host) && host->world->now_ms - host->well_ms > hearing_ms(host->world);
}

/* Whether the host has surely heard, too, of what has been so for that long. */
static bool has_heard(const struct host *host)
{
	const struct world *world = host->world;

	return world->refused_percent == 0 && world->stale_percent == 0 &&
	       world->nudge_percent == 0 && is_well(host);
}

static bool is_idle(const struct world *world, const struct standing *standing)
{
	const struct host *host;

	if (!has_handoff(world, standing) || standing->withdrawing)
		return false;
	host = host_of(world, standing);
	return host != NULL && is_kept(host, standing);
}

bool handoff_is_idle(const struct world *world, const struct standing *standing)
{
	return standing != NULL && is_idle(world, standing) && standing->idle_ms != 0 &&
	       world->now_ms - standing->idle_ms > hearing_ms(world) &&
	       is_well(host_of(world, standing));
}

/* Whether a claim of another host waits behind this one, for so long that its host knows. */
static bool is_wanted(struct world *world, const struct view_claim *claim)
{
	const struct view *view = view_of(world, claim->standing->lock);
	const struct view_claim *end = view->claims + view->count;

	for (const struct view_claim *behind = claim + 1; behind < end; behind++) {
		const struct standing *standing = behind->standing;

		if (standing != NULL && standing->life != claim->standing->life &&
		    slots_conflict(standing->covered, claim->standing->asked) &&
		    world->now_ms - standing->since_ms > hearing_ms(world))
			return true;
	}
	return false;
}

/* The claim passes on in the order of asking. */
static void check_order(const struct call *call, const struct view_claim *own)
{
	const struct search found = search(call, own->standing, own->standing->call);

	if (found.first != 0)
		world_fail(call->user->host->world,
			   "user %u got %s, call %u, by %s, but call %u asked before",
			   call->user->number, world_lock(call->user->lock), own->standing->call,
			   own->name, found.first);
}

/* Other hosts get their turn. */
static void check_handoff(const struct call *call, const struct view_claim *own)
{
	struct host *host = call->user->host;
	struct world *world = host->world;
	struct standing *standing = own->standing;
	int64_t since_ms = world->now_ms - hearing_ms(world);

	if (standing->first_ms == 0) {
		standing->first_ms = world->now_ms;
		return;
	}
	if (has_heard(host) && standing->first_ms < since_ms && call->since_ms < since_ms &&
	    is_wanted(world, own))
		standing->passes++;
	if (standing->passes > world->policies[standing->lock].handoff)
		world_fail(world, "%s of %s goes on to user %u, time %d, while another host waits",
			   own->name, world_lock(standing->lock), call->user->number,
			   standing->passes);
}

void handoff_note_grant(struct call *call, const struct view_claim *own)
{
	struct standing *standing = own->standing;

	if (!has_handoff(call->user->host->world, standing))
		return;
	if (user_uid(call->user->number) != standing->uid)
		world_fail(call->user->host->world, "user %u has %s by a claim of another one",
			   call->user->number, world_lock(call->user->lock));
	check_order(call, own);
	check_handoff(call, own);
	handoff_note_user(standing, call);
}

void handoff_note_user(struct standing *standing, const struct call *call)
{
	standing->granted = true;
	standing->released = false;
	standing->user = call->user->number;
	standing->kind = call->kind;
}

/* A claim that nobody uses goes when another host wants the lock, or when it was kept long enough.
 */
static void check_idle(struct world *world, const struct view_claim *claim)
{
	struct standing *standing = claim->standing;
	const struct lock_policy *policy = &world->policies[standing->lock];
	int64_t limit_ms =
		policy->keep_ms > policy->linger_ms ? policy->keep_ms : policy->linger_ms;
	int64_t drift_ms = limit_ms * 2 * world->clock_drift / 10000;
	int64_t idle_ms;

	if (!is_idle(world, standing)) {
		standing->idle_ms = 0;
		return;
	}
	if (standing->idle_ms == 0)
		standing->idle_ms = world->now_ms;
	idle_ms = world->now_ms - standing->idle_ms;
	/* A host that is not well may not be able to give the claim up. */
	if (idle_ms > limit_ms + drift_ms + 2 && is_well(host_of(world, standing)))
		world_fail(world, "%s of %s is kept for %lld ms", claim->name,
			   world_lock(standing->lock), (long long)idle_ms);
	if (idle_ms > hearing_ms(world) && has_heard(host_of(world, standing)) &&
	    is_wanted(world, claim))
		world_fail(world, "%s of %s is kept while another host waits", claim->name,
			   world_lock(standing->lock));
}

void check_handoffs(struct world *world)
{
	for (int lock = 0; lock < world->locks_count; lock++) {
		const struct view *view = view_of(world, lock);

		for (size_t i = 0; lock_has_handoff(world, lock) && i < view->count; i++)
			if (view->claims[i].standing != NULL)
				check_idle(world, &view->claims[i]);
	}
}
