/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl serve: runs dlockfs-web, a program of its own, which knows what its options mean.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"

#define PROGRAM DLOCKFS_LIBEXECDIR "/dlockfs-web"

enum { OPTION_LISTEN = OPTION_OWN, OPTION_HOST, OPTION_RED };

int command_serve(struct context *context, int argc, char **argv)
{
	static const struct option options[] = {{"listen", required_argument, NULL, OPTION_LISTEN},
						{"host", required_argument, NULL, OPTION_HOST},
						{"red", required_argument, NULL, OPTION_RED},
						COMMON_OPTIONS};
	char **words = must(calloc((size_t)argc + 3, sizeof(*words)));
	int letter, status = -1;

	while (status < 0 && (letter = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (letter < OPTION_OWN)
			status = common_option(context, letter, argv);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 0, 0);
	if (status < 0) {
		char **word = words;

		*word++ = argv[0];
		if (context->mount != NULL) {
			*word++ = must(strdup("--mount"));
			*word++ = must(strdup(context->mount));
		}
		memcpy(word, argv + 1, (size_t)(argc - 1) * sizeof(*word));
		execv(PROGRAM, words);
		status = fail(EX_UNAVAILABLE,
			      "serve: " PROGRAM ": %s; expected the package dlockfs-web",
			      strerror(errno));
	}
	free(words);
	return status;
}
