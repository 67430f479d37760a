/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of a job that a lock guards: the text of a file that the store keeps (STEP_KEEP of
 * stores/store.h), by a path of its own, so that it stands in no queue. A line for each run, the
 * latest last:
 *
 *     start=1795305254123 took=50 every=60000 status=0 token=4711 uid=0 host=web1 key=2026-11-29
 *
 *   start   when it began, in milliseconds since 1970, by the servers' clock where they have one;
 *           else by that of its host
 *   took    how long it was under way, in milliseconds of its host's clock
 *   every   the period of the job, in milliseconds; left out: it has none
 *   status  the exit status of its command; 0: it has succeeded
 *   token   its fencing token
 *   uid     who ran it, on which host
 *   host
 *   key     what it was for; left out: nothing in particular
 *
 * Anybody who can write to the store can write there. So lines that are not in this form, and all
 * but the last RUNS_MAX of the others, count as not there. Unknown keys are skipped. host and key
 * are encoded as base/escape.h says.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_CLAIM_RUNS_H
#define DLOCKFS_CLAIM_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* So many are kept; of those that have failed, the latest ones: they push no successful one out. */
#define RUNS_MAX	40
#define RUNS_FAILED_MAX 10

/* With their NUL. */
#define RUN_HOST_BYTES 65
#define RUN_KEY_BYTES  65

/* Longer than the text that runs_add() returns. */
#define RUNS_BYTES (RUNS_MAX * 400)

/* Where all such files are: a directory as claim/file_path.h has it. */
#define RUNS_DIRECTORY ".dlockfs/runs"

struct run {
	int64_t start_ms, took_ms, every_ms; /* every_ms 0: none */
	uint64_t token;
	int status;
	uint32_t uid;
	char host[RUN_HOST_BYTES];
	char key[RUN_KEY_BYTES]; /* empty: none */
};

/* Reads the next run of a text, and moves *text behind its line. Returns false at the end. */
bool runs_next(const char **text, const char *end, struct run *ret);

/* Whether that run is in the text. */
bool runs_have(const char *text, size_t bytes, const struct run *run);

/* The text with the runs that count, and another one (or NULL) behind them. To be freed; NULL: out
 * of memory. */
char *runs_add(const char *text, size_t bytes, const struct run *run);

/* What is to be known of a job without all of its runs. */
struct runs_summary {
	size_t count, failed;
	struct run last, last_success; /* if there is one */
	bool has_success;
};

/* Returns false if there are no runs. */
bool runs_summarize(const char *text, size_t bytes, struct runs_summary *ret);

/* A run as a line, with its newline. */
void runs_write(FILE *out, const struct run *run);

/* Whether the job has to run for that key (not NULL): no run for it has succeeded. */
bool runs_want_key(const char *text, size_t bytes, const char *key);

/* Whether it has to run once in a period that is over, or nearly, at that time: the latest run that
 * has succeeded began 0.9 periods before, or earlier. If it began later than now, a clock was
 * wrong; it counts only if it is no more than that ahead. */
bool runs_want_period(const char *text, size_t bytes, int64_t every_ms, int64_t now_ms);

#endif
