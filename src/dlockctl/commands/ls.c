/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl ls: a line for each lock that anybody holds or waits for.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

static bool wanted(const struct queue *queue, const char *pattern)
{
	return queue->count > 0 &&
	       (pattern == NULL ||
		fnmatch(pattern, queue->name, FNM_PATHNAME | FNM_LEADING_DIR) == 0);
}

static void print_table(const struct queues *queues, const char *pattern,
			const struct context *context)
{
	bool files = false;
	for (size_t i = 0; i < queues->count; i++)
		files = files ||
			(wanted(&queues->list[i], pattern) && queue_has_file(&queues->list[i]));
	const struct column columns[] = {
		{.title = "NAME", .least = 8},
		{.title = "STATE"},
		{.title = "MODE"},
		{.title = "KIND", .hidden = !files},
		{.title = "HOLDER", .least = 12},
		{.title = "SINCE", .right = true},
		{.title = "WAITERS", .right = true},
	};
	struct table table;

	table_begin(&table, columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < queues->count; i++) {
		const struct queue *queue = &queues->list[i];
		if (!wanted(queue, pattern))
			continue;
		const struct claim *holder = queue_holder(queue);
		const struct claim *first = holder != NULL ? holder : &queue->claims[0];
		table_add(&table, text_printable(queue->name), HUE_NONE);
		table_add(&table, must(strdup(claim_state(first))), claim_hue(first));
		table_add(&table, claim_mode_words(first), HUE_NONE);
		table_add(&table, claim_kind(first), HUE_NONE);
		table_add(&table, queue_holders(queue), HUE_NONE);
		table_add(&table, claim_age(first), HUE_NONE);
		table_add(&table, must_format("%zu", queue->waiters),
			  queue->waiters > 0 ? HUE_YELLOW : HUE_NONE);
	}
	table_print(&table, context);
	table_finish(&table);
}

static int print_list(const struct queues *queues, const char *pattern, const char *mount)
{
	json_t *locks = must(json_array());
	for (size_t i = 0; i < queues->count; i++) {
		if (wanted(&queues->list[i], pattern) &&
		    json_array_append_new(locks, queue_json(&queues->list[i])) != 0)
			must(NULL);
	}
	return print_json(must(json_pack("{s:o, s:o}", "mount", text_json(mount), "locks", locks)));
}

int command_ls(struct context *context, int argc, char **argv)
{
	struct place place;
	struct queues queues = {0};

	int status = only_common_options(context, argc, argv, 0, 1);
	if (status >= 0)
		return status;
	const char *pattern = argv[optind];
	status = place_find(context, NULL, &place);
	if (status == 0) {
		int error = tree_queues(place.mount, &queues);
		if (error != 0)
			status = tree_fail(place.mount, "queues", error);
		else if (context->json)
			status = print_list(&queues, pattern, place.shown);
		else
			print_table(&queues, pattern, context);
		int warned = error == 0 ? warn_of_bad_lines(&queues) : 0;
		status = status != 0 ? status : warned;
	}
	queues_finish(&queues);
	place_finish(&place);
	return status;
}
