/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that read a file, or list the files of a directory. Loop thread only.
 */
#include "lockfile/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/books/lock.h"
#include "lockfile/news.h"
#include "lockfile/own.h"
#include "lockfile/watch.h"

int reading_begin(struct lockfiles *lockfiles, const char *path, bool list, int64_t limit_ms,
		  void *cookie)
{
	struct reading *reading = calloc(1, sizeof(*reading) + strlen(path) + 1);

	if (reading == NULL ||
	    timers_reserve(&lockfiles->reading_timers, lockfiles->readings_count + 1) < 0) {
		free(reading);
		return -ENOMEM;
	}
	reading->lockfiles = lockfiles;
	reading->cookie = cookie;
	reading->list = list;
	strcpy(reading->path, path);
	DL_APPEND(lockfiles->readings, reading);
	lockfiles->readings_count++;
	books_set_limit(lockfiles, &lockfiles->reading_timers, &reading->timer, limit_ms);
	reading_send(reading);
	return 0;
}

void reading_free(struct reading *reading)
{
	struct lockfiles *lockfiles = reading->lockfiles;

	ask_forget(&reading->ask);
	timers_clear(&lockfiles->reading_timers, &reading->timer);
	DL_DELETE(lockfiles->readings, reading);
	lockfiles->readings_count--;
	free(reading);
}

void reading_send(struct reading *reading)
{
	struct lockfiles *lockfiles = reading->lockfiles;

	if (reading->ask == NULL && lockfiles->engine->session.state == STORE_CONNECTED)
		ask_path(lockfiles, reading->list ? ASK_LIST : ASK_READ, reading, &reading->ask,
			 reading->path);
}

void reading_end_time(struct timer *timer)
{
	struct reading *reading = STATE_WHOLE(timer, struct reading, timer);
	struct lockfiles *lockfiles = reading->lockfiles;
	void *cookie = reading->cookie;
	bool list = reading->list;

	reading_free(reading);
	if (list)
		news_listed(lockfiles, cookie, -ETIMEDOUT, NULL, 0);
	else
		news_read(lockfiles, cookie, -ETIMEDOUT, NULL, false);
}

/* Frees the question; and the reading, which was answered, unless it is to be sent again. Returns
 * whether the caller is to be told. */
static bool is_answered(struct ask *ask, int error, void **ret_cookie)
{
	struct reading *reading = ask->asker;

	*ret_cookie = reading->cookie;
	ask_free(ask);
	if (error == -ECONNRESET)
		lock_retry_in(reading->lockfiles->engine, RETRY_SOON_MS);
	else
		reading_free(reading);
	return error != -ECONNRESET;
}

/* Whoever asked may act upon the answer at once: what is not there can be made. So a file of this
 * host that is gone is taken out of the books before the caller is told. */
void reading_answered(struct ask *ask, int error, const struct store_claim *claim)
{
	struct lockfiles *lockfiles = ask->lockfiles;
	const struct reading *reading = ask->asker;
	struct own *file = own_find(lockfiles, reading->path);
	uint64_t serial = ask->serial;
	void *cookie;

	if (!is_answered(ask, error, &cookie))
		return;
	bool ours = file != NULL && own_is_read(file, error, claim);
	if (file != NULL && file->serial <= serial)
		watch_found(file, error, claim);
	news_read(lockfiles, cookie, error, error == 0 ? claim : NULL, ours);
}

void reading_listed(struct ask *ask, int error, const char *const *names, size_t count)
{
	struct lockfiles *lockfiles = ask->lockfiles;
	void *cookie;

	if (is_answered(ask, error, &cookie))
		news_listed(lockfiles, cookie, error, names, count);
}
