/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to the kernel that go out behind the state they belong to, where that is kept for the
 * next daemon (journal/journal.h): who was told of a lock holds it for that one, too.
 *
 * Loop thread only, but for what libfuse writes as a notification.
 */
#ifndef DLOCKFS_FILES_ANSWERS_H
#define DLOCKFS_FILES_ANSWERS_H

#include "files/filesystem.h"

/* From now on answers are collected; the session has its descriptor, and the file system a journal.
 * Returns 0 or -errno. */
int answers_begin(struct filesystem *filesystem);

/* The next answer tells its caller that it has a lock through the handle. If the handle is fenced
 * by the time at which that is sent, be it by another daemon, it is the error EIO instead. */
void answers_tell_of(const struct filesystem *filesystem, const struct handle *handle);

/* Commits the state, sends what was collected, and lets the engines send what they have for their
 * stores. `handled` is the number of the request that led to it; 0: it was none. Does nothing if
 * nothing is kept. For takeover_commit(), which marks what nobody tells of. */
void answers_send(struct filesystem *filesystem, uint64_t handled);

/* Sends answers that another daemon may not have sent: of those that it has the kernel knows
 * nothing. */
void answers_send_again(struct filesystem *filesystem, const struct iovec *answers, size_t count);

/* From now on answers go out at once; those that were collected have been sent. */
void answers_end(struct filesystem *filesystem);

/* Frees it. The session is gone. */
void answers_finish(struct filesystem *filesystem);

#endif
