/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl metrics: what a daemon counts, for a program that collects it; also when there is no
 * daemon that could say so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/commands/metrics_locks.h"
#include "dlockctl/metrics.h"
#include "dlockctl/mount.h"
#include "dlockctl/probe.h"
#include "dlockctl/tree.h"

static int print_metrics(const char *mount, bool locks)
{
	struct probe probe;
	int status = 0, error = probe_mount(mount, "metrics", &probe);

	if (error != 0)
		return fail(EX_OSERR, "metrics: no process can be started: %s; end other programs",
			    strerror(-error));
	if (metrics_is_down(&probe))
		metrics_down_write(stdout);
	else if (probe.file_error != 0)
		status = tree_fail(mount, "metrics", probe.file_error);
	else
		fputs(probe.text, stdout);
	if (status == 0 && locks && !metrics_is_down(&probe))
		status = metrics_locks_print(mount);
	free(probe.text);
	return status;
}

enum { OPTION_LOCKS = OPTION_OWN };

static const struct option long_options[] = {{"locks", no_argument, NULL, OPTION_LOCKS},
					     COMMON_OPTIONS};

int command_metrics(struct context *context, int argc, char **argv)
{
	struct place place;
	bool locks = false;
	int letter, status = -1;

	while (status < 0 && (letter = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
		if (letter == OPTION_LOCKS)
			locks = true;
		else
			status = common_option(context, letter, argv);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	status = place_find(context, NULL, &place);
	if (status == 0)
		status = print_metrics(place.mount, locks);
	else if (status == EXIT_NO_MOUNT) {
		metrics_down_write(stdout);
		status = 0;
	}
	place_finish(&place);
	if (status == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		return fail(EXIT_NO_ANSWER,
			    "metrics: cannot be written: %s; expected a file with "
			    "room, or a pipe that is read",
			    strerror(errno));
	return status;
}
