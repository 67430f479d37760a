/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of the kernel that the next process has to handle again if this one is killed, and that
 * nothing else in the journal describes: requests in .dlockfs that wait for a store; and the latest
 * POLL of each open file, which is answered, but asked to be told of events (the kernel ignores the
 * second answer).
 *
 * Without a journal only a program that takes over gets them. Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_KEPT_REQUEST_H
#define DLOCKFS_FILES_KEPT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "journal/text.h"

struct filesystem;
struct kept_request;
struct requests;

/* Keeps the request that is being handled. *ret is NULL if that request is not known. A long
 * request is on its user's account (user_shares_of_request()), whose limit is not checked. Returns
 * 0 or -ENOMEM. */
int kept_request_create(struct filesystem *filesystem, struct kept_request **ret);

/* The request is going to change something in a store, which may only happen after the next commit:
 * a process that handles the request again then knows that the change has begun. NULL is fine. */
void kept_request_begin(struct filesystem *filesystem, struct kept_request *request);

/* Whether kept_request_begin() was called, here or in the process before. NULL is fine. */
bool kept_request_has_begun(const struct kept_request *request);

/* Keeps the request that the present line describes. Returns 0; or -EINVAL, -ENOMEM, with a line in
 * the reader's `why`. */
int kept_request_restore(struct filesystem *filesystem, struct state_reader *in);

/* Handles the restored requests again, once each. */
void kept_request_resume_all(struct filesystem *filesystem);

/* The request is answered, or of no use any more. NULL is fine. */
void kept_request_free(struct filesystem *filesystem, struct kept_request *request);

/* Writes a request as a line, for other files that keep requests. */
void kept_request_write(const void *request, size_t bytes, FILE *out);

/* Writes all that are kept. */
void kept_request_save_all(const struct requests *requests, FILE *out);

#endif
