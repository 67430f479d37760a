/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl hosts: a line for each host of the mount's stores.
 */
#include "dlockctl/hosts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/hosts_json.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

static char *age(const struct host *host)
{
	int64_t now = (int64_t)time(NULL);
	char text[TEXT_AGE_BYTES] = "";

	if (host->since >= 0)
		text_age(host->since < now ? now - host->since : 0, text);
	return must(strdup(text));
}

static void add_row(struct table *table, const struct host_store *store, const struct host *host)
{
	bool differs = host_differs(store, host);

	table_add(table, text_printable(host->name), host->is_self ? HUE_BOLD : HUE_NONE);
	table_add(table, text_printable(store->prefix), HUE_NONE);
	table_add(table, text_printable(host->version), HUE_NONE);
	table_add(table, text_printable(host->peers), HUE_NONE);
	table_add(table, age(host), HUE_NONE);
	table_add(table, must_format("%zu", host->locks), HUE_NONE);
	table_add(table, must_format("%zu", host->waiters), HUE_NONE);
	table_add(table, must(strdup(host->drains ? "drains" : "")), HUE_YELLOW);
	table_add(table, must(strdup(differs ? "differ" : "same")),
		  differs ? HUE_YELLOW : HUE_GREEN);
}

/* Two hosts in words, printable. */
struct compared {
	const char *host, *with;
};

static void print_difference(void *context, const char *setting, const char *there,
			     const char *here)
{
	const struct compared *compared = context;
	char *name = text_printable(setting);
	char *value = text_printable(there != NULL ? there : "not set");
	char *own = text_printable(here != NULL ? here : "not set");

	printf("%s: %s is %s, %s %s\n", compared->host, name, value, compared->with, own);
	free(own);
	free(value);
	free(name);
}

static void print_differences(const struct host_store *store)
{
	const struct host *base = host_store_base(store);
	bool is_other = base != NULL && !base->is_self;
	char *with = must(is_other ? must_format("%s has", base->name) : strdup("here"));
	char *printable = text_printable(with);

	for (size_t i = 0; i < store->count; i++) {
		const struct host *host = &store->list[i];
		char *name = text_printable(host->name);
		struct compared compared = {name, printable};

		if (host_differs(store, host))
			host_each_difference(store, host, print_difference, &compared);
		free(name);
	}
	free(printable);
	free(with);
}

static bool is_any_draining(const struct hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++) {
		for (size_t j = 0; j < hosts->list[i].count; j++) {
			if (hosts->list[i].list[j].drains)
				return true;
		}
	}
	return false;
}

static void print_table(const struct hosts *hosts, const struct context *context)
{
	const struct column columns[] = {
		{.title = "HOST", .least = 8},
		{.title = "STORE", .least = 8, .hidden = hosts->count < 2},
		{.title = "VERSION"},
		{.title = "PEERS", .least = 8},
		{.title = "SINCE", .right = true},
		{.title = "LOCKS", .right = true},
		{.title = "WAITERS", .right = true},
		{.title = "STATE", .hidden = !is_any_draining(hosts)},
		{.title = "SETTINGS"},
	};
	struct table table;

	table_begin(&table, columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < hosts->count; i++) {
		for (size_t j = 0; j < hosts->list[i].count; j++)
			add_row(&table, &hosts->list[i], &hosts->list[i].list[j]);
	}
	table_print(&table, context);
	table_finish(&table);
	for (size_t i = 0; i < hosts->count; i++)
		print_differences(&hosts->list[i]);
}

/* Tells of which stores no hosts are shown. Returns the status. */
static int warn_of_untold(const struct hosts *hosts)
{
	int status = 0;

	for (size_t i = 0; i < hosts->count; i++) {
		const struct host_store *store = &hosts->list[i];
		char *words = host_store_words(store), *printable = text_printable(words);

		if (store->error[0] != '\0')
			status = fail(EXIT_NO_ANSWER,
				      "%s: which hosts it has cannot be found out now (%s); see: "
				      "dlockctl doctor",
				      printable, store->error);
		else if (!store->is_told && strcmp(store->scheme, "local") == 0)
			fail(0, "local: its locks are of this host only, so it has no other hosts");
		else if (!store->is_told)
			fail(0, "%s: this store does not tell which hosts it has", printable);
		free(printable);
		free(words);
	}
	return status;
}

int command_hosts(struct context *context, int argc, char **argv)
{
	struct queues queues = {0};
	struct hosts hosts = {0};
	struct place place;

	int status = only_common_options(context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	status = place_find(context, NULL, &place);
	if (status == 0) {
		int error = hosts_read(place.mount, &hosts);

		if (error == 0)
			error = tree_queues(place.mount, &queues);
		hosts_count(&hosts, &queues);
		if (error != 0)
			status = tree_fail(place.mount, "hosts", error);
		else if (context->json)
			status = print_json(hosts_json(&hosts, place.shown));
		else
			print_table(&hosts, context);
		int warned = error == 0 ? warn_of_untold(&hosts) : 0;
		status = status != 0 ? status : warned;
	}
	queues_finish(&queues);
	hosts_finish(&hosts);
	place_finish(&place);
	return status;
}
