/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl break: takes a claim away, by default the first holder's; or a lock file.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/steer.h"
#include "dlockctl/tree.h"
#include "dlockfs.h"

/* position -1: the first that is held. Returns 0, or tells the error and returns the status. */
static int find(const struct place *place, const struct queue *queue, long long position,
		const struct claim **ret)
{
	const struct claim *found = position < 0 ? queue_holder(queue) : NULL;
	for (size_t i = 0; i < queue->count; i++) {
		if (queue->claims[i].position == position && queue->claims[i].follower == 0)
			found = &queue->claims[i];
	}
	if (found == NULL && position < 0)
		return fail(EX_NOINPUT, "%s: nobody holds it; name a claim with --position",
			    place->name);
	if (found == NULL)
		return fail(EX_NOINPUT, "%s: nobody is at position %lld; expected 1 to %" PRId64,
			    place->name, position, queue->claims[queue->count - 1].position);
	*ret = found;
	return 0;
}

/* "held, exclusive, for 3m12s, of web1:4711 backup"; "for 3m12s, made by web1:4711 mkdir" */
static char *describe(const struct claim *claim)
{
	char *holder = claim_holder(claim), *age = claim_age(claim);
	char *mode = claim_mode_words(claim);
	char *text = claim_is_file(claim)
			     ? must_format("%s%s%smade by %s", age[0] != '\0' ? "for " : "", age,
					   age[0] != '\0' ? ", " : "", holder)
			     : must_format("%s, %s%s%s, of %s", claim_state(claim), mode,
					   age[0] != '\0' ? ", for " : "", age, holder);
	free(holder);
	free(age);
	free(mode);
	return text;
}

struct choice {
	long long position; /* -1: the first that is held */
	bool yes;
};

static int break_claim(const struct place *place, const struct queues *queues, void *data)
{
	const struct choice *choice = data;
	const struct claim *claim = NULL;

	int status = find(place, &queues->list[0], choice->position, &claim);
	if (status != 0)
		return status;
	if (claim->lost) {
		char *holder = claim_holder(claim);
		status = fail(EXIT_NO,
			      "%s: %s has lost it, nobody holds it; its delay ends by itself",
			      place->name, holder);
		free(holder);
		return status;
	}
	char *text = describe(claim), *kind = claim_kind(claim);
	char *what = claim_is_file(claim)
			     ? must(strdup(kind))
			     : must_format("claim at position %" PRId64, claim->position);
	if (!choice->yes) {
		status = fail(EX_USAGE, "%s: would take the %s away (%s); say --yes to do it",
			      place->name, what, text);
	} else {
		status = steer(place, claim, DLOCKFS_IOC_BREAK);
		if (status == 0)
			printf("took the %s away (%s)\n", what, text);
	}
	free(what);
	free(kind);
	free(text);
	return status;
}

int command_break(struct context *context, int argc, char **argv)
{
	enum { OPTION_POSITION = OPTION_OWN, OPTION_YES };
	static const struct option options[] = {
		{"position", required_argument, NULL, OPTION_POSITION},
		{"yes", no_argument, NULL, OPTION_YES},
		COMMON_OPTIONS};
	struct choice choice = {.position = -1};
	int letter, status = -1;

	while (status < 0 && (letter = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (letter == OPTION_YES)
			choice.yes = true;
		else if (letter != OPTION_POSITION)
			status = common_option(context, letter, argv);
		else if (!parse_number(optarg, 1, INT_MAX, &choice.position))
			status = fail(EX_USAGE, "--position %s: is none; expected a number from 1",
				      optarg);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 1, 1);
	return status >= 0 ? status : tree_act(context, argv[optind], break_claim, &choice);
}
