/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of lock files, on the hosts of fixture.h.
 */
#ifndef DLOCKFS_LOCKFILE_FIXTURE_H
#define DLOCKFS_LOCKFILE_FIXTURE_H

#include "lockfile/lockfiles.h"
#include "../engine/fixture.h"

enum { LIMIT_MS = 30000 };

/* So long that a file is watched; and what was seen before is not known any more. */
enum { LIVED_MS = 300 };

/* A call and its answer. */
struct call {
	int answers; /* 0 or 1 */
	int result;
	char text[512]; /* that was read; or names, in their order, with a space between */
	bool ours;
	bool ephemeral;
	const char *path; /* of a read, by whose answer */
	bool has;	  /* the host has that file */
};

/* world_setup(), with lock files on all hosts. */
int lockfiles_setup(void **state);

/* Nothing is sent or heard until settle(). */
void call_alter(struct call *call, struct host *host, const struct store_step *steps, size_t count,
		int64_t limit_ms);
void call_make(struct call *call, struct host *host, const char *path, const char *text);
void call_remove(struct call *call, struct host *host, const char *path);
void call_replace(struct call *call, struct host *host, const char *path, const char *text);
void call_rename(struct call *call, struct host *host, const char *from, const char *to,
		 const char *text, int64_t limit_ms);
void call_read(struct call *call, struct host *host, const char *path);
void call_list(struct call *call, struct host *host, const char *directory);

/* Calls that succeed, after which everything that is due has happened. The last two are about the
 * file of another host: it is removed, or the host gets one in its place. */
void make_file(struct host *host, const char *path, const char *text);
void remove_file(struct host *host, const char *path);
void take_away(struct host *host, const char *path);
void take_file(struct host *host, const char *path, const char *text);

/* The call makes a file, which by the kernel's path is `made`. That is done, and cannot be told
 * before the session is known to live. */
void bar(struct call *call, struct host *host, const char *made);

/* The daemon on the host, which has no locks, dies, and another one is about to connect with its
 * books. Nobody answers what was asked. */
void host_restart(struct host *host);

/* The text of the file at the service, by the kernel's path; NULL: there is none. Valid until the
 * next call. */
const char *file_text(struct world *world, const char *path);

#define assert_open(call) assert_int_equal((call)->answers, 0)
#define assert_result(call, what)                                                                  \
	do {                                                                                       \
		assert_int_equal((call)->answers, 1);                                              \
		assert_int_equal((call)->result, what);                                            \
	} while (0)
#define assert_text(world, path, text)                                                             \
	do {                                                                                       \
		assert_non_null(file_text(world, path));                                           \
		assert_string_equal(file_text(world, path), text);                                 \
	} while (0)

#endif
