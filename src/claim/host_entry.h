/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host says of itself to those who look at a store: the text of a file that ends with the
 * host's session (STEP_TAKE of stores/store.h), by a path of its own, so that it stands in no
 * queue:
 *
 *     host=web1 version=0.9.0 pid=4711 peers=10.0.0.7:7263 settings=2f0c6a4be1d37a55
 *     setting=[store]%20session_timeout=15s
 *     setting=[locks%20"job-*"]%20slots=4
 *
 *   host      version, pid: of its daemon
 *   peers     where the daemon listens to others; left out: it does not
 *   draining  yes: the host grants nothing new (engine_drain()); else left out
 *   settings  a number that differs if any of the settings does which have to be alike on all hosts
 *             (config/alike.h)
 *   setting   one of these, a line each, as many as have room; the last line is "more=yes" if not
 *             all have
 *
 * Anybody who can write to the store can write there: lines in another form count as not there.
 * Values are encoded as base/escape.h says. The name of the file is the number of the
 * session, and what makes it unlike the name of any claim.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_CLAIM_HOST_ENTRY_H
#define DLOCKFS_CLAIM_HOST_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where all such files are: a directory as claim/file_path.h has it. */
#define HOST_ENTRY_DIRECTORY ".dlockfs/hosts"

/* With its NUL. */
#define HOST_ENTRY_PATH_BYTES 64

/* The longest text that is written; of one that is read no more counts. */
#define HOST_ENTRY_BYTES 4096

/* Writes the path of the file of a session. */
void host_entry_path(char path[HOST_ENTRY_PATH_BYTES], uint64_t session);

/* Moves *text behind its next line that is in the form above, whose bytes are printable ASCII.
 * Returns the line, which no NUL ends; NULL: there is none. */
const char *host_entry_next(const char **text, const char *end, size_t *ret_bytes);

#endif
