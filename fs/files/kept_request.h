/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of the kernel that the next process has to handle again if this one is killed, where
 * nothing else tells of them: those that wait for a store on behalf of somebody who looks on or
 * steers, whose answer is still to come; and the latest POLL of each open file, whose answer the
 * kernel has, and will not take again, but which asked to be told of events.
 *
 * Without a journal nothing is kept. Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_KEPT_REQUEST_H
#define DLOCKFS_FILES_KEPT_REQUEST_H

#include <stdio.h>

#include "files/filesystem.h"
#include "journal/text.h"

/* The longest is that of an ioctl(2) (struct dlockfs_steer), or of a LOOKUP. */
enum { KEPT_REQUEST_BYTES = 512 };

struct kept_request;

/* Keeps the request that is being handled. *ret is NULL if there is nothing to be kept. Returns 0
 * or -ENOMEM. */
int kept_request_create(struct filesystem *filesystem, struct kept_request **ret);

/* It is going to change something in a store. From the next commit on another process that handles
 * it again knows that, and so has to begin with it after that. NULL is fine. */
void kept_request_begin(struct filesystem *filesystem, struct kept_request *request);

/* Whether that was called, here or in the process before. NULL is fine. */
bool kept_request_has_begun(const struct kept_request *request);

/* Keeps the one that the present line says. Returns 0; or -EINVAL, -ENOMEM, with a line in the
 * reader's `why`. */
int kept_request_restore(struct filesystem *filesystem, struct state_reader *in);

/* Handles those that are kept again, once each. */
void kept_request_resume_all(struct filesystem *filesystem);

/* It is answered, or of no use any more. NULL is fine. */
void kept_request_free(struct filesystem *filesystem, struct kept_request *request);

/* Writes a request, of whoever: a line that is the same for all. */
void kept_request_write(const void *request, size_t bytes, FILE *out);

/* Writes all that are kept. */
void kept_request_save_all(const struct filesystem *filesystem, FILE *out);

#endif
