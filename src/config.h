/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: built-in defaults, then the INI file, then options of the command line.
 *
 * The table in config.c is the one list of keys: the parser, `-o key=value`, the check of
 * etc/dlockfs.ini and the generated key list of the documentation all read it.
 *
 * Sections: [mount], [store], [locks] for all locks and [locks "pattern"] for those whose path
 * matches the fnmatch(3) pattern with FNM_PATHNAME | FNM_PERIOD off; for each key the last section in the file
 * that matches and sets it wins.
 *
 * Not thread-safe; used before the loop starts, read-only after.
 */
#ifndef DLOCKFS_CONFIG_H
#define DLOCKFS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "store_url.h"

#define CONFIG_FOREVER INT64_MAX

/* What may differ from lock to lock. */
struct lock_policy {
	int64_t wait_limit_ms;	 /* a blocking call fails with ENOLCK after so long without the store;
				    CONFIG_FOREVER: it waits */
	int64_t try_limit_ms;	 /* a non-blocking call fails with ENOLCK after so long undecided */
	int64_t linger_ms;	 /* an interrupted waiter's place is kept so long for a restarted call */
};

struct config_section; /* one [locks "pattern"] */

struct config {
	/* [mount] */
	mode_t mode;		   /* of the root directory; 0777 */
	int64_t idle_ms;	   /* an unused name disappears after so long; 60s */
	char **directories;	   /* made at start, NULL-terminated, may be NULL */
	bool allow_other;	   /* other users may use the mount; yes */
	/* [store] */
	struct store_url store;	   /* local: */
	int64_t session_timeout_ms; /* asked of the store; 15s */
	/* [locks] and [locks "pattern"], in the file's order */
	struct config_section *sections;
	size_t section_count;
};

/* Fills in the defaults. Returns 0 or -ENOMEM. */
int config_init(struct config *config);

/* Frees what the configuration owns. */
void config_finish(struct config *config);

/* Reads an INI file over what is there. Returns 0, or -errno (-EINVAL: what is written is wrong) and
 * in `why` one line "file:line: what, expected what". */
int config_read(struct config *config, const char *file, char *why, size_t why_bytes);

/* Sets one key as `-o key=value` does; the keys of [locks] then count for all locks, after the file. Returns 0;
 * -ENOENT if there is no such key; -EINVAL with one line in `why`; -ENOMEM. */
int config_set(struct config *config, const char *key, const char *value, char *why, size_t why_bytes);

/* What holds for the lock at `path`. */
struct lock_policy config_policy(const struct config *config, const char *path);

/* Writes every key, its section, default, range and meaning: what `--help` and the tests print. */
void config_describe(FILE *out);

#endif
