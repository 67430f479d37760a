/* SPDX-License-Identifier: Apache-2.0
 *
 * Steering of locks from outside: to ask whoever holds a claim, on any host, to release it, or to
 * take the claim away.
 *
 * A claim of this host is the engine's to deal with. To that of another host the wish is written
 * into the claim's data, where that host's daemon reads it, logs it, and does what it says. One
 * that does not (it is gone, or of another kind) is overruled after BREAK_GRACE_MS: then the claim
 * is deleted. While there is no connection to the store a wish waits for CONNECTION_LIMIT_MS.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_STEER_H
#define DLOCKFS_FILES_STEER_H

#include "claim/data.h"
#include "files/filesystem.h"

#define BREAK_GRACE_MS	    2000
#define CONNECTION_LIMIT_MS 5000

struct steer; /* a wish on its way */

struct steer_caller {
	uid_t uid; /* 0 and the `owner` of the lock may all; others, what claims say is theirs */
	char who[CLAIM_DATA_WHO_BYTES]; /* for logs: printable ASCII without spaces */
};

/* What whoever has a wish hears. */
struct steer_events {
	/* The claim is changed in the loop's next turn, so behind the next commit. */
	void (*begin)(void *context);
	/* Once, perhaps before steer_start() returns. */
	void (*done)(void *context, int error);
};

/* Everything is copied but the events. With `begun` another process has called begin() for the same
 * wish: that the claim is gone is what it has led to. done() is given 0; -ENOENT there is no such
 * claim (any more); -EINVAL it waits and so cannot be revoked; -ECONNRESET the store cannot be
 * reached, or did not tell whether it happened; -EPERM the caller may not; -EACCES, -EIO, -ENOMEM.
 * Returns 0, with the wish in *ret until done() is called, or -ENOMEM. */
int steer_start(struct filesystem *filesystem, const char *path, const char *claim,
		enum engine_order order, const struct steer_caller *caller, bool begun,
		const struct steer_events *events, void *context, struct steer **ret);

/* done() is not called; what was sent may happen. */
void steer_cancel(struct steer *steer);

/* Ends all wishes with the error: the daemon stops. */
void steer_refuse_all(struct filesystem *filesystem, int error);

/* Frees what the store had not answered. To be called when it is closed. */
void steer_finish(struct filesystem *filesystem);

/* Does what is due. */
void steer_advance(struct filesystem *filesystem);

/* When steer_advance() is needed at the latest; INT64_MAX if nothing is due. */
int64_t steer_deadline(const struct filesystem *filesystem);

#endif
