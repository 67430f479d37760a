/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the counts of users. Loop thread only.
 */
#include "files/user.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/platform.h"
#include "config/config.h"
#include "files/filesystem.h"
#include "kernel/warden.h"

/* How often the refusals of one user are logged. */
#define TELL_MS 60000

/* How many kept bytes count as a share of USER_FILES, */
#define SHARE_BYTES 4096

/* of a request as one more of USER_WAITERS, which no other one but a write reaches, */
#define REQUEST_SHARE_BYTES 8192

/* and how many of what the next process reads. Common paths, and texts, have less. */
#define SHARE_STATE_BYTES 256

static const struct {
	const char *limit, *key;
	int error;
} shares[USER_SHARES] = {
	[USER_WAITERS] = {"user_waiters", "waiters", -ENOLCK},
	[USER_FILES] = {"user_files", "files", -ENFILE},
	[USER_NAMES] = {"user_names", "names", -EDQUOT},
	[USER_RANGES] = {"user_ranges", "ranges", -ENOLCK},
};

struct user *user_find(const struct users *users, uid_t uid)
{
	struct user *user;
	HASH_FIND(by_uid, users->by_uid, &uid, sizeof(uid), user);
	return user;
}

static struct user *create(struct users *users, uid_t uid)
{
	struct user *user = calloc(1, sizeof(*user));

	if (user == NULL)
		return NULL;
	user->uid = uid;
	for (int share = 0; share < USER_SHARES; share++)
		user->told_ms[share] = -1;
	HASH_ADD(by_uid, users->by_uid, uid, sizeof(user->uid), user);
	if (user->by_uid.tbl != NULL)
		return user;
	free(user);
	return NULL;
}

bool user_is_limited(uid_t uid)
{
	return uid != 0 && uid != warden_uid();
}

int64_t user_limit(const struct config *config, enum user_share share)
{
	const int64_t limits[USER_SHARES] = {
		[USER_WAITERS] = config->user_waiters,
		[USER_FILES] = config->user_files,
		[USER_NAMES] = config->user_names,
		[USER_RANGES] = config->user_ranges,
	};
	return limits[share];
}

static void tell(const struct filesystem *filesystem, struct user *user, enum user_share share)
{
	int64_t *told_ms = &user->told_ms[share];

	if (*told_ms >= 0 && filesystem->now_ms - *told_ms < TELL_MS)
		return;
	*told_ms = filesystem->now_ms;
	log_warning("user %u has reached %s = %" PRId64 ": its calls fail with %s", user->uid,
		    shares[share].limit, user_limit(filesystem->config, share),
		    strerrorname_np(-shares[share].error));
}

static int check(struct filesystem *filesystem, uid_t uid, enum user_share share, size_t amount,
		 size_t limit)
{
	struct user *user = user_find(filesystem->users, uid);
	size_t count = user != NULL ? user->counts[share] : 0;

	if (!user_is_limited(uid) || (count < limit && amount <= limit - count))
		return 0;
	filesystem->users->limited[share]++;
	if (user != NULL)
		tell(filesystem, user, share);
	return shares[share].error;
}

int user_check(struct filesystem *filesystem, uid_t uid, enum user_share share, size_t amount)
{
	return check(filesystem, uid, share, amount, (size_t)user_limit(filesystem->config, share));
}

int user_check_release(struct filesystem *filesystem, uid_t uid, enum user_share share,
		       size_t amount)
{
	return check(filesystem, uid, share, amount,
		     2 * (size_t)user_limit(filesystem->config, share));
}

size_t user_shares_of(size_t bytes)
{
	return 1 + bytes / SHARE_BYTES;
}

size_t user_shares_of_path(size_t bytes)
{
	return 1 + bytes / SHARE_STATE_BYTES;
}

size_t user_shares_of_request(size_t bytes)
{
	return bytes / REQUEST_SHARE_BYTES;
}

size_t user_shares_of_text(size_t bytes)
{
	return bytes / SHARE_STATE_BYTES;
}

struct user *user_add(struct users *users, uid_t uid, enum user_share share, size_t amount)
{
	struct user *user = user_find(users, uid);

	if (user == NULL)
		user = create(users, uid);
	if (user != NULL)
		user->counts[share] += amount;
	return user;
}

void user_leave(struct users *users, struct user *user, enum user_share share, size_t amount)
{
	if (user == NULL)
		return;
	user->counts[share] -= amount;
	for (int other = 0; other < USER_SHARES; other++) {
		if (user->counts[other] > 0)
			return;
	}
	HASH_DELETE(by_uid, users->by_uid, user);
	free(user);
}

void user_write_all(const struct filesystem *filesystem, FILE *out)
{
	const struct user *user;

	for (user = filesystem->users->by_uid; user != NULL; user = user->by_uid.next) {
		fprintf(out, "uid=%u", user->uid);
		for (int share = 0; share < USER_SHARES; share++)
			fprintf(out, " %s=%zu", shares[share].key, user->counts[share]);
		fputc('\n', out);
	}
}
