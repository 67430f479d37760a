/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts whose daemon keeps what it knows in a journal, is killed between two instructions, and is
 * followed by one that goes on. Single-threaded.
 *
 * What becomes of the last transaction: it was committed or not, and what was to be sent behind it
 * was sent or not. It can be lost only if nobody was answered and nothing was asked for in it: a
 * request that was not handled comes again, which the users here do not do.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/transfer.h"
#include "kept.h"
#include "world.h"

enum { JOURNAL_PERCENT = 50 };	  /* so many worlds have hosts that keep one, */
enum { RESTARTS_IN_10000 = 100 }; /* and so many steps are the last of such a host */
enum { AWAY_PERCENT = 25 };	  /* after so many the next one is slow to connect */
enum { CHECK_STEPS = 32 };	  /* what is kept is looked at every so many steps */

static uint64_t number_owner(const void *owner_cookie)
{
	return ((const struct user *)owner_cookie)->number;
}

static uint64_t number_wish(const void *cookie)
{
	return ((const struct call *)cookie)->number;
}

static void save_details(FILE *out, const void *details)
{
	state_text(out, "text", details);
}

static void restore_details(struct state_reader *in, void *details)
{
	strcpy(details, state_get_text(in, "text"));
}

static struct lock_policy policy(void *context, const char *path)
{
	const struct host *host = context;

	for (int lock = 0; lock < LOCKS_MAX; lock++)
		if (strcmp(world_lock(lock), path) == 0)
			return host->world->policies[lock];
	abort();
}

static struct user *find_user(struct host *host, uint64_t number)
{
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].number == number)
			return &host->users[i];
	return NULL;
}

static struct owner *find_owner(void *context, uint64_t number)
{
	const struct user *user = find_user(context, number);

	return user != NULL ? user->owner : NULL;
}

static void each_owner(void *context, void (*visit)(void *visitor, struct owner *owner),
		       void *visitor)
{
	struct host *host = context;

	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL)
			visit(visitor, host->users[i].owner);
}

static bool is_wish(const struct call *call)
{
	return call->waiting && call->kind != CALL_TEST;
}

static void *adopt_wish(void *context, uint64_t number, const struct owner *file, struct wish *wish)
{
	struct host *host = context;

	for (int i = 0; i < USERS_MAX; i++) {
		struct user *user = &host->users[i];

		for (int j = 0; j < CALLS_MAX; j++) {
			struct call *call = &user->calls[j];

			if (call->number != number || !is_wish(call) || call->wish != NULL ||
			    user->owner != file)
				continue;
			call->wish = wish;
			return call;
		}
	}
	return NULL;
}

static const struct engine_transfer transfer = {
	.number_owner = number_owner,
	.number_wish = number_wish,
	.save_details = save_details,
	.restore_details = restore_details,
	.policy = policy,
	.find_owner = find_owner,
	.each_owner = each_owner,
	.adopt_wish = adopt_wish,
};

/* Open files */

static const struct user *user_of(const struct state_item *item)
{
	return (const struct user *)((const char *)item - offsetof(struct user, item));
}

static struct state_place place_user(const struct state_item *item)
{
	return (struct state_place){{STATE_PLACE_HANDLE, user_of(item)->number}};
}

static void save_user(const struct state_item *item, FILE *out)
{
	state_begin(out, "handle");
	state_unsigned(out, "number", user_of(item)->number);
	engine_save_owner(user_of(item)->owner, out);
	state_end(out);
}

static const struct state_kind user_kind = {.place = place_user, .save = save_user};

void user_keep(struct user *user)
{
	state_journal_mark(user->host->journal, &user->item, &user_kind);
}

void user_forget(struct user *user)
{
	state_journal_remove(user->host->journal, &user->item);
}

/* Keeping */

/* All that is to be in the journal, to be freed. */
static char *known_text(const struct host *host)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		abort();
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL)
			save_user(&host->users[i].item, out);
	engine_save(host->engine, &transfer, out);
	if (fclose(out) != 0)
		abort();
	return text;
}

/* Both are freed. */
static void check_kept(const struct host *host, char *kept, char *known)
{
	char why[1024];

	if (!kept_is_same(kept, known, why, sizeof(why)))
		world_fail(host->world, "host %d: %s", host->number, why);
	free(kept);
	free(known);
}

static char *read_journal(const struct host *host)
{
	char why[256];
	char *kept = kept_read(state_journal_descriptor(host->journal), why, sizeof(why));

	if (kept == NULL) {
		world_fail(host->world, "host %d: its journal: %s", host->number, why);
		abort();
	}
	return kept;
}

static void commit(struct host *host)
{
	if (state_journal_is_changed(host->journal))
		state_journal_commit(host->journal, 0, NULL, 0);
}

static void open_journal(struct host *host, int descriptor)
{
	if (descriptor < 0 || state_journal_create(descriptor, 4096, 0, &host->journal) < 0)
		abort();
	engine_set_journal(host->engine, host->journal, &transfer, STATE_PLACE_SHARD);
}

void host_begin_journal(struct host *host)
{
	if (!host->world->journals)
		return;
	open_journal(host, memfd_create("sim", MFD_CLOEXEC));
	host_committed(host);
}

void host_end_journal(struct host *host)
{
	state_journal_destroy(host->journal);
	host->journal = NULL;
}

void host_note(struct host *host)
{
	/* What is checked of an answer looks at what the engine has sent before it. */
	engine_send(host->engine);
	host->answered = host->journal != NULL;
}

void host_committed(struct host *host)
{
	commit(host);
	engine_send(host->engine);
	host->answered = false;
	host->committed_life = host->life;
	host->committed_losses = engine_status(host->engine).sessions_lost;
}

bool host_has_lost_session(const struct host *host)
{
	return engine_status(host->engine).sessions_lost != host->committed_losses;
}

/* The next daemon */

static int restore_line(struct host *host, struct state_reader *in)
{
	if (strcmp(in->word, "handle") == 0) {
		struct user *user = find_user(host, state_get_unsigned(in, "number", UINT64_MAX));

		if (user == NULL)
			return state_refuse(in, "number", "that of an open file");
		user->owner = engine_restore_owner(host->engine, world_lock(user->lock),
						   &host->world->policies[user->lock], user, in);
		user_keep(user);
		return user->owner != NULL ? 0 : -1;
	}
	state_again(in);
	return engine_restore(host->engine, &transfer, in);
}

static void restore(struct host *host, char *text)
{
	FILE *file = fmemopen(text, strlen(text), "r");
	struct state_reader reader;
	int more, error = 0;

	if (file == NULL)
		abort();
	state_reader_init(&reader, file);
	while (error == 0 && (more = state_next(&reader)) > 0)
		error = restore_line(host, &reader);
	if (error != 0 || more < 0) {
		world_fail(host->world, "host %d cannot go on: %s", host->number, reader.why);
		abort();
	}
	state_reader_finish(&reader);
	fclose(file);
}

/* The old one vanishes: the books are closed with nobody to hear of it. */
static void kill_daemon(struct host *host)
{
	struct engine *engine = host->engine;

	host->engine = NULL;
	for (int i = 0; i < USERS_MAX; i++) {
		struct user *user = &host->users[i];

		if (user->owner == NULL)
			continue;
		engine_owner_close(user->owner);
		user->owner = NULL;
		user->item = (struct state_item){0};
		for (int j = 0; j < CALLS_MAX; j++)
			user->calls[j].wish = NULL;
	}
	engine_destroy(engine);
}

static void check_found(const struct host *host, const bool were_open[USERS_MAX])
{
	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *user = &host->users[i];

		if (were_open[i] != (user->owner != NULL))
			world_fail(host->world, "user %u is forgotten", user->number);
		for (int j = 0; user->owner != NULL && j < CALLS_MAX; j++)
			if (is_wish(&user->calls[j]) && user->calls[j].wish == NULL)
				world_fail(host->world, "user %u call %u is forgotten",
					   user->number, user->calls[j].number);
	}
}

/* The lines of claims that do not stand yet, in their order: for the only lock. */
static char *unplaced_text(const struct host *host)
{
	char *text = known_text(host), *to = text;
	const char *next;

	for (const char *line = text; *line != '\0'; line = next) {
		next = strchr(line, '\n') + 1;
		if (strncmp(line, "claim state=wanted", 18) != 0 &&
		    strncmp(line, "claim state=uncertain", 21) != 0)
			continue;
		memmove(to, line, (size_t)(next - line));
		to += next - line;
	}
	*to = '\0';
	return text;
}

/* What is not passed on is asked for again. */
static void ask_again(struct host *host)
{
	for (int i = 0; i < USERS_MAX; i++) {
		if (host->users[i].owner == NULL)
			continue;
		host->users[i].holding = false;
		user_test_again(&host->users[i]);
		questions_again(&host->users[i]);
	}
	host_ask_files_again(host);
}

static bool is_lock(const char *line)
{
	return strncmp(line, "lock ", strlen("lock ")) == 0;
}

/* Behind all locks. */
static bool is_of_files(const char *line)
{
	return strncmp(line, "lockfile ", strlen("lockfile ")) == 0 ||
	       strncmp(line, "alteration ", strlen("alteration ")) == 0;
}

/* Leaves the lines of locks out that nothing is told of: some of those are not made again. */
static void drop_bare_locks(char *text)
{
	char *to = text;
	const char *next;

	for (const char *line = text; *line != '\0'; line = next) {
		next = strchr(line, '\n') + 1;
		if (is_lock(line) && (*next == '\0' || is_lock(next) || is_of_files(next)))
			continue;
		memmove(to, line, (size_t)(next - line));
		to += next - line;
	}
	*to = '\0';
}

static void host_restart(struct host *host)
{
	struct world *world = host->world;
	int descriptor = dup(state_journal_descriptor(host->journal));
	char *kept = read_journal(host), *known;
	char *unplaced = unplaced_text(host), *unplaced_now;
	bool complete = !state_journal_is_changed(host->journal);
	bool were_open[USERS_MAX];

	world_say(world, "host %d is killed, and goes on", host->number);
	for (int i = 0; i < USERS_MAX; i++)
		were_open[i] = host->users[i].owner != NULL;
	kill_daemon(host);
	host_end_journal(host);
	store_faulty_succeed(host->store);
	host_open_engine(host);
	store_faulty_set_context(host->store, host->engine);
	open_journal(host, descriptor);
	restore(host, kept);
	check_found(host, were_open);
	known = known_text(host);
	drop_bare_locks(kept);
	drop_bare_locks(known);
	check_kept(host, kept, known);
	unplaced_now = unplaced_text(host);
	if (complete && world->locks_count == 1 && strcmp(unplaced, unplaced_now) != 0)
		world_fail(world, "host %d: the order of asking is not kept", host->number);
	free(unplaced);
	free(unplaced_now);
	engine_advance(host->engine, host_clock(host));
	ask_again(host);
	host_committed(host);
	host->hurries = true;
	host->reconnect_ms =
		world->now_ms +
		prng_below(&world->restarts,
			   prng_chance(&world->restarts, AWAY_PERCENT) ? 2 * TIMEOUT_MS : 100);
}

/* Whether what has happened since the last commit may as well not have. */
static bool is_revocable(const struct host *host)
{
	return !host->answered && host->life == host->committed_life &&
	       !host_has_lost_session(host);
}

void world_commit(struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		if (!host_runs(host) || host->journal == NULL)
			continue;
		if (world->calm || prng_below(&world->restarts, 10000) >= RESTARTS_IN_10000) {
			host_committed(host);
			if ((world->step + i) % CHECK_STEPS == 0)
				check_kept(host, read_journal(host), known_text(host));
			continue;
		}
		if (!is_revocable(host) || prng_chance(&world->restarts, 70))
			commit(host);
		if (prng_chance(&world->restarts, 50) && !state_journal_is_changed(host->journal))
			engine_send(host->engine);
		host_restart(host);
	}
}

void world_draw_restarts(struct world *world)
{
	prng_seed(&world->restarts, world->seed ^ UINT64_C(0x7e57a27));
	world->journals = prng_chance(&world->restarts, JOURNAL_PERCENT);
}
