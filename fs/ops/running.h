/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of jobs (claim/runs.h): the ioctl(2) calls of dlockfs.h by which a holder adds one, and
 * anybody who has the lock's file open reads them. They ask the store, and wait for it.
 *
 * A run is added in a transaction that checks the claim by which the lock is held, as its data are
 * now: whoever holds next by the same claim (handoff, keep) asks for a token of its own first,
 * which changes the data, and only then for the runs. So a run is added before the next holder
 * looks, or never. What is ambiguous is read again: a run that is there was added. So a request can
 * be handled again by another process of dlockfs.
 *
 * While there is no connection, a holder's request waits until the lock is lost, as does the
 * holder; another one for CONNECTION_LIMIT_MS.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_OPS_RUNNING_H
#define DLOCKFS_OPS_RUNNING_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>

#include "files/waiting.h"
#include "handles/handle.h"

extern const struct waiting_kind running_kind;

/* Whether the command of ioctl(2) is one of these. */
bool running_knows(unsigned int command);

/* Answers it, now or later; everything is copied. */
void running_ioctl(fuse_req_t req, struct handle *handle, unsigned int command, const void *in,
		   size_t in_bytes, size_t out_bytes);

/* Frees the requests that the store had not answered. To be called when the store is closed. */
void running_finish(struct filesystem *filesystem);

#endif
