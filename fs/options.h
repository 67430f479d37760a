/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line, as a person writes it, and as mount(8) does: by mount.fuse3 (SOURCE MOUNTPOINT
 * -o ...), or by calling this program under the name mount.fuse.dlockfs, with -n, -s, -t TYPE, and
 * -f for "do not mount".
 */
#ifndef DLOCKFS_OPTIONS_H
#define DLOCKFS_OPTIONS_H

#include <fuse_opt.h>
#include <stdbool.h>

#include "config/config.h"

struct options {
	char *mountpoint;
	bool foreground;
	bool nonempty;	   /* the mount point may have something in it */
	bool auto_unmount; /* nothing stays mounted when the daemon dies */
	char *fuse; /* options for FUSE and the kernel, "a,b=c", commas escaped; NULL for none */
	struct setting *settings; /* what is said of keys and mount options */
	size_t setting_count;
	bool requires_url;     /* local: is not taken for granted */
	bool has_default_file; /* the usual configuration file was there */
};

/* What the command line asks for. */
enum options_action {
	OPTIONS_RUN,
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_CHECK, /* the configuration is right; do not mount */
	OPTIONS_ASK    /* the same, and how each server is */
};

/* Reads the command line, then the configuration file, and puts both into *config (initialised):
 * defaults, then the file, then the command line. Returns 0; or -errno and one line in `why`.
 * options_finish() frees *options in any case. */
int options_parse(struct options *options, struct config *config, int argc, char **argv,
		  enum options_action *ret_action, char *why, size_t why_bytes);

/* Reads the configuration file anew, and puts what the command line says over it, into *config
 * (initialised). Returns 0; or -errno and one line in `why`. Reads a file, which may block. */
int options_configure(struct options *options, struct config *config, char *why, size_t why_bytes);

/* After options_parse() found an error in the file: puts a text that another file had, and what the
 * command line says over it, into *config, whatever *config has. Returns 0; or -errno, and *config
 * is as it was. What that text may leave out is not asked again. */
int options_use(struct options *options, struct config *config, const char *text, size_t bytes);

/* The file that the configuration was read from, or NULL. */
const char *options_config_file(const struct options *options);

void options_finish(struct options *options);

/* Writes what `--help` prints. */
void options_help(FILE *out);

#endif
