/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl show: the whole queue of a lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

static void print_table(const struct queue *queue, const struct context *context)
{
	bool narrow = output_width(context, STDOUT_FILENO) > 0, ranges = false, delays = false;
	bool targets = false;
	for (size_t i = 0; i < queue->count; i++) {
		ranges = ranges || queue->claims[i].ranges != NULL;
		targets = targets || queue->claims[i].target != NULL;
		delays = delays || queue->claims[i].delay_until >= 0;
	}
	const struct column columns[] = {
		{.title = "POS", .right = true},
		{.title = "STATE"},
		{.title = "MODE"},
		{.title = "KIND"},
		{.title = "TARGET", .least = 8, .hidden = !targets},
		{.title = "HOST", .least = 8},
		{.title = "PID", .right = true},
		{.title = "USER", .least = 4},
		{.title = "COMMAND", .least = 7},
		{.title = "SINCE", .right = true},
		{.title = "DELAY", .right = true, .hidden = !delays},
		{.title = "RANGES", .least = 6, .hidden = !ranges},
		{.title = "CLIENT", .hidden = narrow},
		{.title = "SESSION", .hidden = narrow},
		{.title = "CLAIM", .hidden = narrow},
	};
	struct table table;

	table_begin(&table, columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < queue->count; i++) {
		const struct claim *claim = &queue->claims[i];
		table_add(&table, claim_position(claim), HUE_NONE);
		table_add(&table, must(strdup(claim_state(claim))), claim_hue(claim));
		table_add(&table, claim_mode_words(claim), HUE_NONE);
		table_add(&table, claim_kind(claim), HUE_NONE);
		table_add(&table, text_printable(claim->target), HUE_NONE);
		table_add(&table, claim_host(claim), HUE_NONE);
		table_add(&table, claim_pid(claim), HUE_NONE);
		table_add(&table, claim_user(claim), HUE_NONE);
		table_add(&table, claim_command(claim), HUE_NONE);
		table_add(&table, claim_age(claim), HUE_NONE);
		table_add(&table, claim_delay(claim), HUE_NONE);
		table_add(&table, text_printable(claim->ranges), HUE_NONE);
		table_add(&table, text_printable(claim->client), HUE_NONE);
		table_add(&table, text_printable(claim->session), HUE_NONE);
		table_add(&table, text_printable(claim->claim), HUE_NONE);
	}
	table_print(&table, context);
	table_finish(&table);
}

static int show(const struct place *place, const struct queues *queues, void *data)
{
	const struct context *context = data;
	const struct queue *queue = &queues->list[0];
	int status = 0;

	if (context->json)
		status = print_json(must(json_pack("{s:o, s:[o]}", "mount", text_json(place->shown),
						   "locks", queue_json(queue))));
	else
		print_table(queue, context);
	warn_of_bad_lines(queues);
	return status;
}

int command_show(struct context *context, int argc, char **argv)
{
	int status = only_common_options(context, argc, argv, 1, 1);
	return status >= 0 ? status : tree_act(context, argv[optind], show, context);
}
