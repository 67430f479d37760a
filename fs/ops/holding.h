/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds (engine/hold.h): the ioctl(2) calls of dlockfs.h by which a holder says, before it asks for
 * the lock, that it may make one of it, and then does. The second one waits for the store.
 *
 * A request that is handled again, by another process of dlockfs, may find that the lock is a hold
 * already: then nothing is locked through the file any more. Who asks has to look at the queue.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_OPS_HOLDING_H
#define DLOCKFS_OPS_HOLDING_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>

#include "files/waiting.h"
#include "handles/handle.h"

extern const struct waiting_kind holding_kind;

/* Whether the command of ioctl(2) is one of these. */
bool holding_knows(unsigned int command);

/* Answers it, now or later; everything is copied. */
void holding_ioctl(fuse_req_t req, struct handle *handle, unsigned int command, const void *in,
		   size_t in_bytes);

/* The engine has answered: the cookie of engine_hold(). */
void holding_answered(void *cookie, int error);

/* Frees the requests that the engine had not answered. To be called when it is gone. */
void holding_finish(struct filesystem *filesystem);

#endif
