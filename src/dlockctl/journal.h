/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit of a lock in systemd's journal: that of this host, or files of journals. Reads files,
 * which may take a while; asks no daemon.
 *
 * Any user may write into the journal, but not in another one's name: only lines of root, of the
 * users of services, and of the caller count.
 */
#ifndef DLOCKCTL_JOURNAL_H
#define DLOCKCTL_JOURNAL_H

#include <stdbool.h>

#include "dlockctl/grants.h"

/* Whether the file is one of a journal. */
bool journal_is_file(const char *path);

/* Adds the lines that this host's journal has of the lock in the mount, from the end on until
 * grants->limit grants were found. Returns 0; -ENOTSUP, the program knows no journals; -ENOENT,
 * there is none that the caller may read; or another -errno. */
int journal_read_own(const char *mount, struct grants *grants);

/* The same of the files, a NULL behind the last one, whatever mount they are of; of each host all
 * lines count, up to 1,000,000 in all. */
int journal_read_files(const char **paths, struct grants *grants);

#endif
