/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "dlockctl/dlockctl.h"

const char common_help[] =
	"  --mount DIR             the mount, if there are several\n"
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

int common_option(struct context *context, int letter, char **argv)
{
	switch (letter) {
	case OPTION_MOUNT:
		context->mount = optarg;
		return -1;
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
