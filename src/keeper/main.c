/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockfs-keeper: what outlives the container of a daemon, so that the next one goes on with the
 * mount and all locks. One program for both sides, the keeper and the parent of the daemon.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "keeper/keep.h"
#include "keeper/report.h"
#include "keeper/run.h"

#define SOCKET "/run/dlockfs-keeper/socket"

static const char usage[] =
	"Usage: dlockfs-keeper [--socket PATH] keep\n"
	"       dlockfs-keeper [--socket PATH] run COMMAND [ARGUMENT...]\n"
	"Keeps the mount and the locks of a dlockfs daemon while its container is replaced.\n"
	"\n"
	"  keep           hold what a daemon leaves, for the next one\n"
	"  run            run a daemon, such as \"dlockfs --foreground ...\", with what is held\n"
	"\n"
	"  --socket PATH  where the keeper listens, default: " SOCKET "\n"
	"  --help         print this, and end\n"
	"  --version      print the version, and end\n";

static int refuse(const char *what, const char *word)
{
	report("%s \"%s\", expected keep or run; see --help", what, word);
	return EX_USAGE;
}

static int begin(const char *path, char **words)
{
	if (words[0] == NULL) {
		report("no command, expected keep or run; see --help");
		return EX_USAGE;
	}
	if (strcmp(words[0], "keep") == 0) {
		if (words[1] != NULL)
			return refuse("unexpected behind keep:", words[1]);
		int error = keep_run(path);
		report("%s: %s", path,
		       error == -EEXIST ? "is there, and is no socket" : strerror(-error));
		return EXIT_FAILURE;
	}
	if (strcmp(words[0], "run") != 0)
		return refuse("unknown command", words[0]);
	words += words[1] != NULL && strcmp(words[1], "--") == 0 ? 2 : 1;
	if (words[0] == NULL) {
		report("no command behind run, expected that of a daemon; see --help");
		return EX_USAGE;
	}
	return run_command(path, words);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	const char *path = SOCKET;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", options, NULL)) >= 0) {
		switch (option) {
		case 's':
			path = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		case 'v':
			puts("dlockfs-keeper " DLOCKFS_VERSION);
			return EXIT_SUCCESS;
		default:
			report("%s: %s; see --help", argv[optind - 1],
			       option == ':' ? "expected a path behind it" : "unknown option");
			return EX_USAGE;
		}
	}
	return begin(path, argv + optind);
}
