/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the counts of writes. Loop thread only.
 */
#include "files/user_writes.h"

#include <stdlib.h>

#include "config/config.h"
#include "files/filesystem.h"
#include "files/user.h"

/* How many users are looked at for each new one, whether they can be forgotten. */
#define LOOKED_AT 8

static struct rate_limit limit_of(const struct filesystem *filesystem)
{
	int64_t per_second = filesystem->config->user_writes;
	return (struct rate_limit){per_second, per_second * USER_WRITES_SECONDS};
}

static struct user_writer *find(const struct user_writes *writes, uid_t uid)
{
	struct user_writer *writer;
	HASH_FIND(by_uid, writes->by_uid, &uid, sizeof(uid), writer);
	return writer;
}

static void forget(struct user_writes *writes, struct user_writer *writer)
{
	HASH_DELETE(by_uid, writes->by_uid, writer);
	free(writer);
}

/* Those who may have all at once again; others are looked at once more behind the rest. */
static void forget_some(struct filesystem *filesystem)
{
	struct user_writes *writes = filesystem->users->writes;
	const struct rate_limit limit = limit_of(filesystem);

	for (int left = LOOKED_AT; left > 0 && writes->by_uid != NULL; left--) {
		struct user_writer *first = writes->by_uid;
		bool unused = rate_is_unused(&first->rate, &limit, filesystem->now_ms);

		HASH_DELETE(by_uid, writes->by_uid, first);
		if (!unused)
			HASH_ADD(by_uid, writes->by_uid, uid, sizeof(first->uid), first);
		if (first->by_uid.tbl == NULL || unused)
			free(first);
	}
}

/* NULL: out of memory. */
static struct user_writer *find_or_create(struct filesystem *filesystem, uid_t uid)
{
	struct user_writes *writes = filesystem->users->writes;
	struct user_writer *writer = find(writes, uid);

	if (writer != NULL)
		return writer;
	forget_some(filesystem);
	writer = calloc(1, sizeof(*writer));
	if (writer == NULL)
		return NULL;
	writer->uid = uid;
	HASH_ADD(by_uid, writes->by_uid, uid, sizeof(writer->uid), writer);
	if (writer->by_uid.tbl != NULL)
		return writer;
	free(writer);
	return NULL;
}

int64_t user_writes_add(struct filesystem *filesystem, uid_t uid)
{
	const struct rate_limit limit = limit_of(filesystem);
	int64_t now_ms = filesystem->now_ms;

	if (!user_is_limited(uid))
		return 0;
	struct user_writer *writer = find_or_create(filesystem, uid);
	if (writer == NULL)
		return 0;
	int64_t due_ms = rate_next_ms(&writer->rate, &limit, now_ms);
	rate_use(&writer->rate, &limit, now_ms, 1);
	return due_ms > now_ms ? due_ms : 0;
}

void user_writes_add_bytes(struct filesystem *filesystem, uid_t uid, size_t bytes)
{
	const struct rate_limit limit = limit_of(filesystem);
	int64_t times = (int64_t)(bytes / USER_WRITES_BYTES);
	struct user_writer *writer =
		times > 0 && user_is_limited(uid) ? find_or_create(filesystem, uid) : NULL;

	if (writer != NULL)
		rate_use(&writer->rate, &limit, filesystem->now_ms, times);
}

int64_t user_writes_end(struct filesystem *filesystem, uid_t uid)
{
	struct user_writer *writer = find(filesystem->users->writes, uid);
	struct rate_limit limit = limit_of(filesystem);
	int64_t now_ms = filesystem->now_ms;

	if (writer == NULL)
		return 0;
	limit.at_once++; /* the latest one is done, and counts */
	int64_t due_ms = rate_next_ms(&writer->rate, &limit, now_ms);
	return due_ms > now_ms ? due_ms : 0;
}

void user_writes_finish(struct user_writes *writes)
{
	while (writes->by_uid != NULL)
		forget(writes, writes->by_uid);
}
