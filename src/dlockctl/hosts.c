/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

static const char store_key[] = "store=", host_key[] = "session=", setting_key[] = "setting=";

static bool begins(const char *line, const char *key)
{
	return strncmp(line, key, strlen(key)) == 0;
}

/* The value that the line begins with. */
static char *first_word(const char *line, const char *key)
{
	const char *value = line + strlen(key);

	return text_decode(value, strcspn(value, " "));
}

static char *word(const char *line, const char *key)
{
	char *encoded = tree_word(line, key);
	char *decoded = text_decode(encoded, strlen(encoded));

	free(encoded);
	return decoded;
}

static bool says(const char *line, const char *key, const char *value)
{
	char *text = word(line, key);
	bool same = strcmp(text, value) == 0;

	free(text);
	return same;
}

static void add_store(struct hosts *hosts, const char *line)
{
	hosts->list = must(reallocarray(hosts->list, hosts->count + 1, sizeof(*hosts->list)));
	hosts->list[hosts->count++] = (struct host_store){
		.scheme = first_word(line, store_key),
		.root = word(line, "root"),
		.prefix = word(line, "prefix"),
		.hash = word(line, "settings"),
		.error = word(line, "error"),
		.is_told = !says(line, "told", "no"),
	};
}

static void add_host(struct host_store *store, const char *line)
{
	char *since = tree_word(line, "since");
	long long number;

	store->list = must(reallocarray(store->list, store->count + 1, sizeof(*store->list)));
	store->list[store->count++] = (struct host){
		.session = first_word(line, host_key),
		.name = word(line, "host"),
		.version = word(line, "version"),
		.peers = word(line, "peers"),
		.hash = word(line, "settings"),
		.since = parse_number(since, 0, INT64_MAX, &number) ? number : -1,
		.is_self = says(line, "self", "yes"),
		.drains = says(line, "draining", "yes"),
	};
	free(since);
}

static void add_setting(struct host *host, const char *line)
{
	host->settings = must(
		reallocarray(host->settings, host->settings_count + 1, sizeof(*host->settings)));
	host->settings[host->settings_count++] = first_word(line, setting_key);
}

static void add_line(struct hosts *hosts, const char *line)
{
	struct host_store *store = hosts->count > 0 ? &hosts->list[hosts->count - 1] : NULL;
	struct host *host =
		store != NULL && store->count > 0 ? &store->list[store->count - 1] : NULL;

	if (begins(line, store_key))
		add_store(hosts, line);
	else if (store != NULL && begins(line, host_key))
		add_host(store, line);
	else if (host != NULL && begins(line, setting_key))
		add_setting(host, line);
	else if (host != NULL && strcmp(line, "more=yes") == 0)
		host->has_more = true;
}

static int compare_names(const void *a, const void *b)
{
	const struct host *first = a, *second = b;

	return strcmp(first->name, second->name);
}

int hosts_read(const char *mount, struct hosts *hosts)
{
	char *text = NULL, *rest, *line;
	size_t bytes;
	int error = tree_read(mount, "hosts", &text, &bytes);

	*hosts = (struct hosts){0};
	rest = error == 0 ? text : NULL;
	while ((line = strsep(&rest, "\n")) != NULL)
		add_line(hosts, line);
	for (size_t i = 0; i < hosts->count; i++) {
		struct host_store *store = &hosts->list[i];
		if (store->count > 0)
			qsort(store->list, store->count, sizeof(*store->list), compare_names);
	}
	free(text);
	return error;
}

static void free_host(struct host *host)
{
	for (size_t i = 0; i < host->settings_count; i++)
		free(host->settings[i]);
	free(host->settings);
	free(host->name);
	free(host->version);
	free(host->peers);
	free(host->session);
	free(host->hash);
}

void hosts_finish(struct hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++) {
		struct host_store *store = &hosts->list[i];

		for (size_t j = 0; j < store->count; j++)
			free_host(&store->list[j]);
		free(store->list);
		free(store->scheme);
		free(store->root);
		free(store->prefix);
		free(store->hash);
		free(store->error);
	}
	free(hosts->list);
}

static int compare_sessions(const void *a, const void *b)
{
	const struct host *const *first = a, *const *second = b;

	return strcmp((*first)->session, (*second)->session);
}

/* All hosts, by their sessions. */
static struct host **sort_hosts(const struct hosts *hosts, size_t *ret_count)
{
	struct host **sorted;
	size_t count = 0;

	for (size_t i = 0; i < hosts->count; i++)
		count += hosts->list[i].count;
	sorted = must(calloc(count + 1, sizeof(*sorted)));
	*ret_count = 0;
	for (size_t i = 0; i < hosts->count; i++) {
		for (size_t j = 0; j < hosts->list[i].count; j++)
			sorted[(*ret_count)++] = &hosts->list[i].list[j];
	}
	qsort(sorted, count, sizeof(*sorted), compare_sessions);
	return sorted;
}

void hosts_count(struct hosts *hosts, const struct queues *queues)
{
	size_t count;
	struct host **sorted = sort_hosts(hosts, &count);

	for (size_t i = 0; i < queues->count; i++) {
		for (size_t j = 0; j < queues->list[i].count; j++) {
			const struct claim *claim = &queues->list[i].claims[j];
			struct host wanted = {.session = claim->session}, *key = &wanted, **found;

			if (claim->session == NULL || claim_is_file(claim))
				continue;
			found = bsearch(&key, sorted, count, sizeof(*sorted), compare_sessions);
			if (found == NULL)
				continue;
			(*found)->locks += claim->held;
			(*found)->waiters +=
				!claim->held && !claim->kept && !claim->resting && !claim->lost;
		}
	}
	free(sorted);
}

const struct host *host_store_self(const struct host_store *store)
{
	for (size_t i = 0; i < store->count; i++) {
		if (store->list[i].is_self)
			return &store->list[i];
	}
	return NULL;
}

const struct host *host_store_base(const struct host_store *store)
{
	return store->hash[0] != '\0' || store->count == 0 ? host_store_self(store)
							   : &store->list[0];
}

bool host_differs(const struct host_store *store, const struct host *host)
{
	const struct host *base = store->hash[0] == '\0' ? host_store_base(store) : NULL;

	return strcmp(host->hash, base != NULL ? base->hash : store->hash) != 0;
}

/* How long the name of the setting is, which no value has a part of. */
static size_t name_bytes(const char *setting)
{
	const char *value = strrchr(setting, '=');

	return value != NULL ? (size_t)(value - setting) : strlen(setting);
}

static const char *value_of(const char *setting)
{
	return setting[name_bytes(setting)] == '=' ? setting + name_bytes(setting) + 1 : "";
}

/* The value of the setting of that name; NULL: the host has none. */
static const char *find_value(const struct host *host, const char *setting)
{
	size_t bytes = name_bytes(setting);

	for (size_t i = 0; i < host->settings_count; i++) {
		const char *other = host->settings[i];
		if (name_bytes(other) == bytes && memcmp(other, setting, bytes) == 0)
			return value_of(other);
	}
	return NULL;
}

void host_each_difference(const struct host_store *store, const struct host *host,
			  void (*say)(void *context, const char *setting, const char *there,
				      const char *here),
			  void *context)
{
	const struct host *self = host_store_base(store);

	for (size_t i = 0; self != NULL && i < host->settings_count; i++) {
		const char *setting = host->settings[i];
		const char *here = find_value(self, setting);
		char *name = must(strndup(setting, name_bytes(setting)));

		if (here == NULL ? !self->has_more : strcmp(here, value_of(setting)) != 0)
			say(context, name, value_of(setting), here);
		free(name);
	}
	for (size_t i = 0; self != NULL && i < self->settings_count; i++) {
		const char *setting = self->settings[i];
		char *name = must(strndup(setting, name_bytes(setting)));

		if (!host->has_more && find_value(host, setting) == NULL)
			say(context, name, NULL, value_of(setting));
		free(name);
	}
}

char *host_store_words(const struct host_store *store)
{
	return must_format("%s%s%s", store->scheme, store->root[0] != '\0' ? " " : "", store->root);
}
