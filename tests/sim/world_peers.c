/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts that tell each other what is released (engine/books/bequest.h), by messages that are lost,
 * late, doubled, out of order, or come once more long after; to daemons that stand still, have
 * died, or were replaced meanwhile. By numbers of their own, so that other worlds are as they would
 * be without. Single-threaded.
 *
 * The world notes who was told what, and checks:
 *   - what is told to be released is so: nobody holds by it, and it was nothing that was lost;
 *   - only who was told of a claim goes past it while it stands (check_grant());
 *   - a claim that was bequeathed does not leave the service, by its host's doing, while its heir
 *     is gone and that one's holder was not told so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { PEER_WORLDS_PERCENT = 25, FORMER_MAX = 32 };

struct message {
	int64_t due_ms;
	bool tells; /* else it asks */
	int from, to;
	int lock;
	char claim[NAME_BYTES]; /* to be told; or by which to be asked for names[0] */
	char names[ENGINE_TOLD_MAX][NAME_BYTES];
	size_t count;
};

/* Who was told of what: it may pass that. */
struct passed {
	char name[NAME_BYTES], heir[NAME_BYTES];
};

struct peers {
	struct prng prng;
	struct message *messages;
	size_t count, capacity;
	struct message former[FORMER_MAX]; /* that were sent, for once more */
	size_t formers;			   /* so far */
	struct passed *passed;
	size_t passed_count, passed_capacity;
};

static void *grow(void *list, size_t count, size_t *capacity, size_t bytes)
{
	if (count < *capacity)
		return list;
	*capacity = 2 * *capacity + 16;
	list = reallocarray(list, *capacity, bytes);
	if (list == NULL)
		abort();
	return list;
}

void world_draw_peers(struct world *world)
{
	struct prng prng;

	prng_seed(&prng, world->seed ^ UINT64_C(0x7065657273));
	if (!prng_chance(&prng, PEER_WORLDS_PERCENT) && !world->telling)
		return;
	world->peers = calloc(1, sizeof(*world->peers));
	if (world->peers == NULL)
		abort();
	prng_seed(&world->peers->prng, prng_next(&prng));
	if (world->sets_back || world->ends_unasked || prng_chance(&prng, 20))
		return;
	/* Worlds in which nothing keeps them from it, and many want the same. */
	world->apart = false;
	world->hosts_count = 3;
	world->delay_ms = 8;
	world->refused_percent = 0;
	world->records_percent = 0;
	world->locks_count = 1;
	if (!world->late_numbers && prng_chance(&prng, 50)) {
		world->break_percent = 25;
		world->terms.own_percent = 0; /* a least time ends with what says so */
	}
	if (world->telling) {
		world->exclusive_percent = 95;
		world->impatient_percent = 4;
		world->fault_percent = 1 + (int)prng_below(&prng, 6);
		world->only_own = true;
	}
	for (int lock = 0; lock < LOCKS_MAX; lock++) {
		struct lock_policy *policy = &world->policies[lock];

		policy->lock_delay_ms = policy->min_hold_ms = policy->max_hold_ms = 0;
		policy->slots = 1;
		if (world->telling && prng_chance(&prng, 70))
			policy->handoff = policy->keep_ms = 0;
		if (policy->recipe == CLAIM_CURATOR_ANY)
			policy->recipe = CLAIM_CURATOR_RW;
	}
}

void world_end_peers(struct world *world)
{
	if (world->peers == NULL)
		return;
	free(world->peers->messages);
	free(world->peers->passed);
	free(world->peers);
	world->peers = NULL;
}

bool peers_passed(const struct world *world, const char *name, const char *heir)
{
	const struct peers *peers = world->peers;

	for (size_t i = 0; peers != NULL && i < peers->passed_count; i++)
		if (strcmp(peers->passed[i].name, name) == 0 &&
		    strcmp(peers->passed[i].heir, heir) == 0)
			return true;
	return false;
}

static void note_passed(struct world *world, const char *name, const char *heir)
{
	struct peers *peers = world->peers;

	if (peers_passed(world, name, heir))
		return;
	peers->passed = grow(peers->passed, peers->passed_count, &peers->passed_capacity,
			     sizeof(*peers->passed));
	struct passed *passed = &peers->passed[peers->passed_count++];
	snprintf(passed->name, NAME_BYTES, "%s", name);
	snprintf(passed->heir, NAME_BYTES, "%s", heir);
}

static int lock_number(const char *path)
{
	for (int lock = 0; lock < LOCKS_MAX; lock++)
		if (strcmp(world_lock(lock), path) == 0)
			return lock;
	abort();
}

static void post(struct world *world, const struct message *message)
{
	struct peers *peers = world->peers;

	peers->messages =
		grow(peers->messages, peers->count, &peers->capacity, sizeof(*peers->messages));
	struct message *posted = &peers->messages[peers->count++];
	*posted = *message;
	posted->due_ms = world->now_ms;
	if (prng_chance(&peers->prng, 70))
		posted->due_ms += prng_below(&peers->prng, 3);
	else
		posted->due_ms += prng_below(&peers->prng, world->calm ? 20 : 2 * TIMEOUT_MS);
}

/* Once, twice, or not at all; and perhaps another one that was sent before. */
static void post_perhaps(struct world *world, const struct message *message)
{
	struct peers *peers = world->peers;

	if (world->calm || !prng_chance(&peers->prng, 15))
		post(world, message);
	if (prng_chance(&peers->prng, 10))
		post(world, message);
	if (peers->formers > 0 && prng_chance(&peers->prng, 20))
		post(world,
		     &peers->former[prng_below(&peers->prng, peers->formers < FORMER_MAX
								     ? (int64_t)peers->formers
								     : FORMER_MAX)]);
	peers->former[peers->formers++ % FORMER_MAX] = *message;
}

void peers_on_ask(void *context, const char *path, const char *rival, const char *peer,
		  const char *claim)
{
	struct host *host = context;
	struct message message = {.from = host->number, .lock = lock_number(path), .count = 1};

	if (host->engine == NULL)
		return;
	if (sscanf(peer, "host%d", &message.to) != 1)
		world_fail(host->world, "host %d asks %s", host->number, peer);
	snprintf(message.claim, NAME_BYTES, "%s", claim);
	snprintf(message.names[0], NAME_BYTES, "%s", rival);
	world_say(host->world, "host %d: asks host %d for %s, for %s", host->number, message.to,
		  rival, claim);
	post_perhaps(host->world, &message);
}

static struct standing *find(const struct world *world, const char *name)
{
	for (size_t i = world->standings_count; i-- > 0;)
		if (strcmp(world->standings[i].name, name) == 0)
			return &world->standings[i];
	return NULL;
}

/* Whether anybody holds by the claim, and was not told of the end of that. */
static bool is_held(struct world *world, const struct standing *standing)
{
	const struct user *user = standing_user(world, standing);

	return standing->granted && !standing->released && user != NULL && user->holds &&
	       !user->lost;
}

/* It is in front of its heir; else it tells that it is over itself. */
static bool is_word_of_release(const char *name, const char *heir)
{
	struct claim_name a, b;

	if (!claim_name_parse(name, &a) || !claim_name_parse(heir, &b))
		abort();
	return claim_name_compare(a.order, "", b.order, "") < 0;
}

/* Whether its holder is one that has lost a lock. */
static bool is_lost(struct world *world, const struct standing *standing)
{
	const struct user *user = standing_user(world, standing);

	return standing->granted && user != NULL && user->lost;
}

/* The claim is not to go without its heir. */
static void note_heir(const struct world *world, struct standing *standing, const char *heir)
{
	const struct standing *next = find(world, heir);

	standing->heir = next == NULL ? 0 : (size_t)(next - world->standings) + 1;
}

static void check_told_names(struct host *host, const struct message *message)
{
	struct world *world = host->world;
	bool release = is_word_of_release(message->names[0], message->claim);
	struct standing *told = find(world, message->names[0]);

	if (release && told != NULL && is_lost(world, told))
		world_fail(world, "host %d tells that %s is released, which user %u has lost",
			   host->number, told->name, told->user);
	if (release && told != NULL)
		note_heir(world, told, message->claim);

	for (size_t i = 0; i < message->count; i++) {
		const struct standing *standing = find(world, message->names[i]);

		if (standing == NULL)
			world_fail(world, "host %d tells of %s, which never stood", host->number,
				   message->names[i]);
		else if (is_held(world, standing))
			world_fail(world,
				   "host %d tells that %s is released, by which user %u holds",
				   host->number, standing->name, standing->user);
		if (standing != NULL && release)
			note_passed(world, standing->name, message->claim);
	}
}

void peers_on_tell(void *context, const char *path, const struct engine_peer *asker,
		   const char *claim, const char *const *names, size_t count)
{
	struct host *host = context;
	struct message message = {.tells = true,
				  .from = host->number,
				  .to = asker->bytes[0],
				  .lock = lock_number(path),
				  .count = count};

	if (host->engine == NULL)
		return;
	snprintf(message.claim, NAME_BYTES, "%s", claim);
	for (size_t i = 0; i < count; i++)
		snprintf(message.names[i], NAME_BYTES, "%s", names[i]);
	world_say(host->world, "host %d: tells host %d, %s: %s is released, and %zu others",
		  host->number, message.to, claim, names[0], count - 1);
	check_told_names(host, &message);
	post_perhaps(host->world, &message);
}

/* The claim goes to its heir: of this host, that may pass what the claim has passed. */
void peers_bequeathing(void *context, const char *path, const char *name, const char *heir)
{
	struct host *host = context;
	struct world *world = host->world;
	const struct peers *peers = world->peers;
	struct standing *standing = find(world, name);
	const struct standing *next = find(world, heir);

	world_say(world, "host %d: bequeaths %s to %s", host->number, name, heir);
	if (standing == NULL || next == NULL) {
		world_fail(world, "host %d bequeaths %s to %s", host->number, name, heir);
		return;
	}
	note_heir(world, standing, heir);
	if (next->life != host->life)
		return;
	for (size_t i = 0; i < peers->passed_count; i++)
		if (strcmp(peers->passed[i].heir, name) == 0)
			note_passed(world, peers->passed[i].name, heir);
	note_passed(world, name, heir);
}

int64_t peers_due(const struct world *world)
{
	const struct peers *peers = world->peers;
	int64_t due_ms = INT64_MAX;

	for (size_t i = 0; peers != NULL && i < peers->count; i++) {
		const struct message *message = &peers->messages[i];
		const struct host *host = &world->hosts[message->to];

		/* What is sent to one that stands still is read when that goes on. */
		if ((host->engine == NULL || host_runs(host)) && message->due_ms < due_ms)
			due_ms = message->due_ms;
	}
	return due_ms;
}

static void deliver(struct host *host, const struct message *message)
{
	struct engine_peer from = {{(uint8_t)message->from}};
	const char *names[ENGINE_TOLD_MAX];
	const char *path = world_lock(message->lock);
	uint64_t grants = engine_counts(host->engine).by_message;

	for (size_t i = 0; i < message->count; i++)
		names[i] = message->names[i];
	world_say(host->world, "host %d: hears of host %d, for %s: %s", host->number, message->from,
		  message->claim, names[0]);
	engine_advance(host->engine, host_clock(host));
	host_note(host);
	if (message->tells)
		engine_peer_told(host->engine, path, message->claim, names, message->count, &from);
	else
		engine_peer_asked(host->engine, path, names[0], message->claim, &from);
	host->world->granted_by_message += engine_counts(host->engine).by_message - grants;
}

bool peers_happen(struct world *world)
{
	struct peers *peers = world->peers;

	for (size_t i = 0; peers != NULL && i < peers->count; i++) {
		struct message message = peers->messages[i];
		struct host *host = &world->hosts[message.to];

		if (message.due_ms > world->now_ms || (host->engine != NULL && !host_runs(host)))
			continue;
		peers->messages[i] = peers->messages[--peers->count];
		if (host->engine != NULL)
			deliver(host, &message);
		return true;
	}
	return false;
}

/* Whether the session that the claim ended with may have taken it away, or somebody by hand. */
static bool went_otherwise(struct world *world, const struct standing *standing)
{
	for (int i = 0; i < world->hosts_count; i++) {
		const struct host *host = &world->hosts[i];

		if (host->store != NULL && host->life == standing->life)
			return standing->broken || store_faulty_is_expired(host->store);
	}
	return true;
}

void check_peers(struct world *world)
{
	if (world->peers == NULL)
		return;
	for (int lock = 0; lock < world->locks_count; lock++)
		(void)view_of(world, lock); /* so that it is known what has gone */
	for (size_t i = 0; i < world->standings_count; i++) {
		struct standing *standing = &world->standings[i];
		const struct standing *heir;

		if (!standing->gone || standing->heir == 0)
			continue;
		heir = &world->standings[standing->heir - 1];
		standing->heir = 0;
		if (heir->gone && is_held(world, heir) && !went_otherwise(world, standing))
			world_fail(world,
				   "%s of %s has gone without its heir %s, of user %u, who was not "
				   "told of that",
				   standing->name, world_lock(standing->lock), heir->name,
				   heir->user);
	}
}
