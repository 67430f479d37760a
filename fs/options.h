/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line, as a person writes it and as mount(8) does (mount.fuse3: SOURCE MOUNTPOINT -o
 * ...).
 */
#ifndef DLOCKFS_OPTIONS_H
#define DLOCKFS_OPTIONS_H

#include <fuse_opt.h>
#include <stdbool.h>

#include "config.h"

struct options {
	char *mountpoint;
	bool foreground;
	bool verbose;
	char *fuse; /* options for FUSE and the kernel, "a,b=c", commas escaped; NULL for none */
};

/* What the command line asks for besides running. */
enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

/* Reads the command line, then the configuration file, and puts both into *config (initialised):
 * defaults, then the file, then the command line. Returns 0; or -errno and one line in `why`.
 * options_finish() frees *options in any case. */
int options_parse(struct options *options, struct config *config, int argc, char **argv,
		  enum options_action *ret_action, char *why, size_t why_bytes);

void options_finish(struct options *options);

/* Writes what `--help` prints. */
void options_help(FILE *out);

#endif
