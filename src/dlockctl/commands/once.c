/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/commands/once.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim/runs.h"
#include "dlockctl/dlockctl.h"
#include "dlockfs.h"

/* A year is less: what is added to such a time does not overflow. */
#define PERIOD_MAX_MS (INT64_C(100) * 366 * 24 * 3600 * 1000)

int once_set_key(struct once *once, const char *word)
{
	size_t bytes = strlen(word);

	if (bytes == 0 || bytes >= RUN_KEY_BYTES)
		return fail(EX_USAGE, "--once %s: is no key; expected up to %d bytes, such as %s",
			    word, RUN_KEY_BYTES - 1, "\"$(date +%F)\"");
	once->key = word;
	return -1;
}

int once_set_period(struct once *once, const char *word)
{
	if (!parse_time(word, PERIOD_MAX_MS, &once->every_ms))
		return fail(EX_USAGE,
			    "--every %s: is no period; expected a time, such as 90s, 5m, "
			    "1h or 1d",
			    word);
	return -1;
}

bool once_is_asked(const struct once *once)
{
	return once->key != NULL || once->every_ms > 0;
}

int once_skip(const struct once *once, int status)
{
	if (!once->quiet)
		fputs("skipped\n", stderr);
	return status;
}

/* As ioctl(2), but goes on after a signal. Returns 0 or an errno. */
static int ask(int fd, unsigned long request, void *what)
{
	int failed;

	do
		failed = ioctl(fd, request, what);
	while (failed < 0 && errno == EINTR);
	return failed < 0 ? errno : 0;
}

/* `lost`: what EIO means. */
static int ask_failed(const char *name, int error, bool held)
{
	if (error == EOPNOTSUPP)
		return fail(EX_UNAVAILABLE,
			    "%s: its store keeps no runs, so there is no --once and no --every; "
			    "expected a lock in another store",
			    name);
	if (error == ENOTTY)
		return fail(EX_UNAVAILABLE,
			    "%s: the daemon is older than dlockctl, and keeps no runs; restart it",
			    name);
	if (error == EIO && held)
		return fail(EXIT_LOST, "%s: the lock is lost", name);
	return fail(error == EIO ? EXIT_NO_ANSWER : status_of_errno(error),
		    "%s: its runs cannot be read: %s; see: dlockctl doctor", name, strerror(error));
}

/* Returns 0 and the runs, which are to be freed; or an errno. */
static int read_runs(int fd, char **ret)
{
	struct dlockfs_runs *runs = must(calloc(1, sizeof(*runs) + 1));
	int error = ask(fd, DLOCKFS_IOC_RUNS, runs);

	*ret = error == 0 ? must(strdup(runs->text)) : NULL;
	free(runs);
	return error;
}

int once_look(const struct once *once, const char *name, int fd, int skipped)
{
	char *runs;

	if (once->key == NULL)
		return -1;
	int error = read_runs(fd, &runs);
	if (error != 0)
		return ask_failed(name, error, false);
	bool wanted = runs_want_key(runs, strlen(runs), once->key);
	free(runs);
	return wanted ? -1 : once_skip(once, skipped);
}

int once_begin(struct once *once, const char *name, int fd, int skipped)
{
	char *runs = NULL;
	int error = ask(fd, DLOCKFS_IOC_HELD_SINCE, &once->start_ms);

	if (error == 0)
		error = read_runs(fd, &runs);
	if (error != 0)
		return ask_failed(name, error, true);
	bool wanted = once->key != NULL ? runs_want_key(runs, strlen(runs), once->key)
					: runs_want_period(runs, strlen(runs), once->every_ms,
							   once->start_ms);
	free(runs);
	once->begin_ms = now_ms();
	return wanted ? -1 : once_skip(once, skipped);
}

int once_end(const struct once *once, const char *name, int fd, uint64_t token, int status)
{
	struct dlockfs_run run = {
		.start_ms = once->start_ms,
		.took_ms = now_ms() - once->begin_ms,
		.every_ms = once->every_ms,
		.token = token,
		.status = status,
	};

	if (once->key != NULL)
		strcpy(run.key, once->key);
	int error = ask(fd, DLOCKFS_IOC_RAN, &run);
	if (error == 0 || status != 0)
		return status;
	return fail(error == EIO ? EXIT_LOST : status_of_errno(error),
		    "%s: the command has succeeded, but its run could not be recorded: %s; it does "
		    "not count",
		    name, error == EIO ? "the lock is lost" : strerror(error));
}
