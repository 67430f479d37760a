/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "dlockctl/dlockctl.h"

const char common_help[] =
	"  --mount DIR             the mount, if there are several\n"
	"  --store URL             ls, show, hosts and graph: the locks of that store, without a "
	"mount\n"
	"  --config FILE           likewise: as the daemon's FILE says, which names its "
	"credentials\n"
	"  --json                  JSON instead of text, where anything is listed\n"
	"  --wide                  full values, also where the terminal is narrower\n"
	"  --color WHEN            auto (on a terminal, unless NO_COLOR is set), always or never\n"
	"  -h, --help              print this; behind a command, its own options\n";

static void help(const struct command *command)
{
	printf("Usage: dlockctl %s %s\n\n%s.\n", command->name, command->usage, command->help);
	if (command->more != NULL)
		printf("\n%s", command->more);
	printf("\nOptions of all commands:\n%s", common_help);
}

static int set_color(struct context *context, const char *when)
{
	static const char *const words[] = {
		[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(words[i], when) == 0) {
			context->color = (enum color)i;
			return -1;
		}
	}
	return fail(EX_USAGE, "--color %s: no such word; expected auto, always or never", when);
}

static int bad_option(int letter, char **argv)
{
	const char *word = argv[optind - 1];
	char short_option[] = {'-', (char)optopt, '\0'};
	bool is_short = optopt > 0 && optopt < 256 && strncmp(word, "--", 2) != 0;
	return fail(EX_USAGE, "%s: %s; see --help", is_short ? short_option : word,
		    letter == ':' ? "has no argument" : "is no option");
}

bool is_of_store(const struct context *context)
{
	return context->store != NULL || context->config != NULL;
}

/* Whether the command only looks at the locks, for which a store will do. */
static bool only_looks(const char *command)
{
	static const char *const names[] = {"ls", "show", "hosts", "graph"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(names[i], command) == 0)
			return true;
	}
	return false;
}

int check_store_options(const struct context *context)
{
	if (!is_of_store(context) || context->command == NULL)
		return -1;
	if (!only_looks(context->command->name))
		return fail(EX_USAGE,
			    "%s: needs a mount; expected --store and --config with ls, show, hosts "
			    "or graph only",
			    context->command->name);
	if (context->mount != NULL)
		return fail(EX_USAGE, "--mount: there is --store or --config, too; expected one of "
				      "a mount and a store");
	if (context->store != NULL && strncmp(context->store, "local:", strlen("local:")) == 0)
		return fail(EX_USAGE, "--store local: its locks are of this host's mount; expected "
				      "zookeeper://, etcd:// or redis://");
	return -1;
}

int common_option(struct context *context, int letter, char **argv)
{
	switch (letter) {
	case OPTION_MOUNT:
		context->mount = optarg;
		return check_store_options(context);
	case OPTION_STORE:
		context->store = optarg;
		return check_store_options(context);
	case OPTION_CONFIG:
		context->config = optarg;
		return check_store_options(context);
	case OPTION_JSON:
		context->json = true;
		return -1;
	case OPTION_WIDE:
		context->wide = true;
		return -1;
	case OPTION_COLOR:
		return set_color(context, optarg);
	case 'h':
		help(context->command);
		return 0;
	default:
		return bad_option(letter, argv);
	}
}

int check_words(const struct context *context, int argc, char **argv, int least, int most)
{
	int words = argc - optind;
	if (words < least)
		return fail(EX_USAGE, "%s: a word is missing; expected: dlockctl %s %s", argv[0],
			    argv[0], context->command->usage);
	if (words > most)
		return fail(EX_USAGE, "%s: one word too many: %s; expected: dlockctl %s %s",
			    argv[0], argv[optind + most], argv[0], context->command->usage);
	return -1;
}

int only_common_options(struct context *context, int argc, char **argv, int least, int most)
{
	static const struct option options[] = {COMMON_OPTIONS};
	int letter, status = -1;
	while (status < 0 && (letter = getopt_long(argc, argv, ":h", options, NULL)) != -1)
		status = common_option(context, letter, argv);
	return status >= 0 ? status : check_words(context, argc, argv, least, most);
}
