/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files: hosts make, check, move, read and remove files of a few names.
 * Each file's text begins with a number that no other one has, so that what stands at the service
 * is known. By numbers of their own, so that worlds without them are as they would be.
 * Single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockfile/lockfiles.h"
#include "world.h"

enum { FILES_PERCENT = 40, ACTS_PERCENT = 25, LATE_MS = 50 };

/* The lock engine knows them by these, the service by the kernel's. */
static const char *const paths[FILES_MAX] = {"d//x", "d//y", "//z"};
static const char *const plain_paths[FILES_MAX] = {"d/x", "d/y", "z"};

void world_draw_files(struct world *world)
{
	prng_seed(&world->file_prng, world->seed ^ UINT64_C(0x66696c6573));
	world->has_files = prng_chance(&world->file_prng, FILES_PERCENT);
}

static uint64_t number_in(const char *text)
{
	return strtoull(text, NULL, 10);
}

/* The first number of the call that made it. */
static uint64_t first_number_in(const char *text)
{
	return strtoull(strchr(text, ' '), NULL, 10);
}

/* What stands at the service, as it was seen last; and since when. */
static void visit(void *context, const char *path, const struct store_claim *claim)
{
	struct world *world = context;

	for (int file = 0; file < FILES_MAX; file++) {
		if (strcmp(plain_paths[file], path) != 0)
			continue;
		world->files_now[file] = number_in(claim->data);
		world->files_first_now[file] = first_number_in(claim->data);
	}
}

/* The file of that number was removed, or replaced, while its session lived. */
static bool was_taken(const struct world *world, uint64_t number)
{
	for (size_t i = 0; i < FILES_TAKEN_MAX; i++)
		if (number != 0 && world->files_taken[i] == number)
			return true;
	return false;
}

static void note_taken(struct world *world, int file, uint64_t number)
{
	world->files_taken[world->files_taken_count++ % FILES_TAKEN_MAX] = number;
	world->files_taken[world->files_taken_count++ % FILES_TAKEN_MAX] = world->files_first[file];
}

/* Whose it is, or was made for; NULL: nobody's any more. */
static struct host *maker_of(struct world *world, uint64_t number)
{
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		for (int file = 0; file < FILES_MAX; file++)
			if (host->files[file] == number || host->former_files[file] == number)
				return host;
		for (int j = 0; j < FILE_CALLS_MAX; j++)
			if (host->file_calls[j].number == number)
				return host;
	}
	return NULL;
}

static bool is_session_over(const struct host *host)
{
	return host->store == NULL || store_faulty_is_expired(host->store);
}

/* A name has come to stand for something else. */
static void note_change(struct world *world, int file, uint64_t former, uint64_t number)
{
	const struct host *maker = former != 0 ? maker_of(world, former) : NULL;

	if (former != 0 && (maker == NULL || !is_session_over(maker)))
		note_taken(world, file, former);
	world_say(world, "file %s: %" PRIu64 " in place of %" PRIu64, plain_paths[file], number,
		  former);
	for (int i = 0; i < world->hosts_count && number != 0; i++) {
		const struct host *host = &world->hosts[i];

		if (host_runs(host) && host->files[file] != 0 && host->files[file] != number &&
		    !was_taken(world, host->files[file]) && !machine_is_misled(host))
			world_fail(world, "host %d believes in file %s, which was made anew",
				   host->number, plain_paths[file]);
	}
}

static void look(struct world *world)
{
	memset(world->files_now, 0, sizeof(world->files_now));
	local_service_each_file(world->service, visit, world);
	for (int file = 0; file < FILES_MAX; file++) {
		uint64_t former = world->files[file], number = world->files_now[file];

		if (number == former)
			continue;
		note_change(world, file, former, number);
		world->files[file] = number;
		world->files_first[file] = world->files_first_now[file];
	}
}

/* Calls */

static bool makes(const struct file_call *call)
{
	return call->kind == FILE_MAKE || call->kind == FILE_MOVE;
}

/* The steps of the call, with its text. Returns how many. */
static size_t steps_of(const struct file_call *call, char text[64], struct store_step steps[2])
{
	snprintf(text, 64, "%" PRIu64 "\ncall %" PRIu64 "\n", call->number, call->first_number);
	if (makes(call))
		steps[0] = (struct store_step){STEP_MAKE, paths[call->file], text, 0};
	else if (call->kind == FILE_CHECK)
		steps[0] = (struct store_step){STEP_CHECK, paths[call->file], NULL, 0};
	else
		steps[0] = (struct store_step){STEP_REMOVE, paths[call->file], NULL,
					       call->kind == FILE_STEAL ? call->version
									: STORE_ANY_VERSION};
	if (call->kind == FILE_MOVE)
		steps[1] = (struct store_step){STEP_REMOVE, paths[call->from], NULL,
					       STORE_ANY_VERSION};
	return call->kind == FILE_MOVE ? 2 : 1;
}

static void send_call(struct file_call *call)
{
	struct engine *engine = call->host->engine;
	struct store_step steps[2];
	char text[64];
	int error;

	host_note(call->host);
	engine_advance(engine, host_clock(call->host));
	if (call->kind == FILE_READ)
		error = lockfiles_read(call->host->lockfiles, paths[call->file], call->limit_ms,
				       call);
	else
		error = lockfiles_alter(call->host->lockfiles, steps, steps_of(call, text, steps),
					call->limit_ms, call);
	if (error == -ENOLCK && call->kind == FILE_MAKE && engine_drains(engine))
		call->waiting = false;
	else if (error != 0)
		world_fail(call->host->world, "a call about a file: %d", error);
	else if (call->kind == FILE_MAKE && engine_drains(engine) &&
		 call->number == call->first_number)
		world_fail(call->host->world, "a file may be made on a host that drains");
}

static void begin_call(struct host *host, struct file_call *call, enum file_call_kind kind,
		       int file)
{
	struct world *world = host->world;
	static const char *const words[] = {
		[FILE_MAKE] = "makes",	     [FILE_MOVE] = "moves to", [FILE_REMOVE] = "removes",
		[FILE_STEAL] = "takes away", [FILE_CHECK] = "checks",  [FILE_READ] = "reads",
	};

	*call = (struct file_call){
		.host = host,
		.kind = kind,
		.file = file,
		.from = call->from,
		.version = call->version,
		.number = ++world->files_made,
		.first_number = world->files_made,
		.since_ms = host_clock(host),
		.life = host->life,
		.limit_ms = 20 + prng_below(&world->file_prng, 2 * TIMEOUT_MS),
		.waiting = true,
	};
	world_say(world, "host %d %s file %s, call %" PRIu64, host->number, words[kind],
		  plain_paths[file], call->number);
	send_call(call);
}

/* A file that the host has, or not, drawn; -1: there is none. */
static int some_file(const struct host *host, bool own)
{
	int first = (int)prng_below(&host->world->file_prng, FILES_MAX);

	for (int i = 0; i < FILES_MAX; i++) {
		int file = (first + i) % FILES_MAX;
		if ((host->files[file] != 0) == own)
			return file;
	}
	return -1;
}

static void act(struct host *host, struct file_call *call)
{
	struct world *world = host->world;
	int64_t dice = world->calm ? 100 : prng_below(&world->file_prng, 100);
	int other = some_file(host, false), own = some_file(host, true);

	if (dice < 45 && other >= 0) {
		begin_call(host, call, FILE_MAKE, other);
	} else if (dice < 50) {
		begin_call(host, call, FILE_MAKE, (int)prng_below(&world->file_prng, FILES_MAX));
	} else if (dice < 58) {
		begin_call(host, call, FILE_READ, (int)prng_below(&world->file_prng, FILES_MAX));
	} else if (dice < 62 && other >= 0) {
		call->version = 0;
		begin_call(host, call, FILE_STEAL, other);
	} else if (own < 0) {
		return;
	} else if (dice < 70 && other >= 0) {
		call->from = own;
		begin_call(host, call, FILE_MOVE, other);
	} else if (dice < 78) {
		begin_call(host, call, FILE_CHECK, own);
	} else {
		begin_call(host, call, FILE_REMOVE, own);
	}
}

/* Whether a call of the host about the file is under way. */
static bool is_busy(const struct host *host, int file)
{
	for (int i = 0; i < FILE_CALLS_MAX; i++) {
		const struct file_call *call = &host->file_calls[i];
		if (call->waiting &&
		    (call->file == file || (call->kind == FILE_MOVE && call->from == file)))
			return true;
	}
	return false;
}

void files_act(struct world *world)
{
	struct host *host;
	struct file_call *call;

	if (!world->has_files || world->quiet_ms > 0 ||
	    !prng_chance(&world->file_prng, ACTS_PERCENT))
		return;
	host = &world->hosts[prng_below(&world->file_prng, world->hosts_count)];
	call = &host->file_calls[prng_below(&world->file_prng, FILE_CALLS_MAX)];
	if (host_runs(host) && !call->waiting)
		act(host, call);
}

/* Answers */

/* What the host is told to have, it has only if its session lives. */
static void check_session(const struct file_call *call)
{
	const struct host *host = call->host;

	if (!store_faulty_told_connected(host->store) || store_faulty_may_be_over(host->store))
		world_fail(host->world,
			   "host %d: call %" PRIu64 " about file %s is done in a session that may "
			   "be over",
			   host->number, call->number, plain_paths[call->file]);
}

static void on_made(struct file_call *call)
{
	struct host *host = call->host;
	struct world *world = host->world;

	look(world);
	/* It may be the one that was made when the call, or the same, was handled before. */
	bool was_left = call->kind == FILE_MOVE && host->has_left;
	if (world->files[call->file] != 0 &&
	    (world->files_first[call->file] == call->first_number || was_left))
		call->number = world->files[call->file];
	if (world->files[call->file] != call->number && was_taken(world, call->first_number))
		call->number = call->first_number;
	if (world->files[call->file] != call->number && was_left &&
	    was_taken(world, host->former_files[call->file]))
		call->number = host->former_files[call->file];
	if (world->files[call->file] != call->number && !was_taken(world, call->number) &&
	    !machine_is_misled(host))
		world_fail(world, "host %d is told to have made file %s, which does not stand",
			   host->number, plain_paths[call->file]);
	if (store_faulty_may_be_over(host->store))
		world_fail(world,
			   "host %d is told to have made file %s in a session that may be over",
			   host->number, plain_paths[call->file]);
	host->files[call->file] = call->number;
}

/* Whether the error has a reason. */
static bool is_reason(const struct file_call *call, int error)
{
	const struct world *world = call->host->world;

	switch (error) {
	case -EEXIST:
		return makes(call) && (call->met || call->host->files[call->file] != 0);
	case -ENOENT:
		return call->kind != FILE_MAKE;
	case -ESTALE:
		return call->kind == FILE_STEAL;
	case -EIO:
		/* Or it has taken the place of an alteration that was lost with a session. */
		return world->refused_percent > 0 || call->lost || call->host->life != call->life ||
		       call->host->has_left ||
		       engine_status(call->host->engine).session == STORE_LOST;
	case -ETIMEDOUT:
		return host_clock(call->host) - call->since_ms >= call->limit_ms;
	default:
		return false;
	}
}

static void on_altered(void *context, void *cookie, int error)
{
	struct host *host = context;
	struct file_call *call = cookie;
	struct world *world = host->world;

	host_note(host);
	if (!call->waiting || call->host != host)
		world_fail(world, "host %d is answered twice", host->number);
	call->waiting = false;
	world_say(world, "host %d: call %" PRIu64 " about file %s: %d", host->number, call->number,
		  plain_paths[call->file], error);
	if (error != 0 && !is_reason(call, error))
		world_fail(world, "host %d: call %" PRIu64 " about file %s is refused: %d",
			   host->number, call->number, plain_paths[call->file], error);
	host->has_left |= error == -ETIMEDOUT; /* its engine may be busy with that yet */
	if (error == 0 && (call->kind == FILE_REMOVE || call->kind == FILE_STEAL))
		host->files[call->file] = 0;
	if (error == 0 && call->kind == FILE_MOVE)
		host->files[call->from] = 0;
	if (error == 0 && (makes(call) || call->kind == FILE_CHECK))
		check_session(call);
	if (error == 0 && makes(call))
		on_made(call);
	if (error == 0 && call->kind == FILE_CHECK && !call->stood)
		world_fail(world, "host %d is told that file %s stands", host->number,
			   plain_paths[call->file]);
}

static void on_file(void *context, void *cookie, int error, const struct store_claim *claim,
		    bool ours)
{
	struct host *host = context;
	struct file_call *call = cookie;

	host_note(host);
	call->waiting = false;
	if (error != 0 && !is_reason(call, error))
		world_fail(host->world, "host %d: file %s is not read: %d", host->number,
			   plain_paths[call->file], error);
	if (error == 0 && ours && number_in(claim->data) != host->files[call->file])
		world_fail(host->world, "host %d takes file %s for its own", host->number,
			   plain_paths[call->file]);
}

static void on_files(void *context, void *cookie, int error, const char *const *names, size_t count)
{
	abort(); /* nobody asks */
}

static void on_file_gone(void *context, const char *path, enum lockfile_end why)
{
	struct host *host = context;
	struct world *world = host->world;
	int file = 0;

	host_note(host);
	while (strcmp(paths[file], path) != 0)
		file++;
	look(world);
	world_say(world, "host %d: file %s is gone", host->number, plain_paths[file]);
	if (why == LOCKFILE_TAKEN && world->files[file] == host->files[file] &&
	    host->files[file] != 0)
		world_fail(world, "host %d is told that file %s was taken away", host->number,
			   plain_paths[file]);
	host->files[file] = 0;
}

const struct lockfile_events file_user_events = {
	.on_altered = on_altered,
	.on_file = on_file,
	.on_files = on_files,
	.on_file_gone = on_file_gone,
};

/* Lives of hosts */

void host_forget_files(struct host *host)
{
	memset(host->files, 0, sizeof(host->files));
	memset(host->former_files, 0, sizeof(host->former_files));
	memset(host->file_calls, 0, sizeof(host->file_calls));
	host->has_left = false;
}

/* Whether another call that waits is the same but for its text: which of them takes the place of
 * which former one, nobody knows. */
static bool has_twin(const struct file_call *call)
{
	for (int i = 0; i < FILE_CALLS_MAX; i++) {
		const struct file_call *other = &call->host->file_calls[i];

		if (other != call && other->waiting && call->kind == FILE_MOVE &&
		    other->kind == FILE_MOVE && other->file == call->file &&
		    other->from == call->from)
			return true;
	}
	return false;
}

/* The kernel's request is handled again; or its caller was killed, too. */
void host_ask_files_again(struct host *host)
{
	for (int i = 0; i < FILE_CALLS_MAX; i++) {
		struct file_call *call = &host->file_calls[i];

		if (!call->waiting)
			continue;
		host->former_files[call->file] = call->number;
		host->has_left |= has_twin(call);
		if (prng_chance(&host->world->file_prng, 70)) {
			call->number = ++host->world->files_made;
			call->since_ms = host_clock(host);
			send_call(call);
		} else {
			call->waiting = false;
			host->has_left = true;
		}
	}
}

/* After every step */

static void note_call(struct world *world, struct file_call *call)
{
	const struct host *host = call->host;

	call->met |= world->files[call->file] != 0 || host->files[call->file] != 0;
	call->stood |= world->files[call->file] != 0 &&
		       world->files[call->file] == host->files[call->file];
	call->lost |= is_session_over(host) || host->life != call->life;
	if (host_runs(host) &&
	    host_clock(host) - call->since_ms > call->limit_ms + LATE_MS + TIMEOUT_MS)
		world_fail(world, "host %d: call %" PRIu64 " is not answered in time", host->number,
			   call->number);
}

static void check_host(struct host *host)
{
	struct world *world = host->world;

	for (int file = 0; file < FILES_MAX; file++) {
		bool has = lockfiles_have(host->lockfiles, paths[file]);

		if (has && host->files[file] == 0)
			world_fail(world, "host %d has file %s, and nobody knows", host->number,
				   plain_paths[file]);
		if (has && world->files[file] != host->files[file] &&
		    !was_taken(world, host->files[file]) && !machine_is_misled(host))
			world_fail(world, "host %d has file %s, which does not stand", host->number,
				   plain_paths[file]);
		if (!has && host->files[file] != 0 && !is_busy(host, file) && !host->has_left &&
		    engine_lease_end(host->engine) > host_clock(host) &&
		    engine_status(host->engine).session == STORE_CONNECTED)
			world_fail(world, "host %d has lost file %s unheard", host->number,
				   plain_paths[file]);
	}
}

void check_files(struct world *world)
{
	if (!world->has_files)
		return;
	look(world);
	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		for (int j = 0; j < FILE_CALLS_MAX; j++)
			if (host->file_calls[j].waiting)
				note_call(world, &host->file_calls[j]);
		if (host_runs(host))
			check_host(host);
	}
}

bool files_are_over(const struct world *world)
{
	if (!world->has_files)
		return true;
	for (int file = 0; file < FILES_MAX; file++)
		if (world->files[file] != 0)
			return false;
	for (int i = 0; i < world->hosts_count; i++)
		for (int j = 0; j < FILE_CALLS_MAX; j++)
			if (world->hosts[i].file_calls[j].waiting)
				return false;
	return true;
}

void check_files_end(struct world *world)
{
	for (int file = 0; file < FILES_MAX && world->has_files; file++)
		if (world->files[file] != 0)
			world_fail(world, "file %s is left, of number %" PRIu64, plain_paths[file],
				   world->files[file]);
}
