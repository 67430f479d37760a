/* SPDX-License-Identifier: Apache-2.0
 *
 * Users of the mount, by user id: how much each has of what costs memory here or claims in a store,
 * and how much each may have, so that no user can keep the others from their locks:
 *
 *   USER_WAITERS  calls that ask for a lock, or about one (F_GETLK, fsync(2), the ioctl(2) for the
 *                 token), and are not answered yet: each is a claim in a queue, as a rule. And
 *                 calls about lock files (lockfile.h); a long write(2) counts by its length:
 *                 user_shares_of_request()
 *   USER_FILES    open files, including directories and files of .dlockfs, for the user who opened
 *                 them; a long path counts, too: user_shares_of_path(), as do bytes that are kept
 *                 for directories and files of .dlockfs: user_shares_of()
 *   USER_RANGES   byte ranges that are held through files that the user has opened; if a process
 *                 has locked through files of several users, they count for the first
 *   USER_NAMES    existing names that the user has made, even after chown(2), by the length of
 *                 their paths; and the texts in files that the user was the last to make longer,
 *                 or that came with the name: user_shares_of_text(). Once a name is gone, only
 *                 open files count, as USER_FILES, and their texts
 *
 * Each share is owned by what it stands for (struct parked, struct handle, struct inode and so on),
 * and is taken back when that is freed: so the counts are exact.
 *
 * User 0 and the user who runs the daemon are counted, but have no limits: they could end the
 * daemon anyway.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_USER_H
#define DLOCKFS_FILES_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct config;
struct filesystem;

enum user_share { USER_WAITERS, USER_FILES, USER_NAMES, USER_RANGES, USER_SHARES };

struct user {
	uid_t uid;
	UT_hash_handle by_uid;
	size_t counts[USER_SHARES];
	int64_t told_ms[USER_SHARES]; /* when a refusal was last logged; -1: never */
	struct inode *idle;	      /* its idle files, the longest idle first */
};

struct users {
	struct user *by_uid;
	uint64_t limited[USER_SHARES]; /* refusals of users who had too many */
	struct user_lines *lines;      /* in the log: user_lines.h */
	struct user_writes *writes;    /* on the servers: user_writes.h */
};

/* NULL: the user has nothing. */
struct user *user_find(const struct users *users, uid_t uid);

/* Whether the user has limits. */
bool user_is_limited(uid_t uid);

/* Whether the user may have `amount` more. Returns 0; or -ENOLCK, -ENFILE, -EDQUOT, as the manual
 * pages of the calls say, counted and logged as a refusal. */
int user_check(struct filesystem *filesystem, uid_t uid, enum user_share share, size_t amount);

/* As user_check(), for ranges that are made by releasing a part of a range: up to twice the limit.
 */
int user_check_release(struct filesystem *filesystem, uid_t uid, enum user_share share,
		       size_t amount);

/* How many shares of USER_FILES `bytes` count for that are kept while something is open. */
size_t user_shares_of(size_t bytes);

/* How many shares a name, or an open file, counts for whose path has that many bytes, and how many
 * shares a text counts for. The next process has to read all names and texts before it can go on
 * (fs/restart/): so the shares are what that takes. */
size_t user_shares_of_path(size_t bytes);
size_t user_shares_of_text(size_t bytes);

/* How many more shares of USER_WAITERS a request of that length counts for while it is kept. */
size_t user_shares_of_request(size_t bytes);

/* The user has `amount` more, at least 1, checked or not. Returns the user, for user_leave(); NULL
 * when out of memory. */
struct user *user_add(struct users *users, uid_t uid, enum user_share share, size_t amount);

/* The user has `amount` less; with the last one *user is gone. NULL is fine. */
void user_leave(struct users *users, struct user *user, enum user_share share, size_t amount);

/* The limit in the configuration. */
int64_t user_limit(const struct config *config, enum user_share share);

/* Writes a line for each user that has anything: uid, waiters, files, names, ranges. */
void user_write_all(const struct filesystem *filesystem, FILE *out);

#endif
