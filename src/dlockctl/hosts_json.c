/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/hosts_json.h"

#include "dlockctl/dlockctl.h"
#include "dlockctl/output.h"

static json_t *text_or_null(const char *text)
{
	return text != NULL && *text != '\0' ? text_json(text) : must(json_null());
}

static void add_difference(void *context, const char *setting, const char *there, const char *here)
{
	json_t *list = context;

	if (json_array_append_new(
		    list, must(json_pack("{s:o, s:o, s:o}", "setting", text_json(setting), "there",
					 text_or_null(there), "here", text_or_null(here)))) != 0)
		must(NULL);
}

static json_t *host_json(const struct host_store *store, const struct host *host)
{
	json_t *differences = must(json_array());

	if (host_differs(store, host))
		host_each_difference(store, host, add_difference, differences);
	return must(json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:I, s:I, s:o, s:b, s:o}", "host",
		text_json(host->name), "version", text_or_null(host->version), "peers",
		text_or_null(host->peers), "session", text_or_null(host->session), "since",
		host->since >= 0 ? json_integer(host->since) : json_null(), "self", host->is_self,
		"draining", host->drains, "locks", (json_int_t)host->locks, "waiters",
		(json_int_t)host->waiters, "settings", text_or_null(host->hash), "differs",
		host_differs(store, host), "differences", differences));
}

json_t *hosts_json(const struct hosts *hosts, const char *mount)
{
	json_t *stores = must(json_array());

	for (size_t i = 0; i < hosts->count; i++) {
		const struct host_store *store = &hosts->list[i];
		json_t *list = must(json_array());

		for (size_t j = 0; j < store->count; j++) {
			if (json_array_append_new(list, host_json(store, &store->list[j])) != 0)
				must(NULL);
		}
		if (json_array_append_new(
			    stores,
			    must(json_pack(
				    "{s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "prefix",
				    text_json(store->prefix), "store", text_json(store->scheme),
				    "root", text_or_null(store->root), "settings",
				    text_or_null(store->hash), "told", store->is_told, "error",
				    text_or_null(store->error), "hosts", list))) != 0)
			must(NULL);
	}
	return must(json_pack("{s:o, s:o}", "mount", text_json(mount), "stores", stores));
}
