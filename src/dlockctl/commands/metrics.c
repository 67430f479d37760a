/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl metrics: what a daemon counts, for a program that collects it; also when there is no
 * daemon that could say so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/mount.h"
#include "dlockctl/probe.h"
#include "dlockctl/tree.h"

/* As fs/files/metrics.c says it of a daemon that answers. */
static void print_down(void)
{
	printf("# HELP dlockfs_up Whether the daemon answers.\n"
	       "# TYPE dlockfs_up gauge\n"
	       "dlockfs_up 0\n"
	       "# HELP dlockfs_sample_time_seconds When these numbers were read, in seconds since "
	       "1970.\n"
	       "# TYPE dlockfs_sample_time_seconds gauge\n"
	       "dlockfs_sample_time_seconds %lld.000\n",
	       (long long)time(NULL));
}

/* Whether what was found says that nobody serves the mount. */
static bool is_down(const struct probe *probe)
{
	return !probe->file_answered || status_of_errno(probe->file_error) == EXIT_NO_MOUNT;
}

static int print_metrics(const char *mount)
{
	struct probe probe;
	int status = 0, error = probe_mount(mount, "metrics", &probe);

	if (error != 0)
		return fail(EX_OSERR, "metrics: no process can be started: %s; end other programs",
			    strerror(-error));
	if (is_down(&probe))
		print_down();
	else if (probe.file_error != 0)
		status = tree_fail(mount, "metrics", probe.file_error);
	else
		fputs(probe.text, stdout);
	free(probe.text);
	return status;
}

int command_metrics(struct context *context, int argc, char **argv)
{
	struct place place;

	int status = only_common_options(context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	status = place_find(context, NULL, &place);
	if (status == 0)
		status = print_metrics(place.mount);
	else if (status == EXIT_NO_MOUNT) {
		print_down();
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
