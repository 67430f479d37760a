/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to the kernel. They are collected, and sent at the end of what led to them.
 *
 * Where the state is kept for the next daemon (journal/journal.h), an answer is sent after the
 * state that the answer rests on is committed: a caller that was told of a lock holds the lock for
 * the next daemon, too.
 *
 * A process may be stopped at any moment, and the guard knows of a store's lease from the grant on
 * (kernel/lease_board.h). So between the grant and the answer that tells of it the leases are
 * judged once more: if the process was stopped before the guard knew, and its lease has ended
 * meanwhile, the caller is told EIO. If it is stopped after that, the guard acts.
 *
 * Loop thread only, but for what libfuse writes as a notification.
 */
#ifndef DLOCKFS_HANDLES_ANSWERS_H
#define DLOCKFS_HANDLES_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct filesystem;
struct handle;

/* From now on answers are collected; the session has its descriptor. Returns 0 or -errno. */
int answers_begin(struct filesystem *filesystem);

/* The next answer tells its caller that it has a lock through the handle. If the handle is fenced
 * when the answer is sent, perhaps by another daemon, the answer is EIO instead. */
void answers_tell_of(const struct handle *handle);

/* Whether one of the answers that are collected tells of a lock. */
bool answers_tell(const struct filesystem *filesystem);

/* Commits the state, if there is a journal, sends what was collected, and lets the engines send
 * what they have for their stores. `handled` is the number of the request that led to the answers;
 * 0: no request did. Only takeover_commit() calls this: it judges the leases first, and marks what
 * changes without notice. */
void answers_send(struct filesystem *filesystem, uint64_t handled);

/* Sends answers of another daemon, which may have been sent before: the kernel ignores those. */
void answers_send_again(struct filesystem *filesystem, const struct iovec *answers, size_t count);

/* From now on answers go out at once. What was collected has been sent. */
void answers_end(struct filesystem *filesystem);

/* Frees the answers. The session is gone. */
void answers_finish(struct filesystem *filesystem);

#endif
