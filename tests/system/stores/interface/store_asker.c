/* SPDX-License-Identifier: Apache-2.0
 *
 * See store_asker.h.
 */
#include "store_asker.h"

static void note(struct asker *asker, int error)
{
	static int turns;

	asker->times++;
	asker->turn = ++turns;
	asker->error = error;
}

static void note_names(struct asker *asker, const char *const *names, size_t count)
{
	asker->names_count = count;
	for (size_t i = 0; i < count && i < ASKER_NAMES; i++)
		snprintf(asker->names[i], sizeof(asker->names[i]), "%s", names[i]);
}

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	struct asker *asker = (struct asker *)look;

	note(asker, error);
	note_names(asker, names, names_count);
	asker->claims = entries_count;
	for (size_t i = 1; i < entries_count; i++)
		assert_true(claim_name_compare(entries[i - 1].claim.order, entries[i - 1].name,
					       entries[i].claim.order, entries[i].name) < 0);
}

static void on_claim(struct store_read *read, int error, const struct store_claim *claim)
{
	static char data[ASKER_READS][1 << 20];
	static size_t reads;
	struct asker *asker = (struct asker *)read;

	note(asker, error);
	assert_int_equal(error != 0, claim == NULL);
	if (!claim)
		return;
	asker->claim = *claim;
	asker->data = data[reads++ % ASKER_READS];
	assert_true(claim->data_bytes < sizeof(data[0]));
	memcpy(asker->data, claim->data, claim->data_bytes);
	asker->data[claim->data_bytes] = '\0';
}

static void on_changed(struct store_change *change, int error)
{
	note((struct asker *)change, error);
}

static void on_files(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct asker *asker = (struct asker *)files;

	note(asker, error);
	note_names(asker, names, count);
}

void send_look(struct host *host, struct asker *asker, const char *path)
{
	*asker = (struct asker){.look.done = on_looked};
	assert_int_equal(host->store->ops->look(host->store, &asker->look, path), 0);
	assert_int_equal(asker->times, 0);
}

int look(struct host *host, struct asker *asker, const char *path)
{
	send_look(host, asker, path);
	WAIT_FOR(asker->times);
	return asker->error;
}

bool saw(const struct asker *asker, const char *name)
{
	for (size_t i = 0; i < asker->names_count && i < ASKER_NAMES; i++)
		if (!strcmp(asker->names[i], name))
			return true;
	return false;
}

void send_read(struct host *host, struct asker *asker, const char *path, const char *name)
{
	*asker = (struct asker){.read.done = on_claim};
	assert_int_equal(host->store->ops->read(host->store, &asker->read, path, name), 0);
	assert_int_equal(asker->times, 0);
}

int read_claim(struct host *host, struct asker *asker, const char *path, const char *name)
{
	send_read(host, asker, path, name);
	WAIT_FOR(asker->times);
	return asker->error;
}

int read_file(struct host *host, struct asker *asker, const char *path)
{
	return read_claim(host, asker, path, NULL);
}

void send_write(struct host *host, struct asker *asker, const char *path, const char *name,
		const char *text, uint32_t version)
{
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(
		host->store->ops->write(host->store, &asker->change, path, name, text, version), 0);
}

int write_claim(struct host *host, const char *path, const char *name, const char *text,
		uint32_t version)
{
	struct asker asker;

	send_write(host, &asker, path, name, text, version);
	WAIT_FOR(asker.times);
	return asker.error;
}

void change_data(struct host *host, const char *path, const char *name, const void *data,
		 size_t bytes)
{
	struct asker asker;
	char *text;

	if (service_has_claims()) {
		backend->change(path, name, data, bytes);
		return;
	}
	text = strndup(bytes > 0 ? data : "", bytes);
	assert_int_equal(read_claim(host, &asker, path, name), 0);
	assert_int_equal(write_claim(host, path, name, text, asker.claim.version), 0);
	free(text);
}

void send_remove(struct host *host, struct asker *asker, const char *path, const char *name)
{
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(host->store->ops->remove(host->store, &asker->change, path, name, 0), 0);
}

int remove_claim(struct host *host, const char *path, const char *name)
{
	struct asker asker;

	send_remove(host, &asker, path, name);
	WAIT_FOR(asker.times);
	return asker.error;
}

void send_files(struct host *host, struct asker *asker, const char *directory)
{
	*asker = (struct asker){.files.done = on_files};
	assert_int_equal(host->store->ops->files(host->store, &asker->files, directory), 0);
	assert_int_equal(asker->times, 0);
}

int list_files(struct host *host, struct asker *asker, const char *directory)
{
	send_files(host, asker, directory);
	WAIT_FOR(asker->times);
	return asker->error;
}

void send_alter(struct host *host, struct asker *asker, const struct store_step *steps,
		size_t count)
{
	struct store_step given[STORE_STEPS_MAX] = {0};
	char *copies[2 * STORE_STEPS_MAX];
	size_t copied = 0;

	for (size_t i = 0; i < count; i++) {
		given[i] = steps[i];
		given[i].path = copies[copied++] = strdup(steps[i].path);
		if (steps[i].text)
			given[i].text = copies[copied++] = strdup(steps[i].text);
	}
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(host->store->ops->alter(host->store, &asker->change, given, count), 0);
	assert_int_equal(asker->times, 0);
	memset(given, 0xff, sizeof(given));
	for (size_t i = 0; i < copied; i++) {
		memset(copies[i], 'x', strlen(copies[i]));
		free(copies[i]);
	}
}

int alter(struct host *host, const struct store_step *steps, size_t count)
{
	struct asker asker;

	send_alter(host, &asker, steps, count);
	WAIT_FOR(asker.times);
	return asker.error;
}

void send_step(struct host *host, struct asker *asker, enum store_step_kind kind, const char *path,
	       const char *text)
{
	send_alter(host, asker, &(struct store_step){kind, path, text, STORE_ANY_VERSION}, 1);
}

int step(struct host *host, enum store_step_kind kind, const char *path, const char *text)
{
	return alter(host, &(struct store_step){kind, path, text, STORE_ANY_VERSION}, 1);
}
