/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl run --once and --every: whether a command is to run at all, by the runs of the lock that
 * have succeeded on any host (claim/runs.h), which only who holds the lock adds to:
 *
 *     --once    look: done? -> skipped
 *               lock -> look again: done? -> skipped; else the command -> its run is added
 *     --every   lock -> look: too early by the time of the lock's token? -> skipped; else likewise
 *
 * So who waits for the lock is a standby: it runs the command if the holder has failed, or is lost.
 * A command whose lock is lost meanwhile has not succeeded, whatever its status.
 */
#ifndef DLOCKCTL_COMMANDS_ONCE_H
#define DLOCKCTL_COMMANDS_ONCE_H

#include <stdbool.h>
#include <stdint.h>

struct once {
	const char *key;    /* NULL: no --once */
	long long every_ms; /* 0: no --every */
	bool quiet;
	int64_t start_ms;   /* of the run that has begun, by the clock of its record, */
	long long begin_ms; /* and by now_ms() */
};

/* The options. Return -1, or tell what is wrong and return the status. */
int once_set_key(struct once *once, const char *word);
int once_set_period(struct once *once, const char *word);

/* Whether one of them is there. */
bool once_is_asked(const struct once *once);

/* Says that the command is skipped, and returns the status. */
int once_skip(const struct once *once, int status);

/* Before the lock is asked for, by its open file. Returns -1 to go on; or the status to end with:
 * `skipped`, or an error that was told. */
int once_look(const struct once *once, const char *name, int fd, int skipped);

/* When the lock is held and its token is known. As once_look(). */
int once_begin(struct once *once, const char *name, int fd, int skipped);

/* The command has ended: adds the run, and returns the status to end with. */
int once_end(const struct once *once, const char *name, int fd, uint64_t token, int status);

#endif
