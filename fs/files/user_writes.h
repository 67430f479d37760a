/* SPDX-License-Identifier: Apache-2.0
 *
 * How often each user makes the servers write something: `user_writes` a second, and
 * USER_WRITES_SECONDS seconds' worth at once. Calls count that ask for a lock, for a token or for a
 * proof, or that change names or lock files; and once more each for
 * USER_WRITES_BYTES of what is written by that. What is over the limit waits (ops/writes.h), each
 * in its turn. Users without limits (user_is_limited()) do not wait.
 *
 * Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_USER_WRITES_H
#define DLOCKFS_FILES_USER_WRITES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/rate.h"

struct filesystem;

/* With its keys a claim of a lock takes about that of the servers' space. */
enum { USER_WRITES_SECONDS = 10, USER_WRITES_BYTES = 1024 };

struct user_writer {
	uid_t uid;
	UT_hash_handle by_uid;
	struct rate rate;
};

/* Zero at first. */
struct user_writes {
	struct user_writer *by_uid; /* those who may not have all at once; in the order of coming */
	uint64_t delayed;	    /* calls that waited */
};

/* The user causes a write. Returns until when it is to wait; 0: it is not to wait. */
int64_t user_writes_add(struct filesystem *filesystem, uid_t uid);

/* The call that was counted writes so many bytes: if they are many, the user's next call waits
 * longer. */
void user_writes_add_bytes(struct filesystem *filesystem, uid_t uid, size_t bytes);

/* Until when the user's latest call was to wait; 0: not at all. */
int64_t user_writes_end(struct filesystem *filesystem, uid_t uid);

void user_writes_finish(struct user_writes *writes);

#endif
