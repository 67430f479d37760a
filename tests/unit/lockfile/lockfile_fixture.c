/* SPDX-License-Identifier: Apache-2.0
 *
 * See lockfile_fixture.h. Single-threaded.
 */
#include <stdio.h>

#include "engine/transfer.h"
#include "lockfile_fixture.h"

static void answer(struct call *call, int error)
{
	call->answers++;
	assert_int_equal(call->answers, 1);
	call->result = error;
}

static void on_altered(void *context, void *cookie, int error)
{
	answer(cookie, error);
}

static void on_file(void *context, void *cookie, int error, const struct store_claim *claim,
		    bool ours)
{
	const struct host *host = context;
	struct call *call = cookie;

	answer(call, error);
	call->ours = ours;
	call->has = lockfiles_have(host->lockfiles, call->path);
	if (error == 0)
		snprintf(call->text, sizeof(call->text), "%.*s", (int)claim->data_bytes,
			 (const char *)claim->data);
	call->ephemeral = error == 0 && claim->session != 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void on_files(void *context, void *cookie, int error, const char *const *names, size_t count)
{
	struct call *call = cookie;
	const char *sorted[16];

	answer(call, error);
	if (count == 0)
		return;
	memcpy(sorted, names, count * sizeof(*names));
	qsort(sorted, count, sizeof(*sorted), compare);
	for (size_t i = 0; i < count; i++)
		snprintf(call->text + strlen(call->text), sizeof(call->text) - strlen(call->text),
			 "%s%s", i > 0 ? " " : "", sorted[i]);
}

static void on_file_gone(void *context, const char *path, enum lockfile_end why)
{
	struct host *host = context;
	size_t length = strlen(host->gone);

	snprintf(host->gone + length, sizeof(host->gone) - length, "%s %s, ", path,
		 why == LOCKFILE_LOST ? "lost" : "taken");
}

static const struct lockfile_events events = {
	.on_altered = on_altered,
	.on_file = on_file,
	.on_files = on_files,
	.on_file_gone = on_file_gone,
};

static void add_lockfiles(struct host *host)
{
	host->lockfiles = lockfiles_create(host->engine, &events, host);
	assert_non_null(host->lockfiles);
}

int lockfiles_setup(void **state)
{
	struct world *world;

	assert_int_equal(world_setup(state), 0);
	world = *state;
	for (size_t i = 0; i < HOSTS; i++)
		add_lockfiles(world->hosts[i]);
	return 0;
}

static void begin(struct call *call, struct host *host)
{
	memset(call, 0, sizeof(*call));
	engine_advance(host->engine, host_clock(host));
}

void call_alter(struct call *call, struct host *host, const struct store_step *steps, size_t count,
		int64_t limit_ms)
{
	begin(call, host);
	assert_int_equal(lockfiles_alter(host->lockfiles, steps, count, limit_ms, call), 0);
	assert_open(call);
	engine_check_invariants(host->engine);
}

void call_make(struct call *call, struct host *host, const char *path, const char *text)
{
	const struct store_step step = {.kind = STEP_MAKE, .path = path, .text = text};

	call_alter(call, host, &step, 1, LIMIT_MS);
}

void call_remove(struct call *call, struct host *host, const char *path)
{
	const struct store_step step = {
		.kind = STEP_REMOVE, .path = path, .version = STORE_ANY_VERSION};

	call_alter(call, host, &step, 1, LIMIT_MS);
}

void call_replace(struct call *call, struct host *host, const char *path, const char *text)
{
	const struct store_step step = {
		.kind = STEP_REPLACE, .path = path, .text = text, .version = STORE_ANY_VERSION};

	call_alter(call, host, &step, 1, LIMIT_MS);
}

void call_rename(struct call *call, struct host *host, const char *from, const char *to,
		 const char *text, int64_t limit_ms)
{
	const struct store_step steps[] = {
		{.kind = STEP_MAKE, .path = to, .text = text},
		{.kind = STEP_REMOVE, .path = from, .version = STORE_ANY_VERSION},
	};

	call_alter(call, host, steps, 2, limit_ms);
}

void call_read(struct call *call, struct host *host, const char *path)
{
	begin(call, host);
	call->path = path;
	assert_int_equal(lockfiles_read(host->lockfiles, path, LIMIT_MS, call), 0);
	assert_open(call);
}

void call_list(struct call *call, struct host *host, const char *directory)
{
	begin(call, host);
	assert_int_equal(lockfiles_list(host->lockfiles, directory, LIMIT_MS, call), 0);
	assert_open(call);
}

static void succeed(struct host *host, const struct store_step *step)
{
	struct call call;

	call_alter(&call, host, step, 1, LIMIT_MS);
	settle(host->world);
	assert_result(&call, 0);
}

void make_file(struct host *host, const char *path, const char *text)
{
	succeed(host, &(struct store_step){.kind = STEP_MAKE, .path = path, .text = text});
}

void remove_file(struct host *host, const char *path)
{
	succeed(host, &(struct store_step){
			      .kind = STEP_REMOVE, .path = path, .version = STORE_ANY_VERSION});
}

void take_away(struct host *host, const char *path)
{
	succeed(host, &(struct store_step){.kind = STEP_REMOVE, .path = path});
}

void take_file(struct host *host, const char *path, const char *text)
{
	succeed(host, &(struct store_step){.kind = STEP_TAKE, .path = path, .text = text});
}

void bar(struct call *call, struct host *host, const char *made)
{
	while (file_text(host->world, made) == NULL)
		assert_true(step(host->world));
	engine_doubt(host->engine, host->world->now_ms);
	settle(host->world);
	assert_open(call);
}

static void each_owner(void *context, void (*visit)(void *visitor, struct owner *owner),
		       void *visitor)
{
}

/* There are no owners and no wishes. */
static const struct engine_transfer transfer = {.each_owner = each_owner};

void host_restart(struct host *host)
{
	struct state_reader reader;
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	engine_save(host->engine, &transfer, stream);
	assert_int_equal(fclose(stream), 0);
	engine_destroy(host->engine);
	store_faulty_succeed(host->store);
	host->engine = engine_create(&file_events, host, 77);
	assert_non_null(host->engine);
	add_lockfiles(host);
	engine_set_store(host->engine, host->store);
	store_faulty_set_context(host->store, host->engine);
	stream = fmemopen(text, bytes, "r");
	assert_non_null(stream);
	state_reader_init(&reader, stream);
	assert_int_equal(state_next(&reader), 1);
	state_again(&reader);
	assert_int_equal(engine_restore(host->engine, &transfer, &reader), 0);
	state_reader_finish(&reader);
	fclose(stream);
	free(text);
	engine_advance(host->engine, host_clock(host));
	engine_check_invariants(host->engine);
}

struct wanted {
	const char *path;
	char text[512];
	bool found;
};

static void visit(void *context, const char *path, const struct store_claim *claim)
{
	struct wanted *wanted = context;

	if (strcmp(path, wanted->path) != 0)
		return;
	wanted->found = true;
	snprintf(wanted->text, sizeof(wanted->text), "%s", (const char *)claim->data);
}

const char *file_text(struct world *world, const char *path)
{
	static struct wanted wanted;

	wanted = (struct wanted){.path = path};
	local_service_each_file(world->service, visit, &wanted);
	return wanted.found ? wanted.text : NULL;
}
