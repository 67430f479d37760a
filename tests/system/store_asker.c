/* SPDX-License-Identifier: Apache-2.0
 *
 * See store_asker.h.
 */
#include "store_asker.h"

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	struct asker *asker = (struct asker *)look;

	asker->times++;
	asker->error = error;
	asker->names_count = names_count;
	asker->claims = entries_count;
	for (size_t i = 0; i < names_count && i < 8; i++)
		snprintf(asker->names[i], sizeof(asker->names[i]), "%s", names[i]);
	for (size_t i = 1; i < entries_count; i++)
		assert_true(claim_name_compare(entries[i - 1].claim.order, entries[i - 1].name,
					       entries[i].claim.order, entries[i].name) < 0);
}

static void on_claim(struct store_read *read, int error, const struct store_claim *claim)
{
	struct asker *asker = (struct asker *)read;

	asker->times++;
	asker->error = error;
	assert_int_equal(error != 0, claim == NULL);
	if (!claim)
		return;
	asker->claim = *claim;
	asker->data = malloc(claim->data_bytes + 1);
	memcpy(asker->data, claim->data, claim->data_bytes);
	asker->data[claim->data_bytes] = '\0';
}

static void on_changed(struct store_change *change, int error)
{
	struct asker *asker = (struct asker *)change;

	asker->times++;
	asker->error = error;
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
	for (size_t i = 0; i < asker->names_count; i++)
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

void send_remove(struct host *host, struct asker *asker, const char *path, const char *name)
{
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(host->store->ops->remove(host->store, &asker->change, path, name), 0);
}

int remove_claim(struct host *host, const char *path, const char *name)
{
	struct asker asker;

	send_remove(host, &asker, path, name);
	WAIT_FOR(asker.times);
	return asker.error;
}
